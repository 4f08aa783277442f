"""Ends of intervals, by hand and by formula, and laws that they obey."""

import random
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from logs import Found, Rows, again, scored_file
from scipy import stats
from slow_resampling import random_log

from pipeline.scores.evidence.intervals import LEAST_DEFINED, intervals

NORMAL = NormalDist()
MANY = 10**9
"""Queries so many that the t distribution is the normal one."""
NAN, INF = float("nan"), float("inf")


def ends(
    resampled: Any, value: float, queries: int = MANY, confidence: float = 0.95
) -> tuple[float, float]:
    """The interval of one score."""
    column = np.array(resampled, dtype=float)[:, None]
    lower, upper = intervals(column, np.array([value]), queries, confidence)
    return float(lower[0]), float(upper[0])


def quantile(ordered: list[float], level: float) -> float:
    """Between order statistics: the i-th of B numbers is the quantile of i / (B + 1)."""
    place = min(max(level * (len(ordered) + 1), 1), len(ordered))
    under = int(place)
    over = min(under + 1, len(ordered))
    return ordered[under - 1] + (ordered[over - 1] - ordered[under - 1]) * (place - under)


def slow(resampled: list[float], value: float, queries: int, confidence: float) -> Any:
    """Bias-corrected percentiles, widened as the t distribution is."""
    ordered = sorted(resampled)
    share = sum((each < value) + (each == value) / 2 for each in ordered) / len(ordered)
    share = min(max(share, 0.5 / len(ordered)), 1 - 0.5 / len(ordered))
    bias = NORMAL.inv_cdf(share)
    t = stats.t(queries - 1).ppf((1 + confidence) / 2) * (queries / (queries - 1)) ** 0.5
    lower = quantile(ordered, NORMAL.cdf(min(2 * bias, 0) - t))
    upper = quantile(ordered, NORMAL.cdf(max(2 * bias, 0) + t))
    return pytest.approx(min(lower, value)), pytest.approx(max(upper, value))


def test_percentiles_by_hand() -> None:
    # 999 resamples, the median where the value is: the 25th from either end.
    resampled = np.random.default_rng(1).permutation(np.arange(1.0, 1000.0))
    place = NORMAL.cdf(-NORMAL.inv_cdf(0.975)) * 1000
    assert place == pytest.approx(25)
    assert ends(resampled, 500) == (pytest.approx(25), pytest.approx(975))


def test_the_median_of_the_resamples_moves_one_end_outwards() -> None:
    # The value is below 60 % of the resamples, so the lower end goes down: bias is that of 0.4.
    resampled = np.arange(1.0, 1000.0)
    bias = NORMAL.inv_cdf(399.5 / 999)
    lower = 1000 * NORMAL.cdf(2 * bias - NORMAL.inv_cdf(0.975))
    assert 1 < lower < 10
    assert ends(resampled, 400) == (pytest.approx(lower), pytest.approx(975))
    assert ends(resampled, 600) == (pytest.approx(25), pytest.approx(1000 - lower))


