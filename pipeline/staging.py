"""Delivered rows as the session sees them, and those of them that are judged one by one.

``delivered`` is a view of everything that was delivered: file, row and ``number``, which counts
rows through the batch; for each column of the contract what was delivered (``raw relevance``) and
what it is worth (``value relevance``); texts as they are compared (``key list_id``); slices and
attributes as text, under their internal names.

``staged`` is a table of some of these rows, cast and judged: the columns of the contract in their
types and ``problems``, a list with one entry per broken row rule (null entries for the others),
itself null where all rules hold.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import duckdb

from metrics import UNKNOWN
from pipeline.errors import DataRefused
from pipeline.headers import said_of
from pipeline.layouts import Layout
from pipeline.readers import Source, several_files, together
from pipeline.settings import JOIN, Settings
from schemas.columns import Column, Table, internal, literal, quoted
from schemas.offenders import RowRule, obeys, row_rules
from schemas.rules import (
    CLICK,
    ITEM_ID,
    LIST_ID,
    LOGGED,
    QUERY_ID,
    RANK,
    REFERENCE_RANK,
    RELEVANCE,
    ranking_log,
)
from schemas.stored_log import log_entries

TEXT_CUT = 100
"""Characters of an offending value that are kept."""
IDS = (LIST_ID, ITEM_ID)
_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
_FLOATS = ("FLOAT", "DOUBLE")
_NUMBERS = (*_INTEGERS, *_FLOATS, "UBIGINT", "HUGEINT", "UHUGEINT", "BOOLEAN")
_TEXT_FORMATS = ("csv", "jsonl")


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

    def rows(self, query: str) -> list[tuple[int, ...]]:
        """All rows of a query."""
        return self.connection.execute(query).fetchall()

    def column(self, name: str) -> str:
        """SQL of a staged column: one of the contract, or one of the user's."""
        return internal(name) if name in self.names else quoted(name)


def _raw(column: Column) -> str:
    return quoted(f"raw {column.name}")


def value_of(column: Column) -> str:
    """What a delivered column is worth: a number, or a text that is not blank."""
    return quoted(f"value {column.name}")


def key_of(column: Column) -> str:
    """What rows are compared by: an id as it was delivered, which may be a whole number."""
    return quoted(f"key {column.name}")


@dataclass
class _Place:
    """Sources that are read as one, with their numbers and how many rows come before each."""

    source: Source
    layout: Layout
    sources: list[Source]
    files: list[int]
    before: list[int]


def open_delivered(reading: Reading, sources: Sequence[Source], layouts: Sequence[Layout]) -> int:
    """Make the view ``delivered``; returns the number of rows.

    Text is parsed once, into the session, which can spill it; Parquet and frames stay where they
    are.  Files of one shape are one scan, however many.  DataRefused where a file cannot be read
    or the batch has too many rows.
    """
    reading.run("DROP TABLE IF EXISTS delivered_text")
    places: dict[object, _Place] = {}
    total = 0
    for number, (source, layout) in enumerate(zip(sources, layouts, strict=True)):
        try:
            rows = _read_in(reading, number, source, layout)
        except duckdb.Error as error:
            raise unreadable(source, error) from None
        shape = "text" if source.format in _TEXT_FORMATS else together(source) or number
        place = places.setdefault(shape, _Place(source, layout, [], [], []))
        place.sources.append(source)
        place.files.append(number)
        place.before.append(total)
        total += rows
        if total > reading.settings.limits.rows:
            raise DataRefused(
                f"{source.shown}: more than {reading.settings.limits.rows:,} rows in the batch "
                "(limits.rows in the settings)"
            )
    alike = _alike(reading, places.values())
    parts = [_delivered(reading, place, alike) for place in places.values()]
    reading.run(f"CREATE OR REPLACE TEMP VIEW delivered AS {' UNION ALL BY NAME '.join(parts)}")
    return total


def _alike(reading: Reading, places: Iterable[_Place]) -> set[str]:
    """Columns that have one and the same numeric type in all files.

    Only these keep it: a number must not be written otherwise for what stands in another file.
    """
    found = set()
    for column in reading.columns:
        kinds = {place.source.columns[place.layout.found[column.name]] for place in places}
        if len(kinds) == 1 and kinds <= set(_INTEGERS if column in IDS else _NUMBERS):
            found.add(column.name)
    return found


def _read_in(reading: Reading, number: int, source: Source, layout: Layout) -> int:
    """Rows of a source; those of a text file are then in the session."""
    if source.format not in _TEXT_FORMATS:
        ((rows,),) = reading.rows(f"SELECT count(*) FROM {source.table}")
        return rows
    names = _text_columns(layout)
    columns = "".join(f", {name} VARCHAR" for name in names.values())
    reading.run(
        f"CREATE TEMP TABLE IF NOT EXISTS delivered_text (file INTEGER, row BIGINT{columns})"
    )
    said = ", ".join([str(number), source.row, *map(quoted, names)])
    ((rows,),) = reading.rows(f"INSERT INTO delivered_text SELECT {said} FROM {source.table}")
    return rows


