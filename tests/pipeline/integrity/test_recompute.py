"""Numbers computed again from what a batch file holds: the same bits, or what differs."""

import json
import shutil

import pytest
from command import evenrank
from damaged import change, every_byte, forged
from stores import DAY, audit, deliver, random_lists, read, write_settings

import pipeline.integrity.recompute
import pipeline.runs.steps
from pipeline.errors import NoData
from pipeline.integrity.recompute import Recomputed, recompute
from pipeline.integrity.verify import verify
from pipeline.privacy.retention import stripped
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.files import file_digest
from pipeline.store.paths import Store


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("whole")
    settings = audit(
        folder,
        slices=["device"],
        metrics=["EXP", "NDKL", "nDCG@3"],
        evidence={"resamples": 40, "noise_draws": 40, "min_queries": 0, "min_appearances": 0},
    )
    deliver(folder, random_lists(1, 8))
    assert run_batch(settings, DAY).status == "done"
    return settings


def again(settings: Settings) -> Recomputed:
    (found,) = recompute(settings, [])
    return found


def test_the_same_bits_come_out_and_nothing_stays_behind(settings: Settings, store: Store) -> None:
    shutil.rmtree(settings.folder / "logs")
    before = every_byte(store.root)
    assert again(settings) == Recomputed(DAY, same=True, from_rows=True)
    assert every_byte(store.root) == before


def test_settings_of_then_are_used(settings: Settings) -> None:
    other = audit(
        settings.folder,
        attributes=["age"],
        metrics=["ARP"],
        thresholds={"ARP.MinMaxRatio": {"min": 0.2}},
        relevant_from=0.7,
        ranks={"start": 0},
    )
    assert again(other) == Recomputed(DAY, same=True, from_rows=True)


@pytest.mark.slow
def test_without_rows_counts_are_what_is_left(settings: Settings, store: Store) -> None:
    path, bare = store.batch(DAY), store.root / "batches" / "bare.duckdb"
    assert stripped(settings, path, bare)
    bare.replace(path)
    assert again(settings) == Recomputed(DAY, same=True, from_rows=False)
    change(path, "UPDATE rank_counts SET rows = rows + 1 WHERE rank = 1")
    found = again(settings)
    assert (found.same, found.from_rows) == (False, False)
    assert any("EXP" in text and " then, " in text for text in found.differences)


@pytest.mark.slow
def test_scores_that_were_changed_are_named(settings: Settings, store: Store) -> None:
    where = "slice = 'all' AND metric = 'EXP' AND aggregation = 'MinMaxRatio'"
    path = store.batch(DAY)
    change(path, f"UPDATE fairness_history SET value = 0.5, status = 'ok' WHERE {where}")
    (true,) = read(store.history, f"SELECT value, verdict FROM fairness_history WHERE {where}")
    found = again(settings)
    assert found.differences == (
        f"{DAY} all all gender EXP MinMaxRatio: value 0.5 then, {true['value']} now",
        f"{DAY} all all gender EXP MinMaxRatio: status ok then, {true['verdict']} now",
    )


@pytest.mark.slow
def test_a_score_of_one_bit_less_is_named(settings: Settings, store: Store) -> None:
    where = "slice = 'all' AND metric = 'EXP' AND aggregation = 'MinMaxRatio'"
    change(store.batch(DAY), f"UPDATE fairness_history SET value = value + 2e-16 WHERE {where}")
    assert len(again(settings).differences) == 1


@pytest.mark.slow
def test_many_differences_are_counted(settings: Settings, store: Store) -> None:
    change(store.batch(DAY), "UPDATE fairness_history SET queries = queries + 1")
    told = again(settings).differences
    assert len(told) == 11
    assert told[-1].startswith("and ")


