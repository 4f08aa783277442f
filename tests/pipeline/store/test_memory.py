"""What a run may take, what it says when that is not enough, and what it took."""

import sys
from pathlib import Path

import duckdb
import pytest
from damaged import vouched_for
from stores import DAY, audit, deliver, in_batch, in_history, random_lists

from pipeline.errors import AuditError, SettingsError
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.memory import (
    LEAST_BYTES,
    OutOfMemory,
    limit_memory,
    peak_memory,
    shared,
    watch_memory,
    within_memory,
)
from pipeline.store.paths import spill_of, store_of
from pipeline.store.sessions import session, working

MANY_TEXTS = "CREATE TEMP TABLE t AS SELECT range, hash(range)::VARCHAR FROM range(5_000_000)"
"""Some hundred megabytes of them."""


def allowed(settings: Settings) -> int:
    """What a session of the settings may take, in bytes."""
    with duckdb.connect() as connection:
        return limit_memory(connection, settings)


def test_an_eighth_of_the_machine_by_default(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        # Until a session says something else, DuckDB takes 80%.
        connection.execute("SET memory_limit = '100%'")
        whole = limit_memory(connection, audit(tmp_path, memory_limit="100%"))
        most = 0.8 * whole
    wanted = min(max(whole / 8, LEAST_BYTES), most)
    assert allowed(audit(tmp_path)) == pytest.approx(wanted, rel=0.1)


@pytest.mark.parametrize(
    ("said", "bytes_"),
    [("2GB", 2e9), ("2 GiB", 2**31), ("512MiB", 2**29), ("1.5 GiB", 1.5 * 2**30)],
)
def test_settings_say_how_much(tmp_path: Path, said: str, bytes_: float) -> None:
    """As near as DuckDB prints it: to a tenth of the unit."""
    assert allowed(audit(tmp_path, memory_limit=said)) == pytest.approx(bytes_, rel=0.05)


def test_what_cannot_be_a_limit_is_said(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="memory_limit: "):
        allowed(audit(tmp_path, memory_limit="1.2.3GB"))


def test_jobs_share(tmp_path: Path) -> None:
    """Memory and threads of one run are divided; one job has them all."""
    settings = audit(tmp_path, memory_limit="4GiB", threads=5)

    each = shared(settings, 4)

    assert shared(settings, 1) is settings
    assert allowed(each) == pytest.approx(2**30, rel=0.05)
    assert each.threads == 1
    assert shared(settings, 2).threads == 2
    assert each.config_hash == settings.config_hash


@pytest.mark.slow
@pytest.mark.parametrize("spill", [None, "elsewhere/spilled"])
def test_what_does_not_fit_is_spilled_where_settings_say(tmp_path: Path, spill: str | None) -> None:
    settings = audit(tmp_path, memory_limit="80MB", spill=spill)
    store_of(settings).make()

    with working(settings, []) as connection:
        connection.execute(MANY_TEXTS)
        folder = tmp_path / (spill or "store/spill")
        assert [file for file in folder.rglob("*") if file.is_file()]

    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_a_wrong_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"spill: .*file/here"):
        spill_of(audit(tmp_path, spill="file/here"))


def test_the_end_of_memory_names_the_setting(tmp_path: Path) -> None:
    """No folder to spill into, as in a store that may only be read."""
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '50MB'")
        connection.execute("SET temp_directory = ''")
        with (
            pytest.raises(OutOfMemory, match=r"more than the 47\.6 MiB .*raise memory_limit"),
            within_memory(connection, tmp_path),
        ):
            connection.execute(MANY_TEXTS)


def test_the_end_of_the_room_to_spill_names_the_folder(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET memory_limit = '50MB'")
        connection.execute("SET temp_directory = ?", [str(tmp_path / "spill")])
        connection.execute("SET max_temp_directory_size = '10MB'")
        with (
            pytest.raises(OutOfMemory, match=r"no room .*spill in the settings") as refused,
            within_memory(connection, tmp_path / "spill"),
        ):
            connection.execute(MANY_TEXTS)
    assert str(tmp_path / "spill") in str(refused.value)


def test_arrays_that_do_not_fit_are_told_alike(tmp_path: Path) -> None:
    with pytest.raises(OutOfMemory, match="out of memory"), working(audit(tmp_path), []):
        raise MemoryError


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(duckdb.IOException), working(audit(tmp_path), [tmp_path]) as connection:
        connection.execute("FROM read_csv(?)", [str(tmp_path / "none.csv")])


def test_a_batch_that_does_not_fit_leaves_nothing_behind(tmp_path: Path) -> None:
    """From the step that fails to the message, without a trace of DuckDB."""
    settings = audit(tmp_path, memory_limit="3MB", threads=1)
    deliver(tmp_path, random_lists(1, count=3000))

    with pytest.raises(AuditError) as failed:
        run_batch(settings, DAY)

    assert isinstance(failed.value, OutOfMemory)
    assert "memory_limit" in str(failed.value)
    assert list((tmp_path / "store" / "staged").iterdir()) == []


@pytest.mark.slow
def test_the_manifest_says_what_a_batch_took(tmp_path: Path) -> None:
    settings = audit(tmp_path, metrics=["EXP"])
    deliver(tmp_path, random_lists(1))

    run_batch(settings, DAY)

    (row,) = in_history(settings, "FROM batches")
    assert 2**24 < row["peak_memory"] < 2**40


@pytest.mark.slow
def test_each_step_keeps_the_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps may run in processes of their own, each with a mark of its own."""
    settings = audit(tmp_path, metrics=["EXP"])
    deliver(tmp_path, random_lists(1))
    found = iter([500, None, 300])
    monkeypatch.setattr("pipeline.runs.steps.peak_memory", lambda: next(found))
    run_batch(settings, DAY)
    assert in_batch(settings, "SELECT peak_memory FROM batch_info") == [{"peak_memory": 500}]


@pytest.mark.skipif(sys.platform != "linux", reason="the mark can be reset on Linux only")
def test_the_mark_begins_anew_with_another_batch() -> None:
    watch_memory("one")
    held = bytearray(200 * 2**20)
    before = peak_memory() or 0
    del held

    watch_memory("one")
    assert (peak_memory() or 0) == pytest.approx(before, rel=0.02)
    watch_memory("another")
    assert (peak_memory() or 0) < before - 100 * 2**20


def test_a_session_is_limited(tmp_path: Path) -> None:
    settings = audit(tmp_path, memory_limit="256MiB")
    connection = session(settings, [])
    try:
        limit = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    finally:
        connection.close()
    assert limit == [("256.0 MiB",)]


@pytest.mark.slow
def test_steps_of_an_older_file_are_known(tmp_path: Path) -> None:
    """Batch files from before there were these columns are scored again, and get them."""
    settings = audit(tmp_path, metrics=["EXP"])
    deliver(tmp_path, random_lists(1))
    run_batch(settings, DAY)
    with duckdb.connect(str(store_of(settings).batch(DAY))) as connection:
        for name in ("peak_memory", "result_hash"):
            connection.execute(f"ALTER TABLE batch_info DROP COLUMN {name}")
    vouched_for(store_of(settings), DAY)

    run_batch(settings, DAY, from_counts=True, force=True)

    (row,) = in_batch(settings, "FROM batch_info")
    assert None not in (row["peak_memory"], row["result_hash"])
