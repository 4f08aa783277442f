"""From accepted rows to additive integers: one SQL text per table, no number rounded twice.

Sums run over integers only, so they do not depend on threads, on the order of rows or on how a
batch is split into files.  A real number (relevance, an exposure, a share) is scaled to an integer
once, where it arises.
"""

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow

from metrics import PREFIX_UNIT, UNIT
from metrics.fairness.prefixes import SMOOTHED_ZERO, SMOOTHING, TERMS, steps, tails
from metrics.weights import exposure_at
from pipeline.counting import Counting, attribute_structs, histogram_sums
from pipeline.fragments import bucket_of, scaled
from pipeline.list_measures import ListMeasuring, arrow_of
from pipeline.mixes import fill_mixes, sample_lists
from pipeline.settings import JOIN, Settings
from pipeline.staging import group_of
from pipeline.store import create, transaction
from schemas.columns import internal, literal, quoted
from schemas.rules import LOGGED, POSITION, SCORE
from schemas.tables import (
    BUCKET_SUMS,
    ITEM_GAPS,
    ITEM_STATS,
    LIST_STATS,
    MEASURED,
    MODEL_VERSIONS,
    PAIR_STATS,
    PREFIX_STATS,
    RANK_COUNTS,
    SLICE_COUNTS,
    bucket_counts,
)

PREFIX_STATISTICS = {"entropy": "entropy", "share": "share", "own": "divergence"}
"""Fields of PrefixCounts, and the columns they are summed from."""


def measure(
    connection: duckdb.DuckDBPyConnection, settings: Settings, database: str
) -> dict[str, int]:
    """Fill the count tables of ``database`` from its ranking_log; returns rows per table.

    list_stats holds the measures of the settings that look at lists; every other table serves
    measures that nobody has asked for yet, too.
    """
    create(connection, database, *MEASURED)
    deepest = connection.execute(
        f"SELECT greatest(max(rank), max(position)) FROM {quoted(database)}.ranking_log"
    ).fetchall()
    _register_positions(connection, int(deepest[0][0] or 0))
    measuring = _Measuring(connection, settings, database)
    with transaction(connection):
        for table in MEASURED:
            if table.name != "group_sizes":
                connection.execute(f"DELETE FROM {quoted(database)}.{table.name}")
        measuring.rows()
        measuring.lists()
        measuring.rank_counts()
        for attribute in settings.attributes:
            measuring.pairs_and_prefixes(attribute)
        measuring.items()
        measuring.list_stats()
    return {
        table.name: _count(connection, f"{quoted(database)}.{table.name}") for table in MEASURED
    }


def _count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchall()[0][0])


def _register_positions(connection: duckdb.DuckDBPyConnection, depth: int) -> None:
    """The position tables of the metrics, as tables of the session.

    ``positions``: exposure as a scaled integer, and the running sums of NDKL up to and including
    the position.  ``ordinals``: what the k-th row of a group adds to them.
    """
    at = np.arange(depth + 1)
    exposures = np.zeros(depth + 1, dtype=np.int64)
    exposures[1:] = np.rint(exposure_at(at[1:]) * UNIT).astype(np.int64)
    positions: dict[str, Any] = {"place": at, "exposure": exposures}
    positions |= {f"tail{j}": column for j, column in enumerate(tails(depth).T)}
    ordinals = {"k": at} | {f"step{j}": column for j, column in enumerate(steps(depth).T)}
    for name, columns in (("positions", positions), ("ordinals", ordinals)):
        connection.register(f"{name}_frame", pyarrow.table(columns))
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM {name}_frame")
        connection.unregister(f"{name}_frame")


