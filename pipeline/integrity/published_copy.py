"""The published copy, against one that is made for it.  Not here: making it (``publish.copy``)."""

import os

import duckdb

from pipeline.errors import AuditError, StoreBusy
from pipeline.history.commits import read_head
from pipeline.history.ledger import Record
from pipeline.history.opening import HISTORY_DATABASE, is_of_before
from pipeline.integrity.checks import differ, scan, unlike
from pipeline.integrity.read_only import why
from pipeline.publish.copy import write_copy
from pipeline.publish.copy_tables import made_of
from pipeline.settings.audit import Settings
from pipeline.store.checkpoints import remove_database
from pipeline.store.paths import Store, spill_of
from pipeline.store.sessions import attach, working
from schemas.copy import LISTED_BATCHES, WORST_LISTS

_COPY, _FRESH = "copy", "fresh"
_OF_FILES = (LISTED_BATCHES.name, WORST_LISTS.name)


def copy_problem(settings: Settings, store: Store, record: Record) -> tuple[list[str], list[str]]:
    """What is wrong with the published copy, and what the next publishing settles; one at most."""
    again = "`evenrank publish` makes it again"
    if not store.dashboard.exists():
        return [], [f"{store.dashboard}: is not there; {again}"]
    line_heads = {(line["line"], line["hash"]) for line in record.entries} | {None}
    fresh = spill_of(settings) / f"verify.{os.getpid()}.duckdb"
    try:
        with working(settings, [store.root, fresh.parent]) as connection:
            attach(connection, store.dashboard, _COPY, read_only=True)
            scan(connection, _COPY)
            attach(
                connection,
                store.history,
                HISTORY_DATABASE,
                read_only=True,
                patience=settings.busy_seconds,
            )
            copy_head = read_head(connection, _COPY)
            if copy_head not in line_heads:
                return [f"{store.dashboard}: is no copy of this history; {again}"], []
            if copy_head != read_head(connection):
                return [], [f"{store.dashboard}: is older than the history; {again}"]
            if is_of_before(connection):
                reason = "and the history are of an older version, which the next run settles"
                return [], [f"{store.dashboard}: {reason}"]
            published = made_of(connection, _COPY, settings)
            if published is None:
                reason = "has views of another version, or is of other settings"
                return [], [f"{store.dashboard}: {reason}; {again}"]
            write_copy(connection, fresh, settings, published, noting=False)
            attach(connection, fresh, _FRESH, read_only=True)
            differing = [
                name
                for name in unlike(connection, _COPY, _FRESH)
                if name not in _OF_FILES or _lists_differ(connection, name)
            ]
    except StoreBusy:
        raise
    except (AuditError, duckdb.Error) as error:
        return [why(store.dashboard, error)], []
    finally:
        remove_database(fresh)
    if differing:
        names = ", ".join(differing)
        return [f"{store.dashboard}: {names} differ from the history; {again}"], []
    return [], []


def _lists_differ(connection: duckdb.DuckDBPyConnection, table: str) -> bool:
    """Whether a table of worst lists differs in batches whose file could be searched again.

    A file that is damaged, or gone, is told of by itself.
    """
    unread = (
        f"SELECT batch FROM {_COPY}.{LISTED_BATCHES.name} "
        f"EXCEPT SELECT batch FROM {_FRESH}.{LISTED_BATCHES.name}"
    )
    return differ(
        connection,
        f"SELECT * FROM {_COPY}.{table} WHERE batch NOT IN ({unread})",
        f"SELECT * FROM {_FRESH}.{table}",
    )
