"""What scores are made of: additive counts of one slice and one attribute, as arrays.

Reading them from a database is the caller's work.  Sums of relevance and click arrive as scaled
integers (value * UNIT), sums of prefix terms as value * PREFIX_UNIT, so that adding them never
rounds; the arrays here are those sums divided by the unit, a power of two, which is exact.

Not here: counting, and formulas on counts (``terms``).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import fsum

import numpy as np

from metrics.weights import BoolArray, FloatArray, IntArray

UNIT = 2**60
"""What numbers up to 1 are scaled by: they keep 18 decimals, and fit into 64 bits."""
PREFIX_UNIT = 2**56
"""The same for the parts of NDKL, which grow to ln(1 / SMOOTHING), about 2^4."""
UNKNOWN = "unknown"
WHOLE = "all"
COMPARED = 2
"""Groups that a comparison needs: one alone is never unequal."""


def added(values: FloatArray) -> float | FloatArray:
    """Sum over groups, shape (..., groups) to (...); exactly rounded for one batch."""
    if values.ndim == 1:
        return fsum(values)
    found: FloatArray = values.sum(axis=-1)
    return found


@dataclass(frozen=True)
class RankHistogram:
    """Rows counted per group and rank; every array has shape (cells,), sorted by group, then rank.

    ``group`` indexes ``Counts.groups``.  ``relevant`` counts rows that the settings call relevant,
    those of relevance 1 among them, ``judged`` and ``click_known`` rows whose relevance or click is
    not missing.
    """

    group: IntArray
    rank: IntArray
    rows: IntArray
    judged: IntArray
    relevant: IntArray
    relevance: FloatArray
    click_known: IntArray
    click: FloatArray


@dataclass(frozen=True)
class PairCounts:
    """Mixed pairs per group, shape (groups,): lists that hold any, and the sum of shares won."""

    lists: IntArray
    share: FloatArray


@dataclass(frozen=True)
class PrefixCounts:
    """NDKL's parts per group, shape (groups,), summed over lists.

    ``entropy``: sum of smoothed p ln p over prefixes, weighted and normalised per list, less its
    value for an absent group.  ``share``: weighted share of the prefixes.  ``own``: the group's
    part of the divergence from its list's own mix.
    """

    entropy: FloatArray
    share: FloatArray
    own: FloatArray


@dataclass(frozen=True)
class ItemCounts:
    """Sums over items, for IAA and Gini, already divided by the unit.

    ``gap`` is the sum over items of |exposure - relevance|; ``share_gap`` the same after scaling
    exposure and relevance of each list to sum 1, over the ``share_lists`` that have any relevance.
    ``exposure`` is the sum over the ``items`` shown, and ``exposure_ranks`` the sum of each item's
    exposure times its place, 1 = least exposed.
    """

    gap: float
    share_gap: float
    share_lists: int
    exposure: float
    exposure_ranks: float
    items: int


@dataclass(frozen=True)
class ListSums:
    """What the lists of a slice add up to for one metric, or one reading of it.

    Shape (groups,) for metrics with a value per group, else (1,).  ``lists`` have a value;
    ``value`` and ``weight`` are sums over them, and the batch has their ratio.
    """

    lists: IntArray
    value: FloatArray
    weight: FloatArray


@dataclass(frozen=True)
class Counts:
    """All counts of one slice and one attribute.

    ``groups`` are in name order and may hold UNKNOWN.  ``binary`` is a fact of the whole batch:
    every relevance in it is 0 or 1.  ``catalogue`` gives the number of items per group in the item
    table, ``target`` the share each group should have; None where there is none.
    ``unknown_counts`` lets the unknown group take part in comparisons.  ``absent`` are groups of
    the batch without a row here that nothing says should be here: they are compared with nobody.
    ``known_rows`` counts the rows of the slice that have a value, by optional log column.
    ``list_sums`` are what list by list computation found, by label and reading.
    """

    lists: int
    groups: tuple[str, ...]
    ranks: RankHistogram
    binary: bool
    pairs: PairCounts | None = None
    prefixes: PrefixCounts | None = None
    items: ItemCounts | None = None
    catalogue: Mapping[str, int] | None = None
    target: Mapping[str, float] | None = None
    unknown_counts: bool = False
    absent: frozenset[str] = frozenset()
    known_rows: Mapping[str, int] = field(default_factory=dict)
    list_sums: Mapping[tuple[str, str | None], ListSums] = field(default_factory=dict)

    def total(self, column: str, weight: FloatArray | None = None) -> FloatArray:
        """Sum of ``column`` of the rank histogram over ranks, optionally weighted, shape (groups,).

        ``weight`` has shape (cells,).  The sum is exactly rounded, so it depends on the counts
        alone, not on their order or on zeros between them.
        """
        values = getattr(self.ranks, column).astype(np.float64)
        if weight is not None:
            values = values * weight
        edges = np.searchsorted(self.ranks.group, np.arange(len(self.groups) + 1)).tolist()
        cells = values.tolist()
        return np.array([fsum(cells[a:b]) for a, b in pairwise(edges)])

    @property
    def takes_part(self) -> BoolArray:
        """Which groups are compared, shape (groups,)."""
        return np.array(
            [
                group not in self.absent and (self.unknown_counts or group != UNKNOWN)
                for group in self.groups
            ]
        )

    @property
    def known(self) -> tuple[str, ...]:
        """The groups that have a name."""
        return tuple(group for group in self.groups if group != UNKNOWN)
