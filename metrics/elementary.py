"""Logarithms, exponentials and powers with the same bits on every processor.

Libraries choose among several ways of computing them, by what a processor can do, and these differ
in the last bit.  Here all is made of additions, multiplications, divisions, roundings and scaling
by powers of two, which IEEE 754 leaves no choice in, and of constants that are computed once from
whole numbers.  Arrays of any shape, or single numbers, as doubles.

Measured against 50 digits (``tests/metrics/test_elementary.py``), results are less than 0.7 units
in the last place from the truth, so that what has an exact double, as ``power(0.5, 3)`` and
``log2(8)`` have, is exact.  Below the least normal number the last step rounds once more.

Source: table and polynomial as in Tang 1989 and 1990 (ACM TOMS 15 and 16); products and sums of
two doubles as in Dekker 1971 (Numer. Math. 18).

Not here: laws of chance (``distributions``).
"""

from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import cache, lru_cache, wraps
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Doubles: TypeAlias = npt.NDArray[np.float64]
Wholes: TypeAlias = npt.NDArray[np.int64]
Pair: TypeAlias = tuple[Doubles, Doubles]
"""The unevaluated sum of two doubles, the second far smaller than the first."""

_PARTS = 128
"""Logarithms are tabulated at multiples of 1 / _PARTS."""
_STEPS = 64
"""Powers of two are tabulated at multiples of 1 / _STEPS."""
_LOW, _HIGH = 90, 182
"""From 90/128 to 182/128: numbers in [sqrt(1/2), sqrt(2)) are near one of these."""
_COARSE = 2.0**42
"""The leading part of a tabulated logarithm has so few digits that adding any exponent is exact."""


_BLOCK = 4096
"""Numbers that are looked at together: what comes of them on the way stays in the cache."""


def in_blocks(function: Callable[..., Doubles]) -> Callable[..., Doubles]:
    """A function of arrays, computed some numbers at a time."""

    @wraps(function)
    def blocked(*given: npt.ArrayLike) -> Doubles:
        arrays = np.broadcast_arrays(*(np.asarray(each, dtype=np.float64) for each in given))
        flat = [each.ravel() for each in arrays]
        found = np.empty(len(flat[0]))
        for start in range(0, len(found), _BLOCK):
            here = slice(start, start + _BLOCK)
            found[here] = function(*(each[here] for each in flat))
        return found.reshape(arrays[0].shape)[()]

    return blocked


# -- two doubles as one number


