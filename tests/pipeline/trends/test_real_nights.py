"""Series as real nights make them: outliers, noise that lasts, shifts among them."""

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

from pipeline.settings.sections import Trends
from pipeline.trends import (
    CAP,
    autocorrelations,
    charts,
    follow,
    follow_all,
    reach,
    standardised,
)

START = reach(Trends())
LOW = np.array([-1])


def autoregressive(repeats: float, rows: int, series: int, seed: int) -> np.ndarray:
    """Normal series of deviation 1, each value of which repeats a share of the last."""
    fresh = np.random.default_rng(seed).normal(size=(rows, series))
    values = fresh.copy()
    for row in range(1, rows):
        values[row] = repeats * values[row - 1] + np.sqrt(1 - repeats**2) * fresh[row]
    return values


def found_by(values: np.ndarray, nights: int) -> np.ndarray:
    """In which of the first ``nights`` after START each series is far down, at p = 0.0005."""
    every, unfair = np.ones(values.shape, dtype=bool), np.full(values.shape[1], -1)
    p = follow_all(values, every, None, unfair, Trends()).worse.p_value
    return (p[START : START + nights] < 0.0005).any(axis=0)


# -- outliers


@pytest.mark.parametrize("before", [2, 8, 30])
@pytest.mark.parametrize("outlier", [-20.0, 20.0])
def test_a_step_of_2_is_found_after_an_outlier_night_of_20(before: int, outlier: float) -> None:
    values = np.random.default_rng(1).normal(size=(START + 12, 300))
    values[START:] -= 2.0
    plain = found_by(values, 12).mean()
    values[START - before] += outlier
    assert plain > 0.9
    assert found_by(values, 12).mean() >= plain - 0.05


@examples(60, few=10)
@given(st.integers(0, 10_000), st.floats(-1e6, 1e6) | st.floats(-20, 20), st.integers(1, 70))
def test_an_outlier_moves_later_limits_by_a_third_at_most(
    seed: int, size: float, before: int
) -> None:
    """By an eighth from 20 standard deviations on, where its size does not matter at all."""
    values = np.random.default_rng(seed).normal(size=(START + 1, 4))
    off = values.copy()
    off[START - before, 0] += size
    limits = {"window": 56, "least": 14, "weeks": 4, "hold": 14, "tested": 1}
    every = np.ones(values.shape, dtype=bool)
    mild, found = (standardised(each, every, None, **limits) for each in (values, off))
    ratio = found.spread[0] / mild.spread[0]
    most = 1 / 8 if abs(size) >= 20 else 1 / 3
    assert 1 - most <= ratio[0] <= 1 + most
    assert abs(found.center[0, 0] - mild.center[0, 0]) <= most * mild.spread[0, 0]
    np.testing.assert_array_equal(found.spread[0, 1:], mild.spread[0, 1:])


def test_one_outlier_raises_neither_ewma_nor_cusum_to_its_limit() -> None:
    z = np.zeros((10, 1))
    z[3] = 1e6
    found = charts(z, np.ones(z.shape, dtype=bool), smoothing=0.2, drift=0.5, window=56)
    assert found.ewma[4:].max() < 3.0
    assert found.cusum[3, 0] == CAP - 0.5


def test_an_outlier_is_told_and_a_run_of_them_is_a_shift() -> None:
    values = np.random.default_rng(2).normal(size=(START + 6, 1))
    values[START:] -= 15.0
    every = np.ones(values.shape, dtype=bool)
    found = follow_all(values, every, None, LOW, Trends())
    assert found.outlier[START : START + 6, 0].tolist() == [True, False, False, False, False, False]
    assert (found.worse.p_value[START:, 0] < 1e-6).all()
    assert found.worse.distance[START, 0] == pytest.approx(15, abs=4)


def test_what_is_frequent_is_no_outlier() -> None:
    """Weekends, before there are enough weeks: two nights of seven that are far lower."""
    values = np.random.default_rng(3).normal(size=(28, 1))
    values[np.arange(28) % 7 >= 5] -= 12.0
    every = np.ones(values.shape, dtype=bool)
    found = standardised(values, every, None, window=56, least=14, weeks=9, tested=1)
    assert found.baseline[0, 0] == 27
    assert abs(found.residual[0, 0]) < 3


def test_residuals_are_not_capped_where_they_are_told() -> None:
    values = np.random.default_rng(4).normal(size=(START + 1, 1))
    for size in (20.0, 50.0, 500.0):
        values[START] = -size
        found = follow(values, np.ones(values.shape, dtype=bool), None, LOW, Trends())
        assert found.worse.distance[0] == pytest.approx(size, rel=0.3)


# -- noise that lasts


@pytest.mark.parametrize("repeats", [0.0, 0.3, 0.5, 0.7])
def test_autocorrelation_is_estimated(repeats: float) -> None:
    z = autoregressive(repeats, 200, 2000, 5)
    every = np.ones(z.shape, dtype=bool)
    found = autocorrelations(z, every, window=56, hold=14, tested=1)
    # Never below 0, and drawn towards a fifth.
    assert found.mean() == pytest.approx(repeats, abs=0.1)
    assert found.std() < 0.15


def test_neither_a_fresh_shift_nor_an_outlier_is_autocorrelation() -> None:
    z = np.random.default_rng(6).normal(size=(200, 500))
    every = np.ones(z.shape, dtype=bool)
    before = autocorrelations(z, every, window=56, hold=14, tested=1)
    shifted, wild = z.copy(), z.copy()
    shifted[-14:] += 5.0
    wild[-30] = 1e6
    after = autocorrelations(shifted, every, window=56, hold=14, tested=1)
    np.testing.assert_array_equal(after, before)
    near = autocorrelations(wild, every, window=56, hold=14, tested=1)
    assert np.abs(near - before).max() < 0.25


def test_without_any_night_a_series_is_taken_for_one_that_repeats_a_fifth() -> None:
    nothing = np.full((3, 2), np.nan)
    found = autocorrelations(nothing, ~np.isnan(nothing), window=56, hold=14, tested=3)
    np.testing.assert_allclose(found, 0.2)


@pytest.mark.parametrize("repeats", [0.0, 0.5])
def test_of_40_series_one_night_in_twenty_has_a_new_false_shift_at_most(repeats: float) -> None:
    """At p = 0.0003, which is where the smallest of 40 becomes news."""
    values = autoregressive(repeats, START + 60, 800, 7)
    every, unfair = np.ones(values.shape, dtype=bool), np.zeros(800, dtype=np.int64)
    p = follow_all(values, every, None, unfair, Trends()).worse.p_value[START - 1 :]
    new = (p[1:] < 0.0003) & (p[:-1] > 0.05)
    assert 40 * new.mean() <= 0.05
