"""Control of false discoveries: by hand, by definition, and by simulation."""

from typing import Any

import numpy as np
import pytest
import slow_trends
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from pipeline.trends import adjusted, discover

NAN = np.nan
probabilities = st.lists(st.floats(1e-9, 1), min_size=1, max_size=12)


@given(probabilities)
def test_adjusted_agrees_with_the_definition(p: list[float]) -> None:
    tests = np.array(p)
    np.testing.assert_allclose(adjusted(tests, "BH"), slow_trends.step_up(p, 1.0), rtol=1e-9)
    harmonic = sum(1 / rank for rank in range(1, len(p) + 1))
    np.testing.assert_allclose(adjusted(tests, "BY"), slow_trends.step_up(p, harmonic), rtol=1e-9)
    np.testing.assert_array_equal(adjusted(tests, "none"), tests)


@pytest.mark.parametrize("method", ["BY", "BH", "none"])
def test_what_was_not_tested_is_not_in_the_family(method: Any) -> None:
    p = np.array([NAN, 0.01, NAN, 0.5, 0.03])
    found = adjusted(p, method)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(p))
    np.testing.assert_array_equal(found[[1, 3, 4]], adjusted(p[[1, 3, 4]], method))
    assert np.isnan(adjusted(np.array([NAN, NAN]), method)).all()
    assert adjusted(np.array([]), method).shape == (0,)


def test_parents_come_before_children() -> None:
    #              whole, its slices,   whole, its slices, a slice without a whole batch
    p = np.array([1e-6, 1e-6, 0.9, 0.5, 1e-6, NAN, 0.8])
    is_whole = np.array([1, 0, 0, 1, 0, 0, 0], dtype=bool)
    parent = np.array([-1, 0, 0, -1, 3, 3, -1])
    found = discover(p, is_whole, parent, method="BH", level=0.05)
    assert found.found.tolist() == [True, False, False, False, True, False, False]
    assert found.covered.tolist() == [False, True, True, False, False, False, False]
    assert found.family_size.tolist() == [2, 0, 0, 2, 4, 0, 4]
    # Covered slices stay in their family of four with p = 1.
    expected = [2e-6, NAN, NAN, 0.5, 4e-6, NAN, 1.0]
    np.testing.assert_allclose(found.p_adjusted, expected, rtol=1e-12)


def test_a_slice_is_news_where_its_whole_batch_is_not() -> None:
    found = discover(np.array([0.4, 1e-9]), np.array([True, False]), np.array([-1, 0]))
    assert found.found.tolist() == [False, True]
    assert not found.covered.any()


def test_nothing_tested_is_nothing_found() -> None:
    for p in (np.array([]), np.array([NAN, NAN])):
        found = discover(p, np.zeros(p.shape, dtype=bool), np.full(p.shape, -1))
        assert not found.found.any()
        assert (found.family_size == 0).all()


@given(st.integers(0, 1000))
def test_order_does_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.random(20) ** 4
    is_whole, parent = np.arange(20) < 5, np.where(np.arange(20) < 5, -1, np.arange(20) % 5)
    order = rng.permutation(20)
    place = np.argsort(order)
    moved = np.where(parent[order] < 0, -1, place[parent[order]])
    before = discover(p, is_whole, parent)
    after = discover(p[order], is_whole[order], moved)
    np.testing.assert_array_equal(after.found, before.found[order])
    np.testing.assert_array_equal(after.p_adjusted, before.p_adjusted[order])


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_quiet_nights_have_news_as_rarely_as_promised(correlation: float) -> None:
    from scipy.stats import norm

    rng = np.random.default_rng(9)
    is_whole, parent = np.arange(60) < 10, np.where(np.arange(60) < 10, -1, np.arange(60) % 10)
    nights = {True: 0, False: 0}
    for _ in range(1000):
        z = np.sqrt(correlation) * rng.normal() + np.sqrt(1 - correlation) * rng.normal(size=60)
        found = discover(norm.sf(z), is_whole, parent, method="BY", level=0.2).found
        for whole in nights:
            nights[whole] += bool((found & (is_whole == whole)).any())
    assert max(nights.values()) <= 0.2 * 1000 + 3 * (0.16 * 1000) ** 0.5


@pytest.mark.parametrize(("method", "theirs"), [("BY", "by"), ("BH", "bh")])
def test_adjusted_values_are_those_of_scipy(method: Any, theirs: Any) -> None:
    rng = np.random.default_rng(5)
    for size in (1, 2, 7, 500):
        p = rng.uniform(size=size) ** rng.integers(1, 6)
        p[rng.uniform(size=size) < 0.2] = rng.uniform()  # ties
        expected = false_discovery_control(p, method=theirs)
        np.testing.assert_allclose(adjusted(p, method), expected, rtol=1e-13)
