"""Numbers in [0, 1] as scaled integers, in two halves whose sums fit 64 bits.

A scaled number is up to 2^60; its halves stay below 2^31, so billions of them can be added.
"""

from dataclasses import dataclass

import numpy as np

from metrics import UNIT
from metrics.weights import BoolArray, FloatArray, IntArray

HALF_BITS = 30
HALF = 1 << HALF_BITS


def halves(whole: IntArray) -> tuple[IntArray, IntArray]:
    """High and low half of integers: ``high * HALF + low``, low never negative; any shape."""
    return whole >> HALF_BITS, whole & (HALF - 1)


def joined(high: str, low: str) -> str:
    """SQL of the number whose halves are two columns."""
    return f"({high}::HUGEINT * {HALF} + {low})"


def whole_numbers(values: FloatArray, unit: int) -> IntArray:
    """``values * unit``, rounded once, halves to even as SQL's cast does; any shape."""
    found: IntArray = np.rint(values * float(unit)).astype(np.int64)
    return found


@dataclass(frozen=True)
class Shares:
    """A column of numbers in [0, 1], shape (rows,), ready to be added up.

    ``known`` is None where every row has one; ``ones`` says which are 1.  Where all are 0 or 1, as
    most are, ``halves`` is None; else it holds the halves of the scaled numbers, 0 where one is
    missing.
    """

    values: FloatArray
    known: BoolArray | None
    ones: BoolArray
    halves: tuple[IntArray, IntArray] | None

    @classmethod
    def of(cls, values: FloatArray, *, complete: bool) -> "Shares":
        """``values`` with NaN where one is missing; ``complete`` promises that none is."""
        known = None if complete else ~np.isnan(values)
        ones = values == 1.0
        binary = ones | (values == 0.0)
        if known is not None:
            binary |= ~known
        if binary.all():
            return cls(values, known, ones, None)
        numbers = values if known is None else np.where(known, values, 0.0)
        return cls(values, known, ones, halves(whole_numbers(numbers, UNIT)))

    def add_to(self, high: IntArray, low: IntArray, key: IntArray) -> None:
        """Add each number to the sums at ``key``, shape (rows,)."""
        if self.halves is None:
            np.add.at(high, key[self.ones], UNIT // HALF)
        else:
            for sums, half in zip((high, low), self.halves, strict=True):
                np.add.at(sums, key, half)

    def per_list(self, starts: IntArray) -> tuple[IntArray, IntArray]:
        """Sums of the halves over each list, shape (lists,)."""
        if self.halves is None:
            ones: IntArray = np.add.reduceat(self.ones, starts, dtype=np.int64)
            return ones * (UNIT // HALF), np.zeros_like(ones)
        high, low = (np.add.reduceat(half, starts) for half in self.halves)
        return high, low


_HALF = 2.0**30


def scaled_sums(values: FloatArray, cell: IntArray, cells: int) -> list[int]:
    """Sum of ``values``, each rounded once to a multiple of 1 / UNIT, by cell: exact integers.

    Whole numbers below 2^53 add up exactly as doubles, so a value goes in as three such pieces.
    """
    whole = np.rint(values * float(UNIT))
    # Cut towards 0, so that what is left has no more digits than there were.
    high = np.trunc(whole / UNIT)
    rest = whole - high * UNIT
    middle = np.trunc(rest / _HALF)
    low = rest - middle * _HALF
    sums = (np.bincount(cell, weights=each, minlength=cells) for each in (high, middle, low))
    return [int(a) * UNIT + int(b) * int(_HALF) + int(c) for a, b, c in zip(*sums, strict=True)]
