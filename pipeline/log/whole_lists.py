"""Rows of the stored log, whole lists at a time, in bounded memory.

Rows are stored nearly list by list: several threads wrote, each a piece of the log, so what one
piece ends with may go on where another one begins.  A list is handed on when all its rows came.

Not here: the arrays that are made of them (``row_chunks``).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow

from metrics.weights import IntArray
from pipeline.errors import AuditError
from schemas.columns import quoted

CHUNK_ROWS = 262_144
"""Rows held at a time, whole lists of them: 2 MB a column, and few steps of Python per row."""
_WAITING = 8
"""Chunks of rows that may wait for the rest of their lists.

A list may be stored a little apart; beyond that, waiting would cost the memory that chunks save."""


class ListsApart(AuditError):
    """Rows of many lists are stored far apart."""

    def __init__(self) -> None:
        super().__init__("rows of many lists are stored apart; run the batch again from its logs")


@contextmanager
def whole_lists(
    connection: duckdb.DuckDBPyConnection,
    database: str,
    select: str,
    chunk_rows: int = CHUNK_ROWS,
) -> Iterator[Iterator[pyarrow.Table]]:
    """Tables of whole lists, each list's rows together; lists come nearly in order.

    ``select`` is a query of rows of log_rows, ``list`` among its columns.  Within the context the
    connection answers no other query.  ListsApart where too many rows would have to be held.
    """
    found = connection.sql(
        f"SELECT list_rows FROM {quoted(database)}.log_lists ORDER BY list"
    ).to_arrow_table()
    reader = connection.sql(select).to_arrow_reader(chunk_rows)
    try:
        yield _whole(reader, found["list_rows"].to_numpy(), chunk_rows)
    finally:
        reader.close()


def _whole(
    reader: pyarrow.RecordBatchReader, lengths: IntArray, chunk_rows: int
) -> Iterator[pyarrow.Table]:
    pending: list[pyarrow.Table] = []
    most = _WAITING * chunk_rows + int(lengths.max(initial=0))
    enough = chunk_rows
    for batch in reader:
        pending.append(pyarrow.Table.from_batches([batch]))
        if sum(map(len, pending)) < enough:
            continue
        whole_rows, rest_rows = _parted(pyarrow.concat_tables(pending), lengths)
        if len(whole_rows):
            yield whole_rows
        pending = [rest_rows]
        enough = len(rest_rows) + chunk_rows
        if len(rest_rows) > most:
            raise ListsApart
    if sum(map(len, pending)):
        whole_rows, rest_rows = _parted(pyarrow.concat_tables(pending), lengths)
        if len(rest_rows):
            raise ListsApart
        if len(whole_rows):
            yield whole_rows


def run_starts(*keys: npt.NDArray[Any]) -> IntArray:
    """Where a run of equal keys begins, shape (runs,); all ``keys`` have shape (rows,)."""
    new = np.ones(len(keys[0]), dtype=np.bool_)
    np.not_equal(keys[0][1:], keys[0][:-1], out=new[1:])
    for key in keys[1:]:
        new[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(new)


def _parted(table: pyarrow.Table, lengths: IntArray) -> tuple[pyarrow.Table, pyarrow.Table]:
    """Rows of the lists that are whole, each list's together, and the other rows."""
    number = table["list"].to_numpy()
    starts = run_starts(number)
    sizes = np.diff(starts, append=len(number))
    # Nearly every list is one run of rows: long stretches of them are handed on as they are.
    whole = sizes == lengths[number[starts]]
    turns = run_starts(whole)
    ends = np.append(starts[turns[1:]], len(number))
    stretches = [
        table.slice(start, end - start)
        for start, end, good in zip(starts[turns], ends, whole[turns], strict=True)
        if good
    ]
    broken = np.flatnonzero(~whole)
    lists, at = np.unique(number[starts[broken]], return_inverse=True)
    complete = np.bincount(at, weights=sizes[broken]) == lengths[lists]
    together = broken[np.argsort(at, kind="stable")]
    ready = complete[np.sort(at)]

    def rows(runs: IntArray) -> list[pyarrow.Table]:
        return [table.slice(starts[run], sizes[run]) for run in runs]

    # A slice would keep all that it was cut from in memory for as long as it waits.
    waiting = [each.take(pyarrow.array(range(len(each)))) for each in rows(broken[~complete[at]])]
    return (
        pyarrow.concat_tables([table.slice(0, 0), *stretches, *rows(together[ready])]),
        pyarrow.concat_tables([table.schema.empty_table(), *waiting]),
    )
