"""How values are counted and added up: which ones count, and sums that are exact in any order.

Each rule stands here once for arrays and once as SQL, side by side.  In arrays NaN is a value that
is not known, in SQL null is.

Not here: what is summed by which key, and tables.
"""

from dataclasses import dataclass

import numpy as np

from metrics import UNIT
from metrics.weights import BoolArray, FloatArray, IntArray
from pipeline.log.screening import NOT_BINARY

HALF_BITS = 30
"""A scaled number is up to 2^60: its halves stay below 2^31, so that billions of them can be added
in 64 bits, and millions exactly as doubles."""
HALF = 1 << HALF_BITS

# --- Which values count


def is_known(values: FloatArray) -> BoolArray:
    """Which values are known; any shape."""
    return ~np.isnan(values)


def count_known(column: str) -> str:
    """SQL of how many values of a column are known."""
    return f"count({column})"


def is_graded(values: FloatArray) -> BoolArray:
    """Which values are known and neither 0 nor 1; any shape."""
    graded: BoolArray = (values != 0.0) & (values != 1.0) & is_known(values)
    return graded


def count_graded(column: str) -> str:
    """SQL of how many values of a column are known and neither 0 nor 1."""
    return f"count(*) FILTER ({NOT_BINARY.format(column)})"


def is_relevant(relevance: FloatArray, relevant_from: float) -> BoolArray:
    """Which rows count as relevant, those of unknown relevance never; any shape."""
    return relevance >= relevant_from


def count_relevant(column: str, relevant_from: float) -> str:
    """SQL of how many rows count as relevant."""
    return f"count(*) FILTER ({column} >= {relevant_from!r})"


# --- Real numbers as whole ones, rounded once, halves to even


def whole_numbers(values: FloatArray, unit: int) -> IntArray:
    """``values * unit`` as integers; any shape."""
    whole: IntArray = np.rint(values * float(unit)).astype(np.int64)
    return whole


def scaled(value: str, unit: int) -> str:
    """SQL of the same: a cast rounds as numpy does."""
    return f"CAST(({value}) * {float(unit)!r}::DOUBLE AS BIGINT)"


# --- Whole numbers in two halves


def halves(whole: IntArray) -> tuple[IntArray, IntArray]:
    """High and low half of integers: ``high * HALF + low``, low never negative; any shape."""
    return whole >> HALF_BITS, whole & (HALF - 1)


def halves_of_doubles(whole: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same of integers that are stored as doubles: below 2^53 they add up exactly."""
    high = np.floor(whole / HALF)
    return high, whole - high * HALF


def double_of(high: IntArray, low: IntArray) -> FloatArray:
    """Numbers in two halves as doubles, as DuckDB makes them of 128 bits: 64 and 64."""
    lower = (high.astype(np.uint64) << np.uint64(HALF_BITS)) + low.astype(np.uint64)
    upper = high + (low >> HALF_BITS) >> 64 - HALF_BITS
    found: FloatArray = lower.astype(np.float64) + upper.astype(np.float64) * 2.0**64
    return found


def half_names(name: str) -> tuple[str, str]:
    """What the two halves of a column are called."""
    return f"{name}_high", f"{name}_low"


def joined(name: str, aggregate: str = "") -> str:
    """SQL of the number that two halves stand for, or of an aggregate of them such as ``sum``."""
    high, low = (f"{aggregate}({half})" if aggregate else half for half in half_names(name))
    return f"({high}::HUGEINT * {HALF} + {low})"


@dataclass(frozen=True)
class Shares:
    """A column of numbers in [0, 1], shape (rows,), ready to be added up.

    ``known`` is None where every row has one; ``ones`` says which are 1.  Where all are 0 or 1, as
    most are, ``graded`` and ``halves`` are None; else they say which are neither, and hold the
    halves of the scaled numbers, 0 where one is missing.
    """

    values: FloatArray
    known: BoolArray | None
    ones: BoolArray
    graded: BoolArray | None
    halves: tuple[IntArray, IntArray] | None

    @classmethod
    def of(cls, values: FloatArray, *, complete: bool) -> "Shares":
        """``values`` with NaN where one is missing; ``complete`` promises that none is."""
        known = None if complete else is_known(values)
        ones = values == 1.0
        graded = is_graded(values)
        if not graded.any():
            return cls(values, known, ones, None, None)
        numbers = values if known is None else np.where(known, values, 0.0)
        return cls(values, known, ones, graded, halves(whole_numbers(numbers, UNIT)))

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


# --- Real numbers of any size, in pieces that add up exactly as doubles


def scaled_sums(values: FloatArray, cell: IntArray, cells: int) -> list[int]:
    """Sum of ``values``, each rounded once to a multiple of 1 / UNIT, by cell: exact integers.

    Whole numbers below 2^53 add up exactly as doubles, so a value goes in as three such pieces.
    """
    whole = np.rint(values * float(UNIT))
    # Cut towards 0, so that what is left has no more digits than there were.
    high = np.trunc(whole / UNIT)
    rest = whole - high * UNIT
    middle = np.trunc(rest / HALF)
    low = rest - middle * HALF
    sums = (np.bincount(cell, weights=piece, minlength=cells) for piece in (high, middle, low))
    return [int(a) * UNIT + int(b) * HALF + int(c) for a, b, c in zip(*sums, strict=True)]


_COARSE, _FINE = 2.0**20, 2.0**50
"""What numbers are multiples of, in two pieces: sums below 2^33 of less than 2^23 numbers, as
those of one bucket are, do not depend on the order of adding."""


def double_pieces(numbers: FloatArray) -> FloatArray:
    """Whole numbers of 1 / _COARSE, and of 1 / _FINE for the rest; shape (2, numbers)."""
    coarse = np.trunc(numbers * _COARSE)
    return np.stack([coarse, np.rint((numbers - coarse / _COARSE) * _FINE)])


def from_pieces(coarse: FloatArray, fine: FloatArray) -> FloatArray:
    """The numbers that sums of the two pieces stand for."""
    return coarse / _COARSE + fine / _FINE
