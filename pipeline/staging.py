"""Delivered rows, cast and judged one by one: the table ``staged`` of a scratch database.

``staged`` has one row per delivered row: file and row number, the columns of the contract in their
types, slices and attributes under their internal names, and ``problems``, a list with one entry
per broken row rule (null entries for the others), itself null where all rules hold.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import duckdb

from metrics import UNKNOWN
from pipeline.errors import DataRefused
from pipeline.layouts import Layout
from pipeline.readers import Source
from pipeline.settings import JOIN, Settings
from pipeline.store import first_line
from schemas.columns import Column, Table, internal, literal, quoted
from schemas.offenders import RowRule, row_rules
from schemas.rules import (
    CLICK,
    LOGGED,
    QUERY_ID,
    RANK,
    REFERENCE_RANK,
    RELEVANCE,
    ranking_log,
)

TEXT_CUT = 100
"""Characters of an offending value that are kept."""


@dataclass(frozen=True)
class Reading:
    """What the steps of reading one batch share: a session, settings and two databases.

    ``database`` is the batch file, ``scratch`` what is thrown away; both are attached and quoted.
    """

    connection: duckdb.DuckDBPyConnection
    settings: Settings
    database: str
    scratch: str

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Columns named by the user: slices, then attributes."""
        return (*self.settings.slices, *self.settings.attribute_columns)

    @cached_property
    def table(self) -> Table:
        """The table of accepted rows."""
        return ranking_log(self.settings.slices, self.settings.attribute_columns)

    def run(self, statement: str) -> None:
        """Execute a statement that returns nothing."""
        self.connection.execute(statement)

    def rows(self, query: str) -> list[tuple[int, ...]]:
        """All rows of a query."""
        return self.connection.execute(query).fetchall()

    def column(self, name: str) -> str:
        """SQL of a staged column: one of the contract, or one of the user's."""
        return internal(name) if name in self.names else quoted(name)


def stage(reading: Reading, sources: Sequence[Source], layouts: Sequence[Layout]) -> None:
    """Fill ``staged`` from all sources; DataRefused where one cannot be read to its end."""
    columns = [f"{quoted(column.name)} {column.type}" for column in LOGGED]
    columns += [f"{internal(name)} VARCHAR" for name in reading.names]
    reading.run(
        f"CREATE TABLE {reading.scratch}.staged (file INTEGER, row BIGINT, {', '.join(columns)}, "
        'problems STRUCT(rule VARCHAR, "column" VARCHAR, value VARCHAR, problem VARCHAR)[])'
    )
    limit = reading.settings.limits.rows
    for number, (source, layout) in enumerate(zip(sources, layouts, strict=True)):
        query = _staged_rows(reading, number, source, layout)
        try:
            reading.run(f"INSERT INTO {reading.scratch}.staged BY NAME {query}")
        except duckdb.Error as error:
            raise DataRefused(f"{source.shown}: {reading_failed(error)}") from None
        if reading.rows(f"SELECT count(*) FROM {reading.scratch}.staged")[0][0] > limit:
            raise DataRefused(
                f"{source.shown}: more than {limit:,} rows in the batch "
                "(limits.rows in the settings)"
            )


def _staged_rows(reading: Reading, number: int, source: Source, layout: Layout) -> str:
    """SELECT of one source: delivered and cast values inside, broken rules outside."""
    inner = [f"{source.row} AS row"]
    outer = [f"{number}::INTEGER AS file", "row"]
    rules: list[RowRule] = []
    for column in LOGGED:
        delivered = layout.found.get(column.name)
        if delivered is None:
            continue
        raw, value = quoted(f"raw {column.name}"), quoted(f"value {column.name}")
        said = f"CAST({quoted(delivered)} AS VARCHAR)"
        if column.type == "VARCHAR":
            # An id of nothing but spaces is a missing one; any other stays as it is.
            known = f"CASE WHEN trim({said}) <> '' THEN {said} END"
            inner += [f"{known} AS {raw}", f"{known} AS {value}"]
            outer.append(f"{value} AS {quoted(column.name)}")
        else:
            text = source.columns[delivered] == "VARCHAR"
            truth = column in (RELEVANCE, CLICK)
            cast = _number(quoted(delivered), text=text, truth=truth)
            if column in (RANK, REFERENCE_RANK) and reading.settings.ranks.start == 0:
                cast = f"({cast}) + 1"
            inner += [f"nullif(trim({said}), '') AS {raw}", f"{cast} AS {value}"]
            outer.append(f"{_typed(column, value)} AS {quoted(column.name)}")
        if column is not QUERY_ID:
            rules += row_rules(column, raw=raw, value=value)
    for name in reading.names:
        if name in layout.found:
            inner.append(f"CAST({quoted(layout.found[name])} AS VARCHAR) AS {internal(name)}")
            outer.append(f"{tidy(internal(name))} AS {internal(name)}")
    broken = " OR ".join(f"({rule.offends})" for rule in rules)
    entries = ", ".join(
        f"CASE WHEN {rule.offends} THEN {{'rule': {literal(rule.name)}, "
        f"'column': {literal(rule.column)}, 'problem': {literal(rule.error)}, "
        f"'value': left({quoted('raw ' + rule.column)}, {TEXT_CUT})}} END"
        for rule in rules
    )
    outer.append(f"CASE WHEN {broken} THEN [{entries}] END AS problems")
    return f"SELECT {', '.join(outer)} FROM (SELECT {', '.join(inner)} FROM {source.table})"