@pytest.mark.slow
def test_counts_and_rows_that_were_changed_are_named(settings: Settings, store: Store) -> None:
    path = store.batch(DAY)
    counts = path.read_bytes()
    change(path, "UPDATE rank_counts SET rows = rows + 1 WHERE rank = 1")
    assert again(settings).differences == ("counts: rank_counts",)
    path.write_bytes(counts)
    change(path, "UPDATE log_entries SET relevance = 1 - relevance")
    found = again(settings)
    assert "rank_counts" in found.differences[0]
    assert any("nDCG" in text for text in found.differences)
    path.write_bytes(counts)
    change(path, "DELETE FROM group_history WHERE metric = 'EXP' AND slice = 'all'")
    assert all(text.endswith("was not there then") for text in again(settings).differences)


@pytest.mark.slow
def test_a_changed_file_whose_digest_was_noted_is_still_found(
    settings: Settings, store: Store
) -> None:
    path = store.batch(DAY)
    change(path, "UPDATE log_entries SET relevance = 1 - relevance")
    line = next(n for n, t in enumerate(store.ledger.read_text().splitlines(), 1) if "sha256" in t)
    forged(store, line, sha256=file_digest(path))
    store.dashboard.unlink(missing_ok=True)
    assert verify(settings).problems == []
    assert not again(settings).same


@pytest.mark.slow
def test_other_code_is_named_only_where_numbers_differ(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (pipeline.runs.steps, pipeline.integrity.recompute):
        monkeypatch.setattr(module, "code_version", lambda: "9.9.9+abcdef01")
    assert again(settings).same
    change(store.batch(DAY), "UPDATE fairness_history SET lists = 0 WHERE metric = 'NDKL'")
    said = again(settings).differences[0]
    assert said.startswith("code: ")
    assert said.endswith(" then, 9.9.9+abcdef01 now")


@pytest.mark.slow
def test_settings_that_were_not_kept_are_named(settings: Settings, store: Store) -> None:
    change(store.batch(DAY), "UPDATE batch_info SET settings = NULL")
    assert again(settings).same
    other = audit(settings.folder, slices=["device"], metrics=["EXP"])
    said = again(other).differences
    assert said[0] == "settings: those of then were not kept, so these are the present ones"
    assert len(said) > 1


BROKEN = {
    "settings that are none": (
        "UPDATE batch_info SET settings = '{{'",
        "cannot be used",
    ),
    "settings of a newer version": (
        "UPDATE batch_info SET settings = '{\"newer\": 1}'",
        "cannot be used",
    ),
    "rows that cannot be": (
        "UPDATE log_entries SET rank = rank + 1 WHERE rank >= 3",
        "what it holds cannot be computed",
    ),
    "no info": ("DROP TABLE batch_info", "batch_info"),
    "rows as before": ("DROP VIEW log_rows", "its rows are stored as an older version did"),
    "no counts": ("DROP TABLE rank_counts", "rank_counts"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_computed_says_why(
    settings: Settings, store: Store, name: str
) -> None:
    statement, said = BROKEN[name]
    change(store.batch(DAY), statement)
    found = again(settings)
    assert not found.same
    assert said in found.differences[0]
    assert not list((store.root / "staged").iterdir())


def test_a_file_that_is_none_says_so(settings: Settings, store: Store) -> None:
    store.batch(DAY).write_bytes(b"none" * 9000)
    assert "cannot be opened" in again(settings).differences[0]
    with pytest.raises(NoData, match="2026-02-01: no batch file"):
        list(recompute(settings, [DAY, "2026-02-01"]))


@pytest.mark.slow
def test_the_command_says_what_came_out(settings: Settings, store: Store) -> None:
    config = write_settings(settings.folder)
    words = ("verify", "--recompute", "--config", config)
    done = evenrank(*words, "--batch", DAY, "--json")
    assert done.exit_code == 0, done.output
    assert "the same bits, from rows" in done.stdout
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["recomputed"] == [
        {"batch": DAY, "same": True, "from_rows": True, "differences": []}
    ]
    absent = evenrank(*words, "--batch", "2026-02-01")
    assert (absent.exit_code, "no batch file" in absent.stderr) == (4, True)
    change(store.batch(DAY), "UPDATE fairness_history SET value = 0.5")
    wrong = evenrank(*words)
    assert wrong.exit_code == 1
    assert "differs, from rows" in wrong.stdout
