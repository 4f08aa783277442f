"""Delivered rows as Arrow, whatever they were delivered as: DuckDB reads them, and sorts them.

Not here: Parquet that needs neither (``parquet_batches``), and what is made of rows
(``checked_lists``).
"""

from collections.abc import Generator

import duckdb
import pyarrow

from pipeline.log.reading import Reading, key_of, value_of
from pipeline.log.staged_rows import suspicious
from schemas.columns import internal, quoted
from schemas.rules import ITEM_ID, LIST_ID, MODEL_VERSION, QUERY_ID, RANK, SCORE

BATCH_ROWS = 122_880
"""A row group of DuckDB: the arrays of a few columns of it stay in the processor's cache."""


def described(reading: Reading) -> list[str]:
    """What lists say of their request, by the names that columns of batches have."""
    said = [each.name for each in (QUERY_ID, MODEL_VERSION) if each.name in reading.logged]
    return said + ["=" + name for name in reading.settings.slices if name in reading.logged]


def delivered_batches(
    reading: Reading, rows: str = "delivered", *, judged: bool = False, apart: bool = False
) -> Generator[pyarrow.RecordBatch]:
    """Batches of ``rows``, in the columns of ``delivered``.

    ``judged`` rows are known to obey; of others each says whether it may be broken.  ``apart``:
    lists do not stand together, and are sorted.  Where no ranks are logged, rows come in the order
    of their scores.
    """
    columns = [f"{key_of(each)} AS {quoted(each.name)}" for each in (LIST_ID, ITEM_ID)]
    for column in reading.columns:
        if column in (QUERY_ID, MODEL_VERSION):
            columns.append(f"{key_of(column)} AS {quoted(column.name)}")
        elif column not in (LIST_ID, ITEM_ID, SCORE):
            columns.append(f"{value_of(column)} AS {quoted(column.name)}")
    columns += [internal(name) for name in reading.users]
    columns.append("file::INTEGER AS file")
    if not judged:
        columns.append(f"coalesce({suspicious(reading)}, true) AS broken")
    order = ""
    if RANK.name not in reading.logged:
        item = f"CAST({key_of(ITEM_ID)} AS VARCHAR)"
        order = f"ORDER BY {key_of(LIST_ID)}, {value_of(SCORE)} DESC, {item}"
    elif apart:
        order = f"ORDER BY {key_of(LIST_ID)}"
    found = reading.connection.sql(f"SELECT {', '.join(columns)} FROM {rows} {order}")
    reader = found.to_arrow_reader(BATCH_ROWS)
    try:
        yield from reader
    except (OSError, pyarrow.ArrowException) as error:
        # What DuckDB says while rows are fetched comes as an error of Arrow.
        full = "Out of Memory" in str(error)
        raise (duckdb.OutOfMemoryException if full else duckdb.Error)(str(error)) from None
    finally:
        reader.close()
