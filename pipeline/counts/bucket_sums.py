"""Sums by bucket of queries, of numbers that come a few thousand lists at a time.

Here: sums in memory, for list_stats.  Sums by bucket that statements make are added to the table by
``Counting.fill_buckets``.

Not here: what intervals make of them (``scores.evidence``).
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from metrics.weights import FloatArray, IntArray
from pipeline.counts.exact_sums import double_pieces, from_pieces
from schemas.counts import BUCKETS

Key = TypeVar("Key", bound=Hashable)

_WAITING = 50_000
"""Sums that may wait to be added together, beside twice those that there are.

A few MB; with fewer waiting, the same sums are sorted more often."""


@dataclass
class BucketTotals(Generic[Key]):
    """Sums of values and weights for each key and bucket."""

    _numbers: dict[Key, int] = field(default_factory=dict)
    _held: list[tuple[IntArray, FloatArray]] = field(default_factory=list)
    _most: int = _WAITING

    def add(
        self,
        keys: Sequence[Key],
        code: IntArray,
        bucket: IntArray,
        value: FloatArray,
        weight: FloatArray,
    ) -> None:
        """Add numbers: ``code`` indexes ``keys``; all arrays have one entry per number."""
        numbers = np.array([self._numbers.setdefault(key, len(self._numbers)) for key in keys])
        if len(code):
            pieces = np.concatenate([double_pieces(value), double_pieces(weight)])
            self._held.append(_added(numbers[code] * BUCKETS + bucket, pieces))
            if sum(len(cell) for cell, _ in self._held) > self._most:
                self._held = [self._together()]
                self._most = 2 * len(self._held[0][0]) + _WAITING

    def _together(self) -> tuple[IntArray, FloatArray]:
        cells, sums = zip(*self._held, strict=True)
        return _added(np.concatenate(cells), np.concatenate(sums, axis=1))

    def totals(self) -> Iterator[tuple[Key, IntArray, FloatArray, FloatArray]]:
        """Each key with its buckets, ascending, and their sums of values and of weights."""
        if not self._held:
            return
        cells, sums = self._together()
        edges = np.searchsorted(cells, np.arange(len(self._numbers) + 1) * BUCKETS)
        for key, number in self._numbers.items():
            here = slice(edges[number], edges[number + 1])
            if here.start < here.stop:
                value, weight = from_pieces(sums[0::2, here], sums[1::2, here])
                yield key, cells[here] % BUCKETS, value, weight


def _added(cell: IntArray, numbers: FloatArray) -> tuple[IntArray, FloatArray]:
    """Sums of each row of ``numbers`` by cell, and the cells there are, ascending."""
    found, place = np.unique(cell, return_inverse=True)
    sums = [np.bincount(place, weights=each, minlength=len(found)) for each in numbers]
    return found, np.stack(sums)