def _text_columns(layout: Layout) -> dict[str, str]:
    """What ``delivered_text`` calls the columns of a text file, whatever they are called there."""
    names = dict.fromkeys(layout.found.values())
    return {name: f"text{number}" for number, name in enumerate(names)}


def _numbered(place: _Place) -> tuple[str, str, str, str]:
    """SQL of the rows of a place, and of file, row and number of each."""
    source = place.source
    if source.format in _TEXT_FORMATS:
        before = _picked("file", place.before, place.files)
        return "delivered_text", "file", "row", f"row + {before}"
    if len(place.sources) == 1:
        row = f"{source.row} + {place.before[0]}"
        return source.table, str(place.files[0]), source.row, row
    index = "file_index::INTEGER"
    file, before = (
        _picked(index, numbers, range(len(numbers))) for numbers in (place.files, place.before)
    )
    return several_files(place.sources), file, source.row, f"{source.row} + {before}"


def _picked(index: str, numbers: Sequence[int], at: Iterable[int]) -> str:
    """SQL of the number that stands for ``index``, which is one of ``at``."""
    spread = dict(zip(at, numbers, strict=True))
    return f"({[spread.get(n, 0) for n in range(max(spread) + 1)]}::BIGINT[])[{index} + 1]"


def unreadable(source: Source, error: duckdb.Error) -> Exception:
    """What to raise where DuckDB cannot read a source: DataRefused, without the data it quotes."""
    if isinstance(error, duckdb.OutOfMemoryException):
        return error
    return DataRefused(f"{source.shown}: cannot be read: {said_of(error, source.path)}")


def blamed(
    reading: Reading, sources: Sequence[Source], layouts: Sequence[Layout], error: duckdb.Error
) -> Exception:
    """What to raise where reading all sources failed: DataRefused naming the one that does."""
    for source, layout in zip(sources, layouts, strict=True):
        # Counting alone would not look at values.
        names = ", ".join(f"bit_xor(hash({quoted(name)}))" for name in layout.found.values())
        try:
            reading.rows(f"SELECT {names} FROM {source.table}")
        except duckdb.Error as own:
            return unreadable(source, own)
    return error


def _delivered(reading: Reading, place: _Place, alike: set[str]) -> str:
    """SELECT of the sources of one place, in the columns of the view ``delivered``."""
    source, layout = place.source, place.layout
    names = {name: quoted(name) for name in layout.found.values()}
    if source.format in _TEXT_FORMATS:
        names = _text_columns(layout)
    table, file, row, number = _numbered(place)
    said = [f"({file})::INTEGER AS file", f"{row} AS row", f"{number} AS number"]
    for column in reading.columns:
        delivered = names[layout.found[column.name]]
        kind = source.columns[layout.found[column.name]]
        text = f"CAST({delivered} AS VARCHAR)"
        raw = delivered if column.name in alike else f"nullif(trim({text}), '')"
        if column.type == "VARCHAR":
            # An id of nothing but spaces is a missing one; any other stays as it is.
            value = text if kind in _NUMBERS else unless_blank(text)
            key = delivered if column in IDS and column.name in alike else text
            said.append(f"{key} AS {key_of(column)}")
        else:
            truth = column in (RELEVANCE, CLICK)
            value = _number(delivered, kind, truth=truth)
            if column in (RANK, REFERENCE_RANK) and reading.settings.ranks.start == 0:
                value = f"({value}) + 1"
        said += [f"{raw} AS {_raw(column)}", f"{value} AS {value_of(column)}"]
    for name in reading.users:
        said.append(f"CAST({names[layout.found[name]]} AS VARCHAR) AS {internal(name)}")
    return f"SELECT {', '.join(said)} FROM {table}"


def unless_blank(text: str) -> str:
    """SQL of a text as it is, null where it is nothing but spaces."""
    return f"CASE WHEN trim({text}) <> '' THEN {text} END"


def _rules(reading: Reading) -> list[RowRule]:
    return [
        rule
        for column in reading.columns
        if column is not QUERY_ID
        for rule in row_rules(column, raw=_raw(column), value=value_of(column))
    ]


