"""Copies of the store: made of what the ledger vouches for, and put back whole.

Not here: whether a backup is what was made (``backup_check``).
"""

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import copyfile, rmtree

import duckdb

from pipeline.errors import AuditError, NoData, SettingsError, StoreDamaged, several
from pipeline.history.commits import has_history, read_head, sealed
from pipeline.history.ledger import Ledger
from pipeline.history.ledger_state import told_by
from pipeline.history.opening import HISTORY_DATABASE, open_history
from pipeline.integrity.backup_check import MANIFEST, checked_manifest, problems_inside
from pipeline.integrity.read_only import open_as_is
from pipeline.integrity.set_aside import free_name
from pipeline.integrity.verify import Progress
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import check_batch_key
from pipeline.store.checkpoints import remove_database
from pipeline.store.files import file_digest, replace_file, sync_folder
from pipeline.store.paths import Store, store_of
from pipeline.store.sessions import attach, working

_COPY = "backup"
_ATTEMPTS = 5
"""Copies that are begun: a run that ends meanwhile costs one, and five such in a row are a store
that is never quiet."""


@dataclass(frozen=True)
class Backup:
    """A copy of a store: where it lies, how many files and bytes, and the ledger's last line."""

    path: str
    files: int
    bytes: int
    line: int
    hash: str


