"""Changes of the history that the ledger announces, and what becomes of interrupted ones.

The history says in ``ledger_head`` which entry of the ledger it is at, in the same transaction as
the change itself.  So whoever opens it next knows whether a change without a closing line was
committed, and whether the history or the ledger has been put back, cut or lost.

Not here: the lines of the ledger (``ledger``), and what is changed (``merging``).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from pipeline.errors import AuditError, StoreDamaged
from pipeline.history.holdings import all_holdings, holdings
from pipeline.history.ledger import (
    DROPPED,
    FORGET,
    HOLDS,
    KEPT,
    VOUCH,
    WHOLE,
    End,
    Ledger,
    Line,
    mismatch,
)
from pipeline.history.ledger_state import TOLD
from pipeline.history.proof import note_history
from pipeline.history.result_digests import held
from pipeline.store.checkpoints import checkpoint, is_begun, remove_database
from pipeline.store.files import file_digest, make_durable, replace_file, sync_folder
from pipeline.store.paths import Store
from pipeline.store.seen import note
from pipeline.store.tables import transaction
from schemas.history import BATCHES, LEDGER_HEAD

_HEAD = f"history.{LEDGER_HEAD.name}"


@contextmanager
def sealed(
    connection: duckdb.DuckDBPyConnection,
    store: Store,
    event: str,
    facts: Mapping[str, Any],
    check: Callable[[], None] = lambda: None,
    *,
    writes: Mapping[str, Iterable[str]] | None = None,
) -> Iterator[None]:
    """A transaction on the history, announced in the ledger before its commit and closed after.

    ``facts`` that name a ``staged`` file, by the run that made it, put it in the place of the
    file of their ``batch``; to FORGET a batch removes its files.  ``writes`` are parts of the
    history that the change writes, with the batches or alerts concerned (``holdings.PARTS``): their
    digests are announced too.  ``check`` is called after the commit and raises where what was
    committed is not there.
    """
    head = read_head(connection)
    ledger = Ledger(store.ledger)
    if "staged" in facts and (staged := store.staged(facts["batch"], facts["staged"])).exists():
        make_durable(staged)
    with transaction(connection):
        yield
        digests = all_holdings(connection) if event in WHOLE else holdings(connection, writes or {})
        entry = ledger.announce(event, head[1] if head else None, {**facts, HOLDS: digests})
        write_head(connection, entry)
    if read_head(connection) != (entry["line"], entry["hash"]):
        raise AuditError(
            f"{store.history}: did not keep what was committed (line {entry['line']} of the "
            "ledger); run the same command again"
        )
    check()
    _finish(connection, store, entry)
    if "staged" in entry:
        note(store, store.batch(entry["batch"]), sha256=entry["sha256"])
    note_history(store, entry["hash"], vouched=True)


def _finish(connection: duckdb.DuckDBPyConnection, store: Store, entry: Line) -> None:
    """Do what follows the commit of ``entry``; doing it twice does no harm."""
    # Without its name, the log with the commit would be lost with the power.
    sync_folder(store.root)
    if "staged" in entry:
        staged = store.staged(entry["batch"], entry["staged"])
        if staged.exists():
            replace_file(staged, store.batch(entry["batch"]))
    checkpoint(connection, "history")
    if entry["event"] == FORGET:
        for path in files_of_batch(store, entry["batch"]):
            remove_database(path)
            sync_folder(path.parent)
    Ledger(store.ledger).close(entry, KEPT)


def files_of_batch(store: Store, batch: str) -> tuple[Path, ...]:
    """Where files of a batch lie, if it has any: what was accepted, and what was refused."""
    return store.batch(batch), store.refused(batch)


def _drop(store: Store, entry: Line) -> None:
    """Forget a change that was announced and not committed."""
    if "staged" in entry:
        remove_database(store.staged(entry["batch"], entry["staged"]))
    Ledger(store.ledger).close(entry, DROPPED)


def read_head(
    connection: duckdb.DuckDBPyConnection, database: str = "history"
) -> tuple[int, str] | None:
    """Line and digest of the entry that a history, or a copy, is at; None before the first."""
    there = connection.execute(
        "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND table_name = ?",
        [database, LEDGER_HEAD.name],
    ).fetchall()
    head = f"SELECT line, hash FROM {database}.{LEDGER_HEAD.name}"
    rows = connection.execute(head).fetchall() if there else []
    return (rows[0][0], rows[0][1]) if rows else None


def write_head(connection: duckdb.DuckDBPyConnection, entry: Line) -> None:
    """Note that the history is at ``entry``, a line of the ledger."""
    connection.execute(f"DELETE FROM {_HEAD}")
    connection.execute(f"INSERT INTO {_HEAD} VALUES (?, ?)", [entry["line"], entry["hash"]])


def only_begun(store: Store) -> bool:
    """Whether the first run of all was killed before the history was a database."""
    return (
        is_begun(store.history)
        and Ledger(store.ledger).end() is None
        and not any((store.root / "batches").glob("*.duckdb"))
    )


def has_history(store: Store) -> bool:
    """Whether there is a history; StoreDamaged where the ledger tells of one that is gone."""
    if store.history.exists():
        return True
    end = Ledger(store.ledger).end()
    # A history that a ledger was about to begin with may have held something too.
    if end is not None and (None not in end.heads or end.entry.get("batches")):
        raise mismatch(Ledger(store.ledger), None)
    if end is None:
        check_nothing_lost(store)
    return False


def check_nothing_lost(store: Store) -> None:
    """StoreDamaged where there are files of batches, though no history and no ledger.

    A file gets the name of its batch after the ledger said so, durably: a first run that was killed
    leaves none.
    """
    files = sorted(path.name for path in (store.root / "batches").glob("*.duckdb"))
    if files:
        shown = ", ".join(files[:5]) + (f" and {len(files) - 5:,} more" if len(files) > 5 else "")
        raise StoreDamaged(
            f"{store.root}: history.duckdb and ledger.jsonl are lost: batches/ has {shown}. "
            "Nothing was changed.\n"
            "  `evenrank restore` puts back a backup, `evenrank rebuild` makes the history again\n"
            "  from the batch files. Where they are to be forgotten, take them away."
        )


def checked(connection: duckdb.DuckDBPyConnection, store: Store) -> End | None:
    """The end of the ledger; StoreDamaged where it and the history do not go together.

    A history of before there were ledgers goes with none.
    """
    ledger, head = Ledger(store.ledger), read_head(connection)
    end = ledger.end()
    if (head[1] if head else None) not in (end.heads if end else (None,)):
        raise mismatch(ledger, head)
    return end


def settle(
    connection: duckdb.DuckDBPyConnection, store: Store, end: End | None, *, vouched: bool
) -> None:
    """Close what an interrupted change left open, and begin a ledger where there is none.

    ``end`` is what ``checked`` gave.  Where not all is ``vouched`` for by digests in the ledger, as
    in a store of an older version, it is from here on.
    """
    head = read_head(connection)
    if end is not None and end.closing is None:
        if head and head[1] == end.entry["hash"]:
            _finish(connection, store, end.entry)
        else:
            _drop(store, end.entry)
    if head is None:
        facts = {"batches": _before(connection, store), **held(connection)}
        with sealed(connection, store, "begin", facts):
            pass
    elif not vouched:
        with sealed(connection, store, VOUCH, {}):
            pass


def discard(store: Store, batch: str, run_id: str) -> None:
    """Remove the staged file of a run, unless an interrupted change may still need it."""
    if not needed(store, run_id):
        remove_database(store.staged(batch, run_id))


def needed(store: Store, run_id: str) -> bool:
    """Whether an interrupted change may need the staged file of a run, or nobody knows."""
    try:
        end = Ledger(store.ledger).end()
    except StoreDamaged:
        return True
    return end is not None and end.closing is None and end.entry.get("staged") == run_id


def _before(connection: duckdb.DuckDBPyConnection, store: Store) -> list[dict[str, Any]]:
    """What a history holds that is older than its ledger: nobody can vouch for it."""
    rows = connection.sql(f"FROM history.{BATCHES.name} ORDER BY batch").to_arrow_table()
    return [
        told(row) | {"result_hash": None} | file_of(store, row["batch"]) for row in rows.to_pylist()
    ]


def told(row: dict[str, Any]) -> dict[str, Any]:
    """What the ledger says of an attempt at a batch, from its row of the manifest."""
    return {name: row.get(name) for name in TOLD}


def file_of(store: Store, batch: str) -> dict[str, str]:
    """The digest of the file that a batch has, if it has one."""
    path = store.batch(batch)
    return {"sha256": file_digest(path)} if path.exists() else {}
