"""Charts and their laws: hand values, plain loops, importance sampling."""

from math import exp, sqrt

import numpy as np
import pytest
import slow_trends
from hypothesis import given
from hypothesis import strategies as st

from pipeline.trends import CAP, charts, cusum_tail, p_values
from pipeline.trends.run_lengths import solved

NAN = float("nan")


def test_charts_by_hand() -> None:
    z = np.array([[1.0], [-2.0], [2.0], [1.0]])
    found = charts(z, np.ones(z.shape, dtype=bool), smoothing=0.5, drift=0.5, window=10)
    ewma = [0.5, 0.25 - 1, (0.25 - 1) / 2 + 1, ((0.25 - 1) / 2 + 1) / 2 + 0.5]
    weights = [1 / 2, 1 / 4, 1 / 8, 1 / 16]
    spread = [sqrt(sum(weight**2 for weight in weights[: n + 1])) for n in range(4)]
    expected = [mean / deviation for mean, deviation in zip(ewma, spread, strict=True)]
    np.testing.assert_allclose(found.ewma[:, 0], expected, atol=1e-12)
    np.testing.assert_allclose(found.cusum[:, 0], [0.5, 0, 1.5, 2], atol=1e-12)
    assert found.since[:, 0].tolist() == [0, 1, 2, 2]


def test_rows_without_residual_and_those_that_may_not_serve_are_passed_over() -> None:
    z = np.array([1.0, NAN, 7.0, 2.0])[:, None]
    eligible = np.array([True, True, False, True])[:, None]
    found = charts(z, eligible, smoothing=0.5, drift=0.5, window=10)
    short = charts(
        np.array([[1.0], [2.0]]), np.ones((2, 1), dtype=bool), smoothing=0.5, drift=0.5, window=10
    )
    assert found.ewma[3, 0] == short.ewma[1, 0]
    assert found.cusum[3, 0] == short.cusum[1, 0] == 2.0
    assert np.isnan(found.cusum[1, 0])
    assert found.since[:, 0].tolist() == [0, -1, 0, 0]
    # Tested itself, the night of 7 counts, up to the cap.
    assert found.cusum[2, 0] == 0.5 + CAP - 0.5


@given(st.integers(0, 10_000), st.integers(1, 12))
def test_charts_agree_with_plain_loops(seed: int, window: int) -> None:
    rng = np.random.default_rng(seed)
    z = rng.normal(0.3, 2, (20, 3))
    repeats = rng.uniform(0, 0.9, z.shape)
    z[rng.random(z.shape) < 0.15] = np.nan
    eligible = rng.random(z.shape) < 0.85
    found = charts(z, eligible, smoothing=0.3, drift=0.4, window=window, autocorrelation=repeats)
    for at in range(len(z)):
        for series in range(3):
            mine = (found.ewma[at, series], found.cusum[at, series], found.since[at, series])
            if np.isnan(z[at, series]):
                assert mine == pytest.approx((NAN, NAN, -1), nan_ok=True)
                continue
            slow = slow_trends.charted(
                z[: at + 1, series].tolist(),
                eligible[: at + 1, series].tolist(),
                smoothing=0.3,
                drift=0.4,
                window=window,
                repeats=float(repeats[at, series]),
            )
            assert mine == pytest.approx(slow, abs=1e-12)


# -- the CUSUM in the long run


@pytest.mark.parametrize(("k", "value"), [(0.5, 1), (0.5, 4), (0.5, 22), (0.25, 40), (1, 11)])
def test_cusum_tail_agrees_with_importance_sampling(k: float, value: float) -> None:
    tail, error = slow_trends.walk_tail(k, value, walks=20_000, seed=3)
    found = float(cusum_tail(np.array([value]), k)[0])
    assert found == pytest.approx(tail, abs=5 * error)
    assert error < 0.01 * tail


def test_cusum_tail_falls_by_exp_2k() -> None:
    for k in (0.1, 0.5, 1.0):
        near, far = cusum_tail(np.array([30.0, 33.0]), k)
        assert far / near == pytest.approx(exp(-6 * k), rel=1e-9)
        inside = cusum_tail(np.array([10.0, 13.0]), k)
        assert inside[1] / inside[0] == pytest.approx(exp(-6 * k), rel=1e-3)


@pytest.mark.parametrize("k", [1e-4, 0.05, 0.5, 3.0, 40.0])
def test_cusum_tail_is_a_tail_for_any_slack(k: float) -> None:
    tail = cusum_tail(np.linspace(0, 60, 500), k)
    assert tail[0] == 1
    assert (np.diff(tail) <= 0).all()
    assert (tail >= 0).all()
    assert np.isnan(cusum_tail(np.array([NAN]), k)).all()


def test_p_values_of_quiet_charts_are_uniform_in_the_tails() -> None:
    z = np.random.default_rng(2).normal(size=(120, 4000))
    found = charts(z, np.ones(z.shape, dtype=bool), smoothing=0.2, drift=0.5, window=112, tested=1)
    p = p_values(z[-1:], found.ewma, found.cusum, 0.5)[:, 0]
    for chart in p:
        for level in (0.1, 0.01):
            share = (chart <= level).mean()
            assert share == pytest.approx(level, abs=5 * sqrt(level / 4000))


def test_elimination_solves() -> None:
    moves = np.random.default_rng(1).random((30, 30)) / 31
    right = np.random.default_rng(2).random(30)
    matrix = np.eye(30) - moves
    np.testing.assert_allclose(matrix @ solved(matrix, right), right, atol=1e-12)
