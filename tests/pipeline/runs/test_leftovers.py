"""What killed processes leave behind goes with the next run, unless somebody may still need it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from damaged import DAYS
from stores import deliver, random_lists

import pipeline.history.commits
import pipeline.store.living
from pipeline.history.manifest import manifest
from pipeline.integrity.verify import verify
from pipeline.monitoring.alerts import mark
from pipeline.runs.batches import backfill, run_batch
from pipeline.runs.steps import ingest_batch
from pipeline.settings.audit import Settings
from pipeline.store.batch_files import living, new_run_id
from pipeline.store.paths import Store

RUN = """
import sys, time
from pathlib import Path
from stores import audit
from damaged import small_settings
from pipeline.store.batch_files import living, new_run_id
from pipeline.store.paths import store_of
from pipeline.store.sessions import working
settings = small_settings(Path(sys.argv[1]))
store = store_of(settings)
with living(settings), working(settings, []) as connection:
    for batch in sys.argv[2:]:
        staged = store.staged(batch, new_run_id())
        for name in (staged, f"{staged}.wal", f"{staged}.undo", staged.with_suffix(".part")):
            Path(name).write_text("half")
    rows = connection.execute("SELECT current_setting('temp_directory')").fetchall()
    Path(rows[0][0]).mkdir()
    Path(rows[0][0], "duckdb_temp_storage-0.tmp").write_text("somebody's id")
    print("there", flush=True)
    sys.stdin.read()
"""
"""A run that has staged some batches and spilled, and goes on until its input ends."""


@contextmanager
def running(settings: Settings, *batches: str) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", RUN, str(settings.folder), *batches],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert child.stdin
    assert child.stdout
    try:
        assert child.stdout.readline() == "there\n"
        yield child
    finally:
        child.kill()
        child.communicate()


def names(store: Store) -> set[str]:
    """What lies in the folders of runs."""
    return {path.name for folder in ("staged", "spill") for path in (store.root / folder).iterdir()}


@pytest.mark.slow
def test_what_a_killed_run_left_goes_at_once(settings: Settings, store: Store) -> None:
    with running(settings, DAYS[0], DAYS[2], "2026-02-01") as child:
        before = names(store)
        assert len(before) == 3 * 4 + 1 + 2
        # As long as it lives, nobody touches its files.
        run_batch(settings, DAYS[1], force=True)
        assert names(store) == before
        child.send_signal(signal.SIGKILL)
        child.wait()
        run_batch(settings, DAYS[1], force=True)
    assert names(store) == set()


@pytest.mark.slow
def test_a_run_that_ends_leaves_nothing(settings: Settings, store: Store) -> None:
    (store.root / "spill").mkdir(exist_ok=True)
    list(backfill(settings, DAYS[:2], jobs=2, force=True))
    run_batch(settings, DAYS[0], force=True)
    assert names(store) == set()


@pytest.mark.slow
def test_files_that_no_process_holds_stay_for_a_day(settings: Settings, store: Store) -> None:
    """Those of a run under Dagster, between two of its steps."""
    ours, others = (store.staged(day, "8c4bb0a2-5a30-4a4e-9d8e-0f3a5d0f7e11") for day in DAYS[:2])
    spilled = store.root / "spill" / "evenrank-4711"
    spilled.mkdir(parents=True)
    for path in (ours, others):
        path.write_text("half")
    run_batch(settings, DAYS[0], force=True)
    assert ours.exists()
    assert spilled.exists()
    for path in (ours, others, spilled):
        os.utime(path, (time.time() - 2 * 86_400,) * 2)
    run_batch(settings, DAYS[0], force=True)
    assert [path.exists() for path in (ours, others, spilled)] == [False, True, False]


def test_what_an_interrupted_change_needs_stays(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(Exception):
        """What stands for the end of the process."""

    def killed(*_: object, **__: object) -> None:
        raise Killed

    deliver(settings.folder, random_lists(5, 8), batch=DAYS[0])
    with monkeypatch.context() as patch:
        patch.setattr(pipeline.history.commits, "replace_file", killed)
        with pytest.raises(Killed):
            run_batch(settings, DAYS[0])
    (staged,) = (store.root / "staged").iterdir()
    # As its process would have left it.
    dead = store.root / "staged" / f"{staged.name.split('.')[1][:8]}.0.alive"
    dead.write_bytes(pipeline.store.living._machine())
    ingest_batch(settings, DAYS[1], "other")
    assert staged.exists()
    mark(settings, DAYS[2], "whoever writes next settles it")
    assert not staged.exists()
    ingest_batch(settings, DAYS[1], "other")
    assert not dead.exists()
    assert manifest(settings)[DAYS[0]].revision == 2
    assert verify(settings).problems == []


def test_a_process_of_another_machine_may_live(settings: Settings, store: Store) -> None:
    run_id = new_run_id()
    (store.root / "staged" / f"{run_id[:8]}.0.alive").write_text("another start of a machine")
    staged = store.staged(DAYS[1], run_id)
    staged.write_text("half")
    ingest_batch(settings, DAYS[0], "other")
    assert staged.exists()


def test_without_locks_files_are_those_of_nobody(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError("no locks here")

    with monkeypatch.context() as patch:
        patch.setattr(pipeline.store.living.fcntl, "flock", unsupported)
        with living(settings):
            staged = store.staged(DAYS[1], new_run_id())
            staged.write_text("half")
            ingest_batch(settings, DAYS[0], "other")
            assert staged.exists()
    assert not list((store.root / "staged").glob("*.alive"))


def test_ids_of_a_process_begin_alike_and_differ() -> None:
    ids = {new_run_id() for _ in range(100)}
    assert len(ids) == 100
    assert len({each[:8] for each in ids}) == 1
    assert {len(each) for each in ids} == {16}


def test_a_store_that_cannot_be_written_to_is_worked_on_without(tmp_path: Path) -> None:
    with pipeline.store.living.alive(tmp_path / "none", "x"):
        assert not (tmp_path / "none").exists()
    assert not pipeline.store.living.is_dead(tmp_path / "none")
