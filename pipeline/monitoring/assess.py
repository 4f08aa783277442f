"""What a batch means after those before it: gates, verdicts, trends and alerts of the history.

An assessment is a function of what the history holds: current scores, release markers and what
people did about alerts.  Batches are looked at in key order whatever the order of merging, and
only what differs from the last assessment is written.

Here: the order of the steps.  Not here: what is found (``assessment``), and how it is written
(``differences``).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import duckdb
import pyarrow

from pipeline.history.commits import has_history, sealed
from pipeline.history.opening import has_table, open_history
from pipeline.monitoring.assessment import Found, computed
from pipeline.monitoring.differences import differing, replace, write_statuses, wrong_statuses
from pipeline.monitoring.gates import gate_rows
from pipeline.monitoring.missing_nights import missing_nights
from pipeline.monitoring.previous import TOUCHED, read_stored
from pipeline.monitoring.releases import log_markers, marker_changes, read_releases, write_markers
from pipeline.monitoring.result_tables import (
    AlertRows,
    alert_tables,
    as_table,
    change_point_table,
    trend_table,
)
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.store.tables import now
from schemas.columns import Table
from schemas.monitoring import (
    ALERT_BATCHES,
    ALERTS,
    ASSESSMENTS,
    CHANGE_POINTS,
    GATES,
    MARKERS,
    RELEASE_CHANGES,
    TRENDS,
)
from schemas.scores import FAIRNESS_HISTORY, WINDOW_SCORES

Notice = Literal["none", "newest", "all"]
"""Which new alerts may be sent: none; those that the newest batch of the history opens, if it is
among those asked for; or those that any batch asked for opens."""


@dataclass(frozen=True)
class _Given:
    """Batches with scores, those without and why, the first to look at, and those asked for.

    New alerts that those of ``sendable`` open may be sent.
    """

    every: Sequence[str]
    absent: Mapping[str, str]
    start: str
    asked: Sequence[str] = ()
    sendable: Collection[str] = ()


@dataclass(frozen=True)
class Assessed:
    """What an assessment did.

    ``later`` are batches beside those asked for that had been assessed before and now say
    something else; ``opened`` the alerts that are new; ``gated`` the batches looked at that a gate
    keeps out.  ``changed`` is false where the history says what it said before.
    """

    changed: bool = False
    later: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    gated: tuple[str, ...] = ()


def assess(
    settings: Settings,
    batches: Sequence[str] = (),
    *,
    notify: Notice = "none",
    attempted: Collection[str] = (),
) -> Assessed:
    """Bring gates, statuses, trends, alerts and change points of the history up to date.

    Looks at ``batches``, at whatever is not up to date for another reason, and at all later
    batches; writes only what differs.  New alerts that ``notify`` does not name are never sent;
    ``attempted`` are batches asked for that perhaps have no scores.
    """
    if not has_history(store_of(settings)) or not (batches or due(settings)):
        return Assessed()
    with open_history(settings) as connection:
        every = _batches(connection)
        absent = missing_nights(connection, settings, every)
        standing = _standing(connection)
        stands = {batch for batch, done in standing.items() if done} - set(batches)
        start = min(stands ^ {*every, *absent}, default=None)
        if start is None or not every:
            return Assessed()
        asked = [*batches, *attempted]
        sendable = _sendable(settings, (every[-1], max([*every, *absent])), asked, notify)
        given = _Given(every, absent, start, asked, sendable)
        return _assessed(connection, settings, given, standing)


def due(settings: Settings) -> bool:
    """Whether any batch was not assessed, or has to be assessed again; only reads."""
    if not has_history(store_of(settings)):
        return False
    with open_history(settings, read_only=True) as connection:
        if not has_table(connection, ASSESSMENTS):
            return True
        stands = {batch for batch, done in _standing(connection).items() if done}
        every = _batches(connection)
        return stands != {*every, *missing_nights(connection, settings, every)}


def _batches(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Batches that have scores, in key order; gaps are none of them."""
    rows = connection.execute(
        "SELECT batch FROM history.batches WHERE revision > 0 ORDER BY batch"
    ).fetchall()
    return [batch for (batch,) in rows]


def _standing(connection: duckdb.DuckDBPyConnection) -> dict[str, bool]:
    """Batches that were ever assessed, and whether that still stands."""
    return dict(
        connection.execute(
            "SELECT batch, assessed_at IS NOT NULL FROM history.assessments"
        ).fetchall()
    )


