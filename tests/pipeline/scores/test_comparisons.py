"""Intervals of comparisons: by hand, against plain loops, and as laws."""

from itertools import combinations
from math import atanh, log, sqrt, tanh

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, t

from metrics import AGGREGATIONS, METRICS
from metrics.aggregations import Aggregation
from metrics.weights import FloatArray
from pipeline.scores.evidence import comparisons
from pipeline.scores.evidence.comparisons import (
    GroupResamples,
    ends_of,
    few_queries,
    is_compared,
    paired,
    relative,
    simultaneous,
)

WAYS = {way.name: way for way in AGGREGATIONS}
PERCENTILES = {"LTwo", "MinSkew", "MaxSkew"}
"""Aggregations that are no comparison, or can be infinite: they keep percentiles."""


def groups(
    size: int = 3, *, seed: int = 1, resamples: int = 400, queries: float = 1e9
) -> GroupResamples:
    rng = np.random.default_rng(seed)
    value = rng.uniform(1.0, 2.0, size)
    noise = rng.normal(scale=0.05, size=(resamples, size))
    return GroupResamples(value, value + noise, np.full(size, queries))


def test_every_aggregation_with_an_unfair_side_has_its_comparisons() -> None:
    ways = {way for metric in METRICS for way in metric.usual.ways if isinstance(way, Aggregation)}
    assert {way.name for way in ways if not is_compared(way)} == PERCENTILES


def by_loops(made: GroupResamples, compare: str, confidence: float) -> tuple[float, float]:
    """The largest comparison of two groups and its ends, one pair after the other."""

    def of(first: float, second: float) -> float:
        return first - second if compare == "gap" else tanh(log(first / second) / 2)

    pairs = list(combinations(range(len(made.value)), 2))
    drawn = {p: [of(row[p[0]], row[p[1]]) for row in made.resampled] for p in pairs}
    center = {p: sum(drawn[p]) / len(drawn[p]) for p in pairs}
    error = {
        p: sqrt(sum((x - center[p]) ** 2 for x in drawn[p]) / (len(drawn[p]) - 1)) for p in pairs
    }
    furthest = sorted(
        max(abs(drawn[p][at] - center[p]) / error[p] for p in pairs)
        for at in range(len(made.resampled))
    )
    reach = float(np.quantile(furthest, confidence, method="weibull"))
    value = {p: of(made.value[p[0]], made.value[p[1]]) for p in pairs}
    lower = max(max(value[p] - reach * error[p], -value[p] - reach * error[p]) for p in pairs)
    upper = max(max(value[p] + reach * error[p], -value[p] + reach * error[p]) for p in pairs)
    return max(0.0, lower), upper


@pytest.mark.parametrize("size", [2, 3, 6])
def test_against_plain_loops(size: int) -> None:
    made = groups(size)
    assert ends_of(WAYS["MaxMinDiff"], made, 0.9) == pytest.approx(by_loops(made, "gap", 0.9))
    near, far = by_loops(made, "ratio", 0.9)
    lower, upper = ends_of(WAYS["MinMaxRatio"], made, 0.9)
    # half a logarithm is the area tangent
    assert (lower, upper) == pytest.approx(
        (np.exp(-2 * atanh(far)), np.exp(-2 * atanh(near))), rel=1e-8
    )
    high = ends_of(WAYS["MaxMinRatio"], made, 0.9)
    assert high == pytest.approx((1 / upper, 1 / lower), rel=1e-12)


def test_one_comparison_has_the_interval_of_a_normal_number() -> None:
    rng = np.random.default_rng(2)
    drawn = rng.normal(3.0, 0.5, size=(20_000, 1))
    found = simultaneous(np.array([3.0]), drawn, np.array([1e12]), 0.95)
    half = norm.ppf(0.975) * 0.5
    assert (found.lower[0], found.upper[0]) == pytest.approx((3 - half, 3 + half), rel=0.01)


@pytest.mark.parametrize("queries", [2.0, 5.5, 30.0])
def test_few_queries_reach_further(queries: float) -> None:
    wide = float(few_queries(1.96, np.array([queries]))[0])
    level = norm.cdf(-1.96)
    assert wide == pytest.approx(-t.ppf(level, queries - 1) * sqrt(queries / (queries - 1)))
    assert wide > 1.96


