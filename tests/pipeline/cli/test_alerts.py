"""evenrank alerts, mark and assess; what run and backfill say of alerts."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from histories import NIGHTS, Given, fill, gap, put, quiet, score, write
from stores import copied, deliver, in_batch, in_history, random_lists, write_settings

from pipeline.cli.main import main
from pipeline.monitoring.assess import assess
from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings

SETTINGS = """\
attributes: [gender]
slices: [device]
metrics: [EXP]
thresholds: {EXP.MinMaxRatio: {min: 0.8}}
trends: {window: 8, least: 4}
gate: {window: 6, least: 3}
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A history of fifteen nights, the last of them a breach."""
    found = load_settings(write_settings(tmp_path_factory.mktemp("nights"), SETTINGS))
    fill(found, 14)
    put(found, NIGHTS[14], [score(0.5)])
    assess(found)
    return found


@pytest.fixture
def settings(whole: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A copy of that audit in the current folder."""
    monkeypatch.chdir(tmp_path)
    return copied(whole, tmp_path)


def evenrank(*arguments: str, code: int = 0) -> Result:
    answer = CliRunner().invoke(main, arguments)
    assert answer.exit_code == code, answer.output
    return answer


def document(*arguments: str, code: int = 0) -> Any:
    return json.loads(evenrank(*arguments, "--json", code=code).stdout.splitlines()[-1])


def names() -> list[str]:
    return [row["alert"] for row in document("alerts")["alerts"]]


def test_open_alerts_are_listed(settings: Settings) -> None:
    text = evenrank("alerts").stdout
    assert "breach" in text
    assert "of the exposure per item" in text
    assert max(map(len, text.splitlines())) <= 80
    whole = evenrank("alerts", "--long").stdout
    assert "FROM v_history" in whole
    assert max(map(len, whole.splitlines())) <= 80


@pytest.mark.slow
def test_acknowledging_says_what_changed(settings: Settings) -> None:
    before = names()
    text = evenrank("alerts", "ack", before[0][:5], "--note", "known", "--by", "eve").stdout
    assert f"{before[0]} acknowledged" in text
    assert before[0] not in names()
    assert "acknowledged:" in evenrank("alerts", "--all").stdout.replace("\n", " ")
    (row,) = (row for row in document("alerts", "--all")["alerts"] if row["alert"] == before[0])
    assert (row["acknowledged_by"], row["note"]) == ("eve", "known")
    found = document("alerts", "undo", before[0])
    assert found["alerts"] == [before[0]]
    assert names() == before


def test_snoozing(settings: Settings) -> None:
    (first, *others) = names()
    evenrank("alerts", "snooze", first, "--until", "2999-01-01")
    assert names() == others
    assert "snoozed until 2999-01-01" in evenrank("alerts", "--all").stdout.replace("\n", " ")


def test_alerts_of_a_batch(settings: Settings) -> None:
    assert document("alerts", "--batch", NIGHTS[3]) == {"alerts": []}
    assert evenrank("alerts", "--batch", NIGHTS[3]).stdout == f"No alert in {NIGHTS[3]}.\n"
    assert {row["opened"] for row in document("alerts", "--batch", NIGHTS[14])["alerts"]} == {
        NIGHTS[14]
    }


def test_of_a_batch_without_scores_nothing_is_said(settings: Settings) -> None:
    gap(settings, NIGHTS[15])
    for batch in (NIGHTS[15], "2025-12-31"):
        answer = evenrank("alerts", "--batch", batch, code=4)
        assert answer.stderr == f"evenrank: {batch}: the history has no scores of such a batch\n"


def test_a_wrong_name_is_an_error(settings: Settings) -> None:
    answer = evenrank("alerts", "ack", "ffffffffffff", code=1)
    assert "ffffffffffff is no alert" in answer.stderr
    assert document("alerts", "ack", "ffffffffffff", code=1)["exit_code"] == 1


def test_without_a_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_settings(tmp_path)
    assert evenrank("alerts").stdout == "No alert is open.\n"
    assert evenrank("mark").stdout == "No release is marked.\n"
    for command in (["alerts", "ack", "abcd"], ["mark", "--batch", "b", "--text", "v7"]):
        assert "run a batch first" in evenrank(*command, code=1).stderr
    evenrank("assess", code=4)


@pytest.mark.slow
def test_marking(settings: Settings) -> None:
    found = document("mark", "--batch", NIGHTS[10], "--text", "model v7")
    assert found["later"] == NIGHTS[10:15]
    assert "model v7" in evenrank("mark").stdout
    (marker,) = document("mark")["markers"]
    assert (marker["batch"], marker["source"]) == (NIGHTS[10], "mark")
    assert "no longer marked" in evenrank("mark", "--batch", NIGHTS[10], "--remove").stdout
    evenrank("mark", "--batch", NIGHTS[10], "--remove", code=1)


