"""From accepted rows to additive integers.

Rows are read once, a few thousand lists at a time; what they add up to goes to the session, and
from there, slice by slice, to the count tables.  Sums run over integers only, so they do not depend
on threads, on the order of rows or on how a batch is split into files.  A real number (relevance,
an exposure, a share) is scaled to an integer once, where it arises.
"""

import duckdb
import numpy as np
import pyarrow

from metrics import PREFIX_UNIT, UNIT
from pipeline.counts.dimensions import KNOWN, Ground, survey
from pipeline.counts.group_counts import PREFIX_STATISTICS
from pipeline.counts.item_counts import count_items
from pipeline.counts.list_stats import ListMeasuring, arrow_of
from pipeline.counts.mix_counts import fill_mix_counts, sample_lists
from pipeline.counts.one_pass import OnePass
from pipeline.counts.slice_counts import scaled_exposures
from pipeline.counts.sql import Counting, attribute_structs
from pipeline.settings.audit import Settings
from pipeline.store.tables import create, transaction
from schemas.columns import internal, literal, quoted
from schemas.counts import (
    BUCKET_SUMS,
    LIST_STATS,
    MEASURED,
    MODEL_VERSIONS,
    PAIR_STATS,
    PREFIX_STATS,
    RANK_COUNTS,
    SLICE_COUNTS,
    bucket_counts,
)
from schemas.rules import LOGGED, POSITION, SCORE


def measure(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    database: str,
    *,
    evidence: bool = True,
) -> dict[str, int]:
    """Fill the count tables of ``database`` from its accepted rows; returns rows per table.

    list_stats holds the measures of the settings that look at lists; every other table serves
    measures that nobody has asked for yet, too; what no score needs is left out without
    ``evidence``.  AuditError where the file has no rows in the
    layout of this version.
    """
    create(connection, database, *MEASURED)
    measuring = _Measuring(connection, settings, database, evidence=evidence)
    with transaction(connection):
        for table in MEASURED:
            if table.name != "group_sizes":
                connection.execute(f"DELETE FROM {quoted(database)}.{table.name}")
        ground = survey(measuring)
        measuring.session(ground)
        counters = OnePass(measuring, ground)
        counters.run()
        measuring.lists(ground)
        with counters.histogram():
            measuring.rank_counts()
        for attribute in ground.groups:
            counters.store(attribute)
            measuring.pairs_and_prefixes(attribute)
        count_items(measuring)
        measuring.list_stats(ground)
    return {
        table.name: _count(connection, f"{quoted(database)}.{table.name}") for table in MEASURED
    }


def _count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])


