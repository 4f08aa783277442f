"""Files that are known to be readable, and the SQL that reads each of them.

Everything is read as what was delivered: text files as text, Parquet in its own types.  Not here:
what may be opened (``files``), and what a value is worth (``values``).
"""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Literal

import duckdb

from pipeline.errors import DataRefused, several
from pipeline.log import readers
from pipeline.log.files import LONGEST_LINE, FileProblem, check_text, opened_text, regular, shown
from pipeline.log.folders import Folders, said_by_folders, with_folders
from pipeline.log.headers import csv_columns, json_columns, known_names, parquet_columns
from pipeline.settings.audit import Settings
from pipeline.store.files import file_digest
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
TEXTS = ("csv", "jsonl")
"""Formats whose rows are lines."""
_VIRTUAL = {readers.FILE_ROW, readers.FILE_INDEX}


@dataclass(frozen=True)
class Source:
    """One delivered file, or a frame, that is known to be readable.

    ``columns`` maps the names in the file to their SQL types; ``folders`` has what its path says;
    ``rows`` is how many there should be in a text file, by its lines; ``in_order``: it is not read
    in parallel; ``written`` says its size and when it was written to last.
    """

    shown: str
    format: Format
    columns: Mapping[str, str]
    path: Path | None = None
    sha256: str = ""
    written: tuple[int, int] = (0, 0)
    folders: Folders = field(default_factory=dict)
    rows: int | None = None
    in_order: bool = False

    @property
    def changed(self) -> bool:
        """Whether the file is no more the one that was opened."""
        return self.path is not None and _written(self.path) != self.written

    @property
    def digest(self) -> str:
        """Digest of what the file and its folders say."""
        return with_folders(self.sha256, self.folders)

    @property
    def kinds(self) -> dict[str, str]:
        """SQL types of the columns of ``table``: binary ones are texts, and so are folders."""
        binary = dict.fromkeys(self._binary, "VARCHAR")
        return {**dict.fromkeys(self.folders, "VARCHAR"), **self.columns, **binary}

    @property
    def _binary(self) -> list[str]:
        return [name for name, kind in self.columns.items() if kind == "BLOB"]

    @property
    def row(self) -> str:
        """SQL name of the row number, 1 = first row: one that no column of the file has."""
        name = "row"
        while name in {column.casefold() for column in self.kinds}:
            name += "#"
        return quoted(name)

    @property
    def table(self) -> str:
        """SQL of the rows as delivered, with their number in the file under ``row``."""
        path = self.path or Path()
        number = "row_number() OVER ()"
        if self.format == "frame":
            rows = quoted(self.shown)
        elif self.format == "csv":
            rows = readers.csv(path, self.columns, in_order=self.in_order)
        elif self.format == "jsonl":
            rows = readers.json_lines(path, self.columns)
        elif _VIRTUAL & {column.casefold() for column in self.columns}:
            rows = readers.parquet([path])
        else:
            rows, number = readers.parquet([path]), f"{readers.FILE_ROW} + 1"
        return f"(SELECT {self.delivered}, {number} AS {self.row} FROM {rows})"

    @property
    def delivered(self) -> str:
        """SQL of all columns, to follow SELECT: what the file has, then what its folders say."""
        texts = ", ".join(f"decode({quoted(name)}) AS {quoted(name)}" for name in self._binary)
        said = "".join(
            f", CAST({'NULL' if value is None else literal(value)} AS VARCHAR) AS {quoted(name)}"
            for name, value in self.folders.items()
            if name not in self.columns
        )
        return f"*{f' REPLACE ({texts})' if texts else ''}{said}"

    def starts(self) -> Iterator[int]:
        """The line on which each row of a text file starts; csv.Error where nobody can tell."""
        if self.path is not None and self.format in TEXTS:
            with opened_text(self.path) as file:
                text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
                yield from _starts(text, self.format)

    def lines_of(self, rows: Iterable[int]) -> dict[int, int]:
        """The lines on which ``rows`` start; empty for a file whose rows are not lines."""
        row_numbers = set(rows)
        last = max(row_numbers, default=0)
        numbered = enumerate(islice(self.starts(), last), 1)
        return {row: line for row, line in numbered if row in row_numbers}


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


def together(source: Source) -> tuple[tuple[str, str | None], ...]:
    """What Parquet files must have in common to be read in one scan; empty for all others."""
    taken = {column.casefold() for column in source.columns}
    if source.format != "parquet" or taken & _VIRTUAL:
        return ()
    return (*source.columns.items(), *source.folders.items())


def several_files(sources: Sequence[Source]) -> str:
    """SQL of the rows of files that go ``together``, as ``Source.table`` has them, and FILE_INDEX.

    FILE_INDEX says which of ``sources`` a row is from, 0 = the first.
    """
    one = sources[0]
    return (
        f"(SELECT {one.delivered}, {readers.FILE_ROW} + 1 AS {one.row}, {readers.FILE_INDEX} "
        f"FROM {readers.parquet([source.path or Path() for source in sources])})"
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
    rows = None
    if form == "parquet":
        columns = parquet_columns(target, known_columns, connection)
    elif form == "csv":
        rows = check_text(target, settings.limits.text_bytes, quotes=True) - 1
        columns = csv_columns(target, known_columns)
    else:
        rows = check_text(target, settings.limits.text_bytes, quotes=False)
        columns = json_columns(target, known_columns, connection)
    digest = file_digest(target)
    _check_sidecar(path, digest, needed=settings.checksums == "required")
    if size_and_time != _written(target):
        raise FileProblem("is still being written; wait until it is whole")
    folders, twice = said_by_folders(settings, path)
    if twice:
        raise FileProblem(f"two folders of its path say {twice[0]!r}")
    return Source(name, form, columns, target, digest, size_and_time, folders, rows)


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
            if source.digest not in digests:
                digests.add(source.digest)
                sources.append(source)
    if problems:
        count = f"{len(problems)} file{'s' if len(problems) > 1 else ''} refused"
        raise DataRefused(several(count, problems))
    return sources
