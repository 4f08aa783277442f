"""Memory: how much a session may take, what it says when that is not enough, what a batch took.

Not here: memory that a module bounds by itself, by the number of rows or lists that it holds.
"""

import ctypes
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import duckdb

from pipeline.errors import AuditError
from pipeline.settings.audit import Settings

LEAST_BYTES = 10**9
"""What a run may take by default, however small the machine is, if DuckDB would take as much."""
_SHARE = 1 / 8
"""Share of the machine that a run may take by default: other programs run there too."""
_OF_DUCKDB = 0.8
"""DuckDB's own default, as a share of the machine, or of the container that it runs in."""
_UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_FULL = re.compile("max_temp_directory_size")
_NO_SPACE = re.compile(r"No space left|disk quota", re.I)


class OutOfMemory(AuditError):
    """A batch needs more memory, or more room to spill, than it may take."""


def limit_memory(connection: duckdb.DuckDBPyConnection, settings: Settings) -> int:
    """Set what a session may take; returns it in bytes.

    Without ``memory_limit`` in the settings, an eighth of the machine, at least LEAST_BYTES and at
    most what DuckDB would take, which knows the limits of containers.  AuditError where DuckDB
    does not understand the setting.
    """
    most = allowed_memory(connection)
    default = min(max(int(most / _OF_DUCKDB * _SHARE), LEAST_BYTES), most)
    try:
        said = settings.memory_limit or f"{default // 2**10}KiB"
        connection.execute("SET memory_limit = ?", [said])
        return allowed_memory(connection)
    except duckdb.OutOfMemoryException:
        raise AuditError(f"memory_limit: {settings.memory_limit} is too little to begin") from None
    except duckdb.Error as error:
        raise AuditError(f"memory_limit: {str(error).strip().splitlines()[0]}") from None


def shared(settings: Settings, jobs: int) -> Settings:
    """The settings of each of ``jobs`` processes: they share what one run may take.

    Numbers do not depend on it.
    """
    if jobs == 1:
        return settings
    with duckdb.connect() as connection:
        memory = limit_memory(connection, settings) // jobs
        threads = int(connection.execute("SELECT current_setting('threads')").fetchall()[0][0])
    share_of_each = {
        "memory_limit": f"{memory // 2**10}KiB",
        "threads": max((settings.threads or threads) // jobs, 1),
    }
    return settings.model_copy(update=share_of_each)


@contextmanager
def within_memory(connection: duckdb.DuckDBPyConnection, spill: Path) -> Iterator[None]:
    """Turn the end of memory, or of the room to spill, into an OutOfMemory that says what to do."""
    limit = _said(connection)
    try:
        yield
    except (duckdb.OutOfMemoryException, duckdb.IOException, MemoryError) as error:
        if _FULL.search(str(error)) or (_NO_SPACE.search(str(error)) and str(spill) in str(error)):
            raise OutOfMemory(no_room(spill)) from None
        if isinstance(error, duckdb.IOException):
            raise
        raise OutOfMemory(
            f"out of memory: this needs more than the {limit} that it may take; "
            "raise memory_limit in the settings, or take fewer threads or --jobs"
        ) from None


def no_room(spill: Path, why: str = "") -> str:
    """What is said where the folder that a session spills into is full."""
    return (
        f"{spill}: no room for what does not fit into memory{f' ({why})' if why else ''}; name a "
        "folder with more room (spill in the settings), or raise memory_limit"
    )


def _said(connection: duckdb.DuckDBPyConnection) -> str:
    return str(connection.execute("SELECT current_setting('memory_limit')").fetchall()[0][0])


def allowed_memory(connection: duckdb.DuckDBPyConnection) -> int:
    """What a session may take, in bytes."""
    number, _, unit = _said(connection).partition(" ")
    return int(float(number) * _UNITS[unit.upper().removesuffix("BYTES")])


@cache
def keep_freed_memory() -> None:
    """Let this process use again what it frees, rather than give it back and ask anew.

    glibc returns every array above 128 kB to the system when it is freed, and the next one costs a
    page fault for each 4 kB: a third of the time of counting.  Elsewhere nothing is changed.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)
        library.mallopt(_TRIM_THRESHOLD, 4 * _KEPT_BYTES)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's mallopt."""
_KEPT_BYTES = 1 << 26
"""Arrays up to 64 MB are taken from what the process has; it keeps 256 MB that nobody uses."""


# -- what was taken
@dataclass
class _Watch:
    """What the high-water mark of this process is about, since it was last reset."""

    about: str = ""


_WATCH = _Watch()


def watch_memory(about: str) -> None:
    """From here on peak_memory() is about one thing; goes on where it is about that already.

    Only Linux can begin anew; elsewhere the mark is that of the process since its start.
    """
    if about == _WATCH.about:
        return
    _WATCH.about = about
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_memory() -> int | None:
    """Most resident memory of this process in bytes, since it is watched; None where unknown."""
    with suppress(OSError, IndexError, ValueError):
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split("VmHWM:")[1].split()[0]) * 2**10
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 2**10
