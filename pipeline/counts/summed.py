"""The count tables of several batches, added up as if they were one.

Counts add; distinct items and the order of items by exposure do not, so that ``item_gaps`` stays
empty and what is made of it is not counted.  Neither is expected exposure, which is about all lists
of a query.  Of distinct queries there are no fewer than in the largest batch, and no fewer than
buckets that hold any.

Not here: which batches belong together (``pipeline.monitoring.windows``).
"""

from collections import Counter
from collections.abc import Sequence

import duckdb
import numpy as np
import pyarrow

from metrics import parse_measure
from metrics.weights import FloatArray
from pipeline.settings.audit import Settings
from pipeline.store.tables import create
from schemas.columns import Row, Table, quoted
from schemas.counts import (
    ADDITIVE,
    BUCKET_SUMS,
    BUCKETS,
    GROUP_SIZES,
    ITEM_GAPS,
    LIST_STATS,
    MIX_COUNTS,
    MIX_PAIRS,
    MIX_SAMPLE,
    bucket_counts,
    bucket_lengths,
)

_MADE = (*ADDITIVE, ITEM_GAPS, GROUP_SIZES, MIX_COUNTS, MIX_PAIRS, MIX_SAMPLE, BUCKET_SUMS)
_BASIS = ("metric", "basis")


def tables_of(settings: Settings) -> tuple[Table, ...]:
    """The tables that batches must have to be added up."""
    named = settings.slices, settings.attribute_columns
    return (*_MADE, bucket_counts(*named), bucket_lengths(*named))


def add_up(
    connection: duckdb.DuckDBPyConnection,
    databases: Sequence[str],
    target: str,
    settings: Settings,
) -> None:
    """Fill ``target`` with the sums of attached ``databases``, the oldest first."""
    *_, counts, lengths = tables_of(settings)
    create(connection, target, *_MADE, counts, lengths)
    for table in (*ADDITIVE[:-1], MIX_COUNTS, MIX_PAIRS, counts, lengths):
        _add(connection, databases, target, table, table.key)
    kept = _kept(connection, databases)
    connection.register("kept_bases", kept)
    here = f"SEMI JOIN kept_bases USING ({', '.join(_BASIS)})"
    _add(connection, databases, target, LIST_STATS, (*LIST_STATS.key, "basis"), here)
    connection.register("kept_sums", _bucket_sums(connection, databases, kept))
    _fill(connection, target, BUCKET_SUMS, "FROM kept_sums")
    connection.unregister("kept_bases")
    connection.unregister("kept_sums")
    # The catalogue is what it was at the end.
    newest = quoted(databases[-1])
    _fill(connection, target, GROUP_SIZES, f"FROM {newest}.{GROUP_SIZES.name}")
    # A sample of lists as large as that of one batch, from all of them.
    size = len(databases)
    sampled = " UNION ALL ".join(
        f"SELECT * REPLACE (list * {size} + {at} AS list) FROM {quoted(name)}.{MIX_SAMPLE.name} "
        f"WHERE list % {size} = {at}"
        for at, name in enumerate(databases)
    )
    _fill(connection, target, MIX_SAMPLE, sampled)


def _fill(connection: duckdb.DuckDBPyConnection, target: str, table: Table, query: str) -> None:
    connection.execute(f"INSERT INTO {quoted(target)}.{quoted(table.name)} BY NAME {query}")


def _all(databases: Sequence[str], table: Table) -> str:
    return " UNION ALL BY NAME ".join(
        f"SELECT * FROM {quoted(name)}.{quoted(table.name)}" for name in databases
    )


def _add(
    connection: duckdb.DuckDBPyConnection,
    databases: Sequence[str],
    target: str,
    table: Table,
    key: Sequence[str],
    where: str = "",
) -> None:
    sums = [
        f"{'max' if column.name == 'queries' else 'sum'}({quoted(column.name)})::{column.type} "
        f"AS {quoted(column.name)}"
        for column in table.columns
        # People are the same ones on several days.
        if column.name not in key and (table.name, column.name) != ("prefix_stats", "items")
    ]
    columns = ", ".join([*map(quoted, key), *sums])
    _fill(
        connection,
        target,
        table,
        f"SELECT {columns} FROM ({_all(databases, table)}) {where} GROUP BY ALL",
    )


