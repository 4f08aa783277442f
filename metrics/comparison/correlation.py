"""Order of two rankings compared pair by pair, and as series of numbers.

A list shows its items in a strict order, so ties are those of the reference alone.  Items without
a reference are in no pair.  With fewer than two pairs in strict order (two items, or all of them
tied) a list has no value: one pair alone could only say +1 or -1.

Not here: how much of two prefixes is the same (``overlap``).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from metrics.rankings import Kind, PerList, Rankings
from metrics.terms import Given
from metrics.weights import BoolArray, FloatArray, IntArray

_FEWEST = 3
"""Items that it takes for two pairs in strict order: one pair alone could only say +1 or -1."""


def inversions(values: IntArray, starts: IntArray) -> IntArray:
    """Pairs of each list in which the earlier value is the higher one, shape (lists,); exact.

    ``values``, shape (rows,), are whole numbers from 0; ``starts`` is the index of the first row of
    each list, which has at least one.  Lists are sorted bit by bit, the highest first: rows that
    agree in all bits so far form a block, and where two rows of a block part, the one with the bit
    is the higher.  The cost grows with rows times the bits of the highest value.

    >>> inversions(np.array([2, 0, 1, 0, 0]), np.array([0, 3]))
    array([2, 0])
    """
    rows = len(values)
    found = np.zeros(len(starts), dtype=np.int64)
    if rows == 0:
        return found
    here = np.arange(rows)
    length = np.diff(starts, append=rows)
    start, end = np.repeat(starts, length), np.repeat(starts + length, length)
    for bit in reversed(range(int(values.max()).bit_length())):
        high = (values >> bit) & 1
        ones = np.concatenate([[0], np.cumsum(high)])
        before = ones[here] - ones[start]
        found += np.add.reduceat(before * (1 - high), starts)
        # Zeros move to the front of their block and ones to its end, each in the order they have.
        border = end - (ones[end] - ones[start])
        is_high = high == 1
        place = np.where(is_high, border + before, here - before)
        moved = np.empty_like(values)
        moved[place] = values
        values = moved
        parted = np.where(is_high, border, start), np.where(is_high, end, border)
        start, end = np.empty_like(start), np.empty_like(end)
        start[place], end[place] = parted
    return found


@dataclass(frozen=True)
class Paired:
    """Items that both rankings hold, of the lists in which enough of them can be compared.

    ``among`` says which lists those are, by index; the rest is shaped like Rankings, with only
    these items.  ``rank`` is the logged rank and ``other`` the number to compare it with, lowest
    first.
    """

    all_lists: int
    among: IntArray
    starts: IntArray
    rank: FloatArray
    other: FloatArray

    @cached_property
    def length(self) -> IntArray:
        """Items of each list."""
        return np.diff(self.starts, append=len(self.rank))

    def spread(self, values: npt.NDArray[Kind]) -> npt.NDArray[Kind]:
        """A number per list, repeated for each item."""
        return np.repeat(values, self.length)

    def sum(self, values: npt.NDArray[Kind]) -> npt.NDArray[Kind]:
        """Sum over the items of each list, exact for whole numbers."""
        found: npt.NDArray[Kind] = (
            np.add.reduceat(values, self.starts) if len(self.among) else values
        )
        return found

    @cached_property
    def _sorted(self) -> tuple[IntArray, BoolArray]:
        """Indices that sort each list by ``other``, and where a higher value begins."""
        order = np.lexsort((self.other, self.spread(np.arange(len(self.among)))))
        value = self.other[order]
        higher = np.empty(len(value), dtype=np.bool_)
        higher[1:] = value[1:] != value[:-1]
        higher[self.starts] = True
        return order, higher

    @cached_property
    def _runs(self) -> tuple[IntArray, IntArray]:
        """Where runs of tied items begin, in the sorted order, and how long they are."""
        begins = np.flatnonzero(self._sorted[1])
        return begins, np.diff(begins, append=len(self.rank))

    @cached_property
    def place(self) -> IntArray:
        """Twice the mean place of each item by ``other``, 1 = lowest, ties sharing theirs."""
        order, _ = self._sorted
        begins, size = self._runs
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.repeat(2 * begins + size + 1, size) - 2 * self.spread(self.starts)
        return place

    @cached_property
    def level(self) -> IntArray:
        """How many different values of the list lie below the item's ``other``."""
        order, higher = self._sorted
        steps = np.cumsum(higher)
        level = np.empty(len(order), dtype=np.int64)
        level[order] = steps - self.spread(steps[self.starts])
        return level

    @cached_property
    def pairs(self) -> IntArray:
        """Pairs of items, shape (lists,)."""
        found: IntArray = self.length * (self.length - 1) // 2
        return found

    @cached_property
    def ordered(self) -> IntArray:
        """Pairs that the reference orders strictly, shape (lists,)."""
        begins, size = self._runs
        tied = np.zeros(len(self.rank), dtype=np.int64)
        tied[begins] = size * (size - 1) // 2
        return self.pairs - self.sum(tied)

    @cached_property
    def contradicted(self) -> IntArray:
        """Pairs that the list orders the other way round, shape (lists,)."""
        return inversions(self.level, self.starts)

    def scattered(self, values: FloatArray) -> PerList:
        """Numbers of the lists that can be compared, put beside NaN for the others."""
        found = np.full(self.all_lists, np.nan)
        found[self.among] = np.where(self.ordered > 1, values, np.nan)
        return PerList(found)