def _assessed(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    given: _Given,
    standing: dict[str, bool],
) -> Assessed:
    look = _look(connection, settings, given)
    there = {*given.every, *given.absent}
    due = sorted(there - {batch for batch, done in standing.items() if done})
    gone = sorted(standing.keys() - there)
    changed = bool(look.differing)
    if changed or due or gone:
        with sealed(connection, store_of(settings), "assess", {"batches": due}, writes=look.writes):
            for change in look.changes:
                replace(connection, change.table, change.rows, change.by, change.which)
            write_statuses(connection, look.found.reasons, look.found.missing, look.wrong)
            write_markers(connection, *look.markers)
            _note(connection, due, gone)
    by_batch = (change.which for change in look.changes if change.table in _BY_BATCH)
    later = (look.wrong.union(*by_batch) & standing.keys()) - set(given.asked)
    gated = tuple(batch for batch, reason in look.found.reasons.items() if reason)
    return Assessed(changed, tuple(sorted(later)), tuple(look.alerts.new), gated)


@dataclass(frozen=True)
class _Look:
    """What the history should hold, and where it does not."""

    found: Found
    alerts: AlertRows
    changes: "list[_Change]"
    wrong: set[str]
    markers: tuple[list[tuple[str, str]], list[list[object]]]

    @property
    def differing(self) -> list[str]:
        """Tables that are not as they should be."""
        names = [change.table.name for change in self.changes if change.which]
        names += [FAIRNESS_HISTORY.name] if self.wrong else []
        return names + ([MARKERS.name] if any(self.markers) else [])

    @property
    def writes(self) -> dict[str, set[str]]:
        """Batches and alerts of which something is not as it should be, by part of the history."""
        which = {change.table.name: change.which for change in self.changes}
        gone, new = self.markers
        return {
            "assessed": set().union(*(which[table.name] for table in _BY_BATCH)),
            "alerts": which[ALERTS.name],
            "points": which[CHANGE_POINTS.name],
            "statuses": self.wrong,
            "releases": {str(row[0]) for row in (*gone, *new)},
        }


def _look(connection: duckdb.DuckDBPyConnection, settings: Settings, given: _Given) -> _Look:
    from_log = log_markers(connection, given.every)
    stored = read_stored(connection, given.start)
    releases = read_releases(connection, from_log)
    found = computed(connection, settings, given.every, given.absent, stored, releases, given.asked)
    rows = AlertRows(connection, settings, stored, found, given.sendable)
    changes = _changes(connection, settings, given.every, found, *alert_tables(rows))
    wrong = wrong_statuses(connection, found.reasons, found.missing)
    return _Look(found, rows, changes, wrong, marker_changes(connection, from_log))


def differing_tables(connection: duckdb.DuckDBPyConnection, settings: Settings) -> list[str]:
    """Tables that are not what these settings make of the attached history; only reads."""
    every = _batches(connection)
    if not every:
        return []
    absent = missing_nights(connection, settings, every)
    return _look(connection, settings, _Given(every, absent, every[0])).differing


def _sendable(
    settings: Settings, newest: Collection[str], asked: Sequence[str], notify: Notice
) -> set[str]:
    """Batches whose new alerts may be sent: none where nobody receives them."""
    if settings.notify.command is None and settings.notify.webhook is None:
        return set()
    return {"none": set[str](), "newest": {*asked} & {*newest}, "all": {*asked}}[notify]


@dataclass(frozen=True)
class _Change:
    """Rows that a table should hold, and for which values of the column ``by`` it does not."""

    table: Table
    rows: pyarrow.Table
    by: str
    which: set[str]


_BY_BATCH = (GATES, TRENDS, ALERT_BATCHES, RELEASE_CHANGES, WINDOW_SCORES)


def _changes(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    every: Sequence[str],
    found: Found,
    alerts: pyarrow.Table,
    sightings: pyarrow.Table,
) -> list[_Change]:
    points = change_point_table(connection, settings, every, found)
    changes = as_table(RELEASE_CHANGES, [row for rows in found.changes.values() for row in rows])
    wanted = [
        (GATES, as_table(GATES, gate_rows(found.gates)), "batch", "batch >= ?"),
        (TRENDS, trend_table(found, settings), "batch", "batch >= ?"),
        (ALERT_BATCHES, sightings, "batch", "batch >= ?"),
        (RELEASE_CHANGES, changes, "batch", "batch >= ?"),
        (ALERTS, alerts, "alert", TOUCHED),
        (CHANGE_POINTS, points, "batch", "? IS NOT NULL"),
    ]
    changed = set(found.windows.changed)
    return [
        _Change(WINDOW_SCORES, found.windows.table, "batch", changed),
        *(
            _Change(table, rows, by, differing(connection, table, rows, by, where, [found.start]))
            for table, rows, by, where in wanted
        ),
    ]


def _note(
    connection: duckdb.DuckDBPyConnection, batches: Sequence[str], gone: Sequence[str]
) -> None:
    """Note that batches are up to date, and forget those that are ``gone``, in a transaction."""
    at = now()
    connection.execute(
        "DELETE FROM history.assessments WHERE list_contains(?, batch)", [[*batches, *gone]]
    )
    for batch in batches:
        connection.execute("INSERT INTO history.assessments VALUES (?, ?)", [batch, at])
