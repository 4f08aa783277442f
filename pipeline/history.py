"""The history: one short transaction per batch, and what it replaced is kept."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from metrics import METRICS, WHOLE
from pipeline.batch import DATABASE, info, now
from pipeline.durable import begin_again
from pipeline.errors import AuditError
from pipeline.files import file_digest
from pipeline.ledger import WITHOUT_ROWS
from pipeline.privacy.shown import Shown
from pipeline.sealing import (
    checked,
    discard,
    file_of,
    has_history,
    only_begun,
    sealed,
    settle,
    told,
)
from pipeline.settings import JOIN, Settings
from pipeline.store import (
    Tell,
    attach,
    create,
    remove_database,
    spill_of,
    store_of,
    transaction,
    working,
)
from schemas.assessments import ASSESSMENTS, GATES
from schemas.columns import Table, literal, quoted
from schemas.tables import (
    BATCHES,
    COUNTS_OF_HISTORY,
    FAIRNESS_HISTORY,
    HISTORY,
    HISTORY_TABLES,
    LABEL,
    SUPERSEDED,
    WAYS,
)

HISTORY_DATABASE = "history"
_BEGINS_AS = {"verdict": "status", "verdict_reason": "status_reason"}
"""Columns of a newer version that begin as a copy of an older one."""
Row = dict[str, Any]
Manifest = dict[str, Row]


@dataclass(frozen=True)
class Merged:
    """What merging a batch did: its revision, whether anything changed, and what is strange."""

    revision: int
    changed: bool
    scores: int
    notes: tuple[str, ...] = ()


@contextmanager
def open_history(
    settings: Settings, *, read_only: bool = False, waiting: Tell | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A session with the history attached; waits for its lock as long as the settings say.

    StoreDamaged where the history is not what the ledger says it is.
    """
    store = store_of(settings)
    store.make()
    has_history(store)
    with working(settings, [store.root]) as connection:
        if only_begun(store):
            _begin_again(connection, settings)
            read_only = False
        _attach(connection, settings, read_only=read_only, waiting=waiting)
        end = checked(connection, store)
        begun = end is not None and None not in end.heads
        if read_only and not begun and not has_table(connection, BATCHES):
            # Whoever made the file was killed before it held anything.
            connection.execute(f"DETACH {HISTORY_DATABASE}")
            read_only = False
            _attach(connection, settings, read_only=read_only, waiting=waiting)
        if not read_only:
            create_missing(connection)
            settle(connection, store, end)
        yield connection


def _begin_again(connection: duckdb.DuckDBPyConnection, settings: Settings) -> None:
    """Put an empty history in the place of one that the first run of all did not finish."""
    empty = spill_of(settings) / f"empty.{os.getpid()}.duckdb"
    try:
        attach(connection, empty, "empty")
        connection.execute("DETACH empty")
        begin_again(store_of(settings).history, empty.read_bytes())
    finally:
        remove_database(empty)


def _attach(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    *,
    read_only: bool,
    waiting: Tell | None,
) -> None:
    attach(
        connection,
        store_of(settings).history,
        HISTORY_DATABASE,
        read_only=read_only,
        patience=settings.busy_seconds,
        waiting=waiting,
    )


def has_table(connection: duckdb.DuckDBPyConnection, table: Table) -> bool:
    """Whether the history has ``table``: one of an older version, opened for reading, may not."""
    rows = connection.execute(
        "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND table_name = ?",
        [HISTORY_DATABASE, table.name],
    ).fetchall()
    return bool(rows)


def create_missing(connection: duckdb.DuckDBPyConnection) -> None:
    """Create what the history lacks: all tables at first, later the columns of newer versions.

    An added column is null in rows that were written before it, or a copy where it names what
    another column used to say.
    """
    there: dict[str, set[str]] = {}
    for table, column in connection.execute(
        "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = ?",
        [HISTORY_DATABASE],
    ).fetchall():
        there.setdefault(table, set()).add(column)
    missing = [table for table in HISTORY_TABLES if table.name not in there]
    if missing:
        with transaction(connection):
            create(connection, HISTORY_DATABASE, *missing)
    for wanted in HISTORY_TABLES:
        for added in () if wanted in missing else wanted.columns:
            if added.name not in there[wanted.name]:
                with transaction(connection):
                    connection.execute(
                        f"ALTER TABLE {HISTORY_DATABASE}.{wanted.name} "
                        f"ADD COLUMN {quoted(added.name)} {added.type}"
                    )
                    if added.name in _BEGINS_AS:
                        connection.execute(
                            f"UPDATE {HISTORY_DATABASE}.{wanted.name} "
                            f"SET {quoted(added.name)} = {_BEGINS_AS[added.name]}"
                        )


