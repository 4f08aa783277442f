"""What was delivered for a batch: its files, its item table, and the digest of their bytes.

Here: which files there are.  Not here: what may be opened (``files``) and what is in it
(``sources``).
"""

import glob
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import DataRefused, NoData, SettingsError, several
from pipeline.log.files import FileProblem, regular, shown
from pipeline.log.folders import Folders, place_of, said_by_folders, with_folders
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import check_batch_key
from pipeline.store.files import file_digest


@dataclass(frozen=True)
class Delivery:
    """What was delivered for a batch: its log files, what their folders say, its item table."""

    batch: str
    paths: tuple[Path, ...]
    items: Path | None
    said: tuple[Folders, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """Every file, the item table last."""
        return self.paths if self.items is None else (*self.paths, self.items)

    @property
    def folders(self) -> set[Path]:
        """Folders that reading it opens, where links lead to."""
        return {path.resolve().parent for path in self.files}

    @property
    def digest(self) -> str:
        """Digest of what was delivered; OSError where a file cannot be read."""
        logs = zip(self.paths, self.said, strict=True)
        items = [] if self.items is None else [file_digest(self.items)]
        return input_hash([*(with_folders(file_digest(path), said) for path, said in logs), *items])


def delivery(settings: Settings, batch: str) -> Delivery:
    """The files of a batch; NoData where there are none."""
    check_batch_key(batch)
    paths = batch_files(settings, batch)
    if not paths:
        looked = ", ".join(pattern.replace("{batch}", batch) for pattern in settings.logs)
        raise NoData(f"no files (looked for {looked})")
    said = tuple(said_by_folders(settings, path)[0] for path in paths)
    return Delivery(batch, tuple(paths), items_path(settings, batch), said)


_MARKERS = (".", "_")
"""First letters of files that are no data: markers, checksums and temporary names."""


def batch_files(settings: Settings, batch: str) -> list[Path]:
    """Files of one batch, in name order; DataRefused if one of them may not be read."""
    paths: list[Path] = []
    problems: list[str] = []
    for pattern in settings.logs:
        inside = place_of(settings, pattern).resolve()
        # The settings' own folder is a place, not a pattern, whatever its name holds.
        names = glob.glob(
            pattern.replace("{batch}", batch), root_dir=settings.folder, recursive=True
        )
        for path in sorted({settings.folder / name for name in names}):
            if path.name.startswith(_MARKERS) or path.is_dir() or path.suffix == ".sha256":
                continue
            problem = _unreadable(path, inside)
            if problem:
                problems.append(f"{shown(settings, path)}: {problem}")
            elif path not in paths:
                paths.append(path)
    if len(paths) > settings.limits.files:
        problems.append(
            f"{len(paths):,} files; at most {settings.limits.files:,} are read "
            "(limits.files in the settings)"
        )
    if problems:
        raise DataRefused(several("the files cannot be read", problems))
    return paths


def _unreadable(path: Path, inside: Path) -> str | None:
    """Why ``path`` may not be read, None if it may; nothing is opened to find out."""
    try:
        target = regular(path)
    except FileProblem as problem:
        return str(problem)
    return None if target.is_relative_to(inside) else f"a link that leads out of {inside}"


def items_path(settings: Settings, batch: str) -> Path | None:
    """The item table of a batch, None where the settings name none."""
    if settings.items is None:
        return None
    path = settings.path(settings.items.replace("{batch}", batch))
    try:
        regular(path)
    except FileProblem as problem:
        raise SettingsError(f"items: {shown(settings, path)}: {problem}") from None
    return path


def input_hash(digests: Iterable[str]) -> str:
    """Digest of what was delivered, from that of each file: its name changes nothing."""
    return hashlib.sha256("".join(sorted(set(digests))).encode()).hexdigest()[:16]
