"""Alerts and releases as people handle them: looking, acknowledging, snoozing, marking.

Not here: which alerts there are (``episodes``), and how they are printed (``terminal.alerts``).
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pipeline.errors import AuditError, several
from pipeline.history.commits import has_history, sealed
from pipeline.history.merging import due_again
from pipeline.history.opening import has_table, open_history
from pipeline.monitoring.actions import COLUMNS, read_actions
from pipeline.monitoring.assess import Assessed, assess
from pipeline.monitoring.previous import read_rows
from pipeline.privacy.suppression import Shown
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import check_batch_key
from pipeline.store.paths import store_of
from pipeline.store.tables import now
from schemas.columns import Row, Table
from schemas.monitoring import ALERT_ACTIONS, ALERT_BATCHES, ALERT_ORDER, ALERTS, GATES, MARKERS

_WAITING = "state = 'open' AND acknowledged_at IS NULL"
_SHORTEST_ID = 4  # hex digits, which have 65,536 values: seldom the same for two alerts


def _rows(
    settings: Settings,
    table: Table,
    where: str = "true",
    values: Sequence[object] = (),
    *,
    untold: bool = False,
    order: str | None = None,
) -> list[Row]:
    """Rows of a table of the history; none where there is no history, or an older one.

    ``untold``: also what ``privacy.min_cell`` keeps back.
    """
    if not has_history(store_of(settings)):
        return []
    with open_history(settings, read_only=True) as connection:
        if not has_table(connection, table):
            return []
        source = None if untold else Shown(connection, settings).table(table)
        return read_rows(connection, table, where, values, source, order)


def alerts(
    settings: Settings, *, every: bool = False, batches: Sequence[str] | None = None
) -> list[Row]:
    """Alerts in the order of ``ALERT_ORDER``: those that wait for somebody, or ``every`` one.

    An alert waits while it is open, not acknowledged and not snoozed.  ``batches``: all those seen
    in any of them, with their text in the last of these.
    """
    if batches is not None:
        sightings = _rows(settings, ALERT_BATCHES, "list_contains(?, batch)", [list(batches)])
        seen = {row["alert"]: row for row in sightings}
        where, values = "list_contains(?, alert)", [list(seen)]
        found = _rows(settings, ALERTS, where, values, order=ALERT_ORDER)
        return [row | seen[row["alert"]] for row in found]
    where = "true" if every else f"{_WAITING} AND coalesce(snoozed_until <= ?, true)"
    return _rows(settings, ALERTS, where, [] if every else [now()], order=ALERT_ORDER)


def gated_batches(settings: Settings, batches: Sequence[str]) -> list[str]:
    """Those of ``batches`` that a gate keeps from being judged, in key order."""
    where = "NOT passed AND list_contains(?, batch)"
    rows = _rows(settings, GATES, where, [list(batches)], untold=True)
    return sorted({row["batch"] for row in rows})


def act(
    settings: Settings,
    ids: Sequence[str],
    action: str,
    *,
    who: str,
    note: str | None = None,
    until: datetime | None = None,
) -> tuple[list[str], Assessed]:
    """Acknowledge (``ack``), ``snooze`` or ``undo`` alerts; returns their names, and what changed.

    ``ids`` may be cut to what only one alert begins with.  To acknowledge takes the alert's batches
    out of baselines, so that later batches are assessed again.  AuditError names every id that is
    none.
    """
    with _existing(settings) as connection:
        stored = {row["alert"]: row for row in read_rows(connection, ALERTS)}
        names = _named(ids, list(stored))
        acknowledged = {name for name in names if stored[name]["acknowledged_at"] is not None}
        rows = [(now(), name, action, until, who, note) for name in names]
        said = [dict(zip(ALERT_ACTIONS.names, row, strict=True)) for row in rows]
        marks = ", ".join("?" for _ in ALERT_ACTIONS.names)
        with sealed(
            connection, store_of(settings), "act", {"actions": said}, writes={"alerts": names}
        ):
            connection.executemany(
                f"INSERT INTO history.alert_actions ({ALERT_ACTIONS.column_list}) VALUES ({marks})",
                rows,
            )
            standing = read_actions(connection)
            for name in names:
                connection.execute(
                    f"UPDATE history.alerts SET {', '.join(f'{each} = ?' for each in COLUMNS)} "
                    "WHERE alert = ?",
                    [*(standing[name][each] for each in COLUMNS), name],
                )
                excluded = standing[name]["acknowledged_at"] is not None
                if excluded != (name in acknowledged):
                    due_again(connection, "batch >= ?", stored[name]["opened"])
    return names, assess(settings)


def _existing(settings: Settings) -> Any:
    if not has_history(store_of(settings)):
        raise AuditError("there is no history yet; run a batch first")
    return open_history(settings)


def _named(ids: Sequence[str], known: Sequence[str]) -> list[str]:
    """The alerts that abbreviated names stand for."""
    found, problems = [], []
    for said in ids:
        matching = [name for name in known if name.startswith(said.lower())]
        if len(said) < _SHORTEST_ID:
            problems.append(f"{said}: give at least {_SHORTEST_ID} characters")
        elif len(matching) == 1:
            found.append(matching[0])
        elif matching:
            problems.append(f"{said} begins {len(matching)} alerts: {', '.join(matching[:4])}")
        else:
            problems.append(f"{said} is no alert")
    if problems:
        advice = "`evenrank alerts --all` lists them; nothing was done."
        raise AuditError(several("no alert is named so", problems, advice))
    return list(dict.fromkeys(found))


def markers(settings: Settings) -> list[Row]:
    """Releases, by batch."""
    return _rows(settings, MARKERS)


def mark(settings: Settings, batch: str, text: str) -> Assessed:
    """Note that a release begins with ``batch``; later batches are compared with it and after.

    The batch need not exist yet.  Marking the same again changes nothing.
    """
    check_batch_key(batch)
    text = text.strip()
    if not text or not text.isprintable():
        raise AuditError("--text: say in one line what changed, as in 'model v7'")
    with _existing(settings) as connection:
        same = read_rows(
            connection, MARKERS, "batch = ? AND text = ? AND source = 'mark'", [batch, text]
        )
        if not same:
            row = {"batch": batch, "text": text, "source": "mark", "created_at": now()}
            with sealed(connection, store_of(settings), "mark", {"marker": row}):
                connection.execute(
                    f"INSERT INTO history.markers ({MARKERS.column_list}) VALUES (?, ?, ?, ?)",
                    [row[name] for name in MARKERS.names],
                )
                due_again(connection, "batch >= ?", batch)
    return assess(settings)


def unmark(settings: Settings, batch: str) -> Assessed:
    """Take back the marks of a batch; AuditError where there is none that somebody made."""
    with _existing(settings) as connection:
        there = read_rows(connection, MARKERS, "batch = ?", [batch])
        if not any(row["source"] == "mark" for row in there):
            why = (
                "its marker comes from the log's model_version, and stays"
                if there
                else "`evenrank mark` lists the markers"
            )
            raise AuditError(f"{batch}: nobody marked a release there; {why}")
        with sealed(connection, store_of(settings), "unmark", {"marker": {"batch": batch}}):
            connection.execute(
                "DELETE FROM history.markers WHERE batch = ? AND source = 'mark'", [batch]
            )
            due_again(connection, "batch >= ?", batch)
    return assess(settings)
