"""The normal law and Student's, and factorials, with the same bits on every processor.

Made of the functions of ``elementary`` and of what IEEE 754 leaves no choice in.  Arrays of any
shape, or single numbers, as doubles; NaN for NaN.

Measured against 40 digits (``tests/metrics/test_distributions.py``), probabilities of the normal
law are within 4 units in the last place however small they are, its quantiles within 8, and those
of Student's law within a relative 2e-13, for any number of degrees of freedom.

Source: Wichura 1988 (Algorithm AS 241) for quantiles of the normal law; for tails, Taylor series
of Mills' ratio; for Student's law, double exponential quadrature (Takahasi & Mori 1974).

Not here: random numbers (``pipeline.scores.evidence.randomness``).
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from metrics.elementary import (
    Doubles,
    exact_product,
    exp,
    exp_of_pair,
    expm1,
    in_blocks,
    log,
    log1p,
)

# -- the normal law

_PER_UNIT = 8
"""Mills' ratio is tabulated at multiples of 1 / _PER_UNIT."""
_FURTHEST = 40.0
"""Beyond it a normal tail is no double."""
_TERMS = 14
"""Terms of each Taylor series: the next would change less than the last digit."""
_HALF_LOG_OF_2_PI = 0.9189385332046728
_ROOT_OF_2_PI = Decimal("2.50662827463100050241576528481104525300698674060993831663")


@cache
def _mills_table() -> tuple[Doubles, ...]:
    """Taylor coefficients of Mills' ratio over sqrt(2 pi) at each of the places, lowest first.

    Mills' ratio m(z) = (1 - Phi(z)) / phi(z) obeys m' = z m - 1.  Going down from far out, where
    the asymptotic series has all digits, what errors there are die out.
    """
    with localcontext() as context:
        context.prec = 50
        step = Decimal(1) / _PER_UNIT
        place = Decimal(int(_FURTHEST))
        value, term, number = Decimal(0), 1 / place, 0
        while abs(term) > Decimal(10) ** -48:
            value += term
            number += 1
            term *= -(2 * number - 1) / place**2
        rows = []
        for _ in range(int(_FURTHEST) * _PER_UNIT + 1):
            series = [value, place * value - 1]
            for order in range(1, 40):
                series.append((place * series[order] + series[order - 1]) / (order + 1))
            rows.append([float(each / _ROOT_OF_2_PI) for each in series[:_TERMS]])
            value = Decimal(0)
            for each in reversed(series):
                value = each - step * value
            place -= step
    return tuple(column.copy() for column in np.array(rows[::-1]).T)


def _mills(z: Doubles) -> Doubles:
    """Mills' ratio over sqrt(2 pi), at z from 0 to _FURTHEST."""
    place = np.rint(z * _PER_UNIT)
    away = z - place / _PER_UNIT
    series = _mills_table()
    at = place.astype(np.int64)
    found = series[-1].take(at)
    for each in reversed(series[:-1]):
        found = each.take(at) + away * found
    return found


def _tail(z: Doubles) -> Doubles:
    """1 - Phi(z) at z from 0 to _FURTHEST."""
    square, error = exact_product(z, z)
    return exp_of_pair(-0.5 * square, -0.5 * error) * _mills(z)


def _inside(z: Doubles) -> Doubles:
    return np.where(np.isnan(z), 0.0, np.minimum(np.abs(z), _FURTHEST))


@in_blocks
def normal_cdf(z: Doubles) -> Doubles:
    """The probability of a standard normal number below z."""
    tail = _tail(_inside(z))
    return np.where(np.isnan(z), np.nan, np.where(z < 0.0, tail, 1.0 - tail))


@in_blocks
def log_normal_cdf(z: Doubles) -> Doubles:
    """The logarithm of the probability of a standard normal number below z."""
    size = _inside(z)
    near = log(_mills(size)) - 0.5 * (size * size)
    low = np.where(z < -_FURTHEST, _log_far_tail(np.maximum(np.abs(z), _FURTHEST)), near)
    return np.where(np.isnan(z), np.nan, np.where(z < 0.0, low, log1p(-_tail(size))))


