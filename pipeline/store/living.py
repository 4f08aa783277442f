"""Whether whoever left files behind is dead: a lock that ends with its process, however that ends.

Between the steps of a run under Dagster no process lives, so its files are not told of here.  Not
here: which files these are, and removing them (``runs.leftovers``).
"""

import fcntl
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

ALIVE = ".alive"
"""How names of the files end that are locked."""
_MOST_BYTES = 200


@contextmanager
def alive(folder: Path, name: str) -> Iterator[None]:
    """Let others see, by a file in ``folder``, that what bears ``name`` belongs to this process.

    The file goes at the end; only a process that was killed leaves it.  Where it cannot be made
    or locked, nobody is told anything.
    """
    path = folder / f"{name}.{uuid4().hex[:8]}{ALIVE}"
    file = None
    try:
        with suppress(OSError):
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Last, so that a file that says this is a file that was locked.
            os.write(file, _machine())
        yield
    finally:
        if file is not None:
            path.unlink(missing_ok=True)
            os.close(file)


def is_dead(path: Path) -> bool:
    """Whether the process that made ``path``, a file of ``alive``, is gone for certain.

    Locks of other machines are not always seen, and so nothing is said of their processes, nor of
    those from before this machine was started.
    """
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        if os.read(file, _MOST_BYTES) != _machine():
            return False
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def _machine() -> bytes:
    """What names the machine, since it was started and in all of its containers alike."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes()
    except OSError:
        return platform.node().encode()[:_MOST_BYTES]
