"""Which columns a delivered file says that it has, and what is said where it cannot be read.

What stands there may be a row that was taken for a header, and what DuckDB says may quote one, so
nothing is repeated that is not known to be a name.  Not here: which column holds what
(``column_mapping``).
"""

import codecs
import csv
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import duckdb

from pipeline.log import readers
from pipeline.log.files import LONGEST_LINE, FileProblem, opened_text
from pipeline.log.text_faults import fault_of, object_fault
from pipeline.settings.audit import Settings
from pipeline.store.sessions import as_pattern
from schemas.columns import literal
from schemas.rules import LOGGED

_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
"""What other encodings begin with; the mark of UTF-16 is the start of that of UTF-32."""
_SAMPLED_LINES = 1000  # enough to see what a file is, without reading it
_MOST_COLUMNS = 10_000  # with more, the file is not what it seems
_LONGEST_NAME = 1000  # characters of a column; a longer name is a row taken for a header
_SECOND = re.compile(r"_\d+$")
_LINE = re.compile(r"\b[Ll]ine:? \d+")
_IN_OTHER_WORDS = {
    "utf8": "must be UTF-8",
    "utf-8": "must be UTF-8",
    "unicode": "must be UTF-8",
    "encryption": "is encrypted; deliver it as it was before",
    "gzip": "not a whole gzip file",
}
"""What is said where a word stands in what DuckDB says."""


def known_names(settings: Settings) -> set[str]:
    """Names that columns may have by the contract or the settings; what others are is not known."""
    contract = {column.name for column in LOGGED}
    return contract | {*settings.columns.values(), *settings.slices, *settings.attribute_columns}


def _first_lines(path: Path, count: int, encoding: str) -> list[str]:
    """The first lines of a UTF-8 text file; FileProblem if it is not one, or empty.

    ``encoding`` is that of the first line: with a mark before it, or without.
    """
    lines: list[bytes] = []
    with opened_text(path) as file:
        while len(lines) < count and (line := file.readline(LONGEST_LINE + 1)):
            if len(line) > LONGEST_LINE:
                raise FileProblem(f"line {len(lines) + 1} is longer than {LONGEST_LINE:,} bytes")
            lines.append(line)
    for mark, other in _MARKS.items():
        if lines and lines[0].startswith(mark):
            raise FileProblem(f"must be UTF-8; this is {other}")
    if lines and b"\0" in lines[0]:
        raise FileProblem("line 1: must be UTF-8; there are zero bytes in it")
    texts = []
    for number, line in enumerate(lines, 1):
        try:
            texts.append(line.decode(encoding if number == 1 else "utf-8"))
        except UnicodeDecodeError:
            raise FileProblem(f"line {number}: must be UTF-8") from None
    if not any(texts):
        raise FileProblem("empty_file: the file holds no text")
    return texts


def csv_columns(path: Path, known: Collection[str]) -> dict[str, str]:
    """Columns that the header of a CSV file names, all of them texts; FileProblem if it is none."""
    lines = _first_lines(path, _SAMPLED_LINES, "utf-8-sig")
    csv.field_size_limit(LONGEST_LINE)
    try:
        names = next(csv.reader(lines), [])
    except csv.Error:
        names = None
    if names is None or "\r" in lines[0].rstrip("\r\n"):
        raise FileProblem("lines must end with a line feed, not with carriage returns alone")
    if not names:
        raise FileProblem("line 1: no header")
    if len(names) == 1 and any(sign in names[0] for sign in ";\t|"):
        raise FileProblem("columns must be separated by commas, decimals by a point")
    # Unnamed columns are common in exports; they get names so that the others keep their places.
    return _apart([name.strip() or f"unnamed {at}" for at, name in enumerate(names, 1)], known)


