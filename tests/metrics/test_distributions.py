"""Laws of chance against 40 digits, against scipy, and where they have to be exact."""

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from many_digits import furthest
from scipy import special

from metrics.distributions import (
    log_factorial,
    log_normal_cdf,
    normal_cdf,
    normal_quantile,
    student_cdf,
    student_quantile,
)
from metrics.elementary import Doubles

CHANCE = np.random.default_rng(3)
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


def normal_below(z: Decimal) -> Decimal:
    """The normal law by the power series of its density."""
    with localcontext() as context:
        context.prec = 60 + int(z * z / 2)
        # phi(z) (z + z^3/3 + z^5/(3 5) + ...): all terms of one sign.
        term = total = z
        number = 1
        while abs(term) > abs(total) * Decimal(10) ** -context.prec:
            number += 2
            term = term * z * z / number
            total += term
        density = (-z * z / 2).exp() / (2 * _pi(context.prec)).sqrt()
        return Decimal("0.5") + density * total


def _pi(digits: int) -> Decimal:
    """By Machin's formula."""
    with localcontext() as context:
        context.prec = digits + 5

        def arctan_of_one_over(n: int) -> Decimal:
            power = total = Decimal(1) / n
            sign, number = -1, 1
            while abs(power) > Decimal(10) ** -context.prec:
                power /= n * n
                number += 2
                total += sign * power / number
                sign = -sign
            return total

        return 4 * (4 * arctan_of_one_over(5) - arctan_of_one_over(239))


FAR = np.concatenate([np.linspace(-37, 8, 91), CHANCE.normal(size=200), [-1e-9, 1e-300, 0.0]])


@pytest.mark.slow
def test_the_normal_law_against_many_digits() -> None:
    assert furthest(normal_cdf(FAR), normal_below, FAR) < 4
    lower = np.concatenate([FAR[FAR < 5], np.linspace(-200, -37, 60)])
    logs = log_normal_cdf(lower)
    assert furthest(logs, lambda z: normal_below(z).ln(), lower) < 4


@pytest.mark.slow
def test_quantiles_are_where_the_law_says() -> None:
    tails = 10.0 ** -CHANCE.uniform(0.35, 290, 300)
    p = np.concatenate([tails, CHANCE.random(500), [0.025, 0.8, 0.075, 0.925]])
    z = normal_quantile(p)
    for chance, found in zip(p.tolist(), z.tolist(), strict=True):
        with localcontext() as context:
            context.prec = 40
            at = Decimal(found)
            density = (-at * at / 2).exp() / (2 * PI).sqrt()
            # One step of Newton's method from here to the truth.
            away = (normal_below(at) - Decimal(chance)) / density
            assert abs(away) < 8 * Decimal(float(np.spacing(abs(found)))), (chance, found)


def even_student_below(t: float, freedom: int) -> Decimal:
    """Student's law of an even number of degrees of freedom, a finite sum."""
    with localcontext() as context:
        context.prec = 500
        square = Decimal(t) * Decimal(t)
        cosine2 = freedom / (freedom + square)
        sine = (square / (freedom + square)).sqrt()
        term = total = Decimal(1)
        for number in range(1, freedom // 2):
            term *= cosine2 * (2 * number - 1) / (2 * number)
            total += term
        inside = sine * total
        return (1 - inside) / 2 if t < 0 else (1 + inside) / 2


T = np.concatenate([-np.geomspace(1e-4, 30, 40), [0.3, 2.0, 7.0, 0.0]])


@pytest.mark.parametrize("freedom", [2, 4, 10, 28, 100, 1000, 20_000])
def test_students_law_against_many_digits(freedom: int) -> None:
    truth = [even_student_below(t, freedom) for t in T.tolist()]
    known = np.array([float(each) for each in truth])
    usable = known > 1e-300
    np.testing.assert_allclose(student_cdf(T, freedom)[usable], known[usable], rtol=2e-13)
    inner = usable & (known > 1e-14) & (known < 1 - 1e-3)
    found = student_quantile(known[inner], freedom)
    np.testing.assert_allclose(found, T[inner], rtol=1e-12, atol=5e-14)


FREEDOMS = np.array([1, 1.3, 2, 2.5, 3, 7.25, 30, 55.5, 400, 1e4, 1e6, 1e12])[:, None]


def test_students_law_of_any_freedom() -> None:
    np.testing.assert_allclose(student_cdf(T, FREEDOMS), special.stdtr(FREEDOMS, T), rtol=2e-12)
    p = np.array([1e-10, 1e-4, 0.025, 0.3, 0.4999, 0.5, 0.6, 0.95])
    found = student_quantile(p, FREEDOMS[:-1])
    np.testing.assert_allclose(found, special.stdtrit(FREEDOMS[:-1], p), rtol=1e-9, atol=1e-12)
    back = student_cdf(student_quantile(p, FREEDOMS), FREEDOMS)
    np.testing.assert_allclose(back, np.broadcast_to(p, back.shape), rtol=2e-12)
    assert student_quantile(0.025, 1e15) == pytest.approx(normal_quantile(0.025), rel=1e-12)
    assert student_cdf(1.0, 1.0) == pytest.approx(0.75, rel=1e-14)


def test_ends() -> None:
    inf, nan = np.inf, np.nan
    assert normal_cdf(np.array([-inf, -41.0, 0.0, 41.0, inf])).tolist() == [0, 0, 0.5, 1, 1]
    assert normal_quantile(np.array([0.0, 0.5, 1.0])).tolist() == [-inf, 0.0, inf]
    assert np.isnan(normal_quantile(np.array([-0.1, 1.1, nan]))).all()
    assert np.isnan([normal_cdf(nan), log_normal_cdf(nan), student_cdf(nan, 3.0)]).all()
    assert student_cdf(np.array([-inf, 0.0, inf]), 2.0).tolist() == [0.0, 0.5, 1.0]
    assert student_quantile(0.5, 2.0) == 0.0
    assert log_normal_cdf(np.array([-1e9, inf])).tolist() == [pytest.approx(-5e17), 0.0]
    for given in (np.array([]), np.empty((0, 3))):
        for function in (normal_cdf, log_normal_cdf, normal_quantile):
            assert function(given).shape == given.shape
        assert student_cdf(given, 3.0).shape == given.shape
        assert student_quantile(given, 3.0).shape == given.shape


def test_neighbours_do_not_matter() -> None:
    functions: list[tuple[Any, Doubles]] = [
        (normal_cdf, CHANCE.normal(size=5000)),
        (log_normal_cdf, CHANCE.normal(size=5000)),
        (normal_quantile, CHANCE.random(5000)),
        (lambda t: student_cdf(t, 7.5), CHANCE.normal(size=2500)),
    ]
    for function, numbers in functions:
        together = function(numbers)
        assert [function(each) for each in numbers[:300].tolist()] == together[:300].tolist()
        assert (function(numbers.reshape(50, -1)) == together.reshape(50, -1)).all()
    freedom = CHANCE.random(200) * 40 + 1
    alone = [student_cdf(-1.7, each) for each in freedom.tolist()]
    assert student_cdf(-1.7, freedom).tolist() == alone


def test_factorials() -> None:
    product, logs = 1, []
    for number in range(1500):
        product *= max(1, number)
        with localcontext() as context:
            context.prec = 30
            logs.append(float(Decimal(product).ln()))
    np.testing.assert_allclose(log_factorial(np.arange(1500)), logs, rtol=4e-16)
