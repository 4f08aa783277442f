"""The history made again: what it holds, whatever was damaged, and wherever it was interrupted."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from command import evenrank
from damaged import DAYS, change, contents
from stores import deliver, in_history, random_lists, write_settings

import pipeline.history.commits
import pipeline.integrity.rebuild
from pipeline.errors import NoData, StoreBusy, StoreDamaged
from pipeline.history.ledger import Ledger
from pipeline.history.manifest import manifest
from pipeline.integrity.rebuild import Rebuilt, rebuild
from pipeline.integrity.verify import verify
from pipeline.monitoring.assess import assess
from pipeline.publish.copy import publish
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.paths import Store, store_of
from schemas.history import HISTORY_TABLES, LEDGER_HEAD, SUPERSEDED

OTHERS = [table for table in HISTORY_TABLES if table is not LEDGER_HEAD]
CURRENT = [table for table in OTHERS if table not in SUPERSEDED]


@pytest.fixture(scope="module")
def held(small_store: Settings) -> dict[str, Any]:
    """What the history holds before anything is done to it."""
    return contents(store_of(small_store).history, OTHERS)


def again(settings: Settings) -> Rebuilt:
    """Rebuild as the command does."""
    made = rebuild(settings)
    assess(settings, made.batches)
    publish(settings)
    return made


def fine(settings: Settings) -> bool:
    found = verify(settings)
    assert found.problems == []
    return found.unfinished == []


@pytest.mark.slow
def test_all_of_it_comes_back(settings: Settings, store: Store, held: dict[str, Any]) -> None:
    made = again(settings)
    assert (made.batches, made.superseded, made.left_out, made.lost) == (DAYS, 1, (), ())
    assert contents(store.history, OTHERS) == held
    assert fine(settings)
    (aside,) = made.aside
    assert contents(aside, OTHERS) == held
    assert again(settings).aside != made.aside
    assert contents(store.history, OTHERS) == held
    assert aside.exists()
    assert fine(settings)


@pytest.mark.slow
def test_without_the_former_history_only_what_was_replaced_is_lost(
    settings: Settings, store: Store, held: dict[str, Any]
) -> None:
    store.history.unlink()
    with pytest.raises(StoreDamaged, match="evenrank rebuild"):
        run_batch(settings, DAYS[0])
    made = again(settings)
    assert (made.batches, made.superseded, made.left_out) == (DAYS, 0, ())
    assert made.lost == (f"{DAYS[1]}, revision 1",)
    here = contents(store.history, CURRENT)
    for name in here.keys() - {"batches"}:
        assert here[name] == held[name], name
    known = ("batch", "status", "revision", "run_id", "input_hash", "config_hash", "result_hash")
    assert [[row[name] for name in known] for row in here["batches"]] == [
        [row[name] for name in known] for row in held["batches"]
    ]
    assert fine(settings)


def _flip(path: Path) -> None:
    """Damage every block of data; the headers stay."""
    data = bytearray(path.read_bytes())
    for at in range(20_000, len(data), 4096):
        data[at] ^= 0xFF
    path.write_bytes(data)


FORMER: dict[str, Callable[[Store], object]] = {
    "none": lambda store: store.history.write_bytes(b"none" * 9000),
    "flipped": lambda store: _flip(store.history),
    "emptied": lambda store: change(store.history, "DELETE FROM batches", "DROP TABLE superseded"),
    "changed": lambda store: change(
        store.history,
        "UPDATE fairness_history SET value = 0",
        "UPDATE superseded SET value = 0",
        "INSERT INTO superseded SELECT * REPLACE (9 AS revision) FROM superseded",
        "DELETE FROM alert_actions",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMER)
def test_a_damaged_former_history_gives_no_wrong_number(
    settings: Settings, store: Store, held: dict[str, Any], name: str
) -> None:
    FORMER[name](store)
    former = store.history.read_bytes()
    made = again(settings)
    assert (made.batches, made.left_out) == (DAYS, ())
    assert made.superseded + len(made.lost) == 1
    here = contents(store.history, OTHERS)
    for table in ("fairness_history", "group_history", "rank_counts", "alerts", "alert_actions"):
        assert here[table] == held[table]
    assert here["superseded"] in ([], held["superseded"])
    assert made.aside[0].read_bytes() == former
    assert fine(settings)


@pytest.mark.slow
def test_a_damaged_file_is_taken_from_the_history_and_still_named(
    settings: Settings, store: Store, held: dict[str, Any]
) -> None:
    change(store.batch(DAYS[0]), "UPDATE fairness_history SET value = 0")
    store.batch(DAYS[1]).unlink()
    before = verify(settings).problems
    made = again(settings)
    assert (made.batches, made.left_out) == (DAYS, ())
    assert contents(store.history, OTHERS) == held
    named = {text.split(":")[0] for text in before}
    assert {text.split(":")[0] for text in verify(settings).problems} == named
    assert len(named) == 2


@pytest.mark.slow
def test_what_nothing_vouches_for_is_left_out(settings: Settings, store: Store) -> None:
    change(store.batch(DAYS[0]), "UPDATE fairness_history SET value = 0")
    change(store.history, f"UPDATE fairness_history SET value = 0 WHERE batch = '{DAYS[0]}'")
    made = again(settings)
    assert made.batches == DAYS[1:]
    (said,) = made.left_out
    assert said == (
        f"{DAYS[0]}: its file is not what the ledger says; holds other numbers than the ledger says"
    )
    assert set(manifest(settings)) == {*DAYS[1:]}
    assert run_batch(settings, DAYS[0]).revision == 1
    assert verify(settings).problems == []


LEDGERS: dict[str, Callable[[Store], object]] = {
    "gone": lambda store: store.ledger.unlink(),
    "edited": lambda store: store.ledger.write_bytes(
        store.ledger.read_bytes().replace(b'"me"', b'"us"')
    ),
    "empty": lambda store: store.ledger.write_bytes(b""),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LEDGERS)
def test_without_a_whole_ledger_a_new_one_begins(
    settings: Settings, store: Store, held: dict[str, Any], name: str
) -> None:
    LEDGERS[name](store)
    ledger = store.ledger.read_bytes() if store.ledger.exists() else None
    made = again(settings)
    assert (made.batches, made.left_out, made.lost) == (DAYS, (), ())
    assert contents(store.history, OTHERS) == held
    assert fine(settings)
    assert Ledger(store.ledger).read().lines[0]["event"] == "rebuild"
    assert [path.read_bytes() for path in made.aside if "ledger" in path.name] == (
        [] if ledger is None else [ledger]
    )


@pytest.mark.slow
def test_from_files_alone(settings: Settings, store: Store, held: dict[str, Any]) -> None:
    store.ledger.unlink()
    store.history.unlink()
    made = again(settings)
    assert made.batches == DAYS
    for name in ("group_history", "rank_counts", "slice_counts", "gates", "trends"):
        here = in_history(settings, f"SELECT * FROM {name}")
        assert len(here) == len(held[name])
    assert fine(settings)


class Killed(Exception):
    """What stands for the end of the process."""


STEPS = {
    "announced": ("pipeline.history.commits.transaction", 0),
    "committed": ("pipeline.integrity.rebuild.link_aside", 0),
    "linked": ("pipeline.integrity.rebuild.sync_folder", 0),
    "begun": ("pipeline.integrity.rebuild.sealed", 0),
    "taking over": ("pipeline.integrity.rebuild.put", 1),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "broken"), [*((step, False) for step in STEPS), ("announced", True), ("linked", True)]
)
def test_interrupted_anywhere_it_is_done_again(
    settings: Settings,
    store: Store,
    held: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    broken: bool,
) -> None:
    if broken:
        LEDGERS["edited"](store)
    where, left = STEPS[step]
    calls = []

    def killed(*_: object, **__: object) -> None:
        calls.append(1)
        if len(calls) > left:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(where, killed)
        with pytest.raises(Killed):
            rebuild(settings)
    if not broken:
        # The former history, or the new one, is as good as it was.
        assert run_batch(settings, DAYS[0]).status == "unchanged"
    made = again(settings)
    assert (made.batches, made.left_out, made.lost) == (DAYS, (), ())
    assert contents(store.history, OTHERS) == held
    assert fine(settings)


@pytest.mark.slow
def test_interrupted_without_a_history_none_is_begun(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.history.unlink()

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(pipeline.integrity.rebuild, "link_aside", killed)
        with pytest.raises(Killed):
            rebuild(settings)
    with pytest.raises(StoreDamaged):
        run_batch(settings, DAYS[0])
    assert not store.history.exists()
    assert again(settings).batches == DAYS
    assert fine(settings)


@pytest.mark.slow
def test_a_leftover_of_an_interrupted_one_is_no_obstacle(settings: Settings, store: Store) -> None:
    (store.root / "history.rebuilt.duckdb").write_bytes(b"torn" * 5000)
    assert again(settings).batches == DAYS
    assert not list(store.root.glob("history.rebuilt*"))


@pytest.mark.slow
def test_runs_go_on_afterwards(settings: Settings, store: Store) -> None:
    again(settings)
    deliver(settings.folder, random_lists(7, 8), batch=DAYS[0])
    assert run_batch(settings, DAYS[0]).revision == 2
    deliver(settings.folder, random_lists(8, 8), batch="2026-01-04")
    assert run_batch(settings, "2026-01-04").revision == 1
    publish(settings)
    assert fine(settings)


@pytest.mark.slow
def test_a_store_in_use_is_left_alone(settings: Settings, store: Store) -> None:
    before = store.ledger.read_bytes()
    with duckdb.connect(str(store.history)), pytest.raises(StoreBusy):
        rebuild(settings)
    assert store.ledger.read_bytes() == before
    assert fine(settings)


def test_nothing_to_make_it_from(settings: Settings, store: Store) -> None:
    for day in DAYS:
        store.batch(day).unlink()
    with pytest.raises(NoData, match="no batch file to make a history from"):
        rebuild(settings)


@pytest.mark.slow
def test_the_command(settings: Settings, store: Store) -> None:
    config = write_settings(
        settings.folder,
        "attributes: [gender]\nslices: [device]\nmetrics: [EXP, NDKL, IAA]\n"
        "thresholds: {EXP.MinMaxRatio: {min: 1.0}}\n",
    )
    result = evenrank("rebuild", "--json", "--config", config)
    assert result.exit_code == 0, result.output
    assert "3 batches, 1 superseded results taken over" in result.stdout
    said = json.loads(result.stdout.splitlines()[-1])
    assert (said["batches"], said["left_out"], len(said["aside"])) == ([*DAYS], [], 1)
    change(store.batch(DAYS[0]), "UPDATE fairness_history SET value = 0")
    store.history.unlink()
    result = evenrank("rebuild", "--quiet", "--config", config)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"evenrank: left out: {DAYS[0]}: its file is not what")
    assert evenrank("verify", "--quiet", "--config", config).exit_code == 1