def test_two_equal_groups_may_be_equal() -> None:
    rng = np.random.default_rng(3)
    value = np.array([1.0, 1.001])
    made = GroupResamples(value, value + rng.normal(scale=0.1, size=(500, 2)), np.full(2, 99.0))
    fair = {"MinMaxRatio": 1.0, "MaxMinRatio": 1.0, "MaxMinDiff": 0.0, "MaxAbsDiff": 0.0}
    fair |= {"MeanAbsDev": 0.0, "Variance": 0.0}
    for name, best in fair.items():
        assert best in ends_of(WAYS[name], made, 0.95), name


@given(st.integers(2, 6), st.integers(0, 10_000), st.sampled_from(sorted(WAYS)))
def test_the_value_is_inside_and_names_change_nothing(size: int, seed: int, name: str) -> None:
    way = WAYS[name]
    if not is_compared(way):
        return
    made = groups(size, seed=seed, resamples=60)
    lower, upper = ends_of(way, made, 0.9)
    value = float(way.of(made.value))
    assert lower <= value * (1 + 1e-12)
    assert upper >= value * (1 - 1e-12)
    order = np.random.default_rng(seed).permutation(size)
    other = GroupResamples(made.value[order], made.resampled[:, order], made.queries[order])
    assert ends_of(way, other, 0.9) == pytest.approx((lower, upper), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", sorted(set(WAYS) - PERCENTILES))
def test_more_confidence_reaches_further(name: str) -> None:
    made = groups(4)
    narrow, wide = (ends_of(WAYS[name], made, level) for level in (0.8, 0.99))
    assert wide[0] <= narrow[0]
    assert narrow[1] <= wide[1]


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = groups(7)
    whole = {name: ends_of(WAYS[name], made, 0.95) for name in ("MinMaxRatio", "MaxMinDiff")}
    monkeypatch.setattr(comparisons, "_BLOCK", 3 * len(made.resampled))
    assert whole == {name: ends_of(WAYS[name], made, 0.95) for name in whole}


@pytest.mark.parametrize("missing", [20, 21])
def test_resamples_without_a_group(missing: int) -> None:
    """Of 400, at most 20 may lack a group."""
    made = groups(3)
    holes = made.resampled.copy()
    holes[:missing, 1] = np.nan
    lower, upper = ends_of(
        WAYS["MinMaxRatio"], GroupResamples(made.value, holes, made.queries), 0.95
    )
    assert np.isfinite([lower, upper]).all() == (missing == 20)


def test_what_never_moves_is_certain() -> None:
    value = np.array([0.0, 0.5])
    made = GroupResamples(value, np.tile(value, (50, 1)), np.full(2, 40.0))
    assert ends_of(WAYS["MinMaxRatio"], made, 0.95) == (0.0, 0.0)
    assert ends_of(WAYS["MaxMinRatio"], made, 0.95) == (np.inf, np.inf)


def test_noise_that_two_things_share_is_no_difference() -> None:
    rng = np.random.default_rng(4)
    shared, own = rng.normal(scale=1.0, size=(1000, 2)), rng.normal(scale=0.01, size=(1000, 2))
    first, second = np.array([1.0, 2.0]), np.array([0.9, 2.0])
    drawn = (first + shared, second + shared + own)
    found = paired(first, second, drawn, np.full(2, 1e9), 0.95)
    assert found.error == pytest.approx([0.01, 0.01], rel=0.1)
    assert found.lower[0] > 0.0
    assert found.lower[1] < 0.0 < found.upper[1]


def test_relative_orders_as_logarithms_do() -> None:
    first: FloatArray = np.array([1.0, 2.0, 0.0, 3.0, 0.0])
    second: FloatArray = np.array([1.0, 1.0, 1.0, 0.0, 0.0])
    assert relative(first, second).tolist() == [0.0, pytest.approx(1 / 3), -1.0, 1.0, 0.0]
    assert relative(first, second).tolist() == (-relative(second, first)).tolist()
