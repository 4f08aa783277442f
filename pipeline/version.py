"""Which code made a number: the version, and a digest of the source that numbers depend on."""

import hashlib
from functools import cache
from pathlib import Path

import metrics
import schemas

_PIPELINE = (
    "readers.py",
    "privacy/ids.py",
    "staging.py",
    "survey.py",
    "rejects.py",
    "storing.py",
    "gate.py",
    "ingest.py",
    "fragments.py",
    "counting.py",
    "buckets.py",
    "whole_lists.py",
    "row_chunks.py",
    "measuring/*.py",
    "mixes.py",
    "item_sums.py",
    "lists.py",
    "measure.py",
    "list_measures.py",
    "stored_counts.py",
    "evidence/*.py",
    "scoring.py",
    "verdicts.py",
)


@cache
def code_version() -> str:
    """Like ``0.1.0+3f2a9c1d``: two rows with the same one were computed by the same source."""
    files = [
        *sorted(Path(metrics.__file__).parent.rglob("*.py")),
        *sorted(Path(schemas.__file__).parent.rglob("*.py")),
        *(file for name in _PIPELINE for file in sorted(Path(__file__).parent.glob(name))),
    ]
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode())
        digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    return f"{metrics.__version__}+{digest.hexdigest()[:8]}"
