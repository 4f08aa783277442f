"""Files that are known to be readable, and the SQL that reads each of them.

Everything is read as what was delivered: text files as text, Parquet in its own types.  Deciding
what a value is worth is the business of ``staging``.
"""

import csv
import gzip
import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, cast

import duckdb

from pipeline.errors import DataRefused, several
from pipeline.files import file_digest, shown
from pipeline.settings import Settings
from pipeline.store import as_pattern, first_line
from schemas.columns import literal, quoted

Format = Literal["parquet", "csv", "jsonl", "frame"]
_FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_SAMPLED_LINES = 1000
_LONGEST_LINE = 1_000_000
_LONGEST_NAME = 1000
_FILE_ROW = "file_row_number"
_FILE_INDEX = "file_index"


@dataclass(frozen=True)
class Source:
    """One delivered file, or a frame, that is known to be readable.

    ``columns`` maps the names in the file to their SQL types; ``written`` says its size and when
    it was written to last.
    """

    shown: str
    format: Format
    columns: Mapping[str, str]
    path: Path | None = None
    sha256: str = ""
    written: tuple[int, int] = (0, 0)

    @property
    def changed(self) -> bool:
        """Whether the file is no more the one that was opened."""
        return self.path is not None and _written(self.path) != self.written

    @property
    def row(self) -> str:
        """SQL name of the row number, 1 = first row: one that no column of the file has."""
        name = "row"
        while name in {column.casefold() for column in self.columns}:
            name += "#"
        return quoted(name)

    @property
    def table(self) -> str:
        """SQL of the rows as delivered, with their number in the file under ``row``."""
        if self.format == "frame":
            return f"(SELECT *, row_number() OVER () AS {self.row} FROM {quoted(self.shown)})"
        file = literal(as_pattern(self.path or Path()))
        if self.format == "parquet":
            if _FILE_ROW in {column.casefold() for column in self.columns}:
                return f"(SELECT *, row_number() OVER () AS {self.row} FROM read_parquet({file}))"
            return (
                f"(SELECT * EXCLUDE ({_FILE_ROW}), {_FILE_ROW} + 1 AS {self.row} "
                f"FROM read_parquet({file}, {_FILE_ROW} = true))"
            )
        names = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in self.columns)
        if self.format == "csv":
            options = (
                "header = true, auto_detect = false, delim = ',', quote = '\"', escape = '\"', "
                f"nullstr = '', max_line_size = {_LONGEST_LINE}, columns = {{{names}}}"
            )
            reader = f"read_csv({file}, {options})"
        else:
            options = (
                "format = 'newline_delimited', "
                f"maximum_object_size = {_LONGEST_LINE}, columns = {{{names}}}"
            )
            reader = f"read_json({file}, {options})"
        return f"(SELECT *, row_number() OVER () AS {self.row} FROM {reader})"

    def lines_of(self, rows: Iterable[int]) -> dict[int, int]:
        """The lines on which ``rows`` start; empty for a file whose rows are not lines."""
        wanted = set(rows)
        if self.path is None or self.format not in ("csv", "jsonl") or not wanted:
            return {}
        found: dict[int, int] = {}
        with _opened(self.path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            for row, line in enumerate(_starts(text, self.format), 1):
                if row in wanted:
                    found[row] = line
                    if len(found) == len(wanted):
                        break
        return found


def _starts(text: IO[str], form: Format) -> Iterator[int]:
    """The line on which each row starts; empty lines hold no row."""
    if form == "jsonl":
        yield from (line for line, said in enumerate(text, 1) if said.strip())
        return
    csv.field_size_limit(_LONGEST_LINE)
    reader = csv.reader(text)
    next(reader, None)
    before = reader.line_num
    for fields in reader:
        if fields:
            yield before + 1
        before = reader.line_num


def together(source: Source) -> tuple[tuple[str, str], ...]:
    """What Parquet files must have in common to be read in one scan; empty for all others."""
    taken = {column.casefold() for column in source.columns}
    if source.format != "parquet" or taken & {_FILE_ROW, _FILE_INDEX}:
        return ()
    return tuple(source.columns.items())


def several_files(sources: Sequence[Source]) -> str:
    """SQL of the rows of files that go ``together``, as ``Source.table`` has them, and file_index.

    ``file_index`` says which of ``sources`` a row is from, 0 = the first.
    """
    files = ", ".join(literal(as_pattern(source.path or Path())) for source in sources)
    return (
        f"(SELECT * EXCLUDE ({_FILE_ROW}), {_FILE_ROW} + 1 AS {sources[0].row}, {_FILE_INDEX} "
        f"FROM read_parquet([{files}], {_FILE_ROW} = true))"
    )


class FileProblem(Exception):
    """One file cannot be read; the text goes on after its name."""


def format_of(path: Path) -> Format:
    """The format that a file's name says; FileProblem where it says none."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = bool(suffixes) and suffixes[-1] == ".gz"
    suffix = (suffixes[-2] if len(suffixes) > 1 else "") if zipped else (suffixes or [""])[-1]
    if suffix not in _FORMATS or (zipped and _FORMATS[suffix] == "parquet"):
        known = ", ".join(_FORMATS)
        raise FileProblem(f"unknown kind of file; known are {known}, text files also with .gz")
    return _FORMATS[suffix]


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a text file, unpacked; FileProblem where they cannot be."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            yield cast(IO[bytes], file)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise FileProblem(f"not a whole gzip file ({error})") from None


def _first_lines(path: Path, count: int) -> list[str]:
    """The first lines of a UTF-8 text file; FileProblem if it is not one, or empty."""
    lines: list[bytes] = []
    with _opened(path) as file:
        while len(lines) < count and (line := file.readline(_LONGEST_LINE + 1)):
            if len(line) > _LONGEST_LINE:
                raise FileProblem(f"line {len(lines) + 1} is longer than {_LONGEST_LINE:,} bytes")
            lines.append(line)
    if lines and lines[0].startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileProblem("must be UTF-8; this is UTF-16")
    texts = []
    for number, line in enumerate(lines, 1):
        try:
            texts.append(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError:
            raise FileProblem(f"line {number}: must be UTF-8") from None
    if not any(texts):
        raise FileProblem("empty_file: the file holds no text")
    return texts


def _csv_columns(path: Path) -> dict[str, str]:
    header = _first_lines(path, 1)[0]
    if "\r" in header.rstrip("\r\n"):
        raise FileProblem("lines must end with a line feed, not with carriage returns alone")
    csv.field_size_limit(_LONGEST_LINE)
    names = next(csv.reader(io.StringIO(header)), [])
    if len(names) == 1 and any(sign in names[0] for sign in ";\t|"):
        raise FileProblem("columns must be separated by commas, decimals by a point")
    if any(len(name) > _LONGEST_NAME for name in names):
        raise FileProblem(f"a column name is longer than {_LONGEST_NAME:,} characters")
    # Unnamed columns are common in exports; they get names so that the others keep their places.
    return _apart([name.strip() or f"unnamed {at}" for at, name in enumerate(names, 1)])


def _apart(names: Iterable[str]) -> dict[str, str]:
    columns: dict[str, str] = {}
    folded: set[str] = set()
    for name in names:
        if name.casefold() in folded:
            raise FileProblem(f"the header names {name!r} twice")
        folded.add(name.casefold())
        columns[name] = "VARCHAR"
    return columns


def _json_columns(path: Path, connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    """Keys of all objects.  The first lines are looked at closely, for a message that helps."""
    for number, line in enumerate(_first_lines(path, _SAMPLED_LINES), 1):
        if not line.strip():
            continue
        try:
            pairs = json.loads(line, object_pairs_hook=list)
        except (ValueError, RecursionError) as error:
            raise FileProblem(f"line {number}: not a JSON object ({error})") from None
        if not isinstance(pairs, list) or not all(isinstance(each, tuple) for each in pairs):
            raise FileProblem(f"line {number}: not a JSON object")
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            raise FileProblem(f"line {number}: a key stands twice")
    try:
        found = connection.execute(
            "SELECT DISTINCT unnest(json_keys(json)) FROM read_ndjson_objects("
            f"{literal(as_pattern(path))}, maximum_object_size = {_LONGEST_LINE}) ORDER BY 1"
        ).fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"not JSON lines ({first_line(error)})") from None
    return _apart(name for (name,) in found)


def _parquet_columns(path: Path, connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    try:
        rows = connection.execute(
            f"DESCRIBE SELECT * FROM read_parquet({literal(as_pattern(path))})"
        ).fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"not a whole Parquet file ({first_line(error)})") from None
    return {name: kind for name, kind, *_ in rows}


def _source(path: Path, name: str, connection: duckdb.DuckDBPyConnection) -> Source:
    form = format_of(path)
    target = path.resolve()
    before = _written(target)
    if before[0] == 0:
        raise FileProblem("empty_file: the file has no bytes")
    if form == "csv":
        columns = _csv_columns(target)
    elif form == "jsonl":
        columns = _json_columns(target, connection)
    else:
        columns = _parquet_columns(target, connection)
    digest = file_digest(target)
    _check_sidecar(path, digest)
    if before != _written(target):
        raise FileProblem("is still being written; wait until it is whole")
    return Source(name, form, columns, target, digest, before)


def _written(path: Path) -> tuple[int, int]:
    """Size of a file, and when it was written to last; zeros where it is gone."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _check_sidecar(path: Path, digest: str) -> None:
    """Compare with ``file.sha256`` beside the file, where the sender wrote one."""
    sidecar = path.with_name(path.name + ".sha256")
    if not sidecar.is_file():
        return
    words = sidecar.read_text(encoding="ascii", errors="replace").split()
    if not words or words[0].lower() != digest:
        raise FileProblem(f"differs from what {sidecar.name} says; deliver it again")


def open_sources(
    paths: Iterable[Path], settings: Settings, connection: duckdb.DuckDBPyConnection
) -> list[Source]:
    """Readable sources of ``paths``, a file delivered twice read once.

    DataRefused lists every file that cannot be read.
    """
    sources: list[Source] = []
    problems: list[str] = []
    seen: set[str] = set()
    for path in paths:
        name = shown(settings, path)
        try:
            source = _source(path, name, connection)
        except FileProblem as problem:
            problems.append(f"{name}: {problem}")
        except OSError as error:
            problems.append(f"{name}: {os.strerror(error.errno or 0).lower()}")
        else:
            if source.sha256 not in seen:
                seen.add(source.sha256)
                sources.append(source)
    if problems:
        count = f"{len(problems)} file{'s' if len(problems) > 1 else ''} refused"
        raise DataRefused(several(count, problems))
    return sources
