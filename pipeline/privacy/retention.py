"""How long rows stay: a batch file without them keeps its counts, scores and manifest.

Not here: putting such a file in the place of the batch's (``history.forget``).
"""

from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path

import duckdb

from pipeline.settings.audit import Settings
from pipeline.store.checkpoints import remove_database
from pipeline.store.sessions import attach, block_size_of, working
from pipeline.store.tables import transaction
from schemas.columns import quoted
from schemas.counts import ITEM_STATS
from schemas.tables import REJECTED_ROWS

ROWS = ("log_entries", "log_lists", "log_items", "log_cells", ITEM_STATS.name, "ranking_log")
"""Tables of a batch file that hold rows, or say something of each list or item of theirs; the last
one is a table in files of older versions only."""
OF_PEOPLE = ("list_id", "item_id", "value")
"""Columns of rejected rows that say whose they were, and what was delivered."""
_FULL, _LEFT = "batch", "stripped"


def expired(settings: Settings, today: date, finished: Mapping[str, datetime]) -> list[str]:
    """Batches whose rows are older than ``privacy.keep_rows_days``, in key order; none without it.

    ``finished`` says when each batch was last run: a key that is no date counts from then.
    """
    keep = settings.privacy.keep_rows_days
    if keep is None:
        return []
    return [
        batch
        for batch, end in sorted(finished.items())
        if (today - _day_of(batch, end)).days > keep
    ]


def _day_of(batch: str, finished: datetime) -> date:
    try:
        return date.fromisoformat(batch)
    except ValueError:
        return finished.date()


def stripped(settings: Settings, path: Path, to: Path) -> bool:
    """Write a batch file, or a file of refused rows, without rows to ``to``; False if it has none.

    ``path`` stays as it is.  What is left is copied into a new file, so no byte of a row is in it:
    scores, counts, the manifest, and of rejected rows where they stood and which rule they broke.
    ``to`` exists only where the result is True.  AuditError where ``path`` cannot be opened.
    """
    remove_database(to)
    with working(settings, [path.parent, to.parent]) as connection:
        attach(connection, path, _FULL, read_only=True, patience=settings.busy_seconds)
        tables = _columns(connection)
        if not _holds_rows(connection, tables):
            return False
        try:
            attach(connection, to, _LEFT, block_size=block_size_of(connection, _FULL))
            connection.execute(f"COPY FROM DATABASE {_FULL} TO {_LEFT} (SCHEMA)")
            with transaction(connection):
                for name, columns in tables.items():
                    if name not in ROWS:
                        connection.execute(
                            f"INSERT INTO {_LEFT}.{quoted(name)} "
                            f"SELECT {_kept(name, columns)} FROM {_FULL}.{quoted(name)}"
                        )
            connection.execute(f"CHECKPOINT {_LEFT}")
            connection.execute(f"DETACH {_LEFT}")
        except BaseException:
            remove_database(to)
            raise
    return True


def _columns(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Tables of the batch file, and the columns of each in order."""
    columns_by_table: dict[str, list[str]] = {}
    for table, column in connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() JOIN duckdb_tables() "
        "USING (database_name, schema_name, table_name) WHERE database_name = ? "
        "ORDER BY table_name, column_index",
        [_FULL],
    ).fetchall():
        columns_by_table.setdefault(table, []).append(column)
    return columns_by_table


def _holds_rows(connection: duckdb.DuckDBPyConnection, tables: Mapping[str, list[str]]) -> bool:
    tests = [f"EXISTS (FROM {_FULL}.{name})" for name in ROWS if name in tables]
    if REJECTED_ROWS.name in tables:
        said = f"coalesce({', '.join(OF_PEOPLE)}) IS NOT NULL"
        tests.append(f"EXISTS (FROM {_FULL}.{REJECTED_ROWS.name} WHERE {said})")
    rows = connection.execute(f"SELECT {' OR '.join(['false', *tests])}").fetchall()
    return bool(rows[0][0])


def _kept(table: str, columns: list[str]) -> str:
    """SQL of the columns of a table as they stay."""
    gone = OF_PEOPLE if table == REJECTED_ROWS.name else ()
    return ", ".join("NULL" if name in gone else quoted(name) for name in columns)
