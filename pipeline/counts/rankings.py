"""Rows of a query, turned into whole lists for the metrics that look at lists one by one.

Rows come in chunks of bounded size, whatever the batch holds; a list that a chunk cuts in two is
held back until the rest of it has come.

Not here: what is computed of them (``list_stats``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow

from metrics import Rankings
from metrics.weights import FloatArray, IntArray
from pipeline.counts.exact_sums import is_relevant
from pipeline.log.row_chunks import RowChunk
from pipeline.log.whole_lists import CHUNK_ROWS, run_starts

LIST_COLUMNS = ("rank", "relevance", "click", "reference_rank", "propensity", "predicted_click")
"""Columns of the log that lists are made of; a query leaves out those that it does not have."""


@dataclass(frozen=True)
class Chunk:
    """Some whole lists, and the columns beside them, row by row, as they were selected."""

    lists: Rankings
    rows: pyarrow.Table


def chunks_of(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    *,
    relevant_from: float,
    chunk_rows: int = CHUNK_ROWS,
) -> Iterator[Chunk]:
    """Whole lists of ``query``, some at a time.

    The query selects ``list`` (a whole number that rows of one list share), any of LIST_COLUMNS
    and whatever else the caller wants to see in ``Chunk.rows``; its rows are in order of list and
    then of place.  ``reference_length`` may be among its columns.  By default a reference is as
    deep as its list, or as the deepest reference_rank in it: a log of what was shown does not say
    what else the reference held, and one that ended there would agree with the list too easily.
    """
    pending: list[pyarrow.Table] = []
    for batch in connection.sql(query).to_arrow_reader(chunk_rows):
        pending.append(pyarrow.Table.from_batches([batch]))
        if sum(map(len, pending)) < chunk_rows:
            continue
        table = pyarrow.concat_tables(pending)
        number = table["list"].to_numpy()
        # The last list may go on in the next batch of rows.
        whole_rows = int(np.searchsorted(number, number[-1], side="left"))
        if whole_rows:
            yield _chunk(table.slice(0, whole_rows), relevant_from)
        pending = [table.slice(whole_rows)]
    if sum(map(len, pending)):
        yield _chunk(pyarrow.concat_tables(pending), relevant_from)


def _chunk(rows: pyarrow.Table, relevant_from: float) -> Chunk:
    number = rows["list"].to_numpy()
    starts = run_starts(number)
    return Chunk(_rankings(rows, starts, relevant_from), rows)


def _rankings(rows: pyarrow.Table, starts: IntArray, relevant_from: float) -> Rankings:
    names = (*LIST_COLUMNS, "reference_length", "exposure")
    columns = {name: _floats(rows[name]) for name in names if name in rows.column_names}
    return _lists(columns, starts, relevant_from)


def rankings_of(chunk: RowChunk, relevant_from: float) -> Rankings:
    """The lists of a chunk of stored rows that was read with LIST_COLUMNS, or some of them."""
    columns = {"rank": chunk.ints["rank"].astype(np.float64), **chunk.floats}
    return _lists(columns, chunk.starts, relevant_from)


def _lists(columns: Mapping[str, FloatArray], starts: IntArray, relevant_from: float) -> Rankings:
    """Lists of columns by name, those that are not known left out."""
    rank = columns["rank"].astype(np.int64)
    nothing = np.full(len(rank), np.nan)
    relevance = columns.get("relevance", nothing)
    reference = np.nan_to_num(columns.get("reference_rank", nothing)).astype(np.int64)
    if "reference_length" in columns:
        depth = columns["reference_length"][starts].astype(np.int64)
    else:
        deepest = np.maximum.reduceat(reference, starts)
        depth = np.where(deepest > 0, np.maximum(deepest, np.maximum.reduceat(rank, starts)), 0)
    return Rankings(
        starts=starts,
        rank=rank,
        relevance=relevance,
        relevant=is_relevant(relevance, relevant_from),
        click=columns.get("click", nothing),
        reference_rank=reference,
        reference_length=depth,
        propensity=columns.get("propensity", nothing),
        predicted_click=columns.get("predicted_click", nothing),
        exposure=columns.get("exposure"),
    )


def _floats(column: pyarrow.ChunkedArray) -> FloatArray:
    """Numbers as doubles, NaN where there is none; ranks are small enough to be exact."""
    found: Any = column.cast(pyarrow.float64()).to_numpy()
    doubles: FloatArray = np.asarray(found)
    return doubles
