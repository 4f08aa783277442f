"""Accepted rows as arrays, whole lists at a time, whatever the batch holds.

Not here: how lists are put together again (``whole_lists``), and what is counted (``counts``).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow

from metrics.weights import FloatArray, IntArray
from pipeline.log.whole_lists import CHUNK_ROWS, run_starts, whole_lists
from schemas.columns import quoted
from schemas.stored_log import LOG_ROWS


@dataclass(frozen=True)
class Extent:
    """How many rows a batch has, its deepest rank, the rows of its longest list.

    ``known`` counts the rows that say each number.
    """

    rows: int
    deepest: int
    longest: int
    known: Mapping[str, int]


@dataclass(frozen=True)
class RowChunk:
    """Some whole lists: lists ascending, and the rows of a list by position.

    ``lists`` holds numbers of lists, ``starts`` where each begins and ``lengths`` how many rows it
    has, shape (lists,).  ``ints`` and ``floats`` are columns of log_rows by name, shape (rows,):
    missing numbers are NaN.
    """

    lists: IntArray
    starts: IntArray
    lengths: IntArray
    ints: dict[str, IntArray]
    floats: dict[str, FloatArray]

    @cached_property
    def place(self) -> npt.NDArray[np.int32]:
        """Place among the lists of the chunk of each row's list, shape (rows,)."""
        return np.repeat(np.arange(len(self.starts), dtype=np.int32), self.lengths)


def row_chunks(
    connection: duckdb.DuckDBPyConnection,
    database: str,
    columns: Sequence[str],
    chunk_rows: int = CHUNK_ROWS,
) -> Iterator[RowChunk]:
    """Whole lists of the accepted rows of an attached ``database``, nearly in order.

    ``columns`` are names of log_rows.  While chunks are read, the connection answers no other
    query.  AuditError where rows of many lists are stored apart.
    """
    types = {column.name: column.type for column in LOG_ROWS.columns}
    names = dict.fromkeys(("list", "position", *columns))
    query = f"SELECT {', '.join(map(quoted, names))} FROM {quoted(database)}.{LOG_ROWS.name}"
    with whole_lists(connection, database, query, chunk_rows) as tables:
        for table in tables:
            yield _chunk(table, types)


def _chunk(table: pyarrow.Table, types: Mapping[str, str]) -> RowChunk:
    number = table["list"].to_numpy()
    starts = run_starts(number)
    lengths = np.diff(starts, append=len(number))
    position = table["position"].to_numpy()
    if not _in_order(position, starts):
        order = np.empty(len(position), dtype=np.int64)
        order[np.repeat(starts, lengths) + position - 1] = np.arange(len(position))
        table = table.take(pyarrow.array(order))
    ints, floats = {}, {}
    for name in table.column_names:
        if types[name] == "DOUBLE" or name == "reference_rank":
            floats[name] = table[name].cast(pyarrow.float64()).to_numpy()
        elif name != "list":
            ints[name] = table[name].to_numpy()
    return RowChunk(number[starts].astype(np.int64), starts, lengths, ints, floats)


def _in_order(position: IntArray, starts: IntArray) -> bool:
    """Whether the positions of each list are 1, 2, 3 and so on."""
    next_one = position[1:] == position[:-1] + 1
    next_one[starts[1:] - 1] = True
    return bool((position[starts] == 1).all() and next_one.all())