def _log_far_tail(z: Doubles) -> Doubles:
    """The logarithm of 1 - Phi(z) at z from _FURTHEST on, by the asymptotic series."""
    inverse = 1.0 / (z * z)
    series = inverse * (1.0 - 3.0 * inverse * (1.0 - 5.0 * inverse * (1.0 - 7.0 * inverse)))
    return log1p(-series) - log(z) - (_HALF_LOG_OF_2_PI + 0.5 * (z * z))


Polynomials = tuple[tuple[float, ...], tuple[float, ...]]
"""Coefficients above and below the line, the constant ones first."""
_CENTRE: Polynomials = (
    (3.3871328727963665, 133.14166789178438, 1971.5909503065513, 13731.69376550946,
     45921.95393154987, 67265.7709270087, 33430.57558358813, 2509.0809287301227),
    (1.0, 42.31333070160091, 687.1870074920579, 5394.196021424751,
     21213.794301586597, 39307.89580009271, 28729.085735721943, 5226.495278852854),
)  # fmt: skip
_SHOULDER: Polynomials = (
    (1.4234371107496835, 4.630337846156546, 5.769497221460691, 3.6478483247632045,
     1.2704582524523684, 0.2417807251774506, 0.022723844989269184, 0.0007745450142783414),
    (1.0, 2.053191626637759, 1.6763848301838038, 0.6897673349851,
     0.14810397642748008, 0.015198666563616457, 0.0005475938084995345, 1.0507500716444169e-09),
)  # fmt: skip
_FAR: Polynomials = (
    (6.657904643501103, 5.463784911164114, 1.7848265399172913, 0.29656057182850487,
     0.026532189526576124, 0.0012426609473880784, 2.7115555687434876e-05, 2.0103343992922881e-07),
    (1.0, 0.599832206555888, 0.1369298809227358, 0.014875361290850615,
     0.0007868691311456133, 1.8463183175100548e-05, 1.421511758316446e-07, 2.0442631033899398e-15),
)  # fmt: skip


def _ratio(polynomials: Polynomials, r: Doubles) -> Doubles:
    above, below = (np.full_like(r, each[-1]) for each in polynomials)
    for high, low in zip(*(each[-2::-1] for each in polynomials), strict=True):
        above, below = above * r + high, below * r + low
    found: Doubles = above / below
    return found


@in_blocks
def normal_quantile(p: Doubles) -> Doubles:
    """The number that a standard normal one is below with probability p; NaN beyond 0 and 1."""
    away = p - 0.5
    found = away * _ratio(_CENTRE, 0.180625 - away * away)
    if (rare := np.abs(away) > 0.425).any():
        given, side = p[rare], np.sign(away[rare])
        tail = np.where(side < 0.0, given, 1.0 - given)
        r = np.sqrt(-log(np.where(tail > 0.0, tail, 1.0)))
        size = np.where(r <= 5.0, _ratio(_SHOULDER, r - 1.6), _ratio(_FAR, r - 5.0))
        size = np.where(tail > 0.0, size, np.where(tail == 0.0, np.inf, np.nan))
        found[rare] = side * size
    return found


# -- Student's law


@cache
def _points() -> tuple[Doubles, Doubles]:
    """Points from 0 to infinity, and weights, for integrals of e^-s f(s)."""
    at = np.arange(-86.0, 81.0) / 20.0
    fall = exp(-at)
    points = exp(at - fall)
    return points, exp(-points) * points * (1.0 + fall) / 20.0


_BLOCK = 1024
"""Numbers that are integrated together."""


@lru_cache(maxsize=1024)
def _falls(freedom: float) -> Doubles:
    """1 - e^(-2 s / freedom) at each of the points, times ``freedom``."""
    return -freedom * expm1(_points()[0] * (-2.0 / freedom))


