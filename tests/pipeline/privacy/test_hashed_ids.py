"""Ids are stored as keyed hashes: no raw id reaches a file, no score moves, no key no reading."""

import hmac
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from stores import DAY, Rows, audit, deliver, in_batch, in_history, random_lists, read, scores

from metrics import METRICS
from pipeline import score
from pipeline.errors import SettingsError
from pipeline.history.manifest import manifest
from pipeline.privacy.hashed_ids import keyed_hash
from pipeline.runs.batches import run_batch
from pipeline.runs.in_memory import check_files
from pipeline.runs.outcome import up_to_date
from pipeline.settings.audit import Settings
from pipeline.settings.load import settings_from
from pipeline.store.paths import store_of

KEY = "0123456789abcdef-0123456789abcdef"
IDS = ("list_id", "item_id", "query_id")
EVERYTHING = list(dict.fromkeys(metric.family.name for metric in METRICS))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENRANK_KEY", KEY)


def hashed(text: str) -> str:
    return hmac.new(KEY.encode(), text.encode(), "sha256").hexdigest()[:32]


def people(count: int = 40) -> Rows:
    """Lists of people who come back: ids are addresses, items are shared by lists."""
    rows = random_lists(3, count)
    for at, row in enumerate(rows):
        number = int(row["list_id"][1:])
        row["query_id"] = f"person{number % 7}@example.org"
        row["list_id"] = f"visit-{number}-of-person{number % 7}@example.org"
        row["item_id"] = f"candidate{at % 23}@example.org"
    return rows


def private(folder: Path, *columns: str, **said: Any) -> Settings:
    said.setdefault("metrics", ["EXP", "nDCG"])
    return audit(folder, slices=["device"], privacy={"hash_ids": columns or IDS}, **said)


def test_the_hash_is_hmac_sha256_cut_to_128_bits() -> None:
    assert keyed_hash(KEY.encode(), "q17") == hashed("q17")
    assert len(hashed("q17")) == 32


@pytest.mark.parametrize(
    ("key", "text", "digest"),
    [
        # RFC 4231, test cases 1, 2 and 6: the first 128 bits.
        (b"\x0b" * 20, "Hi There", "b0344c61d8db38535ca8afceaf0bf12b"),
        (b"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c7"),
        (
            b"\xaa" * 131,
            "Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f",
        ),
    ],
)
def test_the_hash_is_that_of_the_standard(key: bytes, text: str, digest: str) -> None:
    assert keyed_hash(key, text) == digest


@pytest.mark.slow
def test_stored_ids_are_hashes_of_the_delivered_ones(tmp_path: Path) -> None:
    rows = people()
    deliver(tmp_path, rows)
    settings = private(tmp_path)
    assert run_batch(settings, DAY).status == "done"
    stored = {
        (row["list_id"], row["item_id"], row["query_id"])
        for row in in_batch(settings, "SELECT list_id, item_id, query_id FROM ranking_log")
    }
    assert stored == {tuple(hashed(str(row[name])) for name in IDS) for row in rows}
    items = in_batch(settings, "SELECT DISTINCT item_id FROM item_stats")
    assert {row["item_id"] for row in items} <= {hashed(str(row["item_id"])) for row in rows}


@pytest.mark.slow
@pytest.mark.parametrize("column", IDS)
def test_one_column_alone_may_be_hashed(tmp_path: Path, column: str) -> None:
    rows = people(6)
    deliver(tmp_path, rows)
    settings = private(tmp_path, column)
    assert run_batch(settings, DAY).status == "done"
    stored = {
        tuple(row.values())
        for row in in_batch(settings, "SELECT list_id, item_id, query_id FROM ranking_log")
    }
    assert stored == {
        tuple(hashed(row[name]) if name == column else row[name] for name in IDS) for row in rows
    }


@pytest.mark.slow
@pytest.mark.parametrize("column", ["list_id", "query_id"])
def test_a_list_that_stands_for_its_query_is_hashed_there_too(tmp_path: Path, column: str) -> None:
    deliver(tmp_path, random_lists(1, 5))
    settings = private(tmp_path, column)
    assert run_batch(settings, DAY).status == "done"
    stored = in_batch(settings, "SELECT DISTINCT query_id FROM log_lists")
    assert {row["query_id"] for row in stored} == {hashed(f"q{at}") for at in range(5)}


def texts(path: Path) -> list[str]:
    """Every text in every table of a database file."""
    found = []
    for table in read(path, "SELECT table_name FROM duckdb_tables()"):
        for row in read(path, f"FROM {table['table_name']}"):
            found += [str(value) for value in row.values()]
    return found


@pytest.mark.slow
def test_no_raw_id_reaches_a_file_of_the_store(tmp_path: Path) -> None:
    rows = people()
    rows[4]["relevance"] = "much"
    rows[9]["item_id"] = rows[8]["item_id"]
    rows[15]["rank"] = rows[14]["rank"]
    deliver(tmp_path, rows)
    settings = private(tmp_path, rejects={"max_rejected_share": 1})
    done = run_batch(settings, DAY)
    assert done.rows_rejected > 0
    refused = private(tmp_path, rejects={"policy": "refuse_batch"})
    deliver(tmp_path, rows, batch="2026-01-06")
    assert run_batch(refused, "2026-01-06").status == "refused"
    files = [path for path in store_of(settings).root.rglob("*") if path.is_file()]
    assert store_of(settings).batch(DAY) in files
    assert store_of(settings).refused("2026-01-06") in files
    for path in files:
        assert b"example.org" not in path.read_bytes(), path
        if path.suffix == ".duckdb":
            assert not [text for text in texts(path) if "example.org" in text], path


