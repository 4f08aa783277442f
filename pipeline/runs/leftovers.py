"""What processes that were killed left in the store: files of their runs, and what they spilled.

Not here: how a process is known to be dead (``store.living``), and what an interrupted change still
needs (``history.commits``).
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree

from pipeline import former_name
from pipeline.history.commits import needed
from pipeline.settings.audit import Settings
from pipeline.store.living import ALIVE, is_dead
from pipeline.store.paths import Store, spill_of, store_of
from pipeline.store.sessions import SPILLED

_STALE_SECONDS = 24 * 3600
"""Age from which on files are left over whose process nobody knows: younger ones may belong to a
run that goes on, and under Dagster no process holds them between its steps."""
_STAGED = re.compile(r".+\.(?P<run>[^.]+)\.(duckdb|part|left-out)(\.wal|\.undo)?")
_SPILLED = (f"{SPILLED}*", f"{former_name.SPILLED}*", "verify.*", "empty.*")


def sweep(settings: Settings, batch: str) -> None:
    """Remove what dead processes left behind, whatever it was of.

    Of processes that nobody can know to be dead, what is a day old or more: of runs of ``batch``,
    and all that was spilled.
    """
    store, spill = store_of(settings), spill_of(settings)
    for left in _dead(spill):
        _remove(spill / left.name.split(".")[0])
        _remove(left)
    for left in _dead(store.root / "staged"):
        # Runs of a process begin with its name; what is needed goes once the change is settled.
        if _all_removed(store, f"*.{left.name.split('.')[0]}*"):
            _remove(left)
    limit = datetime.now(UTC).timestamp() - _STALE_SECONDS
    _all_removed(store, f"{batch}.*", limit)
    old = [path for pattern in _SPILLED for path in spill.glob(pattern)]
    for path in (*old, *(store.root / "staged").glob(f"*{ALIVE}")):
        if _is_older(path, limit):
            _remove(path)


def _dead(folder: Path) -> Iterator[Path]:
    return (path for path in [*folder.glob(f"*{ALIVE}")] if is_dead(path))


def _all_removed(store: Store, pattern: str, limit: float | None = None) -> bool:
    """Remove staged files, those last written before ``limit``; whether no run needs any."""
    done = True
    for path in (store.root / "staged").glob(pattern):
        found = _STAGED.fullmatch(path.name)
        if not found or (limit is not None and not _is_older(path, limit)):
            continue
        if needed(store, found["run"]):
            done = False
        else:
            _remove(path)
    return done


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        rmtree(path, ignore_errors=True)
    else:
        with suppress(FileNotFoundError):
            path.unlink()


def _is_older(path: Path, limit: float) -> bool:
    """Whether a file was last written before ``limit``; one that is gone meanwhile was not."""
    try:
        return path.stat().st_mtime < limit
    except FileNotFoundError:
        return False
