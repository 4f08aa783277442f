"""Old rows go for good; scores and counts stay, and can be scored again."""

from datetime import date, datetime
from pathlib import Path

import duckdb
import pytest
from damaged import vouched_for
from stores import DAY, Rows, audit, deliver, random_lists, read

from pipeline.errors import AuditError
from pipeline.privacy.retention import OF_PEOPLE, ROWS, expired, stripped
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of

EVIDENCE = {"resamples": 100, "noise_draws": 100, "confidence": 0.9, "min_queries": 0}
TODAY = date(2026, 4, 11)


def named(count: int = 30) -> Rows:
    rows = random_lists(2, count)
    for row in rows:
        row["list_id"] = f"visit-of-{row['list_id']}@example.org"
        row["item_id"] = f"item-{row['item_id']}@example.org"
    rows[3]["relevance"] = "text of somebody@example.org"
    return rows


@pytest.fixture(name="settings")
def _settings(tmp_path: Path) -> Settings:
    deliver(tmp_path, named())
    settings = audit(
        tmp_path,
        slices=["device"],
        metrics=["EXP", "NDKL", "nDCG"],
        rejects={"max_rejected_share": 1},
        evidence=EVIDENCE,
    )
    assert run_batch(settings, DAY).status == "done"
    return settings


def content(path: Path) -> dict[str, Rows]:
    names = [row["table_name"] for row in read(path, "SELECT table_name FROM duckdb_tables()")]
    return {name: read(path, f"FROM {name}") for name in names}


@pytest.mark.slow
def test_rows_go_and_everything_else_stays(settings: Settings, tmp_path: Path) -> None:
    path, to = store_of(settings).batch(DAY), tmp_path / "stripped.duckdb"
    before = path.read_bytes()
    assert b"example.org" in before
    assert stripped(settings, path, to)
    assert path.read_bytes() == before
    assert b"example.org" not in to.read_bytes()
    assert not to.with_name(to.name + ".wal").exists()
    full, left = content(path), content(to)
    assert full.keys() == left.keys()
    rows = {*ROWS} - {"ranking_log"}
    assert {name for name in full if full[name] != left[name]} == {*rows, "rejected_rows"}
    for name in rows:
        assert full[name]
        assert not left[name]
    assert full["rejected_rows"]
    assert left["rejected_rows"] == [
        row | dict.fromkeys(OF_PEOPLE) for row in full["rejected_rows"]
    ]
    assert read(to, "SELECT count(*) AS rows FROM ranking_log") == [{"rows": 0}]


@pytest.mark.slow
def test_rows_go_from_files_of_older_versions(settings: Settings, tmp_path: Path) -> None:
    old, to = tmp_path / "old.duckdb", tmp_path / "stripped.duckdb"
    with duckdb.connect(str(old)) as connection:
        connection.execute("CREATE TABLE ranking_log AS SELECT 'anna@example.org' AS list_id")
        connection.execute("CREATE TABLE rank_counts AS SELECT 7 AS rows")
    assert stripped(settings, old, to)
    assert content(to) == {"ranking_log": [], "rank_counts": [{"rows": 7}]}
    assert b"example.org" not in to.read_bytes()


@pytest.mark.slow
def test_counts_without_rows_can_be_scored_again(settings: Settings, tmp_path: Path) -> None:
    path, to = store_of(settings).batch(DAY), tmp_path / "stripped.duckdb"
    before = read(path, "SELECT result_hash FROM batch_info")
    assert stripped(settings, path, to)
    to.replace(path)
    vouched_for(store_of(settings), DAY)
    again = run_batch(settings, DAY, from_counts=True, force=True)
    assert again.status == "done"
    assert [{"result_hash": again.result_hash}] == before
    more = settings.model_copy(update={"metrics": (*settings.metrics, "AWRF(p=0.3)")})
    scored = run_batch(more, DAY, from_counts=True)
    assert scored.scores > again.scores


@pytest.mark.slow
def test_a_file_without_rows_is_left_alone(settings: Settings, tmp_path: Path) -> None:
    path, to = store_of(settings).batch(DAY), tmp_path / "stripped.duckdb"
    assert stripped(settings, path, to)
    again = tmp_path / "again.duckdb"
    assert not stripped(settings, to, again)
    assert not again.exists()


def test_refused_rows_go_too(tmp_path: Path) -> None:
    deliver(tmp_path, named())
    settings = audit(tmp_path, rejects={"policy": "refuse_batch"})
    assert run_batch(settings, DAY).status == "refused"
    path, to = store_of(settings).refused(DAY), tmp_path / "stripped.duckdb"
    assert b"example.org" in path.read_bytes()
    assert stripped(settings, path, to)
    assert b"example.org" not in to.read_bytes()
    assert read(to, "FROM rule_counts") == read(path, "FROM rule_counts")


@pytest.mark.slow
def test_what_lies_in_the_way_is_replaced(settings: Settings, tmp_path: Path) -> None:
    to = tmp_path / "stripped.duckdb"
    to.write_bytes(b"what a run that was killed has left")
    assert stripped(settings, store_of(settings).batch(DAY), to)
    assert read(to, "SELECT count(*) > 0 AS there FROM rank_counts") == [{"there": True}]


@pytest.mark.slow
def test_a_damaged_file_is_an_error_and_makes_none(settings: Settings, tmp_path: Path) -> None:
    path, to = tmp_path / "damaged.duckdb", tmp_path / "stripped.duckdb"
    path.write_bytes(b"no database at all")
    with pytest.raises(AuditError, match=r"damaged\.duckdb"):
        stripped(settings, path, to)
    assert not to.exists()


@pytest.mark.parametrize(
    ("batch", "keep", "gone"),
    [
        ("2026-04-11", 1, False),
        ("2026-04-10", 1, False),
        ("2026-04-09", 1, True),
        ("2026-01-11", 90, False),
        ("2026-01-10", 90, True),
        ("2026-01-10", None, False),
        ("2027-01-01", 1, False),
        ("release-7", 10, True),
        ("release-7", 11, False),
    ],
)
def test_rows_are_kept_for_so_many_days(
    tmp_path: Path, batch: str, keep: int | None, gone: bool
) -> None:
    settings = audit(tmp_path, privacy={"keep_rows_days": keep})
    finished = {batch: datetime(2026, 3, 31, 23, 59)}
    assert expired(settings, TODAY, finished) == ([batch] if gone else [])


def test_expired_batches_come_in_key_order(tmp_path: Path) -> None:
    settings = audit(tmp_path, privacy={"keep_rows_days": 7})
    finished = dict.fromkeys(["b", "2026-01-02", "a"], datetime(2026, 1, 1))
    assert expired(settings, TODAY, finished) == [
        "2026-01-02",
        "a",
        "b",
    ]
