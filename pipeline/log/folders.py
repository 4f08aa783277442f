"""What the folders of a log's path say of its rows: ``country=de`` in logs/2026-01-05/country=de.

Only names count that the settings use, and only folders that lie where the settings look for logs:
whatever else a folder is called means nothing.

Not here: rows that say otherwise (``delivered_rows``).
"""

from pathlib import Path
from urllib.parse import unquote

from pipeline.log.deliveries import place_of
from pipeline.log.files import FileProblem
from pipeline.settings.audit import Settings
from schemas.rules import LOGGED

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What writers call a folder of rows without a value."""


def said_by_folders(settings: Settings, path: Path) -> dict[str, str | None]:
    """Values by name, None for no value; FileProblem where two folders say the same name."""
    texts = (column.name for column in LOGGED if column.type == "VARCHAR")
    names = (*texts, *settings.slices, *settings.attribute_columns)
    used = {settings.columns.get(name, name) for name in names}
    said: dict[str, str | None] = {}
    for folder in _folders(settings, path):
        name, equals, value = folder.partition("=")
        if not equals or unquote(name) not in used:
            continue
        if unquote(name) in said:
            raise FileProblem(f"two folders of its path say {unquote(name)!r}")
        said[unquote(name)] = None if value == _NO_VALUE else unquote(value)
    return said


def _folders(settings: Settings, path: Path) -> tuple[str, ...]:
    """Folders between the place of the logs and a file, with those that the settings spell out."""
    whole = path.absolute()
    for pattern in settings.logs:
        place = place_of(settings, pattern)
        base = place if Path(pattern).expanduser().is_absolute() else settings.folder
        if whole.is_relative_to(place.absolute()) and whole.is_relative_to(base.absolute()):
            return whole.relative_to(base.absolute()).parts[:-1]
    return ()
