"""The noise floor of real logs: against 20,000 orders of their lists, and what it must obey."""

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from fair_logs import biased, floors, random_log, rows_of, scores_of
from logs import Found, same
from scipy import stats
from slow_chance import AGGREGATIONS, List, Shuffled

ORDERS = 20_000
K = 3
IN_SUMS = ("EXP", "AWRF", "ERBE", "ERBP")
LABELS = [
    *(f"{name}{cut}" for name in (*IN_SUMS, "EXPU", "ERBR") for cut in ("", "@3")),
    *(f"{name}(denominator=catalogue)" for name in ("EXP", "AWRF", "ERBP")),
    "ARP",
    "NDKL",
    "Skew@3",
]


@dataclass(frozen=True)
class Case:
    """A log: the floors of it, and of more unfair ones that differ in order alone."""

    lists: list[List]
    found: list[Found]
    relevant: dict[str, float]
    items: dict[str, int]
    shuffled: Shuffled

    def draws(self, label: str, aggregation: str) -> Any:
        if label == "NDKL":
            return self.shuffled.ndkl
        if label.startswith("Skew"):
            skews = self.shuffled.skews()
            return skews.max(axis=1) if aggregation == "MaxSkew" else skews.min(axis=1)
        values = self.shuffled.values(label, self.relevant, self.items)
        return AGGREGATIONS[aggregation](values)


SHARES: dict[str, dict[str, float]] = {
    "three groups": {"a": 0.5, "b": 0.42, "c": 0.08},
    "five groups": {"a": 0.4, "b": 0.25, "c": 0.2, "d": 0.1, "e": 0.05},
}


@pytest.fixture(scope="module", params=SHARES)
def case(request: pytest.FixtureRequest) -> Case:
    lists = random_log(7, 60, SHARES[request.param])
    rows = rows_of(lists)
    relevant = Counter(row["group"] for row in rows if row["relevance"])
    items = [{"item_id": row["item_id"], "group": row["group"]} for row in rows]
    # Relevance belongs to the items: what a group has of it stays when the order changes.
    found = []
    for pull in (0.0, 0.35, 0.7):
        moved = rows_of(biased(lists, pull, 3))
        left = relevant.copy()
        for row in moved:
            row["relevance"] = int(left[row["group"]] > 0)
            left[row["group"]] -= 1
        found.append(floors(moved, LABELS, ORDERS, items=items))
    return Case(
        lists,
        found,
        {group: float(count) for group, count in relevant.items()},
        dict(Counter(row["group"] for row in items)),
        Shuffled(lists, list(SHARES[request.param]), ORDERS, 1, K),
    )


def test_against_permutations(case: Case) -> None:
    """Mean, 95% point and p-values; what is beyond 4 standard errors is the normal law's part.

    In standard deviations of the score: with 60 lists, and a group of 17 rows, the sums of a group
    are not quite normal.  Skews count whole rows, and so few of them that it shows.
    """
    checked = 0
    for measure, aggregation, row in scores_of(case.found[0]):
        draws = case.draws(measure, aggregation)
        assert np.isfinite(draws).mean() > 0.999, measure
        draws = draws[np.isfinite(draws)]
        few = measure.startswith("Skew")
        sd, name = draws.std(), f"{measure}.{aggregation}"
        # Both sides are simulated: hence 2.  The density at the 95% point is about 0.1 / sd.
        error = 4 * math.sqrt(2 / ORDERS)
        assert abs(row["expected"] - draws.mean()) < (error + 0.03) * sd, name
        checked += 1
        if aggregation == "LTwo":
            assert row["noise_limit"] is None
            assert row["p_noise"] is None
            continue
        low = aggregation in ("MinMaxRatio", "MinSkew")
        limit = np.quantile(draws, 0.05 if low else 0.95)
        wide = error * math.sqrt(0.05 * 0.95) / 0.1
        normal = 0.25 if few else 0.15
        assert abs(row["noise_limit"] - limit) < (wide + normal) * sd, name
        for found in case.found:
            other = found.score(name if aggregation else measure)
            # An order changes the value alone.
            assert other["expected"] == row["expected"], name
            assert other["noise_limit"] == row["noise_limit"], name
            value = other["value"] + (1e-9 if low else -1e-9)
            p = float(((draws <= value) if low else (draws >= value)).mean())
            allowed = error * math.sqrt(max(p * (1 - p), 1e-4)) + (0.12 if few else 0.03)
            assert abs(other["p_noise"] - p) < allowed, f"{name}: {other['p_noise']}, not {p}"
    assert checked == 7 * (len(LABELS) - 2) + 1 + 2


SOME = ["EXP", "ERBE", "ARP", "NDKL"]


