"""Many days at once: interrupted, started again, in parallel, with days that fail."""

import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from stores import (
    RUN_COLUMNS,
    Rows,
    audit,
    deliver,
    in_history,
    random_lists,
    ranking,
    read,
    whole_history,
    without,
    write_csv,
    write_settings,
)

from pipeline.runs.batches import backfill
from pipeline.runs.outcome import Outcome
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import days
from pipeline.settings.load import load_settings
from pipeline.store.paths import store_of

DAYS = days(date(2026, 2, 26), date(2026, 3, 3))
BROKEN, MISSING = DAYS[2], DAYS[4]
SETTINGS = """\
attributes: [gender]
slices: [device]
metrics: [EXP, NDKL]
rejects: {max_rejected_share: 0.5}
"""


def make(folder: Path) -> Path:
    """Settings and logs of six days, one with broken rows, one without logs."""
    for seed, day in enumerate(DAYS):
        rows = random_lists(seed, count=6)
        if day == BROKEN:
            rows += ranking("broken", "FM", device="mobile", relevance=1.2)
        if day != MISSING:
            deliver(folder, rows, batch=day)
    return write_settings(folder, SETTINGS)


def outcomes(settings: Settings, **options: Any) -> dict[str, Outcome]:
    return {each.batch: each for each in backfill(settings, DAYS, **options)}


def statuses(found: dict[str, Outcome]) -> dict[str, str]:
    return {batch: each.status for batch, each in found.items()}


