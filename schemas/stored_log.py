"""How accepted rows are stored: every text once, rows in whole numbers.

Ids and names are long and repeat; a row says them by number.  What a log does not hold is not
stored either: ``log_rows`` is a view of ``log_entries`` that has every column, and ``ranking_log``
one that joins all tables and reads like the log that was delivered.

Not here: which rows are accepted (``rules``).
"""

from collections.abc import Iterable

from schemas.columns import Column, Table, internal, quoted
from schemas.rules import (
    CLICK,
    ITEM_ID,
    LIST_ID,
    MODEL_VERSION,
    POSITION,
    PREDICTED_CLICK,
    PROPENSITY,
    QUERY_ID,
    RANK,
    REFERENCE_RANK,
    RELEVANCE,
    named,
    ranking_log,
)

_LIST = Column("list", "INTEGER", "number of the list in the batch, from 0")
_LIST_ROWS = Column("list_rows", "INTEGER", "rows of the list")
_ITEM = Column("item", "INTEGER", "number of the item in the batch, from 0")
_CELL = Column("cell", "INTEGER", "number of a combination of attribute values, from 0")


def _whole(column: Column) -> Column:
    return Column(column.name, "INTEGER", column.text, column.nullable, column.checks)


LOG_ROWS = Table(
    "log_rows",
    "A view of log_entries that has every column, null where nothing was logged.",
    (
        _LIST,
        _ITEM,
        _whole(RANK),
        _whole(POSITION),
        RELEVANCE,
        CLICK,
        _whole(REFERENCE_RANK),
        PROPENSITY,
        PREDICTED_CLICK,
        _CELL,
    ),
    key=("list", "item"),
)
LOG_ITEMS = Table("log_items", "Items that were shown.", (_ITEM, ITEM_ID), key=("item",))


def _user(names: Iterable[str]) -> tuple[Column, ...]:
    """Columns that the user named, under their internal names."""
    columns = ((name, named(name)) for name in names)
    return tuple(
        Column("=" + name, column.type, column.text, column.nullable, column.checks)
        for name, column in columns
    )


def log_lists(slices: Iterable[str]) -> Table:
    """The table of accepted lists, for the slices of an audit."""
    return Table(
        "log_lists",
        "Accepted lists, and what all their rows have in common.",
        (_LIST, LIST_ID, _LIST_ROWS, QUERY_ID, MODEL_VERSION, *_user(slices)),
        key=("list",),
    )


def log_cells(attributes: Iterable[str]) -> Table:
    """The table of combinations of attribute values, for the attributes of an audit."""
    return Table(
        "log_cells",
        "Combinations of attribute values that rows have.",
        (_CELL, *_user(attributes)),
        key=("cell",),
    )


def log_entries(logged: Iterable[str], *, placed: bool) -> Table:
    """The table of accepted rows, for the columns that a log holds.

    ``placed``: positions may differ from ranks, and are stored beside them.
    """
    known = {"list", "item", "cell", RANK.name, *logged}
    if placed:
        known.add(POSITION.name)
    return Table(
        "log_entries",
        "Accepted rows, nearly list by list: the row by numbers, and what was logged of it.",
        tuple(column for column in LOG_ROWS.columns if column.name in known),
        key=LOG_ROWS.key,
    )


def stored_log(
    slices: Iterable[str], attributes: Iterable[str], entries: Table
) -> tuple[Table, ...]:
    """All tables that accepted rows are stored in."""
    return log_lists(slices), LOG_ITEMS, log_cells(attributes), entries


def views(slices: tuple[str, ...], attributes: tuple[str, ...], entries: Table) -> Iterable[str]:
    """Statements that make the views of the stored log.

    To be run while the database is in use (USE): a view that named it would not survive opening
    the file under another name.
    """
    absent = {POSITION.name: RANK.name}
    said = ", ".join(
        quoted(column.name)
        if column.name in entries.names
        else f"{absent.get(column.name, f'NULL::{column.type}')} AS {quoted(column.name)}"
        for column in LOG_ROWS.columns
    )
    yield f"CREATE OR REPLACE VIEW {LOG_ROWS.name} AS SELECT {said} FROM {entries.name}"
    view = ranking_log(slices, attributes)
    users = {*slices, *attributes}
    said = ", ".join(
        f"{internal(column.name) if column.name in users else quoted(column.name)}"
        f"::{column.type} AS {quoted(column.name)}"
        for column in view.columns
    )
    yield (
        f"CREATE OR REPLACE VIEW {view.name} AS SELECT {said} FROM {LOG_ROWS.name} "
        f"JOIN log_lists USING (list) JOIN {LOG_ITEMS.name} USING (item) "
        "JOIN log_cells USING (cell)"
    )
