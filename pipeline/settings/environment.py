"""Settings that the environment may say instead of the file: where things lie.

Not here: variables that stand for options of a command (``cli``).
"""

import glob
import os
from pathlib import Path

from pipeline.errors import SettingsError

PATH_VARIABLES = {name: f"EVENRANK_{name.upper()}" for name in ("logs", "items", "store", "spill")}
"""Variables of the environment that stand in the place of settings that are paths."""


def environment_paths() -> dict[str, str]:
    """Paths that the environment names, by setting; empty variables name none.

    Whoever calls means them from the current folder on, wherever the settings file lies.
    SettingsError where one is no text.
    """
    paths: dict[str, str] = {}
    for name, variable in PATH_VARIABLES.items():
        text = os.environ.get(variable)
        if not text:
            continue
        if not all(c.isprintable() for c in text):
            raise SettingsError(f"{variable}: must be UTF-8 that can be printed")
        path = Path(text).expanduser()
        # This folder is a place and not a pattern, whatever its name holds.
        current_folder = glob.escape(str(Path.cwd())) if name == "logs" else str(Path.cwd())
        paths[name] = str(path) if path.is_absolute() else os.path.join(current_folder, path)
    return paths