def published(settings: Settings) -> Rows:
    return without(read(store_of(settings).dashboard, "FROM fairness_history"), *RUN_COLUMNS[:-1])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The audit of six days, run without interruption."""
    settings = load_settings(make(tmp_path_factory.mktemp("whole")))
    found = statuses(outcomes(settings))
    assert found == {day: "no_data" if day == MISSING else "done" for day in DAYS}
    return settings


@pytest.fixture
def finished(whole: Settings, tmp_path: Path) -> Settings:
    """A copy of the finished audit for a test to change."""
    shutil.copytree(whole.folder, tmp_path / "copy")
    return load_settings(tmp_path / "copy" / "audit.yaml")


@pytest.fixture
def fresh(tmp_path: Path) -> Settings:
    """The same logs, nothing run yet."""
    return load_settings(make(tmp_path / "fresh"))


# -- finished days


def test_history_holds_every_day(whole: Settings) -> None:
    rows = in_history(whole, "SELECT batch, status, revision FROM batches ORDER BY batch")
    expected = [(day, *(("no_data", 0) if day == MISSING else ("done", 1))) for day in DAYS]
    assert [tuple(row.values()) for row in rows] == expected
    (row,) = in_history(
        whole, f"SELECT rows_rejected, lists_rejected FROM batches WHERE batch = '{BROKEN}'"
    )
    assert tuple(row.values()) == (2, 1)


def test_the_copy_is_published_at_the_end(whole: Settings) -> None:
    assert published(whole) == whole_history(whole)["fairness_history"]


def test_finished_days_are_skipped(finished: Settings) -> None:
    before = whole_history(finished)
    store = store_of(finished)
    stamps = {path: path.stat().st_mtime_ns for path in (store.root / "batches").iterdir()}
    found = statuses(outcomes(finished))
    assert found == {day: "no_data" if day == MISSING else "unchanged" for day in DAYS}
    assert whole_history(finished) == before
    assert {path: path.stat().st_mtime_ns for path in (store.root / "batches").iterdir()} == stamps


def test_only_days_that_changed_are_run(finished: Settings) -> None:
    deliver(finished.folder, random_lists(50), batch=DAYS[3])
    deliver(finished.folder, random_lists(51), batch=MISSING)
    found = outcomes(finished)
    expected = {day: "done" if day in (DAYS[3], MISSING) else "unchanged" for day in DAYS}
    assert statuses(found) == expected
    assert (found[DAYS[3]].revision, found[MISSING].revision) == (2, 1)


def test_force_runs_every_day_again(finished: Settings) -> None:
    found = list(backfill(finished, DAYS[:2], force=True))
    assert [each.revision for each in found] == [2, 2]
    kept = in_history(finished, "SELECT DISTINCT revision FROM superseded")
    assert kept == [{"revision": 1}]


def test_a_lost_copy_is_published_again(finished: Settings) -> None:
    store_of(finished).dashboard.unlink()
    outcomes(finished)
    assert published(finished) == whole_history(finished)["fairness_history"]


# -- days that fail


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failing_day_does_not_stop_the_others(fresh: Settings, jobs: int) -> None:
    refused, failing, *rest = DAYS[:3]
    deliver(fresh.folder, ranking("a", "FM", device="m", relevance=7), batch=refused)
    for day in (refused, *rest, MISSING):
        write_csv(fresh.folder / "items" / f"{day}.csv", [{"item_id": "x", "age": "old"}])
    settings = audit(fresh.folder, slices=["device"], metrics=["EXP"], items="items/{batch}.csv",
                     rejects={"max_rejected_share": 0.5})  # fmt: skip
    todo = [refused, failing, *rest, MISSING]
    found = {each.batch: each for each in backfill(settings, todo, jobs=jobs)}
    assert {day: (each.status, each.exit_code) for day, each in found.items()} == {
        refused: ("refused", 3),
        failing: ("failed", 2),
        MISSING: ("no_data", 4),
        **dict.fromkeys(rest, ("done", 0)),
    }
    assert f"items/{failing}.csv: no such file" in found[failing].message
    assert "line 2 of part.csv" in found[refused].message
    stored = in_history(settings, "SELECT DISTINCT batch FROM fairness_history ORDER BY batch")
    assert [row["batch"] for row in stored] == rest


def test_a_refused_day_keeps_its_result(finished: Settings) -> None:
    before = whole_history(finished)["fairness_history"]
    deliver(finished.folder, ranking("a", "FM", device="m", relevance=7), batch=DAYS[0])
    found = outcomes(finished)[DAYS[0]]
    assert (found.status, found.exit_code, found.revision) == ("refused", 3, 1)
    assert "keeps its last good result" in found.message
    assert whole_history(finished)["fairness_history"] == before


@pytest.mark.slow
def test_a_refused_day_tells_its_rules_from_a_worker(fresh: Settings) -> None:
    for day in DAYS[:2]:
        deliver(fresh.folder, ranking("a", "FM", device="m", relevance=7), batch=day)
    found = list(backfill(fresh, DAYS[:2], jobs=2))
    assert [rule.rule for each in found for rule in each.rules] == ["relevance_range"] * 2


# -- many at once


@pytest.mark.slow
def test_two_jobs_give_the_same_as_one(fresh: Settings, whole: Settings) -> None:
    found = outcomes(fresh, jobs=2)
    assert set(found) == set(DAYS)
    assert whole_history(fresh) == whole_history(whole)
    assert published(fresh) == published(whole)
    (row,) = in_history(fresh, "SELECT max(revision) AS last FROM batches")
    assert row["last"] == 1
    assert list((store_of(fresh).root / "staged").iterdir()) == []
    assert {each.revision for each in outcomes(fresh, jobs=2).values()} == {0, 1}


@pytest.mark.slow
def test_a_worker_that_is_killed_is_an_outcome(fresh: Settings) -> None:
    """The batches it took along are failed, not lost; the same command goes on from there."""
    staged = store_of(fresh).root / "staged"
    stop = threading.Event()

    def kill_one() -> None:
        while not stop.is_set():
            if any(staged.glob("*.duckdb")):
                worker = multiprocessing.active_children()[0]
                assert worker.pid
                os.kill(worker.pid, signal.SIGKILL)
                return
            time.sleep(0.005)

    killer = threading.Thread(target=kill_one)
    killer.start()
    try:
        found = outcomes(fresh, jobs=2)
    finally:
        stop.set()
        killer.join()
    assert set(found) == set(DAYS)
    failed = [each for each in found.values() if each.status == "failed"]
    assert failed
    assert all(each.exit_code == 1 and "worker" in each.message for each in failed)
    again = outcomes(fresh)
    assert all(again[each.batch].status in ("done", "no_data") for each in failed)


class Breaking(ProcessPoolExecutor):
    """A pool whose workers die before all batches are handed to them."""

    handed = 0

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        self.handed += 1
        if self.handed > 1:
            raise BrokenProcessPool("a child process terminated abruptly")
        return super().submit(*args, **kwargs)


@pytest.mark.slow
def test_a_worker_that_dies_at_once_is_an_outcome(
    fresh: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.runs.workers.ProcessPoolExecutor", Breaking)
    found = [each.status for each in backfill(fresh, DAYS[:3], jobs=2)]
    assert sorted(found) == ["done", "failed", "failed"]


@pytest.mark.slow
def test_workers_end_with_their_parent(fresh: Settings) -> None:
    child = backfilling(fresh, 2)
    assert child.stdout
    assert child.stdout.readline() == "ready\n"
    workers = [int(pid) for pid in child.stdout.readline().split()]
    assert len(workers) == 2
    try:
        child.kill()
        child.wait(30)
        # They may still be importing, on a machine that does other things too.
        deadline = time.monotonic() + 20
        while any(alive(pid) for pid in workers) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert [pid for pid in workers if alive(pid)] == []
    finally:
        for pid in workers:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        child.communicate(timeout=30)


# -- interrupted

CHILD = """
import multiprocessing, sys, threading, time
from pathlib import Path
from pipeline.runs.batches import backfill
from pipeline.settings.load import load_settings
settings, jobs = load_settings(Path(sys.argv[1])), int(sys.argv[2])
def tell():
    while len(multiprocessing.active_children()) < jobs:
        time.sleep(0.01)
    print(*(each.pid for each in multiprocessing.active_children()), flush=True)
