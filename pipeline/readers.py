"""Which files a batch has, and the SQL that reads each of them.

Everything is read as what was delivered: text files as text, Parquet in its own types.  Deciding
what a value is worth is the business of ``ingest``.
"""

import csv
import glob
import gzip
import hashlib
import io
import json
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import duckdb

from pipeline.errors import DataRefused, SettingsError, several
from pipeline.settings import Settings
from pipeline.store import first_line
from schemas.columns import literal, quoted
from schemas.rules import LOGGED, REQUIRED

Format = Literal["parquet", "csv", "jsonl", "frame"]
_FORMATS: dict[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}
_MARKERS = (".", "_")
"""First letters of files that are no data: markers, checksums and temporary names."""
_SAMPLED_LINES = 1000
ROW = '"#row"'
"""Name of the row number beside the columns of a file, one that no log is likely to have."""
_LONGEST_LINE = 1_000_000


@dataclass(frozen=True)
class Source:
    """One delivered file, or a frame, that is known to be readable.

    ``columns`` maps the names in the file to their SQL types.
    """

    shown: str
    format: Format
    columns: Mapping[str, str]
    path: Path | None = None
    sha256: str = ""

    @property
    def table(self) -> str:
        """SQL of the rows as delivered, with their number in the file under ROW."""
        if self.format == "parquet":
            return (
                f"(SELECT * EXCLUDE (file_row_number), file_row_number + 1 AS {ROW} "
                f"FROM read_parquet({literal(str(self.path))}, file_row_number = true))"
            )
        if self.format == "frame":
            return f"(SELECT *, row_number() OVER () AS {ROW} FROM {quoted(self.shown)})"
        names = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in self.columns)
        if self.format == "csv":
            options = (
                "header = true, auto_detect = false, delim = ',', quote = '\"', escape = '\"', "
                f"nullstr = '', max_line_size = {_LONGEST_LINE}, columns = {{{names}}}"
            )
            reader = f"read_csv({literal(str(self.path))}, {options})"
        else:
            options = (
                "format = 'newline_delimited', "
                f"maximum_object_size = {_LONGEST_LINE}, columns = {{{names}}}"
            )
            reader = f"read_json({literal(str(self.path))}, {options})"
        return f"(SELECT *, row_number() OVER () AS {ROW} FROM {reader})"

    @property
    def lines_before(self) -> int | None:
        """Lines before row 1, None where rows are not lines."""
        return {"csv": 1, "jsonl": 0}.get(self.format)


class FileProblem(Exception):
    """One file cannot be read; the text goes on after its name."""


def batch_files(settings: Settings, batch: str) -> list[Path]:
    """Files of one batch, in name order; DataRefused if one of them may not be read."""
    found: list[Path] = []
    problems: list[str] = []
    for pattern in settings.logs:
        root = settings.path(pattern.split("{batch}")[0].split("*")[0])
        inside = (root if root.is_dir() else root.parent).resolve()
        for name in sorted(glob.glob(str(settings.path(pattern.replace("{batch}", batch))))):
            path = Path(name)
            if path.name.startswith(_MARKERS) or path.is_dir() or path.suffix == ".sha256":
                continue
            if not path.resolve().is_relative_to(inside):
                problems.append(f"{shown(settings, path)}: a link that leads out of {inside}")
            elif not stat.S_ISREG(path.stat().st_mode):
                problems.append(f"{shown(settings, path)}: not a regular file")
            elif path not in found:
                found.append(path)
    if len(found) > settings.limits.files:
        problems.append(
            f"{len(found):,} files; at most {settings.limits.files:,} are read "
            "(limits.files in the settings)"
        )
    if problems:
        raise DataRefused(several(f"{batch}: the files cannot be read", problems))
    return found


def shown(settings: Settings, path: Path) -> str:
    """``path`` as messages show it: relative to the settings file where it lies below it."""
    base = settings.folder.absolute()
    return (
        str(path.absolute().relative_to(base))
        if path.absolute().is_relative_to(base)
        else str(path)
    )


