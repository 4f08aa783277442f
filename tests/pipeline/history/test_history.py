"""The history: one current row per score, what it replaced, and who computed it."""

import re
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from cases import some
from damaged import of_before, vouched_for
from stores import (
    DAY,
    LENIENT,
    RUN_COLUMNS,
    Rows,
    audit,
    deliver,
    in_batch,
    in_history,
    random_lists,
    ranking,
    scores,
    whole_history,
    without,
)

import pipeline.history.commits
import pipeline.history.merging
from pipeline.errors import AuditError
from pipeline.history.manifest import BatchRecord, manifest
from pipeline.history.merging import merge
from pipeline.history.queries import breaches, labelled
from pipeline.publish.copy import publish
from pipeline.runs.batches import run_batch
from pipeline.runs.steps import ingest_batch, measure_batch, score_batch
from pipeline.scores.digests import result_hash, rows_of_file
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.version import code_version
from schemas.history import BATCHES, COUNTS_OF_HISTORY, HISTORY, HISTORY_TABLES, SUPERSEDED
from schemas.scores import FAIRNESS_HISTORY

KEY = ", ".join(f'"{name}"' for name in FAIRNESS_HISTORY.key)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of an audit whose day has been run once."""
    folder = tmp_path_factory.mktemp("once")
    found = audit(folder, slices=["device"], metrics=["EXP", "ARP", "NDKL", "IAA"])
    deliver(folder, random_lists(1))
    assert run_batch(found, DAY).revision == 1
    return found


def changed(settings: Settings, **said: Any) -> Settings:
    """The same audit under other settings."""
    keep = settings.model_dump(mode="json", exclude_unset=True, exclude={"folder"})
    return audit(settings.folder, **{**keep, **said})


def everything(settings: Settings) -> dict[str, Rows]:
    return {
        table.name: without(in_history(settings, f"FROM {table.name}")) for table in HISTORY_TABLES
    }


# -- what a row says


@pytest.mark.slow
def test_there_is_one_current_row_per_key(settings: Settings) -> None:
    deliver(settings.folder, random_lists(2))
    run_batch(settings, DAY)
    run_batch(settings, DAY, force=True)
    keys = in_history(settings, f"SELECT {KEY} FROM fairness_history")
    assert max(Counter(map(str, keys)).values()) == 1
    assert len(keys) > 100 // 4
    revisions = in_history(settings, "SELECT DISTINCT revision FROM fairness_history")
    assert revisions == [{"revision": 3}]


def test_every_score_of_every_part_is_there(settings: Settings) -> None:
    found = set(scores(settings))
    parts = {("all", "all"), ("device", "mobile"), ("device", "desktop")}
    seven = {key[4] for key in found if key[3] == "EXP"}
    assert len(seven) == 7
    expected = {(*part, "gender", name, each) for part in parts for name in ("EXP", "ARP")
                for each in seven}  # fmt: skip
    expected |= {(*part, "gender", "NDKL", None) for part in parts}
    expected |= {(*part, None, "IAA", None) for part in parts}
    assert found == expected


def test_every_row_says_where_it_comes_from(settings: Settings) -> None:
    (batch,) = in_history(settings, "FROM batches")
    for name in ("fairness_history", "group_history"):
        rows = in_history(
            settings,
            f"SELECT DISTINCT run_id, code_version, config_hash, input_hash, revision FROM {name}",
        )
        assert rows == [
            {
                "run_id": batch["run_id"],
                "code_version": code_version(),
                "config_hash": settings.config_hash,
                "input_hash": batch["input_hash"],
                "revision": 1,
            }
        ]
    assert re.fullmatch(r"[0-9a-f]{16}", batch["input_hash"])
    assert re.fullmatch(r"\d+\.\d+\.\d+\+[0-9a-f]{8}", batch["code_version"])


def test_times_are_utc_and_in_order(settings: Settings) -> None:
    (batch,) = in_history(settings, "FROM batches")
    (row,) = in_history(settings, "SELECT DISTINCT computed_at FROM fairness_history")
    now = datetime.now(UTC).replace(tzinfo=None)
    assert now - timedelta(minutes=5) < batch["started_at"] <= row["computed_at"]
    assert row["computed_at"] <= batch["finished_at"] <= now


def result(settings: Settings, where: str = "true") -> str:
    """The digest of what the history says about the one batch."""
    (row,) = in_history(settings, f"SELECT result_hash FROM batches WHERE {where}")
    return str(row["result_hash"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "said", some([{"threads": 2}, {"memory_limit": "300MB"}, {"schedule": {"hour": 5}}], few=1)
)
def test_equal_numbers_have_an_equal_digest(
    settings: Settings, tmp_path: Path, said: dict[str, Any]
) -> None:
    """Rows in another order, in two files, computed with other means."""
    other = changed(settings.model_copy(update={"folder": tmp_path / "other"}), **said)
    rows = random_lists(1)[::-1]
    deliver(other.folder, rows[:20])
    deliver(other.folder, rows[20:], name="more.csv")
    assert run_batch(other, DAY).status == "done"
    assert re.fullmatch(r"[0-9a-f]{16}", result(settings))
    assert result(other) == result(settings)


@pytest.mark.slow
def test_the_digest_is_not_of_the_day(settings: Settings) -> None:
    deliver(settings.folder, random_lists(1), batch="2026-01-06")
    run_batch(settings, "2026-01-06")
    assert len(in_history(settings, "SELECT DISTINCT result_hash FROM batches")) == 1


def test_steps_and_scoring_again_give_the_digest_of_a_run(settings: Settings) -> None:
    before = result(settings)
    run_batch(settings, DAY, force=True, from_counts=True)
    assert result(settings) == before


@pytest.mark.parametrize(
    "said",
    some(
        [
            {"thresholds": {"EXP.MinMaxRatio": {"min": 0.99}}},
            {"evidence": {**LENIENT, "resamples": 100}},
            {"top_of_list": "bad"},
            {"metrics": ["EXP", "ARP", "NDKL"]},
        ],
        few=2,
    ),
)
def test_what_is_published_is_in_the_digest(settings: Settings, said: dict[str, Any]) -> None:
    """Verdicts, intervals, worst groups, and which scores there are."""
    before = result(settings)
    assert run_batch(changed(settings, **said), DAY, from_counts=True, force=True).revision == 2
    assert result(settings) != before


def test_one_bit_is_another_digest(settings: Settings) -> None:
    with duckdb.connect(str(store_of(settings).batch(DAY))) as connection:
        database = "batch"
        connection.execute(f"ATTACH ':memory:' AS {database}")
        for table in ("fairness_history", "group_history"):
            name = store_of(settings).batch(DAY).stem
            connection.execute(f'CREATE TABLE batch.{table} AS FROM "{name}".{table}')
        assert result_hash(connection, *rows_of_file(database)) == result(settings)
        connection.execute(
            "UPDATE batch.group_history SET value = nextafter(value, 2::DOUBLE) WHERE rowid = "
            "(SELECT min(rowid) FROM batch.group_history WHERE value IS NOT NULL)"
        )
        assert result_hash(connection, *rows_of_file(database)) != result(settings)


def test_a_batch_without_scores_has_no_digest(settings: Settings) -> None:
    run_batch(settings, "2026-02-01")
    (row,) = in_history(settings, "FROM batches WHERE batch = '2026-02-01'")
    assert row["result_hash"] is None


def test_manifest_counts(settings: Settings) -> None:
    (row,) = in_history(settings, "FROM batches")
    size = len(random_lists(1))
    assert list(row) == list(BATCHES.names)
    assert (row["batch"], row["status"], row["message"]) == (DAY, "done", None)
    assert (row["lists"], row["rows_read"], row["rows_accepted"]) == (12, size, size)
    assert (row["rows_rejected"], row["lists_rejected"], row["revision"]) == (0, 0, 1)
    (found,) = in_history(
        settings,
        "SELECT count(*) FILTER (status = 'breach') AS breaches, false AS gated "
        "FROM fairness_history",
    )
    assert manifest(settings) == {DAY: BatchRecord(**row, **found)}


def test_rows_and_lists_of_parts_add_up(settings: Settings) -> None:
    rows = in_history(
        settings, "SELECT DISTINCT slice, slice_value, lists, rows FROM fairness_history"
    )
    whole = [row for row in rows if row["slice"] == "all"]
    parts = [row for row in rows if row["slice"] == "device"]
    assert len(whole) == 1
    for name in ("lists", "rows"):
        assert whole[0][name] == sum(row[name] for row in parts) > 0


def test_counts_of_the_history_are_those_of_the_batch(settings: Settings) -> None:
    for table in COUNTS_OF_HISTORY:
        kept = without(in_history(settings, f"FROM {table.name} WHERE batch = ?", [DAY]), "batch")
        assert kept == without(in_batch(settings, f"FROM {table.name}"))


# -- again


@pytest.mark.slow
def test_the_same_input_changes_nothing(settings: Settings) -> None:
    before = everything(settings)
    stamp = store_of(settings).history.stat().st_mtime_ns
    again = run_batch(settings, DAY)
    assert (again.status, again.revision) == ("unchanged", 1)
    assert again.message == "same input, settings and code"
    assert everything(settings) == before
    assert store_of(settings).history.stat().st_mtime_ns == stamp


def test_a_renamed_file_is_the_same_input(settings: Settings) -> None:
    path = settings.folder / "logs" / DAY / "part.csv"
    path.rename(path.with_name("other.csv"))
    assert run_batch(settings, DAY).status == "unchanged"


@pytest.mark.parametrize(
    "said",
    [{"store": "store", "busy_seconds": 1}, {"limits": {"rows": 10**6}}, {"threads": 2}],
)
def test_settings_that_no_number_depends_on_change_nothing(
    settings: Settings, said: dict[str, Any]
) -> None:
    assert run_batch(changed(settings, **said), DAY).status == "unchanged"


@pytest.mark.slow
@pytest.mark.parametrize(
    "said",
    some(
        [
            {"thresholds": {"EXP.MinMaxRatio": {"min": 1.0}}},
            {"metrics": ["EXP"]},
            {"slices": []},
            {"ranks": {"gaps": "keep"}},
        ],
        few=2,
    ),
)
def test_other_settings_make_a_new_revision(settings: Settings, said: dict[str, Any]) -> None:
    other = changed(settings, **said)
    outcome = run_batch(other, DAY)
    assert (outcome.status, outcome.revision) == ("done", 2)
    rows = in_history(settings, "SELECT DISTINCT config_hash, revision FROM fairness_history")
    assert rows == [{"config_hash": other.config_hash, "revision": 2}]
    assert run_batch(other, DAY).status == "unchanged"


@pytest.mark.slow
def test_what_is_no_longer_computed_is_no_longer_current(settings: Settings) -> None:
    run_batch(changed(settings, metrics=["EXP"], slices=[]), DAY)
    assert {(key[0], key[3]) for key in scores(settings)} == {("all", "EXP")}
    rows = in_history(settings, "SELECT DISTINCT slice FROM rank_counts")
    assert rows == [{"slice": "all"}]


@pytest.mark.slow
def test_other_code_makes_a_new_revision(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("pipeline.runs.outcome", "pipeline.runs.steps"):
        monkeypatch.setattr(f"{module}.code_version", lambda: "0.1.1+00000000")
    outcome = run_batch(settings, DAY)
    assert (outcome.status, outcome.revision) == ("done", 2)
    old = in_history(settings, "SELECT DISTINCT code_version FROM superseded")
    new = in_history(settings, "SELECT DISTINCT code_version FROM fairness_history")
    assert (old, new) == ([{"code_version": code_version()}], [{"code_version": "0.1.1+00000000"}])


@pytest.mark.slow
def test_what_was_replaced_is_kept(settings: Settings) -> None:
    before = {table.name: in_history(settings, f"FROM {table.name}") for table in HISTORY}
    deliver(settings.folder, random_lists(2))
    run_batch(settings, DAY)
    run_batch(settings, DAY, force=True)
    for table, kept in zip(HISTORY, SUPERSEDED, strict=True):
        first = in_history(settings, f"FROM {kept.name} WHERE revision = 1")
        assert without(first, "replaced_at") == without(before[table.name])
        assert all(row["replaced_at"] >= row["computed_at"] for row in first)
        second = in_history(settings, f"FROM {kept.name} WHERE revision = 2")
        third = in_history(settings, f"FROM {table.name}")
        # Forced over the same input: the same values, computed again.
        assert without(second, *RUN_COLUMNS) == without(third, *RUN_COLUMNS)
        assert {row["run_id"] for row in second}.isdisjoint(row["run_id"] for row in third)


@pytest.mark.slow
def test_other_batches_are_left_alone(settings: Settings) -> None:
    other = "2026-01-06"
    deliver(settings.folder, random_lists(6), batch=other)
    before = scores(settings)
    run_batch(settings, other)
    run_batch(settings, other, force=True)
    assert scores(settings) == before
    rows = in_history(settings, "SELECT batch, revision FROM batches ORDER BY batch")
    assert [tuple(row.values()) for row in rows] == [(DAY, 1), (other, 2)]


@pytest.mark.slow
def test_scores_from_stored_counts_equal_a_fresh_run(settings: Settings, tmp_path: Path) -> None:
    said = {"metrics": ["AWRF(p=0.3)", "ERBP(decay=0.01)@4", "EXP@2", "NDKL"]}
    path = settings.folder / "logs" / DAY / "part.csv"
    rows = path.read_bytes()
    path.unlink()
    other = changed(settings, **said)
    assert run_batch(other, DAY, from_counts=True).revision == 2
    fresh = audit(tmp_path / "fresh", slices=["device"], **said)
    deliver(tmp_path / "fresh", [])
    (tmp_path / "fresh" / "logs" / DAY / "part.csv").write_bytes(rows)
    run_batch(fresh, DAY)
    assert scores(other) == scores(fresh)
    (row,) = in_history(other, "FROM batches")
    assert row["lists"] == 12


def test_counts_are_not_scored_under_settings_that_count_otherwise(settings: Settings) -> None:
    for said in ({"slices": []}, {"ranks": {"gaps": "keep"}}, {"attributes": ["device"],
                                                             "slices": []}):  # fmt: skip
        with pytest.raises(AuditError, match="run it again from its logs"):
            run_batch(changed(settings, **said), DAY, from_counts=True)
    assert scores(settings)


# -- days without scores


def test_a_day_without_files_has_a_row(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    outcome = run_batch(settings, DAY)
    assert (outcome.status, outcome.exit_code, outcome.revision) == ("no_data", 4, 0)
    (row,) = in_history(settings, "FROM batches")
    assert (row["status"], row["revision"], row["rows_read"]) == ("no_data", 0, 0)
    assert "no files" in row["message"]
    assert (row["config_hash"], row["code_version"]) == (settings.config_hash, code_version())
    assert in_history(settings, "FROM fairness_history") == []


@pytest.mark.slow
def test_a_day_that_arrives_late_is_run(tmp_path: Path) -> None:
    settings = audit(tmp_path, metrics=["EXP"])
    run_batch(settings, DAY)
    deliver(tmp_path, random_lists(1))
    assert (run_batch(settings, DAY).status, run_batch(settings, DAY).status) == (
        "done",
        "unchanged",
    )


@pytest.mark.slow
def test_logs_that_are_gone_leave_the_scores_alone(settings: Settings) -> None:
    before = everything(settings)
    (settings.folder / "logs" / DAY / "part.csv").unlink()
    outcome = run_batch(settings, DAY)
    assert (outcome.status, outcome.exit_code, outcome.revision) == ("no_data", 4, 1)
    assert everything(settings) == before


# -- errors


def fail_at(number: int) -> Any:
    """Stands for ``now``, which merging asks for each table it replaces; fails the n-th time."""
    calls = 0

    def now() -> datetime:
        nonlocal calls
        calls += 1
        if calls == number:
            raise RuntimeError("the disk is full")
        return datetime(2026, 1, 5)

    return now


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
def test_an_error_while_merging_leaves_the_old_rows(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    before = everything(settings)
    deliver(settings.folder, random_lists(2))
    with monkeypatch.context() as patch:
        patch.setattr(pipeline.history.merging, "now", fail_at(number))
        with pytest.raises(RuntimeError, match="disk is full"):
            run_batch(settings, DAY)
    assert everything(settings) == before
    # The next run mends it.
    assert (run_batch(settings, DAY).status, run_batch(settings, DAY).status) == (
        "done",
        "unchanged",
    )
    assert scores(settings) != {}
    rows = in_history(settings, "SELECT DISTINCT revision FROM superseded")
    assert rows == [{"revision": 1}]


@pytest.mark.slow
def test_an_error_of_duckdb_while_merging_leaves_the_old_rows(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(settings)
    deliver(settings.folder, random_lists(2))
    with monkeypatch.context() as patch:
        patch.setattr(pipeline.history.merging, "now", lambda: "no time")
        with pytest.raises((duckdb.Error, AuditError)):
            run_batch(settings, DAY)
    assert everything(settings) == before


@pytest.mark.slow
def test_a_commit_that_stores_nothing_is_noticed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error swallowed inside a transaction makes its commit succeed and keep nothing."""
    deliver(settings.folder, random_lists(2))
    real = pipeline.history.commits.transaction

    @contextmanager
    def hollow(connection: Any) -> Any:
        with real(connection):
            yield
            connection.execute("ROLLBACK")
            connection.execute("BEGIN")

    with monkeypatch.context() as patch:
        patch.setattr(pipeline.history.commits, "transaction", hollow)
        with pytest.raises(AuditError, match="did not keep what was committed"):
            run_batch(settings, DAY)
    assert run_batch(settings, DAY).revision == 2


