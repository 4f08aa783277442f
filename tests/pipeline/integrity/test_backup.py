"""Backups: made of what the ledger vouches for, while runs go on, and put back whole."""

import errno
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from command import evenrank
from damaged import DAYS, change, contents, every_byte
from stores import copied, deliver, random_lists, write_settings

import pipeline.integrity.backup
from pipeline.errors import AuditError, NoData, SettingsError, StoreBusy, StoreDamaged
from pipeline.history.ledger import Ledger
from pipeline.integrity.backup import MANIFEST, Backup, backup, restore
from pipeline.integrity.verify import verify
from pipeline.monitoring.assess import assess
from pipeline.publish.copy import publish
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.files import file_digest
from pipeline.store.paths import Store
from schemas.history import HISTORY_TABLES, LEDGER_HEAD

OTHERS = [table for table in HISTORY_TABLES if table is not LEDGER_HEAD]


@pytest.fixture(scope="module")
def whole(small_store: Settings, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """An audit, and a backup of it beside its store."""
    settings = copied(small_store, tmp_path_factory.mktemp("whole"))
    backup(settings, settings.folder / "copy")
    return settings


@pytest.fixture
def copy(settings: Settings) -> Path:
    return settings.folder / "copy"


def fine(settings: Settings) -> bool:
    publish(settings)
    found = verify(settings)
    assert (found.problems, found.unfinished) == ([], [])
    return True


@pytest.mark.slow
def test_the_copy_holds_what_the_store_holds(settings: Settings, store: Store) -> None:
    before = every_byte(store.root, noted=False)
    made = backup(settings, settings.folder / "new" / "copy")
    assert every_byte(store.root, noted=False) == before
    copy = Path(made.path)
    names = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
    assert names == {
        "backup.json",
        "history.duckdb",
        "ledger.jsonl",
        f"refused/{DAYS[2]}.duckdb",
        *(f"batches/{day}.duckdb" for day in DAYS),
    }
    end = Ledger(store.ledger).end()
    assert end is not None
    assert made == Backup(
        str(copy),
        6,
        sum((copy / name).stat().st_size for name in names - {"backup.json"}),
        end.entry["line"],
        end.entry["hash"],
    )
    for day in DAYS:
        assert (copy / "batches" / f"{day}.duckdb").read_bytes() == store.batch(day).read_bytes()
    assert contents(copy / "history.duckdb") == contents(store.history)
    assert list(copy.parent.iterdir()) == [copy]


@pytest.mark.slow
def test_restored_onto_nothing_it_is_the_store_again(
    settings: Settings, store: Store, copy: Path
) -> None:
    held = contents(store.history, OTHERS)
    shutil.rmtree(store.root)
    assert restore(settings, copy) is None
    assert contents(store.history, OTHERS) == held
    assert fine(settings)
    assert run_batch(settings, DAYS[0]).status == "unchanged"
    deliver(settings.folder, random_lists(7, 8), batch=DAYS[0])
    assert run_batch(settings, DAYS[0]).revision == 2
    assert fine(settings)
    assert backup(settings, settings.folder / "next").files == 6


@pytest.mark.slow
def test_restored_onto_a_store_it_puts_that_aside(
    settings: Settings, store: Store, copy: Path
) -> None:
    held = contents(store.history, OTHERS)
    deliver(settings.folder, random_lists(7, 8), batch=DAYS[0])
    run_batch(settings, DAYS[0])
    later = contents(store.history, OTHERS)
    with pytest.raises(SettingsError, match="is no empty store; --replace"):
        restore(settings, copy)
    assert contents(store.history, OTHERS) == later
    aside = restore(settings, copy, replace=True)
    assert aside is not None
    assert contents(store.history, OTHERS) == held
    assert contents(aside / "history.duckdb", OTHERS) == later
    assert fine(settings)
    assert restore(settings, copy, replace=True) != aside
    assert contents(aside / "history.duckdb", OTHERS) == later
    assert fine(settings)


@pytest.mark.slow
def test_while_runs_go_on_every_copy_is_whole(settings: Settings, store: Store) -> None:
    settings = settings.model_copy(update={"busy_seconds": 60})
    failed: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            for seed in range(20, 23):
                deliver(settings.folder, random_lists(seed, 8), batch=DAYS[0])
                run_batch(settings, DAYS[0])
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    running = threading.Thread(target=work)
    running.start()
    copies = []
    while not done.is_set() or not copies:
        copies.append(Path(backup(settings, settings.folder / f"copy-{len(copies)}").path))
    running.join()
    assert failed == []
    for at, copy in enumerate({copies[0], copies[-1]}):
        other = settings.model_copy(update={"store": f"restored-{at}"})
        restore(other, copy)
        assert verify(other).problems == []
        # A copy may be of the moment between a merge and its assessment.
        assess(other)
        assert fine(other)
    assert fine(settings)


HARM: dict[str, tuple[Callable[[Store], object], str]] = {
    "a file changed": (
        lambda store: change(store.batch(DAYS[0]), "UPDATE fairness_history SET value = 0"),
        f"{DAYS[0]}.duckdb: is not what the ledger says",
    ),
    "a file gone": (lambda store: store.batch(DAYS[0]).unlink(), f"{DAYS[0]}.duckdb: is missing"),
    "a folder for a file": (
        lambda store: (store.batch(DAYS[0]).unlink(), store.batch(DAYS[0]).mkdir()),
        f"{DAYS[0]}.duckdb: cannot be read: Is a directory",
    ),
    "a line changed": (
        lambda store: store.ledger.write_bytes(store.ledger.read_bytes().replace(b"v2", b"v9")),
        "line ",
    ),
    "a history gone": (lambda store: store.history.unlink(), "has lost"),
}


@pytest.mark.parametrize("name", HARM)
def test_no_copy_is_made_of_what_is_damaged(settings: Settings, store: Store, name: str) -> None:
    harm, said = HARM[name]
    harm(store)
    before = every_byte(store.root, noted=False)
    with pytest.raises(StoreDamaged) as raised:
        backup(settings, settings.folder / "new")
    assert said in str(raised.value)
    assert not list(settings.folder.glob("new*"))
    assert every_byte(store.root, noted=False) == before


def _full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device", "somewhere")


def test_a_full_disk_leaves_nothing(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = every_byte(store.root, noted=False)
    monkeypatch.setattr(pipeline.integrity.backup, "copyfile", _full)
    with pytest.raises(AuditError, match="somewhere: No space left on device; nothing was kept"):
        backup(settings, settings.folder / "new")
    assert not list(settings.folder.glob("new*"))
    assert every_byte(store.root, noted=False) == before


def test_where_no_copy_can_be_made(settings: Settings, store: Store, copy: Path) -> None:
    with pytest.raises(SettingsError, match="is there already"):
        backup(settings, copy)
    with duckdb.connect(str(store.history)), pytest.raises(StoreBusy):
        backup(settings, settings.folder / "new")
    with pytest.raises(NoData, match="there is no history yet"):
        backup(settings.model_copy(update={"store": "none"}), settings.folder / "new")
    assert not list(settings.folder.glob("new*"))


def _rename(copy: Path, name: str, to: str) -> None:
    """Let the manifest name a file otherwise."""
    said = json.loads((copy / MANIFEST).read_text())
    said["files"][to] = said["files"].pop(name)
    (copy / MANIFEST).write_text(json.dumps(said))


def _without(copy: Path, name: str) -> None:
    said = json.loads((copy / MANIFEST).read_text())
    del said[name]
    (copy / MANIFEST).write_text(json.dumps(said))


def _named(copy: Path, change_files: Callable[[dict[str, str]], object]) -> None:
    """Let the manifest name other files."""
    said = json.loads((copy / MANIFEST).read_text())
    change_files(said["files"])
    (copy / MANIFEST).write_text(json.dumps(said))


def _digested(copy: Path, name: str) -> None:
    """Let the manifest say what the file is now."""
    _named(copy, lambda files: files.update({name: file_digest(copy / name)}))


def _edited(copy: Path, name: str, statement: str) -> None:
    """Change a database as somebody does who knows the manifest."""
    change(copy / name, statement, "CHECKPOINT")
    _digested(copy, name)


def _head(copy: Path, head: list[Any]) -> None:
    said = json.loads((copy / MANIFEST).read_text()) | {"head": head}
    (copy / MANIFEST).write_text(json.dumps(said))


def _without_last(ledger: Path) -> bytes:
    return b"".join(ledger.read_bytes().splitlines(keepends=True)[:-2])


LATER = "batches/2026-02-01.duckdb"
FIRST = f"batches/{DAYS[0]}.duckdb"
COPIES: dict[str, tuple[Callable[[Path], object], str]] = {
    "nothing": (shutil.rmtree, "is no backup"),
    "no manifest": (lambda copy: (copy / MANIFEST).unlink(), "is no backup"),
    "half a manifest": (lambda copy: (copy / MANIFEST).write_text('{"files": {'), "is no backup"),
    "a list": (lambda copy: (copy / MANIFEST).write_text("[]"), "is no backup"),
    "files as a list": (lambda copy: (copy / MANIFEST).write_text('{"files": []}'), "is no backup"),
    "no head": (lambda copy: _without(copy, "head"), "is no backup"),
    "a file gone": (lambda copy: (copy / FIRST).unlink(), f"{FIRST}: is missing"),
    "a file changed": (
        lambda copy: (copy / FIRST).write_bytes(b"other"),
        f"{FIRST}: was changed",
    ),
    "two of them": (
        lambda copy: ((copy / FIRST).unlink(), (copy / "ledger.jsonl").write_bytes(b"")),
        "ledger.jsonl: was changed",
    ),
    "a name that leads out": (
        lambda copy: (
            shutil.copyfile(copy / FIRST, copy.parent / "x.duckdb"),
            _rename(copy, FIRST, "../x.duckdb"),
        ),
        "../x.duckdb: is no name of a file of a store",
    ),
    "a name that leads out and in": (
        lambda copy: _rename(copy, FIRST, f"batches/../../copy/{FIRST}"),
        "is no name of a file of a store",
    ),
    "another name": (
        lambda copy: (
            (copy / FIRST).rename(copy / "audit.yaml"),
            _rename(copy, FIRST, "audit.yaml"),
        ),
        "audit.yaml: is no name of a file of a store",
    ),
    "a log": (
        lambda copy: (
            (copy / FIRST).rename(copy / "history.duckdb.wal"),
            _rename(copy, FIRST, "history.duckdb.wal"),
        ),
        "history.duckdb.wal: is no name of a file of a store",
    ),
    "no history": (
        lambda copy: _rename(copy, "history.duckdb", "batches/h.duckdb"),
        "history.duckdb: is missing",
    ),
    "a file changed with its manifest": (
        lambda copy: _edited(copy, FIRST, "UPDATE rank_counts SET rows = rows + 1"),
        f"{FIRST}: its bytes were changed since line",
    ),
    "scores changed with the manifest": (
        lambda copy: _edited(copy, "history.duckdb", "UPDATE fairness_history SET value = 0.5"),
        "its scores or group values were changed",
    ),
    "counts changed with the manifest": (
        lambda copy: _edited(copy, "history.duckdb", "UPDATE rank_counts SET rows = rows + 1"),
        "rank_counts of the history differ from its file",
    ),
    "a batch taken out with the manifest": (
        lambda copy: (
            (copy / FIRST).unlink(),
            _named(copy, lambda files: files.pop(FIRST)),
        ),
        f"{FIRST}: is missing",
    ),
    "a batch put in with the manifest": (
        lambda copy: (
            shutil.copyfile(copy / FIRST, copy / LATER),
            _named(copy, lambda files: files.update({LATER: files[FIRST]})),
        ),
        f"{LATER}: ledger.jsonl knows of no such batch",
    ),
    "a ledger cut with the manifest": (
        lambda copy: (
            (copy / "ledger.jsonl").write_bytes(_without_last(copy / "ledger.jsonl")),
            _digested(copy, "ledger.jsonl"),
        ),
        "ledger.jsonl was cut or replaced",
    ),
    "a line of the ledger changed with the manifest": (
        lambda copy: (
            (copy / "ledger.jsonl").write_bytes(
                (copy / "ledger.jsonl").read_bytes().replace(b"v2", b"v9")
            ),
            _digested(copy, "ledger.jsonl"),
        ),
        "was changed after it was written",
    ),
    "another end of the ledger": (
        lambda copy: _head(copy, [1, "0" * 64]),
        "backup.json: names another end of the ledger",
    ),
    "a link": (
        lambda copy: (
            (copy / FIRST).rename(copy.parent / "x.duckdb"),
            (copy / FIRST).symlink_to(copy.parent / "x.duckdb"),
        ),
        f"{FIRST}: is a symbolic link",
    ),
    "a folder that is a link": (
        lambda copy: (
            (copy / "batches").rename(copy.parent / "elsewhere"),
            (copy / "batches").symlink_to(copy.parent / "elsewhere"),
        ),
        "batches: is a symbolic link",
    ),
    "a stranger": (
        lambda copy: (copy / "notes.txt").write_text("x"),
        "notes.txt: is not in the manifest",
    ),
    "a batch that nobody named": (
        lambda copy: shutil.copyfile(copy / FIRST, copy / LATER),
        f"{LATER}: is not in the manifest",
    ),
    "a log that nobody named": (
        lambda copy: (copy / "history.duckdb.wal").write_bytes(b"x"),
        "history.duckdb.wal: is not in the manifest",
    ),
    "a folder that nobody named": (
        lambda copy: (copy / "staged").mkdir(),
        "staged: is not in the manifest",
    ),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_damaged_copy_is_not_restored(
    settings: Settings, store: Store, copy: Path, name: str
) -> None:
    harm, said = COPIES[name]
    harm(copy)
    before = every_byte(store.root, noted=False)
    with pytest.raises(AuditError) as raised:
        restore(settings, copy, replace=True)
    assert said in str(raised.value)
    assert every_byte(store.root, noted=False) == before


def test_all_that_is_wrong_with_a_copy_is_told(
    settings: Settings, store: Store, copy: Path
) -> None:
    (copy / "notes.txt").write_text("x")
    (copy / FIRST).write_bytes(b"other")
    _edited(copy, f"batches/{DAYS[1]}.duckdb", "UPDATE rank_counts SET rows = rows + 1")
    _edited(copy, "history.duckdb", "DELETE FROM alert_actions")
    before = every_byte(copy)
    with pytest.raises(AuditError) as raised:
        restore(settings, copy, replace=True)
    said = str(raised.value)
    for words in (
        "notes.txt: is not in the manifest",
        f"{FIRST}: was changed",
        f"{DAYS[1]}.duckdb: its bytes were changed",
        "alert action",
        "Nothing was restored",
    ):
        assert words in said
    assert said.count(f"{DAYS[0]}.duckdb") == 1
    assert every_byte(copy) == before


def test_no_copy_is_made_of_a_history_that_was_edited(settings: Settings, store: Store) -> None:
    change(store.history, "UPDATE fairness_history SET value = 0.5")
    with pytest.raises(StoreDamaged, match="its scores, group values or counts changed"):
        backup(settings, settings.folder / "new")
    assert not list(settings.folder.glob("new*"))


class Killed(Exception):
    """What stands for the end of the process."""


@pytest.mark.slow
@pytest.mark.parametrize("left", [0, 1, 5, 6])
def test_interrupted_it_is_done_again(
    settings: Settings, store: Store, copy: Path, monkeypatch: pytest.MonkeyPatch, left: int
) -> None:
    held = contents(store.history, OTHERS)
    real, calls = pipeline.integrity.backup.replace_file, []

    def killed(new: Path, old: Path) -> None:
        calls.append(old)
        if len(calls) > left:
            raise Killed
        real(new, old)

    def unsealed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(pipeline.integrity.backup, "replace_file", killed)
        if left == 6:
            patch.setattr(pipeline.integrity.backup, "sealed", unsealed)
        with pytest.raises(Killed):
            restore(settings, copy, replace=True)
    if left < 6:
        # Nobody takes half a store for a whole one, or for a new one.
        with pytest.raises(StoreDamaged):
            run_batch(settings, DAYS[0])
        assert not store.history.exists()
    assert restore(settings, copy, replace=True)
    assert contents(store.history, OTHERS) == held
    assert fine(settings)
    assert not list(store.root.rglob("*.part"))


@pytest.mark.slow
def test_a_store_in_use_is_not_replaced(settings: Settings, store: Store, copy: Path) -> None:
    with duckdb.connect(str(store.history)), pytest.raises(StoreBusy):
        restore(settings, copy, replace=True)
    assert fine(settings)


@pytest.mark.slow
def test_the_commands(settings: Settings, store: Store) -> None:
    config = write_settings(
        settings.folder,
        "attributes: [gender]\nslices: [device]\nmetrics: [EXP, NDKL, IAA]\n"
        "thresholds: {EXP.MinMaxRatio: {min: 1.0}}\n",
    )
    to = settings.folder / "new"
    made = evenrank("backup", "--json", to, "--config", config)
    assert made.exit_code == 0, made.output
    assert json.loads(made.stdout.splitlines()[-1])["files"] == 6
    assert evenrank("backup", to, "--config", config).exit_code == 2
    refused = evenrank("restore", to, "--config", config)
    assert (refused.exit_code, "--replace" in refused.stderr) == (2, True)
    done = evenrank("restore", to, "--replace", "--config", config)
    assert done.exit_code == 0, done.output
    assert "put aside: " in done.stdout
    assert evenrank("verify", "--quiet", "--config", config).exit_code == 0
    damaged = evenrank("restore", settings.folder, "--replace", "--config", config)
    assert (damaged.exit_code, "is no backup" in damaged.stderr) == (1, True)
