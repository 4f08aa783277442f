"""Distinct items of each group in each slice: how many people a number is about.

Counted from the stored rows by statements, for a batch that was counted before there was this
count as for a new one.

Not here: items of a slice, which ``item_gaps`` has, and what is too few (``privacy.small_cells``).
"""

import duckdb

from pipeline.counts.sql import Counting, attribute_structs
from pipeline.settings.audit import Settings
from pipeline.store.tables import add_columns, transaction
from schemas.columns import internal
from schemas.counts import PREFIX_STATS
from schemas.stored_log import LOG_ROWS


def fill_group_items(counting: Counting) -> None:
    """Fill the column ``items`` of prefix_stats from the stored rows of the batch."""
    database, settings = counting.database, counting.settings
    if not settings.attributes:
        return
    slices = "".join(f", {internal(name)}" for name in settings.slices)
    counting.need_rows()
    # Rows repeat items far more often than lists have other slices, or items other groups.
    shown = (
        f"(SELECT DISTINCT item, cell{slices} FROM {database}.{LOG_ROWS.name} "
        f"JOIN {database}.log_lists USING (list))"
    )
    sliced = f"(SELECT DISTINCT * FROM ({counting.by_slice(shown, 'item, cell')}))"
    grouped = (
        "SELECT slice, slice_value, item, g.attribute AS attribute, g.group_value AS group_value "
        f"FROM (SELECT slice, slice_value, item, unnest({attribute_structs(settings)}) AS g "
        f"FROM {sliced} JOIN {database}.log_cells USING (cell))"
    )
    key = ("slice", "slice_value", "attribute", "group_value")
    same = " AND ".join(f"stats.{name} = found.{name}" for name in key)
    counting.connection.execute(
        f"UPDATE {database}.{PREFIX_STATS.name} AS stats SET items = found.items "
        f"FROM (SELECT {', '.join(key)}, count(DISTINCT item) AS items FROM ({grouped}) "
        f"GROUP BY ALL) AS found WHERE {same}"
    )


def add_group_items(connection: duckdb.DuckDBPyConnection, settings: Settings, name: str) -> None:
    """Count them for a batch of before, in the attached database ``name``, if it keeps its rows."""
    add_columns(connection, name, PREFIX_STATS)
    counting = Counting(connection, settings, name)
    uncounted = f"SELECT 1 FROM {counting.database}.{PREFIX_STATS.name} WHERE items IS NULL LIMIT 1"
    kept = "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND table_name = 'log_entries'"
    if connection.execute(uncounted).fetchall() and connection.execute(kept, [name]).fetchall():
        with transaction(connection):
            fill_group_items(counting)
