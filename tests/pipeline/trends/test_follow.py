"""Following series: one night and many agree to the bit, whatever stands beside or after them."""

from dataclasses import fields, replace
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from pipeline.settings.sections import Trends
from pipeline.trends import CHARTS, Followed, Side, cusum_tail, follow, follow_all, reach

SMALL = Trends(window=16, least=5, weekday_weeks=2)
SIDES = [field.name for field in fields(Side)]
NAMES = [field.name for field in fields(Followed) if field.name not in ("worse", "better")]


def series(seed: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = rng.normal(0.8, 0.02, (60, 6))
    values[30:, 2] -= 0.05
    values[rng.random(values.shape) < 0.08] = np.nan
    days = np.arange(60) % 7
    days[41] = -1
    return values, rng.random(values.shape) < 0.92, days, np.array([1, -1, -1, 1, 1, -1])


def parts(found: Followed) -> dict[str, np.ndarray]:
    """Every array of what is known, by name."""
    sides = {"worse": found.worse, "better": found.better}
    return {name: getattr(found, name) for name in NAMES} | {
        f"{name}.{part}": getattr(side, part) for name, side in sides.items() for part in SIDES
    }


def same(mine: Followed, other: Followed) -> None:
    arrays = parts(other)
    for name, array in parts(mine).items():
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)


def picked(found: Followed, *at: object) -> Followed:
    return Followed(
        *(getattr(found, name)[tuple(at)] for name in NAMES),
        *(
            Side(*(getattr(side, part)[tuple(at)] for part in SIDES))
            for side in (found.worse, found.better)
        ),
    )


@pytest.mark.parametrize("dated", [True, False])
def test_every_night_is_what_that_night_said(dated: bool) -> None:
    values, eligible, days, unfair = series()
    whole = follow_all(values, eligible, days if dated else None, unfair, SMALL)
    assert whole.weekday.any() == dated
    for night in range(len(values)):
        until = slice(0, night + 1)
        tonight = follow(
            values[until], eligible[until], days[until] if dated else None, unfair, SMALL
        )
        same(tonight, picked(whole, night))


def test_older_than_its_reach_does_not_count() -> None:
    values, eligible, days, unfair = series()
    older = values.copy()
    older[: 59 - reach(SMALL)] = 1e6
    before = follow(values, eligible, days, unfair, SMALL)
    same(follow(older, eligible, days, unfair, SMALL), before)
    cut = slice(59 - reach(SMALL), None)
    after = follow(values[cut], eligible[cut], days[cut], unfair, SMALL)
    shifted = [
        replace(side, since=np.where(side.since < 0, -1, side.since - cut.start))
        for side in (before.worse, before.better)
    ]
    same(after, replace(before, worse=shifted[0], better=shifted[1]))


def test_order_of_series_and_mirrors_do_not_matter() -> None:
    values, eligible, days, unfair = series()
    found = follow(values, eligible, days, unfair, SMALL)
    order = np.array([3, 0, 5, 2, 1, 4])
    turned = follow(values[:, order], eligible[:, order], days, unfair[order], SMALL)
    same(turned, picked(found, order))
    mirrored = follow(-values, eligible, days, -unfair, SMALL)
    sides = [replace(side, sign=-side.sign) for side in (found.worse, found.better)]
    same(mirrored, replace(found, center=-found.center, worse=sides[0], better=sides[1]))


def test_tonight_by_hand() -> None:
    values = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 8.0])[:, None]
    settings = Trends(window=8, least=8)
    assert settings.hold == 2
    found = follow(values, np.ones(values.shape, dtype=bool), None, np.array([1]), settings)
    squares = 3 * (1 - 15 / 8) ** 2 + 3 * (2 - 15 / 8) ** 2 + 2 * (3 - 15 / 8) ** 2
    spread = sqrt(squares / 7) * sqrt(1 + 1 / 8)
    z = stats.norm.isf(stats.t.sf((8 - 15 / 8) / spread, 7))
    assert found.center[0] == pytest.approx(15 / 8, abs=1e-9)
    assert found.spread[0] == pytest.approx(spread, abs=1e-9)
    side = found.worse
    assert side.distance[0] == pytest.approx((8 - 15 / 8) / spread, abs=1e-9)
    assert side.deviate[0] == side.ewma[0] == pytest.approx(z, abs=1e-9)
    # Before it has any residual, a series is taken for one that repeats a fifth of each batch.
    cusum = z / sqrt(1.2 / 0.8) - 0.5
    assert side.cusum[0] == pytest.approx(cusum, abs=1e-9)
    smallest = min(stats.norm.sf(z), float(cusum_tail(np.array([cusum]), 0.5)[0]))
    assert side.p_value[0] == pytest.approx(3 * smallest, rel=1e-9)
    assert side.chart[0] == "shewhart"
    assert side.since[0] == 8


