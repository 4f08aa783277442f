"""What a measure asks of counts: found by letting it compute, so it is declared nowhere twice.

Not here: reading what is asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from metrics.base import Measure
from metrics.counts import (
    Counts,
    ItemCounts,
    ListSums,
    PairCounts,
    PrefixCounts,
    RankHistogram,
)
from metrics.evaluate import evaluate
from metrics.weights import FloatArray

Total = tuple[str, bytes | None]
"""A sum over the rank histogram: its column, and the weight of each rank, as bytes."""


def total_of(column: str, weight: FloatArray | None) -> Total:
    """The name of a sum over ranks 1..n; ``weight`` has shape (n,), None where all weigh 1."""
    return column, None if weight is None else weight.tobytes()


@dataclass(frozen=True)
class Asked:
    """What one measure is computed from.

    ``fields`` are those of Counts; ``totals`` the sums over the rank histogram, each with the
    weights of the ranks.
    """

    fields: frozenset[str]
    totals: Mapping[Total, FloatArray | None]

    @property
    def weighted(self) -> tuple[tuple[Total, FloatArray], ...]:
        """The sums in which ranks weigh differently."""
        return tuple((name, each) for name, each in self.totals.items() if each is not None)


@dataclass(frozen=True)
class _Watched(Counts):
    """Counts of two groups at each rank that note what they are asked for."""

    seen: set[str] = field(default_factory=set)
    totals: dict[Total, FloatArray | None] = field(default_factory=dict)

    def __getattribute__(self, name: str) -> Any:
        if name in Counts.__dataclass_fields__:
            object.__getattribute__(self, "seen").add(name)
        return super().__getattribute__(name)

    def total(self, column: str, weight: FloatArray | None = None) -> FloatArray:
        """Note the sum, and give it: every count is 1."""
        depth = len(self.ranks.rank) // 2
        own = None if weight is None else weight[:depth]
        self.totals[total_of(column, own)] = own
        return np.full(2, float(depth) if own is None else own.sum())


# Weights are as long as lists are deep: a few batches' worth of them is enough.
@lru_cache(maxsize=64)
def asked(measure: Measure, depth: int) -> Asked:
    """What ``measure`` asks of counts whose lists have ranks 1..``depth``."""
    counts = _two_groups(measure, depth)
    evaluate(measure, counts)
    return Asked(frozenset(counts.seen), counts.totals)


def _two_groups(measure: Measure, depth: int) -> _Watched:
    """Two groups at every rank, everything known: no metric has a reason to stop early."""
    one, share = np.array([1, 1]), np.array([0.5, 0.5])
    sums = ListSums(one, share, share)
    ones = np.ones(2 * depth, dtype=np.int64)
    return _Watched(
        lists=1,
        groups=("a", "b"),
        ranks=RankHistogram(
            group=np.repeat([0, 1], depth),
            rank=np.tile(np.arange(1, depth + 1), 2),
            rows=ones,
            judged=ones,
            relevant=ones,
            relevance=ones.astype(float),
            click_known=ones,
            click=ones.astype(float),
        ),
        binary=True,
        pairs=PairCounts(one, share),
        prefixes=PrefixCounts(share, share, share),
        items=ItemCounts(1.0, 1.0, 1, 1.0, 1.0, 1),
        catalogue={"a": 1, "b": 1},
        target={"a": 0.5, "b": 0.5},
        known_rows=dict.fromkeys(("rows", *measure.columns), 2),
        list_sums={(measure.label, reading): sums for reading in measure.list_functions},
    )