if __name__ == "__main__":
    print("ready", flush=True)
    if jobs > 1:
        threading.Thread(target=tell, daemon=True).start()
    try:
        for outcome in backfill(settings, sys.argv[3:], jobs=jobs):
            print(outcome.batch, outcome.status, flush=True)
    except KeyboardInterrupt:
        sys.exit(130)
"""


def backfilling(settings: Settings, jobs: int) -> subprocess.Popen[str]:
    """A backfill in a process group of its own; says ready, its workers, and its outcomes."""
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(settings.folder / "audit.yaml"), str(jobs), *DAYS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and was not asked about yet does not."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def interrupted(settings: Settings, jobs: int, after: int, pause: float, sign: int) -> int:
    """The exit code of a backfill that gets ``sign`` some time after so many lines.

    As from a terminal, the signal goes to its workers, too.
    """
    child = backfilling(settings, jobs)
    assert child.stdout
    for _ in range(1 + after):
        child.stdout.readline()
    time.sleep(pause)
    if child.poll() is None:
        os.killpg(child.pid, sign)
    child.communicate(timeout=60)
    return child.returncode


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_interrupted_at_any_point_and_started_again(
    fresh: Settings, whole: Settings, jobs: int
) -> None:
    draw = random.Random(20260226 + jobs)
    unfinished = 0
    for sign in (signal.SIGINT, signal.SIGKILL):
        code = interrupted(fresh, jobs, draw.randint(0, 1), draw.uniform(0, 0.3), sign)
        unfinished += code != 0
        if store_of(fresh).history.exists():
            scored = in_history(fresh, "SELECT DISTINCT batch FROM fairness_history")
            done = in_history(fresh, "SELECT batch FROM batches WHERE status = 'done'")
            # A batch is in the history with all it has, or not at all; none is blamed.
            assert without(scored) == without(done)
            told = in_history(fresh, "SELECT DISTINCT status FROM batches")
            assert {row["status"] for row in told} <= {"done", "no_data"}
    assert unfinished
    found = statuses(outcomes(fresh))
    assert set(found.values()) <= {"done", "unchanged", "no_data"}
    assert whole_history(fresh) == whole_history(whole)
    assert published(fresh) == published(whole)
    (row,) = in_history(fresh, "SELECT max(revision) AS last, count(*) AS n FROM batches")
    assert (row["last"], row["n"]) == (1, len(DAYS))
    assert in_history(fresh, "FROM superseded") == []


def command(settings: Settings) -> list[str]:
    words = [
        sys.executable,
        "-m",
        "pipeline.cli",
        "backfill",
        "--from",
        DAYS[0],
        "--to",
        DAYS[-1],
    ]
    return [*words, "--config", str(settings.folder / "audit.yaml"), "--json"]


@pytest.mark.slow
def test_ctrl_c_on_the_command_line(fresh: Settings) -> None:
    """What was finished is kept and published."""
    child = subprocess.Popen(
        command(fresh), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout
    assert DAYS[0] in child.stdout.readline()
    os.kill(child.pid, signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode == 1
    assert published(fresh) == whole_history(fresh)["fairness_history"] != []
    assert next(backfill(fresh, DAYS)).status == "unchanged"


IN_A_QUERY = """
import sys
import pipeline.runs.workers
from pipeline.store.batch_files import opened
from pipeline.cli.main import main
from pipeline.store.paths import store_of
def score(settings, batch, run_id):
    with opened(settings, store_of(settings).staged(batch, run_id)) as connection:
        print("asking", flush=True)
        connection.execute("SELECT sum(a.range * b.range) FROM range(10000000) a, range(1000000) b")
pipeline.runs.workers.score_batch = score
main(sys.argv[1:])
"""


@pytest.mark.slow
def test_ctrl_c_within_a_query(fresh: Settings) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", IN_A_QUERY, *command(fresh)[3:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout
    assert child.stdout.readline() == "asking\n"
    time.sleep(0.2)
    os.kill(child.pid, signal.SIGINT)
    try:
        _, err = child.communicate(timeout=60)
    finally:
        # The query alone would take days.
        child.kill()
    assert child.returncode == 1
    assert "evenrank: interrupted" in err
    assert "Traceback" not in err
