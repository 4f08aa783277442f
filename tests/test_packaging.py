"""The lock, the settings of the tools and the Makefile: what a fresh clone stands on."""

import os
import re
import shutil
import subprocess
import tomllib
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LAYERS = ["assets", "pipeline", "schemas", "metrics"]
DAGSTER = {f"dagster{suffix}" for suffix in ("", "-graphql", "-pipes", "-shared", "-webserver")}
PLATFORMS = [
    {"python_version": python, "python_full_version": f"{python}.1", "sys_platform": system}
    for python, system in product(("3.11", "3.12", "3.13"), ("linux", "darwin"))
]


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def _lock() -> str:
    return (ROOT / "requirements.lock").read_text("utf-8")


def _entries() -> list[tuple[Requirement, list[str]]]:
    """Every pin with its options, continuation lines joined and comments dropped."""
    text = re.sub(r"^\s*#.*\n", "", _lock(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    split = [re.split(r"\s+(?=--)", line.strip()) for line in lines if line.strip()]
    return [(Requirement(pin), options) for pin, *options in split]


def _pins(platform: dict[str, str]) -> list[tuple[str, str]]:
    """Name and version of what the lock installs there."""
    return [
        (canonicalize_name(pin.name), str(pin.specifier).removeprefix("=="))
        for pin, _ in _entries()
        if pin.marker is None or pin.marker.evaluate(platform)
    ]


def test_every_pin_is_exact_and_hashed() -> None:
    entries = _entries()
    assert len(entries) > len(_project()["project"]["dependencies"])
    for pin, options in entries:
        assert re.fullmatch(r"==[^*,]+", str(pin.specifier)), pin
        assert options, f"{pin} has no hash"
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", option) for option in options), pin


def test_the_lock_names_no_place() -> None:
    assert "://" not in _lock()
    for pin, _ in _entries():
        assert pin.url is None
    for line in _lock().splitlines():
        assert not re.match(r"\s*-(?!-hash=)", line), line
        assert not re.search(r"(^|[\s'\"=])[/~]\w", line), line


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
    for pin, _ in _entries():
        marker = pin.marker or Marker("sys_platform == 'win32'")
        assert not marker.evaluate({"sys_platform": "win32"}), f"{pin} is pinned for Windows"


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
