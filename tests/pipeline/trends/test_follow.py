"""Following series: one night and many agree to the bit, whatever stands beside or after them."""

from dataclasses import fields, replace
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from pipeline.settings.sections import Trends
from pipeline.trends import CAP, CHARTS, Followed, cusum_tail, follow, follow_all

SMALL = Trends(window=16, least=5, weekday_weeks=2)
NAMES = [field.name for field in fields(Followed)]


def series(seed: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = rng.normal(0.8, 0.02, (60, 6))
    values[30:, 2] -= 0.05
    values[rng.random(values.shape) < 0.08] = np.nan
    days = np.arange(60) % 7
    days[41] = -1
    return values, rng.random(values.shape) < 0.92, days, np.array([1, -1, -1, 1, 1, -1])


def same(mine: Followed, other: Followed, *skipped: str) -> None:
    for name in NAMES:
        if name not in skipped:
            np.testing.assert_array_equal(getattr(mine, name), getattr(other, name), err_msg=name)


def picked(found: Followed, *at: object) -> Followed:
    return Followed(*(getattr(found, name)[tuple(at)] for name in NAMES))


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


def test_older_than_two_windows_does_not_count() -> None:
    values, eligible, days, unfair = series()
    older = values.copy()
    older[: 60 - 2 * SMALL.window] = 1e6
    before = follow(values, eligible, days, unfair, SMALL)
    same(follow(older, eligible, days, unfair, SMALL), before)
    cut = slice(60 - 2 * SMALL.window, None)
    after = follow(values[cut], eligible[cut], days[cut], unfair, SMALL)
    shifted = np.where(before.since < 0, -1, before.since - cut.start)
    same(after, replace(before, since=shifted))


def test_order_of_series_and_mirrors_do_not_matter() -> None:
    values, eligible, days, unfair = series()
    found = follow(values, eligible, days, unfair, SMALL)
    order = np.array([3, 0, 5, 2, 1, 4])
    turned = follow(values[:, order], eligible[:, order], days, unfair[order], SMALL)
    same(turned, picked(found, order))
    mirrored = follow(-values, eligible, days, -unfair, SMALL)
    same(mirrored, replace(found, center=-found.center))


def test_tonight_by_hand() -> None:
    values = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 8.0])[:, None]
    settings = Trends(window=8, least=8)
    found = follow(values, np.ones(values.shape, dtype=bool), None, np.array([1]), settings)
    squares = 3 * (1 - 15 / 8) ** 2 + 3 * (2 - 15 / 8) ** 2 + 2 * (3 - 15 / 8) ** 2
    spread = sqrt(squares / 7) * sqrt(1 + 1 / 8)
    z = stats.norm.isf(stats.t.sf((8 - 15 / 8) / spread, 7))
    assert found.center[0] == pytest.approx(15 / 8, abs=1e-9)
    assert found.spread[0] == pytest.approx(spread, abs=1e-9)
    assert found.residual[0] == found.ewma[0] == pytest.approx(z, abs=1e-9)
    assert found.cusum[0] == pytest.approx(z - 0.5, abs=1e-9)
    smallest = min(stats.norm.sf(z), float(cusum_tail(np.array([z - 0.5]), 0.5)[0]))
    assert found.p_value[0] == pytest.approx(3 * smallest, rel=1e-9)
    assert found.chart[0] == "shewhart"
    assert found.since[0] == 8


def test_towards_the_fair_side_is_no_news() -> None:
    values = np.append(np.sin(np.arange(30.0)), 50.0)[:, None]
    eligible = np.ones(values.shape, dtype=bool)
    up, down = (follow(values, eligible, None, np.array([side]), Trends()) for side in (1, -1))
    assert up.p_value[0] < 1e-12
    assert down.p_value[0] == 1
    assert up.residual[0] == -down.residual[0] == CAP


def test_a_lasting_shift_says_when_it_began_and_a_spike_is_of_tonight() -> None:
    rng = np.random.default_rng(4)
    values = rng.normal(0.8, 0.02, (70, 200))
    values[60:] -= 0.03
    eligible, unfair = np.ones(values.shape, dtype=bool), np.full(200, -1)
    found = follow(values, eligible, None, unfair, Trends())
    lasting = found.chart != "shewhart"
    assert lasting.mean() > 0.9
    assert 58 <= np.median(found.since[lasting]) <= 61
    spike = values.copy()
    spike[60:] += 0.03
    spike[69] -= 0.2
    assert (follow(spike, eligible, None, unfair, Trends()).since == 69).all()


def test_nothing_to_say_without_a_value_or_a_baseline() -> None:
    values, eligible, days, unfair = series()
    values[-1, 0] = np.nan
    eligible[:, 1] = False
    found = follow(values, eligible, days, unfair, SMALL)
    assert np.isfinite(found.center[0])
    assert np.isnan(found.center[1])
    for at in (0, 1):
        said = (found.residual[at], found.ewma[at], found.cusum[at], found.p_value[at])
        assert np.isnan(said).all()
        assert (found.chart[at], found.since[at]) == ("", -1)
    assert set(found.chart[2:]) <= set(CHARTS)


def test_a_first_night_has_no_baseline() -> None:
    one = np.array([[0.8, 0.9]])
    found = follow(one, np.ones(one.shape, dtype=bool), np.array([3]), np.array([1, -1]), Trends())
    assert np.isnan(found.p_value).all()
    assert (found.baseline == 0).all()


def test_a_batch_that_may_not_serve_is_tested_and_then_forgotten() -> None:
    values, _, days, unfair = series()
    eligible = np.ones(values.shape, dtype=bool)
    eligible[50] = False
    wild = values.copy()
    wild[50] += 9.0
    mild, found = (follow_all(each, eligible, days, unfair, SMALL) for each in (values, wild))
    tested = ~np.isnan(values[50])
    assert (np.abs(found.residual[50][tested]) == CAP).all()
    for name in NAMES:
        np.testing.assert_array_equal(getattr(found, name)[51:], getattr(mild, name)[51:])


@pytest.mark.parametrize("dated", [True, False])
def test_p_values_of_quiet_series_are_no_smaller_than_they_say(dated: bool) -> None:
    values = np.random.default_rng(21).normal(size=(112, 6000))
    eligible, unfair = np.ones(values.shape, dtype=bool), np.ones(6000, dtype=np.int64)
    found = follow(values, eligible, np.arange(112) % 7 if dated else None, unfair, Trends())
    for level in (0.1, 0.01, 0.002):
        share = (found.p_value <= level).mean()
        assert share <= level + 4 * sqrt(level / 6000)
        assert share >= 0.4 * level - 4 * sqrt(level / 6000)
