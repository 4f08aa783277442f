"""Whole lists, one after another: what metrics are computed from that no histogram can hold.

A function of lists takes ``Rankings``, some thousand lists at a time, and returns a number per
list, or per list and group.  The numbers of a list depend on that list alone, to the last bit: not
on the lists beside it, nor on how many are held at a time.  Floats are therefore only ever summed
inside a list; running sums over all rows are for integers, where they are exact.

Not here: reading lists from a batch (``pipeline.counts``), and any metric.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from metrics.terms import Given
from metrics.weights import BoolArray, FloatArray, IntArray

Kind = TypeVar("Kind", bound=np.generic)


@dataclass(frozen=True)
class Grouping:
    """The groups of one attribute, for the rows of some lists.

    ``code`` gives the group of each row, shape (rows,), as an index into ``names``, which are in
    name order and may hold groups that no row has.  ``takes_part`` says which groups are compared:
    not the unknown one, unless configured.  ``target`` and ``catalogue`` are shares that add up to
    1, shape (groups,), None where there are none.
    """

    names: tuple[str, ...]
    code: IntArray
    takes_part: BoolArray
    target: FloatArray | None = None
    catalogue: FloatArray | None = None


@dataclass(frozen=True)
class Rankings:
    """Some whole lists, each of at least one row.

    Arrays of rows have shape (rows,), in the order of the lists and, inside a list, of position.
    ``starts`` is the index of each list's first row, shape (lists,).  ``rank`` is the logged rank,
    1 = top, which cut-offs and weights refer to.  ``relevance``, ``click``, ``propensity`` and
    ``predicted_click`` are NaN where unknown.  ``relevant`` is true where relevance reaches what
    the settings call relevant.  ``reference_rank`` is 0 for items that the reference ranking does
    not hold; ``reference_length`` is the depth of the reference ranking, shape (lists,), 0 where a
    list has none.

    For metrics of queries a list is a query, its rows are the items of all its lists, relevance is
    their mean, and ``exposure`` is the mean position weight that they received, shape (rows,).
    """

    starts: IntArray
    rank: IntArray
    relevance: FloatArray
    relevant: BoolArray
    click: FloatArray
    reference_rank: IntArray
    reference_length: IntArray
    propensity: FloatArray
    predicted_click: FloatArray
    grouping: Grouping | None = None
    exposure: FloatArray | None = None

    @property
    def lists(self) -> int:
        """How many lists there are."""
        return len(self.starts)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.rank)

    @cached_property
    def length(self) -> IntArray:
        """Rows of each list, shape (lists,)."""
        return np.diff(self.starts, append=self.rows)

    @cached_property
    def list_of(self) -> IntArray:
        """The list of each row, shape (rows,)."""
        return np.repeat(np.arange(self.lists), self.length)

    @cached_property
    def position(self) -> IntArray:
        """Place of each row in its list by order, 1..n; the rank where ranks have no gaps."""
        return np.arange(1, self.rows + 1) - np.repeat(self.starts, self.length)

    @property
    def groups(self) -> Grouping:
        """The groups of the attribute at hand."""
        if self.grouping is None:
            raise TypeError("these lists come without groups")
        return self.grouping

    def top(self, k: int) -> BoolArray:
        """Rows at or above the cut-off; all rows where ``k`` is 0, shape (rows,)."""
        return self.rank <= k if k else np.ones(self.rows, dtype=np.bool_)

    def sum(self, values: FloatArray | IntArray | BoolArray) -> FloatArray:
        """Sum over the rows of each list, shape (lists,)."""
        if self.lists == 0:
            return np.zeros(0)
        found: FloatArray = np.add.reduceat(values.astype(np.float64), self.starts)
        return found

    def count(self, values: IntArray | BoolArray) -> IntArray:
        """Sum of whole numbers over the rows of each list, shape (lists,), exact."""
        running = np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
        found: IntArray = running[self.starts + self.length] - running[self.starts]
        return found

    def running(self, values: IntArray | BoolArray) -> IntArray:
        """Running sum of whole numbers inside each list, the row itself included; exact."""
        whole = np.cumsum(values, dtype=np.int64)
        before = np.concatenate([[0], whole])[self.starts]
        found: IntArray = whole - np.repeat(before, self.length)
        return found

    def spread(self, values: npt.NDArray[Kind]) -> npt.NDArray[Kind]:
        """A number per list, repeated for each of its rows, shape (rows,)."""
        return np.repeat(values, self.length)

    def order(self, key: FloatArray | IntArray) -> IntArray:
        """Indices that sort each list by ``key``, lowest first, ties in the order of the list.

        Shape (rows,): lists stay where they are, so ``values[order]`` is again rows of whole lists.
        """
        found: IntArray = np.lexsort((key, self.list_of))
        return found

    def group_sum(self, values: FloatArray | IntArray | BoolArray) -> FloatArray:
        """Sum over the rows of each list and group, shape (lists, groups)."""
        groups = len(self.groups.names)
        cell = self.list_of * groups + self.groups.code
        found: FloatArray = np.zeros(self.lists * groups)
        found += np.bincount(cell, weights=values.astype(np.float64), minlength=len(found))
        return found.reshape(self.lists, groups)

    @cached_property
    def repeats_reference(self) -> BoolArray:
        """Lists in which two items have the same reference rank, shape (lists,)."""
        order = self.order(self.reference_rank)
        ranks = self.reference_rank[order]
        again = np.zeros(self.rows, dtype=np.bool_)
        again[1:] = (ranks[1:] == ranks[:-1]) & (ranks[1:] > 0) & (self.position[1:] > 1)
        return self.count(again) > 0

    @cached_property
    def group_size(self) -> FloatArray:
        """Rows of each group in each list, shape (lists, groups)."""
        return self.group_sum(np.ones(self.rows))


@dataclass(frozen=True)
class PerList:
    """What a function of lists returns: shape (lists,), or (lists, groups).

    ``value`` is NaN where a list has none: it is then left out, and counted.  Without ``weight``
    the batch has the mean of the values; with it, the sum of values over the sum of weights, which
    has the same shape and is never negative.
    """

    value: FloatArray
    weight: FloatArray | None = None


ListFunction = Callable[[Rankings, Given], PerList]
