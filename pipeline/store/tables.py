"""Tables in an open database: made, described, changed in one transaction.

Here: what any declared table needs.  Not here: the declarations, which are those of ``schemas``.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import duckdb

from schemas.columns import Table, quoted


def now() -> datetime:
    """The time in UTC, as tables store it."""
    return datetime.now(UTC).replace(tzinfo=None)


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """A transaction that is rolled back on any error.

    An error inside a DuckDB 2.0 transaction aborts it, and a later COMMIT succeeds and stores
    nothing; so no error may be swallowed between BEGIN and COMMIT.
    """
    connection.execute("BEGIN")
    try:
        yield
    except BaseException:
        # After a fatal error there is nothing left to roll back.
        with suppress(duckdb.Error):
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def create(connection: duckdb.DuckDBPyConnection, database: str, *tables: Table) -> None:
    """Create ``tables`` where they are missing."""
    for table in tables:
        connection.execute(table.create(database))


def add_columns(connection: duckdb.DuckDBPyConnection, database: str, *tables: Table) -> None:
    """Add the columns that ``tables`` of an older version lack; they are null in its rows."""
    for table in tables:
        for column in table.columns:
            connection.execute(
                f"ALTER TABLE {quoted(database)}.{quoted(table.name)} "
                f"ADD COLUMN IF NOT EXISTS {quoted(column.name)} {column.type}"
            )


def describe(connection: duckdb.DuckDBPyConnection, database: str, *tables: Table) -> None:
    """Write the descriptions of ``tables`` and their columns into the database."""
    for table in tables:
        for comment in table.comments(database):
            connection.execute(comment)
