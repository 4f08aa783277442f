"""Files that are known to be readable, and the SQL that reads each of them.

Everything is read as what was delivered: text files as text, Parquet in its own types.  Not here:
what may be opened (``files``), and what a value is worth (``values``).
"""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import duckdb

from pipeline.errors import DataRefused, several
from pipeline.log.files import LONGEST_LINE, FileProblem, check_size, opened_text, regular, shown
from pipeline.log.headers import csv_columns, json_columns, known_names, parquet_columns
from pipeline.settings.audit import Settings
from pipeline.store.files import file_digest
from pipeline.store.sessions import as_pattern
from schemas.columns import literal, quoted

Format = Literal["parquet", "csv", "jsonl", "frame"]
_FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_CHECKSUM_BYTES = 1000  # a digest and a name fit; whatever follows is not read
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
                f"nullstr = '', max_line_size = {LONGEST_LINE}, columns = {{{names}}}"
            )
            reader = f"read_csv({file}, {options})"
        else:
            options = (
                "format = 'newline_delimited', "
                f"maximum_object_size = {LONGEST_LINE}, columns = {{{names}}}"
            )
            reader = f"read_json({file}, {options})"
        return f"(SELECT *, row_number() OVER () AS {self.row} FROM {reader})"

    def lines_of(self, rows: Iterable[int]) -> dict[int, int]:
        """The lines on which ``rows`` start; empty for a file whose rows are not lines."""
        row_numbers = set(rows)
        if self.path is None or self.format not in ("csv", "jsonl") or not row_numbers:
            return {}
        lines: dict[int, int] = {}
        with opened_text(self.path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            for row, line in enumerate(_starts(text, self.format), 1):
                if row in row_numbers:
                    lines[row] = line
                    if len(lines) == len(row_numbers):
                        break
        return lines


def _starts(text: IO[str], form: Format) -> Iterator[int]:
    """The line on which each row starts; empty lines hold no row."""
    if form == "jsonl":
        yield from (line for line, said in enumerate(text, 1) if said.strip())
        return
    csv.field_size_limit(LONGEST_LINE)
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


def format_of(path: Path) -> Format:
    """The format that a file's name says; FileProblem where it says none."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = bool(suffixes) and suffixes[-1] == ".gz"
    suffix = (suffixes[-2] if len(suffixes) > 1 else "") if zipped else (suffixes or [""])[-1]
    if suffix not in _FORMATS or (zipped and _FORMATS[suffix] == "parquet"):
        known = ", ".join(_FORMATS)
        raise FileProblem(f"unknown kind of file; known are {known}, text files also with .gz")
    return _FORMATS[suffix]


def _source(
    path: Path, name: str, settings: Settings, connection: duckdb.DuckDBPyConnection
) -> Source:
    form = format_of(path)
    target = regular(path)
    size_and_time = _written(target)
    if size_and_time[0] == 0:
        raise FileProblem("empty_file: the file has no bytes")
    known_columns = {each.casefold() for each in known_names(settings)}
    if form == "parquet":
        columns = parquet_columns(target, known_columns, connection)
    else:
        check_size(target, settings.limits.text_bytes)
        columns = (
            csv_columns(target, known_columns)
            if form == "csv"
            else json_columns(target, known_columns, connection)
        )
    digest = file_digest(target)
    _check_sidecar(path, digest, needed=settings.checksums == "required")
    if size_and_time != _written(target):
        raise FileProblem("is still being written; wait until it is whole")
    return Source(name, form, columns, target, digest, size_and_time)


def _written(path: Path) -> tuple[int, int]:
    """Size of a file, and when it was written to last; zeros where it is gone."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _check_sidecar(path: Path, digest: str, *, needed: bool) -> None:
    """Compare with ``file.sha256`` beside the file, where the sender wrote one, or must have."""
    sidecar = path.with_name(path.name + ".sha256")
    if not sidecar.is_file():
        if needed:
            raise FileProblem(f"no {path.name}.sha256 beside it (checksums: required)")
        return
    with sidecar.open("rb") as file:
        words = file.read(_CHECKSUM_BYTES).decode("ascii", errors="replace").split()
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
    digests: set[str] = set()
    for path in paths:
        name = shown(settings, path)
        try:
            source = _source(path, name, settings, connection)
        except FileProblem as problem:
            problems.append(f"{name}: {problem}")
        except OSError as error:
            problems.append(f"{name}: {os.strerror(error.errno or 0).lower()}")
        else:
            if source.sha256 not in digests:
                digests.add(source.sha256)
                sources.append(source)
    if problems:
        count = f"{len(problems)} file{'s' if len(problems) > 1 else ''} refused"
        raise DataRefused(several(count, problems))
    return sources
