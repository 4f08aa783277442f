"""Rows of a query, turned into whole lists for the metrics that look at lists one by one.

Rows come in chunks of bounded size, whatever the batch holds; a list that a chunk cuts in two is
held back until the rest of it has come.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow
import pyarrow.compute

from metrics import Rankings
from metrics.weights import FloatArray, IntArray

CHUNK_ROWS = 262_144
"""Rows held at a time, whole lists of them."""

LIST_COLUMNS = ("rank", "relevance", "click", "reference_rank", "propensity", "predicted_click")
"""Columns of the log that lists are made of; a query leaves out those that it does not have."""


@dataclass(frozen=True)
class Chunk:
    """Some whole lists, and the columns beside them, row by row, as they were selected."""

    lists: Rankings
    rows: pyarrow.Table

    def codes(self, column: str, names: Sequence[str]) -> IntArray:
        """Where each row's text in ``column`` stands among ``names``, shape (rows,)."""
        found = pyarrow.compute.index_in(self.rows[column], pyarrow.array(names, pyarrow.string()))
        codes: IntArray = found.to_numpy().astype(np.int64)
        return codes


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
    held: list[pyarrow.Table] = []
    for batch in connection.sql(query).to_arrow_reader(chunk_rows):
        held.append(pyarrow.Table.from_batches([batch]))
        if sum(map(len, held)) < chunk_rows:
            continue
        table = pyarrow.concat_tables(held)
        number = table["list"].to_numpy()
        # The last list may go on in the next batch of rows.
        whole = int(np.searchsorted(number, number[-1], side="left"))
        if whole:
            yield _chunk(table.slice(0, whole), relevant_from)
        held = [table.slice(whole)]
    if sum(map(len, held)):
        yield _chunk(pyarrow.concat_tables(held), relevant_from)


def _chunk(rows: pyarrow.Table, relevant_from: float) -> Chunk:
    number = rows["list"].to_numpy()
    starts = np.flatnonzero(np.diff(number, prepend=number[0] - 1))
    return Chunk(_rankings(rows, starts, relevant_from), rows)


def _rankings(rows: pyarrow.Table, starts: IntArray, relevant_from: float) -> Rankings:
    columns: Mapping[str, FloatArray] = {
        name: _floats(rows[name]) if name in rows.column_names else np.full(len(rows), np.nan)
        for name in (*LIST_COLUMNS, "reference_length", "exposure")
    }
    reference = np.nan_to_num(columns["reference_rank"]).astype(np.int64)
    if "reference_length" in rows.column_names:
        depth = columns["reference_length"][starts].astype(np.int64)
    else:
        deepest = np.maximum.reduceat(reference, starts)
        own = np.maximum.reduceat(columns["rank"].astype(np.int64), starts)
        depth = np.where(deepest > 0, np.maximum(deepest, own), 0)
    return Rankings(
        starts=starts,
        rank=columns["rank"].astype(np.int64),
        relevance=columns["relevance"],
        relevant=columns["relevance"] >= relevant_from,
        click=columns["click"],
        reference_rank=reference,
        reference_length=depth,
        propensity=columns["propensity"],
        predicted_click=columns["predicted_click"],
        exposure=columns["exposure"] if "exposure" in rows.column_names else None,
    )


def _floats(column: pyarrow.ChunkedArray) -> FloatArray:
    """Numbers as doubles, NaN where there is none; ranks are small enough to be exact."""
    found: Any = column.cast(pyarrow.float64()).to_numpy()
    doubles: FloatArray = np.asarray(found)
    return doubles