def backup(
    settings: Settings,
    to: Path,
    *,
    progress: Progress = lambda done, of: None,
) -> Backup:
    """Copy history, ledger, batch files and refused rows to the new folder ``to``.

    The history is held for the moment in which it is copied.  Batch files never change, so they are
    copied afterwards and compared with the ledger; where a run has replaced one meanwhile, history
    and ledger are copied again.  Then the copy is looked at as ``verify`` looks at a store.
    SettingsError where ``to`` exists; StoreDamaged names what is not as the ledger says: then
    nothing is left in ``to``.
    """
    if to.exists():
        raise SettingsError(f"{to}: is there already; name a folder that is not")
    store = store_of(settings)
    if not has_history(store) and Ledger(store.ledger).end() is None:
        raise NoData(f"{store.root}: there is no history yet; run a batch first")
    unfinished = to.with_name(f"{to.name}.{os.getpid()}.part")
    rmtree(unfinished, ignore_errors=True)
    try:
        (unfinished / "batches").mkdir(parents=True)
        (unfinished / "refused").mkdir()
        head = _copied(settings, store, unfinished, progress)
        if problems := problems_inside(settings, unfinished):
            advice = "`evenrank verify` tells all of it. No backup was made."
            raise StoreDamaged(several(f"{store.root}: is damaged", problems, advice))
        files = {
            str(path.relative_to(unfinished)): file_digest(path)
            for path in sorted(unfinished.rglob("*"))
            if path.is_file()
        }
        manifest = {"made_at": datetime.now(UTC).isoformat(), "head": head, "files": files}
        (unfinished / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        _make_durable(unfinished)
        unfinished.rename(to)
        sync_folder(to.parent)
    except OSError as error:
        raise AuditError(f"{error.filename or to}: {error.strerror}; nothing was kept") from None
    finally:
        rmtree(unfinished, ignore_errors=True)
    size = sum((to / name).stat().st_size for name in files)
    return Backup(str(to), len(files), size, *head)


def _copied(
    settings: Settings, store: Store, unfinished: Path, progress: Progress
) -> tuple[int, str]:
    """Copy a store that may be written to; returns line and digest that the copy is at."""
    problems: list[str] = []
    for _ in range(_ATTEMPTS):
        head = _copy_history(settings, store, unfinished)
        record = Ledger(unfinished / "ledger.jsonl").read()
        if record.problems:
            raise StoreDamaged(several(f"{store.ledger}: is damaged", record.problems))
        current = told_by(record.kept).current
        problems = []
        for at, (batch, digest) in enumerate(sorted(current.items())):
            progress(at, len(current))
            copy = unfinished / "batches" / f"{check_batch_key(batch)}.duckdb"
            if not copy.exists() or file_digest(copy) != digest:
                problem = _copy_file(store.batch(batch), copy, digest)
                problems += [problem] if problem else []
        if not problems:
            break
        end = Ledger(store.ledger).end()
        if end is None or end.last["hash"] == record.lines[-1]["hash"]:
            advice = "`evenrank verify` tells all of it. No backup was made."
            raise StoreDamaged(several("files are not what they were", problems, advice))
    else:
        raise AuditError(several("the store changes too fast to be copied", problems))
    for path in (store.root / "refused").glob("*.duckdb"):
        with suppress(FileNotFoundError):
            copyfile(path, unfinished / "refused" / path.name)
    return head


def _copy_history(settings: Settings, store: Store, unfinished: Path) -> tuple[int, str]:
    """Copy history and ledger as they are at one moment."""
    copy = store.root / f"backup.{os.getpid()}.new.duckdb"
    remove_database(copy)
    try:
        with open_history(settings) as connection:
            attach(connection, copy, _COPY)
            connection.execute(f"COPY FROM DATABASE {HISTORY_DATABASE} TO {_COPY}")
            connection.execute(f"CHECKPOINT {_COPY}")
            head = read_head(connection)
            copyfile(store.ledger, unfinished / "ledger.jsonl")
        copyfile(copy, unfinished / "history.duckdb")
    except duckdb.Error as error:
        raise StoreDamaged(f"{store.history}: {str(error).splitlines()[0]}") from None
    finally:
        remove_database(copy)
    if head is None:
        raise AuditError(f"{store.history}: is at no line of the ledger")
    return head


def _copy_file(path: Path, copy: Path, digest: str) -> str | None:
    """Copy a batch file; what is wrong with it, None where it is what it should be."""
    try:
        copyfile(path, copy)
    except FileNotFoundError:
        return f"{path}: is missing"
    except IsADirectoryError as error:
        return f"{path}: cannot be read: {error.strerror}"
    if file_digest(copy) != digest:
        return f"{path}: is not what the ledger says"
    return None


def _make_durable(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        else:
            sync_folder(path)
    sync_folder(folder)


def restore(
    settings: Settings,
    source: Path,
    *,
    replace: bool = False,
) -> Path | None:
    """Put a backup in the place of the store; returns where the former files lie, None without any.

    The backup is compared with its manifest and its ledger first.  SettingsError where the store
    holds anything and ``replace`` is not said; StoreBusy where somebody writes to it.
    """
    manifest = checked_manifest(settings, source)
    store = store_of(settings)
    former = [path for path in _contents(store) if path.exists()]
    if former and not replace:
        raise SettingsError(
            f"{store.root}: is no empty store; --replace puts what is there aside first"
        )
    aside = None
    if former:
        aside = free_name(store.root / "replaced", "")
        with working(settings, [store.root]) as connection:
            open_as_is(settings, connection, store, HISTORY_DATABASE)
            aside.mkdir()
            for path in former:
                if path == store.ledger:
                    copyfile(path, aside / path.name)
                else:
                    path.rename(aside / path.name)
    store.make()
    # There is a ledger all the time, and the history comes last: until then, whoever opens the
    # store is told that the history is missing, and nobody begins another.
    for name in sorted(manifest["files"], key=_place):
        target = store.root / name
        new = target.with_name(f"{target.name}.part")
        try:
            copyfile(source / name, new)
            replace_file(new, target)
        finally:
            new.unlink(missing_ok=True)
    facts = {"head": manifest["head"], "made_at": manifest["made_at"]}
    with (
        open_history(settings) as connection,
        sealed(connection, store, "restore", facts),
    ):
        pass
    return aside


def _place(name: str) -> int:
    return {"ledger.jsonl": 0, "history.duckdb": 2}.get(name, 1)


def _contents(store: Store) -> list[Path]:
    """What a store is made of; folders only where they hold anything."""
    folders = [store.root / name for name in ("batches", "refused", "staged")]
    return [
        *store.root.glob("history.*"),
        store.ledger,
        *store.root.glob("dashboard.*"),
        *(folder for folder in folders if folder.is_dir() and any(folder.iterdir())),
    ]
