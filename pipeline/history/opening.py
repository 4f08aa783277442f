"""The history's file, opened: made where it is missing, brought up to date, mended.

Here: whoever needs a connection.  Not here: what is written with it (``merging``).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from pipeline.history.commits import (
    check_nothing_lost,
    checked,
    has_history,
    only_begun,
    read_head,
    settle,
)
from pipeline.history.proof import prove
from pipeline.settings.audit import Settings
from pipeline.store.checkpoints import begin_again, remove_database
from pipeline.store.paths import spill_of, store_of
from pipeline.store.sessions import attach, working
from pipeline.store.tables import create, transaction
from schemas.columns import Table, quoted
from schemas.history import BATCHES, HISTORY_TABLES
from schemas.monitoring import ASSESSED, ASSESSMENTS
from schemas.scores import FAIRNESS_HISTORY

HISTORY_DATABASE = "history"
BEGINS_AS = {"verdict": "status", "verdict_reason": "status_reason"}
"""Columns of a newer version that begin as a copy of an older one."""


@contextmanager
def open_history(
    settings: Settings, *, read_only: bool = False
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A session with the history attached; waits for its lock as long as the settings say.

    StoreDamaged where the history is not what the ledger says it is, or where it is lost and there
    are files of batches.  Then nothing is written.
    """
    store = store_of(settings)
    store.make()
    has_history(store)
    with working(settings, [store.root]) as connection:
        if only_begun(store):
            _begin_again(connection, settings)
            read_only = False
        _attach(connection, settings, read_only=read_only)
        end = checked(connection, store)
        begun = end is not None and None not in end.heads
        if end is None and not _holds_batches(connection):
            check_nothing_lost(store)
        head = read_head(connection)
        vouched = prove(connection, store, head[1] if head else None, end)
        if read_only and not begun and not has_table(connection, BATCHES):
            # Whoever made the file was killed before it held anything.
            connection.execute(f"DETACH {HISTORY_DATABASE}")
            read_only = False
            _attach(connection, settings, read_only=read_only)
        if not read_only:
            create_missing(connection)
            settle(connection, store, end, vouched=vouched)
        yield connection


def _begin_again(connection: duckdb.DuckDBPyConnection, settings: Settings) -> None:
    """Put an empty history in the place of one that the first run of all did not finish."""
    empty = spill_of(settings) / f"empty.{os.getpid()}.duckdb"
    try:
        attach(connection, empty, "empty")
        connection.execute("DETACH empty")
        begin_again(store_of(settings).history, empty.read_bytes())
    finally:
        remove_database(empty)


def _attach(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    *,
    read_only: bool,
) -> None:
    attach(
        connection,
        store_of(settings).history,
        HISTORY_DATABASE,
        read_only=read_only,
        patience=settings.busy_seconds,
    )


def has_table(connection: duckdb.DuckDBPyConnection, table: Table) -> bool:
    """Whether the history has ``table``: one of an older version, opened for reading, may not."""
    rows = connection.execute(
        "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND table_name = ?",
        [HISTORY_DATABASE, table.name],
    ).fetchall()
    return bool(rows)


def _holds_batches(connection: duckdb.DuckDBPyConnection) -> bool:
    return has_table(connection, BATCHES) and bool(
        connection.execute(f"FROM {HISTORY_DATABASE}.{BATCHES.name} LIMIT 1").fetchall()
    )


def is_of_before(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the history lacks tables or columns of this version: it was opened for reading."""
    there = _columns(connection)
    return any(not set(table.names) <= there.get(table.name, set()) for table in HISTORY_TABLES)


def _columns(connection: duckdb.DuckDBPyConnection) -> dict[str, set[str]]:
    """Columns of the history, by table."""
    columns_by_table: dict[str, set[str]] = {}
    for table, column in connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = ?",
        [HISTORY_DATABASE],
    ).fetchall():
        columns_by_table.setdefault(table, set()).add(column)
    return columns_by_table


def create_missing(connection: duckdb.DuckDBPyConnection) -> None:
    """Create what the history lacks: all tables at first, later the columns of newer versions.

    An added column is null in rows that were written before it, or a copy where it names what
    another column used to say.  Where scores or assessments say more, all is assessed anew by the
    next run.
    """
    columns_by_table = _columns(connection)
    says_more = any(
        not columns_by_table.get(table.name, {*table.names}).issuperset(table.names)
        for table in (FAIRNESS_HISTORY, *ASSESSED)
    )
    if ASSESSMENTS.name in columns_by_table and says_more:
        with transaction(connection):
            connection.execute(
                f"UPDATE {HISTORY_DATABASE}.{ASSESSMENTS.name} SET assessed_at = NULL"
            )
    missing = [table for table in HISTORY_TABLES if table.name not in columns_by_table]
    if missing:
        with transaction(connection):
            create(connection, HISTORY_DATABASE, *missing)
    for table_of_history in HISTORY_TABLES:
        for added in () if table_of_history in missing else table_of_history.columns:
            if added.name not in columns_by_table[table_of_history.name]:
                with transaction(connection):
                    connection.execute(
                        f"ALTER TABLE {HISTORY_DATABASE}.{table_of_history.name} "
                        f"ADD COLUMN {quoted(added.name)} {added.type}"
                    )
                    if added.name in BEGINS_AS:
                        connection.execute(
                            f"UPDATE {HISTORY_DATABASE}.{table_of_history.name} "
                            f"SET {quoted(added.name)} = {BEGINS_AS[added.name]}"
                        )
