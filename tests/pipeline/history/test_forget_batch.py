"""One batch taken out of the store: as if it had never been, but for the ledger."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command import evenrank
from damaged import DAYS, SAID, contents
from stores import audit, deliver, in_history, random_lists, ranking, write_settings

import pipeline.history.commits
from pipeline.errors import SettingsError
from pipeline.history.forget_batch import forget_batch
from pipeline.history.ledger import Ledger
from pipeline.history.manifest import manifest
from pipeline.integrity.backup import backup, restore
from pipeline.integrity.rebuild import rebuild
from pipeline.integrity.verify import verify
from pipeline.monitoring.alerts import alerts, mark
from pipeline.monitoring.assess import assess, due
from pipeline.publish.copy import publish
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.paths import Store, store_of
from schemas.history import HISTORY_TABLES, LEDGER_HEAD

OTHERS = [table for table in HISTORY_TABLES if table is not LEDGER_HEAD]
WHY = "named by mistake"
NIGHTS = tuple(f"2026-01-{day:02}" for day in range(1, 9))
SHIFTING = {
    "metrics": ["EXP", "NDKL"],
    "thresholds": {"EXP.MinMaxRatio": {"min": 0.9}},
    "gate": {"least": 2},
    "trends": {"window": 8, "least": 4},
}


def fine(settings: Settings) -> bool:
    found = verify(settings)
    assert found.problems == []
    return found.unfinished == []


def night(at: int) -> list[dict[str, Any]]:
    """Unfair from the third night to the fifth, and far too small on the seventh."""
    genders = "MMMFFF" if at in (2, 3, 4) else "FMMFFM"
    return [row for n in range(3 if at == 6 else 12) for row in ranking(f"{at}-{n}", genders)]


def audited(folder: Path, nights: Sequence[str]) -> Settings:
    settings = audit(folder, **SHIFTING)
    for at, day in enumerate(NIGHTS):
        if day in nights:
            deliver(folder, night(at), batch=day)
            assert run_batch(settings, day).status == "done"
    return settings


def without_runs(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The same without ids of runs and times, which no two stores share."""
    return {
        name: [
            {key: value for key, value in row.items() if key not in ("run_id", "computed_at")}
            for row in found
        ]
        for name, found in rows.items()
    }


@pytest.mark.slow
def test_nothing_of_it_is_left(settings: Settings, store: Store) -> None:
    batch = DAYS[1]
    gone = forget_batch(settings, batch, WHY)
    assert (gone.batch, gone.reason, gone.files) == (batch, WHY, (f"batches/{batch}.duckdb",))
    assert not store.batch(batch).exists()
    assert gone.marked
    for name, rows in contents(store.history, OTHERS).items():
        if name != "markers":
            assert [row for row in rows if row.get("batch") == batch] == [], name
    entry = Ledger(store.ledger).read().kept[-1]
    assert (entry["event"], entry["batch"], entry["reason"]) == ("forget", batch, WHY)
    assess(settings)
    publish(settings)
    assert fine(settings)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [NIGHTS[0], NIGHTS[2], NIGHTS[3], NIGHTS[5], NIGHTS[7]])
def test_the_history_is_as_if_it_had_never_been(
    batch: str, tmp_path: Path, audited_nights: Settings
) -> None:
    without = audited(tmp_path / "never", [each for each in NIGHTS if each != batch])
    forget_batch(audited_nights, batch, WHY)
    assert due(audited_nights)
    assess(audited_nights)
    here, there = (
        without_runs(contents(store_of(each).history, OTHERS)) for each in (audited_nights, without)
    )
    for name in there:
        assert here[name] == there[name], name


@pytest.fixture
def audited_nights(tmp_path: Path) -> Settings:
    return audited(tmp_path / "all", NIGHTS)


def test_a_gap_that_no_run_should_have_left_goes_too(tmp_path: Path) -> None:
    settings = audit(tmp_path, schedule={"batches": "names"})
    deliver(tmp_path, random_lists(1, 6))
    for batch in ("2026-01-05", "2026-3-1"):
        run_batch(settings, batch)
    as_days = audit(tmp_path)
    assert manifest(as_days)["2026-3-1"].status == "no_data"
    assert forget_batch(as_days, "2026-3-1", WHY).files == ()
    assert [*manifest(as_days)] == ["2026-01-05"]
    assert not due(as_days)
    publish(as_days)
    assert fine(as_days)


def test_a_refused_delivery_goes_with_what_was_kept_of_it(settings: Settings, store: Store) -> None:
    gone = forget_batch(settings, DAYS[2], WHY)
    assert gone.files == (f"batches/{DAYS[2]}.duckdb", f"refused/{DAYS[2]}.duckdb")
    assert not store.refused(DAYS[2]).exists()


