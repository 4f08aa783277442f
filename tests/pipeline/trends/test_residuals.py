"""Residuals of series: hand values, plain loops, and laws."""

from math import atan, pi, sqrt
from typing import Any

import numpy as np
import pytest
import slow_trends
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pipeline.trends import FURTHEST, Residuals, standardised

WIDE: dict[str, Any] = {"window": 56, "least": 2, "weeks": 4}


def of(*values: float, **changed: Any) -> Residuals:
    """One series in which every batch may serve as baseline."""
    column = np.array(values)[:, None]
    return standardised(column, np.ones(column.shape, dtype=bool), None, **WIDE | changed)


# -- by hand


def test_two_nights_make_a_cauchy_law() -> None:
    found = of(1.0, 3.0, 5.0)
    assert found.center[2, 0] == pytest.approx(2, abs=1e-9)
    assert found.spread[2, 0] == pytest.approx(sqrt(2) * sqrt(1 + 1 / 2), abs=1e-9)
    u = 3 / sqrt(3)
    assert found.residual[2, 0] == pytest.approx(stats.norm.isf(atan(1 / u) / pi), abs=1e-9)
    assert (found.freedom[2, 0], found.baseline[2, 0]) == (1, 2)


@pytest.mark.parametrize("u", [0.5, 5.0, 50.0, 5000.0, 5e6])
@pytest.mark.parametrize("side", [-1, 1])
def test_both_tails_keep_their_digits(u: float, side: int) -> None:
    # Three nights at -1, 0, 1: s = 1, and with two degrees of freedom P(T > u) has a closed form.
    found = of(-1.0, 0.0, 1.0, side * u * sqrt(1 + 1 / 3))
    root = sqrt(2 + u * u)
    assert found.residual[3, 0] == pytest.approx(
        side * stats.norm.isf(1 / (root * (root + u))), abs=1e-9
    )


def test_weekday_means_with_pooled_variance() -> None:
    days = np.tile(np.arange(7), 3)[:15]
    values = np.where(np.arange(15) < 7, -1.0, 1.0) + 10.0 * days
    values[14] = 4.0
    found = standardised(
        values[:, None], np.ones((15, 1), dtype=bool), days, window=56, least=4, weeks=2
    )
    # Each weekday stands at -1 and 1 around its mean: 14 squares of 1, and 14 - 7 freedoms.
    assert found.weekday[14, 0]
    assert found.center[14, 0] == pytest.approx(0, abs=1e-9)
    assert found.spread[14, 0] == pytest.approx(sqrt(14 / 7) * sqrt(1 + 1 / 2), abs=1e-9)
    assert found.residual[14, 0] == pytest.approx(
        stats.norm.isf(stats.t.sf(4 / sqrt(3), 7)), abs=1e-9
    )


def test_fewer_weeks_and_keys_without_a_date_compare_all_days() -> None:
    days = np.tile(np.arange(7), 3)
    days[20] = -1
    values = np.sin(np.arange(21.0))[:, None]
    eligible = np.ones((21, 1), dtype=bool)
    found = standardised(values, eligible, days, window=56, least=4, weeks=2)
    assert found.weekday[14:20].all()
    assert not found.weekday[:14].any()
    assert not found.weekday[20, 0]
    assert found.center[20, 0] == pytest.approx(values[:20].mean(), abs=1e-12)


# -- scores that do not move


@pytest.mark.parametrize("level", [0.0, 0.1, 0.85, 7.4, 1e6])
def test_a_constant_stays_at_0_and_its_last_bits_are_no_news(level: float) -> None:
    constant = [level] * 20
    assert of(*constant, level).residual[-1, 0] == pytest.approx(0, abs=1e-5)
    assert abs(of(*constant, np.nextafter(level, np.inf)).residual[-1, 0]) < 1e-5
    wobbling = [level + (-1) ** night * 1e-13 * level for night in range(20)]
    assert abs(of(*wobbling, level * (1 + 1e-12)).residual[-1, 0]) < 0.01


@pytest.mark.parametrize("side", [-1, 1])
def test_another_value_than_a_constant_is_as_far_out_as_can_be(side: int) -> None:
    found = of(*[0.85] * 20, 0.85 + side * 0.01)
    assert found.distance[-1, 0] == side * FURTHEST
    assert side * found.residual[-1, 0] > 8


def test_no_value_and_no_baseline_are_nan() -> None:
    found = of(1.0, 2.0, np.nan, 3.0, least=3)
    assert np.isnan(found.residual[:, 0]).all()
    assert np.isnan(found.center[:, 0]).all()
    assert found.baseline[:, 0].tolist() == [0, 1, 2, 2]
    assert of(1.0, 2.0, np.nan).center[2, 0] == pytest.approx(1.5)