def newest_batch(settings: Settings) -> str | None:
    """The last batch, by key, that has scores; None without any."""
    done = [batch for batch, row in manifest(settings).items() if row["revision"]]
    return max(done, default=None)


def manifest(settings: Settings, waiting: Tell | None = None) -> Manifest:
    """The last attempt at each batch, by batch; empty without a history.

    With its ``breaches``, and whether a gate keeps it from being judged: ``gated``.
    """
    if not has_history(store_of(settings)):
        return {}
    with open_history(settings, read_only=True, waiting=waiting) as connection:
        failed = "SELECT NULL AS batch"
        if has_table(connection, GATES):
            failed = "SELECT batch FROM history.gates WHERE NOT passed"
        rows = connection.sql(
            "SELECT *, (SELECT count(*) FROM history.fairness_history AS scores "
            "WHERE scores.batch = batches.batch AND scores.status = 'breach') AS breaches, "
            f"EXISTS (FROM ({failed}) AS gates WHERE gates.batch = batches.batch) AS gated "
            "FROM history.batches ORDER BY batch"
        ).to_arrow_table()
    # A history that was not written to since an upgrade lacks what is new.
    return {row["batch"]: {**dict.fromkeys(BATCHES.names), **row} for row in rows.to_pylist()}


def _current(connection: duckdb.DuckDBPyConnection, batch: str) -> dict[str, Any] | None:
    rows = connection.sql(
        f"FROM {HISTORY_DATABASE}.batches WHERE batch = ?", params=[batch]
    ).to_arrow_table()
    return rows.to_pylist()[0] if rows.num_rows else None


def same_result(row: dict[str, Any] | None, other: dict[str, Any]) -> bool:
    """Whether two attempts read the same input with the same settings and code, and were done."""
    names = ("input_hash", "config_hash", "code_version")
    return (
        row is not None
        and row["status"] == other["status"] == "done"
        and all(row[name] == other[name] for name in names)
    )


def write_manifest(connection: duckdb.DuckDBPyConnection, row: dict[str, Any]) -> None:
    """Put ``row`` in the place of the batch's row of the manifest, within a transaction."""
    connection.execute(f"DELETE FROM {HISTORY_DATABASE}.batches WHERE batch = ?", [row["batch"]])
    marks = ", ".join("?" for _ in BATCHES.names)
    connection.execute(
        f"INSERT INTO {HISTORY_DATABASE}.batches ({BATCHES.column_list}) VALUES ({marks})",
        [row[name] for name in BATCHES.names],
    )


def record(settings: Settings, row: dict[str, Any], waiting: Tell | None = None) -> int:
    """Note an attempt that produced no scores; returns the revision whose scores stay current.

    A batch that has scores and merely lost its files keeps its manifest row.
    """
    with open_history(settings, waiting=waiting) as connection:
        before = _current(connection, row["batch"])
        revision = before["revision"] if before else 0
        if not (revision and row["status"] == "no_data" and not row["input_hash"]):
            row = {**row, "revision": revision}
            with sealed(connection, store_of(settings), "note", told(row)):
                write_manifest(connection, row)
    return int(revision)


