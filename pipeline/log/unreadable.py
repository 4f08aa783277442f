"""Files that a reader cannot read, or does not read whole.

Every row of a text file is accounted for: what DuckDB reads is counted against the lines of the
file, and where they differ, against a parser that knows nothing of DuckDB.

Not here: what is wrong with a text file (``text_faults``), and with its rows (``rejected_rows``).
"""

import csv
from collections.abc import Callable
from dataclasses import replace

import duckdb

from pipeline.errors import DataRefused
from pipeline.log.headers import said_of
from pipeline.log.sources import TEXTS, Source
from pipeline.log.text_faults import fault_of


def unreadable(source: Source, error: duckdb.Error) -> Exception:
    """What to raise where DuckDB cannot read a source: DataRefused, without the data it quotes."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return error
    fault = None
    if source.path is not None and source.format in TEXTS:
        fault = fault_of(source.path, source.format)
    return DataRefused(f"{source.shown}: cannot be read: {fault or said_of(error, source.path)}")


def read_whole(source: Source, read: Callable[[Source], int]) -> int:
    """Rows of a source that ``read`` took, which takes the place of what it took before.

    A CSV file of which DuckDB's threads do not read every row is read again by one.  DataRefused
    where the rows are not all there then; duckdb.Error where nothing can be read.
    """
    error: duckdb.Error | None = None
    rows = None
    try:
        rows = read(source)
    except (duckdb.OutOfMemoryException, duckdb.InterruptException):
        raise
    except duckdb.Error as failed:
        error = failed
    if rows is not None and source.rows in (None, rows):
        return rows
    expected = _rows_of(source)
    if rows is not None and rows == expected:
        return rows
    if source.format == "csv" and expected is not None:
        rows = read(replace(source, in_order=True))
        if rows == expected:
            return rows
    if error is not None:
        raise error
    raise DataRefused(
        f"{source.shown}: cannot be read: {rows:,} rows are found in it, and {expected or 0:,} by "
        "its lines; is a quote missing or one too many?"
    )


def _rows_of(source: Source) -> int | None:
    """Rows of a text file by a parser of its lines, None where it cannot tell."""
    try:
        return sum(1 for _ in source.starts())
    except (csv.Error, UnicodeDecodeError):
        return None