def test_an_infinite_value_is_as_far_out_as_can_be_and_in_no_baseline() -> None:
    found = of(1.0, 2.0, 1.0, np.inf, -np.inf, 2.0)
    assert found.distance[3:5, 0].tolist() == [FURTHEST, -FURTHEST]
    assert found.residual[3, 0] == -found.residual[4, 0] > 8
    assert found.residual[5, 0] == of(1.0, 2.0, 1.0, 2.0).residual[3, 0]


# -- against plain loops


@examples(100, few=20)
@given(st.integers(0, 10_000), st.booleans(), st.integers(8, 30), st.integers(0, 8))
def test_agrees_with_plain_loops(seed: int, dated: bool, window: int, hold: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(0.8, 0.05, (40, 2))
    values[rng.random(values.shape) < 0.1] = np.nan
    values[rng.random(values.shape) < 0.03] += 1.0
    eligible = rng.random(values.shape) < 0.9
    days = (np.arange(40) + seed) % 7
    days[rng.random(40) < 0.05] = -1
    limits: dict[str, Any] = {"window": window, "least": 6, "weeks": 2, "hold": hold}
    found = standardised(values, eligible, days if dated else None, **limits)
    said = zip(
        found.center, found.spread, found.baseline, found.weekday, found.residual, strict=True
    )
    for at, row in enumerate(said):
        for series in range(2):
            mine = [part[series] for part in row]
            slow = slow_trends.residual(
                values[:, series].tolist(),
                eligible[:, series].tolist(),
                days.tolist() if dated else None,
                at,
                **limits,
            )
            assert mine == pytest.approx(slow, abs=1e-8, nan_ok=True)


# -- laws


def random_walks(seed: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    values = rng.normal(0.8, 0.05, (70, 5)) + rng.normal(0, 0.01, (70, 5)).cumsum(axis=0)
    values[rng.random(values.shape) < 0.05] = np.nan
    return values, rng.random(values.shape) < 0.95, np.arange(70) % 7


def test_units_and_origin_do_not_matter() -> None:
    values, eligible, days = random_walks()
    before = standardised(values, eligible, days, **WIDE).residual
    after = standardised(40.0 * values - 3.0, eligible, days, **WIDE).residual
    np.testing.assert_allclose(after, before, atol=1e-8)


def test_mirrored_values_have_mirrored_residuals_to_the_bit() -> None:
    values, eligible, days = random_walks()
    before = standardised(values, eligible, days, **WIDE).residual
    np.testing.assert_array_equal(standardised(-values, eligible, days, **WIDE).residual, -before)


def test_other_series_and_later_batches_do_not_move_a_bit() -> None:
    values, eligible, days = random_walks()
    whole = standardised(values, eligible, days, **WIDE).residual
    for series in range(5):
        one = slice(series, series + 1)
        alone = standardised(values[:, one], eligible[:, one], days, **WIDE).residual
        np.testing.assert_array_equal(alone, whole[:, one])
    early = standardised(values[:50], eligible[:50], days[:50], **WIDE).residual
    np.testing.assert_array_equal(early, whole[:50])
    last = standardised(values, eligible, days, tested=9, **WIDE).residual
    np.testing.assert_array_equal(last, whole[-9:])


def test_what_may_not_serve_might_as_well_not_be_there() -> None:
    values, eligible, days = random_walks()
    blanked = np.where(eligible, values, np.nan)
    before = standardised(values, eligible, days, **WIDE)
    after = standardised(blanked, np.ones_like(eligible), days, **WIDE)
    np.testing.assert_array_equal(after.center, before.center)
    np.testing.assert_array_equal(after.residual[eligible], before.residual[eligible])


@pytest.mark.parametrize("days", [None, np.arange(200) % 7], ids=["all days", "by weekday"])
def test_residuals_of_normal_values_are_standard_normal(days: np.ndarray | None) -> None:
    values = np.random.default_rng(11).normal(3, 2, (200, 400))
    eligible = np.ones(values.shape, dtype=bool)
    z = standardised(values, eligible, days, window=56, least=14, weeks=4).residual[56:]
    assert stats.kstest(z[::8].ravel(), "norm").pvalue > 0.01
    for tail in (0.01, 0.001):
        expected = tail * z.size
        assert (z > stats.norm.isf(tail)).sum() == pytest.approx(expected, abs=5 * sqrt(expected))
    neighbours = (z[1:] * z[:-1]).mean()
    assert abs(neighbours) < 5 / sqrt(z.size) + (0 if days is None else 0.01)