def _sum(a: Doubles, b: Doubles) -> Pair:
    """The exact sum of two doubles."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _halved(a: Doubles | float) -> tuple[Doubles | float, Doubles | float]:
    """Two numbers of at most 26 digits each that add up to ``a``, which is below 2^970."""
    wide = a * 134217729.0
    high = wide - (wide - a)
    return high, a - high


def exact_product(a: Doubles, b: Doubles | float) -> Pair:
    """The exact product of two doubles, in two parts."""
    product = a * b
    (a1, a2), (b1, b2) = _halved(a), _halved(b)
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


# -- constants


@cache
def _constants() -> dict[str, tuple[float, float]]:
    with localcontext() as context:
        context.prec = 60
        two = Decimal(2).ln()
        coarse = Decimal(float(round(two * 2**32)) / 2.0**32)
        return {
            "ln2": (float(coarse), float(two - coarse)),
            "1/ln2": _pair(1 / two),
            "step": _split(two / _STEPS, 2**38),
            "ln2 as it is": _pair(two),
        }


def _pair(number: Decimal) -> tuple[float, float]:
    high = float(number)
    return high, float(number - Decimal(high))


def _split(number: Decimal, unit: int) -> tuple[float, float]:
    high = float(round(number * unit)) / unit
    return high, float(number - Decimal(high))


@cache
def _log_table(base: int) -> tuple[Doubles, Doubles]:
    """Logarithms of multiples of 1 / _PARTS, each in two parts; natural ones for base 0."""
    with localcontext() as context:
        context.prec = 60
        rows = []
        for number in range(_LOW, _HIGH + 1):
            value = (Decimal(number) / _PARTS).ln()
            rows.append(_split(value / Decimal(base).ln() if base else value, int(_COARSE)))
    high, low = np.array(rows).T
    return high.copy(), low.copy()


@cache
def _power_table() -> tuple[Doubles, Doubles]:
    """2^(i / _STEPS) for i = 0 .. _STEPS - 1, each in two parts."""
    with localcontext() as context:
        context.prec = 60
        rows = [_pair(Decimal(2) ** (Decimal(step) / _STEPS)) for step in range(_STEPS)]
    high, low = np.array(rows).T
    return high.copy(), low.copy()


# -- logarithms


def _reduced(x: Doubles, more: Doubles | None = None) -> tuple[Doubles, Wholes, Pair]:
    """``x = 2^e c (1 + r)``: e, the place of c in the tables, and r in two parts.

    ``more`` is added to x, far smaller than its last digit.  x is finite and above 0.
    """
    fraction, exponent = np.frexp(x)
    small = fraction < np.sqrt(0.5)
    fraction = np.where(small, fraction * 2.0, fraction)
    exponent = exponent - small
    place = np.rint(fraction * _PARTS)
    c = place / _PARTS
    left = fraction - c
    r = left / c
    # What the division left over, exactly: left - r c.
    product, error = exact_product(r, c)
    rest = (left - product) - error
    if more is not None:
        rest = rest + np.ldexp(more, -exponent)
    return exponent.astype(np.float64), place.astype(np.int64) - _LOW, (r, rest / c)


def _log1p_rest(r: Doubles) -> Pair:
    """ln(1 + r) - r for small r, in two parts."""
    square, error = exact_product(r, r)
    tail = 1 / 5 + r * (-1 / 6 + r * (1 / 7 + r * (-1 / 8 + r / 9)))
    tail = r * (1 / 3 + r * (-1 / 4 + r * tail))
    return -0.5 * square, -0.5 * error + square * tail


def _log_pair(x: Doubles, more: Doubles | None = None) -> Pair:
    """The natural logarithm in two parts."""
    exponent, place, (r, rest) = _reduced(x, more)
    high, low = (part[place] for part in _log_table(0))
    ln2, ln2_low = _constants()["ln2"]
    lead, error = _sum(exponent * ln2 + high, r)
    square, tail = _log1p_rest(r)
    lead, second = _sum(lead, square)
    # (1 + r + rest): the derivative of the logarithm is 1 / (1 + r).
    small = exponent * ln2_low + low + tail + rest * (1.0 - r)
    return _sum(lead, (error + second) + small)


def _with_ends(x: Doubles, found: Doubles, *, at_zero: float, below: float) -> Doubles:
    """What a logarithm is where it is no number: at 0, below it, at infinity, and of none."""
    found = np.where(x == 0.0, at_zero, found)
    found = np.where(x < below, np.nan, found)
    found = np.where(np.isposinf(x), np.inf, found)
    return np.where(np.isnan(x), np.nan, found)


def _usable(x: Doubles) -> Doubles:
    """The numbers, with 1 in the place of those that have no logarithm."""
    return np.where((x > 0.0) & np.isfinite(x), x, 1.0)


@in_blocks
def log(x: Doubles) -> Doubles:
    """The natural logarithm; -inf at 0, NaN below."""
    high, low = _log_pair(_usable(x))
    return _with_ends(x, high + low, at_zero=-np.inf, below=0.0)


@in_blocks
def log2(x: Doubles) -> Doubles:
    """The logarithm to base 2; exact for powers of two."""
    exponent, place, (r, rest) = _reduced(_usable(x))
    high, low = (part[place] for part in _log_table(2))
    square, tail = _log1p_rest(r)
    natural, error = _sum(r, square)
    one, more = _constants()["1/ln2"]
    product, second = exact_product(natural, one)
    lead, third = _sum(exponent + high, product)
    small = (error + tail + rest * (1.0 - r)) * one + natural * more
    return _with_ends(x, lead + (third + (second + low + small)), at_zero=-np.inf, below=0.0)


@in_blocks
def log1p(x: Doubles) -> Doubles:
    """ln(1 + x), as exact near 0 as anywhere; -inf at -1, NaN below."""
    usable = np.where((x > -1.0) & np.isfinite(x), x, 0.0)
    high, low = _log_pair(*_sum(np.ones_like(usable), usable))
    found = np.where(np.abs(x) < 2.0**-54, x, high + low)
    return _with_ends(x + 1.0, found, at_zero=-np.inf, below=0.0)


# -- exponentials


def _exp_parts(x: Doubles, low: Doubles | float = 0.0) -> tuple[Wholes, Doubles, Doubles]:
    """``e^(x + low) = 2^e (t + s)``: the exponent e, and t from the table; |x| is below 750."""
    step, step_low = _constants()["step"]
    k = np.rint(x * (_STEPS * _constants()["1/ln2"][0]))
    r, error = _sum(x - k * step, -(k * step_low))
    return _of_step(k.astype(np.int64), r, error + low)


def _of_step(k: Wholes, r: Doubles, error: Doubles) -> tuple[Wholes, Doubles, Doubles]:
    """The same from ``2^(k / _STEPS) e^(r + error)``."""
    high, low = (part[k % _STEPS] for part in _power_table())
    tail = r * r * (0.5 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * (1 / 720 + r / 5040)))))
    grown, second = exact_product(high, r)
    total, third = _sum(high, grown)
    small = low + low * r + high * (tail + error * (1.0 + r)) + second + third
    return k // _STEPS, total, small


def exp_of_pair(x: Doubles, low: Doubles) -> Doubles:
    """e^(x + low), for x from -750 to 750."""
    exponent, high, small = _exp_parts(x, low)
    return _scaled(x, high + small, exponent)


def _within(x: Doubles) -> Doubles:
    return np.where(np.isnan(x), 0.0, np.clip(x, -750.0, 750.0))


@in_blocks
def exp(x: Doubles) -> Doubles:
    """e^x."""
    exponent, high, low = _exp_parts(_within(x))
    return _scaled(x, high + low, exponent)


@in_blocks
def exp2(x: Doubles) -> Doubles:
    """2^x; exact for whole x."""
    usable = np.where(np.isnan(x), 0.0, np.clip(x, -1080.0, 1080.0))
    k = np.rint(usable * _STEPS)
    ln2, ln2_low = _constants()["ln2 as it is"]
    left = usable - k / _STEPS
    r, error = exact_product(left, ln2)
    exponent, high, low = _of_step(k.astype(np.int64), r, error + left * ln2_low)
    return _scaled(x, high + low, exponent)


def _scaled(x: Doubles, found: Doubles, exponent: Wholes) -> Doubles:
    with np.errstate(over="ignore", under="ignore"):
        scaled: Doubles = np.ldexp(found, exponent.astype(np.int32))
    return np.where(np.isnan(x), np.nan, scaled)


@in_blocks
def expm1(x: Doubles) -> Doubles:
    """e^x - 1, as exact near 0 as anywhere."""
    exponent, high, low = _exp_parts(_within(x))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        power = exponent.astype(np.int32)
        lead, error = _sum(np.ldexp(high, power), np.full_like(high, -1.0))
        found = lead + (error + np.ldexp(low, power))
    found = np.where(exponent > 1022, _scaled(x, high + low, exponent), found)
    found = np.where(np.abs(x) < 2.0**-54, x, found)
    return np.where(np.isnan(x), np.nan, found)


@in_blocks
def power(base: Doubles, exponent: Doubles) -> Doubles:
    """``base ** exponent`` for bases from 0 on; 1 where the exponent is 0, NaN below base 0."""
    finite = np.where(np.isfinite(exponent), exponent, 0.0)
    high, low = _log_pair(_usable(base))
    bounded = np.clip(finite, -(2.0**900), 2.0**900)
    lead, error = exact_product(high, bounded)
    beyond = np.abs(lead) > 750.0
    lead = np.where(beyond, np.copysign(750.0, lead), lead)
    error = np.where(beyond, 0.0, error + low * bounded)
    scale, one, other = _exp_parts(lead, error)
    found = _scaled(lead, one + other, scale)
    with np.errstate(divide="ignore"):
        at_zero = np.where(exponent > 0.0, 0.0, np.inf)
    found = np.where(base == 0.0, at_zero, found)
    large = (base > 1.0) == (exponent > 0.0)
    endless = np.isinf(exponent) | np.isposinf(base)
    found = np.where(endless & (base != 1.0), np.where(large, np.inf, 0.0), found)
    found = np.where((exponent == 0.0) | (base == 1.0), 1.0, found)
    no_number = np.isnan(base) | np.isnan(exponent) | (base < 0.0)
    return np.where(no_number & (exponent != 0.0) & (base != 1.0), np.nan, found)


def of_whole(function: Callable[[Doubles], Doubles], numbers: npt.NDArray[Any]) -> Doubles:
    """``function`` of whole numbers from 0 on, any shape: computed once for each there may be.

    For ranks and counts, of which there are few, in arrays of many.
    """
    most = int(numbers.max(initial=0))
    if most >= numbers.size:
        return function(numbers.astype(np.float64))
    return function(np.arange(most + 1.0)).take(numbers.astype(np.int64, copy=False))


def powers_of(base: float, exponents: npt.NDArray[Any]) -> Doubles:
    """``base ** exponent`` for whole exponents from 0 on, any shape; tables of few are kept."""
    size = 1 << int(exponents.max(initial=0)).bit_length()
    if size > _MOST_KEPT:
        return of_whole(lambda each: power(base, each), exponents)
    return _powers(float(base), max(size, 64)).take(exponents.astype(np.int64, copy=False))


_MOST_KEPT = 1 << 14
"""Powers in a table that is kept: 128 kB."""


@lru_cache(maxsize=64)
def _powers(base: float, size: int) -> Doubles:
    return power(base, np.arange(float(size)))
