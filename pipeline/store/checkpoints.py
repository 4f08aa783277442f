"""Changes of files that survive the death of whoever makes them.

A checkpoint of DuckDB writes new blocks beside the old ones and then a header that names them, but
for one thing: blocks of metadata hold pieces of both, and are written over in place.  Half of such
a write, and no piece of the file can be read again.  So these blocks are kept in a file beside the
database until the checkpoint is done, and put back by whoever opens it next otherwise; the
write-ahead log still has all that the checkpoint would have taken over.

Not here: files that are written whole (``files``).
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb

from pipeline.errors import AuditError
from pipeline.store.files import sync_folder
from schemas.columns import quoted

_HEADERS = 3 * 4096
"""Bytes in front of the first block: the newer of two headers says where everything is."""


def is_begun(path: Path) -> bool:
    """Whether whoever made the database ``path`` did not get as far as its headers."""
    return path.exists() and path.stat().st_size < _HEADERS


def begin_again(path: Path, empty: bytes) -> None:
    """Make a database that was only begun an ``empty`` one, unless somebody is at it."""
    with path.open("r+b") as file, suppress(BlockingIOError):
        # The lock that DuckDB takes; the file stays the same, for those who have it open already.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if is_begun(path):
            file.write(empty)
            file.flush()
            os.fsync(file.fileno())


def undo_of(path: Path) -> Path:
    """The file that keeps what a checkpoint of the database ``path`` writes over."""
    return path.with_name(path.name + ".undo")


def checkpoint(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Take the write-ahead log of the attached database ``name`` over into its file."""
    rows = connection.execute(
        "SELECT path FROM duckdb_databases() WHERE database_name = ?", [name]
    ).fetchall()
    path = Path(rows[0][0])
    log = path.with_name(path.name + ".wal")
    if not log.exists() or not log.stat().st_size:
        return
    undo = undo_of(path)
    with _kept(connection, name, path, undo):
        connection.execute(f"CHECKPOINT {quoted(name)}")
        undo.unlink()


@contextmanager
def _kept(
    connection: duckdb.DuckDBPyConnection, name: str, path: Path, undo: Path
) -> Iterator[None]:
    """Keep what is written over; whoever gets the lock on it knows that its maker is gone."""
    file = None
    try:
        file = os.open(undo, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
        fcntl.flock(file, fcntl.LOCK_EX)
        _keep(connection, name, path, file)
        sync_folder(path.parent)
        yield
    except OSError as error:
        raise AuditError(f"{undo}: cannot be written: {error.strerror}") from None
    finally:
        if file is not None:
            os.close(file)


def _keep(connection: duckdb.DuckDBPyConnection, name: str, path: Path, file: int) -> None:
    """Write headers and blocks of metadata of a database to ``file``, durably."""
    blocks = connection.execute(
        "SELECT DISTINCT block_id FROM pragma_metadata_info(?) ORDER BY block_id", [name]
    ).fetchall()
    sizes = connection.execute(
        "SELECT block_size FROM pragma_database_size() WHERE database_name = ?", [name]
    ).fetchall()
    own, size = _own(path), int(sizes[0][0])
    places = [(0, _HEADERS), *((_HEADERS + number * size, size) for (number,) in blocks)]
    kept = b"".join(os.pread(own, length, at) for at, length in places)
    said = {"places": places, "sha256": hashlib.sha256(kept).hexdigest()}
    text = json.dumps(said).encode() + b"\n" + kept
    done = 0
    while done < len(text):
        done += os.write(file, text[done:])
    os.fsync(file)


def _own(path: Path) -> int:
    """The descriptor that DuckDB has of a database.

    To open and close another one would end the lock on it, which belongs to the process.
    """
    wanted = os.stat(path)
    for name in os.listdir("/dev/fd"):
        with suppress(OSError, ValueError):
            found = os.fstat(int(name))
            if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
                return int(name)
    raise OSError(None, "is attached, and not open", str(path))


def mend(path: Path) -> bool:
    """Take back a checkpoint of the database ``path`` that was interrupted, if one was.

    False where a living process is at it.
    """
    undo = undo_of(path)
    try:
        file = os.open(undo, os.O_RDWR)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise AuditError(
            f"{undo}: a change of {path.name} was interrupted, which has to be taken back first, "
            f"where the store may be written to: {error.strerror}"
        ) from None
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        # Somebody may have been faster.
        if undo.exists() and os.fstat(file).st_ino == undo.stat().st_ino:
            with os.fdopen(os.dup(file), "rb") as kept:
                _put_back(path, kept.readline(), kept.read())
            undo.unlink()
            sync_folder(path.parent)
    finally:
        os.close(file)
    return True


def _put_back(path: Path, first: bytes, kept_bytes: bytes) -> None:
    """Write what was kept to where it was, unless it is cut or the checkpoint came to its end."""
    try:
        header = json.loads(first)
    except ValueError:
        return
    if hashlib.sha256(kept_bytes).hexdigest() != header["sha256"]:
        return
    with path.open("r+b") as database:
        if database.read(_HEADERS) != kept_bytes[:_HEADERS]:
            return
        begin = 0
        for at, length in header["places"]:
            database.seek(at)
            database.write(kept_bytes[begin : begin + length])
            begin += length
        database.flush()
        os.fsync(database.fileno())


def remove_database(path: Path) -> None:
    """Remove a database file and what belongs to it, if they exist."""
    # The file last: what stays behind would be taken for that of the next file of the name.
    for file in (undo_of(path), path.with_name(path.name + ".wal"), path):
        file.unlink(missing_ok=True)
