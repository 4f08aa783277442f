"""What the numbers of single lists add up to: exact sums by slice and group.

Here: sums in memory while lists come.  What a list is worth is computed by metrics; which measures
are added up, and where the sums go, stands in list_stats.

Not here: what is added up (``list_stats``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metrics import UNIT, Measure, PerList
from metrics.weights import IntArray
from pipeline.counts.bucket_sums import BucketTotals
from pipeline.counts.exact_sums import scaled_sums
from pipeline.errors import AuditError

Part = tuple[str, str]
"""A slice and its value."""


@dataclass
class ListSums:
    """Exact sums over lists, by slice and group."""

    buckets: BucketTotals[tuple[Any, ...]] = field(default_factory=BucketTotals)
    lists: dict[tuple[Any, ...], int] = field(default_factory=dict)
    value: dict[tuple[Any, ...], int] = field(default_factory=dict)
    weight: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def add(self, key: tuple[Any, ...], lists: int, value: int, weight: int) -> None:
        """Add the numbers of some lists, scaled by UNIT, to the sums of a slice and group."""
        for sums, one in ((self.lists, lists), (self.value, value), (self.weight, weight)):
            sums[key] = sums.get(key, 0) + one


@dataclass(frozen=True)
class SliceCodes:
    """Which sums the numbers of some lists belong to: a code per list, and what codes mean."""

    code: IntArray
    parts: Sequence[Part]

    def keys(self, names: Sequence[str | None]) -> list[tuple[Part, str | None]]:
        """Slice and group of each cell, where a list has one cell per group of ``names``."""
        return [(part, name) for part in self.parts for name in names]


def add_lists(
    measure: Measure,
    sums: ListSums,
    per_list: PerList,
    groups: Sequence[str] | None,
    slices: Sequence[SliceCodes],
    bucket: IntArray,
) -> None:
    """Add the numbers of some lists to ``sums``, under (slice, group)."""
    names: Sequence[str | None] = (None,) if groups is None else groups
    value = per_list.value.reshape(-1, len(names))
    weight = (
        np.ones(value.shape) if per_list.weight is None else per_list.weight.reshape(value.shape)
    )
    defined = ~np.isnan(value)
    if not (np.isfinite(value[defined]).all() and np.isfinite(weight[defined]).all()):
        raise AuditError(
            f"{measure.label} is not finite on some list; nothing was stored. "
            "This is a fault of the program: please report it."
        )
    which, group = np.nonzero(defined)
    values, weights = value[which, group], weight[which, group]
    for table in slices:
        cell = table.code[which] * len(names) + group
        keys = table.keys(names)
        cells = len(keys)
        sums.buckets.add(keys, cell, bucket[which], values, weights)
        lists = np.bincount(cell, minlength=cells)
        totals = scaled_sums(values, cell, cells)
        # Most lists weigh 1 each, and counting them has just been done.
        plain = per_list.weight is None
        whole = [n * UNIT for n in lists.tolist()] if plain else scaled_sums(weights, cell, cells)
        for at in np.flatnonzero(lists).tolist():
            sums.add(keys[at], int(lists[at]), totals[at], whole[at])