def suspicious(reading: Reading) -> str:
    """SQL that is true for every delivered row that breaks a row rule, and for few others."""
    tests = [
        f"NOT {obeys(column, raw=_raw(column), value=value_of(column))}"
        for column in reading.columns
        if column.type != "VARCHAR"
    ]
    for column in IDS:
        key = key_of(column)
        # A blank text is empty or begins with a space: with the usual one, which nothing printed
        # comes before, or with one of those beyond ASCII.
        blank = "false"
        if _is_text(reading, column):
            blank = f"{key} < '!' OR ({key} >= '\u00a0' AND trim({key}) = '')"
        tests.append(f"({key} IS NULL OR {blank})")
    return " OR ".join(tests)


def _is_text(reading: Reading, column: Column) -> bool:
    ((kind,),) = reading.connection.execute(
        f"SELECT typeof(any_value({key_of(column)})) FROM (FROM delivered LIMIT 0)"
    ).fetchall()
    return str(kind) == "VARCHAR"


def stage(reading: Reading, lists: str) -> None:
    """Fill ``staged`` with the delivered rows of ``lists``, a table with keys of lists."""
    columns = [f"{quoted(column.name)} {column.type}" for column in LOGGED]
    columns += [f"{internal(name)} VARCHAR" for name in reading.names]
    reading.run(
        f"CREATE OR REPLACE TEMP TABLE staged (file INTEGER, row BIGINT, number BIGINT, "
        f"{', '.join(columns)}, "
        'problems STRUCT(rule VARCHAR, "column" VARCHAR, value VARCHAR, problem VARCHAR)[])'
    )
    said = ["file", "row", "number"]
    said += [f"{_typed(column)} AS {quoted(column.name)}" for column in reading.columns]
    # Slices are compared within a list; attributes wait until they are numbered.
    said += [
        f"{tidy(internal(name)) if name in reading.settings.slices else internal(name)} "
        f"AS {internal(name)}"
        for name in reading.users
    ]
    rules = _rules(reading)
    broken = " OR ".join(f"({rule.offends})" for rule in rules)
    entries = ", ".join(
        f"CASE WHEN {rule.offends} THEN {{'rule': {literal(rule.name)}, "
        f"'column': {literal(rule.column)}, 'problem': {literal(rule.error)}, "
        f"'value': left(CAST({quoted('raw ' + rule.column)} AS VARCHAR), {TEXT_CUT})}} END"
        for rule in rules
    )
    said.append(f"CASE WHEN {broken} THEN [{entries}] END AS problems")
    key = key_of(LIST_ID)
    reading.run(
        f"INSERT INTO staged BY NAME SELECT {', '.join(said)} FROM delivered "
        f"SEMI JOIN {lists} AS chosen ON delivered.{key} IS NOT DISTINCT FROM chosen.key"
    )


def _number(name: str, kind: str, *, truth: bool) -> str:
    """SQL of a number delivered in the type ``kind`` as DOUBLE, null where it is none.

    ``truth``: true and false are 1 and 0.  DuckDB also takes 1_000 for a number; a log does not.
    """
    value = f"TRY_CAST({name} AS DOUBLE)"
    if kind in _FLOATS:
        # DuckDB 2.0 trusts statistics of Parquet files that leave NaN out, and then takes any
        # comparison with it for decided; infinities are compared as they should be.
        kept = f"isfinite({value}) OR {value} < 0"
        return f"CASE WHEN NOT ({kept}) THEN 'infinity'::DOUBLE ELSE {value} END"
    if kind != "VARCHAR":
        return value
    words = "WHEN lower({0}) = 'true' THEN 1.0 WHEN lower({0}) = 'false' THEN 0.0 " if truth else ""
    return f"CASE WHEN contains({name}, '_') THEN NULL {words.format(name)}ELSE {value} END"


def _typed(column: Column) -> str:
    """SQL of a delivered value in the column's own type, null where it does not fit."""
    value = value_of(column)
    if column.type in ("DOUBLE", "VARCHAR"):
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
    """Fill ``item_table`` of the session, one row per item, and the group sizes.

    DataRefused if an item stands there twice or has no id.
    """
    names = [name for name in reading.settings.attribute_columns if name in layout.found]
    values = "".join(
        f", {tidy(f'CAST({quoted(layout.found[name])} AS VARCHAR)')} AS {internal(name)}"
        for name in names
    )
    try:
        reading.run(
            f"CREATE OR REPLACE TEMP TABLE item_table AS SELECT "
            f"CAST({quoted(layout.found['item_id'])} AS VARCHAR) AS item_id{values} "
            f"FROM {items.table}"
        )
    except duckdb.Error as error:
        raise unreadable(items, error) from None
    ((rows, apart, missing),) = reading.rows(
        "SELECT count(*), count(DISTINCT item_id), count(*) FILTER (item_id IS NULL) "
        "FROM item_table"
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
                f"count(*) FROM item_table GROUP BY ALL"
            )
