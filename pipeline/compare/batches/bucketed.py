"""Rows of the cells of one batch by bucket of queries, which is what resamples draw.

Not here: which cells there are (``partition``, ``request_cells``), and intervals (``intervals``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow

from metrics import UNIT
from metrics.weights import FloatArray, IntArray
from pipeline.compare.batches.counterfactuals import PAIRS, PREFIXES, SUMS, Layout
from pipeline.counts.rank_counts import histogram_sums
from pipeline.counts.sql import bucket_of
from pipeline.log.values import group_of
from pipeline.scores.evidence.resampling import effective_queries
from pipeline.settings.audit import Settings
from schemas.columns import internal, literal, quoted
from schemas.counts import BUCKETS

_SCALED = ("relevance", "click")
_CELLS = "named_cells"
"""Table of the session: which cell the rows of a batch belong to."""
_STATISTICS = {
    **{f"pair_{name}": (0, at) for at, name in enumerate(PAIRS)},
    **{name: (1, at) for at, name in enumerate(PREFIXES)},
}
"""Statistics of bucket_sums, as parts of a row."""


@dataclass(frozen=True)
class Bucketed:
    """Rows of one batch; ``cell`` and ``bucket`` have shape (entries,), by cell, then bucket.

    ``rows`` have shape (entries, size).
    """

    cell: IntArray
    bucket: IntArray
    rows: FloatArray

    def by_cell(self, cells: int) -> FloatArray:
        """Rows of the cells, shape (cells, size)."""
        found: FloatArray = self.resampled(np.ones((1, BUCKETS)), cells)[0]
        return found

    def resampled(self, weights: FloatArray, cells: int) -> FloatArray:
        """Rows of the cells in resamples, shape (resamples, cells, size).

        ``weights`` say how often each bucket is drawn, shape (resamples, buckets).
        """
        found = np.zeros((len(weights), cells, self.rows.shape[1]))
        there, starts = np.unique(self.cell, return_index=True)
        if len(there):
            drawn = weights[:, self.bucket, None] * self.rows
            found[:, there] = np.add.reduceat(drawn, starts, axis=1)
        return found

    def queries(self, start: int, stop: int) -> FloatArray:
        """On how many queries of equal weight some sums of the batch rest, shape (sums,)."""
        sums = np.zeros((BUCKETS, stop - start))
        np.add.at(sums, self.bucket, self.rows[:, start:stop])
        return effective_queries(sums)

    def queries_by_cell(self, cells: int) -> FloatArray:
        """On how many queries of equal weight each cell rests, shape (cells,)."""
        sums = np.zeros((BUCKETS, cells))
        sums[self.bucket, self.cell] = self.rows[:, 0]
        return effective_queries(sums)


def of_slices(
    connection: duckdb.DuckDBPyConnection,
    database: str,
    settings: Settings,
    layout: Layout,
    attribute: Sequence[str],
    column: str,
    cells: Mapping[str, int],
) -> Bucketed:
    """Rows of the values of a slice column; ``cells`` says which cell each is."""
    _name(connection, {internal(column): list(cells)}, list(cells.values()))
    sums = (
        "SELECT cell, attribute, metric, reading, group_value, statistic, "
        f"unnest(buckets) % {BUCKETS} AS bucket, unnest(sums) AS total "
        f"FROM {quoted(database)}.bucket_sums JOIN {_CELLS} ON slice_value = {internal(column)} "
        f"WHERE slice = {literal(column)}"
    )
    lists = f"SELECT cell, bucket, sum(total) AS lists FROM ({sums}) WHERE statistic = 'lists'"
    found = _bucketed(
        connection,
        layout,
        f"{lists} AND attribute IS NULL GROUP BY cell, bucket",
        _counted(database, settings, attribute, [column]),
    )
    if layout.per_list:
        from pipeline.settings.labels import JOIN

        _add_list_sums(connection, found, layout, sums, JOIN.join(attribute))
    return found


def of_joint_slices(
    connection: duckdb.DuckDBPyConnection,
    database: str,
    settings: Settings,
    layout: Layout,
    attribute: Sequence[str],
    values: Mapping[str, Sequence[str]],
    cells: Sequence[int] | IntArray,
) -> Bucketed:
    """Rows of combinations of slice values; ``values`` by column, ``cells`` as long as each."""
    _name(connection, {internal(name): list(each) for name, each in values.items()}, cells)
    lists = (
        f"SELECT cell, bucket % {BUCKETS} AS bucket, sum(rows / length) AS lists "
        f"FROM {quoted(database)}.bucket_lengths {_join(list(values))} GROUP BY ALL"
    )
    return _bucketed(
        connection, layout, lists, _counted(database, settings, attribute, list(values))
    )


def of_requests(
    connection: duckdb.DuckDBPyConnection,
    database: str,
    settings: Settings,
    layout: Layout,
    attribute: Sequence[str],
    values: Mapping[str, Sequence[str]],
    cells: Sequence[int] | IntArray,
) -> Bucketed:
    """Rows of queries, or of queries in combinations of slices, from a batch that keeps its rows.

    ``values`` are by column of the log, query_id among them, ``cells`` as long as each.
    """
    _name(connection, {quoted(name): list(each) for name, each in values.items()}, cells)
    using = ", ".join(map(quoted, values))
    source = f"{quoted(database)}.ranking_log JOIN {_CELLS} USING ({using})"
    bucket = bucket_of("query_id")
    return _bucketed(
        connection,
        layout,
        f"SELECT cell, {bucket} AS bucket, count(DISTINCT list_id) AS lists FROM {source} "
        "GROUP BY ALL",
        f"SELECT cell, {bucket} AS bucket, {group_of(attribute)} AS group_value, rank, "
        f"{histogram_sums(settings)} FROM {source} GROUP BY ALL",
    )


def _name(
    connection: duckdb.DuckDBPyConnection,
    columns: Mapping[str, list[str]],
    cells: Sequence[int] | IntArray,
) -> None:
    """Make the table of the session that says which cell is which."""
    names = ", ".join((*columns, "cell"))
    arrays = [pyarrow.array(each, pyarrow.string()) for each in columns.values()]
    table = pyarrow.table(
        [*arrays, pyarrow.array(np.asarray(cells, dtype=np.int64))],
        names=[f"c{at}" for at in range(len(columns))] + ["cell"],
    )
    connection.register("cells_given", table)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {_CELLS}({names}) AS FROM cells_given")
    connection.unregister("cells_given")


def _join(columns: Sequence[str]) -> str:
    return f"JOIN {_CELLS} USING ({', '.join(map(internal, columns))})"


def _counted(
    database: str, settings: Settings, attribute: Sequence[str], columns: Sequence[str]
) -> str:
    """SQL of the rank histograms of cells that are values of some slice columns."""
    sums = ["rows", "judged", "relevant", "relevance_sum", "click_known", "click_sum"]
    return (
        f"SELECT cell, bucket % {BUCKETS} AS bucket, {group_of(attribute, internal)} AS "
        f"group_value, rank, {', '.join(f'sum({name}) AS {name}' for name in sums)} "
        f"FROM {quoted(database)}.bucket_counts {_join(columns)} GROUP BY ALL"
    )


def _bucketed(
    connection: duckdb.DuckDBPyConnection, layout: Layout, lists: str, histogram: str
) -> Bucketed:
    """``lists`` and ``histogram`` are SQL by cell and bucket, the latter by group and rank too."""
    entries = connection.sql(
        f"SELECT cell, bucket, lists::DOUBLE AS lists FROM ({lists}) ORDER BY cell, bucket"
    ).fetchnumpy()
    key = entries["cell"].astype(np.int64) * BUCKETS + entries["bucket"]
    columns = ", ".join(
        f"{name}_sum::DOUBLE / {float(UNIT)!r} AS {name}"
        if name in _SCALED
        else f"{name}::BIGINT AS {name}"
        for name in layout.columns
    )
    places = pyarrow.table(
        {"group_value": list(layout.groups), "place": list(range(len(layout.groups)))},
        pyarrow.schema([("group_value", pyarrow.string()), ("place", pyarrow.int64())]),
    )
    connection.register("group_places", places)
    found = connection.sql(
        f"SELECT cell, bucket, place, rank, {columns} FROM ({histogram}) "
        "JOIN group_places USING (group_value) ORDER BY cell, bucket, place, rank"
    ).fetchnumpy()
    connection.unregister("group_places")
    at = np.searchsorted(key, found["cell"].astype(np.int64) * BUCKETS + found["bucket"])
    rows = layout.rows(len(key), at, found["place"], found["rank"], found)
    rows[:, 0] = entries["lists"]
    return Bucketed(entries["cell"].astype(np.int64), entries["bucket"].astype(np.int64), rows)


def _add_list_sums(
    connection: duckdb.DuckDBPyConnection,
    found: Bucketed,
    layout: Layout,
    sums: str,
    attribute: str,
) -> None:
    """Add pairs, prefixes and sums over lists to rows that hold nothing but totals."""
    key = found.cell * BUCKETS + found.bucket
    code = {name: at for at, name in enumerate(layout.groups)}
    starts, groups = layout.starts, len(layout.groups)
    listed = connection.execute(
        f"SELECT cell * {BUCKETS} + bucket, metric, reading, group_value, statistic, total "
        f"FROM ({sums}) WHERE coalesce(attribute, ?) = ?",
        [attribute, attribute],
    ).fetchall()
    for entry, metric, reading, group, statistic, total in listed:
        column = 0 if group is None else code.get(group)
        if column is None:
            continue
        if metric is None and statistic in _STATISTICS:
            part, at = _STATISTICS[statistic]
            place = starts[3 + part] + at * groups + column
        elif metric is not None and (metric, reading) in layout.sums and statistic in SUMS:
            at = layout.sums.index((metric, reading)) * len(SUMS) + SUMS.index(statistic)
            place = starts[5] + at * layout.width + column
        else:
            continue
        found.rows[np.searchsorted(key, entry), place] += total
