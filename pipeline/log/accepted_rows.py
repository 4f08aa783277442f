"""Accepted rows, written as whole numbers: lists, items, combinations of attribute values, rows.

Not here: which rows are accepted (``screening``, ``rejected_rows``), and what the tables are
(``schemas.stored_log``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from metrics import UNKNOWN
from pipeline.log.counted_as import count_rows, group_meant
from pipeline.log.joined_items import count_joined
from pipeline.log.reading import Reading, key_of, value_of
from pipeline.log.rejected_rows import accepted
from pipeline.log.screening import clean, described
from pipeline.log.staged_rows import is_text
from pipeline.log.validation import Broken
from pipeline.log.values import has_control, tidy, unless_blank
from pipeline.privacy.hashed_ids import is_hashed, stored_id
from schemas.columns import Column, internal, literal, quoted
from schemas.rules import ITEM_ID, LIST_ID, MODEL_VERSION, QUERY_ID, RANK, SCORE
from schemas.stored_log import LOG_ITEMS, log_cells, log_lists

_LIST, _ITEM = key_of(LIST_ID), key_of(ITEM_ID)


@dataclass(frozen=True)
class Part:
    """Some accepted rows, in the columns of ``delivered``, and their lists.

    ``lists`` has ``key``, ``rows``, what lists say of their request, and ``first``, their order.
    ``apart``: rows of a list do not follow one another.  ``holes``: rows that were dropped left
    gaps in the ranks.
    """

    rows: str
    lists: str
    apart: bool
    holes: bool = False


def clean_part(*, suspects: bool, apart: bool) -> Part:
    """Rows of the lists that are not suspect, straight from what was delivered."""
    rows = "delivered"
    if suspects:
        rows = f"(FROM delivered SEMI JOIN {clean()} AS clean ON delivered.{_LIST} = clean.key)"
    return Part(rows, clean(), apart)


def judged_part(reading: Reading) -> Part:
    """Rows of suspect lists that were let in all the same."""
    said = [f"{quoted(column.name)} AS {_delivered_as(column)}" for column in reading.columns]
    users = [internal(name) for name in reading.users]
    rows = f"(SELECT number, {', '.join([*said, *users])} FROM staged {accepted(reading)})"
    about = "".join(f", any_value({name}) AS {name}" for name in described(reading))
    lists = (
        f"(SELECT {_LIST} AS key, min(number) AS first, count(*) AS rows{about} "
        f"FROM {rows} GROUP BY ALL)"
    )
    return Part(rows, lists, apart=True, holes=reading.settings.rejects.policy == "drop_row")


def _delivered_as(column: Column) -> str:
    return key_of(column) if column.type == "VARCHAR" else value_of(column)


def store(reading: Reading, part: Part, supplied: Sequence[str]) -> None:
    """Add ``part`` to the tables of the stored log.

    ``supplied`` are attributes that come from the item table.
    """
    _number_lists(reading, part)
    _number_items(reading, part, supplied)
    _number_cells(reading, part, supplied)
    _store_rows(reading, part, supplied)
    if reading.settings.values:
        logged = [name for name in reading.settings.attribute_columns if name not in supplied]
        count_rows(reading, part.rows, logged)
        items = f"{part.rows} AS log JOIN item_numbers AS items ON log.{_ITEM} = items.key"
        count_rows(reading, items, supplied)


def _following(reading: Reading, table: str) -> str:
    """SQL of numbers that go on from those in ``table``, to be followed by a window."""
    ((there,),) = reading.rows(f"SELECT count(*) FROM {reading.database}.{table}")
    return f"{there} - 1 + row_number() OVER"


def _number_lists(reading: Reading, part: Part) -> None:
    table = log_lists(reading.settings.slices)
    reading.run(
        "CREATE OR REPLACE TEMP TABLE list_numbers AS SELECT "
        f"({_following(reading, table.name)} (ORDER BY first))::INTEGER AS list, * "
        f"FROM {part.lists}"
    )
    own = "CAST(key AS VARCHAR)"
    kept = stored_id(reading.settings, LIST_ID.name, own)
    values = {LIST_ID.name: kept, QUERY_ID.name: _stored_query(reading, own)}
    if MODEL_VERSION.name in reading.logged:
        values[MODEL_VERSION.name] = unless_blank(key_of(MODEL_VERSION))
    for name in reading.settings.slices:
        values["=" + name] = tidy(internal(name))
    values["list_rows"] = "rows"
    said = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in values.items())
    reading.run(
        f"INSERT INTO {reading.database}.{table.name} BY NAME "
        f"SELECT list, {said} FROM list_numbers ORDER BY list"
    )


def _stored_query(reading: Reading, own: str) -> str:
    """SQL of the query of a list: the list itself, whose id is ``own``, where none is logged."""
    settings = reading.settings
    query = "NULL"
    if QUERY_ID.name in reading.logged:
        query = unless_blank(key_of(QUERY_ID))
    if is_hashed(settings, QUERY_ID.name):
        return stored_id(settings, QUERY_ID.name, f"coalesce({query}, {own})")
    return f"coalesce({query}, {stored_id(settings, LIST_ID.name, own)})"


def _number_items(reading: Reading, part: Part, supplied: Sequence[str]) -> None:
    """Session table ``item_numbers``: keys of items, their numbers and supplied attributes."""
    log = f"{reading.database}.{LOG_ITEMS.name}"
    kept = stored_id(reading.settings, ITEM_ID.name, "CAST(key AS VARCHAR)")
    reading.run(
        f"CREATE OR REPLACE TEMP TABLE item_keys AS SELECT key, item_rows, {kept} AS item_id "
        f"FROM (SELECT {_ITEM} AS key, count(*) AS item_rows FROM {part.rows} GROUP BY ALL)"
    )
    _refuse_control(reading, part)
    reading.run(
        f"INSERT INTO {log} SELECT ({_following(reading, LOG_ITEMS.name)} ())::INTEGER, item_id "
        f"FROM item_keys ANTI JOIN {log} USING (item_id)"
    )
    values = "".join(
        f", coalesce(known.{internal(name)}, {literal(UNKNOWN)}) AS {internal(name)}"
        for name in supplied
    )
    # The item table has its ids as they were delivered.
    join = "LEFT JOIN item_table AS known ON known.item_id = CAST(key AS VARCHAR)"
    joined = ", item_rows, known.item_id IS NOT NULL AS joined"
    if not supplied:
        join = joined = ""
    reading.run(
        f"CREATE OR REPLACE TEMP TABLE item_numbers AS SELECT key, item{joined}{values} "
        f"FROM item_keys JOIN {log} AS log USING (item_id) {join}"
    )
    if supplied:
        count_joined(reading)


def _refuse_control(reading: Reading, part: Part) -> None:
    """Broken where an item is called what nobody can see."""
    control = has_control("key")
    if is_text(reading, ITEM_ID) and reading.rows(
        f"SELECT 1 FROM item_keys WHERE {control} LIMIT 1"
    ):
        lists = reading.connection.execute(
            f"SELECT DISTINCT CAST({_LIST} AS VARCHAR) FROM {part.rows} "
            f"JOIN (FROM item_keys WHERE {control}) ON key = {_ITEM}"
        ).fetchall()
        raise Broken([name for (name,) in lists])


def _number_cells(reading: Reading, part: Part, supplied: Sequence[str]) -> None:
    """Session table ``cell_numbers``: attribute values as they come, and their cell.

    Values that differ in how they are written only are one, and so are those that the settings
    count as one.
    """
    names = reading.settings.attribute_columns
    table = log_cells(names)
    log = f"{reading.database}.{table.name}"
    if not names:
        reading.run(f"INSERT INTO {log} SELECT 0 WHERE NOT EXISTS (FROM {log})")
        return
    columns = ", ".join(map(internal, names))
    logged = [name for name in names if name not in supplied]
    rows = "item_numbers"
    if logged:
        join = f" JOIN item_numbers ON key = {_ITEM}" if supplied else ""
        rows = f"{part.rows}{join}"
    meant = ", ".join(
        f"{group_meant(reading, name, tidy(internal(name)))} AS {quoted('group ' + name)}"
        for name in names
    )
    reading.run(
        f"CREATE OR REPLACE TEMP TABLE cell_values AS SELECT *, {meant} "
        f"FROM (SELECT DISTINCT {columns} FROM {rows})"
    )
    new = ", ".join(f"{quoted('group ' + name)} AS {internal(name)}" for name in names)
    reading.run(
        f"INSERT INTO {log} BY NAME SELECT "
        f"({_following(reading, table.name)} (ORDER BY {columns}))::INTEGER AS cell, * "
        f"FROM (SELECT DISTINCT {new} FROM cell_values) ANTI JOIN {log} USING ({columns})"
    )
    on = " AND ".join(f"found.{quoted('group ' + name)} = log.{internal(name)}" for name in names)
    found = ", ".join(f"found.{internal(name)}" for name in names)
    reading.run(
        f"CREATE OR REPLACE TEMP TABLE cell_numbers AS SELECT {found}, log.cell "
        f"FROM cell_values AS found JOIN {log} AS log ON {on}"
    )


def _store_rows(reading: Reading, part: Part, supplied: Sequence[str]) -> None:
    settings = reading.settings
    names = settings.attribute_columns
    logged = [name for name in names if name not in supplied]
    items = "item_numbers"
    if not names:
        items = "(SELECT *, 0 AS cell FROM item_numbers)"
    elif not logged:
        items = (
            f"(SELECT key, item, cell FROM item_numbers JOIN cell_numbers USING ({_all(names)}))"
        )
    cells = ""
    if logged:
        on = " AND ".join(
            f"{'items' if name in supplied else 'log'}.{internal(name)} "
            f"IS NOT DISTINCT FROM cells.{internal(name)}"
            for name in names
        )
        cells = f"JOIN cell_numbers AS cells ON {on}"
    ordinal = "row_number() OVER (PARTITION BY list ORDER BY {})"
    rank = position = value_of(RANK)
    if RANK.name not in reading.logged:
        rank = position = ordinal.format(f"{value_of(SCORE)} DESC, CAST(log.{_ITEM} AS VARCHAR)")
    elif settings.ranks.gaps == "compact":
        rank = position = ordinal.format(value_of(RANK))
    elif settings.ranks.gaps == "keep" or part.holes:
        position = ordinal.format(value_of(RANK))
    values = {"list": "list", "item": "item", "cell": "cell", "rank": rank, "position": position}
    for column in reading.columns:
        if column.name in reading.entries.names and column is not RANK:
            values[column.name] = value_of(column)
            if column.type == "DOUBLE":
                # A minus before a zero says nothing, but is another value to some libraries.
                values[column.name] += " + 0.0"
    for name, missing in (
        ("relevance", settings.missing_relevance),
        ("click", settings.missing_click),
    ):
        if name in values and missing == "zero":
            values[name] = f"coalesce({values[name]}, 0)"
    select_list = ", ".join(
        f"CAST({values[column.name]} AS {column.type}) AS {quoted(column.name)}"
        for column in reading.entries.columns
    )
    order = "ORDER BY list" if part.apart or position != value_of(RANK) else ""
    reading.run(
        f"INSERT INTO {reading.database}.{reading.entries.name} BY NAME SELECT {select_list} "
        f"FROM {part.rows} AS log JOIN list_numbers AS lists ON log.{_LIST} = lists.key "
        f"JOIN {items} AS items ON log.{_ITEM} = items.key {cells} {order}"
    )


def _all(names: Sequence[str]) -> str:
    return ", ".join(map(internal, names))
