"""What is replaced stays, under a name of its own.  Not here: what has to be replaced, and why."""

import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfile


def free_name(path: Path, end: str) -> Path:
    """A name beside ``path`` that nothing has: with the time, and with ``end``."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    names: Iterator[Path] = (
        path.with_name(f"{path.name}.{stamp}{more}{end}") for more in ("", *range(1, 100))
    )
    return next(name for name in names if not os.path.lexists(name))


def put_aside(path: Path) -> list[Path]:
    """Give a file another name; returns the name, if there was a file."""
    aside = free_name(path, ".aside")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return []
    return [aside]


def link_aside(database: Path) -> list[Path]:
    """Give a database another name too, its write-ahead log another name only; returns the names.

    Under its own name it stays until something takes its place, so that nobody misses it meanwhile.
    """
    aside = free_name(database, ".aside")
    log = database.with_name(database.name + ".wal")
    if not database.exists():
        return put_aside(log)
    try:
        os.link(database, aside)
    except OSError:
        # Some file systems have no links.
        copyfile(database, aside)
    moved = [aside]
    with suppress(FileNotFoundError):
        # The log of the one would be taken for that of the other.
        moved.append(log.rename(aside.with_name(aside.name + ".wal")))
    return moved