def _upper_tails(freedom: Doubles) -> Callable[[Doubles], tuple[Doubles, Doubles]]:
    """What gives the probabilities to be beyond each t, from 0 on, and the densities there.

    The tail is an incomplete beta function.  With its variable as e^(-2 s / freedom) it becomes
    (1 + t^2 / freedom)^((1 - freedom) / 2) times the integral of
    e^-s / sqrt(t^2 + freedom (1 - e^(-2 s / freedom))) from 0 to infinity, and a constant that
    follows from the tail at 0, which is 1/2.
    """
    weights = _points()[1]
    different, which = np.unique(freedom, return_inverse=True)
    falls = np.array([_falls(each) for each in different.tolist()]).reshape(-1, len(weights))
    constant = 0.5 / (weights / np.sqrt(falls)).sum(axis=1)[which]

    def tails(t: Doubles) -> tuple[Doubles, Doubles]:
        square = t * t
        integral = np.empty(len(t))
        for start in range(0, len(t), _BLOCK):
            here = slice(start, start + _BLOCK)
            under = square[here, None] + falls[which[here]]
            integral[here] = (weights / np.sqrt(under)).sum(axis=1)
        share = square / freedom
        outside = constant * exp(log1p(share) * ((1.0 - freedom) / 2.0))
        return outside * integral, outside / (1.0 + share)

    return tails


def _flat(*given: npt.ArrayLike) -> tuple[tuple[int, ...], list[Doubles]]:
    arrays = np.broadcast_arrays(*(np.asarray(each, dtype=np.float64) for each in given))
    return arrays[0].shape, [each.ravel() for each in arrays]


def student_cdf(t: npt.ArrayLike, freedom: npt.ArrayLike) -> Doubles:
    """The probability below t under Student's law of ``freedom`` degrees of freedom, above 0."""
    shape, (t, freedom) = _flat(t, freedom)
    known = np.isfinite(t)
    found = np.where(t > 0.0, 1.0, np.where(t < 0.0, 0.0, np.nan))
    tail, _ = _upper_tails(freedom[known])(np.abs(t[known]))
    found[known] = np.where(t[known] < 0.0, tail, 1.0 - tail)
    return found.reshape(shape)[()]


_MOST_STEPS = 50
"""Of Newton's method; three do, and each has twice the right digits of the one before."""


def student_quantile(p: npt.ArrayLike, freedom: npt.ArrayLike) -> Doubles:
    """The number that one of Student's law is below with probability p, which lies in (0, 1).

    By Newton's method for the logarithm of the tail as a function of asinh(t / sqrt(freedom)),
    where it is concave, so that it finds its way from anywhere.
    """
    shape, (p, freedom) = _flat(p, freedom)
    tail = np.minimum(p, 1.0 - p)
    # Of a normal law that is about as wide.
    z = normal_quantile(tail)
    t = np.sqrt(freedom * np.minimum(expm1(z * z / freedom), 1e300))
    upper_tails = _upper_tails(freedom)
    for _ in range(_MOST_STEPS):
        beyond, density = upper_tails(t)
        root = np.sqrt(freedom + t * t)
        step = log(beyond / tail) * beyond / (density * root)
        up = exp(step)
        down = 1.0 / up
        moved = np.maximum(0.5 * (t * (up + down) + root * expm1(2.0 * step) * down), 0.0)
        settled = np.abs(moved - t) <= 1e-7 * t
        t = moved
        if settled.all():
            break
    found = np.where(p < 0.5, -t, t)
    return np.where(p == 0.5, 0.0, found).reshape(shape)[()]


# -- factorials


@cache
def _small_factorials() -> Doubles:
    with localcontext() as context:
        context.prec = 40
        found, logs = Decimal(1), [0.0]
        for number in range(1, 64):
            found *= number
            logs.append(float(found.ln()))
    return np.array(logs)


def log_factorial(n: npt.NDArray[np.integer]) -> Doubles:
    """The natural logarithm of n!, for whole n from 0 on.  Source: Stirling's series."""
    small = _small_factorials()
    large = np.maximum(n, len(small)).astype(np.float64)
    inverse = 1.0 / large
    square = inverse * inverse
    rest = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    stirling = (large + 0.5) * log(large) - large + (_HALF_LOG_OF_2_PI + rest)
    found: Doubles = np.where(n < len(small), small.take(np.minimum(n, len(small) - 1)), stirling)
    return found
