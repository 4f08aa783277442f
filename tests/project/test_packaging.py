"""The lock, the settings of the tools and the Makefile: what a fresh clone stands on."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from locked import LOCK, Pin, pins_of
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from places import ROOT

LAYERS = ["assets", "pipeline", "schemas", "metrics"]
DAGSTER = {f"dagster{suffix}" for suffix in ("", "-graphql", "-pipes", "-shared", "-webserver")}
PLATFORMS = [
    {"python_version": python, "python_full_version": f"{python}.1", "sys_platform": system}
    for python, system in product(("3.11", "3.12", "3.13"), ("linux", "darwin"))
]


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


TOOLS, READERS, AIRFLOW = (
    ROOT / ".ci" / f"{name}.lock" for name in ("tools", "readers", "airflow")
)
LOCKS = {LOCK: 20, TOOLS: 20, READERS: 0, AIRFLOW: 20}
"""Every lock, and what it has more packages than."""


def _lock() -> list[Pin]:
    return pins_of(LOCK.read_text("utf-8"))


def _pins(platform: dict[str, str]) -> list[tuple[str, str]]:
    """Name and version of what the lock installs there."""
    return [(pin.name, pin.version) for pin in _lock() if pin.here(platform)]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_pin_is_exact_and_hashed(lock: Path) -> None:
    text = lock.read_text("utf-8")
    pins = pins_of(text)
    assert len(pins) == len(re.findall(r"^[\w.-]+(\[.+\])?==", text, re.MULTILINE)) > LOCKS[lock]
    for pin in pins:
        assert re.fullmatch(r"==[^*,]+", str(pin.requirement.specifier)), pin
        assert pin.options, f"{pin.name} has no hash"
        for option in pin.options:
            assert re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", option), pin
        assert pin.via, f"nothing needs {pin.name}"


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_the_lock_names_no_place(lock: Path) -> None:
    text = lock.read_text("utf-8")
    assert "://" not in text
    for pin in pins_of(text):
        assert pin.requirement.url is None
    for line in text.splitlines():
        assert not re.match(r"\s*-(?!-hash=)", line), line
        assert not re.search(r"(^|[\s'\"=])[/~]\w", line), line


def test_only_what_was_locked_is_installed() -> None:
    """Every pip install takes hashes, or takes nothing from anywhere."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert "://" not in makefile.replace("http://127.0.0.1:3000", "")
    calls = re.findall(r"^.*\bpip install\b.*$", makefile, re.MULTILINE)
    installed = [set(call.split()) for call in calls]
    hashed = [words for words in installed if "--require-hashes" in words]
    locks = [str(lock.relative_to(ROOT)) for lock in LOCKS]
    assert [[name for name in locks if name in words] for words in hashed] == [[n] for n in locks]
    for words in installed:
        if words not in hashed:
            assert {"--no-deps", "--no-build-isolation", "-e", "."} <= words, words


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda p: "-".join(sorted(set(p.values()))))
def test_the_lock_fits_the_project_on(platform: dict[str, str]) -> None:
    project = _project()["project"]
    pins = _pins(platform)
    assert len(dict(pins)) == len(pins), "a package is pinned twice"
    for wanted in project["dependencies"] + project["optional-dependencies"]["dev"]:
        requirement = Requirement(wanted)
        version = dict(pins).get(canonicalize_name(requirement.name))
        assert version, f"{wanted} is not locked: make lock"
        assert requirement.specifier.contains(version, prereleases=True), f"{wanted}: make lock"


def test_the_dagster_family_moves_together() -> None:
    for platform in PLATFORMS:
        family = {name: pin for name, pin in _pins(platform) if name in DAGSTER}
        assert family.keys() == DAGSTER
        assert len(set(family.values())) == 1, family


def test_the_lock_is_for_linux_and_macos() -> None:
    for pin in _lock():
        marker = pin.requirement.marker or Marker("sys_platform == 'win32'")
        assert not marker.evaluate({"sys_platform": "win32"}), f"{pin.name} is pinned for Windows"