def format_of(path: Path) -> tuple[Format, bool]:
    """The format that a file's name says, and whether it is compressed with gzip."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    zipped = bool(suffixes) and suffixes[-1] == ".gz"
    suffix = (suffixes[-2] if len(suffixes) > 1 else "") if zipped else (suffixes or [""])[-1]
    if suffix not in _FORMATS or (zipped and _FORMATS[suffix] == "parquet"):
        known = ", ".join(_FORMATS)
        raise FileProblem(f"unknown kind of file; known are {known}, text files also with .gz")
    return _FORMATS[suffix], zipped


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _first_lines(path: Path, *, zipped: bool, count: int) -> list[str]:
    """The first lines of a UTF-8 text file; FileProblem if it is not one."""
    try:
        with gzip.open(path) if zipped else path.open("rb") as file:
            lines: list[bytes] = []
            for _ in range(count):
                line = file.readline(_LONGEST_LINE + 1)
                if len(line) > _LONGEST_LINE:
                    raise FileProblem(
                        f"line {len(lines) + 1} is longer than {_LONGEST_LINE:,} bytes"
                    )
                if not line:
                    break
                lines.append(line)
    except (gzip.BadGzipFile, EOFError) as error:
        raise FileProblem(f"not a whole gzip file ({error})") from None
    if lines and lines[0].startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileProblem("must be UTF-8; this is UTF-16")
    texts = []
    for number, line in enumerate(lines, 1):
        try:
            texts.append(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError:
            raise FileProblem(f"line {number}: must be UTF-8") from None
    return texts


def _csv_columns(path: Path, *, zipped: bool) -> dict[str, str]:
    lines = _first_lines(path, zipped=zipped, count=1)
    names = next(csv.reader(io.StringIO(lines[0])))
    if len(names) == 1 and any(sign in names[0] for sign in ";\t|"):
        raise FileProblem("columns must be separated by commas, decimals by a point")
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


def _json_columns(path: Path, *, zipped: bool) -> dict[str, str]:
    names: dict[str, str] = {}
    for number, line in enumerate(_first_lines(path, zipped=zipped, count=_SAMPLED_LINES), 1):
        if not line.strip():
            continue
        try:
            pairs = json.loads(line, object_pairs_hook=list)
        except ValueError as error:
            raise FileProblem(f"line {number}: not a JSON object ({error})") from None
        if not isinstance(pairs, list) or not all(isinstance(each, tuple) for each in pairs):
            raise FileProblem(f"line {number}: not a JSON object")
        keys = [key for key, _ in pairs]
        if len(set(keys)) < len(keys):
            raise FileProblem(f"line {number}: a key stands twice")
        names |= dict.fromkeys(keys, "VARCHAR")
    return names


def _parquet_columns(path: Path, connection: duckdb.DuckDBPyConnection) -> dict[str, str]:
    try:
        rows = connection.execute(
            f"DESCRIBE SELECT * FROM read_parquet({literal(str(path))})"
        ).fetchall()
    except duckdb.Error as error:
        raise FileProblem(f"not a whole Parquet file ({first_line(error)})") from None
    return {name: kind for name, kind, *_ in rows}


def _source(path: Path, name: str, connection: duckdb.DuckDBPyConnection) -> Source:
    form, zipped = format_of(path)
    before = path.stat()
    if before.st_size == 0:
        raise FileProblem("empty_file: the file has no bytes")
    if form == "csv":
        columns = _csv_columns(path, zipped=zipped)
    elif form == "jsonl":
        columns = _json_columns(path, zipped=zipped)
    else:
        columns = _parquet_columns(path, connection)
    digest = file_digest(path)
    _check_sidecar(path, digest)
    after = path.stat()
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise FileProblem("is still being written; wait until it is whole")
    return Source(name, form, columns, path, digest)


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
            problems.append(f"{name}: {os.strerror(error.errno or 0)}")
        else:
            if source.sha256 not in seen:
                seen.add(source.sha256)
                sources.append(source)
    if problems:
        count = f"{len(problems)} file{'s' if len(problems) > 1 else ''} refused"
        raise DataRefused(several(count, problems))
    return sources


@dataclass(frozen=True)
class Layout:
    """Which column of a source holds what: names of the contract to names in the file."""

    found: Mapping[str, str]
    ignored: tuple[str, ...]


def layout(source: Source, settings: Settings, wanted: Iterable[str]) -> Layout:
    """Where ``wanted`` columns of the contract stand in ``source``; some may be absent."""
    by_name = {name: name for name in source.columns}
    found: dict[str, str] = {}
    for name in wanted:
        delivered = settings.columns.get(name, name)
        if delivered in by_name:
            found[name] = delivered
    return Layout(found, tuple(name for name in source.columns if name not in found.values()))


def log_layouts(
    sources: Iterable[Source], settings: Settings, from_items: Iterable[str]
) -> list[Layout]:
    """The layouts of a batch's log files.

    ``from_items`` are attribute columns that the item table supplies.  DataRefused lists every
    file and column that is missing, and the column that may have been meant.
    """
    logged = [column.name for column in LOGGED]
    supplied = set(from_items)
    layouts = []
    problems = []
    for source in sources:
        here = layout(source, settings, [*logged, *settings.slices, *settings.attribute_columns])
        missing = [
            name
            for name in (*REQUIRED, *settings.slices, *settings.attribute_columns)
            if name not in here.found and name not in supplied
        ]
        if "rank" not in here.found and "score" not in here.found:
            missing.append("rank")
        missing += [name for name in settings.columns if name in logged and name not in here.found]
        for name in dict.fromkeys(missing):
            problems.append(f"{source.shown}: {_absent(name, here, settings)}")
        layouts.append(here)
    held = [frozenset(each.found) for each in layouts]
    if not problems and len(set(held)) > 1:
        differing = sorted(frozenset.union(*held) - frozenset.intersection(*held))
        problems.append(
            f"the files differ in columns: {', '.join(differing)} is only in some of them"
        )
    if problems:
        advice = "columns: in the settings maps names of the contract to names in the log."
        raise DataRefused(several("the log lacks columns", problems, advice))
    return layouts


def _absent(name: str, here: Layout, settings: Settings) -> str:
    delivered = settings.columns.get(name, name)
    text = f"no column {delivered!r}"
    if delivered != name:
        text += f" (for {name})"
    near = get_close_matches(delivered, here.ignored, n=1)
    if near:
        return f"{text}; did you mean {near[0]!r}?"
    return f"{text}; there are {', '.join(map(repr, here.ignored)) or 'no others'}"


def misspelt(here: Layout, wanted: Iterable[str]) -> list[tuple[str, str]]:
    """Optional columns that are absent while a column of nearly the same name is ignored."""
    pairs = []
    for name in wanted:
        if name not in here.found:
            near = get_close_matches(name, here.ignored, n=1, cutoff=0.8)
            pairs += [(name, near[0])] if near else []
    return pairs


def items_path(settings: Settings, batch: str) -> Path | None:
    """The item table of a batch, None where the settings name none."""
    if settings.items is None:
        return None
    path = settings.path(settings.items.replace("{batch}", batch))
    if not path.is_file():
        raise SettingsError(f"items: {shown(settings, path)}: no such file")
    return path


def input_hash(paths: Iterable[Path]) -> str:
    """Digest of what was delivered: contents and not names, so a renamed file changes nothing."""
    joined = "".join(sorted({file_digest(path) for path in paths}))
    return hashlib.sha256(joined.encode()).hexdigest()[:16]
