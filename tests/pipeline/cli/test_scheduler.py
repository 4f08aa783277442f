"""What schedulers need of the command line: several batches, batches without data, summaries, lines
for logs, paths from the environment, and an end by SIGTERM that leaves nothing half done."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cases import some
from click.testing import Result
from command import evenrank, without_page
from locks import held
from stores import (
    audit,
    deliver,
    in_history,
    random_lists,
    ranking,
    read,
    whole_history,
    write_settings,
)

from pipeline.cli.run import gravest
from pipeline.errors import SettingsError
from pipeline.runs.outcome import Outcome
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import batch_key, batch_keys
from pipeline.settings.load import load_settings
from pipeline.store.paths import store_of
from pipeline.terminal.log_lines import log_line
from pipeline.terminal.run_summary import write_summary

FIRST, SECOND, NO_LOG, REFUSED, NEXT, LAST = (f"2026-01-0{n}" for n in range(1, 7))
DONE = {FIRST: "done", SECOND: "done"}
SETTINGS = """\
attributes: [gender]
slices: [device]
metrics: [EXP, 'AWRF(p=0.2)', NDKL]
thresholds: {EXP.MinMaxRatio: {min: 1.0}}
schedule: {start: 2026-01-01, end: 2026-01-07}
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit of which two days were run; the third has no log, and the fourth is refused."""
    folder = tmp_path_factory.mktemp("scheduled")
    write_settings(folder, SETTINGS)
    for seed, day in enumerate((FIRST, SECOND, NEXT, LAST)):
        deliver(folder, random_lists(seed), batch=day)
    deliver(folder, ranking("a", "FM", device="m", relevance=7), batch=REFUSED)
    with without_page():
        result = evenrank("run", *batches(FIRST, SECOND), "-q", "-c", folder / "audit.yaml")
    assert result.exit_code == 0
    return folder


@pytest.fixture
def own(template: Path, tmp_path: Path) -> Path:
    """A copy of the audit for a test to change: its settings file."""
    shutil.copytree(template, tmp_path / "own")
    return tmp_path / "own" / "audit.yaml"


def batches(*days: str) -> list[str]:
    return [word for day in days for word in ("--batch", day)]


def manifest(config: Path) -> dict[str, str]:
    rows = in_history(audit(config.parent), "SELECT batch, status FROM batches ORDER BY batch")
    return {row["batch"]: row["status"] for row in rows}


def summarised(config: Path, *words: object) -> tuple[Result, dict[str, Any]]:
    """How a command ended, and the summary that it wrote."""
    path = config.parent / "summary.json"
    result = evenrank(*words, "--summary", path, "-c", config)
    assert [each.name for each in path.parent.glob("*summary*")] == ["summary.json"]
    said = json.loads(path.read_text("utf-8"))
    assert said["exit_code"] == result.exit_code
    return result, said


# -- several batches at once


@pytest.mark.slow
def test_several_batches_are_published_once_at_the_end(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pipeline.runs.finish

    publishing, published = pipeline.runs.finish.publish_changes, []

    def publish_changes(settings: Settings, *more: Any) -> None:
        rows = in_history(settings, "SELECT DISTINCT batch FROM fairness_history ORDER BY batch")
        published.append([row["batch"] for row in rows])
        publishing(settings, *more)

    monkeypatch.setattr(pipeline.runs.finish, "publish_changes", publish_changes)
    result = evenrank("run", *batches(LAST, NEXT, LAST), "--json", "-c", own)
    assert result.exit_code == 0
    assert published == [[FIRST, SECOND, NEXT, LAST]]
    said = json.loads(result.stdout.splitlines()[-1])
    assert [(each["batch"], each["status"]) for each in said["batches"]] == [
        (LAST, "done"),
        (NEXT, "done"),
    ]


@pytest.mark.slow
def test_several_batches_come_to_what_a_backfill_comes_to(own: Path, tmp_path: Path) -> None:
    other = shutil.copytree(own.parent, tmp_path / "other")
    assert evenrank("run", *batches(NEXT, LAST), "-q", "-c", own).exit_code == 0
    words = ("backfill", "--from", NEXT, "--to", LAST, "-q", "-c", other / "audit.yaml")
    assert evenrank(*words).exit_code == 0
    assert whole_history(audit(own.parent)) == whole_history(audit(other))


@pytest.mark.parametrize(
    ("codes", "asked", "code"),
    [
        ((0, 0), {}, 0),
        ((0, 0), {"fail_on": ("breach",)}, 5),
        ((0, 0), {"fail_on": ("shift", "gate")}, 0),
        ((4, 0), {}, 0),
        ((4, 0), {"require_data": True}, 1),
        ((4, 4), {}, 4),
        ((4, 4), {"fail_on": ("breach",)}, 5),
        ((4, 3), {}, 3),
        ((0, 3), {"fail_on": ("breach",)}, 3),
        ((3, 75, 2), {}, 75),
        ((3, 2, 4), {}, 2),
        ((75, 1), {}, 1),
    ],
    ids=str,
)
def test_the_gravest_exit_code_of_several(
    codes: tuple[int, ...], asked: dict[str, Any], code: int
) -> None:
    ended = [Outcome(str(at), "any", exit_code=each) for at, each in enumerate(codes)]
    found = {"breach": 1, "shift": 0, "gate": 0}
    assert gravest(ended, found, **{"fail_on": (), "require_data": False, **asked}) == code


@pytest.mark.slow
def test_several_batches_end_with_the_gravest_code(own: Path) -> None:
    words = ("run", *batches(FIRST, NO_LOG), "-q", "-c", own)
    assert evenrank(*words, "--fail-on", "breach").exit_code == 5
    assert evenrank(*words, "--fail-on", "breach", "--require-data").exit_code == 1


# -- batches without data


@pytest.mark.slow
@pytest.mark.parametrize(("more", "code"), [((), 4), (("--require-data",), 1)], ids=str)
def test_a_batch_without_data_is_never_a_green_night(
    own: Path, with_page: None, more: tuple[str, ...], code: int
) -> None:
    result = evenrank("run", *batches(NO_LOG), *more, "-c", own)
    assert result.exit_code == code
    assert f"{NO_LOG}: no files" in result.stderr
    assert manifest(own) == DONE | {NO_LOG: "no_data"}
    store = store_of(audit(own.parent))
    states = read(store.dashboard, "SELECT batch, state, scored FROM v_coverage ORDER BY batch")
    found = {row["batch"]: (row["state"], row["scored"]) for row in states}
    assert found[NO_LOG] == ("no_data", False)
    assert found[FIRST] == ("done", True)
    trend = read(store.dashboard, f"SELECT state, status FROM v_trend WHERE batch = '{NO_LOG}'")
    assert {tuple(row.values()) for row in trend} == {("no_data", None)}
    page = store.report.read_text("utf-8")
    assert re.findall(rf"<li>{NO_LOG}: ([^<]*)</li>", page) == ["□ No data"]


@pytest.mark.slow
def test_a_backfill_may_require_data(own: Path) -> None:
    words = ("backfill", "--from", SECOND, "--to", NO_LOG, "-q", "-c", own)
    assert evenrank(*words, "--require-data").exit_code == 1
    assert evenrank(*words).exit_code == 0
    assert manifest(own) == DONE | {NO_LOG: "no_data"}


@pytest.mark.slow
def test_data_that_came_late_is_found(own: Path) -> None:
    words = ("run", *batches(NO_LOG), "--require-data", "-q", "-c", own)
    assert evenrank(*words).exit_code == 1
    deliver(own.parent, random_lists(7), batch=NO_LOG)
    assert evenrank(*words).exit_code == 0
    assert manifest(own)[NO_LOG] == "done"


# -- the summary


@pytest.mark.slow
@pytest.mark.usefixtures("with_page")
def test_the_summary_of_a_batch(own: Path) -> None:
    result, said = summarised(own, "run", *batches(NEXT), "--fail-on", "breach")
    assert result.exit_code == 5
    settings = audit(own.parent)
    (row,) = in_history(settings, f"FROM batches WHERE batch = '{NEXT}'")
    found = in_history(
        settings, f"FROM fairness_history WHERE batch = '{NEXT}' AND status = 'breach'"
    )
    (batch,) = said.pop("batches")
    listed = batch.pop("worst")
    (concluded,) = read(store_of(settings).dashboard, f"FROM v_conclusions WHERE batch = '{NEXT}'")
    assert "got" in concluded["sentence"]
    assert {name: batch.pop(name) for name in ("state", "sentence")} == {
        name: concluded[name] for name in ("state", "sentence")
    }
    assert batch == {
        **{name: row[name] for name in ("batch", "status", "revision", "lists", "rows_read")},
        **{name: row[name] for name in ("rows_rejected", "result_hash", "message")},
        "breaches": len(found),
        "composition": 0,
        "insufficient": 0,
        "shifts": 0,
        "gated": False,
    }
    store = store_of(settings)
    assert said == {
        "summary_version": 1,
        "exit_code": 5,
        "error": None,
        "failed_on": [f"{len(found)} breach" + ("es" if len(found) > 1 else "")],
        **{name: str(getattr(store, name)) for name in ("history", "dashboard", "report")},
    }
    # Whole batches first, then what is furthest below its limit.
    order = sorted(found, key=lambda each: (each["slice"] != "all", each["value"]))
    assert 0 < len(order) <= 5
    assert listed == [
        {
            "label": "EXP.MinMaxRatio",
            **{name: each[name] for name in ("attribute", "slice", "slice_value", "value")},
            "worst_group": each["worst_group"],
        }
        for each in order
    ]


@pytest.mark.slow
def test_what_could_not_be_told_is_counted(own: Path) -> None:
    own.write_text(own.read_text().replace("min_queries: 0", "min_queries: 999"))
    _, said = summarised(own, "run", *batches(SECOND))
    (batch,) = said["batches"]
    assert (batch["breaches"], batch["insufficient"], batch["worst"]) == (0, 1, [])


@pytest.mark.slow
def test_a_summary_is_small_whatever_names_are_like(own: Path) -> None:
    groups = ["Ä" * 900, "Ö" * 900]
    for number in range(9):
        rows = ranking(f"q{number}", groups, device=f"{number}" + "ü" * 900)
        deliver(own.parent, rows, batch=NO_LOG, name=f"{number}.csv")
    _, said = summarised(own, "run", *batches(NO_LOG))
    assert len(said["batches"][0]["worst"]) > 1
    assert said["batches"][0]["breaches"] == 10
    assert (own.parent / "summary.json").stat().st_size < 2000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "batch"),
    some(
        [
            (batches(FIRST), 0, {"status": "unchanged", "revision": 1}),
            (batches(NO_LOG), 4, {"status": "no_data", "message": "no files"}),
            ([*batches(NO_LOG), "--require-data"], 1, {"status": "no_data", "result_hash": None}),
            (batches(REFUSED), 3, {"status": "refused", "message": "1 file", "rows_rejected": 2}),
        ],
        few=2,
    ),
    ids=str,
)
def test_the_summary_of_other_ends(
    own: Path, words: list[str], code: int, batch: dict[str, Any]
) -> None:
    result, said = summarised(own, "run", *words)
    assert (result.exit_code, said["error"]) == (code, None)
    (found,) = said["batches"]
    assert found["batch"] == words[1]
    for name, value in batch.items():
        if name == "message":
            assert found[name] in result.stderr
            assert "\n" not in found[name]
        else:
            assert found[name] == value


@pytest.mark.slow
def test_the_summary_of_a_store_in_use(own: Path) -> None:
    with held(store_of(audit(own.parent)).history) as holder:
        result, said = summarised(own, "run", *batches(FIRST, SECOND))
    assert result.exit_code == 75
    assert f"process {holder.pid}" in said["error"]
    assert said["batches"] == []


def test_the_summary_of_settings_that_cannot_be_used(own: Path) -> None:
    own.write_text("attributes: []\n")
    result, said = summarised(own, "run", *batches(FIRST))
    assert result.exit_code == 2
    assert "attributes" in said["error"]
    assert said["history"] is said["dashboard"] is said["report"] is None


@pytest.mark.slow
def test_the_summary_of_a_backfill(own: Path) -> None:
    words = ("backfill", "--from", FIRST, "--to", REFUSED)
    result, said = summarised(own, *words)
    assert result.exit_code == 3
    found = [(each["batch"], each["status"]) for each in said["batches"]]
    assert found == list(
        zip(
            (FIRST, SECOND, NO_LOG, REFUSED),
            ("unchanged", "unchanged", "no_data", "refused"),
            strict=True,
        )
    )
    assert len(said["batches"][0]["worst"]) > 0


@pytest.mark.slow
def test_the_environment_may_name_the_summary(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = own.parent / "said.json"
    monkeypatch.setenv("EVENRANK_SUMMARY", str(path))
    assert evenrank("run", *batches(NO_LOG), "-q", "-c", own).exit_code == 4
    assert json.loads(path.read_text("utf-8"))["exit_code"] == 4


def test_an_unforeseen_error_has_a_summary_that_quotes_nothing(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_batch(*given: object, **more: object) -> None:
        raise LookupError("somebody@example.org")

    monkeypatch.setattr("pipeline.runs.batches.run_batch", run_batch)
    path = own.parent / "summary.json"
    with pytest.raises(AssertionError, match="LookupError"):
        evenrank("run", *batches(FIRST), "--summary", path, "-c", own)
    said = json.loads(path.read_text("utf-8"))
    assert (said["exit_code"], said["error"]) == (1, "LookupError")


def _a_folder(path: Path) -> None:
    path.mkdir()


def _a_file_of_somebody(path: Path) -> None:
    path.write_text("precious\n")


def _a_link(path: Path) -> None:
    path.symlink_to(path.with_name("audit.yaml"))


def _a_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("made", [_a_folder, _a_file_of_somebody, _a_link, _a_pipe])
def test_a_summary_replaces_nothing_but_summaries(own: Path, made: Callable[[Path], None]) -> None:
    path = own.parent / "taken"
    made(path)
    before = path.lstat()
    result = evenrank("run", *batches(NEXT), "--summary", path, "-c", own)
    assert result.exit_code == 2
    assert f"--summary {path}: " in result.stderr
    assert (path.lstat().st_ino, path.lstat().st_size) == (before.st_ino, before.st_size)
    assert NEXT not in manifest(own), "it is said before anything is done"


def test_a_summary_needs_a_folder(own: Path) -> None:
    result = evenrank("run", *batches(SECOND), "--summary", own / "s.json", "-c", own)
    assert result.exit_code == 2
    assert "--summary" in result.stderr


def test_half_a_summary_is_never_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "summary.json"
    write_summary(path, {"summary_version": 1})

    def replace(new: Path, old: Path) -> None:
        assert json.loads(old.read_text()) == {"summary_version": 1}
        assert json.loads(new.read_text()) == {"summary_version": 1, "more": 2}
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", replace)
    with pytest.raises(Exception, match="No space left"):
        write_summary(path, {"summary_version": 1, "more": 2})
    assert [each.name for each in tmp_path.iterdir()] == ["summary.json"]


# -- lines for logs


@pytest.mark.slow
def test_one_line_per_event(own: Path) -> None:
    result = evenrank("run", *batches(NEXT, NO_LOG), "--log", "--json", "-c", own)
    (row,) = in_history(
        audit(own.parent),
        "SELECT lists, rows_read, (SELECT count(*) FROM fairness_history AS s "
        "WHERE s.batch = b.batch AND s.status = 'breach') AS breaches "
        f"FROM batches AS b WHERE batch = '{NEXT}'",
    )
    assert result.stderr.splitlines() == [
        f"{NEXT} done lists={row['lists']} rows={row['rows_read']} rejected=0 "
        f"breaches={row['breaches']} revision=1",
        f"{NO_LOG} no_data lists=0 rows=0 rejected=0 breaches=0 revision=0 "
        f'message="no files (looked for logs/{NO_LOG}/*)"',
        "evenrank ended exit_code=0 batches=2 done=1 no_data=1",
    ]
    assert len(result.stdout.splitlines()) == 1
    assert json.loads(result.stdout)["breaches"] == row["breaches"]


def test_an_error_is_one_line_too(own: Path) -> None:
    own.write_text("attributes: []\nno_such: 1\n")
    result = evenrank("run", *batches(SECOND), "--log", "-c", own)
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith('evenrank error exit_code=2 message="')
    assert "unknown setting" in json.loads(line.partition("message=")[2])


@pytest.mark.slow
def test_a_refused_batch_is_one_line(own: Path) -> None:
    result = evenrank("run", *batches(REFUSED), "--log", "-c", own)
    first, last = result.stderr.splitlines()
    assert first.startswith(f"{REFUSED} refused lists=0 rows=2 rejected=2 ")
    assert last == "evenrank ended exit_code=3 batches=1 refused=1"


def test_quiet_is_quieter_than_log(own: Path) -> None:
    result = evenrank("run", *batches(SECOND), "--log", "--quiet", "-c", own)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (3, "3"),
        (True, "true"),
        ("a,b", "a,b"),
        ("a b", '"a b"'),
        ("", '""'),
        ('a"b', r'"a\"b"'),
        ("a=b", '"a=b"'),
        ("a\nb\x1b[31m", r'"a\nb\u001b[31m"'),
        ("a\x9b\u2028b\u202e", r'"a\u009b\u2028b\u202e"'),
    ],
    ids=ascii,
)
def test_values_are_quoted_where_needed(value: object, said: str) -> None:
    line = log_line("2026-01-05", "done", {"left_out": None, "value": value})
    assert line == f"2026-01-05 done value={said}"
    if said.startswith('"'):
        assert json.loads(said) == value


# -- which batch


@pytest.mark.parametrize(
    ("said", "zone", "key"),
    [
        ("2026-01-19", "Europe/Berlin", "2026-01-19"),
        ("2026-01-19T07", "Europe/Berlin", "2026-01-19T07"),
        ("release.7", "UTC", "release.7"),
        ("2026-01-19T00:00:00+00:00", "UTC", "2026-01-19"),
        ("2026-01-19 00:00:00+00:00", "UTC", "2026-01-19"),
        ("2026-01-18T23:00:00+00:00", "Europe/Berlin", "2026-01-19"),
        ("2026-01-18T22:59:59.999999Z", "Europe/Berlin", "2026-01-18"),
        # The nights in which clocks change: midnight there.
        ("2026-03-28T23:00:00+00:00", "Europe/Berlin", "2026-03-29"),
        ("2026-03-29T22:00:00+00:00", "Europe/Berlin", "2026-03-30"),
        ("2026-10-25T23:00:00+00:00", "Europe/Berlin", "2026-10-26"),
        ("2026-01-19T03:00:00+00:00", "America/New_York", "2026-01-18"),
        ("2026-01-19T00:00:00", "America/New_York", "2026-01-19"),
    ],
)
def test_a_moment_is_its_day_where_the_schedule_is(
    said: str, zone: str, key: str, tmp_path: Path
) -> None:
    assert batch_key(said, audit(tmp_path, schedule={"timezone": zone})) == key


def test_all_that_names_no_batch_is_told(tmp_path: Path) -> None:
    wrong = ("../x", "2026-01-99T00:00:00", "9999-12-31T23:00:00-12:00")
    with pytest.raises(SettingsError) as caught:
        batch_keys(("2026-01-01", *wrong), audit(tmp_path))
    for each in wrong:
        assert repr(each) in str(caught.value)
    assert "2026-01-01" not in str(caught.value)


@pytest.mark.slow
def test_a_moment_on_the_command_line(own: Path) -> None:
    words = batches(f"{SECOND}T00:00:00+00:00", SECOND)
    _, said = summarised(own, "run", *words)
    assert [(each["batch"], each["status"]) for each in said["batches"]] == [(SECOND, "unchanged")]


# -- paths from the environment


@pytest.mark.slow
def test_paths_of_the_environment_stand_in_the_place_of_those_of_the_file(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "work [1]*"
    deliver(here, random_lists(5), batch=FIRST)
    (here / "logs").rename(here / "delivered")
    monkeypatch.chdir(here)
    for name, path in {
        "CONFIG": "../own/audit.yaml",
        "LOGS": "delivered/{batch}/*.csv",
        "STORE": "kept",
        "SPILL": str(tmp_path / "scratch"),
        "ITEMS": "",
    }.items():
        monkeypatch.setenv(f"EVENRANK_{name}", path)
    before = store_of(audit(own.parent)).history.read_bytes()
    result = evenrank("run", *batches(FIRST), "--summary", "s.json", "-q")
    assert result.exit_code == 0, result.stderr
    said = json.loads((here / "s.json").read_text())
    assert said["history"] == str(here / "kept" / "history.duckdb")
    assert said["batches"][0]["status"] == "done"
    assert (tmp_path / "scratch").is_dir()
    assert store_of(audit(own.parent)).history.read_bytes() == before
    assert load_settings(own).items is None


def test_the_item_table_of_the_environment(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENRANK_ITEMS", str(own.parent / "none.parquet"))
    result = evenrank("run", *batches(SECOND), "-c", own)
    assert result.exit_code == 2
    assert "none.parquet: no such file" in result.stderr


def test_a_problem_names_the_variable(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENRANK_LOGS", "logs/*")
    result = evenrank("run", *batches(SECOND), "-c", own)
    assert result.exit_code == 2
    assert "EVENRANK_LOGS" in result.stderr
    assert "write {batch}" in result.stderr
    monkeypatch.setenv("EVENRANK_LOGS", "logs\x1b/{batch}")
    result = evenrank("run", *batches(SECOND), "-c", own)
    assert (result.exit_code, result.stderr.count("\x1b")) == (2, 0)


# -- SIGTERM


def started(config: Path, *words: str, code: str | None = None) -> subprocess.Popen[str]:
    """The command line in a process of its own; ``code`` stands in for it."""
    python = [sys.executable, *(["-c", code] if code else ["-m", "pipeline.cli"])]
    said = [*python, *words, "--summary", str(config.parent / "summary.json"), "-c", str(config)]
    return subprocess.Popen(said, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def terminated(child: subprocess.Popen[str], config: Path) -> dict[str, Any]:
    """The summary of a command that is sent SIGTERM, twice, as a group and a process get it."""
    for _ in range(2):
        os.kill(child.pid, signal.SIGTERM)
    try:
        _, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 143, err
    assert "Traceback" not in err
    assert "ended by SIGTERM" in err
    said: dict[str, Any] = json.loads((config.parent / "summary.json").read_text("utf-8"))
    assert said["exit_code"] == 143
    assert said["error"].startswith("ended by SIGTERM")
    root = store_of(audit(config.parent)).root
    assert [*(root / "staged").iterdir(), *(root / "spill").iterdir()] == []
    return said


@pytest.mark.slow
def test_sigterm_while_a_batch_is_computed(own: Path) -> None:
    """The batch keeps its scores, and the next run computes it as if nothing had been."""
    own.write_text(own.read_text().replace("resamples: 0", "resamples: 2000"))
    deliver(own.parent, random_lists(8, count=400), batch=FIRST)
    before = whole_history(audit(own.parent))
    child = started(own, "run", "--batch", FIRST)
    staged = store_of(audit(own.parent)).root / "staged"
    while not any(staged.iterdir()):
        assert child.poll() is None
        time.sleep(0.001)
    assert terminated(child, own)["batches"] == []
    assert whole_history(audit(own.parent)) == before
    own.write_text(own.read_text().replace("resamples: 2000", "resamples: 0"))
    assert summarised(own, "run", "--batch", FIRST)[1]["batches"][0]["revision"] == 2


IN_A_QUERY = """
import sys
import pipeline.runs.workers
from pipeline.runs.steps import score_batch
from pipeline.store.batch_files import opened
from pipeline.cli.main import main
from pipeline.store.paths import store_of
held, *words = sys.argv[1:]
def score(settings, batch, run_id):
    if batch != held:
        return score_batch(settings, batch, run_id)
    with opened(settings, store_of(settings).staged(batch, run_id)) as connection:
        print("asking", flush=True)
        connection.execute("SELECT sum(a.range * b.range) FROM range(10000000) a, range(1000000) b")
