"""What the workers of a test run share."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path


def made_once(base: Path, name: str, make: Callable[[Path], object]) -> Path:
    """A folder, made by whichever worker comes first; who wants to change it takes a copy.

    ``base`` is the worker's own folder for tests.
    """
    root = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = root / "made once" / name
    folder.mkdir(parents=True, exist_ok=True)
    done = folder.with_suffix(".done")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            make(folder)
            done.touch()
    return folder