def merge(
    settings: Settings,
    batch: str,
    run_id: str,
    *,
    force: bool = False,
    waiting: Tell | None = None,
) -> Merged:
    """Put what a run computed, or what the batch's file holds, into the history.

    The staged file of the run takes the place of the batch's file.  Rows of an earlier revision
    move to the superseded tables.  Same input, settings and code change nothing, unless forced.
    """
    store = store_of(settings)
    path = store.current(batch, run_id)
    try:
        file = {"batch": batch, "staged": run_id, "sha256": file_digest(path)}
        with open_history(settings, waiting=waiting) as connection:
            attach(connection, path, DATABASE, read_only=True, patience=settings.busy_seconds)
            new, before = info(connection), _current(connection, batch)
            scores = _count(connection, f"{DATABASE}.fairness_history", batch)
            revision = before["revision"] if before else 0
            if same_result(before, new) and not force:
                if not store.batch(batch).exists():
                    with sealed(connection, store, "file", file):
                        pass
                return Merged(revision, changed=False, scores=scores)
            row = {**new, "revision": revision + 1}
            notes = _new_groups(connection, settings, batch)
            facts = {**told(row), **file}
            with sealed(
                connection,
                store,
                "merge",
                facts,
                lambda: _read_back(connection, batch, new["run_id"], scores),
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
    waiting: Tell | None = None,
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
        with open_history(settings, waiting=waiting) as connection:
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


def _new_groups(
    connection: duckdb.DuckDBPyConnection, settings: Settings, batch: str
) -> tuple[str, ...]:
    """Remarks on groups of the attached batch file that no other batch has: often misspelt ones."""
    table, other = f"{HISTORY_DATABASE}.group_history", "batch <> ?"
    found = connection.execute(
        f"SELECT attribute, group_value FROM {DATABASE}.group_history "
        f"WHERE NOT contains(attribute, {literal(JOIN)}) "
        f"AND attribute IN (SELECT attribute FROM {table} WHERE {other}) "
        f"EXCEPT SELECT attribute, group_value FROM {table} WHERE {other} ORDER BY ALL",
        [batch, batch],
    ).fetchall()
    if settings.privacy.min_cell > 1:
        names = dict.fromkeys(name for name, _ in found)
        return tuple(f"{name}: a group that no other batch has" for name in names)
    return tuple(f"{name}: no other batch has the group {group!r}" for name, group in found)


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
    copies = [f"{was} AS {name}" for name, was in _BEGINS_AS.items() if name in table.names]
    return ", ".join([f"{revision} AS revision", *copies])


def _count(connection: duckdb.DuckDBPyConnection, table: str, batch: str) -> int:
    rows = connection.execute(f"SELECT count(*) FROM {table} WHERE batch = ?", [batch]).fetchall()
    return int(rows[0][0])


def _read_back(connection: duckdb.DuckDBPyConnection, batch: str, run_id: str, scores: int) -> None:
    """A commit that reported success is believed only when its rows are there."""
    row = _current(connection, batch)
    stored = _count(connection, f"{HISTORY_DATABASE}.fairness_history", batch)
    if row is None or row["run_id"] != run_id or stored != scores:
        raise AuditError(
            f"{batch}: the history did not keep what was committed "
            f"({stored} of {scores} scores); the batch file is whole, run the batch again"
        )


def labelled(settings: Settings, where: str = "true", values: Sequence[Any] = ()) -> list[Row]:
    """Current scores with their label, filtered by a SQL condition on bound values.

    Whole batches come before slices.  Read from the history itself, so that a run sees what it
    has just merged; what is about too few is left out or told without numbers.
    """
    if not has_history(store_of(settings)):
        return []
    with open_history(settings, read_only=True) as connection:
        # A history that was not written to since an upgrade lacks what is new.
        there = connection.sql(f"FROM {HISTORY_DATABASE}.fairness_history LIMIT 0").columns
        absent = "".join(
            f", NULL::{column.type} AS {quoted(column.name)}"
            for column in FAIRNESS_HISTORY.columns
            if column.name not in there
        )
        found = connection.sql(
            f"SELECT *{absent}, {LABEL} AS label "
            f"FROM {Shown(connection, settings).table(FAIRNESS_HISTORY)} WHERE {where} "
            "ORDER BY slice <> 'all', batch, slice, slice_value, attribute, "
            "list_position(?, regexp_extract(metric, '^[A-Za-z0-9]+')), metric, "
            "list_position(?, aggregation)",
            params=[
                *values,
                [metric.name for metric in METRICS],
                WAYS,
            ],
        )
        return [dict(row) for row in found.to_arrow_table().to_pylist()]


def breaches(settings: Settings, batches: Sequence[str]) -> list[Row]:
    """Scores of ``batches`` that are beyond their threshold and may be told; slices come last."""
    return labelled(settings, "status = 'breach' AND list_contains(?, batch)", [list(batches)])


def verdicts(settings: Settings, batches: Sequence[str]) -> dict[str, int]:
    """How many scores have each status; where nothing can be told, of whole batches only.

    Small slices lack groups every day, which is no news.
    """
    if not has_history(store_of(settings)):
        return {}
    with open_history(settings, read_only=True) as connection:
        rows = connection.execute(
            f"SELECT status, count(*) FROM {HISTORY_DATABASE}.fairness_history "
            "WHERE (slice = ? OR status NOT IN ('undefined', 'insufficient')) "
            "AND list_contains(?, batch) "
            "GROUP BY status",
            [WHOLE, list(batches)],
        ).fetchall()
    return dict(rows)