def _kept(connection: duckdb.DuckDBPyConnection, databases: Sequence[str]) -> pyarrow.Table:
    """What was computed list by list, in the same way, in every one of the batches.

    What is computed query by query is not: the lists of a query may stand in several.
    """
    seen: Counter[tuple[str, str]] = Counter()
    for name in databases:
        rows = connection.execute(
            f"SELECT DISTINCT metric, basis FROM {quoted(name)}.{LIST_STATS.name}"
        ).fetchall()
        seen.update((metric, basis) for metric, basis in rows)
    every = sorted(
        (metric, basis)
        for (metric, basis), times in seen.items()
        if times == len(databases) and not parse_measure(metric).metric.by_query
    )
    return pyarrow.table(
        {name: [each[at] for each in every] for at, name in enumerate(_BASIS)},
        pyarrow.schema([(name, pyarrow.string()) for name in _BASIS]),
    )


def _bucket_sums(
    connection: duckdb.DuckDBPyConnection, databases: Sequence[str], kept: pyarrow.Table
) -> pyarrow.Table:
    """Rows of bucket_sums, bucket by bucket; in the order of the batches, to the same bits."""
    bases = {tuple(row.values()) for row in kept.to_pylist()}
    names = BUCKET_SUMS.names[:-2]
    sums: dict[tuple[object, ...], tuple[FloatArray, FloatArray]] = {}
    for name in databases:
        table = connection.sql(
            f"SELECT {BUCKET_SUMS.column_list} FROM {quoted(name)}.{BUCKET_SUMS.name} ORDER BY ALL"
        ).to_arrow_table()
        lists = [table[each].combine_chunks() for each in ("buckets", "sums")]
        edges = lists[0].offsets.to_numpy()
        buckets, values = (each.values.to_numpy() for each in lists)
        rows = table.drop_columns(["buckets", "sums"]).to_pylist()
        for row, start, stop in zip(rows, edges[:-1], edges[1:], strict=True):
            if row["metric"] is not None and (row["metric"], row["basis"]) not in bases:
                continue
            key = tuple(row[each] for each in names)
            if key not in sums:
                sums[key] = np.zeros(BUCKETS), np.zeros(BUCKETS)
            # Files of before have a multiple of the buckets.
            at = buckets[start:stop] % BUCKETS
            np.add.at(sums[key][0], at, values[start:stop])
            sums[key][1][at] = 1.0
    found = [
        dict(zip(names, key, strict=True))
        | {"buckets": np.flatnonzero(held), "sums": total[held > 0.0]}
        for key, (total, held) in sums.items()
    ]
    return pyarrow.Table.from_pylist(found, schema=BUCKET_SUMS.arrow)


def raise_queries(
    connection: duckdb.DuckDBPyConnection, target: str, occupied: Sequence[Row]
) -> None:
    """Let there be no fewer queries than buckets that hold any.

    ``occupied`` are slices and, in them, groups of attributes, each with its ``buckets``; rows
    without an attribute are about the slice.
    """
    connection.register("occupied", pyarrow.Table.from_pylist(list(occupied)))
    for table, key in (
        ("slice_counts", ("slice", "slice_value")),
        ("prefix_stats", ("slice", "slice_value", "attribute", "group_value")),
    ):
        same = " AND ".join(f"occupied.{name} = t.{name}" for name in key)
        about = "IS NULL" if table == "slice_counts" else "IS NOT NULL"
        connection.execute(
            f"UPDATE {quoted(target)}.{table} AS t SET queries = greatest(queries, buckets) "
            f"FROM occupied WHERE {same} AND occupied.attribute {about}"
        )
    connection.unregister("occupied")
