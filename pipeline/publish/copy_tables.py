"""Tables that are written into the published copy for its views: days, limits, the copy itself.

Not here: their declarations (``schemas.copy``), and the worst lists (``worst_lists``).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
from pydantic import ValidationError

from metrics import WHOLE, parse_score
from pipeline.publish.batch_times import end_of
from pipeline.scores.verdicts import holds
from pipeline.settings.audit import Settings
from pipeline.settings.labels import JOIN
from pipeline.settings.sections import Schedule, Threshold
from pipeline.store.tables import now
from pipeline.version import code_version
from schemas.columns import Row
from schemas.copy import ABOUT, THRESHOLDS
from schemas.views import VIEWS_VERSION

AHEAD = timedelta(days=400)
"""Days that are written ahead where the schedule has no end: a copy that nobody renews still says
for that long which days are missing."""
_DAYS = ("start", "end", "timezone", "deadline_hours")
_DECIDE: Mapping[str, set[str] | bool] = {
    "attributes": True,
    "labels": True,
    "metrics": True,
    "privacy": {"min_cell"},
    "top_of_list": True,
    "unknown_group": True,
}
"""Settings that decide on what the copy says beside the history, and beside its days."""


@dataclass(frozen=True)
class Made:
    """When a copy was made (UTC), and by which version of the code."""

    at: datetime
    by: str


def made_now() -> Made:
    """What a copy says of itself that is made now."""
    return Made(now(), code_version())


def made_of(
    connection: duckdb.DuckDBPyConnection, database: str, settings: Settings
) -> Made | None:
    """What an attached copy says of itself.

    None where its views are of another version, its days those of another schedule, or what else
    it says that of other settings.
    """
    names = connection.execute(
        "SELECT column_name FROM duckdb_columns() WHERE database_name = ? AND table_name = ?",
        [database, ABOUT.name],
    ).fetchall()
    if not {*ABOUT.names} <= {name for (name,) in names}:
        return None
    rows = connection.execute(
        f"SELECT published_at, code_version FROM {database}.{ABOUT.name} "
        "WHERE views_version = ? AND schedule = ? AND settings = ?",
        [VIEWS_VERSION, _said(settings.schedule), _others(settings)],
    ).fetchall()
    return Made(*rows[0]) if rows else None


def about(settings: Settings, made: Made) -> Row:
    """The row of the table about."""
    schedule = settings.schedule
    return {
        "views_version": VIEWS_VERSION,
        "code_version": made.by,
        "published_at": made.at,
        "timezone": schedule.timezone,
        "schedule_end": schedule.end.isoformat() if schedule.end else None,
        "deadline_hours": schedule.deadline_hours,
        "schedule": _said(schedule),
        "settings": _others(settings),
    }


def _said(schedule: Schedule) -> str:
    return json.dumps(schedule.model_dump(mode="json", include=set(_DAYS)), sort_keys=True)


def _others(settings: Settings) -> str:
    said = settings.model_dump(mode="json", include=dict(_DECIDE))
    return json.dumps(said, sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True)
class Watched:
    """Since when somebody waits for batches: the newest that was tried, the first run of all."""

    newest: str
    since: datetime


def watched(connection: duckdb.DuckDBPyConnection) -> Watched | None:
    """Since when the attached history is kept; None where it holds no score."""
    (row,) = connection.execute(
        "SELECT (SELECT max(batch) FROM history.batches), min(computed_at) FROM ("
        "SELECT computed_at FROM history.fairness_history "
        "UNION ALL SELECT computed_at FROM history.superseded)"
    ).fetchall()
    return None if None in row else Watched(*row)


def expected_batches(
    schedule: Schedule, made: Made, of_history: Watched | None = None
) -> list[Row]:
    """Rows of the table expected_batches: every day of the schedule, oldest first.

    A day is due ``deadline_hours`` after its end in the time zone of the schedule.  Where the
    schedule has no end, days after the newest batch that were due before the first run of all are
    left out: logs of the past, audited today, promise nothing of the time between.
    """
    last = schedule.end or made.at.date() + AHEAD
    days = (last - schedule.start).days + 1
    rows = [_expected(schedule, schedule.start + timedelta(days=at)) for at in range(days)]
    if schedule.end or of_history is None:
        return rows
    newest, since = of_history.newest, of_history.since
    return [row for row in rows if row["batch"] <= newest or row["due_at"] > since]


def _expected(schedule: Schedule, day: date) -> Row:
    due_at = end_of(day, ZoneInfo(schedule.timezone)) + timedelta(hours=schedule.deadline_hours)
    return {"batch": day.isoformat(), "due_at": due_at}


def thresholds(connection: duckdb.DuckDBPyConnection) -> list[Row]:
    """Rows of the table thresholds, for all settings that the attached history knows.

    Scores of settings that were not kept, or that this version does not understand, have none.
    """
    settings_rows = connection.execute(
        "SELECT DISTINCT config_hash, settings FROM history.batches "
        "WHERE settings IS NOT NULL ORDER BY ALL"
    ).fetchall()
    rows: dict[tuple[Any, ...], Row] = {}
    for digest, text in settings_rows:
        try:
            limits = list(_limits(digest, json.loads(text)))
        except (ValidationError, ValueError, KeyError, TypeError):
            continue
        rows |= {tuple(row[name] for name in THRESHOLDS.key): row for row in limits}
    return list(rows.values())


def _limits(digest: str, document: dict[str, Any]) -> Iterator[Row]:
    attributes = [JOIN.join(names) for names in document["attributes"]]
    for label, limit in document["thresholds"].items():
        threshold, score = Threshold.model_validate(limit), parse_score(label)
        for attribute in attributes if score.measure.metric.grouped else (None,):
            for slice_name in (WHOLE, *document["slices"]):
                if holds(threshold, attribute, slice_name):
                    yield {
                        "config_hash": digest,
                        "slice": slice_name,
                        "attribute": attribute,
                        "metric": score.measure.label,
                        "aggregation": score.aggregation.name if score.aggregation else None,
                        "threshold_min": threshold.min,
                        "threshold_max": threshold.max,
                    }
