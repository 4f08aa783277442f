"""The Airflow that tests start: where it is, what it is given, and what it leaves behind."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from places import ROOT

COMMANDS = ROOT / ".venv-airflow" / "bin"
DAGS = ROOT / "examples" / "airflow" / "dags"
MISSING = "there is no Airflow in .venv-airflow; `make airflow` installs it"


def required() -> bool:
    """Whether a missing Airflow is a failure: in CI, and where somebody says so."""
    said = (os.environ.get("CI"), os.environ.get("EVENRANK_AIRFLOW"))
    return said[0] == "true" or said[1] == "required"


def need_airflow() -> None:
    """Skip the test, or fail it, where no Airflow is installed."""
    if not (COMMANDS.parent / ".ready").exists():
        if required():
            pytest.fail(MISSING)
        pytest.skip(MISSING)


def _local() -> ModuleType:
    path = ROOT / "examples" / "airflow" / "local.py"
    spec = importlib.util.spec_from_file_location("airflow_local", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LOCAL = _local()


def command(folder: Path) -> Path:
    """The command evenrank of this checkout, as a file to be started from anywhere."""
    path = folder / "evenrank"
    path.write_text(
        f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m pipeline.cli.main "$@"\n',
        "utf-8",
    )
    path.chmod(0o755)
    return path


def airflow(folder: Path, home: str, **settings: str) -> Any:
    """An Airflow that audits what lies in ``folder``, twice at most, a second apart."""
    given = {
        # Nights are those of the test only, and soon.
        "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
        "EVENRANK_RETRIES": "1",
        "EVENRANK_RETRY_SECONDS": "1",
    }
    variables = {"evenrank_bin": str(command(folder)), "evenrank_home": str(folder)}
    return LOCAL.Local(folder / home, COMMANDS, variables=variables, settings=given | settings)


def listening(processes: list[int]) -> set[str]:
    """Addresses that they listen on, as Linux writes them in /proc/net, without the port."""
    inodes = set()
    for process in processes:
        try:
            inodes |= {os.readlink(file) for file in Path(f"/proc/{process}/fd").iterdir()}
        except OSError:
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        path = Path("/proc/net") / table
        for line in path.read_text("ascii").splitlines()[1:] if path.exists() else ():
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in inodes:
                found.add(words[1].partition(":")[0])
    return found
