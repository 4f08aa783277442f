"""The history made again: from the batch files, and what the ledger has beside them.

Not here: scores computed again (``recompute``), and files of a backup (``backup``).
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from pipeline.errors import AuditError, NoData, StoreBusy
from pipeline.history.commits import file_of, read_head, sealed, told, write_head
from pipeline.history.holdings import holdings
from pipeline.history.ledger import DROPPED, KEPT, Ledger, Line, Record
from pipeline.history.ledger_state import Told, told_by
from pipeline.history.manifest import OF_SCORES, write_manifest
from pipeline.history.merging import put
from pipeline.history.opening import HISTORY_DATABASE, create_missing
from pipeline.history.result_digests import digest_of, held, revisions_of, rows_of
from pipeline.integrity.read_only import open_as_is
from pipeline.integrity.set_aside import link_aside, put_aside
from pipeline.integrity.verify import Progress
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import check_batch_key
from pipeline.store.batch_files import DATABASE, info
from pipeline.store.checkpoints import remove_database
from pipeline.store.files import file_digest, replace_file, sync_folder
from pipeline.store.paths import Store, store_of
from pipeline.store.sessions import attach, working
from pipeline.store.tables import transaction
from schemas.columns import Table, literal
from schemas.history import BATCHES, COUNTS_OF_HISTORY, HISTORY, SUPERSEDED
from schemas.monitoring import ALERT_ACTIONS, MARKERS

_FORMER = "former"
_NEW = "history.rebuilt.duckdb"


@dataclass(frozen=True)
class Rebuilt:
    """What a rebuilt history holds.

    ``left_out``: batches that could not be taken over, with the reason; ``lost``: superseded
    results that only the former history had; ``aside``: files that were replaced.
    """

    batches: tuple[str, ...]
    superseded: int
    left_out: tuple[str, ...]
    lost: tuple[str, ...]
    aside: tuple[Path, ...]


def rebuild(
    settings: Settings,
    *,
    progress: Progress = lambda done, of: None,
) -> Rebuilt:
    """Make the history again; the former one, and a ledger that is broken, are put aside.

    Results come from batch files whose bytes the ledger vouches for, or from all files where there
    is no whole ledger.  What people did and attempts without scores come from the ledger.  From
    the former history, as far as it can be read, comes what was superseded, and results whose file
    is gone; only numbers whose digest the ledger has are believed.  Assessments have to be made
    anew and the copy to be published.  NoData without batch files.
    """
    store = store_of(settings)
    if not any((store.root / "batches").glob("*.duckdb")):
        raise NoData(f"{store.root / 'batches'}: no batch file to make a history from")
    with working(settings, [store.root]) as connection:
        new = _alone(settings, connection, store)
        try:
            create_missing(connection)
            former = open_as_is(settings, connection, store, _FORMER) is None
            entries = _entries(store, Ledger(store.ledger).read(), _head(connection, former))
            whole = bool(entries)
            recorded = (
                told_by(entries) if whole else _all_there_is(store, _rows_of_former(connection))
            )
            work = _Work(settings, connection, store, recorded, former)
            left_out = work.take_over_batches(progress)
            work.take_over_people(from_ledger=whole)
            superseded = work.take_over_superseded()
            aside = [] if whole else put_aside(store.ledger)
            _begin(connection, Ledger(store.ledger), entries)

            def swap() -> None:
                connection.execute(f"CHECKPOINT {HISTORY_DATABASE}")
                # The former one is still open, so that nobody writes to it.
                aside.extend(link_aside(store.history))
                # Opening the file here, to make it durable, would give its lock away; DuckDB has.
                new.replace(store.history)
                sync_folder(store.root)

            facts = {"batches": work.rows, **held(connection)}
            with sealed(connection, store, "rebuild", facts, swap):
                pass
        finally:
            remove_database(new)
    taken = {(row["batch"], row["revision"]) for row in work.rows}
    return Rebuilt(
        tuple(row["batch"] for row in work.rows if row["revision"]),
        len(superseded),
        tuple(left_out),
        tuple(
            f"{batch}, revision {revision}"
            for batch, revision in sorted(recorded.revisions.keys() - taken - superseded)
            if not any(text.startswith(f"{batch}:") for text in left_out)
        ),
        tuple(aside),
    )


def _alone(settings: Settings, connection: duckdb.DuckDBPyConnection, store: Store) -> Path:
    """Attach a new history; waits for another process that rebuilds."""
    new = store.root / _NEW
    for _ in range(2):
        try:
            attach(connection, new, HISTORY_DATABASE, patience=settings.busy_seconds)
            if not connection.execute(
                "SELECT 1 FROM duckdb_tables() WHERE database_name = ?", [HISTORY_DATABASE]
            ).fetchall():
                break
            connection.execute(f"DETACH {HISTORY_DATABASE}")
        except StoreBusy:
            raise
        except (AuditError, duckdb.Error):
            if not new.exists():
                raise
        # What a process that was killed left behind.
        remove_database(new)
    return new


def _head(connection: duckdb.DuckDBPyConnection, former: bool) -> tuple[int, str] | None:
    with suppress(duckdb.Error):
        return read_head(connection, _FORMER) if former else None
    return None


def _rows_of_former(connection: duckdb.DuckDBPyConnection) -> list[Line]:
    """The former manifest, as far as there is one and it can be read."""
    with suppress(duckdb.Error):
        return rows_of(connection, BATCHES, _FORMER)
    return []


def _entries(store: Store, record: Record, head: tuple[int, str] | None) -> list[Line]:
    """Entries that count, for a history that was at ``head``; none where the ledger is broken.

    Where nobody knows whether the last one was committed, it counts if its file is there.
    """
    if record.problems or not record.entries:
        return []
    last, at = record.entries[-1], head[1] if head else None
    if record.lines[-1] is last and "staged" in last and at not in (last["after"], last["hash"]):
        staged = store.staged(last["batch"], last["staged"])
        if staged.exists() and file_digest(staged) == last["sha256"]:
            replace_file(staged, store.batch(last["batch"]))
        if file_of(store, last["batch"]).get("sha256") == last["sha256"]:
            at = last["hash"]
    return record.up_to(at)


def _begin(connection: duckdb.DuckDBPyConnection, ledger: Ledger, entries: Sequence[Line]) -> None:
    """Let the new history be at the last of ``entries``, as the one is whose place it takes.

    What was interrupted is closed.  Where the ledger begins anew, no other history goes with it.
    """
    end = ledger.end()
    if end and end.closing is None:
        ledger.close(end.entry, KEPT if end.entry in entries else DROPPED)
    write_head(connection, entries[-1] if entries else {"line": 0, "hash": ""})


def _all_there_is(store: Store, former: Sequence[Line]) -> Told:
    """What there is, by files and the former manifest, where nobody can tell what should be."""
    recorded = Told(batches={row["batch"]: row for row in former}, from_the_start=False)
    for path in sorted((store.root / "batches").glob("*.duckdb")):
        batch = check_batch_key(path.stem)
        recorded.batches.setdefault(batch, {"batch": batch, "status": "done", "revision": 1})
        recorded.files[batch] = [(file_digest(path), 0)]
    for batch, row in recorded.batches.items():
        recorded.revisions[batch, row["revision"]] = None
    return recorded


@dataclass
class _Work:
    """A history in the making, attached as ``history``, and what goes into it."""

    settings: Settings
    connection: duckdb.DuckDBPyConnection
    store: Store
    said: Told
    former: bool

    def __post_init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def take_over_batches(self, progress: Progress) -> list[str]:
        """Put in the current result and manifest row of every batch; returns what cannot be."""
        problems = []
        for at, (batch, attempt) in enumerate(sorted(self.said.batches.items())):
            progress(at, len(self.said.batches))
            revision, row, why = attempt["revision"], None, []
            if revision:
                for take in (self._from_file, self._from_former):
                    try:
                        row = take(batch, revision)
                    except (_Unfit, AuditError, OSError, duckdb.Error) as error:
                        why.append(str(error).split("\n", 1)[0])
                    else:
                        break
                if row is None:
                    problems.append(f"{batch}: {'; '.join(why)}")
                    continue
            if attempt["status"] != "done":
                kept = {name: row[name] for name in OF_SCORES} if row else {}
                row = {**self._attempt(attempt), **kept}
                with transaction(self.connection):
                    write_manifest(self.connection, row)
            if row:
                # A file that was damaged stays so: the digest is that of what was written.
                file = {"sha256": self.said.current[batch]} if batch in self.said.files else {}
                self.rows.append({**told(row), **file})
        return problems

    def _from_file(self, batch: str, revision: int) -> dict[str, Any]:
        path = self.store.batch(batch)
        own = file_of(self.store, batch).get("sha256")
        if own is None:
            raise _Unfit("has no file")
        if own != self.said.current.get(batch):
            raise _Unfit("its file is not what the ledger says")
        attach(self.connection, path, DATABASE, read_only=True)
        try:
            row = {**info(self.connection), "revision": revision}
            with transaction(self.connection):
                put(self.connection, row)
                self._check(batch, revision, HISTORY)
        finally:
            self.connection.execute(f"DETACH {DATABASE}")
        return row

    def _from_former(self, batch: str, revision: int) -> dict[str, Any]:
        if not self.former:
            raise _Unfit("the former history cannot be read")
        with transaction(self.connection):
            for table in (*HISTORY, *COUNTS_OF_HISTORY, BATCHES):
                self._copy(table, f"batch = {literal(batch)}")
            self._check(batch, revision, HISTORY)
            # Counts have no digest beside that of all that was merged.
            said = self.said.holds.get("results", {}).get(batch)
            here = holdings(self.connection, {"results": [batch]})["results"][batch]
            if said not in (None, here):
                raise _Unfit("has other counts than the ledger says")
        (row,) = self._rows(BATCHES, HISTORY_DATABASE, batch)
        return row

    def _check(self, batch: str, revision: int, tables: Sequence[Table]) -> None:
        """_Unfit where rows of a result are not those that the ledger has the digest of."""
        digest = self.said.revisions.get((batch, revision))
        if not self.connection.execute(
            f"SELECT 1 FROM {HISTORY_DATABASE}.{tables[0].name} "
            "WHERE batch = ? AND revision = ? LIMIT 1",
            [batch, revision],
        ).fetchall():
            raise _Unfit("has no such result")
        if digest not in (None, digest_of(self.connection, tables, batch, revision)):
            raise _Unfit("holds other numbers than the ledger says")

    def _attempt(self, line: Line) -> dict[str, Any]:
        """The manifest's row of an attempt without scores."""
        if self.former:
            for row in self._rows(BATCHES, _FORMER, line["batch"]):
                if row["run_id"] == line["run_id"]:
                    return row
        at = datetime.fromisoformat(line["at"]).replace(tzinfo=None) if "at" in line else _EPOCH
        blank = {
            column.name: {"BIGINT": 0, "INTEGER": 0, "TIMESTAMP": at}.get(column.type, "")
            for column in BATCHES.columns
            if not column.nullable
        }
        return {**dict.fromkeys(BATCHES.names), **blank, **told(line)}

    def take_over_people(self, *, from_ledger: bool) -> None:
        """Put in what people did about alerts, and the releases that they marked."""
        if not from_ledger and self.former:
            for table, where in ((ALERT_ACTIONS, "true"), (MARKERS, "source = 'mark'")):
                with suppress(duckdb.Error):
                    self._copy(table, where)
        for table, rows in ((ALERT_ACTIONS, self.said.actions), (MARKERS, self.said.marks)):
            marks = ", ".join("?" for _ in table.names)
            for row in rows:
                self.connection.execute(
                    f"INSERT INTO {HISTORY_DATABASE}.{table.name} ({table.column_list}) "
                    f"VALUES ({marks})",
                    [row[name] for name in table.names],
                )

    def take_over_superseded(self) -> set[tuple[str, int]]:
        """Put in superseded results that the former history still has, and return them."""
        taken_over: set[tuple[str, int]] = set()
        if not self.former:
            return taken_over
        current = {(row["batch"], row["revision"]) for row in self.rows}
        try:
            stored_revisions = revisions_of(self.connection, SUPERSEDED[0], _FORMER)
        except duckdb.Error:
            return taken_over
        for batch, revision in sorted({*stored_revisions} - current):
            if self.said.from_the_start and (batch, revision) not in self.said.revisions:
                continue
            try:
                with transaction(self.connection):
                    for table in SUPERSEDED:
                        self._copy(table, f"batch = {literal(batch)} AND revision = {revision}")
                    self._check(batch, revision, SUPERSEDED)
            except (_Unfit, duckdb.Error):
                continue
            taken_over.add((batch, revision))
        return taken_over

    def _copy(self, table: Table, where: str) -> None:
        self.connection.execute(
            f"INSERT INTO {HISTORY_DATABASE}.{table.name} BY NAME "
            f"SELECT * FROM {_FORMER}.{table.name} WHERE {where}"
        )

    def _rows(self, table: Table, database: str, batch: str) -> list[dict[str, Any]]:
        try:
            relation = self.connection.sql(
                f"FROM {database}.{table.name} WHERE batch = ?", params=[batch]
            )
            return [
                {**dict.fromkeys(table.names), **row}
                for row in relation.to_arrow_table().to_pylist()
            ]
        except duckdb.Error:
            return []


class _Unfit(Exception):
    """A source cannot give a result; the text says why."""


_EPOCH = datetime(1970, 1, 1)
