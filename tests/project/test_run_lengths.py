"""Run lengths that simulated charts are held against: the published ones."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# Two-sided CUSUM, k = 1/2: Lucas & Crosier 1982, as in the table of Montgomery's textbook.
CUSUM = {
    4.0: [168, 74.2, 26.6, 13.3, 8.38, 4.75, 3.34, 2.62, 2.19],
    5.0: [465, 139, 38.0, 17.0, 10.4, 5.75, 4.01, 3.11, 2.57],
}
CUSUM_SHIFTS = [0, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3]
# Two-sided EWMA: Lucas & Saccucci 1990.
EWMA = {
    (0.40, 3.054): [500, 224, 71.2, 28.4, 14.3, 5.9, 3.5, 2.5, 2.0],
    (0.25, 2.998): [500, 170, 48.2, 20.1, 11.1, 5.5, 3.6, 2.7, 2.3],
    (0.20, 2.962): [500, 150, 41.8, 18.2, 10.5, 5.5, 3.7, 2.9, 2.4],
    (0.10, 2.814): [500, 106, 31.3, 15.9, 10.3, 6.1, 4.4, 3.4, 2.9],
    (0.05, 2.615): [500, 84.1, 28.8, 16.4, 11.4, 7.1, 5.2, 4.2, 3.5],
}


@pytest.fixture
def lengths(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of the benchmarks."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return import_module("run_lengths")


@pytest.mark.parametrize("h", CUSUM)
def test_cusum_run_lengths_are_the_published_ones(lengths: ModuleType, h: float) -> None:
    found = [lengths.cusum_arl(0.5, h, shift, two_sided=True) for shift in CUSUM_SHIFTS]
    np.testing.assert_allclose(found, CUSUM[h], rtol=0.005)


@pytest.mark.parametrize(("smoothing", "limit"), EWMA)
def test_ewma_run_lengths_are_the_published_ones(
    lengths: ModuleType, smoothing: float, limit: float
) -> None:
    found = [lengths.ewma_arl(smoothing, limit, shift) for shift in CUSUM_SHIFTS]
    np.testing.assert_allclose(found, EWMA[smoothing, limit], rtol=0.006, atol=0.06)


def test_one_side_alarms_half_as_often(lengths: ModuleType) -> None:
    assert lengths.cusum_arl(0.5, 5.0) == pytest.approx(
        2 * lengths.cusum_arl(0.5, 5.0, two_sided=True)
    )


def test_without_memory_every_chart_is_shewharts(lengths: ModuleType) -> None:
    assert lengths.ewma_arl(1.0, 3.0) == pytest.approx(1 / (2 * stats.norm.sf(3)), rel=1e-9)