def test_towards_the_fair_side_is_no_news() -> None:
    values = np.append(np.sin(np.arange(30.0)), 50.0)[:, None]
    eligible = np.ones(values.shape, dtype=bool)
    up, down = (follow(values, eligible, None, np.array([side]), Trends()) for side in (1, -1))
    assert up.worse.p_value[0] < 1e-12
    assert down.worse.p_value[0] == 1
    assert up.worse.distance[0] == -down.worse.distance[0] > 50
    assert down.better.p_value[0] == up.worse.p_value[0]


def test_a_lasting_shift_says_when_it_began_and_a_spike_is_of_tonight() -> None:
    rng = np.random.default_rng(4)
    values = rng.normal(0.8, 0.02, (70, 200))
    values[60:] -= 0.03
    eligible, unfair = np.ones(values.shape, dtype=bool), np.full(200, -1)
    found = follow(values, eligible, None, unfair, Trends())
    lasting = found.worse.chart != "shewhart"
    assert lasting.mean() > 0.9
    assert 58 <= np.median(found.worse.since[lasting]) <= 61
    spike = values.copy()
    spike[60:] += 0.03
    spike[69] -= 0.2
    assert (follow(spike, eligible, None, unfair, Trends()).worse.since == 69).all()


def test_nothing_to_say_without_a_value_or_a_baseline() -> None:
    values, eligible, days, unfair = series()
    values[-1, 0] = np.nan
    eligible[:, 1] = False
    found = follow(values, eligible, days, unfair, SMALL)
    assert np.isfinite(found.center[0])
    assert np.isnan(found.center[1])
    for at in (0, 1):
        for side in (found.worse, found.better):
            said = (side.distance[at], side.ewma[at], side.cusum[at], side.p_value[at])
            assert np.isnan(said).all()
            assert (side.chart[at], side.since[at]) == ("", -1)
    assert set(found.worse.chart[2:]) <= set(CHARTS)


def test_a_first_night_has_no_baseline() -> None:
    one = np.array([[0.8, 0.9]])
    found = follow(one, np.ones(one.shape, dtype=bool), np.array([3]), np.array([1, -1]), Trends())
    assert np.isnan(found.worse.p_value).all()
    assert (found.baseline == 0).all()


def test_a_batch_that_may_not_serve_is_tested_and_then_forgotten() -> None:
    values, _, days, unfair = series()
    eligible = np.ones(values.shape, dtype=bool)
    eligible[50] = False
    wild = values.copy()
    wild[50] += 9.0
    mild, found = (follow_all(each, eligible, days, unfair, SMALL) for each in (values, wild))
    tested = ~np.isnan(values[50])
    assert (np.abs(found.worse.distance[50][tested]) > 50).all()
    later = parts(mild)
    for name, array in parts(found).items():
        # Only that the night before was far out is remembered.
        after = 52 if name == "outlier" else 51
        np.testing.assert_array_equal(array[after:], later[name][after:], err_msg=name)


@pytest.mark.parametrize("dated", [True, False])
def test_p_values_of_quiet_series_are_no_smaller_than_they_say(dated: bool) -> None:
    values = np.random.default_rng(21).normal(size=(112, 6000))
    eligible, unfair = np.ones(values.shape, dtype=bool), np.ones(6000, dtype=np.int64)
    found = follow(values, eligible, np.arange(112) % 7 if dated else None, unfair, Trends())
    for level in (0.1, 0.01, 0.002):
        share = (found.worse.p_value <= level).mean()
        assert share <= level + 4 * sqrt(level / 6000)
        assert share >= 0.4 * level - 4 * sqrt(level / 6000)
