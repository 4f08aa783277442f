"""What a batch has come to, as one digest: two runs that agree in it agree in every number."""

from dataclasses import fields

import duckdb
import pyarrow

from pipeline.scoring import RunStamp
from pipeline.settings import hash_of
from schemas.columns import quoted
from schemas.tables import FAIRNESS_HISTORY, GROUP_HISTORY


def result_hash(connection: duckdb.DuckDBPyConnection, database: str) -> str:
    """Digest of the scores and group values in an attached ``database``.

    Rows count with their key, value, reason, interval, noise floor and verdict, to the last bit of
    every number; not the name of the batch, nor when, by whom and with which code they were
    computed, nor the order in which they are stored.
    """
    unsaid = {"batch", *(field.name for field in fields(RunStamp))}
    said = {}
    for table in (FAIRNESS_HISTORY, GROUP_HISTORY):
        names = [name for name in table.names if name not in unsaid]
        key = [name for name in table.key if name in names]
        rows = connection.sql(
            f"SELECT {', '.join(map(quoted, names))} FROM {quoted(database)}.{table.name} "
            f"ORDER BY {', '.join(map(quoted, key))}"
        ).to_arrow_table()
        said[table.name] = {name: _exact(rows[name]) for name in names}
    return hash_of(said)


def _exact(column: pyarrow.ChunkedArray) -> list[object]:
    """Values as JSON can hold them, doubles in hexadecimal digits: they lose no bit."""
    values: list[object] = column.to_pylist()
    return [value.hex() if isinstance(value, float) else value for value in values]
