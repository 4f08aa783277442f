"""What is installed, why, whether it is known to be vulnerable, and the bill of materials."""

import json
import re
import tomllib
from importlib.metadata import distribution, distributions
from pathlib import Path
from typing import Any

import pytest
from audit_deps import Said, asked, judged
from locked import LOCK, ROOT, needed_by, pins_of
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from sbom import bill, licence_of, licences

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PINS = pins_of(LOCK.read_text("utf-8"))
SMALL = """\
# This file was written by a tool
#    make lock
one==1.0 ; sys_platform == 'linux' or sys_platform == 'darwin' \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via app (pyproject.toml)
Two_Words[extra]==2.0 \\
    --hash=sha256:cc
    # via
    #   app (pyproject.toml)
    #   one
windows==3.0 ; sys_platform == 'win32' \\
    --hash=sha256:dd
    # via two-words
tool==4.0 \\
    --hash=sha256:ee
    # via -r .ci/tools.in
"""
HERE = [pin for pin in pins_of(SMALL) if pin.name != "windows"]


def _names(requirements: list[str]) -> list[str]:
    return [Requirement(each).name for each in requirements]


def _tables() -> list[list[list[str]]]:
    """The rows of the two tables of packages in docs/dependencies.md, cell by cell."""
    text = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    found = []
    for part in text.split("| package | licence |")[1:]:
        rows = re.findall(r"^\| (.+) \|$", part.partition("\n\n")[0], re.MULTILINE)
        found.append([row.split(" | ") for row in rows if not row.startswith("---")])
    return [rows[0 if len(rows[0]) == 5 else 1 :] for rows in found]


def test_a_lock_says_who_needs_what() -> None:
    pins = pins_of(SMALL)
    assert [(pin.name, pin.version, pin.hashes, pin.via) for pin in pins] == [
        ("one", "1.0", ["aa", "bb"], ("",)),
        ("two-words", "2.0", ["cc"], ("", "one")),
        ("windows", "3.0", ["dd"], ("two-words",)),
        ("tool", "4.0", ["ee"], ("",)),
    ]
    linux = {"sys_platform": "linux"}
    assert [pin.here(linux) for pin in pins] == [True, True, False, True]
    assert needed_by(pins, {"one"}) == {"one", "two-words", "windows"}
    assert needed_by(pins, {"tool"}) == {"tool"}


@pytest.mark.parametrize("kind", [0, 1], ids=["runs", "development"])
def test_every_dependency_has_its_reason(kind: int) -> None:
    wanted = [PROJECT["dependencies"], PROJECT["optional-dependencies"]["dev"]][kind]
    rows = _tables()[kind]
    assert sorted(row[0] for row in rows) == sorted(_names(wanted))
    assert all(len(row) == 5 and all(cell.strip() for cell in row) for row in rows)


def test_licences_are_those_that_the_packages_state() -> None:
    short = {"MIT License": "MIT", "BSD License": "BSD"}
    clauses = {
        "MIT": "Permission is hereby granted, free of charge",
        "BSD-3-Clause": "Neither the name of the copyright holder",
    }
    for name, licence, *_ in (row for rows in _tables() for row in rows):
        if not licence_of(distribution(name)):
            # It ships the text of its licence only.
            texts = [path for path in distribution(name).files or () if path.stem == "LICENSE"]
            said = [" ".join(path.read_text().split()) for path in texts]
            assert any(clauses[licence] in text for text in said), name
            continue
        [stated] = licence_of(distribution(name))
        said = stated.get("expression") or stated["license"]["name"]
        assert licence == said or short.get(said, said) in licence, (name, said)


def test_what_goes_with_a_dependency_is_counted_from_the_lock() -> None:
    own = {canonicalize_name(name) for name in _names(PROJECT["dependencies"])}
    whole = own | {
        canonicalize_name(name) for name in _names(PROJECT["optional-dependencies"]["dev"])
    }
    for rows, names in zip(_tables(), (own, whole), strict=True):
        everything = needed_by(PINS, names)
        for row in rows:
            left = needed_by(PINS, names - {canonicalize_name(row[0])})
            assert int(row[4]) == len(everything - left), row[0]


def _answer(**known: Any) -> Said:
    """pip-audit's report on the small lock; a list of vulnerabilities, or why one was skipped."""
    of = {"one": [], "two-words": [], "tool": [], **known}
    return Said(
        {
            "dependencies": [
                {"name": name, "skip_reason": said}
                if isinstance(said, str)
                else {"name": name, "version": "1.0", "vulns": said}
                for name, said in of.items()
            ],
            "fixes": [],
        },
        "",
    )


def test_nothing_known_is_said_with_the_number_of_packages() -> None:
    result = judged(_answer(), HERE)
    assert list(result.lines) == ["3 packages: no known vulnerability."]
    assert (result.failed, result.complete) == (False, True)