@pytest.mark.parametrize("queries", [2, 3, 10, 30, 1000])
@pytest.mark.parametrize("confidence", [0.6, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("value", [-0.2, 0.05, 0.9])
def test_formula(queries: int, confidence: float, value: float) -> None:
    resampled = np.random.default_rng(queries).normal(0.1, 1, 400)
    assert ends(resampled, value, queries, confidence) == slow(
        resampled.tolist(), value, queries, confidence
    )


def test_fewer_queries_are_wider() -> None:
    resampled = np.random.default_rng(1).normal(size=1000)
    widths = [np.ptp(ends(resampled, 0.0, queries)) for queries in (5, 10, 30, 100, MANY)]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > 1.3 * widths[-1]


def test_one_query_has_no_interval() -> None:
    resampled = np.random.default_rng(1).normal(size=1000)
    assert np.isnan(ends(resampled, 0.0, 1)).all()
    assert np.isnan(ends(resampled, 0.0, 0)).all()
    assert not np.isnan(ends(resampled, 0.0, 2)).any()
    assert np.isnan(ends([], 0.0)).all()


@pytest.mark.parametrize(("missing", "defined"), [(0, True), (50, True), (51, False), (999, False)])
def test_resamples_without_the_score(missing: int, defined: bool) -> None:
    rng = np.random.default_rng(1)
    resampled = rng.normal(size=1000)
    resampled[rng.permutation(1000)[:missing]] = NAN
    assert LEAST_DEFINED == 0.95
    found = ends(resampled, 0.0)
    assert np.isfinite(found).all() == defined
    if defined:
        # They are left out.
        assert found == ends(resampled[~np.isnan(resampled)], 0.0)


def test_a_score_without_a_value_has_no_interval() -> None:
    assert np.isnan(ends(np.arange(100.0), NAN)).all()
    assert np.isnan(ends(np.full(100, NAN), 1.0)).all()


def test_an_infinite_end_is_none() -> None:
    resampled = [*np.arange(1.0, 960.0), *[INF] * 40]
    lower, upper = ends(resampled, 500.0)
    assert lower == pytest.approx(25, abs=2)
    assert np.isnan(upper)
    # With fewer of them than lie above the upper end, both ends are finite.
    assert np.isfinite(ends([*np.arange(1.0, 991.0), *[INF] * 10], 495.0)).all()


def test_an_infinite_neighbour_of_an_end() -> None:
    # The lower end is the first of them exactly, and the second is infinite.
    assert ends([1.0, *[INF] * 99], 50.0)[0] == 1.0


def test_the_value_is_always_inside() -> None:
    rng = np.random.default_rng(2)
    resampled = rng.normal(size=(200, 300))
    value = rng.normal(0, 4, 300)
    lower, upper = intervals(resampled, value, 40, 0.95)
    assert (lower <= value).all()
    assert (value <= upper).all()
    # Also where all resamples lie on one side of it.
    assert ends(np.arange(1.0, 101.0), 1000.0)[1] == 1000.0
    assert ends(np.arange(1.0, 101.0), -5.0)[0] == -5.0


def test_columns_do_not_know_of_each_other() -> None:
    rng = np.random.default_rng(3)
    resampled, value = rng.normal(size=(100, 5)), rng.normal(size=5)
    resampled[:20, 2] = NAN
    resampled[:2, 3] = INF
    together = np.stack(intervals(resampled, value, 9, 0.9), axis=1)
    alone = [ends(resampled[:, at], value[at], 9, 0.9) for at in range(5)]
    np.testing.assert_array_equal(together, np.array(alone))


def test_equal_resamples() -> None:
    assert ends(np.full(100, 3.0), 3.0) == (3.0, 3.0)
    assert np.isnan(ends(np.full(100, INF), 3.0)[1])


LABELS = ("EXP", "AWRF(p=0.3)", "ERBE(decay=0.75)", "ERBP", "EXPU", "ARP", "NDKL", "GroupnDCG")


def sure(rows: Rows, **said: Any) -> dict[Any, tuple[float, float]]:
    """Ends of every score and group value; NaN where there is none."""
    evidence = {"resamples": 200, "noise_draws": 0, "min_queries": 0, **said}
    found: Found = scored_file(rows, metrics=LABELS, slices=["device"], evidence=evidence)
    rows_of = dict(found.scores)
    for key, groups in found.groups.items():
        rows_of |= {(*key, name): row for name, row in groups.items()}
    return {
        key: tuple(NAN if row[end] is None else row[end] for end in ("lower", "upper"))
        for key, row in rows_of.items()
    }


def close(expected: Any) -> Any:
    return pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.fixture(scope="module")
def log() -> Rows:
    return random_log(5, binary=True)


@pytest.mark.slow
def test_every_list_twice_in_its_query_is_no_news(log: Rows) -> None:
    plain = sure(log)
    twice = sure([*log, *again(log)])
    assert twice.keys() == plain.keys()
    for key, found in plain.items():
        assert twice[key] == close(found), key


@pytest.mark.slow
def test_every_query_twice_makes_intervals_narrower(log: Rows) -> None:
    twice = [*log, *({**row, "query_id": f"{row['query_id']} b"} for row in again(log))]
    key = ("all", "all", "group", "EXP", "a")
    ratio = np.ptp(sure(twice, resamples=2000)[key]) / np.ptp(sure(log, resamples=2000)[key])
    assert ratio == pytest.approx(0.5**0.5, rel=0.15)


@pytest.mark.slow
def test_names_of_groups_and_order_of_rows_do_not_matter(log: Rows) -> None:
    names = {"a": "z", "b": "y", "c": "x", None: None}
    renamed = sure([{**row, "group": names[row["group"]]} for row in reversed(log)])
    plain = sure(log)
    for key, found in plain.items():
        other = (*key[:4], names.get(key[4], key[4])) if len(key) == 5 else key
        assert renamed[other] == close(found)


@pytest.mark.slow
def test_another_slice_does_not_matter(log: Rows) -> None:
    rest = [row for row in log if row["device"] == "app"]
    whole, part = sure(log), sure(rest)
    for key, found in part.items():
        if key[:2] == ("device", "app"):
            assert whole[key] == close(found)
            assert part[("all", "all", *key[2:])] == close(found)


@pytest.mark.slow
def test_another_seed_draws_other_resamples(log: Rows) -> None:
    first, second = sure(log), sure(log, seed=2)
    key = ("all", "all", "group", "EXP.MinMaxRatio")
    assert first[key] != second[key]
    assert np.ptp(first[key]) == pytest.approx(np.ptp(second[key]), rel=0.3)


def test_ends_stay_within_the_range_of_the_metric() -> None:
    # Resamples of IAA are those of a linear form, which may fall below 0.
    rng = random.Random(17)
    rows = [
        {
            "list_id": f"l{number}",
            "query_id": f"q{number % 6}",
            "item_id": f"i{rng.randrange(6)}-{rank}",
            "rank": rank,
            "relevance": float(rng.random() < 0.5),
            "group": "ab"[rank % 2],
        }
        for number in range(8)
        for rank in (1, 2, 3)
    ]
    found = scored_file(rows, metrics=["IAA"], evidence={"resamples": 200, "noise_draws": 0})
    score = found.score("IAA", None)
    assert score["lower"] == 0.0 < score["value"] < score["upper"]


def test_no_resamples_no_intervals(log: Rows) -> None:
    assert np.isnan(list(sure(log, resamples=0).values())).all()


def test_one_query_has_scores_without_intervals() -> None:
    one = [row for row in random_log(5, binary=True) if row["query_id"] == "query 1"]
    assert one
    assert np.isnan(list(sure(one).values())).all()