class _Measuring(Counting):
    """The statements that fill the count tables of one batch from tables of the session."""

    def session(self, ground: Ground) -> None:
        """What is there before rows are counted.

        ``positions``: the exposure of each rank as a scaled integer; ``sampled``: some lists; and
        the ranking log under names that no statement here uses for anything else.
        """
        exposures = scaled_exposures(ground.deepest_rank)
        columns = {"place": np.arange(len(exposures)), "exposure": exposures}
        self.connection.register("exposures", pyarrow.table(columns))
        self.connection.execute("CREATE OR REPLACE TEMP TABLE positions AS FROM exposures")
        self.connection.unregister("exposures")
        if self.evidence:
            sample_lists(self)
        renamed = "".join(
            f", {quoted(name)} AS {internal(name)}"
            for name in (*self.settings.slices, *self.settings.attribute_columns)
        )
        logged = ", ".join(column.name for column in (*LOGGED, POSITION) if column is not SCORE)
        self.connection.execute(
            f"CREATE OR REPLACE TEMP VIEW {self.log} AS "
            f"SELECT {logged}{renamed} FROM {self.database}.ranking_log"
        )

    def lists(self, ground: Ground) -> None:
        """Lists and rows per slice, lists per bucket, and releases."""
        known = [f"{name}_known" for name in KNOWN]
        totals = {
            "lists": "count(*)",
            "rows": "sum(n)::BIGINT",
            **{name: f"sum({name})::BIGINT" for name in known},
            "share_lists": "count(*) FILTER (relevance > 0)",
        }
        said = ", ".join(f"{sql} AS {name}" for name, sql in totals.items())
        slices = self.lists_slices("parts")
        # Lists are added up before they are looked at slice by slice.
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE bucket_lists AS SELECT found.*{slices} FROM "
            f"(SELECT list_part AS part, bucket, {said} FROM lists GROUP BY ALL) AS found "
            "JOIN parts USING (part)"
        )
        sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in ("lists", "rows", *known))
        distinct = "SELECT slice, slice_value, sum(lists)::BIGINT AS queries"
        source = self.by_slice("bucket_lists", "*")
        if ground.query is not None:
            distinct = "SELECT slice, slice_value, count(DISTINCT query_id) AS queries"
            queries = self.by_slice("lists", "query_id")
        else:
            queries = source
        self.fill(
            SLICE_COUNTS,
            f"SELECT * FROM (SELECT slice, slice_value, {sums} FROM ({source}) GROUP BY ALL) "
            f"JOIN ({distinct} FROM ({queries}) GROUP BY ALL) USING (slice, slice_value)",
        )
        self.fill_buckets(
            source,
            ("slice", "slice_value"),
            {"lists": "sum(lists)", "share_lists": "sum(share_lists)"},
        )
        self.fill(
            MODEL_VERSIONS,
            f"SELECT model_version, count(*) AS lists FROM {self.database}.log_lists "
            "WHERE model_version IS NOT NULL GROUP BY model_version",
        )

    def rank_counts(self) -> None:
        """The rank histogram of buckets, and of slices, attributes and groups."""
        cells = "".join(f", log_cells.{internal(n)}" for n in self.settings.attribute_columns)
        parts = self.lists_slices("parts")
        table = bucket_counts(self.settings.slices, self.settings.attribute_columns)
        log_cells = f"JOIN {self.database}.log_cells USING (cell)"
        self.connection.execute(f"DROP TABLE IF EXISTS {self.database}.{table.name}")
        self.connection.execute(table.create(self.name))
        self.fill(
            table,
            f"SELECT histogram.* EXCLUDE (part, cell){parts}{cells} FROM histogram "
            f"JOIN parts USING (part) {log_cells}",
            ordered=True,
        )
        sums = ", ".join(
            f"sum({name})::{column.type} AS {name}"
            for name, column in zip(RANK_COUNTS.names, RANK_COUNTS.columns, strict=True)
            if name not in RANK_COUNTS.key
        )
        whole = (
            f"SELECT rank_sums.*{parts}{cells} FROM rank_sums JOIN parts USING (part) {log_cells}"
        )
        grouped = f"SELECT *, unnest({attribute_structs(self.settings)}) AS g FROM ({whole})"
        self.fill(
            RANK_COUNTS,
            f"SELECT slice, slice_value, g.attribute AS attribute, g.group_value AS group_value, "
            f"rank, {sums} FROM ({self.by_slice(f'({grouped})', '*')}) GROUP BY ALL",
        )

    def pairs_and_prefixes(self, attribute: str) -> None:
        """ARP, NDKL and the mixes of one attribute, from ``group_sums`` and its fellows."""
        name = literal(attribute)
        key = f"SELECT slice, slice_value, {name} AS attribute, group_value"
        self.fill(
            PAIR_STATS,
            f"{key}, sum(pair_lists)::BIGINT AS lists, sum(pairs)::HUGEINT AS pairs, "
            "sum(won)::HUGEINT AS won, sum(won_share)::HUGEINT AS share_sum "
            "FROM group_sums GROUP BY ALL HAVING sum(pair_lists) > 0",
        )
        self.fill(
            PREFIX_STATS,
            f"{key}, sum(lists)::BIGINT AS lists, any_value(queries) AS queries, "
            "sum(entropy)::HUGEINT AS entropy_sum, sum(share)::HUGEINT AS share_sum, "
            "sum(divergence)::HUGEINT AS own_sum FROM group_sums "
            "JOIN group_queries USING (slice, slice_value, group_value) GROUP BY ALL",
        )
        self.fill_buckets(
            "FROM group_sums",
            ("slice", "slice_value", "group_value"),
            {
                "pair_lists": "sum(pair_lists)",
                "pair_share": f"sum(won_share) / {UNIT}",
                **{
                    statistic: f"sum({column}) / {PREFIX_UNIT}"
                    for statistic, column in PREFIX_STATISTICS.items()
                },
            },
            attribute=attribute,
        )
        fill_mix_counts(self, attribute)

    def list_stats(self, ground: Ground) -> None:
        """Measures that look at lists one by one, added up."""
        wanted = [measure for measure in self.settings.measures if measure.uses_lists]
        if not wanted:
            return
        measuring = ListMeasuring(self, ground, wanted)
        measuring.run()
        for table, rows in ((LIST_STATS, measuring.rows()), (BUCKET_SUMS, measuring.bucket_rows())):
            self.connection.register("list_rows", arrow_of(table, rows))
            self.fill(table, "SELECT * FROM list_rows")
            self.connection.unregister("list_rows")
