"""NDKL in whole numbers: what each row adds to the sums over prefixes.

With step and tail as in ``metrics.fairness.prefixes``, and

    a(k, i) = sum over j of  step[j](k) tail[j](i),

the k-th row of a group at position i adds ``a(k, n) - a(k, i - 1)`` to the entropy part of a list
of n, and ``tail[1](n) - tail[1](i - 1)`` to the share.  Both tables are rounded to multiples of
2^-FINE, and from there on only added and subtracted: whole numbers that wrap at 2^64 on the way, so
that only what comes out must fit.  It is at most tail[0](n), which is below 2^16 in lists of a
million rows.

Not here: the sums by slice and group (``group_counts``).
"""

from functools import cached_property

import numpy as np

from metrics import PREFIX_UNIT
from metrics.fairness.prefixes import TERMS, steps, tails
from metrics.weights import FloatArray, IntArray

_FINE = 2.0**46
"""Sums are below 2^16: scaled they stay below 2^62, inside 64 bits."""
_MOST_ENTRIES = 1 << 20
"""Entries of a table by ordinal and position, up to which one is made: 8 MB, lists of 1,000."""


class PrefixTerms:
    """The two sums of NDKL over rows, for lists of up to ``depth`` rows."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._tails, self._steps = tails(depth), steps(depth)
        self._shares = np.rint(self._tails[:, 1] * _FINE).astype(np.int64)
        self._width = depth + 1

    def _terms(self, k: IntArray, i: IntArray) -> IntArray:
        """``a(k, i)`` as a whole number; the shapes of ``k`` and ``i`` are broadcast."""
        total: FloatArray = self._steps[k, 0] * self._tails[i, 0]
        for j in range(1, TERMS):
            total = total + self._steps[k, j] * self._tails[i, j]
        found: IntArray = np.rint(total * _FINE).astype(np.int64)
        return found

    @cached_property
    def _table(self) -> IntArray | None:
        """All terms, by ordinal and then position; None where there are too many."""
        if self._width**2 > _MOST_ENTRIES:
            return None
        at = np.arange(self._width)
        return self._terms(at[:, None], at[None, :])

    @cached_property
    def _to_ordinal(self) -> IntArray | None:
        return None if self._table is None else np.cumsum(self._table, axis=0)

    def sums(
        self, position: IntArray, starts: IntArray, own: IntArray, length: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Entropy and share of each group of each list, scaled by PREFIX_UNIT.

        ``position`` holds the rows of a group in a list one after the other, top first, from
        ``starts`` on; ``own`` is how many, ``length`` how many the list has.
        """
        above = position - 1
        k = np.arange(1, len(position) + 1) - np.repeat(starts, own)
        if self._table is None or self._to_ordinal is None:
            rows = self._terms(k, np.repeat(length, own)) - self._terms(k, above)
            entropy = np.add.reduceat(rows, starts)
        else:
            entropy = self._to_ordinal[own, length]
            k *= self._width
            k += above
            entropy = entropy - np.add.reduceat(self._table.ravel().take(k), starts)
        share = own * self._shares[length] - np.add.reduceat(self._shares.take(above), starts)
        unit = PREFIX_UNIT / _FINE / self._tails[length, 0]
        return _rounded(entropy * unit), _rounded(share * unit)


def _rounded(values: FloatArray) -> IntArray:
    found: IntArray = np.rint(values).astype(np.int64)
    return found
