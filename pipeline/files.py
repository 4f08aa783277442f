"""Which files a batch has, and what may be opened: paths, links, contents."""

import glob
import hashlib
import stat
from collections.abc import Iterable
from pathlib import Path

from pipeline.errors import DataRefused, SettingsError, several
from pipeline.settings import Settings

_MARKERS = (".", "_")
"""First letters of files that are no data: markers, checksums and temporary names."""


def batch_files(settings: Settings, batch: str) -> list[Path]:
    """Files of one batch, in name order; DataRefused if one of them may not be read."""
    found: list[Path] = []
    problems: list[str] = []
    for pattern in settings.logs:
        root = settings.path(pattern.split("{batch}")[0].split("*")[0])
        inside = (root if root.is_dir() else root.parent).resolve()
        # The settings' own folder is a place, not a pattern, whatever its name holds.
        names = glob.glob(pattern.replace("{batch}", batch), root_dir=settings.folder)
        for path in sorted(settings.folder / name for name in names):
            if path.name.startswith(_MARKERS) or path.is_dir() or path.suffix == ".sha256":
                continue
            problem = _unreadable(path, inside)
            if problem:
                problems.append(f"{shown(settings, path)}: {problem}")
            elif path not in found:
                found.append(path)
    if len(found) > settings.limits.files:
        problems.append(
            f"{len(found):,} files; at most {settings.limits.files:,} are read "
            "(limits.files in the settings)"
        )
    if problems:
        raise DataRefused(several("the files cannot be read", problems))
    return found


def _unreadable(path: Path, inside: Path) -> str | None:
    """Why ``path`` may not be read, None if it may; nothing is opened to find out."""
    try:
        target = path.resolve(strict=True)
        if not target.is_relative_to(inside):
            return f"a link that leads out of {inside}"
        return None if stat.S_ISREG(target.stat().st_mode) else "not a regular file"
    except (OSError, RuntimeError):
        return "a link that leads nowhere"


def shown(settings: Settings, path: Path) -> str:
    """``path`` as messages show it: relative to the settings file where it lies below it."""
    base, whole = settings.folder.absolute(), path.absolute()
    return str(whole.relative_to(base) if whole.is_relative_to(base) else path)


def items_path(settings: Settings, batch: str) -> Path | None:
    """The item table of a batch, None where the settings name none."""
    if settings.items is None:
        return None
    path = settings.path(settings.items.replace("{batch}", batch))
    if not path.is_file():
        raise SettingsError(f"items: {shown(settings, path)}: no such file")
    return path


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def input_hash(digests: Iterable[str]) -> str:
    """Digest of what was delivered: contents and not names, so a renamed file changes nothing."""
    return hashlib.sha256("".join(sorted(set(digests))).encode()).hexdigest()[:16]