pipeline.runs.workers.score_batch = score
main(words)
"""


@pytest.mark.slow
def test_sigterm_within_a_query_of_a_later_batch(own: Path) -> None:
    """What is finished is kept, published and in the summary."""
    words = (LAST, "run", *batches(NEXT, LAST))
    child = started(own, *words, code=IN_A_QUERY)
    assert child.stdout
    assert child.stdout.readline().startswith(f"● {NEXT}")
    while child.stdout.readline() != "asking\n":
        assert child.poll() is None
    (batch,) = terminated(child, own)["batches"]
    assert (batch["batch"], batch["status"]) == (NEXT, "done")
    assert manifest(own) == DONE | {NEXT: "done"}
    rows = read(store_of(audit(own.parent)).dashboard, "SELECT DISTINCT batch FROM v_history")
    assert {row["batch"] for row in rows} == {FIRST, SECOND, NEXT}


ENDLESS = """
import os, time
from pathlib import Path
from pipeline.store.paths import store_of
def computed(settings, batch, run_id, from_counts):
    store_of(settings).staged(batch, run_id).write_text("half")
    Path(settings.folder, f"{batch}.pid").write_text(str(os.getpid()))
    time.sleep(600)
"""
IN_WORKERS = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import endless, pipeline.runs.workers
from pipeline.cli.main import main
if __name__ == "__main__":
    pipeline.runs.workers.compute_batch = endless.computed
    main(sys.argv[1:])
"""


@pytest.mark.slow
def test_sigterm_ends_workers_too(own: Path) -> None:
    (own.parent / "endless.py").write_text(ENDLESS)
    words = (str(own.parent), "backfill", "--from", NEXT, "--to", LAST, "--jobs", "2")
    child = started(own, *words, code=IN_WORKERS)
    pids = [own.parent / f"{day}.pid" for day in (NEXT, LAST)]
    while not all(path.exists() and path.read_text() for path in pids):
        assert child.poll() is None
        time.sleep(0.01)
    assert terminated(child, own)["batches"] == []
    for path in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.read_text()), 0)
    assert manifest(own) == DONE