def test_a_vulnerable_package_fails_and_says_what_to_do() -> None:
    mended = {"id": "PYSEC-1", "aliases": ["CVE-1"], "fix_versions": ["1.1", "2.0"]}
    open_still = {"id": "GHSA-2", "fix_versions": []}
    result = judged(_answer(one=[mended, open_still], tool="unknown"), HERE)
    assert list(result.lines) == [
        "Known vulnerabilities in 1 of 2 packages:",
        "  one 1.0: PYSEC-1, CVE-1; fixed in 1.1, 2.0",
        "  one 1.0: GHSA-2; fixed in no version yet",
        "Take the fixed versions: make lock ARGS='--upgrade-package one'",
        "NOT AUDITED: 1 packages, unknown to the service: tool",
    ]
    assert (result.failed, result.complete) == (True, False)


def test_a_package_that_was_skipped_or_forgotten_is_no_all_clear() -> None:
    skipped = judged(_answer(one="Dependency not found"), HERE)
    assert list(skipped.lines) == ["NOT AUDITED: 1 packages, unknown to the service: one"]
    assert (skipped.failed, skipped.complete) == (False, False)
    forgotten = judged(Said({"dependencies": [], "fixes": []}, ""), HERE)
    assert forgotten.lines[0].startswith("NOT AUDITED: 3 packages")
    assert not forgotten.complete


@pytest.mark.parametrize(
    "error",
    [
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='x'): Max retries exceeded",
        "ERROR:pip_audit._cli:Could not connect to the vulnerability feed",
        "Timeout: no answer within 180 s",
        "requests.exceptions.HTTPError: 503 Server Error",
    ],
)
def test_a_service_out_of_reach_is_said_and_tolerated(error: str) -> None:
    result = judged(Said(None, f"Traceback\n{error}\n"), HERE)
    assert result.lines[0].startswith("NOT AUDITED: no answer")
    assert error in result.lines[1]
    assert (result.failed, result.complete) == (False, False)


@pytest.mark.parametrize("error", ["", "pip-audit: error: unrecognized arguments: --no"])
def test_a_tool_that_breaks_is_a_failure(error: str) -> None:
    result = judged(Said(None, error), HERE)
    assert result.failed
    assert (error or "it said nothing") in result.lines[0]


@pytest.mark.parametrize(
    ("program", "report", "line"),
    [
        ("print('{\"dependencies\": []}'); raise SystemExit(1)", {"dependencies": []}, ""),
        ("raise SystemExit('no route')", None, "no route"),
    ],
)
def test_the_tool_is_asked_about_the_lock(
    program: str, report: Any, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for pip-audit, which asks the network."""
    tools = tmp_path / "bin" / "python"
    tools.parent.mkdir()
    tools.write_text(
        f"#!/usr/bin/env python3\nimport sys\nassert 'pip_audit' in sys.argv\n{program}\n"
    )
    tools.chmod(0o755)
    monkeypatch.setattr("audit_deps.TOOLS", tools)
    assert "not installed" in asked(LOCK).errors
    (tmp_path / ".ready").touch()
    said = asked(LOCK)
    assert said.report == report
    assert line in said.errors


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return bill(PINS, PROJECT, "1.2.3", licences(distributions()))


def test_the_bill_lists_what_is_locked_and_nothing_else(document: dict[str, Any]) -> None:
    listed = {
        (each["name"], each["version"]): each["externalReferences"][0]["hashes"]
        for each in document["components"]
    }
    assert listed == {
        (pin.name, pin.version): [{"alg": "SHA-256", "content": digest} for digest in pin.hashes]
        for pin in PINS
    }
    assert document["metadata"]["component"]["version"] == "1.2.3"


def test_the_bill_tells_what_runs_from_what_development_needs(document: dict[str, Any]) -> None:
    scopes = {each["name"]: each["scope"] for each in document["components"]}
    assert {scopes[canonicalize_name(name)] for name in _names(PROJECT["dependencies"])} == {
        "required"
    }
    assert scopes["starlette"] == "required"
    assert scopes["pytest"] == scopes["virtualenv"] == "excluded"


def test_every_edge_of_the_bill_joins_what_it_lists(document: dict[str, Any]) -> None:
    refs = {each["bom-ref"] for each in document["components"]}
    own = document["metadata"]["component"]["bom-ref"]
    edges = {each["ref"]: each["dependsOn"] for each in document["dependencies"]}
    assert edges.keys() == refs | {own}
    assert {target for targets in edges.values() for target in targets} == refs
    names = {ref.split("/")[1].split("@")[0] for ref in edges[own]}
    wanted = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["dev"]
    assert names == {canonicalize_name(name) for name in _names(wanted)}


def test_the_same_lock_makes_the_same_bill(document: dict[str, Any]) -> None:
    again = bill(PINS, PROJECT, "1.2.3", licences(distributions()))
    assert json.dumps(again) == json.dumps(document)
    other = bill(PINS[1:], PROJECT, "1.2.3", {})
    assert other["serialNumber"] != document["serialNumber"]


def test_installed_packages_say_their_licence(document: dict[str, Any]) -> None:
    of = {each["name"]: each.get("licenses") for each in document["components"]}
    assert of["dagster"] == [{"expression": "Apache-2.0"}]
    assert of["duckdb"] == [{"license": {"name": "MIT License"}}]
