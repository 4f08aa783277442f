"""What may be opened, and how: paths, links, sizes, packed text.

Not here: which files a batch has (``deliveries``), and their formats (``sources``).
"""

import gzip
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

import numpy as np

from pipeline.settings.audit import Settings

LONGEST_LINE = 1_000_000
"""Bytes of a line of text that are read; a longer one is no row, and would fill the memory."""

_FEED = ord("\n")
_PIECE = 1 << 18
"""Bytes that are looked at at a time: less than half of LONGEST_LINE."""


class FileProblem(Exception):
    """One file cannot be read; the text goes on after its name."""


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


def check_text(path: Path, most: int, *, quotes: bool) -> int:
    """How many lines a text file has, empty ones left out; ``quotes``: and those within texts.

    FileProblem where it holds more than ``most`` bytes, unpacked, or a line too long.  Readers may
    leave out a line that is too long for them and say nothing of it.
    """
    size = line = ended = 0
    lines = _LineCount(quotes)
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
            lines.add(piece)
    return lines.ended + (line > 0)


class _LineCount:
    """Counts the lines of a file piece by piece."""

    def __init__(self, quotes: bool) -> None:
        self.ended = 0
        self._quotes = quotes
        self._quoted = False
        self._before = b"\n\n"

    def add(self, piece: bytes) -> None:
        """Count the lines that end in ``piece``, which follows the ones before."""
        signs = np.frombuffer(self._before + piece, dtype=np.uint8)
        ends = np.flatnonzero(signs[2:] == _FEED) + 2
        if self._quotes and (self._quoted or b'"' in piece):
            inside = (np.cumsum(signs[2:] == ord('"')) + self._quoted) % 2 == 1
            ends = ends[~inside[ends - 2]]
            self._quoted = bool(inside[-1])
        one, two = signs[ends - 1], signs[ends - 2]
        empty = (one == _FEED) | ((one == ord("\r")) & (two == _FEED))
        self.ended += int(np.count_nonzero(~empty))
        self._before = signs[-2:].tobytes()
