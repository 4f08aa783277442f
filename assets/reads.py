"""Which count tables a metric reads.

Not here: reading them (``pipeline.counts.stored_counts``); it is lineage, for the catalogue.
"""

from collections.abc import Iterable

from metrics import Measure, asked
from pipeline.settings.audit import Settings
from schemas.columns import Table
from schemas.counts import (
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


def count_tables(settings: Settings) -> list[Table]:
    """The count tables of an audit: list_stats only where a measure looks at lists."""
    lists = any(measure.uses_lists for measure in settings.measures)
    return [table for table in COUNT_TABLES if lists or table is not LIST_STATS]


def tables_read(measures: Iterable[Measure]) -> list[Table]:
    """The count tables that ``measures`` are computed from."""
    fields = {field for measure in measures for field in asked(measure, 2).fields}
    seen = {_TABLE_OF[field].name for field in fields if field in _TABLE_OF}
    return [table for table in COUNT_TABLES if table.name in seen]
