"""The harness of the benchmarks: what it runs, keeps and writes.  No time is asserted here."""

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import duckdb
import pytest
from click.testing import CliRunner
from places import ROOT


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("bench")


@pytest.fixture
def speed(bench: ModuleType) -> Any:
    """The modules of the harness, by name."""

    class Modules:
        def __getattr__(self, name: str) -> ModuleType:
            return importlib.import_module(f"speed.{name}")

    return Modules()


def invoke(bench: ModuleType, folder: Path, *arguments: str) -> str:
    given = ["--size", "tiny", "--cache", str(folder / "cache"), "--results", str(folder)]
    answer = CliRunner().invoke(bench.main, [*given, *arguments])
    assert answer.exit_code == 0, answer.output
    return answer.output


def kept(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "results.json").read_text("utf-8"))
    return found["tiny"]


def test_a_tiny_run_writes_results_page_and_plot(bench: ModuleType, tmp_path: Path) -> None:
    invoke(bench, tmp_path, "--only", "histogram,ten-text,slices-1")
    found = kept(tmp_path)
    floors = ["floor-integer", "floor-text"]
    assert sorted(found) == sorted([*floors, "histogram", "ten-text", "plain", "slices-1"])
    assert all(len(each["rounds"]) == 1 for each in found.values()), found
    (turn,), (floor,) = found["ten-text"]["rounds"], found["floor-text"]["rounds"]
    assert turn["rows"] == 2000
    assert {"cpu", "whole", "peak", "wall"} <= set(turn)
    assert set(turn["steps"]) == {"ingest", "measure", "score"}
    assert sum(turn["steps"].values()) == pytest.approx(turn["cpu"])
    assert turn["against"] == {"floor-text": floor["cpu"]}
    page = (tmp_path / "RESULTS.md").read_text("utf-8")
    assert "| ten metrics, text ids: measure |" in page
    assert "| 1 slice against none |" in page
    assert "`evenrank run`, whole process | 12x | 9x | - | not measured |" in page
    ElementTree.parse(tmp_path / "growth.svg")


def numbers(**more: Any) -> dict[str, Any]:
    return {"cpu": 2.0, "whole": 3.0, "wall": 1.0, "peak": 10**8, **more}


