"""A table is described once: dtypes, SQL, pandera, comments and documentation follow from it.

Not here: any table.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import pandas as pd
import pandera.pandas as pa
import pyarrow

Row = dict[str, Any]
"""One row of a table: values by the names of its columns."""

SqlType = Literal[
    "VARCHAR",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "DOUBLE",
    "BOOLEAN",
    "DATE",
    "TIMESTAMP",
    "INTEGER[]",
    "DOUBLE[]",
]

_ARROW: dict[SqlType, pyarrow.DataType] = {
    "VARCHAR": pyarrow.string(),
    "INTEGER": pyarrow.int32(),
    "BIGINT": pyarrow.int64(),
    "HUGEINT": pyarrow.decimal128(38, 0),
    "DOUBLE": pyarrow.float64(),
    "BOOLEAN": pyarrow.bool_(),
    "DATE": pyarrow.date32(),
    "TIMESTAMP": pyarrow.timestamp("us"),
    "INTEGER[]": pyarrow.list_(pyarrow.int32()),
    "DOUBLE[]": pyarrow.list_(pyarrow.float64()),
}


def quoted(name: str) -> str:
    """``name`` as a SQL identifier, whatever characters it holds."""
    return '"' + name.replace('"', '""') + '"'


def internal(name: str) -> str:
    """A column named by the user, as statements call it in tables of their own.

    No name of ours starts with '=', so whatever users call their columns, the two never meet.
    """
    return quoted("=" + name)


def literal(text: str) -> str:
    """``text`` as a SQL string, for the few places where a statement cannot bind a value."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class Column:
    """One column: its SQL type, what it means, and the pandera checks its values must pass."""

    name: str
    type: SqlType
    text: str
    nullable: bool = False
    checks: tuple[pa.Check, ...] = ()

    @property
    def arrow(self) -> pyarrow.DataType:
        """The Arrow type that values of the column travel as."""
        return _ARROW[self.type]

    @property
    def pandera(self) -> pa.Column:
        """The column as pandera validates it, on Arrow-backed data."""
        return pa.Column(
            pd.ArrowDtype(self.arrow), checks=list(self.checks), nullable=self.nullable
        )


@dataclass(frozen=True)
class Table:
    """One table: its columns in order, and ``key``, the columns that name a row."""

    name: str
    text: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in order."""
        return tuple(column.name for column in self.columns)

    @property
    def column_list(self) -> str:
        """Quoted column names, for SELECT and INSERT: tables are matched by name only."""
        return ", ".join(quoted(name) for name in self.names)

    @cached_property
    def schema(self) -> pa.DataFrameSchema:
        """The pandera schema of the table; columns outside it are refused."""
        return pa.DataFrameSchema(
            {column.name: column.pandera for column in self.columns},
            name=self.name,
            strict=True,
            unique=list(self.key) or None,
        )

    def schema_of(self, names: Iterable[str]) -> pa.DataFrameSchema:
        """The pandera schema of some columns, whatever stands beside them."""
        columns = {column.name: column.pandera for column in self.columns}
        return pa.DataFrameSchema({name: columns[name] for name in names}, name=self.name)

    @cached_property
    def arrow(self) -> pyarrow.Schema:
        """The Arrow schema in which rows of the table travel."""
        return pyarrow.schema([(column.name, column.arrow) for column in self.columns])

    def create(self, database: str, name: str | None = None) -> str:
        """CREATE TABLE for an attached ``database``; an existing table is left as it is."""
        body = ", ".join(
            f"{quoted(column.name)} {column.type}{'' if column.nullable else ' NOT NULL'}"
            for column in self.columns
        )
        return f"CREATE TABLE IF NOT EXISTS {quoted(database)}.{quoted(name or self.name)} ({body})"

    def comments(self, database: str, name: str | None = None) -> Iterable[str]:
        """Statements that put the descriptions into the database itself."""
        target = f"{quoted(database)}.{quoted(name or self.name)}"
        yield f"COMMENT ON TABLE {target} IS {literal(self.text)}"
        for column in self.columns:
            yield (f"COMMENT ON COLUMN {target}.{quoted(column.name)} IS {literal(column.text)}")

    def having(self, *extra: Column, first: bool = False, **changes: object) -> "Table":
        """The same table with more columns, at the front or the end, and other fields changed."""
        columns = (*extra, *self.columns) if first else (*self.columns, *extra)
        return replace(self, columns=columns, **changes)  # type: ignore[arg-type]

    def without(self, *names: str) -> "Table":
        """The same table with some columns left out, from the key too."""
        return replace(
            self,
            columns=tuple(column for column in self.columns if column.name not in names),
            key=tuple(name for name in self.key if name not in names),
        )
