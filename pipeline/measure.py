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

from metrics import PREFIX_UNIT, UNIT, WHOLE
from metrics.fairness.prefixes import SMOOTHED_ZERO, SMOOTHING, TERMS, steps, tails
from metrics.weights import exposure_at
from pipeline.fragments import scaled, structs
from pipeline.list_measures import ListMeasuring, table_of
from pipeline.settings import JOIN, Settings
from pipeline.staging import group_of
from pipeline.store import create, transaction
from schemas.columns import Table, internal, literal, quoted
from schemas.offenders import passes
from schemas.rules import BINARY, LOGGED, POSITION, SCORE
from schemas.tables import (
    ITEM_GAPS,
    ITEM_STATS,
    LIST_STATS,
    MEASURED,
    PAIR_STATS,
    PREFIX_STATS,
    RANK_COUNTS,
    SLICE_COUNTS,
)

_IS_BINARY = " AND ".join(passes(check, "relevance") for check in BINARY.checks)


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


class _Measuring:
    """The statements that fill the count tables of one batch."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, settings: Settings, database: str
    ) -> None:
        self.connection = connection
        self.settings = settings
        self.database = quoted(database)
        self.log = "accepted"
        pairs = [(literal(WHOLE), literal(WHOLE))]
        pairs += [(literal(name), internal(name)) for name in settings.slices]
        self.slices = structs("slice", "slice_value", pairs)

    def _fill(self, table: Table, query: str) -> None:
        self.connection.execute(
            f"INSERT INTO {self.database}.{quoted(table.name)} BY NAME "
            f"SELECT {table.column_list} FROM ({query}) ORDER BY ALL"
        )

    def _by_slice(self, source: str, columns: str, where: str = "true") -> str:
        """Rows of ``source`` once per slice they belong to, with ``slice`` and ``slice_value``."""
        return (
            f"SELECT * EXCLUDE (s), s.slice AS slice, s.slice_value AS slice_value FROM "
            f"(SELECT {columns}, unnest({self.slices}) AS s FROM {source} WHERE {where})"
        )

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
            f"any_value(query_id) AS query_id, sum(exposure) AS exposure, sum({scaled('relevance', UNIT)}) AS relevance, "
            f"{counted}{slices} "
            f"FROM {self.log} JOIN positions ON place = rank GROUP BY list_id"
        )
        self._fill(
            SLICE_COUNTS,
            "SELECT slice, slice_value, count(*) AS lists, count(DISTINCT query_id) AS queries, "
            "sum(n)::BIGINT AS rows, "
            + ", ".join(f"sum({name})::BIGINT AS {name}" for name in known)
            + f" FROM ({self._by_slice('lists', ', '.join(('n', 'query_id', *known)))}) GROUP BY ALL",
        )

    def rank_counts(self) -> None:
        """The rank histogram: one scan makes cells of all columns, the rest adds up cells."""
        names = [*self.settings.slices, *self.settings.attribute_columns]
        keys = "".join(f"{internal(name)}, " for name in names)
        cells = (
            f"SELECT {keys}rank, count(*) AS rows, count(relevance) AS judged, "
            f"count(*) FILTER (NOT ({_IS_BINARY})) AS graded, "
            f"count(*) FILTER (relevance >= {self.settings.relevant_from!r}) AS relevant, "
            f"coalesce(sum({scaled('relevance', UNIT)}), 0) AS relevance_sum, "
            f"count(click) AS click_known, "
            f"coalesce(sum({scaled('click', UNIT)}), 0) AS click_sum "
            f"FROM {self.log} GROUP BY ALL"
        )
        attributes = structs(
            "attribute",
            "group_value",
            [
                (literal(JOIN.join(each)), group_of(each, internal))
                for each in self.settings.attributes
            ],
        )
        sums = ", ".join(
            f"sum({name})::{column.type} AS {name}"
            for name, column in zip(RANK_COUNTS.names, RANK_COUNTS.columns, strict=True)
            if name not in RANK_COUNTS.key
        )
        grouped = f"SELECT *, unnest({attributes}) AS g FROM ({cells})"
        rows = self._by_slice(f"({grouped})", "*")
        self._fill(
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
        names = "".join(
            f", lists.{internal(name)} AS {internal(name)}" for name in self.settings.slices
        )
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
            f"AS divergence, query_id{names} "
            f"FROM ({groups}) AS groups JOIN lists USING (list_id)"
        )
        name = literal(JOIN.join(attribute))
        columns = "group_value, pairs, won, entropy, share, divergence, query_id"
        won = scaled("won::DOUBLE / pairs::DOUBLE", UNIT)
        self._fill(
            PAIR_STATS,
            f"SELECT slice, slice_value, {name} AS attribute, group_value, count(*) AS lists, "
            "sum(pairs)::HUGEINT AS pairs, sum(won)::HUGEINT AS won, "
            f"sum({won})::HUGEINT AS share_sum "
            f"FROM ({self._by_slice('list_groups', columns, 'pairs > 0')}) GROUP BY ALL",
        )
        self._fill(
            PREFIX_STATS,
            f"SELECT slice, slice_value, {name} AS attribute, group_value, count(*) AS lists, "
            "count(DISTINCT query_id) AS queries, sum(entropy)::HUGEINT AS entropy_sum, sum(share)::HUGEINT AS share_sum, "
            "sum(divergence)::HUGEINT AS own_sum "
            f"FROM ({self._by_slice('list_groups', columns)}) GROUP BY ALL",
        )

    def items(self) -> None:
        """IAA: exposure and relevance of each item; then the sums of the gaps between them."""
        slices = "".join(
            f", lists.{internal(name)} AS {internal(name)}" for name in self.settings.slices
        )
        relevance = scaled("log.relevance", UNIT)
        shared = "lists.relevance > 0"
        exposure_share = scaled("positions.exposure / lists.exposure", UNIT)
        relevance_share = scaled(f"{relevance} / lists.relevance", UNIT)
        rows = (
            f"SELECT item_id, positions.exposure AS exposure, {relevance} AS relevance, "
            f"CASE WHEN {shared} THEN {exposure_share} ELSE 0 END AS exposure_share, "
            f"CASE WHEN {shared} THEN {relevance_share} ELSE 0 END AS relevance_share{slices} "
            f"FROM {self.log} AS log JOIN lists USING (list_id) JOIN positions ON place = rank"
        )
        columns = "item_id, exposure, relevance, exposure_share, relevance_share"
        self._fill(
            ITEM_STATS,
            "SELECT slice, slice_value, item_id, count(*) AS rows, "
            + ", ".join(
                f"coalesce(sum({name}), 0)::HUGEINT AS {name}_sum"
                for name in ("exposure", "relevance", "exposure_share", "relevance_share")
            )
            + f" FROM ({self._by_slice(f'({rows})', columns)}) GROUP BY ALL",
        )
        share_lists = (
            f"SELECT slice, slice_value, count(*) FILTER (relevance > 0) AS share_lists "
            f"FROM ({self._by_slice('lists', 'relevance')}) GROUP BY ALL"
        )
        self._fill(
            ITEM_GAPS,
            "SELECT slice, slice_value, count(*) AS items, "
            "sum(abs(exposure_sum - relevance_sum))::HUGEINT AS gap_sum, "
            "any_value(share_lists) AS share_lists, "
            "sum(abs(exposure_share_sum - relevance_share_sum))::HUGEINT AS share_gap_sum, "
            "sum(exposure_sum)::HUGEINT AS exposure_sum, "
            "sum(exposure_sum * place)::HUGEINT AS exposure_rank_sum "
            "FROM (SELECT *, row_number() OVER "
            "(PARTITION BY slice, slice_value ORDER BY exposure_sum) AS place "
            f"FROM {self.database}.item_stats) JOIN ({share_lists}) USING (slice, slice_value) "
            "GROUP BY ALL",
        )

    def list_stats(self) -> None:
        """Measures that look at lists one by one, added up."""
        wanted = [measure for measure in self.settings.measures if measure.uses_lists]
        if not wanted:
            return
        rows = ListMeasuring(self.connection, self.settings, self.database, self.log, wanted).rows()
        self.connection.register("list_rows", table_of(rows))
        self._fill(LIST_STATS, "SELECT * FROM list_rows")
        self.connection.unregister("list_rows")