def test_rounds_are_as_many_as_an_entry_takes(
    bench: ModuleType, speed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = []

    def answer(name: str, given: Any, cache: Path) -> dict[str, Any]:
        order.append(name)
        return numbers(cpu=float(len(order)))

    monkeypatch.setattr(speed.rounds, "task", answer)
    invoke(bench, tmp_path, "--only", "plain,check-text,help", "--rounds", "5")
    found = kept(tmp_path)
    counts = {name: len(each["rounds"]) for name, each in found.items()}
    assert counts == {"floor-text": 5, "check-text": 5, "plain": 3, "help": 9}
    # In turns, and each beside the scan of its own round.
    assert order[:8] == ["floor", "check", "start", "score"] * 2
    for check, floor in zip(
        found["check-text"]["rounds"], found["floor-text"]["rounds"], strict=True
    ):
        assert check["against"] == {"floor-text": floor["cpu"]}
        assert check["cpu"] == floor["cpu"] + 1


def test_entries_that_are_measured_again_leave_the_others(
    bench: ModuleType, tmp_path: Path
) -> None:
    invoke(bench, tmp_path, "--only", "floor-integer")
    first = kept(tmp_path)
    invoke(bench, tmp_path, "--only", "floor-text")
    assert kept(tmp_path)["floor-integer"] == first["floor-integer"]
    assert "floor-text" in kept(tmp_path)


def test_a_failure_is_reported_and_the_rest_goes_on(
    bench: ModuleType, speed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(name: str, given: Any, cache: Path) -> dict[str, Any]:
        if name == "floor" and not given["text"]:
            raise speed.rounds.TaskFailed("no scan today")
        return numbers()

    monkeypatch.setattr(speed.rounds, "task", answer)
    out = invoke(bench, tmp_path, "--only", "histogram,check-text")
    assert "failed: no scan today" in out
    found = kept(tmp_path)
    assert found["floor-integer"]["failed"] == "no scan today"
    assert "floor-integer failed" in found["histogram"]["failed"]
    assert "rounds" not in found["histogram"]
    assert found["check-text"]["rounds"][0]["cpu"] == 2.0
    page = (tmp_path / "RESULTS.md").read_text("utf-8")
    assert "| rank histogram alone | 1.5x | 1.1x | - | failed |" in page
    assert "- floor-integer, tiny: `no scan today`" in page


def test_what_was_measured_before_an_interrupt_is_kept(
    bench: ModuleType, speed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(name: str, given: Any, cache: Path) -> dict[str, Any]:
        if name == "score":
            raise KeyboardInterrupt
        return numbers()

    monkeypatch.setattr(speed.rounds, "task", answer)
    given = ["--size", "tiny", "--cache", str(tmp_path / "cache"), "--results", str(tmp_path)]
    out = CliRunner().invoke(bench.main, [*given, "--only", "ten-text,check-text"])
    assert out.exit_code == 130
    assert "stopped; what was measured is kept" in out.output
    assert list(kept(tmp_path)) == ["floor-text"]
    assert "floor, text ids" in (tmp_path / "RESULTS.md").read_text("utf-8")


def test_the_error_of_a_task_is_said_in_one_line(speed: Any, tmp_path: Path) -> None:
    given = {"file": str(tmp_path / "none.parquet"), "text": True}
    with pytest.raises(speed.rounds.TaskFailed, match=r"IO.*Error: .*none\.parquet") as caught:
        speed.rounds.task("floor", given, tmp_path)
    assert "\n" not in str(caught.value)


def test_unknown_names_are_refused(bench: ModuleType) -> None:
    answer = CliRunner().invoke(bench.main, ["--only", "ten-text,tens"])
    assert answer.exit_code == 2
    assert "tens: no such entry or suite" in answer.output


def test_entries_are_compared_with_what_runs_before_them(speed: Any) -> None:
    for size in speed.entries.SIZES:
        order = [entry.name for entry in speed.entries.chosen(size, [])]
        assert len(order) == len(set(order))
        for entry in speed.entries.chosen(size, []):
            assert all(order.index(name) < order.index(entry.name) for name in entry.against)


def test_goals_and_panels_are_about_entries(speed: Any) -> None:
    names = {goal.entry for goal in speed.goals.GOALS}
    names |= {entry for panel in speed.plot.PANELS for _, entry in panel.points}
    names |= {name for _, *pair in speed.page.GROWTH for name in pair} | set(speed.page.ADDED)
    assert names <= set(speed.entries.ENTRIES)
    tasks = {entry.task for entry in speed.entries.ENTRIES.values()}
    assert tasks == set(importlib.import_module("speed.work").TASKS)


@pytest.mark.parametrize(
    ("value", "more", "said"),
    [
        (1.0, False, "beyond"), (1.1, False, "beyond"),
        (1.3, False, "met"), (1.6, False, "not met"),
        (400.0, True, "met"), (1000.0, True, "beyond"), (299.0, True, "not met"),
    ],
)  # fmt: skip
def test_verdicts(speed: Any, value: float, more: bool, said: str) -> None:
    bounds = (300, 1000) if more else (1.5, 1.1)
    goal = speed.goals.Goal("", "", speed.goals.spent, *bounds, more=more)
    assert goal.met(value) == said


def test_ratios_are_taken_inside_a_round(speed: Any) -> None:
    # The machine was busy in the second round: ratios of medians would say 1.5.
    results = {
        "histogram": {
            "rounds": [
                {"cpu": 1.0, "against": {"floor-integer": 1.0}},
                {"cpu": 6.0, "against": {"floor-integer": 4.0}},
                {"cpu": 2.0, "against": {"floor-integer": 1.0}},
            ]
        }
    }
    found = speed.goals.numbers(results, "histogram", speed.goals.beside("floor-integer"))
    assert found == [1.0, 1.5, 2.0]
    assert speed.goals.spread(found) == "1.5 (1-2)"


def test_logs_are_made_once_and_hold_what_they_say(speed: Any, tmp_path: Path) -> None:
    paths = {name: speed.data.ready(tmp_path, name, 2000) for name in speed.data.LOGS}
    stamps = {name: path.stat().st_mtime_ns for name, path in paths.items()}
    again = {name: speed.data.ready(tmp_path, name, 2000) for name in speed.data.LOGS}
    assert {name: path.stat().st_mtime_ns for name, path in again.items()} == stamps
    for name, path in paths.items():
        lists, rows = speed.data.LOGS[name].counted(2000)
        query = (
            "SELECT count(*), count(DISTINCT list_id), count(DISTINCT (list_id, item_id)), "
            f"count(DISTINCT (list_id, rank)), max(rank) FROM '{path}'"
        )
        assert duckdb.sql(query).fetchall() == [(rows, lists, rows, rows, rows // lists)], name
    same = "SELECT * FROM '{}' ORDER BY list_id, rank"
    rows = [duckdb.sql(same.format(paths[name])).fetchall() for name in ("text", "shuffled")]
    assert rows[0] == rows[1]
    order = [
        duckdb.sql(f"SELECT list_id, rank FROM '{paths[name]}'").fetchall()
        for name in ("text", "shuffled")
    ]
    assert order[0] != order[1]


def test_other_libraries_are_compared_by_value(
    speed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A library that adds lists up returns as many times a mean; one number off is an error.
    log = speed.data.ready(tmp_path, "pool", 10_000)
    values: dict[str, Any] = {"EXP": {"g0": 3.0, "g1": 1.5}, "NDKL": 0.25}
    ours = {
        "cpu": 1.0,
        "rows": 500,
        "scores": {
            "values": {"NDKL": 0.25},
            "groups": [("EXP", "g0", 0.6), ("EXP", "g1", 0.3)],
            "lists": 5,
        },
    }
    theirs = {"seconds": {"EXP": 30.0, "NDKL": 20.0}, "values": values, "versions": {}}

    def answer(command: list[str]) -> dict[str, Any]:
        return ours if command[0] == sys.executable else theirs

    monkeypatch.setattr(speed.peers, "_document", answer)
    found = speed.peers.fairranktune({"file": str(log), "python": "theirs"})
    assert found["steps"] == {"ours": 1.0, "theirs": 50.0}
    assert found["gap"] < 1e-12
    values["EXP"]["g1"] *= 1 + 1e-8
    with pytest.raises(SystemExit, match="values differ"):
        speed.peers.fairranktune({"file": str(log), "python": "theirs"})


def test_committed_pages_are_those_of_the_committed_numbers(bench: ModuleType, speed: Any) -> None:
    found = speed.rounds.read(ROOT / "benchmarks" / "results.json")
    page = (ROOT / "benchmarks" / "RESULTS.md").read_text("utf-8")
    assert page == speed.page.page(found, "../docs/images/growth.svg"), "run bench.py --report"
    plot = (ROOT / "docs" / "images" / "growth.svg").read_text("utf-8")
    assert plot == speed.plot.svg(found.get("10M", {}))
    manual = (ROOT / "docs" / "performance.md").read_text("utf-8")
    assert speed.page.goals(found) in manual
    assert speed.page.steps(found.get("10M", {})) in manual
    assert speed.page.growth(found.get("10M", {})) in manual