def paired(lists: Rankings, given: Given) -> Paired:
    """The items of each list that the reference ranks too."""
    if given["reference"] == "relevance":
        other = -lists.relevance
        known = ~np.isnan(other)
    else:
        other = lists.reference_rank.astype(np.float64)
        known = lists.reference_rank > 0
    size = lists.count(known)
    enough = size >= _FEWEST
    kept = known & lists.spread(enough)
    sizes = size[enough]
    return Paired(
        lists.lists,
        np.flatnonzero(enough),
        np.cumsum(sizes) - sizes,
        lists.rank[kept].astype(np.float64),
        other[kept],
    )


def ndpm(lists: Rankings, given: Given) -> PerList:
    """Share of the pairs that the reference orders and the list contradicts, per list.

    A pair that the list left tied would count half; a list ties none.  Source: Yao 1995.
    """
    both = paired(lists, given)
    return both.scattered(both.contradicted / np.maximum(both.ordered, 1))


def fcp(lists: Rankings, given: Given) -> PerList:
    """Share of the pairs that the reference orders and the list orders alike, per list.

    Source: Koren & Sill 2013.
    """
    both = paired(lists, given)
    return both.scattered((both.ordered - both.contradicted) / np.maximum(both.ordered, 1))


def kendall(lists: Rankings, given: Given) -> PerList:
    """Kendall's tau-b per list.  Source: Kendall 1945."""
    both = paired(lists, given)
    # The product may pass what an integer holds; the root of a square is exact as a double.
    whole = np.sqrt(both.pairs.astype(np.float64) * both.ordered)
    return both.scattered((both.ordered - 2 * both.contradicted) / np.maximum(whole, 1.0))


def spearman(lists: Rankings, given: Given) -> PerList:
    """Spearman's rho per list: the correlation of places, tied ones sharing theirs.

    Places are doubled and taken from the middle of the list, so that all sums are whole numbers.
    """
    both = paired(lists, given)
    middle = both.spread(both.length + 1)
    own = 2 * (np.arange(1, len(both.rank) + 1) - both.spread(both.starts)) - middle
    other = both.place - middle
    covered, own_square, other_square = (
        both.sum(each).astype(np.float64) for each in (own * other, own * own, other * other)
    )
    return both.scattered(covered / np.sqrt(np.maximum(own_square * other_square, 1.0)))


def pearson(lists: Rankings, given: Given) -> PerList:
    """Pearson's correlation of ranks with reference ranks, or with relevance turned round."""
    both = paired(lists, given)
    own, other = (_centred(both, each) for each in (both.rank, both.other))
    norm = np.sqrt(both.sum(own * own) * both.sum(other * other))
    found = both.sum(own * other) / np.where(norm > 0, norm, 1.0)
    return both.scattered(np.clip(found, -1.0, 1.0))


def _centred(both: Paired, values: FloatArray) -> FloatArray:
    """``values`` of each list less their mean, on a scale from lowest to highest.

    Taken from the lowest first: what differs in its last digits only would be lost to a mean.
    """
    if not len(both.among):
        return values
    low, high = np.minimum.reduceat(values, both.starts), np.maximum.reduceat(values, both.starts)
    scale = np.where(high > low, high - low, 1.0)
    scaled = (values - both.spread(low)) / both.spread(scale)
    centred: FloatArray = scaled - both.spread(both.sum(scaled) / both.length)
    return centred