class _Measuring(Counting):
    """The statements that fill the count tables of one batch."""

    def rows(self) -> None:
        """The ranking log under names that no statement here uses for anything else."""
        renamed = "".join(
            f", {quoted(name)} AS {internal(name)}"
            for name in (*self.settings.slices, *self.settings.attribute_columns)
        )
        columns = ", ".join(column.name for column in (*LOGGED, POSITION) if column is not SCORE)
        self.connection.execute(
            f"CREATE OR REPLACE TEMP VIEW {self.log} AS "
            f"SELECT {columns}{renamed} "
            f"FROM {self.database}.ranking_log"
        )

    def lists(self) -> None:
        """One row per list, with its slices and totals; then lists and rows per slice."""
        slices = "".join(
            f", any_value({internal(name)}) AS {internal(name)}" for name in self.settings.slices
        )
        known = {
            name: name.removesuffix("_known") for name in SLICE_COUNTS.names if "_known" in name
        }
        counted = ", ".join(f"count({column}) AS {name}" for name, column in known.items())
        self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE lists AS SELECT list_id, count(*) AS n, "
            "any_value(query_id) AS query_id, any_value(model_version) AS model_version, "
            f"{bucket_of('any_value(query_id)')} AS bucket, "
            f"sum(exposure) AS exposure, sum({scaled('relevance', UNIT)}) AS relevance, "
            f"{counted}{slices} "
            f"FROM {self.log} JOIN positions ON place = rank GROUP BY list_id"
        )
        self.fill(
            SLICE_COUNTS,
            "SELECT slice, slice_value, count(*) AS lists, count(DISTINCT query_id) AS queries, "
            "sum(n)::BIGINT AS rows, "
            + ", ".join(f"sum({name})::BIGINT AS {name}" for name in known)
            + f" FROM ({self.by_slice('lists', ', '.join(('query_id', 'n', *known)))}) "
            "GROUP BY ALL",
        )
        self.fill_buckets(
            self.by_slice("lists", "bucket, relevance"),
            ("slice", "slice_value"),
            {"lists": "count(*)", "share_lists": "count(*) FILTER (relevance > 0)"},
        )
        sample_lists(self)
        self.fill(
            MODEL_VERSIONS,
            "SELECT model_version, count(*) AS lists FROM lists WHERE model_version IS NOT NULL "
            "GROUP BY model_version",
        )

    def rank_counts(self) -> None:
        """The rank histogram: one scan makes cells by bucket, the rest adds up cells."""
        names = [*self.settings.slices, *self.settings.attribute_columns]
        keys = "".join(f"{internal(name)}, " for name in names)
        table = bucket_counts(self.settings.slices, self.settings.attribute_columns)
        self.connection.execute(f"DROP TABLE IF EXISTS {self.database}.{table.name}")
        self.connection.execute(table.create(self.name))
        self.fill(
            table,
            f"SELECT bucket, {keys}rank, {histogram_sums(self.settings)} "
            f"FROM {self.log} JOIN (SELECT list_id, bucket FROM lists) USING (list_id) "
            "GROUP BY ALL",
        )
        attributes = attribute_structs(self.settings)
        sums = ", ".join(
            f"sum({name})::{column.type} AS {name}"
            for name, column in zip(RANK_COUNTS.names, RANK_COUNTS.columns, strict=True)
            if name not in RANK_COUNTS.key
        )
        grouped = f"SELECT *, unnest({attributes}) AS g FROM {self.database}.{table.name}"
        rows = self.by_slice(f"({grouped})", "*")
        self.fill(
            RANK_COUNTS,
            f"SELECT slice, slice_value, g.attribute AS attribute, g.group_value AS group_value, "
            f"rank, {sums} FROM ({rows}) GROUP BY ALL",
        )

    def pairs_and_prefixes(self, attribute: Sequence[str]) -> None:
        """ARP and NDKL: each row's ordinal in its group, then sums per list and group, then all.

        The rank sum gives the pairs won: a row at position i is below i - 1 rows, k - 1 of its own.
        """
        bilinear = " + ".join(f"step{j} * (whole.tail{j} - above.tail{j})" for j in range(TERMS))
        share = "(whole.tail1 - above.tail1) / whole.tail0"
        group = group_of(attribute, internal)
        members = f"SELECT list_id, position, {group} AS group_value FROM {self.log}"
        ordinals = (
            "SELECT *, row_number() OVER (PARTITION BY list_id, group_value ORDER BY position) "
            f"AS k FROM ({members})"
        )
        groups = (
            "SELECT list_id, group_value, any_value(n) AS length, count(*) AS own, "
            "sum(position)::HUGEINT AS position_sum, "
            f"sum({scaled(f'({bilinear}) / whole.tail0', PREFIX_UNIT)}) AS entropy, "
            f"sum({scaled(share, PREFIX_UNIT)}) AS share "
            f"FROM ({ordinals}) JOIN lists USING (list_id) "
            "JOIN positions AS whole ON whole.place = n "
            "JOIN positions AS above ON above.place = position - 1 "
            "JOIN ordinals USING (k) GROUP BY list_id, group_value"
        )
        slices = self.lists_slices("lists")
        cross = (
            f"(share / {float(PREFIX_UNIT)!r} + {SMOOTHING!r}) * ln(own / length + {SMOOTHING!r}) "
            f"- {SMOOTHED_ZERO!r}"
        )
        self.connection.execute(
            "CREATE OR REPLACE TEMP TABLE list_groups AS SELECT groups.*, "
            "own::HUGEINT * (length - own) AS pairs, "
            "length::HUGEINT * own - position_sum - (own::HUGEINT * (own - 1)) // 2 AS won, "
            # A list of one group diverges from its own mix by nothing, not by rounding.
            f"CASE WHEN own = length THEN 0 ELSE entropy - {scaled(cross, PREFIX_UNIT)} END "
            f"AS divergence, query_id, bucket{slices} "
            f"FROM ({groups}) AS groups JOIN lists USING (list_id)"
        )
        name = literal(JOIN.join(attribute))
        columns = "group_value, pairs, won, entropy, share, divergence, query_id, bucket"
        won = scaled("won::DOUBLE / pairs::DOUBLE", UNIT)
        self.fill(
            PAIR_STATS,
            f"SELECT slice, slice_value, {name} AS attribute, group_value, count(*) AS lists, "
            "sum(pairs)::HUGEINT AS pairs, sum(won)::HUGEINT AS won, "
            f"sum({won})::HUGEINT AS share_sum "
            f"FROM ({self.by_slice('list_groups', columns, 'pairs > 0')}) GROUP BY ALL",
        )
        self.fill(
            PREFIX_STATS,
            f"SELECT slice, slice_value, {name} AS attribute, group_value, count(*) AS lists, "
            "count(DISTINCT query_id) AS queries, sum(entropy)::HUGEINT AS entropy_sum, "
            "sum(share)::HUGEINT AS share_sum, sum(divergence)::HUGEINT AS own_sum "
            f"FROM ({self.by_slice('list_groups', columns)}) GROUP BY ALL",
        )
        self.fill_buckets(
            self.by_slice("list_groups", columns),
            ("slice", "slice_value", "group_value"),
            {
                "pair_lists": "count(*) FILTER (pairs > 0)",
                "pair_share": f"sum(CASE WHEN pairs > 0 THEN {won} ELSE 0 END) / {UNIT}",
                **{
                    name: f"sum({column}) / {PREFIX_UNIT}"
                    for name, column in PREFIX_STATISTICS.items()
                },
            },
            attribute=JOIN.join(attribute),
        )
        fill_mixes(self, JOIN.join(attribute))

    def items(self) -> None:
        """IAA: exposure and relevance of each item; then the sums of the gaps between them."""
        slices = self.lists_slices("lists")
        relevance = scaled("log.relevance", UNIT)
        shared = "lists.relevance > 0"
        exposure_share = scaled("positions.exposure / lists.exposure", UNIT)
        relevance_share = scaled(f"{relevance} / lists.relevance", UNIT)
        rows = (
            f"SELECT item_id, positions.exposure AS exposure, {relevance} AS relevance, "
            f"CASE WHEN {shared} THEN {exposure_share} ELSE 0 END AS exposure_share, "
            f"CASE WHEN {shared} THEN {relevance_share} ELSE 0 END AS relevance_share, "
            f"lists.bucket AS bucket{slices} "
            f"FROM {self.log} AS log JOIN lists USING (list_id) JOIN positions ON place = rank"
        )
        columns = "item_id, exposure, relevance, exposure_share, relevance_share, bucket"
        self.fill(
            ITEM_STATS,
            "SELECT slice, slice_value, item_id, count(*) AS rows, "
            + ", ".join(
                f"coalesce(sum({name}), 0)::HUGEINT AS {name}_sum"
                for name in ("exposure", "relevance", "exposure_share", "relevance_share")
            )
            + f" FROM ({self.by_slice(f'({rows})', columns)}) GROUP BY ALL",
        )
        self.connection.execute(
            "CREATE OR REPLACE TEMP TABLE placed AS SELECT *, row_number() OVER "
            "(PARTITION BY slice, slice_value ORDER BY exposure_sum, item_id) AS place "
            f"FROM {self.database}.item_stats"
        )
        share_lists = (
            f"SELECT slice, slice_value, count(*) FILTER (relevance > 0) AS share_lists "
            f"FROM ({self.by_slice('lists', 'relevance')}) GROUP BY ALL"
        )
        self.fill(
            ITEM_GAPS,
            "SELECT slice, slice_value, count(*) AS items, "
            "sum(abs(exposure_sum - relevance_sum))::HUGEINT AS gap_sum, "
            "any_value(share_lists) AS share_lists, "
            "sum(abs(exposure_share_sum - relevance_share_sum))::HUGEINT AS share_gap_sum, "
            "sum(exposure_sum)::HUGEINT AS exposure_sum, "
            "sum(exposure_sum * place)::HUGEINT AS exposure_rank_sum "
            f"FROM placed JOIN ({share_lists}) USING (slice, slice_value) GROUP BY ALL",
        )
        # To first order: in every resample an item stays on its side of the gap, and in its place.
        side = "sign(exposure_sum - relevance_sum)"
        share_side = "sign(exposure_share_sum - relevance_share_sum)"
        self.fill_buckets(
            f"SELECT rows.*, {side} AS side, {share_side} AS share_side, place FROM "
            f"({self.by_slice(f'({rows})', columns)}) AS rows "
            "JOIN placed USING (slice, slice_value, item_id)",
            ("slice", "slice_value"),
            {
                "gap": f"sum(side * (exposure - coalesce(relevance, 0))) / {UNIT}",
                "share_gap": f"sum(share_side * (exposure_share - relevance_share)) / {UNIT}",
                "exposure": f"sum(exposure) / {UNIT}",
                "exposure_ranks": f"sum(exposure::HUGEINT * place) / {UNIT}",
            },
        )

    def list_stats(self) -> None:
        """Measures that look at lists one by one, added up."""
        wanted = [measure for measure in self.settings.measures if measure.uses_lists]
        if not wanted:
            return
        measuring = ListMeasuring(self.connection, self.settings, self.database, self.log, wanted)
        measuring.run()
        for table, rows in ((LIST_STATS, measuring.rows()), (BUCKET_SUMS, measuring.bucket_rows())):
            self.connection.register("list_rows", arrow_of(table, rows))
            self.fill(table, "SELECT * FROM list_rows")
            self.connection.unregister("list_rows")
