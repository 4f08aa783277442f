"""Whole files: written so that they survive, put in place at once, digested.

Here: what any file needs.  Not here: databases while they are open (``checkpoints``).
"""

import hashlib
import os
from pathlib import Path

from pipeline.errors import AuditError


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable."""
    if os.name == "posix":
        file = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def replace_file(new: Path, old: Path) -> None:
    """Put ``new`` in the place of ``old`` so that a reader meets one or the other, durably.

    AuditError where the disk does not take it.
    """
    make_durable(new)
    try:
        new.replace(old)
        sync_folder(old.parent)
    except OSError as error:
        raise AuditError(f"{old}: cannot be replaced: {error.strerror}") from None


def make_durable(path: Path) -> None:
    """Make a file and its name outlast a loss of power; AuditError where the disk does not."""
    try:
        with path.open("rb") as file:
            os.fsync(file.fileno())
        sync_folder(path.parent)
    except OSError as error:
        raise AuditError(f"{path}: cannot be written: {error.strerror}") from None