def test_packages_layers_and_tools_name_the_same_folders() -> None:
    tool = _project()["tool"]
    contract = next(c for c in tool["importlinter"]["contracts"] if c["type"] == "layers")
    assert contract["layers"] == LAYERS
    for listed in (
        tool["importlinter"]["root_packages"],
        tool["hatch"]["build"]["targets"]["wheel"]["packages"],
        tool["mypy"]["packages"],
    ):
        assert sorted(listed) == sorted(LAYERS)
    assert all((ROOT / layer).is_dir() for layer in LAYERS)


@pytest.mark.parametrize(
    ("module", "banned"),
    [
        ("pipeline", {"dagster"}),
        ("schemas", {"dagster", "duckdb"}),
        ("metrics", {"dagster", "duckdb", "pandas", "pandera", "pyarrow"}),
    ],
)
def test_frameworks_are_kept_out_of(module: str, banned: set[str]) -> None:
    contracts = _project()["tool"]["importlinter"]["contracts"]
    forbidden = [c for c in contracts if c["type"] == "forbidden"]
    found = {
        name
        for contract in forbidden
        if module in contract["source_modules"]
        for name in contract["forbidden_modules"]
    }
    assert banned <= found
    assert all("ignore_imports" not in contract for contract in contracts)


def test_the_version_stands_in_one_place() -> None:
    project = _project()
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["hatch"]["version"]["path"] == "metrics/__init__.py"
    sources = [file for layer in LAYERS for file in sorted((ROOT / layer).rglob("*.py"))]
    stating = [
        (file.relative_to(ROOT).as_posix(), version)
        for file in sources
        for version in re.findall(r'^__version__ = "(.+)"$', file.read_text("utf-8"), re.MULTILINE)
    ]
    assert [file for file, _ in stating] == ["metrics/__init__.py"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", stating[0][1])


def test_make_help_lists_every_target() -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not installed")
    # Started by `make test`, the inner make would take the outer one's flags.
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    answer = subprocess.run(
        [make, "-C", str(ROOT), "--no-print-directory"],
        capture_output=True, text=True, check=True, env=quiet, timeout=60,
    )  # fmt: skip
    shown = set(re.findall(r"^  ([a-z-]+) ", answer.stdout, re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text("utf-8")
    phony = set(re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)[0].split())
    described = set(re.findall(r"^([a-z-]+):.*## \S", makefile, re.MULTILINE))
    assert described == phony
    assert shown == phony


def test_dagster_takes_the_shipped_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dagster import DagsterInstance

    shutil.copy(ROOT / "dagster.yaml", tmp_path)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with DagsterInstance.get() as instance:
        assert instance.telemetry_enabled is False
        assert instance.nux_enabled is False
        assert instance.freshness_enabled is True


def test_the_workspace_loads_what_the_project_names() -> None:
    workspace = yaml.safe_load((ROOT / "workspace.yaml").read_text("utf-8"))
    [location] = [entry["python_module"] for entry in workspace["load_from"]]
    assert location["module_name"] == _project()["tool"]["dagster"]["module_name"]


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=120,
        check=False, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


def test_every_module_is_imported_without_a_warning() -> None:
    files = [file for layer in LAYERS for file in sorted((ROOT / layer).rglob("*.py"))]
    names = {".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files}
    modules = sorted(name.removesuffix(".__init__") for name in names)
    assert len(modules) > 100
    done = _python("-W", "error", "-c", f"import {', '.join(modules)}")
    assert done.returncode == 0, done.stderr


def test_what_is_installed_fits_together() -> None:
    done = _python("-m", "pip", "check")
    assert done.returncode == 0, done.stdout


def test_the_hooks_before_a_commit_are_valid_and_fetch_nothing() -> None:
    done = _python("-m", "pre_commit", "validate-config", ".pre-commit-config.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    assert [repo["repo"] for repo in config["repos"]] == ["local"]
    hooks = [hook for repo in config["repos"] for hook in repo["hooks"]]
    assert {hook["language"] for hook in hooks} == {"system"}
    assert all(hook["entry"].startswith(".venv/bin/") for hook in hooks)
