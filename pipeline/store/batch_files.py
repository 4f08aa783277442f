"""The frame of a batch file: how it is opened, the ids of runs, and its row about itself.

Not here: its tables, each of which belongs to the room that fills it.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb

from pipeline.errors import AuditError
from pipeline.settings.audit import Settings
from pipeline.store.living import alive
from pipeline.store.paths import store_of
from pipeline.store.sessions import attach, working
from pipeline.store.tables import create
from schemas.history import BATCH_INFO

DATABASE = "batch"


@cache
def _process(number: int) -> str:
    """A name for this process, by its ``number``: one that it was forked from has another."""
    return uuid4().hex[:8]


def new_run_id() -> str:
    """An identity for one run of this process."""
    return _process(os.getpid()) + uuid4().hex[:8]


@contextmanager
def living(settings: Settings) -> Iterator[None]:
    """While it lasts, staged files of runs of this process are known to be somebody's.

    Where the process is killed meanwhile, the next run removes them at once.
    """
    store = store_of(settings)
    with suppress(OSError):
        store.make()
    with alive(store.root / "staged", _process(os.getpid())):
        yield


@contextmanager
def opened(
    settings: Settings, path: Path, *, read_only: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A session with the database file ``path`` attached as ``batch``."""
    with working(settings, [path.parent]) as connection:
        attach(connection, path, DATABASE, read_only=read_only, patience=settings.busy_seconds)
        yield connection
        if not read_only:
            connection.execute(f"CHECKPOINT {DATABASE}")


def info(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """The one row of batch_info; AuditError where the file is unfinished."""
    rows = connection.sql(f"FROM {DATABASE}.batch_info").to_arrow_table().to_pylist()
    if not rows:
        raise AuditError("the batch file holds no batch; run the batch again")
    # A file of an older version lacks what is new.
    return {**dict.fromkeys(BATCH_INFO.names), **rows[0]}


def write_info(connection: duckdb.DuckDBPyConnection, row: dict[str, Any]) -> None:
    """Put ``row`` in the place of the row of batch_info, within a transaction."""
    connection.execute(f"DROP TABLE IF EXISTS {DATABASE}.batch_info")
    create(connection, DATABASE, BATCH_INFO)
    marks = ", ".join("?" for _ in BATCH_INFO.names)
    connection.execute(
        f"INSERT INTO {DATABASE}.batch_info ({BATCH_INFO.column_list}) VALUES ({marks})",
        [row[name] for name in BATCH_INFO.names],
    )
