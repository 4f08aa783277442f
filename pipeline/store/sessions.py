"""Databases, opened: sessions within their limits, and files attached to them with their locks.

Not here: where files lie (``paths``), and transactions (``tables``).
"""

import logging
import os
import random
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import duckdb

from pipeline.errors import AuditError, StoreBusy, StoreDamaged
from pipeline.settings.audit import Settings
from pipeline.store.checkpoints import mend, undo_of
from pipeline.store.living import alive
from pipeline.store.memory import keep_freed_memory, limit_memory, within_memory
from pipeline.store.paths import spill_of, store_of
from schemas.columns import literal, quoted

_LOG = logging.getLogger(__name__)
"""Where a text for people goes while something is under way."""

SPILLED = "evenrank-"
"""How folders begin that processes spill into; each removes its own."""
STORAGE_VERSION = "v1.4.0"
"""Storage format of every file, so that older DuckDB versions and drivers can read them."""
SMALL_BLOCKS = 16_384
"""Bytes of a block, the fewest there can be, in files that hold little: each column of each table
takes a block or more, and in the usual 262,144 bytes a hundred columns take megabytes."""


@contextmanager
def working(settings: Settings, folders: Iterable[Path]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A session that is closed at the end; OutOfMemory where it needs more than it may take.

    StoreDamaged where a file is not what was written, AuditError where one cannot be written.
    """
    spill, own = spill_of(settings), f"{SPILLED}{uuid4().hex[:16]}"
    keep_freed_memory()
    try:
        with (
            alive(spill, own),
            closing(session(settings, folders, own)) as connection,
            within_memory(connection, spill),
        ):
            yield connection
    except duckdb.Error as error:
        message = first_line(error)
        if _DAMAGED.search(message):
            raise StoreDamaged(
                f"{store_of(settings).root}: {message}; `evenrank verify` says which file"
            ) from error
        if isinstance(error, duckdb.FatalException) or _FAILED.search(message):
            cause = _UNHELPFUL.sub(": ", message).rstrip("!.")
            raise AuditError(
                f"{store_of(settings).root}: {cause}. Nothing is "
                "half done: see that the disk has room and works, then run the same command again"
            ) from None
        raise


def session(
    settings: Settings, folders: Iterable[Path], own: str | None = None
) -> duckdb.DuckDBPyConnection:
    """A DuckDB session that can open files below ``folders`` and nothing else.

    No extension is loaded, no other path or address can be reached, and no statement can change
    that.  ``own`` names the folder that it spills into.
    """
    connection = duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    if settings.threads:
        connection.execute(f"SET threads = {settings.threads}")
    limit_memory(connection, settings)
    spill = spill_of(settings)
    # Readers take paths for patterns, so a folder is allowed under its escaped name too.
    places = [folder.absolute() for folder in (*folders, spill)]
    allowed = sorted({*map(str, places), *map(as_pattern, places)})
    # Before DuckDB 2.0, files of several processes had the same names.
    connection.execute(
        f"SET temp_directory = {literal(str(spill / (own or f'{SPILLED}{os.getpid()}')))}"
    )
    connection.execute(f"SET allowed_directories = [{', '.join(map(literal, allowed))}]")
    connection.execute("SET enable_progress_bar = false")
    # A moment in a log is the same text wherever it is read.
    connection.execute("SET TimeZone = 'UTC'")
    # What is on the disk changes when it is asked to, and not when a session ends by an error.
    connection.execute("SET wal_autocheckpoint = '1TB'")
    connection.execute("PRAGMA disable_checkpoint_on_shutdown")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def as_pattern(path: Path) -> str:
    """``path`` as a pattern that matches it alone, for readers that take patterns."""
    return re.sub(r"[\[*?]", lambda found: f"[{found[0]}]", str(path))


def first_line(error: BaseException) -> str:
    """What DuckDB says first, without its quotes of the data."""
    return str(error).strip().split("\n", 1)[0]


_DAMAGED = re.compile(r"Corrupt database file|checksum|Could not read enough bytes", re.I)
_FAILED = re.compile(
    r"Failed to commit|Checkpoint failed|Could not (write|sync|truncate)|fsync failed|"
    r"Input/output error|No space left",
    re.I,
)
_UNHELPFUL = re.compile(r"\. The database has been invalidated\. Original error: ")
_LOCKED = re.compile(
    r"Could not set lock|being used by another process|Conflicting lock|is already attached", re.I
)
_HOLDER = re.compile(r"held in (?P<program>\S+) \(PID (?P<pid>\d+)\)")


def attach_memory(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """A database under ``name`` that ends with the session; what does not fit in memory spills."""
    connection.execute(f"ATTACH ':memory:' AS {quoted(name)}")


def attach(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    name: str,
    *,
    read_only: bool = False,
    patience: float = 0.0,
    block_size: int | None = None,
) -> None:
    """Open a database file under ``name``, waiting up to ``patience`` seconds for its lock.

    ``block_size`` is for files that are not there yet; without it they get that of DuckDB.
    StoreBusy names the process that holds it; AuditError says why a file cannot be opened.
    """
    options = ["READ_ONLY"] if read_only else [f"STORAGE_VERSION {literal(STORAGE_VERSION)}"]
    options += [f"BLOCK_SIZE {block_size}"] if block_size else []
    statement = f"ATTACH {literal(str(path))} AS {quoted(name)} ({', '.join(options)})"
    deadline = time.monotonic() + patience
    pause = 0.05
    holder_logged = False
    while True:
        try:
            mend(path)
            connection.execute(statement)
            if not undo_of(path).exists():
                return
            # Its holder was killed meanwhile.
            connection.execute(f"DETACH {quoted(name)}")
        except duckdb.Error as error:
            if not _LOCKED.search(str(error)):
                raise AuditError(f"{path}: cannot be opened: {_why(error)}") from None
            holder = _HOLDER.search(str(error))
            who = f"process {holder['pid']} ({holder['program']})" if holder else "another process"
            if time.monotonic() >= deadline:
                raise StoreBusy(
                    f"{path} is in use by {who}; waited {patience:.0f} s. "
                    "Try again, or raise busy_seconds in the settings."
                ) from None
            if not holder_logged:
                _LOG.info("waiting for %s, in use by %s", path.name, who)
                holder_logged = True
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 1.6, 2.0)


def block_size_of(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    """Bytes of a block of the attached database ``name``."""
    rows = connection.execute(
        "SELECT block_size FROM pragma_database_size() WHERE database_name = ?", [name]
    ).fetchall()
    return int(rows[0][0])


def _why(error: duckdb.Error) -> str:
    """Why a database cannot be opened, for whoever has to do something about it."""
    message = first_line(error)
    if "version number" not in message:
        return message
    return (
        f"a newer DuckDB wrote it ({message.removeprefix('IO Error: ')}); this is DuckDB "
        f"{duckdb.__version__}: install the one that wrote it, or put back a backup"
    )