def test_seeds() -> None:
    rows = rows_of(random_log(3, 40, {"a": 0.5, "b": 0.3, "c": 0.2}))
    said = {"resamples": 0, "noise_draws": 2_000}
    one, again, other = (floors(rows, SOME, evidence={**said, "seed": seed}) for seed in (1, 1, 2))
    assert same(one) == same(again)
    for label in ("EXP.MinMaxRatio", "ARP.MaxMinDiff", "NDKL"):
        first, second = one.score(label), other.score(label)
        assert first["noise_limit"] != second["noise_limit"]
        assert first["p_noise"] == pytest.approx(second["p_noise"], abs=0.06)


def test_names_of_groups() -> None:
    lists = random_log(3, 60, {"a": 0.5, "b": 0.3, "c": 0.2})
    renamed = [tuple({"a": "z", "b": "y", "c": "x"}[one] for one in each) for each in lists]
    one, other = (floors(rows_of(each), SOME, ORDERS) for each in (lists, renamed))
    for measure, aggregation, row in scores_of(one):
        label = f"{measure}.{aggregation}" if aggregation else measure
        second = other.score(label)
        spread = abs((row["noise_limit"] or row["expected"]) - row["expected"]) + 0.01
        assert second["expected"] == pytest.approx(row["expected"], abs=0.05 * spread), label
        if row["p_noise"] is not None:
            assert second["p_noise"] == pytest.approx(row["p_noise"], abs=0.03), label


def test_doubling_every_list_shrinks_noise() -> None:
    # Of one length, so that chance gives all groups the same.
    lists = [each[:6] for each in random_log(3, 90, {"a": 0.5, "b": 0.3, "c": 0.2}) if each[5:]]
    one, two = (floors(rows_of(each), SOME) for each in (lists, lists + lists))
    for label in ("EXP.MaxMinDiff", "EXP.MaxAbsDiff", "ARP.MeanAbsDev"):
        first, second = one.score(label), two.score(label)
        assert second["expected"] == pytest.approx(first["expected"] / math.sqrt(2), rel=1e-6)
        assert second["noise_limit"] == pytest.approx(first["noise_limit"] / math.sqrt(2), rel=1e-6)
    variance = [found.score("EXP.Variance")["expected"] for found in (one, two)]
    assert variance[1] == pytest.approx(variance[0] / 2, rel=1e-6)
    # NDKL of a list is not noise around 0: its mean stays.
    means = [found.score("NDKL")["expected"] for found in (one, two)]
    assert means[1] == pytest.approx(means[0], rel=1e-12)


def test_unequal_groups_have_unequal_shares_by_chance() -> None:
    lists = random_log(3, 300, {"a": 0.8, "b": 0.2})
    found = floors(rows_of(lists), ["ERBE", "ERBP"])
    rows = Counter(group for each in lists for group in each)
    assert found.score("ERBE(decay=0.75).MinMaxRatio")["expected"] == pytest.approx(
        rows["b"] / rows["a"], abs=0.05
    )
    assert found.score("ERBP(decay=0.75).MinMaxRatio")["expected"] > 0.85


@pytest.mark.parametrize(("share", "known"), [(0.1, True), (0.03, False)])
def test_a_ratio_by_what_is_sometimes_nothing(share: float, known: bool) -> None:
    # The small group may be on top of no list at all; then its ratio is infinite.
    lists = [each for each in random_log(5, 60, {"a": 1 - share, "b": share}) if each[3:]]
    lists[0] = tuple("b" + "a" * 4)
    row = floors(rows_of(lists), ["EXP@1"]).score("EXP@1.MaxMinRatio")
    assert row["value"] is not None
    assert (row["p_noise"] is not None) == known
    if known:
        assert row["noise_limit"] > row["expected"] > 1


def test_p_values_are_uniform_in_a_fair_world_alone() -> None:
    """300 fair logs, and 20 biased ones, each a slice of one batch."""
    rows = []
    for world in range(320):
        lists = random_log(world, 40, {"a": 0.2, "b": 0.3, "c": 0.5}, 8)
        if world >= 300:
            lists = biased(lists, 3.0, world)
        for row in rows_of(lists, world=f"{world:03}"):
            row["list_id"] = f"{world} {row['list_id']}"
            row["item_id"] = f"{world} {row['item_id']}"
            rows.append(row)
    found = floors(rows, ["EXP", "ARP", "NDKL"], slices=["world"])
    for label in ("EXP.MinMaxRatio", "ARP.MaxMinDiff", "NDKL"):
        p = [found.scores["world", f"{at:03}", "group", label]["p_noise"] for at in range(320)]
        assert stats.kstest(p[:300], "uniform").pvalue > 0.01, label
        assert max(p[300:]) < 0.01, label