def test_alerts_about_it_alone_go_with_what_people_did(settings: Settings, store: Store) -> None:
    for batch in DAYS:
        forget_batch(settings, batch, WHY)
    rows = contents(store.history, OTHERS)
    assert {name for name, found in rows.items() if found} == {"markers"}
    assess(settings)
    publish(settings)
    assert alerts(settings, every=True) == []
    assert fine(settings)


def test_a_run_of_it_begins_anew(settings: Settings) -> None:
    forget_batch(settings, DAYS[1], WHY)
    outcome = run_batch(settings, DAYS[1])
    assert (outcome.status, outcome.revision) == ("done", 1)
    publish(settings)
    assert fine(settings)
    forget_batch(settings, DAYS[1], "once more")
    assert run_batch(settings, DAYS[1]).revision == 1
    publish(settings)
    assert fine(settings)


@pytest.mark.slow
def test_what_is_made_again_of_the_store_does_not_have_it(
    settings: Settings, store: Store, tmp_path: Path
) -> None:
    forget_batch(settings, DAYS[1], WHY)
    assess(settings)
    held = contents(store.history, OTHERS)
    made = rebuild(settings)
    assert (made.batches, made.left_out, made.lost) == ((DAYS[0], DAYS[2]), (), ())
    assess(settings, made.batches)
    assert contents(store.history, OTHERS) == held
    backup(settings, tmp_path / "copy")
    restore(settings, tmp_path / "copy", replace=True)
    publish(settings)
    assert contents(store.history, OTHERS) == held
    assert fine(settings)
    store.history.unlink()
    assert rebuild(settings).left_out == ()


class Killed(Exception):
    """What stands for the end of the process."""


def killed(*_: object, **__: object) -> None:
    raise Killed


@pytest.mark.parametrize("at", ["write_head", "_finish", "checkpoint", "files_of_batch"])
def test_whatever_interrupts_it_it_is_done_or_not(
    at: str, settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(pipeline.history.commits, at, killed)
        with pytest.raises(Killed):
            forget_batch(settings, DAYS[0], WHY)
    committed = at != "write_head"
    found = verify(settings)
    assert found.problems == []
    assert any("forget of 2026-01-01 was interrupted" in text for text in found.unfinished)
    assess(settings)
    mark(settings, DAYS[2], "whoever writes next settles it")
    publish(settings)
    assert store.batch(DAYS[0]).exists() is not committed
    assert (DAYS[0] in manifest(settings)) is not committed
    assert fine(settings)


@pytest.mark.parametrize("batch", ["2026-01-09", "x", "2026-01-1"])
def test_what_is_not_there_is_said_so(batch: str, settings: Settings, store: Store) -> None:
    before = store.ledger.read_bytes()
    with pytest.raises(SettingsError, match=f"{batch}: there is no such batch"):
        forget_batch(settings, batch, WHY)
    # A file that nobody knows is not removed: `verify` says that it is there.
    store.batch("stranger").write_bytes(b"x")
    with pytest.raises(SettingsError, match="no such batch"):
        forget_batch(settings, "stranger", WHY)
    assert store.batch("stranger").exists()
    assert store.ledger.read_bytes() == before


def test_without_a_history_there_is_nothing_to_forget(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    with pytest.raises(SettingsError, match="no history yet"):
        forget_batch(settings, DAYS[0], WHY)
    assert not store_of(settings).root.exists()


@pytest.mark.parametrize("reason", ["", "  ", "two\nlines", "\x1b[31m"])
def test_a_reason_is_needed(reason: str, settings: Settings) -> None:
    with pytest.raises(SettingsError, match="--reason"):
        forget_batch(settings, DAYS[0], reason)


@pytest.mark.slow
def test_the_command(settings: Settings, store: Store) -> None:
    said = "".join(f"{name}: {json.dumps(value)}\n" for name, value in SAID.items())
    config = write_settings(settings.folder, f"attributes: [gender]\n{said}")
    result = evenrank("forget", "--batch", DAYS[1], "--reason", WHY, "--json", "--config", config)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout.splitlines()[-1])
    assert document["batch"] == DAYS[1]
    for words in (f"{DAYS[1]}: forgotten, {WHY}", f"batches/{DAYS[1]}.duckdb", "--remove"):
        assert words in result.stdout
    assert evenrank("verify", "--config", config).exit_code == 0
    copied = {row["batch"] for row in in_history(settings, "FROM batches")}
    assert DAYS[1] not in copied
    again = evenrank("forget", "--batch", DAYS[1], "--reason", WHY, "--config", config)
    assert again.exit_code == 2
    assert evenrank("forget", "--batch", DAYS[0], "--config", config).exit_code == 2
