"""Which counts a metric reads: found by letting it compute, so it is declared nowhere twice."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from metrics import (
    Counts,
    ItemCounts,
    ListSums,
    Measure,
    PairCounts,
    PrefixCounts,
    RankHistogram,
    evaluate,
)
from pipeline.settings import Settings
from schemas.columns import Table
from schemas.tables import (
    ITEM_STATS,
    LIST_STATS,
    PAIR_STATS,
    PREFIX_STATS,
    RANK_COUNTS,
    SLICE_COUNTS,
)

COUNT_TABLES = (SLICE_COUNTS, RANK_COUNTS, PAIR_STATS, PREFIX_STATS, ITEM_STATS, LIST_STATS)
_TABLE_OF = {
    "lists": SLICE_COUNTS,
    "groups": RANK_COUNTS,
    "ranks": RANK_COUNTS,
    "pairs": PAIR_STATS,
    "prefixes": PREFIX_STATS,
    "items": ITEM_STATS,
    "known_rows": SLICE_COUNTS,
    "list_sums": LIST_STATS,
}
"""The table behind each field of Counts."""


class _Watched(Counts):
    """Counts that note which tables they are asked for."""

    def __getattribute__(self, name: str) -> Any:
        if name in _TABLE_OF:
            seen = super().__getattribute__("__dict__").setdefault("read", set())
            seen.add(_TABLE_OF[name].name)
        return super().__getattribute__(name)


def _two_groups(measure: Measure) -> _Watched:
    """One list of two groups, everything known: no metric has a reason to stop early."""
    one, share = np.array([1, 1]), np.array([0.5, 0.5])
    sums = ListSums(one, share, share)
    return _Watched(
        lists=1,
        groups=("a", "b"),
        ranks=RankHistogram(
            group=np.array([0, 1]),
            rank=np.array([1, 2]),
            rows=one,
            judged=one,
            relevant=one,
            relevance=one.astype(float),
            click_known=one,
            click=one.astype(float),
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


def count_tables(settings: Settings) -> list[Table]:
    """The count tables of an audit: list_stats only where a measure looks at lists."""
    lists = any(measure.uses_lists for measure in settings.measures)
    return [table for table in COUNT_TABLES if lists or table is not LIST_STATS]


def tables_read(measures: Iterable[Measure]) -> list[Table]:
    """The count tables that ``measures`` are computed from."""
    seen: set[str] = set()
    for measure in measures:
        counts = _two_groups(measure)
        evaluate(measure, counts)
        seen |= counts.__dict__["read"]
    return [table for table in COUNT_TABLES if table.name in seen]
