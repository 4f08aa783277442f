"""Whether the store holds what was committed: every file read, nothing written.

Not here: comparing single tables (``checks``), and mending anything (``rebuild``, ``backup``).
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from pipeline.errors import AuditError, StoreBusy, StoreDamaged
from pipeline.history.commits import only_begun, read_head
from pipeline.history.ledger import FORGET, Ledger, Record, mismatch
from pipeline.history.ledger_state import Told, told_by
from pipeline.history.opening import HISTORY_DATABASE, is_of_before
from pipeline.history.proof import history_problems
from pipeline.integrity.checks import alike, scan
from pipeline.integrity.published_copy import copy_problem
from pipeline.integrity.read_only import open_as_is, why
from pipeline.monitoring.assess import differing_tables
from pipeline.settings.audit import Settings
from pipeline.store.files import file_digest
from pipeline.store.paths import Store, store_of
from pipeline.store.seen import is_seen, note, stamp
from pipeline.store.sessions import SPILLED, attach, working
from schemas.history import BATCHES

Progress = Callable[[int, int], object]
_FILE = "batch"


@dataclass
class Verified:
    """What a look at everything found.

    ``problems``: what is lost, torn, changed or unknown, a text each.  ``unfinished``: what was
    interrupted and the next run settles.  ``head``: line and digest of the ledger's last line.
    ``skipped``: batch files that were not read again.  The rest counts what was looked at.
    """

    problems: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    head: tuple[int, str] | None = None
    batches: int = 0
    revisions: int = 0
    files: int = 0
    skipped: int = 0
    bytes: int = 0
    rows: int = 0


def verify(
    settings: Settings,
    *,
    expect: str | None = None,
    changed: bool = False,
    progress: Progress = lambda done, of: None,
) -> Verified:
    """Read every file of the store, and compare them with the ledger and with one another.

    ``expect`` is the digest of a line of the ledger that was noted elsewhere: a ledger without it
    was replaced.  ``changed``: batch files that nobody wrote to since they were looked at are not
    read again, and what is read is noted.  Otherwise nothing is written to the store.
    ``progress`` hears of batch files.  StoreBusy where another process writes.
    """
    if settings.spill is None:
        with TemporaryDirectory(prefix=SPILLED) as folder:
            elsewhere = settings.model_copy(update={"spill": folder})
            return _verified(elsewhere, expect, progress, changed=changed)
    return _verified(settings, expect, progress, changed=changed)


def _verified(
    settings: Settings, expect: str | None, progress: Progress, *, changed: bool
) -> Verified:
    store, findings = store_of(settings), Verified()
    with working(settings, [store.root]) as connection:
        problem = open_as_is(settings, connection, store, HISTORY_DATABASE)
        # Nobody writes to the ledger while the history is open here.
        record = Ledger(store.ledger).read()
        _look_at_ledger(store, record, expect, findings)
        usable = _usable(connection, problem, store, record, findings)
        recorded = _told(connection if usable else None, store, record, findings)
        if recorded is None:
            return findings
        readable = usable and _look_at_history(settings, connection, store, recorded, findings)
        _look_at_files(
            settings,
            store,
            record,
            recorded,
            connection if readable else None,
            findings,
            progress,
            changed=changed,
        )
    if readable:
        wrong, stale = copy_problem(settings, store, record)
        findings.problems += wrong
        findings.unfinished += stale
    return findings


def _look_at_ledger(store: Store, record: Record, expect: str | None, findings: Verified) -> None:
    """The chain of the ledger by itself."""
    findings.problems += [f"{store.ledger}: {problem}" for problem in record.problems]
    if record.torn:
        findings.unfinished.append(
            f"{store.ledger}: {record.torn} bytes of a line that was not finished"
        )
    if record.lines and not record.problems:
        findings.head = record.lines[-1]["line"], record.lines[-1]["hash"]
    if expect and expect not in {line.get("hash") for line in record.lines}:
        findings.problems.append(f"{store.ledger}: has no line {expect}: lines were removed")


def _usable(
    connection: duckdb.DuckDBPyConnection,
    problem: str | None,
    store: Store,
    record: Record,
    findings: Verified,
) -> bool:
    """Whether there is a history to compare with; ``problem`` is why it could not be opened."""
    begun = f"{store.history}: was not made to its end; the next run does it"
    if problem:
        if not record.lines and only_begun(store):
            findings.unfinished.append(begun)
        elif record.kept or store.history.exists():
            findings.problems.append(problem)
        return False
    with suppress(duckdb.Error):
        if not store.ledger.exists() and not _holds_batches(connection):
            findings.unfinished.append(begun)
            return False
    return True


def _holds_batches(connection: duckdb.DuckDBPyConnection) -> bool:
    there = connection.execute(
        "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND table_name = ?",
        [HISTORY_DATABASE, BATCHES.name],
    ).fetchall()
    name = f"{HISTORY_DATABASE}.{BATCHES.name}"
    return bool(there and connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchall())


def _told(
    connection: duckdb.DuckDBPyConnection | None, store: Store, record: Record, findings: Verified
) -> Told | None:
    """What there should be, None where nothing says so.

    Says where history and ledger do not go together.
    """
    head = None
    if connection is not None:
        try:
            head = read_head(connection)
            if head is None and not store.ledger.exists():
                findings.problems.append(
                    f"{store.ledger}: is not there. A store of before there were ledgers gets one "
                    "from its next run; until then nothing tells whether it is whole"
                )
                return None
            end = Ledger(store.ledger).end()
            if (head[1] if head else None) not in (end.heads if end else (None,)):
                findings.problems.append(str(mismatch(Ledger(store.ledger), head)))
        except (AuditError, duckdb.Error) as error:
            findings.problems.append(why(store.history, error))
    entries = record.up_to(head[1] if head else None)
    last = record.entries[-1:]
    if last and not record.lines[-1].get("of"):
        entry = last[0]
        about = f" of {entry['batch']}" if "batch" in entry else ""
        findings.unfinished.append(
            f"line {entry['line']} of the ledger: {entry['event']}{about} was interrupted; the "
            "next run settles it"
        )
    try:
        return told_by(entries)
    except StoreDamaged as error:
        findings.problems.append(f"{store.ledger}: {error}")
        return Told()


def _look_at_history(
    settings: Settings,
    connection: duckdb.DuckDBPyConnection,
    store: Store,
    recorded: Told,
    findings: Verified,
) -> bool:
    """The history against the ledger; False where not all of it can be read."""
    try:
        findings.rows = scan(connection, HISTORY_DATABASE)
        problems, findings.revisions = history_problems(connection, recorded, twice=True)
        findings.problems += problems
        findings.batches = len(recorded.batches)
        if is_of_before(connection):
            findings.unfinished.append(
                f"{store.history}: is of an older version; `evenrank assess` brings what follows "
                "from its scores up to date"
            )
        elif not findings.problems and (names := differing_tables(connection, settings)):
            findings.unfinished.append(
                f"{store.history}: {', '.join(names)} are not what the settings make of its "
                "scores; `evenrank assess` makes them so"
            )
    except duckdb.Error as error:
        findings.problems.append(why(store.history, error))
        return False
    return True


def _look_at_files(
    settings: Settings,
    store: Store,
    record: Record,
    recorded: Told,
    history: duckdb.DuckDBPyConnection | None,
    findings: Verified,
    progress: Progress,
    *,
    changed: bool,
) -> None:
    """Every file of a batch: its bytes against the ledger, its rows against the history."""
    path_by_batch = {
        path.name.removesuffix(".duckdb"): path for path in _databases(store.root / "batches")
    }
    last = record.lines[-1] if record.lines else {}
    interrupted = last.get("staged")
    # What was forgotten and is not closed was committed or is known: the next opening removes it.
    leaving = {last.get("batch")} if last.get("event") == FORGET else set()
    every = sorted({*path_by_batch} - leaving | {*recorded.files})
    for at, batch in enumerate(every):
        progress(at, len(every))
        waiting = store.staged(batch, interrupted) if interrupted else None
        path = path_by_batch.get(batch)
        if waiting and waiting.exists() and file_digest(waiting) == recorded.current.get(batch):
            # The change was committed; whoever opens the history next puts its file in place.
            path = waiting
        if path is None:
            findings.problems.append(
                f"{store.root / 'batches' / batch}.duckdb: is missing; put it back from a backup, "
                "or run the batch again from its logs"
            )
            continue
        current, wrong = recorded.current.get(batch), len(findings.problems)
        merged = current is not None and recorded.merged.get(batch) == current
        # What was merged of the file is held against digests, the file itself was read before.
        digested = merged and batch in recorded.holds.get("results", {})
        if changed and digested and is_seen(store, path, sha256=current):
            findings.skipped += 1
            continue
        since = [stamp(path)]
        problem = _bytes_problem(path, recorded.files.get(batch, []), store)
        if problem:
            findings.problems.append(f"{path}: {problem}")
            continue
        _count(path, findings)
        if history is not None:
            _compare(settings, path, batch, history, findings, merged=merged)
            if changed and len(findings.problems) == wrong:
                note(store, path, since=since, sha256=current)
    for path in (*store.root.glob("batches/*.wal"), *store.root.glob("refused/*.wal")):
        findings.problems.append(
            f"{path}: does not belong there, and would change what is read; take it away"
        )
    for path in _databases(store.root / "refused"):
        _scan_file(settings, path, findings)
    left = sum(path.is_file() for path in (store.root / "staged").glob("*.duckdb"))
    if left:
        findings.unfinished.append(
            f"{store.root / 'staged'}: {left} files of runs that go on or were interrupted"
        )
    if store.history.with_name("history.duckdb.wal").exists():
        findings.unfinished.append(
            f"{store.history}.wal: a process ended before it could tidy up; the next one does"
        )


def _count(path: Path, findings: Verified) -> None:
    findings.files += 1
    findings.bytes += path.stat().st_size


def _databases(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.duckdb"))


def _bytes_problem(path: Path, digests: list[tuple[str, int]], store: Store) -> str | None:
    """What is wrong with the bytes of a batch file, None where nothing is."""
    if not digests:
        return f"{store.ledger.name} knows of no such batch"
    try:
        own = file_digest(path)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if own == digests[-1][0]:
        return None
    for said, line in digests[:-1]:
        if own == said:
            return f"is an old one that was replaced since (line {line} of the ledger)"
    return (
        f"its bytes were changed since line {digests[-1][1]} of the ledger; put it back from a "
        "backup, or run the batch again from its logs with --force"
    )


def _compare(
    settings: Settings,
    path: Path,
    batch: str,
    history: duckdb.DuckDBPyConnection,
    findings: Verified,
    *,
    merged: bool,
) -> None:
    """A batch file whose bytes are right against what the history says of the batch."""
    try:
        attach(history, path, _FILE, read_only=True, patience=settings.busy_seconds)
        try:
            differing = alike(history, _FILE, batch, merged=merged)
        finally:
            history.execute(f"DETACH {_FILE}")
    except (AuditError, duckdb.Error) as error:
        findings.problems.append(why(path, error))
        return
    if differing is None:
        findings.unfinished.append(f"{batch}: is computed and not merged; run it again")
    elif differing:
        findings.problems.append(
            f"{batch}: {', '.join(differing)} of the history differ from its file; the history was "
            "changed. `evenrank rebuild` makes it again from the files"
        )


def _scan_file(settings: Settings, path: Path, findings: Verified) -> None:
    try:
        with working(settings, [path.parent]) as connection:
            attach(connection, path, _FILE, read_only=True, patience=settings.busy_seconds)
            scan(connection, _FILE)
        _count(path, findings)
    except StoreBusy:
        raise
    except (AuditError, OSError, duckdb.Error) as error:
        findings.problems.append(why(path, error))
