"""The history: one short transaction per batch, and what it replaced is kept.

Not here: how a change outlives a crash (``commits``), whether it is one (``manifest``), and what is
said of new groups (``new_groups``).
"""

from dataclasses import dataclass
from typing import Any

import duckdb

from pipeline.errors import AuditError
from pipeline.history.commits import discard, file_of, sealed, told
from pipeline.history.ledger import WITHOUT_ROWS
from pipeline.history.manifest import OF_SCORES, current_row, same_result, write_manifest
from pipeline.history.new_groups import remarks_on_new_groups
from pipeline.history.opening import BEGINS_AS, HISTORY_DATABASE, open_history
from pipeline.history.proof import check_batch_file
from pipeline.settings.audit import Settings
from pipeline.store.batch_files import DATABASE, info
from pipeline.store.files import file_digest
from pipeline.store.paths import store_of
from pipeline.store.sessions import attach
from pipeline.store.tables import now
from schemas.columns import Table
from schemas.history import COUNTS_OF_HISTORY, HISTORY, SUPERSEDED
from schemas.monitoring import ASSESSMENTS


@dataclass(frozen=True)
class Merged:
    """What merging a batch did: its revision, whether anything changed, and what is strange."""

    revision: int
    changed: bool
    scores: int
    notes: tuple[str, ...] = ()


def record(settings: Settings, row: dict[str, Any]) -> int:
    """Note an attempt that produced no scores; returns the revision whose scores stay current.

    A batch that has scores and merely lost its files keeps its manifest row.
    """
    with open_history(settings) as connection:
        before = current_row(connection, row["batch"])
        revision = before["revision"] if before else 0
        if not (revision and row["status"] == "no_data" and not row["input_hash"]):
            kept = {name: before[name] for name in OF_SCORES} if before else {}
            row = {**row, **kept, "revision": revision}
            with sealed(
                connection,
                store_of(settings),
                "note",
                told(row),
                writes={"manifest": [row["batch"]]},
            ):
                write_manifest(connection, row)
    return int(revision)


def merge(
    settings: Settings,
    batch: str,
    run_id: str,
    *,
    force: bool = False,
) -> Merged:
    """Put what a run computed, or what the batch's file holds, into the history.

    The staged file of the run takes the place of the batch's file.  Rows of an earlier revision
    move to the superseded tables.  Same input, settings and code change nothing, unless forced.
    """
    store = store_of(settings)
    path = store.current(batch, run_id)
    if path == store.batch(batch):
        check_batch_file(store, batch)
    try:
        file = {"batch": batch, "staged": run_id, "sha256": file_digest(path)}
        with open_history(settings) as connection:
            attach(connection, path, DATABASE, read_only=True, patience=settings.busy_seconds)
            new, before = info(connection), current_row(connection, batch)
            scores = _count(connection, f"{DATABASE}.fairness_history", batch)
            revision = before["revision"] if before else 0
            if same_result(before, new) and not force:
                if not store.batch(batch).exists():
                    with sealed(connection, store, "file", file):
                        pass
                return Merged(revision, changed=False, scores=scores)
            row = {**new, "revision": revision + 1}
            notes = remarks_on_new_groups(connection, settings, batch)
            facts = {**told(row), **file}
            with sealed(
                connection,
                store,
                "merge",
                facts,
                lambda: _read_back(connection, batch, new["run_id"], scores),
                writes={part: [batch] for part in ("manifest", "results", "statuses")},
            ):
                _supersede(connection, batch)
                put(connection, row)
                due_again(connection, "batch = ?", batch)
        return Merged(revision + 1, changed=True, scores=scores, notes=notes)
    finally:
        discard(store, batch, run_id)


def place(
    settings: Settings,
    batch: str,
    run_id: str,
    *,
    instead_of: str | None = None,
    without_rows: bool = False,
) -> None:
    """Put the staged file of a run in the place of the batch's file; the history stays as it is.

    For runs that stop short of the history: a later one goes on with the file.  ``instead_of`` is
    the digest of the only file that it may replace.
    """
    store = store_of(settings)
    staged = store.staged(batch, run_id)
    if not staged.exists():
        return
    try:
        file = {"batch": batch, "staged": run_id, "sha256": file_digest(staged)}
        with open_history(settings) as connection:
            if instead_of in (None, file_of(store, batch).get("sha256")):
                facts = {**file, WITHOUT_ROWS: without_rows}
                with sealed(connection, store, "file", facts):
                    pass
    finally:
        discard(store, batch, run_id)


def put(connection: duckdb.DuckDBPyConnection, row: dict[str, Any]) -> None:
    """Put scores, counts and manifest ``row`` of the attached batch file into the history.

    Within a transaction; nothing else of the batch is current then.
    """
    batch = row["batch"]
    for table in HISTORY:
        _replace(connection, batch, table.name, f"SELECT *, {_added(table, row['revision'])}")
    for table in COUNTS_OF_HISTORY:
        _replace(connection, batch, table.name, "SELECT *, ? AS batch", batch)
    write_manifest(connection, row)


def _supersede(connection: duckdb.DuckDBPyConnection, batch: str) -> None:
    """Move the scores that a batch has to the superseded tables, within a transaction."""
    for table, kept in zip(HISTORY, SUPERSEDED, strict=True):
        columns = table.column_list
        connection.execute(
            f"INSERT INTO {HISTORY_DATABASE}.{kept.name} ({columns}, replaced_at) "
            f"SELECT {columns}, ? FROM {HISTORY_DATABASE}.{table.name} WHERE batch = ?",
            [now(), batch],
        )


def _replace(
    connection: duckdb.DuckDBPyConnection, batch: str, name: str, select: str, *values: str
) -> None:
    connection.execute(f"DELETE FROM {HISTORY_DATABASE}.{name} WHERE batch = ?", [batch])
    connection.execute(
        f"INSERT INTO {HISTORY_DATABASE}.{name} BY NAME {select} FROM {DATABASE}.{name}",
        list(values),
    )


def due_again(connection: duckdb.DuckDBPyConnection, where: str, *values: Any) -> None:
    """Note that assessments of some batches no longer stand, within a transaction."""
    connection.execute(
        f"UPDATE {HISTORY_DATABASE}.{ASSESSMENTS.name} SET assessed_at = NULL WHERE {where}",
        list(values),
    )


def _added(table: Table, revision: int) -> str:
    """What the history says about rows of ``table`` beside what the batch file says."""
    copies = [f"{was} AS {name}" for name, was in BEGINS_AS.items() if name in table.names]
    return ", ".join([f"{revision} AS revision", *copies])


def _count(connection: duckdb.DuckDBPyConnection, table: str, batch: str) -> int:
    rows = connection.execute(f"SELECT count(*) FROM {table} WHERE batch = ?", [batch]).fetchall()
    return int(rows[0][0])


def _read_back(connection: duckdb.DuckDBPyConnection, batch: str, run_id: str, scores: int) -> None:
    """A commit that reported success is believed only when its rows are there."""
    row = current_row(connection, batch)
    stored = _count(connection, f"{HISTORY_DATABASE}.fairness_history", batch)
    if row is None or row["run_id"] != run_id or stored != scores:
        raise AuditError(
            f"{batch}: the history did not keep what was committed "
            f"({stored} of {scores} scores); the batch file is whole, run the batch again"
        )