@pytest.mark.parametrize(
    "given", [["--text", "v7"], ["--remove"], ["--batch", "b"],
              ["--batch", "b", "--text", "v7", "--remove"]]
)  # fmt: skip
def test_half_a_marker_is_an_error(settings: Settings, given: list[str]) -> None:
    evenrank("mark", *given, code=2)


@pytest.mark.slow
def test_assessing_anew(settings: Settings) -> None:
    found = document("assess", "--from", NIGHTS[5])
    assert (found["batches"], found["changed"]) == (NIGHTS[5:15], False)
    write_settings(settings.folder, SETTINGS.replace("window: 8", "window: 9"))
    assert "changed" in evenrank("assess").stdout


@pytest.mark.slow
def test_gates_and_shifts_may_fail_a_run(settings: Settings) -> None:
    """The day has no log, but its scores are kept: what they say still counts."""
    for value, codes in ((0.5, (5, 4, 4)), (0.82, (4, 5, 4))):
        put(settings, NIGHTS[14], [score(value)])
        assess(settings)
        for kind, code in zip(("breach", "shift", "gate"), codes, strict=True):
            evenrank("run", "--batch", NIGHTS[14], "--fail-on", kind, code=code)
    put(settings, NIGHTS[14], [score(0.5)], rows=100)
    assess(settings)
    for kind, code in (("breach", 5), ("shift", 4), ("gate", 5)):
        evenrank("run", "--batch", NIGHTS[14], "--fail-on", kind, code=code)
    given = ["--fail-on", "breach", "--fail-on", "gate"]
    evenrank("run", "--batch", NIGHTS[14], *given, code=5)


@pytest.mark.slow
def test_a_missing_group_is_told_and_fails_a_run_that_asks_for_it(settings: Settings) -> None:
    sizes = {"F": 450, "M": 420, "X": 130}
    every = [Given(NIGHTS[at], [score(quiet(at))], sizes=sizes) for at in range(14)]
    write(settings, [*every, Given(NIGHTS[14], [score(0.9)], sizes={"F": 520, "M": 480})])
    assess(settings)
    words = ("run", "--batch", NIGHTS[14])
    for kind, code in (("breach", 4), ("gate", 4), ("missing", 5)):
        evenrank(*words, "--fail-on", kind, code=code)
    assert "Group X of gender is missing" in evenrank("alerts").stdout.replace("\n", " ")
    assert "insufficient" in evenrank("history", "--batch", NIGHTS[14]).stdout
    (row,) = document("alerts", "--batch", NIGHTS[14])["alerts"]
    assert (row["kind"], row["metric"], row["attribute"]) == ("missing", "X", "gender")
    evenrank("alerts", "snooze", row["alert"], "--until", "2999-01-01")
    assert names() == []


@pytest.mark.slow
def test_a_run_without_a_group_is_not_ok_and_does_not_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = SETTINGS.replace("0.8", "0.1").replace("least: 3", "least: 7")
    found = load_settings(write_settings(tmp_path, text))
    for at, night in enumerate(NIGHTS[:5]):
        rows = random_lists(at, 60)
        if at == 4:
            rows = [{**row, "gender": row["gender"].replace("X", "F")} for row in rows]
        deliver(tmp_path, rows, batch=night)
    evenrank("backfill", "--from", NIGHTS[0], "--to", NIGHTS[3])
    said = " ".join(evenrank("run", "--batch", NIGHTS[4]).stdout.split())
    assert "(status insufficient)" in said
    assert "Group X of gender is missing" in said
    rows = in_history(found, "FROM fairness_history ORDER BY batch")
    told = {(row["batch"], row["verdict"], row["status"], row["status_reason"]) for row in rows}
    judged = [each for each in sorted(told, key=str) if each[1] != "not_judged"]
    assert judged == [
        *((night, "ok", "ok", None) for night in NIGHTS[:4]),
        (NIGHTS[4], "ok", "insufficient", "missing_group: X"),
    ]
    own = in_batch(found, "SELECT DISTINCT status FROM fairness_history", NIGHTS[4])
    assert {row["status"] for row in own} == {"ok", "not_judged"}


def test_a_backfill_ends_with_open_alerts(settings: Settings) -> None:
    text = evenrank("backfill", "--from", NIGHTS[14], "--to", NIGHTS[14], code=4).stdout
    assert "open; `evenrank alerts` lists them." in text
