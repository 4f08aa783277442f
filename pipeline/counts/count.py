"""From accepted rows to additive integers: the order in which a batch is counted.

Rows are read once, a few thousand lists at a time; what they add up to goes to the session, and
from there, slice by slice, to the count tables.  What a table holds and how it is filled stands in
the module of that name, never here.

Not here: any statement; each table's stand in its own module.
"""

import duckdb

from pipeline.counts.dimensions import dimensions_of
from pipeline.counts.group_counts import fill_group_counts
from pipeline.counts.item_counts import count_items
from pipeline.counts.list_stats import fill_list_stats
from pipeline.counts.mix_counts import fill_mix_counts, sample_lists
from pipeline.counts.one_pass import OnePass
from pipeline.counts.rank_counts import fill_rank_counts
from pipeline.counts.slice_counts import fill_model_versions, fill_slice_counts, make_positions
from pipeline.counts.sql import Counting
from pipeline.log.accepted_rows import AcceptedLog
from pipeline.settings.audit import Settings
from pipeline.store.tables import create, transaction
from schemas.columns import quoted
from schemas.counts import COUNT_TABLES


def count_batch(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    database: str,
    rows: AcceptedLog | None = None,
    *,
    evidence: bool = True,
) -> dict[str, int]:
    """Fill the count tables of ``database`` from its accepted rows; returns rows per table.

    ``rows`` are these, where they are in hand; else they are read from the file.  list_stats holds
    the measures of the settings that look at lists; every other table serves measures that nobody
    has asked for yet, too; what no score needs is left out without ``evidence``.  AuditError where
    the file has no rows in the layout of this version.
    """
    create(connection, database, *COUNT_TABLES)
    counting = Counting(connection, settings, database, rows, evidence=evidence)
    with transaction(connection):
        for table in COUNT_TABLES:
            if table.name != "group_sizes":
                connection.execute(f"DELETE FROM {quoted(database)}.{table.name}")
        dimensions = dimensions_of(counting)
        make_positions(counting, dimensions)
        if evidence:
            sample_lists(counting)
        counters = OnePass(counting, dimensions)
        counters.run()
        fill_slice_counts(counting, dimensions)
        fill_model_versions(counting)
        with counters.histogram():
            fill_rank_counts(counting)
        for attribute in dimensions.groups:
            counters.store(attribute)
            fill_group_counts(counting, attribute)
            fill_mix_counts(counting, attribute)
        counters.fill()
        count_items(counting, dimensions)
        fill_list_stats(counting, dimensions)
    return {
        table.name: _count(connection, f"{quoted(database)}.{table.name}") for table in COUNT_TABLES
    }


def _count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])
