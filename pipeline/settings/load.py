"""Settings from a file, or from a mapping: everything wrong with them in one message.

Here: reading, and problems in words.  Not here: what is right or wrong (``audit``, ``sections``).
"""

import json
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.errors import SettingsError, several
from pipeline.settings.audit import DECIDE_ROWS, DECIDE_SCORES, Settings
from pipeline.settings.environment import PATH_VARIABLES, environment_paths
from pipeline.settings.text import cut, read_text

DEFAULT_FILE = "audit.yaml"

_MOST_PROBLEMS = 40  # a screen of them
_LONGEST_PROBLEM = 300  # a value that is quoted may be as long as the file


def load_settings(path: Path | None = None) -> Settings:
    """Settings from ``path``, or from audit.yaml in this folder.

    Paths that the environment names stand in the place of those of the file.  SettingsError lists
    every problem of the file at once.
    """
    file = path or Path(DEFAULT_FILE)
    hint = "" if path else "; name another with --config, or copy the commented example"
    document = read_text(file, hint)
    paths = environment_paths()
    where = ", ".join([str(file), *(PATH_VARIABLES[name] for name in paths)])
    return settings_from({**document, **paths}, folder=file.parent, where=where)


def settings_from(document: dict[Any, Any], *, folder: Path, where: str = "settings") -> Settings:
    """Settings from a mapping; SettingsError lists every problem at once."""
    if "folder" in document:
        raise SettingsError(f"{where}: folder: unknown setting; paths are relative to the file")
    try:
        # Once and for all: whoever changes the current folder later means nothing by it.
        folder = folder.absolute()
        return Settings(**{str(key): value for key, value in document.items()}, folder=folder)
    except ValidationError as error:
        problems = [line for each in error.errors() for line in _problems(each)]
    count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
    if len(problems) > _MOST_PROBLEMS:
        problems[_MOST_PROBLEMS:] = [f"and {len(problems) - _MOST_PROBLEMS:,} more"]
    raise SettingsError(several(f"{where}: {count}", problems))


_IN_OTHER_WORDS: dict[Any, str] = {
    "tuple_type": "write a list, as in [one, two]",
    "model_type": "write its settings as 'name: value', below it or in braces",
    "too_short": "name at least one",
    ("memory_limit", "string_pattern_mismatch"): "write it as in 8GB or 80%",
    ("webhook", "string_pattern_mismatch"): "an address begins with http:// or https://",
    ("[key]", "string_type"): "write the name in quotes; without, YAML takes it for something else",
}
"""What pydantic says in terms of Python, for people who write YAML; by type of error, or by the
name of a setting and it."""


def deciding_as(settings: Settings, said: str) -> Settings:
    """``settings``, but with all that stored scores depend on as ``said``, JSON of before."""
    others = settings.model_dump(exclude={"folder", *DECIDE_ROWS, *DECIDE_SCORES})
    return settings_from({**others, **json.loads(said)}, folder=settings.folder)


def _problems(error: Any) -> list[str]:
    """What one error of pydantic says, a line for each problem in it."""
    where = ".".join(str(step) for step in error["loc"])
    text = error["msg"].removeprefix("Value error, ")
    if error["type"] == "extra_forbidden":
        parent: Any = Settings
        for step in error["loc"][:-1]:
            field = getattr(parent, "model_fields", {}).get(step)
            parent = field.annotation if field else None
        fields = [name for name in getattr(parent, "model_fields", {}) if name != "folder"]
        near = get_close_matches(str(error["loc"][-1]), fields, n=1)
        text = "unknown setting" + (f"; did you mean {near[0]}?" if near else "")
    last = str(error["loc"][-1]) if error["loc"] else ""
    text = _IN_OTHER_WORDS.get((last, error["type"]), _IN_OTHER_WORDS.get(error["type"], text))
    lines = (f"{where}: {line}" if where else line for line in text.split("\n"))
    return [cut(line, _LONGEST_PROBLEM) for line in lines]
