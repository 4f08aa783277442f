"""Killed, failing, full and damaged: the store is whole afterwards, or says what is not.

A short part, with a seed, of what ``crash_record.py`` does at length.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_children import FAIL, KILL, Children, Plan, why_not
from crash_record import FAULTS, KILLS, RECORD, SIGNALS, Trials
from crash_trials import Found, judged
from stores import DAY, audit, deliver, in_history, random_lists

from pipeline.errors import AuditError
from pipeline.history.manifest import manifest
from pipeline.integrity.verify import verify
from pipeline.runs.batches import run_batch
from pipeline.store.paths import store_of
from pipeline.store.sessions import attach, working

SOME = {KILLS[0]: 6, KILLS[1]: 4, FAULTS[0]: 5, FAULTS[1]: 5, SIGNALS[0]: 2, SIGNALS[1]: 1}
MOMENTS, POWER, DAMAGE = 2, 4, 8
needs_faults = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    """Everything that is tried."""
    folder = tmp_path_factory.mktemp("crashes")
    with Children(folder / "children") as children:
        yield Trials(children, folder, Found())


@needs_faults
def test_nothing_is_lost_or_torn_by_kills_and_faults(trials: Trials) -> None:
    trials.found = Found()
    tasks = [task for kind, some in SOME.items() for task in trials.at_calls(kind)[:some]]
    for task in (*tasks, *trials.at_moments(MOMENTS), *trials.without_power(POWER)):
        task()
    assert trials.found.problems == []
    counts = trials.found.counts
    assert {kind: counts[kind] for kind in SOME} == SOME


@needs_faults
def test_damage_is_named(trials: Trials) -> None:
    trials.found = Found()
    for task in trials.damaged()[:DAMAGE]:
        task()
    assert trials.found.problems == []
    assert trials.found.counts.total() > DAMAGE / 2


@needs_faults
def test_trials_notice_what_is_wrong(trials: Trials, tmp_path: Path) -> None:
    """The harness itself: a kill kills, a failing call fails, and a lost row is a problem."""
    scene = next(scene for scene in trials.scenes if scene.name == "new")
    for mode in (KILL, FAIL):
        folder = scene.copy(tmp_path / f"mode-{mode}")
        ended = scene.run(trials.children, folder, Plan(mode, 3, late=True))
        assert ended.killed == (mode == KILL)
        assert (ended.code, ended.hit) == ((None, 0) if mode == KILL else (1, 1))
    other = next(scene for scene in trials.scenes if scene.name == "replaced")
    trials.found = Found()
    judged(other, trials.children, folder, "mixed up", "", ended, trials.found)
    assert trials.found.problems


@pytest.mark.parametrize("size", [None, 0, 6144])
def test_a_history_that_was_only_begun(tmp_path: Path, size: int | None) -> None:
    """Whoever made the file was killed before it held a table, or was a database at all."""
    settings = audit(tmp_path)
    deliver(tmp_path, random_lists(1))
    store = store_of(settings)
    store.make()
    with working(settings, [store.root]) as connection:
        attach(connection, store.history, "history")
    if size is not None:
        with store.history.open("r+b") as file:
            file.truncate(size)
    found = verify(settings)
    assert found.problems == []
    assert [text for text in found.unfinished if "history.duckdb" in text]
    assert manifest(settings) == {}
    assert run_batch(settings, DAY).status == "done"
    assert in_history(settings, "SELECT batch FROM batches") == [{"batch": DAY}]
    assert verify(settings).problems == []


def test_a_history_that_was_cut_is_not_begun_again(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    deliver(tmp_path, random_lists(1))
    run_batch(settings, DAY)
    store = store_of(settings)
    store.history.write_bytes(store.history.read_bytes()[:6144])
    for lost in (store.ledger, store.batch(DAY)):
        aside = lost.rename(lost.with_suffix(".aside"))
        with pytest.raises(AuditError, match=r"history\.duckdb: cannot be opened"):
            run_batch(settings, DAY)
        assert store.history.stat().st_size == 6144
        aside.rename(lost)


def test_the_record_is_of_both_versions() -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    assert {version.split(".")[0] for version in record} == {"1", "2"}
    for said in record.values():
        assert said["problems"] == 0
        assert said["kills"] == sum(said["kinds"].get(kind, 0) for kind in KILLS)
        assert said["faults"] == sum(said["kinds"].get(kind, 0) for kind in FAULTS)
    assert sum(said["kills"] for said in record.values()) >= 500
    assert sum(said["faults"] for said in record.values()) >= 150
