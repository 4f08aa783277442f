"""Elementary functions against 50 digits and more, and where they have to be exact."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from many_digits import Truth, furthest

from metrics.elementary import exp, exp2, expm1, log, log1p, log2, of_whole, power

MOST = Decimal("0.7")
"""Units in the last place that a result may be from the truth."""
CHANCE = np.random.default_rng(8)
NEAR_0 = np.concatenate([CHANCE.normal(0, size, 300) for size in (1e-12, 1e-5, 0.02, 0.3, 1)])
POSITIVE = np.concatenate(
    [
        CHANCE.random(700),
        1 + CHANCE.normal(0, 1e-3, 400),
        1 + CHANCE.normal(0, 1e-9, 200),
        np.ldexp(CHANCE.random(500) + 0.5, CHANCE.integers(-1000, 1000, 500)),
        np.arange(1.0, 300.0),
        [5e-324, 1e-310, 2.3e-308, 1.7e308, np.nextafter(1, 0), np.nextafter(1, 2)],
    ]
)

ABOVE = np.concatenate([NEAR_0[NEAR_0 > -1], POSITIVE[POSITIVE > 1e-20]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "truth", "given"),
    [
        (log, lambda x: x.ln(), POSITIVE),
        (log2, lambda x: x.ln() / Decimal(2).ln(), POSITIVE),
        (
            log1p,
            lambda x: (1 + x).ln(),
            np.concatenate([NEAR_0[NEAR_0 > -1], POSITIVE[POSITIVE > 1e-20]]),
        ),
        (exp, lambda x: x.exp(), np.concatenate([NEAR_0, CHANCE.uniform(-700, 700, 800)])),
        (exp2, lambda x: (x * Decimal(2).ln()).exp(), np.concatenate([NEAR_0, 900 * NEAR_0 / 5])),
        (expm1, lambda x: x.exp() - 1, np.concatenate([NEAR_0, CHANCE.uniform(-40, 700, 500)])),
    ],
    ids=["log", "log2", "log1p", "exp", "exp2", "expm1"],
)
def test_against_many_digits(function: Any, truth: Truth, given: np.ndarray[Any, Any]) -> None:
    assert furthest(function(given), truth, given) < MOST


@pytest.mark.slow
def test_powers_against_many_digits() -> None:
    base = np.concatenate([CHANCE.random(900), 1 + CHANCE.normal(0, 1e-3, 300)])
    over = np.concatenate([CHANCE.integers(0, 60, 900).astype(float), CHANCE.normal(0, 1e4, 300)])
    found = power(base, over)
    usual = (found > 1e-300) & (found < 1e300)
    assert usual.sum() > 1000
    truth: Truth = lambda x, y: (y * x.ln()).exp()  # noqa: E731
    assert furthest(found[usual], truth, base[usual], over[usual]) < MOST


def test_what_has_an_exact_double_is_exact() -> None:
    whole = np.arange(-1074.0, 1024.0)
    assert np.array_equal(exp2(whole), np.ldexp(1.0, whole.astype(int)))
    assert np.array_equal(log2(np.ldexp(1.0, whole.astype(int))), whole)
    assert np.array_equal(power(0.5, np.arange(1075.0)), np.ldexp(1.0, -np.arange(1075)))
    for base in (3.0, 5.0, 10.0, 1.5):
        over = np.arange(0, 16)
        assert power(base, over).tolist() == [base**each for each in over.tolist()]
    assert log([1.0]).tolist() == log2([1.0]).tolist() == log1p([0.0]).tolist() == [0.0]
    assert exp([0.0]).tolist() == [1.0]


@pytest.mark.parametrize("name", ["log", "log2", "log1p", "exp", "exp2", "expm1"])
def test_ends_are_those_of_numpy(name: str) -> None:
    ours = {"log": log, "log2": log2, "log1p": log1p, "exp": exp, "exp2": exp2, "expm1": expm1}
    ends = np.array([0.0, -0.0, -1.0, -2.0, np.inf, -np.inf, np.nan, 1e-320, 1e-300, 1e308, -1e308])
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(ends)
    assert ours[name](ends) == pytest.approx(expected, rel=1e-14, abs=0, nan_ok=True)


def test_ends_of_powers_are_those_of_numpy() -> None:
    ends = np.array([0.0, 0.3, 1.0, 2.0, 1e300, np.inf, np.nan])
    base, over = (each.ravel() for each in np.meshgrid(ends, np.concatenate([ends, -ends])))
    with np.errstate(all="ignore"):
        expected = np.power(base, over)
    assert power(base, over) == pytest.approx(expected, rel=1e-13, abs=0, nan_ok=True)
    assert np.isnan(power(-1.0, 2.0))


def test_shapes_and_blocks_do_not_matter() -> None:
    numbers = CHANCE.random((3, 5, 1001)) + 0.1
    one_by_one = [float(log(each)) for each in numbers.ravel()[:50]]
    assert log(numbers).shape == numbers.shape
    assert log(numbers).ravel()[:50].tolist() == one_by_one
    assert log(np.empty((0, 4))).shape == (0, 4)
    ranks = CHANCE.integers(0, 9, 10_000)
    assert np.array_equal(of_whole(exp, ranks), exp(ranks.astype(float)))
    assert np.array_equal(of_whole(exp, ranks[:2] * 10**6), exp(ranks[:2] * 1e6))
