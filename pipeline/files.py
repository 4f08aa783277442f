"""Which files a batch has, and what may be opened: paths, links, contents."""

import glob
import gzip
import hashlib
import os
import re
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from pipeline.errors import DataRefused, SettingsError, several
from pipeline.settings import Settings

LONGEST_LINE = 1_000_000
"""Bytes of a line of text that are read; a longer one is no row."""
_MARKERS = (".", "_")
"""First letters of files that are no data: markers, checksums and temporary names."""
_PIECE = 1 << 18
"""Bytes that are looked at at a time: less than half of LONGEST_LINE."""


class FileProblem(Exception):
    """One file cannot be read; the text goes on after its name."""


def batch_files(settings: Settings, batch: str) -> list[Path]:
    """Files of one batch, in name order; DataRefused if one of them may not be read."""
    found: list[Path] = []
    problems: list[str] = []
    for pattern in settings.logs:
        root = settings.path(_place(pattern))
        inside = (root if root.is_dir() else root.parent).resolve()
        # The settings' own folder is a place, not a pattern, whatever its name holds.
        names = glob.glob(pattern.replace("{batch}", batch), root_dir=settings.folder)
        for path in sorted(settings.folder / name for name in names):
            if path.name.startswith(_MARKERS) or path.is_dir() or path.suffix == ".sha256":
                continue
            problem = _unreadable(path, inside)
            if problem:
                problems.append(f"{shown(settings, path)}: {problem}")
            elif path not in found:
                found.append(path)
    if len(found) > settings.limits.files:
        problems.append(
            f"{len(found):,} files; at most {settings.limits.files:,} are read "
            "(limits.files in the settings)"
        )
    if problems:
        raise DataRefused(several("the files cannot be read", problems))
    return found


def _place(pattern: str) -> str:
    """What a pattern begins with, up to the batch or a star; signs that are escaped are plain."""
    fixed = re.split(r"\{batch\}|(?<!\[)\*", pattern, maxsplit=1)[0]
    return re.sub(r"\[([*?[])\]", r"\1", fixed)


def _unreadable(path: Path, inside: Path) -> str | None:
    """Why ``path`` may not be read, None if it may; nothing is opened to find out."""
    try:
        target = regular(path)
    except FileProblem as problem:
        return str(problem)
    return None if target.is_relative_to(inside) else f"a link that leads out of {inside}"


def regular(path: Path) -> Path:
    """Where ``path`` leads; FileProblem where that is no file of data.

    A pipe would be waited for, and a device may never end, so nothing is opened to find out.
    """
    try:
        target = path.resolve(strict=True)
        mode = target.stat().st_mode
    except FileNotFoundError:
        why = "a link that leads nowhere" if path.is_symlink() else "no such file"
        raise FileProblem(why) from None
    except RuntimeError:
        raise FileProblem("a link that leads nowhere") from None
    except OSError as error:
        raise FileProblem(os.strerror(error.errno or 0).lower()) from None
    if not stat.S_ISREG(mode):
        raise FileProblem("is a directory" if stat.S_ISDIR(mode) else "not a regular file")
    if not is_text(str(path)) or not is_text(str(target)):
        raise FileProblem("its path is not UTF-8; rename it")
    return target


def is_text(name: str) -> bool:
    """Whether ``name`` can be written as UTF-8: bytes that are none come as lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def shown(settings: Settings, path: Path) -> str:
    """``path`` as messages show it: relative to the settings file where it lies below it.

    What cannot be printed is escaped, so that a name neither ends a line nor steers a terminal.
    """
    base, whole = settings.folder.absolute(), path.absolute()
    name = str(whole.relative_to(base) if whole.is_relative_to(base) else path)
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


@contextmanager
def opened_text(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a text file, unpacked; FileProblem where they cannot be."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            yield cast(IO[bytes], file)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise FileProblem("not a whole gzip file") from None


def check_size(path: Path, most: int) -> None:
    """FileProblem where a text file holds more than ``most`` bytes, unpacked, or a line too long.

    Readers may leave out a line that is too long for them and say nothing of it.
    """
    size = line = ended = 0
    with opened_text(path) as file:
        while piece := file.read(_PIECE):
            size += len(piece)
            if size > most:
                raise FileProblem(
                    f"holds more than {most:,} bytes of text (limits.text_bytes in the settings)"
                )
            end = piece.find(b"\n")
            # No longer line fits between two line ends of one piece.
            if line + (len(piece) if end < 0 else end) > LONGEST_LINE:
                raise FileProblem(f"line {ended + 1} is longer than {LONGEST_LINE:,} bytes")
            ended += piece.count(b"\n")
            line = line + len(piece) if end < 0 else len(piece) - piece.rfind(b"\n") - 1


def items_path(settings: Settings, batch: str) -> Path | None:
    """The item table of a batch, None where the settings name none."""
    if settings.items is None:
        return None
    path = settings.path(settings.items.replace("{batch}", batch))
    try:
        regular(path)
    except FileProblem as problem:
        raise SettingsError(f"items: {shown(settings, path)}: {problem}") from None
    return path


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def input_hash(digests: Iterable[str]) -> str:
    """Digest of what was delivered: contents and not names, so a renamed file changes nothing."""
    return hashlib.sha256("".join(sorted(set(digests))).encode()).hexdigest()[:16]