@pytest.mark.slow
def test_rejected_rows_say_hashes_of_ids(tmp_path: Path) -> None:
    rows = people(8)
    rows[1]["item_id"] = rows[0]["item_id"]
    rows[20]["item_id"] = " "
    deliver(tmp_path, rows)
    settings = private(tmp_path, rejects={"max_rejected_share": 1})
    run_batch(settings, DAY)
    found = in_batch(settings, 'SELECT DISTINCT list_id, "column", value FROM rejected_rows')
    twice = hashed(rows[0]["item_id"])
    assert {row["value"] for row in found if row["list_id"] == hashed(rows[0]["list_id"])} == {
        twice
    }
    assert not [row for row in found if row["value"] == hashed(" ")]


@pytest.mark.slow
def test_numbers_do_not_depend_on_what_ids_are_called() -> None:
    draw = random.Random(5)
    rows = [
        {
            "list_id": f"l{at}",
            "query_id": f"u{at % 7}",
            "item_id": f"i{item}",
            "score": draw.choice([0.25, 0.5]),
            "relevance": draw.randint(0, 1),
            "click": draw.randint(0, 1),
            "propensity": 0.5,
            "predicted_click": draw.random(),
            "reference_rank": draw.randint(1, 9),
            "device": "ab"[at % 2],
        }
        for at in range(60)
        for item in draw.sample(range(30), draw.randint(3, 9))
    ]
    items = pd.DataFrame({"item_id": f"i{item}", "gender": "FM"[item % 2]} for item in range(30))
    plain, secret = (
        score(
            pd.DataFrame(rows),
            ["gender"],
            slices=["device"],
            items=items,
            metrics=EVERYTHING,
            settings={"evidence": {"resamples": 0, "noise_draws": 0}, **more},
        )
        for more in ({}, {"privacy": {"hash_ids": list(IDS)}})
    )
    assert plain["value"].notna().sum() > 100
    pd.testing.assert_frame_equal(plain, secret, check_exact=True)


@pytest.mark.slow
def test_evidence_moves_no_score(tmp_path: Path) -> None:
    found = []
    for name, columns in (("plain", []), ("secret", IDS)):
        deliver(tmp_path / name, people())
        settings = audit(
            tmp_path / name,
            slices=["device"],
            evidence={"resamples": 100, "noise_draws": 100, "min_queries": 0, "confidence": 0.9},
            privacy={"hash_ids": columns},
        )
        run_batch(settings, DAY)
        found.append(scores(settings))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("key", "said"), [(None, "holds no key"), ("  ", "holds no key"), ("short", "has 5 bytes")]
)
def test_without_a_good_key_nothing_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str | None, said: str
) -> None:
    if key is None:
        monkeypatch.delenv("OTHER_KEY", raising=False)
    else:
        monkeypatch.setenv("OTHER_KEY", key)
    log = deliver(tmp_path, people(2))
    settings = audit(tmp_path, privacy={"hash_ids": "item_id", "key": "OTHER_KEY"})
    for attempt in (
        lambda: run_batch(settings, DAY),
        lambda: run_batch(settings, DAY, force=True),
        lambda: check_files(settings, [log], None),
    ):
        with pytest.raises(SettingsError, match=f"OTHER_KEY.*{said}|{said}.*OTHER_KEY") as error:
            attempt()
        assert not key or not key.strip() or key not in str(error.value).split("OTHER_KEY")[1]
    assert not list(store_of(settings).root.rglob("*.duckdb"))


def test_a_key_has_no_space_around_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = private(tmp_path)
    before = settings.rows_hash
    monkeypatch.setenv("EVENRANK_KEY", f"{KEY}\n")
    assert settings.rows_hash == before


@pytest.mark.slow
def test_another_key_or_column_makes_batches_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliver(tmp_path, people(4))
    settings = private(tmp_path)
    run_batch(settings, DAY)
    known = manifest(settings)
    assert up_to_date(settings, DAY, known)
    assert up_to_date(private(tmp_path, *reversed(IDS), IDS[0]), DAY, known)
    assert not up_to_date(private(tmp_path, "item_id"), DAY, known)
    monkeypatch.setenv("EVENRANK_KEY", KEY[::-1])
    assert not up_to_date(settings, DAY, known)


def test_without_hashes_no_key_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_key = audit(tmp_path, privacy={"key": "EVENRANK_KEY"}).rows_hash
    monkeypatch.delenv("EVENRANK_KEY")
    assert audit(tmp_path).rows_hash == with_key


@pytest.mark.slow
def test_the_key_stands_in_no_file_and_no_digest(tmp_path: Path) -> None:
    deliver(tmp_path, people(4))
    settings = private(tmp_path)
    run_batch(settings, DAY)
    for path in store_of(settings).root.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()
    stored = in_history(settings, "SELECT rows_hash FROM batches")
    assert stored == [{"rows_hash": settings.rows_hash}]


@pytest.mark.parametrize(
    "said", [{"hash_ids": "rank"}, {"hash_ids": ["item_id"], "key": "no name"}, {"min_cell": -1}]
)
def test_settings_that_mean_nothing_are_refused(said: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="privacy"):
        settings_from({"attributes": ["gender"], "privacy": said}, folder=Path())