def _number(name: str, *, text: bool, truth: bool) -> str:
    """SQL of a delivered number as DOUBLE, null where it is none.

    ``truth``: true and false are 1 and 0.  DuckDB also takes 1_000 for a number; a log does not.
    """
    if not text:
        return f"TRY_CAST({name} AS DOUBLE)"
    words = "WHEN lower({0}) = 'true' THEN 1.0 WHEN lower({0}) = 'false' THEN 0.0 " if truth else ""
    return (
        f"CASE WHEN contains({name}, '_') THEN NULL {words.format(name)}"
        f"ELSE TRY_CAST({name} AS DOUBLE) END"
    )


def _typed(column: Column, value: str) -> str:
    """SQL of a checked DOUBLE in the column's own type, null where it does not fit."""
    if column.type == "DOUBLE":
        return value
    fits = f"isfinite({value}) AND {value} = floor({value}) AND abs({value}) < 9e15"
    return f"CASE WHEN {fits} THEN CAST({value} AS {column.type}) END"


def tidy(name: str) -> str:
    """SQL of a slice or attribute value: NFC, without surrounding space, unknown where empty."""
    outside = r"[\s\p{Z}\p{C}]+"
    trimmed = f"regexp_replace(nfc_normalize({name}), '^{outside}|{outside}$', '', 'g')"
    return f"coalesce(nullif({trimmed}, ''), {literal(UNKNOWN)})"


def group_of(attribute: Sequence[str], column: Callable[[str], str] = quoted) -> str:
    """SQL of the group of a row; an intersection is unknown where one of its parts is.

    ``column`` says what the tables at hand call an attribute column.
    """
    if len(attribute) == 1:
        return column(attribute[0])
    unknown = " OR ".join(f"{column(name)} = {literal(UNKNOWN)}" for name in attribute)
    joined = f" || {literal(JOIN)} || ".join(column(name) for name in attribute)
    return f"CASE WHEN {unknown} THEN {literal(UNKNOWN)} ELSE {joined} END"


def read_items(reading: Reading, items: Source, layout: Layout) -> None:
    """Fill ``items`` of the scratch database, one row per item, and the group sizes.

    DataRefused if an item stands there twice or has no id.
    """
    names = [name for name in reading.settings.attribute_columns if name in layout.found]
    values = "".join(
        f", {tidy(f'CAST({quoted(layout.found[name])} AS VARCHAR)')} AS {internal(name)}"
        for name in names
    )
    try:
        reading.run(
            f"CREATE TABLE {reading.scratch}.items AS SELECT "
            f"CAST({quoted(layout.found['item_id'])} AS VARCHAR) AS item_id{values} "
            f"FROM {items.table}"
        )
    except duckdb.Error as error:
        raise DataRefused(f"{items.shown}: {reading_failed(error)}") from None
    ((rows, apart, missing),) = reading.rows(
        "SELECT count(*), count(DISTINCT item_id), count(*) FILTER (item_id IS NULL) "
        f"FROM {reading.scratch}.items"
    )
    if apart < rows:
        raise DataRefused(
            f"{items.shown}: {rows - apart - missing:,} rows repeat an item_id and {missing:,} "
            "have none; the item table has one row per item"
        )
    for attribute in reading.settings.attributes:
        if set(attribute) <= set(names):
            reading.run(
                f"INSERT INTO {reading.database}.group_sizes "
                f"SELECT {literal(JOIN.join(attribute))}, {group_of(attribute, internal)}, "
                f"count(*) FROM {reading.scratch}.items GROUP BY ALL"
            )


def reading_failed(error: duckdb.Error) -> str:
    """What DuckDB says of a file it cannot read, without the data that it quotes."""
    first = first_line(error).removeprefix("Invalid Input Error: ")
    lines = (line.strip() for line in str(error).split("\n"))
    where = next((line for line in lines if line.startswith("Line:")), "")
    return f"cannot be read: {first}" + (f" ({where})" if where and where not in first else "")
