"""What becomes of interrupted changes, and of a store in which something is missing."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from damaged import change, contents
from stores import DAY, audit, deliver, in_history, random_lists

import pipeline.history.commits
from pipeline.errors import StoreDamaged
from pipeline.history.commits import has_history
from pipeline.history.ledger import DROPPED, KEPT, Ledger
from pipeline.history.manifest import manifest
from pipeline.history.opening import open_history
from pipeline.integrity.rebuild import rebuild
from pipeline.integrity.verify import verify
from pipeline.monitoring.alerts import mark
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.paths import Store, store_of
from schemas.history import HISTORY_TABLES, LEDGER_HEAD

OTHERS = [table for table in HISTORY_TABLES if table is not LEDGER_HEAD]
NEXT = "2026-01-06"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """One day in the history, marked, and the log of another."""
    settings = audit(tmp_path_factory.mktemp("whole"), metrics=["EXP"])
    deliver(settings.folder, random_lists(1, 6))
    assert run_batch(settings, DAY).status == "done"
    deliver(settings.folder, random_lists(2, 6), batch=NEXT)
    mark(settings, DAY, "model v2")
    return settings


def events(store: Store) -> list[str]:
    return [line["event"] for line in Ledger(store.ledger).read().lines]


class Killed(Exception):
    """What stands for the end of the process."""


def killed(*_: object, **__: object) -> None:
    raise Killed


def test_nothing_is_no_history(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    assert not has_history(store_of(settings))
    assert manifest(settings) == {}
    assert not store_of(settings).root.exists()


def test_a_change_that_was_not_committed_is_dropped(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(pipeline.history.commits, "write_head", killed)
        with pytest.raises(Killed):
            run_batch(settings, NEXT)
    assert events(store)[-1] == "merge"
    # The staged file stays until it is known that nobody needs it.
    (staged,) = (store.root / "staged").iterdir()
    assert set(manifest(settings)) == {DAY}
    (said,) = (text for text in verify(settings).unfinished if "was interrupted" in text)
    assert f"merge of {NEXT} was interrupted; the next run settles it" in said
    assert verify(settings).problems == []
    with open_history(settings):
        pass
    assert events(store)[-2:] == ["merge", DROPPED]
    assert not staged.exists()
    assert not store.batch(NEXT).exists()
    assert run_batch(settings, NEXT).status == "done"
    assert verify(settings).problems == []


@pytest.mark.parametrize("step", ["replace_file", "checkpoint"])
def test_a_change_that_was_committed_is_kept(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(pipeline.history.commits, step, killed)
        with pytest.raises(Killed):
            run_batch(settings, NEXT)
    assert events(store)[-1] == "merge"
    assert store.batch(NEXT).exists() == (step == "checkpoint")
    with open_history(settings):
        pass
    assert events(store)[-2:] == ["merge", KEPT]
    assert store.batch(NEXT).exists()
    assert not list((store.root / "staged").iterdir())
    assert run_batch(settings, NEXT).status == "unchanged"
    assert verify(settings).problems == []


def test_a_staged_file_that_is_gone_is_named(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(pipeline.history.commits, "replace_file", killed)
        with pytest.raises(Killed):
            run_batch(settings, NEXT)
    for path in (store.root / "staged").iterdir():
        path.unlink()
    with open_history(settings):
        pass
    assert [text.split(": ")[1][:10] for text in verify(settings).problems] == ["is missing"]
    assert run_batch(settings, NEXT).status in ("done", "unchanged")
    assert verify(settings).problems == []


def test_a_beginning_that_was_interrupted_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = audit(tmp_path, metrics=["EXP"])
    store = store_of(settings)
    deliver(tmp_path, random_lists(1, 6))
    with monkeypatch.context() as patch:
        patch.setattr(pipeline.history.commits, "write_head", killed)
        with pytest.raises(Killed):
            run_batch(settings, DAY)
    assert events(store) == ["begin"]
    assert verify(settings).problems == []
    assert run_batch(settings, DAY).status == "done"
    assert events(store)[:4] == ["begin", DROPPED, "begin", KEPT]


def _older(store: Store) -> None:
    """Let the store be one of before there were ledgers."""
    store.ledger.unlink()
    change(store.history, f"DROP TABLE {LEDGER_HEAD.name}")


def test_a_store_of_before_is_taken_over_as_it_is(settings: Settings, store: Store) -> None:
    held = contents(store.history, OTHERS)
    _older(store)
    (said,) = verify(settings).problems
    assert "A store of before there were ledgers gets one from its next run" in said
    assert run_batch(settings, DAY).status == "unchanged"
    with open_history(settings):
        pass
    assert events(store) == ["begin", KEPT]
    assert contents(store.history, OTHERS) == held
    assert verify(settings).problems == []
    # From now on, what it held is looked after: marks that came before the ledger too.
    made = rebuild(settings)
    assert (made.left_out, made.lost) == ((), ())
    assert in_history(settings, "SELECT text FROM markers") == [{"text": "model v2"}]
    change(store.history, "UPDATE fairness_history SET value = 0", "DELETE FROM markers")
    said = "\n".join(verify(settings).problems)
    assert "its scores or group values were changed" in said
    assert "release marker" in said


def test_taking_over_may_be_interrupted(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    _older(store)
    with monkeypatch.context() as patch:
        patch.setattr(pipeline.history.commits, "write_head", killed)
        with pytest.raises(Killed), open_history(settings):
            pass
    kept = store.history.read_bytes()
    store.history.unlink()
    with pytest.raises(StoreDamaged, match="evenrank restore"):
        run_batch(settings, DAY)
    assert not store.history.exists()
    store.history.write_bytes(kept)
    assert run_batch(settings, NEXT).status == "done"
    assert verify(settings).problems == []


LOST: dict[str, tuple[Callable[[Store], object], str]] = {
    "the history": (lambda store: store.history.unlink(), "history.duckdb has lost what lines 1"),
    "the ledger": (lambda store: store.ledger.unlink(), "ledger.jsonl is missing"),
    "the end of the ledger": (
        lambda store: store.ledger.write_bytes(
            b"".join(store.ledger.read_bytes().splitlines(keepends=True)[:-2])
        ),
        "ledger.jsonl was cut or replaced",
    ),
    "a line of the ledger": (
        lambda store: store.ledger.write_bytes(
            b"".join([*store.ledger.read_bytes().splitlines(keepends=True)[:-2], b"{}\n"])
        ),
        "ledger.jsonl: one of its last lines is no line of a ledger",
    ),
    "the head": (
        lambda store: change(store.history, "DELETE FROM ledger_head"),
        "history.duckdb has lost what lines 1",
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_nothing_is_made_anew_by_itself(settings: Settings, store: Store, name: str) -> None:
    lose, said = LOST[name]
    lose(store)
    files = {path: path.read_bytes() for path in store.root.rglob("*.*") if path.is_file()}
    for attempt in (
        lambda: run_batch(settings, NEXT),
        lambda: mark(settings, DAY, "model v3"),
        lambda: manifest(settings),
    ):
        with pytest.raises(StoreDamaged) as raised:
            attempt()
        assert said in str(raised.value)
        assert "verify" in str(raised.value)
    assert verify(settings).problems
    here = {path: path.read_bytes() for path in store.root.rglob("*.*") if path.is_file()}
    assert here == files


def test_an_older_history_is_not_gone_on_with(settings: Settings, store: Store) -> None:
    old = settings.folder / "old.duckdb"
    shutil.copyfile(store.history, old)
    assert run_batch(settings, NEXT).status == "done"
    shutil.copyfile(old, store.history)
    with pytest.raises(StoreDamaged, match=f"has lost what lines .* and later.*{NEXT}"):
        run_batch(settings, DAY)
