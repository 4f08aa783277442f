"""Whether a backup is what was made: by its list of files, and by the ledger that is in it.

Not here: making one and putting it back (``backup``).
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pipeline.errors import AuditError, several
from pipeline.history.ledger import Ledger
from pipeline.integrity.verify import Progress, verify
from pipeline.settings.audit import Settings
from pipeline.store.files import file_digest

MANIFEST = "backup.json"
_ALWAYS = ("history.duckdb", "ledger.jsonl")
_FOLDERS = ("batches", "refused")
_NAME = re.compile(
    r"history\.duckdb|ledger\.jsonl|(batches|refused)/[A-Za-z0-9][\w.-]*\.duckdb", re.A
)
"""Names of files that a backup holds."""


def checked_manifest(settings: Settings, source: Path) -> dict[str, Any]:
    """What the backup in ``source`` says it holds; AuditError names all that is wrong with it.

    Whoever changes a file can change the manifest too, so all of it is compared with the ledger
    that it holds, as ``verify`` compares a store.
    """
    try:
        manifest: dict[str, Any] = json.loads((source / MANIFEST).read_text(encoding="utf-8"))
        files = dict(manifest["files"].items())
        _ = manifest["head"], manifest["made_at"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise AuditError(f"{source}: is no backup: {MANIFEST} is missing or damaged") from None
    problem_by_name = {name: "is missing" for name in _ALWAYS if name not in files}
    for name, digest in files.items():
        path = source / name
        if not _NAME.fullmatch(name):
            problem_by_name[name] = "is no name of a file of a store"
        elif not path.is_file():
            problem_by_name[name] = "is missing"
        elif file_digest(path) != digest:
            problem_by_name[name] = "was changed"
    problem_by_name = {**dict(_strangers(source, files)), **problem_by_name}
    problems = [f"{name}: {problem}" for name, problem in sorted(problem_by_name.items())]
    # Links lead elsewhere, and a log would change what is read.
    if not any(_misleads(source / name) for name in problem_by_name):
        problems += [
            problem
            for problem in problems_inside(settings, source)
            if not any(problem.startswith(f"{source / name}:") for name in problem_by_name)
        ]
        end = Ledger(source / "ledger.jsonl").read().entries[-1:]
        if manifest["head"] not in [[entry["line"], entry["hash"]] for entry in end]:
            problems.append(f"{MANIFEST}: names another end of the ledger")
    if problems:
        raise AuditError(several(f"{source}: is damaged", problems, "Nothing was restored."))
    return manifest


def problems_inside(
    settings: Settings, folder: Path, progress: Progress = lambda done, of: None
) -> list[str]:
    """What is wrong with the copy of a store in ``folder``, into which nothing is written."""
    with TemporaryDirectory() as spill:
        here = {"store": str(folder.absolute()), "spill": settings.spill or spill}
        return verify(settings.model_copy(update=here), progress=progress).problems


def _misleads(path: Path) -> bool:
    return path.is_symlink() or path.suffix in (".wal", ".undo")


def _strangers(source: Path, files: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What a backup does not hold: links, and whatever its manifest does not name."""
    for folder, folders, names in os.walk(source):
        for name in (*folders, *names):
            path = Path(folder, name)
            said = str(path.relative_to(source))
            if path.is_symlink():
                yield said, "is a symbolic link"
            elif said not in (files if name in names else _FOLDERS) and said != MANIFEST:
                yield said, "is not in the manifest"
