"""What a batch has come to, as one digest: two runs that agree in it agree in every number.

Not here: digests of settings (``settings.audit``), files (``store.files``) and code (``version``).
"""

from dataclasses import fields

import duckdb
import pyarrow

from pipeline.scores.scoring import RunStamp
from pipeline.settings.audit import hash_of
from schemas.columns import quoted
from schemas.scores import FAIRNESS_HISTORY, GROUP_HISTORY

OF_RUNS = tuple(field.name for field in fields(RunStamp))
"""Columns of numbers that say when, by whom and with which code they were computed."""


def result_hash(connection: duckdb.DuckDBPyConnection, scores: str, groups: str) -> str:
    """Digest of scores and group values, given as SQL of the rows of one batch.

    Rows count with their key, value, reason, interval, noise floor and verdict, to the last bit of
    every number; not the name of the batch, nor when, by whom and with which code they were
    computed, nor the order in which they are stored.  A column without any value counts as one
    that is not there, as in rows of before it was added.
    """
    said = {}
    for table, rows in ((FAIRNESS_HISTORY, scores), (GROUP_HISTORY, groups)):
        there = connection.sql(f"SELECT * FROM {rows} LIMIT 0").columns
        names = [name for name in table.names if name not in ("batch", *OF_RUNS) and name in there]
        key = [name for name in table.key if name in names]
        found = connection.sql(
            f"SELECT {', '.join(map(quoted, names))} FROM {rows} "
            f"ORDER BY {', '.join(map(quoted, key))}"
        ).to_arrow_table()
        said[table.name] = {
            name: _exact(found[name])
            for name in names
            if found[name].null_count < found.num_rows or name in key
        }
    return hash_of(said)


def rows_of_file(database: str) -> tuple[str, str]:
    """SQL of the scores and of the group values in an attached batch file."""
    scores, groups = (
        f"{quoted(database)}.{table.name}" for table in (FAIRNESS_HISTORY, GROUP_HISTORY)
    )
    return scores, groups


def _exact(column: pyarrow.ChunkedArray) -> list[object]:
    """Values as JSON can hold them, doubles in hexadecimal digits: they lose no bit."""
    values: list[object] = column.to_pylist()
    return [value.hex() if isinstance(value, float) else value for value in values]
