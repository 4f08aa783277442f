"""Which code made a number.

Here: the version, and a digest of the definitions that numbers depend on.  Not here: digests of
settings (``settings``) and of results (``scores.digests``).
"""

import sys
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.util import cache_from_source
from os import getpid
from pathlib import Path

import metrics
from pipeline.version.digest import digest, forms
from pipeline.version.modules import PACKAGES

STARTS = (
    "pipeline.settings.load.load_settings",
    "pipeline.runs.steps.ingest_batch",
    "pipeline.runs.steps.measure_batch",
    "pipeline.runs.steps.score_batch",
)
"""Where numbers begin: whatever these reach by name counts, wherever it is defined."""

LEFT_OUT = {
    "code_version": "says which code it is",
    "limit_memory": "memory that a batch may take",
    "within_memory": "memory that a batch may take",
    "allowed_memory": "memory that a batch may take",
    "OutOfMemory": "says that memory does not suffice",
    "no_room": "says that memory does not suffice",
    "keep_freed_memory": "memory that a process keeps",
    "watch_memory": "memory that a batch takes",
    "peak_memory": "memory that a batch takes",
    "check_batch_file": "refuses a file that somebody changed",
    "alive": "lets others see that a process lives",
    "sweep": "removes what interrupted runs left behind",
    "remove_database": "removes files",
    "replace_file": "moves files so that they outlast a loss of power",
    "mend": "puts a file back as it was before an interrupted write",
    "undo_of": "where a file is kept for that",
}
"""Definitions that no number depends on, by name, and what they are for instead."""


@cache
def code_version() -> str:
    """Like ``0.1.0+3f2a9c1d``: two rows with the same one were computed by the same source."""
    return f"{metrics.__version__}+{_digest(Path(metrics.__file__).parents[1])[:8]}"


def _digest(root: Path) -> str:
    """Of what counts; noted beside compiled modules, since to parse it takes half a second."""
    contents = sha256()
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            contents.update(f"{file.relative_to(root).as_posix()}\n".encode())
            contents.update(sha256(file.read_bytes()).digest())
    read = contents.hexdigest()
    note = Path(cache_from_source(__file__)).with_name("code_version")
    with suppress(OSError, ValueError):
        noted, found = note.read_text("ascii").split()
        if noted == read:
            return found
    made = digest(forms(root, STARTS, LEFT_OUT))
    if not sys.dont_write_bytecode:
        with suppress(OSError):
            note.parent.mkdir(parents=True, exist_ok=True)
            part = note.with_name(f"{note.name}.{getpid()}")
            part.write_text(f"{read} {made}\n", "ascii")
            part.replace(note)
    return made