@pytest.mark.slow
def test_an_error_while_computing_leaves_everything(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(settings)
    file = store_of(settings).batch(DAY).read_bytes()
    deliver(settings.folder, random_lists(2))

    def fail(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("pipeline.runs.workers.score_batch", fail)
    with pytest.raises(MemoryError):
        run_batch(settings, DAY)
    assert everything(settings) == before
    assert store_of(settings).batch(DAY).read_bytes() == file
    assert list((store_of(settings).root / "staged").iterdir()) == []


@pytest.mark.slow
def test_steps_one_by_one_give_the_same_as_a_run(settings: Settings, tmp_path: Path) -> None:
    keep = settings.model_dump(mode="json", exclude_unset=True, exclude={"folder"})
    other = audit(tmp_path / "steps", **keep)
    deliver(tmp_path / "steps", random_lists(1))
    ingest_batch(other, DAY, "run-1")
    measure_batch(other, DAY, "run-1")
    for measure in other.measures:
        score_batch(other, DAY, "run-1", [measure])
    assert merge(other, DAY, "run-1").changed
    assert not merge(other, DAY, "run-1").changed
    assert whole_history(other) == whole_history(settings)


# -- verdicts


@pytest.mark.slow
def test_statuses(tmp_path: Path) -> None:
    settings = audit(
        tmp_path,
        slices=["device"],
        metrics=["EXP", "EXPU", "NDKL"],
        thresholds={
            "EXP.MinMaxRatio": {"min": 1.0, "slices": ["all"]},
            "EXP.MaxMinDiff": {"max": 1.0},
            "EXPU.MaxMinDiff": {"max": 1.0},
        },
    )
    rows = [*ranking("a", "FM", device="m"), *ranking("b", "MFF", device="t")]
    rows[0]["relevance"] = None
    deliver(tmp_path, rows)
    outcome = run_batch(settings, DAY)
    found = {(row["slice"], row["label"]): row["status"] for row in labelled(settings)}
    assert found["all", "EXP.MinMaxRatio"] == "breach"
    assert found["device", "EXP.MinMaxRatio"] == "not_judged"
    assert found["device", "EXP.MaxMinDiff"] == "ok"
    assert found["all", "EXPU.MaxMinDiff"] == "undefined"
    assert found["all", "NDKL"] == "not_judged"
    assert outcome.breaches == 1
    (row,) = breaches(settings, [DAY])
    assert row["label"] == "EXP.MinMaxRatio"
    assert breaches(settings, ["2026-01-06"]) == []


@pytest.mark.slow
def test_a_value_on_the_threshold_is_acceptable(tmp_path: Path) -> None:
    rows = [*ranking("a", "FM"), *ranking("b", "MF")]
    deliver(tmp_path, rows)
    for share, expected in ((1.0, "ok"), (0.999, "ok")):
        settings = audit(tmp_path, metrics=["EXP"], thresholds={"EXP.MinMaxRatio": {"min": share}})
        run_batch(settings, DAY)
        (row,) = labelled(settings, "aggregation = 'MinMaxRatio'")
        assert (row["value"], row["status"]) == (1.0, expected)


# -- files

BAD = "2026-01-06"


def storage_version(path: Path) -> str:
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{path}' AS file (READ_ONLY)")
        rows = connection.execute(
            "SELECT tags['storage_version'] FROM duckdb_databases() WHERE database_name = 'file'"
        ).fetchall()
    return str(rows[0][0])


@pytest.mark.slow
def test_files_can_be_read_by_older_versions(settings: Settings) -> None:
    deliver(settings.folder, ranking("a", "FM", device="m", relevance=7), batch=BAD)
    run_batch(settings, BAD)
    publish(settings)
    store = store_of(settings)
    for path in (store.history, store.dashboard, store.batch(DAY), store.refused(BAD)):
        assert storage_version(path).startswith("v1.4"), path.name


@pytest.mark.slow
def test_nothing_waits_in_a_write_ahead_log(settings: Settings) -> None:
    run_batch(settings, DAY, force=True)
    left = [path.name for path in store_of(settings).root.rglob("*") if path.is_file()]
    assert sorted(left) == [f"{DAY}.duckdb", "history.duckdb", "ledger.jsonl", "seen.json"]


def test_tables_are_as_declared(settings: Settings) -> None:
    rows = in_history(
        settings,
        "SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns() "
        "WHERE NOT internal ORDER BY table_name, column_index",
    )
    found: dict[str, list[tuple[str, str, bool]]] = {}
    for row in rows:
        column = (row["column_name"], row["data_type"], row["is_nullable"])
        found.setdefault(row["table_name"], []).append(column)
    assert found == {
        table.name: [(each.name, each.type, each.nullable) for each in table.columns]
        for table in HISTORY_TABLES
    }


def test_a_history_of_before_an_upgrade_can_be_read(settings: Settings) -> None:
    of_before(store_of(settings))
    with duckdb.connect(str(store_of(settings).history)) as connection:
        connection.execute("ALTER TABLE fairness_history DROP COLUMN status_reason")
    assert {row["status_reason"] for row in labelled(settings)} == {None}


def test_counts_of_an_older_version_are_refused(settings: Settings) -> None:
    with duckdb.connect(str(store_of(settings).batch(DAY))) as connection:
        connection.execute("ALTER TABLE slice_counts DROP COLUMN queries")
    vouched_for(store_of(settings), DAY)
    with pytest.raises(AuditError, match=f"{DAY}: its counts are those of an older version"):
        run_batch(settings, DAY, from_counts=True)
