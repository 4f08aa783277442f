"""The copy that dashboards read: whole at any moment, and explained in itself."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from stores import DAY, audit, deliver, in_history, random_lists, ranking, read, without

import pipeline.publish.copy
from pipeline.publish.copy import publish
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from schemas.copy import COPY_TABLES
from schemas.history import HISTORY_TABLES
from schemas.views import VIEWS

GENERATION = (
    "SELECT (SELECT max(revision) FROM v_batches), count(*), count(DISTINCT revision), "
    "max(revision), (SELECT count(DISTINCT run_id) FROM (SELECT run_id FROM v_history UNION ALL "
    "SELECT run_id FROM v_groups UNION ALL SELECT run_id FROM v_batches)) FROM v_history"
)
READER = f"""
import json, sys, duckdb
path, query = sys.argv[1], {GENERATION!r}
seen = []
failures = []
print("ready", flush=True)
while sys.stdin.readline() != "":
    for _ in range(6):
        try:
            with duckdb.connect(path, read_only=True) as connection:
                row = connection.execute(query).fetchone()
        except Exception as error:
            failures.append(str(error))
        else:
            if row not in seen:
                seen.append(row)
    print("more", flush=True)
print(json.dumps([seen, failures]))
"""
KEEPER = f"""
import json, sys, duckdb
connection = duckdb.connect(sys.argv[1], read_only=True)
while True:
    print(json.dumps(connection.execute({GENERATION!r}).fetchone()), flush=True)
    if sys.stdin.readline() == "":
        break
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of an audit with one day, run and published."""
    folder = tmp_path_factory.mktemp("once")
    found = audit(
        folder,
        slices=["device"],
        metrics=["EXP", "NDKL"],
        thresholds={"EXP.MinMaxRatio": {"min": 1.0}},
        busy_seconds=30,
    )
    deliver(folder, random_lists(1))
    run_batch(found, DAY)
    publish(found)
    return found


@contextmanager
def child(code: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A Python process that talks line by line; ended by closing its input."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str], more: bool = False) -> str:
    """The next line of a child, after asking for it if need be."""
    assert process.stdin
    assert process.stdout
    if more:
        process.stdin.write("\n")
        process.stdin.flush()
    return process.stdout.readline().strip()


def ended(process: subprocess.Popen[str]) -> str:
    """What a child says last, once its input is closed."""
    out, _ = process.communicate(timeout=60)
    return out.splitlines()[-1]


@pytest.mark.slow
def test_readers_meet_whole_generations_and_no_error(settings: Settings) -> None:
    dashboard = store_of(settings).dashboard
    with child(READER, dashboard) as one, child(READER, dashboard) as two:
        for reader in (one, two):
            assert told(reader) == "ready"
        for _ in range(2):
            for reader in (one, two):
                assert reader.stdin
                reader.stdin.write("\n")
                reader.stdin.flush()
            # Both readers are looking now.
            run_batch(settings, DAY, force=True)
            for _ in range(3):
                publish(settings)
            for reader in (one, two):
                assert told(reader) == "more"
        reports = [json.loads(ended(reader)) for reader in (one, two)]
    rows = in_history(settings, "SELECT count(*) AS n FROM fairness_history")[0]["n"]
    generations = set()
    for seen, failures in reports:
        assert failures == []
        for batch_revision, count, revisions, revision, runs in seen:
            assert (count, revisions, runs, batch_revision) == (rows, 1, 1, revision)
            generations.add(revision)
    assert len(generations) > 1


@pytest.mark.slow
def test_a_reader_keeps_the_copy_it_opened(settings: Settings) -> None:
    dashboard = store_of(settings).dashboard
    with child(KEEPER, dashboard) as keeper:
        first = json.loads(told(keeper))
        opened = dashboard.stat().st_ino
        run_batch(settings, DAY, force=True)
        publish(settings)
        # Another file has its name; the one that is open was not written to.
        assert dashboard.stat().st_ino != opened
        assert json.loads(told(keeper, more=True)) == first
        with child(KEEPER, dashboard) as late:
            assert json.loads(told(late))[3] == first[3] + 1
        assert json.loads(told(keeper, more=True)) == first


def test_the_copy_is_the_history(settings: Settings) -> None:
    dashboard = store_of(settings).dashboard
    for table in HISTORY_TABLES:
        copied = read(dashboard, f"FROM {table.name}")
        assert without(copied) == without(in_history(settings, f"FROM {table.name}"))
    assert read(dashboard, "FROM fairness_history") != []


def test_views_answer_what_they_promise(settings: Settings) -> None:
    newest = "2026-01-09"
    deliver(settings.folder, random_lists(4), batch=newest)
    run_batch(settings, newest)
    run_batch(settings, "2026-01-10")
    publish(settings)
    dashboard = store_of(settings).dashboard

    def rows(query: str) -> list[dict[str, Any]]:
        return read(dashboard, query)

    assert len(rows("FROM v_history")) == len(rows("FROM fairness_history"))
    labels = {row["label"] for row in rows("SELECT label FROM v_history")}
    assert {"EXP.MinMaxRatio", "NDKL"} < labels
    assert len(rows("FROM v_groups")) == len(rows("FROM group_history"))
    statuses = {row["batch"]: row["status"] for row in rows("FROM v_batches")}
    assert statuses == {DAY: "done", newest: "done", "2026-01-10": "no_data"}
    # The newest batch that has scores, not the newest that was tried.
    assert {row["batch"] for row in rows("FROM v_latest")} == {newest}
    breaching = rows("FROM v_breaches")
    assert {(row["label"], row["status"]) for row in breaching} == {("EXP.MinMaxRatio", "breach")}
    counted = rows("SELECT count(*) AS n FROM fairness_history WHERE status = 'breach'")
    assert len(breaching) == counted[0]["n"] > 0


def test_everything_is_explained(settings: Settings) -> None:
    dashboard = store_of(settings).dashboard
    views = read(dashboard, "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal")
    assert {row["view_name"]: row["comment"] for row in views} == {
        view.name: view.text for view in VIEWS
    }
    every = (*HISTORY_TABLES, *COPY_TABLES)
    tables = read(dashboard, "SELECT table_name, comment FROM duckdb_tables()")
    assert {row["table_name"]: row["comment"] for row in tables} == {
        table.name: table.text for table in every
    }
    columns = read(
        dashboard,
        "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal",
    )
    assert {(row["table_name"], row["column_name"]): row["comment"] for row in columns} == {
        (table.name, column.name): column.text
        for table in (*every, *VIEWS)
        for column in table.columns
    }


def test_readers_cannot_write(settings: Settings) -> None:
    with (
        duckdb.connect(str(store_of(settings).dashboard), read_only=True) as connection,
        pytest.raises(duckdb.Error, match="read-only"),
    ):
        connection.execute("DELETE FROM fairness_history")


def test_a_copy_that_fails_leaves_the_old_one(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    dashboard = store_of(settings).dashboard
    before = dashboard.read_bytes()
    run_batch(settings, DAY, force=True)

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    for name in ("describe", "replace_file"):
        with monkeypatch.context() as patch:
            patch.setattr(pipeline.publish.copy, name, fail)
            with pytest.raises(OSError, match="No space left"):
                publish(settings)
        assert dashboard.read_bytes() == before
        names = {path.name for path in dashboard.parent.iterdir() if path.is_file()}
        assert names == {"history.duckdb", "dashboard.duckdb", "ledger.jsonl", "seen.json"}
    publish(settings)
    assert dashboard.read_bytes() != before


def test_a_copy_of_an_empty_history(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    run_batch(settings, DAY)
    publish(settings)
    dashboard = store_of(settings).dashboard
    assert read(dashboard, "FROM v_history") == read(dashboard, "FROM v_latest") == []
    assert [row["status"] for row in read(dashboard, "FROM v_batches")] == ["no_data"]


def test_names_that_look_like_code_are_copied_as_they_are(tmp_path: Path) -> None:
    name = "x'; DROP VIEW v_history; --"
    settings = audit(tmp_path, slices=[name], metrics=["EXP"])
    deliver(tmp_path, ranking("a", "FM", **{name: "'"}))
    run_batch(settings, DAY)
    publish(settings)
    rows = read(store_of(settings).dashboard, "SELECT DISTINCT slice, slice_value FROM v_history")
    assert {tuple(row.values()) for row in rows} == {("all", "all"), (name, "'")}
