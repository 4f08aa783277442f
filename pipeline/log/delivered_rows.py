"""Delivered rows as the session sees them, and those of them that are judged one by one.

``delivered`` is a view of everything that was delivered: file, row and ``number``, which counts
rows through the batch; for each column of the contract what was delivered (``raw relevance``) and
what it is worth (``value relevance``); texts as they are compared (``key list_id``); slices and
attributes as text, under their internal names.

``staged`` is a table of some of these rows, cast and judged: the columns of the contract in their
types and ``problems``, a list with one entry per broken row rule (null entries for the others),
itself null where all rules hold.

Not here: filling ``staged`` (``staged_rows``), and what a value is worth (``values``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from pipeline.errors import DataRefused, several
from pipeline.formatting.numbers import counted
from pipeline.log import readers
from pipeline.log.column_mapping import NESTED, Layout
from pipeline.log.reading import IDS, Reading, key_of, raw_of, value_of
from pipeline.log.sources import TEXTS, Source, several_files, together
from pipeline.log.unreadable import read_whole, unreadable
from pipeline.log.values import INTEGERS, NUMBERS, number_of, unless_blank
from schemas.columns import internal, quoted
from schemas.rules import CLICK, ITEM_ID, LIST_ID, LOGGED, QUERY_ID, RANK, REFERENCE_RANK, RELEVANCE

_INEXACT = (
    "length({0}) > 16 AND regexp_full_match({0}, '-?[0-9]+(\\.[0-9]+)?(e[-+]?[0-9]+)?') "
    "AND NOT regexp_full_match({0}, '-?[0-9]+') "
    "AND length(regexp_replace(split_part({0}, 'e', 1), '[-.]|^-?0\\.0*', '', 'g')) > 15"
)
"""SQL of a number that is not whole, with more decimal digits than every double keeps."""


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
    problems: list[str] = []
    for number, (source, layout) in enumerate(zip(sources, layouts, strict=True)):
        try:
            rows = _read_in(reading, number, source, layout)
        except duckdb.Error as error:
            raise unreadable(source, error) from None
        problems += _misread(reading, number, source, layout)
        shape = "text" if source.format in TEXTS else together(source) or number
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
    if problems:
        raise DataRefused(several("the files cannot be taken at their word", problems))
    alike = _alike(reading, places.values())
    parts = [_delivered(reading, place, alike) for place in places.values()]
    reading.run(f"CREATE OR REPLACE TEMP VIEW delivered AS {' UNION ALL BY NAME '.join(parts)}")
    return total


def _alike(reading: Reading, places: Iterable[_Place]) -> set[str]:
    """Columns that have one and the same numeric type in all files.

    Only these keep it: a number must not be written otherwise for what stands in another file.
    """
    alike = set()
    for column in reading.columns:
        kinds = {place.source.kinds[place.layout.found[column.name]] for place in places}
        if len(kinds) == 1 and kinds <= set(INTEGERS if column in IDS else NUMBERS):
            alike.add(column.name)
    return alike


def _read_in(reading: Reading, number: int, source: Source, layout: Layout) -> int:
    """Rows of a source; those of a text file are then in the session."""
    if source.format not in TEXTS:
        ((rows,),) = reading.rows(f"SELECT count(*) FROM {source.table}")
        return rows
    names = _text_columns(layout)
    columns = "".join(f", {name} VARCHAR" for name in names.values())
    reading.run(
        f"CREATE TEMP TABLE IF NOT EXISTS delivered_text (file INTEGER, row BIGINT{columns})"
    )

    def read(text: Source) -> int:
        said = ", ".join([str(number), text.row, *map(quoted, names)])
        if text.in_order:
            # Read for the second time.
            reading.run(f"DELETE FROM delivered_text WHERE file = {number}")
        ((inserted,),) = reading.rows(f"INSERT INTO delivered_text SELECT {said} FROM {text.table}")
        return inserted

    return read_whole(source, read)


def _misread(reading: Reading, number: int, source: Source, layout: Layout) -> list[str]:
    """What is wrong with a source that was read: values that are not what the file says."""
    problems = []
    for name, value in source.folders.items():
        if value is None or name not in source.columns:
            continue
        said = f"CAST({quoted(name)} AS VARCHAR)"
        ((rows,),) = reading.connection.execute(
            f"SELECT count(*) FILTER (trim({said}) IS DISTINCT FROM $1 AND "
            f"coalesce(TRY_CAST({said} AS DOUBLE) <> TRY_CAST($1 AS DOUBLE), true)) "
            f"FROM {source.table}",
            [value],
        ).fetchall()
        if rows:
            problems.append(
                f"{source.shown}: {counted(rows, 'row')} have another {name!r}, or none, than the "
                f"folder {name}=... says that the file lies in; correct the one or the other"
            )
    names = _text_columns(layout)
    if source.format == "jsonl":
        problems += _nested(reading, number, source, layout, names)
    for column in (LIST_ID, ITEM_ID, QUERY_ID) if source.format == "jsonl" else ():
        delivered = layout.found.get(column.name)
        if delivered is not None and _is_rounded(reading, number, source, delivered, names):
            problems.append(
                f"{source.shown}: {delivered!r} holds numbers with more digits than a reader of "
                "JSON keeps; write ids as texts, in quotes"
            )
    return problems


def _nested(
    reading: Reading, number: int, source: Source, layout: Layout, names: dict[str, str]
) -> list[str]:
    """What is wrong with columns of texts of which one row of JSON holds an object, or a list.

    Where a number should stand, a rule of rows says so.
    """
    numbers = {column.name for column in LOGGED if column.type != "VARCHAR"}
    problems = []
    for name in sorted(layout.found.keys() - numbers):
        delivered = layout.found[name]
        text = names[delivered]
        like = f"(starts_with({text}, '{{') OR starts_with({text}, '['))"
        there = reading.rows(
            f"SELECT 1 FROM delivered_text WHERE file = {number} AND {like} LIMIT 1"
        )
        # Only what stands there tells a text that looks like one from an object.
        if there and _stands_there(reading, source, delivered, "IN ('OBJECT', 'ARRAY')"):
            problems.append(f"{source.shown}: {name} {NESTED}")
    return problems


def _stands_there(
    reading: Reading, source: Source, delivered: str, kind: str, more: str = "true"
) -> bool:
    """Whether a key of some object of a file has a value of a ``kind``, and ``more`` is true."""
    pointer = "/" + delivered.replace("~", "~0").replace("/", "~1")
    return bool(
        reading.connection.execute(
            "SELECT 1 FROM (SELECT json_extract(json, [$1])[1] AS found "
            f"FROM {readers.json_objects(source.path or Path())}) "
            f"WHERE json_type(found) {kind} AND {more} LIMIT 1",
            [pointer],
        ).fetchall()
    )


def _is_rounded(
    reading: Reading, number: int, source: Source, delivered: str, names: dict[str, str]
) -> bool:
    """Whether a column of JSON holds numbers that may have been rounded.

    Whole numbers are kept as they stand; others have up to 17 digits, of which 15 are exact.
    """
    text = names[delivered]
    there = reading.rows(
        f"SELECT 1 FROM delivered_text WHERE file = {number} AND {_INEXACT.format(text)} LIMIT 1"
    )
    # A text of such digits is exact, and only what stands there tells it from a number.
    inexact = _INEXACT.format("found::VARCHAR")
    return bool(there) and _stands_there(reading, source, delivered, "= 'DOUBLE'", inexact)


def _text_columns(layout: Layout) -> dict[str, str]:
    """What ``delivered_text`` calls the columns of a text file, whatever they are called there."""
    names = dict.fromkeys(layout.found.values())
    return {name: f"text{number}" for number, name in enumerate(names)}


def _numbered(place: _Place) -> tuple[str, str, str, str]:
    """SQL of the rows of a place, and of file, row and number of each."""
    source = place.source
    if source.format in TEXTS:
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
    if source.format in TEXTS:
        names = _text_columns(layout)
    table, file, row, number = _numbered(place)
    select_columns = [f"({file})::INTEGER AS file", f"{row} AS row", f"{number} AS number"]
    for column in reading.columns:
        delivered = names[layout.found[column.name]]
        kind = source.kinds[layout.found[column.name]]
        text = f"CAST({delivered} AS VARCHAR)"
        raw = delivered if column.name in alike else f"nullif(trim({text}), '')"
        if column.type == "VARCHAR":
            # An id of nothing but spaces is a missing one; any other stays as it is.
            value = text if kind in NUMBERS else unless_blank(text)
            key = delivered if column in IDS and column.name in alike else text
            select_columns.append(f"{key} AS {key_of(column)}")
        else:
            truth = column in (RELEVANCE, CLICK)
            value = number_of(delivered, kind, truth=truth)
            if column in (RANK, REFERENCE_RANK) and reading.settings.ranks.start == 0:
                value = f"({value}) + 1"
        select_columns += [f"{raw} AS {raw_of(column)}", f"{value} AS {value_of(column)}"]
    for name in reading.users:
        select_columns.append(f"CAST({names[layout.found[name]]} AS VARCHAR) AS {internal(name)}")
    return f"SELECT {', '.join(select_columns)} FROM {table}"
