"""What a view of the published copy is, and SQL that several of them share.

Not here: any view (``views``, ``usual``).
"""

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.columns import Column, Table, quoted
from schemas.history import HISTORY
from schemas.judged import judged_sql


@dataclass(frozen=True)
class View(Table):
    """A view: what one row is, its columns in order, ``query`` to take them from, and ``order``.

    ``key`` are the columns that name a row.
    """

    query: str = ""
    order: str = ""

    def create(self, database: str, name: str | None = None) -> str:
        """CREATE VIEW for a ``database`` that is in use: a query that named it would be tied to it.

        The tables and views that it reads are there before it.
        """
        order = f" ORDER BY {self.order}" if self.order else ""
        return (
            f"CREATE VIEW {quoted(name or self.name)} AS "
            f"SELECT {self.column_list} FROM ({self.query}){order}"
        )

    def comments(self, database: str, name: str | None = None) -> Iterable[str]:
        """Statements that put the descriptions into the database itself."""
        first, *others = super().comments(database, name)
        yield first.replace("COMMENT ON TABLE", "COMMENT ON VIEW", 1)
        yield from others


LABELLED = Column("label", "VARCHAR", "metric and aggregation as printed: EXP.MinMaxRatio")
RELEASE = Column("release", "VARCHAR", "what was marked last, at or before the batch", True)
SCORE_KEY = (*HISTORY[0].columns[:6], LABELLED)
"""The columns that name a score, in every view that is about scores."""
JUDGED_SQL = ", ".join(f"{sql} AS {of}" for of, sql in judged_sql().items())
"""Each judged column, filled with what is told of all groups where it says nothing."""
NOW = "make_timestamp(epoch_us(now()))"
"""The time in UTC, in any time zone of the reader and without a library of time zones."""


def of(table: Table, *names: str) -> tuple[Column, ...]:
    """Columns of a table, by name."""
    known = {column.name: column for column in table.columns}
    return tuple(known[name] for name in names)


def perhaps(*columns: Column) -> tuple[Column, ...]:
    """The same columns, null in rows that have nothing to say there."""
    return tuple(Column(each.name, each.type, each.text, nullable=True) for each in columns)


def same(one: str, other: str, names: Iterable[str]) -> str:
    """SQL: two rows agree in ``names``, nulls included."""
    return " AND ".join(
        f"{one}.{name} {'=' if name == 'batch' else 'IS NOT DISTINCT FROM'} {other}.{name}"
        for name in names
    )
