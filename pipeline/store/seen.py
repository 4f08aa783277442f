"""Files whose contents were proven, told again by what the system says of them.

``store/seen.json`` holds, for some files of the store, device, inode, size, mtime and ctime at the
moment at which they were known to be right.  A file of which all five are the same was not written
to since, because whoever writes to a file, or sets its time back, cannot set its ctime.  What is
missing here, or is garbage, costs a look at the contents and nothing else.

Not here: what makes a file right (``history.proof``, ``publish``).
"""

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipeline.store.paths import Store

Stamp = list[int]
_TICK = 10_000_000
"""Nanoseconds in which a file may change twice under one ctime: file systems have coarse clocks."""


def stamp(path: Path) -> Stamp | None:
    """What the system says of a file; None where there is none, or nothing is said."""
    try:
        found = path.stat()
    except OSError:
        return None
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


def is_seen(store: Store, *paths: Path, **facts: object) -> bool:
    """Whether files are as they were noted last, under the name of the first, with ``facts``."""
    stamps = [stamp(path) for path in paths]
    return bool(stamps[0]) and seen(store, paths[0]) == {**facts, "stamps": stamps}


def seen(store: Store, path: Path) -> dict[str, Any]:
    """What was noted of a file; nothing where nothing was, or where it cannot be read."""
    said = _read(store).get(_name(store, path))
    return said if isinstance(said, dict) else {}


def note(
    store: Store, *paths: Path, since: list[Stamp | None] | None = None, **facts: object
) -> None:
    """Note that files are right, under the name of the first; ``facts`` go with them.

    The caller has just written them, and nobody else may be at them; or has read them, and found
    their stamps to be ``since`` before.  A store that may only be read is not written to.  Of two
    notes at once, one may be lost.
    """
    stamps = [stamp(path) for path in paths]
    if since not in (None, stamps):
        return
    newest = max((each[-1] for each in stamps if each), default=0)
    time.sleep(max(0, min(newest + _TICK - time.time_ns(), _TICK)) / 1e9)
    said = _read(store) | {_name(store, paths[0]): {**facts, "stamps": stamps}}
    # Under one name, so that what a killed process left is written over by the next.
    new = store.seen.with_name(f"{store.seen.name}.part")
    with suppress(OSError):
        new.write_text(json.dumps(said, sort_keys=True, indent=0) + "\n", encoding="utf-8")
        new.replace(store.seen)


def _read(store: Store) -> dict[str, Any]:
    try:
        said = json.loads(store.seen.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _name(store: Store, path: Path) -> str:
    return str(path.relative_to(store.root))
