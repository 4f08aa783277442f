"""One delivery being read: its session, its columns, and the SQL names they have in it.

Here: what the modules that read hand each other.  Not here: the statements (``delivered_rows``,
``staged_rows``).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import duckdb
import pyarrow

from pipeline.settings.audit import Settings
from schemas.columns import Column, Table, internal, quoted
from schemas.rules import ITEM_ID, LIST_ID, LOGGED, ranking_log
from schemas.stored_log import log_entries

TEXT_CUT = 100
"""Characters of an offending value that are kept: enough to recognise it, whatever its length."""
IDS = (LIST_ID, ITEM_ID)


@dataclass(frozen=True)
class Reading:
    """What the steps of reading one batch share: a session, settings and the batch file.

    ``name`` is the batch file's, which is attached; what is not kept stands in tables of the
    session.  ``logged`` are the columns that the log holds.
    """

    connection: duckdb.DuckDBPyConnection
    settings: Settings
    name: str
    logged: frozenset[str]

    @property
    def database(self) -> str:
        """The batch file in SQL."""
        return quoted(self.name)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Columns named by the user: slices, then attributes."""
        return (*self.settings.slices, *self.settings.attribute_columns)

    @cached_property
    def table(self) -> Table:
        """The table of accepted rows."""
        return ranking_log(self.settings.slices, self.settings.attribute_columns)

    @cached_property
    def entries(self) -> Table:
        """The table that accepted rows are stored in."""
        settings = self.settings
        dropping = settings.rejects.policy == "drop_row"
        return log_entries(self.logged, placed=settings.ranks.gaps == "keep" or dropping)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the contract that the log holds."""
        return tuple(column for column in LOGGED if column.name in self.logged)

    @cached_property
    def users(self) -> tuple[str, ...]:
        """Columns named by the user that the log holds."""
        return tuple(name for name in self.names if name in self.logged)

    def run(self, statement: str) -> None:
        """Execute a statement that returns nothing."""
        self.connection.execute(statement)

    @contextmanager
    def registered(
        self, name: str, rows: pyarrow.Table | pyarrow.RecordBatchReader
    ) -> Iterator[None]:
        """For the time being, ``rows`` under a name that statements can select from."""
        self.connection.register(name, rows)
        yield
        # After an error the session ends; its transaction would answer nothing but another error.
        self.connection.unregister(name)

    def rows(self, query: str) -> list[tuple[int, ...]]:
        """All rows of a query."""
        return self.connection.execute(query).fetchall()

    def column(self, name: str) -> str:
        """SQL of a staged column: one of the contract, or one of the user's."""
        return internal(name) if name in self.names else quoted(name)


def raw_of(column: Column) -> str:
    """SQL name of what was delivered for a column."""
    return quoted(f"raw {column.name}")


def value_of(column: Column) -> str:
    """What a delivered column is worth: a number, or a text that is not blank."""
    return quoted(f"value {column.name}")


def key_of(column: Column) -> str:
    """What rows are compared by: an id as it was delivered, which may be a whole number."""
    return quoted(f"key {column.name}")
