"""What the folders of a log's path say of its rows: ``country=de`` in logs/2026-01-05/country=de.

Only names count that the settings use, and only folders that lie where the settings look for logs:
whatever else a folder is called means nothing.

Not here: rows that say otherwise (``delivered_rows``).
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

from pipeline.settings.audit import Settings
from schemas.rules import LOGGED

Folders: TypeAlias = Mapping[str, str | None]
"""Values by name, None for no value."""
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What writers call a folder of rows without a value."""


def said_by_folders(settings: Settings, path: Path) -> tuple[Folders, list[str]]:
    """What the folders of a file say, and the names that two of them say."""
    texts = (column.name for column in LOGGED if column.type == "VARCHAR")
    names = (*texts, *settings.slices, *settings.attribute_columns)
    used = {settings.columns.get(name, name) for name in names}
    said: dict[str, str | None] = {}
    twice = []
    for folder in _folders(settings, path):
        name, equals, value = folder.partition("=")
        if equals and unquote(name) in used:
            twice += [unquote(name)] if unquote(name) in said else []
            said[unquote(name)] = None if value == _NO_VALUE else unquote(value)
    return said, twice


def with_folders(digest: str, folders: Folders) -> str:
    """Digest of what a file and its folders say; its own where folders say nothing."""
    if not folders:
        return digest
    said = json.dumps([digest, sorted(folders.items())], ensure_ascii=False)
    return hashlib.sha256(said.encode("utf-8", "surrogateescape")).hexdigest()


def place_of(settings: Settings, pattern: str) -> Path:
    """The folder that a pattern begins with, up to the batch or a star."""
    fixed = re.split(r"\{batch\}|(?<!\[)\*", pattern, maxsplit=1)[0]
    # Signs that are escaped are plain.
    root = settings.path(re.sub(r"\[([*?[])\]", r"\1", fixed))
    return root if root.is_dir() else root.parent


def _folders(settings: Settings, path: Path) -> tuple[str, ...]:
    """Folders between the place of the logs and a file, with those that the settings spell out."""
    whole = path.absolute()
    for pattern in settings.logs:
        place = place_of(settings, pattern)
        base = place if Path(pattern).expanduser().is_absolute() else settings.folder
        if whole.is_relative_to(place.absolute()) and whole.is_relative_to(base.absolute()):
            return whole.relative_to(base.absolute()).parts[:-1]
    return ()
