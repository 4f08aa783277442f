"""Where an audit is: its settings file, and the folder in which Dagster keeps its runs.

Not here: Dagster; whether there is anything to do is found out without it.
"""

import os
import shutil
from pathlib import Path

from pipeline.settings.load import DEFAULT_FILE

CONFIG_VARIABLE = "EVENRANK_CONFIG"
HOME_VARIABLE = "DAGSTER_HOME"
_INSTANCE_FILE = "dagster.yaml"


def settings_file() -> Path:
    """The settings file that the environment names, or audit.yaml in this folder."""
    return Path(os.environ.get(CONFIG_VARIABLE) or DEFAULT_FILE).absolute()


def dagster_home(file: Path) -> Path:
    """The folder of Dagster's runs, made ready: DAGSTER_HOME, or .dagster beside the settings."""
    named = os.environ.get(HOME_VARIABLE)
    home = Path(named).absolute() if named else file.absolute().parent / ".dagster"
    home.mkdir(parents=True, exist_ok=True)
    shipped = Path(__file__).parent.parent / _INSTANCE_FILE
    if shipped.exists() and not (home / _INSTANCE_FILE).exists():
        shutil.copy(shipped, home)
    os.environ[HOME_VARIABLE] = str(home)
    return home