def _apart(names: Collection[str], names_known: Collection[str]) -> dict[str, str]:
    """Columns of texts.  A name is shown if it is one of ``names_known``: others may be data."""
    if len(names) > _MOST_COLUMNS:
        raise FileProblem(f"has more than {_MOST_COLUMNS:,} columns")
    columns: dict[str, str] = {}
    folded: set[str] = set()
    for name in names:
        if len(name) > _LONGEST_NAME:
            raise FileProblem(f"a column name is longer than {_LONGEST_NAME:,} characters")
        if name.casefold() in folded:
            if not any(each.casefold() in names_known for each in names):
                raise FileProblem("line 1 names no column of a log; is there a header?")
            said = repr(name) if name.casefold() in names_known else "a column"
            raise FileProblem(f"the header names {said} twice")
        folded.add(name.casefold())
        columns[name] = "VARCHAR"
    return columns


def json_columns(
    path: Path, known: Collection[str], connection: duckdb.DuckDBPyConnection
) -> dict[str, str]:
    """Keys of all objects of a file of JSON lines, all of them texts; FileProblem if it is none.

    The first lines are looked at closely, for a message that helps.
    """
    for number, line in enumerate(_first_lines(path, _SAMPLED_LINES, "utf-8"), 1):
        if line.strip() and (fault := object_fault(line)):
            raise FileProblem(f"line {number}: {fault}")
    try:
        key_rows = connection.execute(
            f"SELECT DISTINCT unnest(json_keys(json)) FROM {readers.json_objects(path)} "
            f"LIMIT {_MOST_COLUMNS + 1}"
        ).fetchall()
    except duckdb.Error as error:
        fault = fault_of(path, "jsonl") or f"not JSON lines: {said_of(error, path)}"
        raise FileProblem(fault) from None
    if not key_rows:
        raise FileProblem("empty_file: the file holds no objects")
    # A key without a name cannot be a column, and none is looked for.
    return _apart(sorted(name for (name,) in key_rows if name), known)


def parquet_columns(
    path: Path, known: Collection[str], connection: duckdb.DuckDBPyConnection
) -> dict[str, str]:
    """Columns of a Parquet file and their types; FileProblem where it cannot be read."""
    try:
        rows = connection.execute(f"DESCRIBE SELECT * FROM {readers.parquet([path])}").fetchall()
        columns = {name: kind for name, kind, *_ in rows}
        folded = {name.casefold() for name in columns}
        if any(_SECOND.sub("", name) in folded - {name} for name in folded):
            # The second of two columns of one name gets another one, in silence.
            schema = connection.execute(
                "SELECT name, coalesce(num_children, 0) "
                f"FROM parquet_schema({literal(as_pattern(path))})"
            ).fetchall()
            _apart(_outermost(schema), known)
    except duckdb.Error as error:
        raise FileProblem(f"not a whole Parquet file: {said_of(error, path)}") from None
    return columns


def _outermost(schema: Sequence[tuple[str, int]]) -> list[str]:
    """Names of the columns of a Parquet file, from names and numbers of children, depth first."""
    names = []
    inside = 0
    for name, children in schema[1:]:
        if inside == 0:
            names.append(name)
        else:
            inside -= 1
        inside += children
    return names


def said_of(error: duckdb.Error, path: Path | None) -> str:
    """What DuckDB says of a file that it cannot read, without the data that it quotes."""
    whole = str(error).strip()
    for name in [] if path is None else [str(path), as_pattern(path)]:
        whole = re.sub(f"(file )?[\"']?{re.escape(name)}[\"']?", "the file", whole)
    first, *more = whole.split("\n")
    told = [line.lower() for line in (first, *more) if not line.startswith("Original Line")]
    known = (said for word, said in _IN_OTHER_WORDS.items() if any(word in line for line in told))
    text = next(known, unquoted(first.removeprefix("Invalid Input Error: ")))
    line = _LINE.search(first) or next(filter(None, map(_LINE.fullmatch, more)), None)
    return text if line is None or line[0] in text else f"{text} ({line[0]})"


def unquoted(text: str) -> str:
    r"""The first line of an error's text without what stands in quotes, which may be data.

    >>> unquoted("Could not convert string 'Anna's' to INT32\nLINE 1: ...")
    'Could not convert string ... to INT32'
    """
    return re.sub(r"[\"'].*[\"']", "...", text.strip().split("\n", 1)[0])
