"""What reads the published copy: the tools of `make readers`, and copies to give them."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pages import shared
from places import ROOT

from pipeline.publish.page.page import write_report
from pipeline.store.paths import store_of

EXAMPLES = ROOT / "examples"
PYTHON = ROOT / ".venv-readers" / "bin" / "python"
STORES = ("month", "one", "none", "hostile")
Copies = Callable[[str], Path]


def published(base: Path) -> Copies:
    """The published copy of a store, by its name; the store is that of the tests of the page."""
    return lambda name: store_of(shared(base, name, write_report)).dashboard


def replaced(path: Path, source: Path) -> Path:
    """``path``, replaced by a copy as publishing replaces it."""
    fresh = path.with_suffix(".new")
    shutil.copy(source, fresh)
    return fresh.replace(path)


def ask(script: str, *arguments: str | Path, **environment: str | Path) -> Any:
    """The JSON in the last line that ``script`` prints there.

    Where the environment is not built the test is skipped; in CI it fails.
    """
    if not PYTHON.exists():
        missing = "no .venv-readers: `make readers` builds it"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    given = {
        "PYTHONDONTWRITEBYTECODE": "1",
        **{key: str(said) for key, said in environment.items()},
    }
    done = subprocess.run(
        [PYTHON, "-c", script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **given},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
