"""What somebody wrote into a store is seen by the next run, also where file times were put back.

Not here: all that can be wrong with a store, which verify names.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from cases import some
from command import evenrank
from damaged import DAYS, every_byte, of_before, quietly
from places import ROOT
from stores import deliver, in_history, random_lists, read, write_settings

import pipeline.history.commits
import pipeline.history.proof
from pipeline.errors import StoreDamaged
from pipeline.history.ledger import Ledger
from pipeline.history.ledger_state import told_by
from pipeline.history.proof import history_problems
from pipeline.history.queries import labelled
from pipeline.integrity.backup import backup, restore
from pipeline.integrity.rebuild import rebuild
from pipeline.integrity.verify import verify
from pipeline.monitoring.alerts import alerts, mark
from pipeline.monitoring.assess import assess
from pipeline.publish.copy import publish, publish_changes, stale
from pipeline.publish.page.fresh import renew_report
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings
from pipeline.store.paths import Store

NEW = "2026-01-04"
FIRST = f"batch = '{DAYS[0]}'"
EDITS = {
    "a score": f"UPDATE fairness_history SET value = value + 1e-12 WHERE {FIRST}",
    "a status": "UPDATE fairness_history SET status = 'ok' WHERE status = 'breach'",
    "whose run it was": f"UPDATE fairness_history SET run_id = 'me' WHERE {FIRST}",
    "a superseded score": "UPDATE superseded SET value = 0.5",
    "a group": f"UPDATE group_history SET n = n + 1 WHERE {FIRST}",
    "a count": f"UPDATE rank_counts SET rows = rows + 1 WHERE {FIRST}",
    "a row of the manifest": f"UPDATE batches SET rows_read = 7 WHERE {FIRST}",
    "a refused day": f"UPDATE batches SET rows_rejected = 0 WHERE batch = '{DAYS[2]}'",
    "a batch removed": f"DELETE FROM batches WHERE {FIRST}",
    "an action": "UPDATE alert_actions SET who = 'you'",
    "a mark": "UPDATE markers SET text = 'v9' WHERE source = 'mark'",
    "an alert": "UPDATE alerts SET text = 'all is well'",
    "an alert that was sent": "UPDATE alerts SET silent = NOT silent",
    "alerts removed": "DELETE FROM alerts",
    "a sighting": "DELETE FROM alert_batches",
    "a table": "CREATE TABLE extra AS SELECT 7 AS phone",
    "a column": "ALTER TABLE fairness_history ADD COLUMN note VARCHAR DEFAULT 'edited'",
    "a trend": "UPDATE trends SET value = value / 2",
    "a window": "INSERT INTO window_scores BY NAME SELECT * EXCLUDE (run_id, input_hash, "
    "computed_at, seed, revision, verdict, verdict_reason), 7 AS days, batch AS first_day, "
    "1 AS days_used, 6 AS days_missing, 0 AS days_gated, 0 AS days_other, 'x' AS days_hash "
    "FROM fairness_history",
    "a gate more": "INSERT INTO gates SELECT batch, 'volume', NULL, 1, 1, 1, 2, true, 'well', 3 "
    "FROM batches",
}
"""What somebody may do to a history."""


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """How often all of the history is read."""
    looks: list[str] = []

    def look(*given: Any) -> tuple[list[str], int]:
        looks.append("look")
        return history_problems(*given)

    with monkeypatch.context() as patch:
        patch.setattr(pipeline.history.proof, "history_problems", look)
        yield looks


@pytest.fixture
def proven(settings: Settings) -> Settings:
    """An audit whose files were looked at where they lie now."""
    publish(settings)
    return settings


@pytest.mark.parametrize("name", some(list(EDITS), few=9))
def test_nothing_is_built_on_an_edit(proven: Settings, store: Store, name: str) -> None:
    table = EDITS[name].replace("DELETE FROM", "UPDATE").split()[1]
    assert table in ("INTO", "TABLE") or read(store.history, f"FROM {table}"), "nothing to edit"
    quietly(store.history, EDITS[name])
    before = every_byte(store.root)
    for command in (publish, publish_changes, labelled, assess, alerts):
        with pytest.raises(StoreDamaged, match="evenrank rebuild"):
            command(proven)
    deliver(proven.folder, random_lists(7, 8), batch=NEW)
    with pytest.raises(StoreDamaged, match=r"is not what ledger\.jsonl says"):
        run_batch(proven, NEW, publishing="changes")
    assert every_byte(store.root) == before
    assert verify(proven).problems


@pytest.mark.slow
def test_the_command_says_what_repairs_and_that_repairs(proven: Settings, store: Store) -> None:
    config = write_settings(
        proven.folder,
        "attributes: [gender]\nslices: [device]\nmetrics: [EXP, NDKL, IAA]\n"
        "thresholds: {EXP.MinMaxRatio: {min: 1.0}}\n",
    )
    quietly(store.history, EDITS["a trend"], EDITS["an alert"], EDITS["a count"])
    for words in (("run", "--batch", DAYS[0]), ("publish",), ("assess",)):
        ended = evenrank(*words, "--config", config)
        assert (ended.exit_code, "Traceback" in ended.output) == (1, False)
        assert "`evenrank rebuild`" in ended.stderr
    assert evenrank("rebuild", "--config", config).exit_code == 0
    assert verify(load_settings(config)).problems == []
    assert evenrank("publish", "--config", config).exit_code == 0


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE fairness_history DROP COLUMN revision",
        "ALTER TABLE alerts RENAME COLUMN text TO words",
        "DROP TABLE trends",
        "DROP TABLE alert_actions",
    ],
)
def test_a_history_of_another_shape_is_refused(
    proven: Settings, store: Store, statement: str
) -> None:
    quietly(store.history, statement)
    with pytest.raises(StoreDamaged, match="is not what ledger"):
        publish(proven)


def test_rebuild_takes_no_edited_counts_where_a_file_is_gone(
    proven: Settings, store: Store
) -> None:
    quietly(store.history, EDITS["a count"])
    store.batch(DAYS[0]).unlink()
    (left_out,) = rebuild(proven).left_out
    assert left_out == f"{DAYS[0]}: has no file; has other counts than the ledger says"


def test_an_edited_ledger_is_seen(proven: Settings, store: Store) -> None:
    times = store.ledger.stat()
    text = store.ledger.read_bytes()
    store.ledger.write_bytes(text.replace(b'"me"', b'"us"', 1))
    os.utime(store.ledger, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(StoreDamaged, match=r"ledger\.jsonl was changed"):
        publish(proven)
    store.ledger.write_bytes(text)
    publish(proven)


def test_a_night_reads_no_more_than_it_has_to(
    proven: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(proven.folder, random_lists(7, 8), batch=NEW)
    with counted(monkeypatch) as looks:
        run_batch(proven, NEW, publishing="changes")
        alerts(proven)
        mark(proven, NEW, "model v3")
    assert looks == []


@pytest.mark.parametrize(
    "garbage",
    [b"", b"\0" * 99, b"[]", b"{}", b'{"history.duckdb": 7}', b"[" * 99_999,
     b'{"history.duckdb": {"stamps": "x", "vouched": [1]}, "dashboard.duckdb": null}'],
    ids=range(7),
)  # fmt: skip
def test_garbage_costs_a_look(
    proven: Settings, store: Store, monkeypatch: pytest.MonkeyPatch, garbage: bytes
) -> None:
    store.seen.write_bytes(garbage)
    with counted(monkeypatch) as looks:
        publish_changes(proven)
        publish_changes(proven)
    assert looks == ["look"]
    store.seen.write_bytes(garbage)
    quietly(store.history, EDITS["a score"])
    with pytest.raises(StoreDamaged):
        publish(proven)


def test_killed_before_it_was_noted(
    proven: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    deliver(proven.folder, random_lists(7, 8), batch=NEW)
    with monkeypatch.context() as patch:
        patch.setattr(pipeline.history.commits, "note_history", die)
        with pytest.raises(Killed):
            run_batch(proven, NEW)
    with counted(monkeypatch) as looks:
        assert run_batch(proven, NEW, publishing="changes").status in ("done", "unchanged")
        publish(proven)
    assert looks == ["look"]
    assert verify(proven).problems == []


def test_another_process_wrote_meanwhile(proven: Settings, store: Store) -> None:
    noted = store.seen.read_bytes()
    mark(proven, DAYS[0], "model v8")
    store.seen.write_bytes(noted)
    publish(proven)
    assert verify(proven).problems == []


@pytest.mark.slow
def test_a_copy_and_a_backup_are_looked_at_once(
    proven: Settings, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup(proven, tmp_path / "backup")
    restore(proven, tmp_path / "backup", replace=True)
    with counted(monkeypatch) as looks:
        publish(proven)
    assert looks == []
    shutil.copytree(store.root, tmp_path / "moved")
    moved = proven.model_copy(update={"store": str(tmp_path / "moved")})
    with counted(monkeypatch) as looks:
        publish(moved)
        publish(moved)
    assert looks == ["look"]


def test_an_edited_backup_is_refused(proven: Settings, store: Store, tmp_path: Path) -> None:
    quietly(store.history, EDITS["a score"])
    with pytest.raises(StoreDamaged):
        backup(proven, tmp_path / "backup")


def test_a_store_of_an_older_version_is_vouched_for_once(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_before(store)
    assert labelled(settings)
    assert not told_by(Ledger(store.ledger).read().kept).vouched
    publish(settings)
    state = told_by(Ledger(store.ledger).read().kept)
    assert state.vouched
    assert {part for part, digests in state.holds.items() if digests} >= {"results", "alerts"}
    lines = len(Ledger(store.ledger).read().lines)
    publish(settings)
    assert len(Ledger(store.ledger).read().lines) == lines
    quietly(store.history, EDITS["a trend"])
    with pytest.raises(StoreDamaged, match="gates, trends, windows or alerts"):
        publish(settings)


def test_a_kept_store_of_before_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tarfile.open(ROOT / "tests" / "data" / "store_of_rankaudit.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.setenv("EVENRANK_KEY", "0123456789abcdef-0123456789abcdef")
    settings = load_settings(tmp_path / "audit.yaml")
    publish(settings)
    found = verify(settings)
    assert found.problems == []


def test_an_edited_copy_is_published_anew(proven: Settings, store: Store) -> None:
    assert not stale(proven)
    quietly(store.dashboard, "UPDATE fairness_history SET value = 0.99")
    assert stale(proven)
    run_batch(proven, DAYS[0], publishing="changes")
    assert verify(proven).problems == []


@pytest.mark.slow
@pytest.mark.usefixtures("with_page")
def test_an_edited_page_is_written_anew(proven: Settings, store: Store) -> None:
    page = renew_report(proven)
    assert page is not None
    text, times = page.read_text("utf-8"), page.stat()
    assert renew_report(proven) == page
    assert page.stat().st_ino == times.st_ino
    page.write_text(text.replace("Evenrank", "Evenrink"), "utf-8")
    os.utime(page, ns=(times.st_atime_ns, times.st_mtime_ns))
    renew_report(proven)
    assert page.read_text("utf-8") == text


LOST = {
    "both": lambda store: (store.history.unlink(), store.ledger.unlink()),
    "both, and an empty history": lambda store: (
        store.history.unlink(),
        store.ledger.unlink(),
        duckdb.execute(f"ATTACH '{store.history}' AS empty (STORAGE_VERSION 'v1.4.0')"),
        duckdb.execute("DETACH empty"),
    ),
    "all but files": lambda store: [
        path.unlink() for path in store.root.iterdir() if path.is_file()
    ],
}


@pytest.mark.parametrize("name", LOST)
def test_no_history_is_begun_beside_files_of_batches(
    proven: Settings, store: Store, name: str
) -> None:
    harm: Callable[[Store], object] = LOST[name]
    harm(store)
    before = every_byte(store.root)
    deliver(proven.folder, random_lists(7, 8), batch=NEW)
    for work in (
        lambda: run_batch(proven, NEW, publishing="changes"),
        lambda: run_batch(proven, NEW, force=True, publishing="changes"),
        lambda: publish(proven),
        lambda: backup(proven, proven.folder / "backup"),
    ):
        with pytest.raises(StoreDamaged, match=f"{DAYS[0]}.duckdb") as refused:
            work()
        assert "evenrank rebuild" in str(refused.value)
        assert "evenrank restore" in str(refused.value)
    assert every_byte(store.root) == before
    assert rebuild(proven).batches
    assert {row["batch"] for row in in_history(proven, "FROM batches")} >= {*DAYS[:2]}


def test_an_edited_batch_file_is_not_built_on(proven: Settings, store: Store) -> None:
    quietly(store.batch(DAYS[0]), "UPDATE rank_counts SET rows = rows + 1")
    with pytest.raises(StoreDamaged, match=f"{DAYS[0]}.duckdb: was changed"):
        run_batch(proven, DAYS[0], from_counts=True)
    private = proven.privacy.model_copy(update={"keep_rows_days": 1})
    assert run_batch(proven, DAYS[0], force=True).status == "done"
    quietly(store.batch(DAYS[1]), "UPDATE log_lists SET list_id = 'x'")
    with pytest.raises(StoreDamaged, match=f"{DAYS[1]}.duckdb: was changed"):
        run_batch(proven.model_copy(update={"privacy": private}), DAYS[0], publishing="changes")


def test_worst_lists_of_an_edited_file_are_not_published(
    proven: Settings, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    assert read(store.dashboard, "FROM worst_lists")
    quietly(store.batch(DAYS[2]), "UPDATE log_lists SET list_id = 'x'")
    publish(proven)
    assert {row["batch"] for row in read(store.dashboard, "FROM worst_lists")} == {*DAYS[:2]}
    assert f"{DAYS[2]}.duckdb: was changed" in caplog.text


@pytest.mark.slow
def test_verify_skips_what_nobody_wrote_to(proven: Settings, store: Store) -> None:
    assert verify(proven).skipped == 0
    first = verify(proven, changed=True)
    again = verify(proven, changed=True)
    assert (first.problems, again.problems) == ([], [])
    assert (first.skipped + first.files, again.skipped) == (4, 3)
    assert verify(proven).files == 4
    quietly(store.batch(DAYS[0]), "UPDATE log_lists SET list_id = 'x'")
    found = verify(proven, changed=True)
    assert found.skipped == 2
    assert [text for text in found.problems if f"{DAYS[0]}.duckdb" in text]
    quietly(store.history, EDITS["a count"])
    assert [text for text in verify(proven, changed=True).problems if "counts" in text]


def test_verify_writes_nothing(proven: Settings, store: Store) -> None:
    shutil.rmtree(store.root / "spill", ignore_errors=True)
    store.seen.unlink()
    before, names = every_byte(store.root), sorted(store.root.rglob("*"))
    times = {path: path.stat().st_mtime_ns for path in (store.root, *names)}
    assert verify(proven).problems == []
    assert every_byte(store.root) == before
    assert {path: path.stat().st_mtime_ns for path in (store.root, *names)} == times


AS_NOBODY = """
import json, os, sys
from pathlib import Path
from pipeline.integrity.verify import verify
from pipeline.settings.load import load_settings
settings, changed = load_settings(Path(sys.argv[1])), len(sys.argv) > 2
if os.geteuid() == 0:
    # What is imported late, root may read.
    verify(settings)
    os.setuid(65534)
assert not os.access(settings.folder / "store", os.W_OK)
found = verify(settings, changed=changed)
print(json.dumps([found.problems, found.files, found.skipped]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="users and rights as on Linux")
def test_a_store_that_may_only_be_read_is_verified(proven: Settings, store: Store) -> None:
    """By a user who may not write there: root may everywhere."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(store.root, folder / "store")
        write_settings(
            folder,
            "attributes: [gender]\nslices: [device]\nmetrics: [EXP, NDKL, IAA]\n"
            "thresholds: {EXP.MinMaxRatio: {min: 1.0}}\n",
        )
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            for more in ((), ("changed",)):
                ended = subprocess.run(
                    [sys.executable, "-c", AS_NOBODY, str(folder / "audit.yaml"), *more],
                    capture_output=True,
                    text=True,
                    check=False,
                    cwd=ROOT,
                    env=os.environ | {"PYTHONPATH": str(ROOT)},
                )
                assert ended.returncode == 0, ended.stderr
                assert json.loads(ended.stdout) == [[], 4, 0]
        finally:
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o755)
