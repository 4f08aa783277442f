"""One batch, taken out of the store as if it had never been, because somebody says so.

The ledger keeps that there was one, when it went and why.  Not here: rows that retention removes
while the scores stay (``forget``).
"""

from dataclasses import dataclass
from difflib import get_close_matches

import duckdb

from pipeline.errors import SettingsError
from pipeline.history.commits import files_of_batch, has_history, sealed
from pipeline.history.holdings import PARTS
from pipeline.history.ledger import FORGET, Ledger
from pipeline.history.ledger_state import told_by
from pipeline.history.manifest import current_row
from pipeline.history.merging import due_again
from pipeline.history.opening import HISTORY_DATABASE, open_history
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import check_batch_key
from pipeline.store.paths import Store, store_of
from schemas.history import BATCHES, HISTORY_TABLES
from schemas.monitoring import ALERT_ACTIONS, ALERT_BATCHES, ALERTS, MARKERS


@dataclass(frozen=True)
class Forgotten:
    """What went with a batch: rows of the history, alerts about it alone, files of the store.

    ``marked``: a release that somebody marked at the batch, which stays.
    """

    batch: str
    reason: str
    rows: int
    alerts: tuple[str, ...]
    files: tuple[str, ...]
    marked: bool


def forget_batch(settings: Settings, batch: str, reason: str) -> Forgotten:
    """Remove all that the store holds of ``batch``: a run of it begins at revision 1 again.

    The ledger notes ``reason``, one line.  Later batches have to be assessed, and the copy to be
    published, anew.  Delivered logs are not touched.  SettingsError where there is no such batch.
    """
    check_batch_key(batch)
    reason = reason.strip()
    if not reason or not reason.isprintable():
        raise SettingsError("--reason: say in one line why, as in 'named by mistake'")
    store = store_of(settings)
    if not has_history(store):
        raise SettingsError(f"{batch}: there is no such batch; {store.root} holds no history yet")
    with open_history(settings) as connection:
        row = current_row(connection, batch)
        if row is None:
            _check_known(connection, store, batch)
        paths = [path for path in files_of_batch(store, batch) if path.exists()]
        alerts = _alerts_about(connection, batch)
        marked = connection.execute(
            f"SELECT 1 FROM {HISTORY_DATABASE}.{MARKERS.name} WHERE batch = ? AND source = 'mark'",
            [batch],
        ).fetchall()
        facts = {"batch": batch, "reason": reason, "alerts": alerts}
        parts = {name: [batch] for name, part in PARTS.items() if part.by == "batch"}
        writes = {**parts, "alerts": alerts}
        with sealed(connection, store, FORGET, facts, writes=writes):
            if row and row["revision"]:
                # What came of it stands in the batches behind it, and in what the last one before
                # it leaves open.
                before = f"SELECT max(batch) FROM {HISTORY_DATABASE}.{BATCHES.name}"
                where = f"batch >= coalesce(({before} WHERE revision > 0 AND batch < ?), ?)"
                due_again(connection, where, batch, batch)
            rows = _remove(connection, batch, alerts)
    files = tuple(str(path.relative_to(store.root)) for path in paths)
    return Forgotten(batch, reason, rows, tuple(alerts), files, bool(marked))


def _check_known(connection: duckdb.DuckDBPyConnection, store: Store, batch: str) -> None:
    """SettingsError where neither manifest nor ledger has ``batch``: a stranger's file stays."""
    told = told_by(Ledger(store.ledger).read().kept)
    if batch in told.files or batch in told.batches:
        return
    known = [
        name
        for (name,) in connection.execute(
            f"SELECT batch FROM {HISTORY_DATABASE}.{BATCHES.name} ORDER BY batch DESC"
        ).fetchall()
    ]
    near = get_close_matches(batch, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise SettingsError(
        f"{batch}: there is no such batch; {hint}`FROM v_batches` lists all, and nothing was done"
    )


def _alerts_about(connection: duckdb.DuckDBPyConnection, batch: str) -> list[str]:
    """Alerts that were seen in this batch alone, or that it opened and nothing shows any more."""
    rows = connection.execute(
        f"SELECT alert FROM {HISTORY_DATABASE}.{ALERTS.name} AS alerts "
        f"LEFT JOIN {HISTORY_DATABASE}.{ALERT_BATCHES.name} AS seen USING (alert) "
        "GROUP BY alert HAVING bool_and(coalesce(seen.batch, opened) = ?) ORDER BY alert",
        [batch],
    ).fetchall()
    return [alert for (alert,) in rows]


def _remove(connection: duckdb.DuckDBPyConnection, batch: str, alerts: list[str]) -> int:
    """Delete rows of ``batch`` and of ``alerts``, within a transaction; returns how many."""
    of_alerts = [(table, "list_contains(?, alert)", alerts) for table in (ALERTS, ALERT_ACTIONS)]
    of_batch = [
        (table, "batch = ?" + (" AND source <> 'mark'" if table is MARKERS else ""), batch)
        for table in HISTORY_TABLES
        if "batch" in table.names
    ]
    rows = 0
    for table, where, value in (*of_alerts, *of_batch):
        name = f"{HISTORY_DATABASE}.{table.name}"
        rows += connection.execute(f"DELETE FROM {name} WHERE {where}", [value]).fetchall()[0][0]
    return rows
