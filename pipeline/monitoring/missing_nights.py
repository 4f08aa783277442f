"""Nights that have no scores, though there should be some: nobody audited what was shown.

Not here: groups that are missing in a night that has scores (``missing_groups``).
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import duckdb

from metrics import WHOLE
from pipeline.history.series import expected
from pipeline.monitoring.findings import Findings
from pipeline.monitoring.subjects import Part, Subject
from pipeline.settings.audit import Settings

NIGHT = Subject("night", Part(WHOLE, WHOLE, None))
MISSING = "missing"
LOOKED_AT = 14
"""Days of the schedule that tell whether it is kept: two weeks hold every weekday twice."""
KEPT = 0.5
"""Share of them that must have scores, for a night without to be news: batches that come once a
week do not miss six of seven days."""


def missing_nights(
    connection: duckdb.DuckDBPyConnection, settings: Settings, scored: Sequence[str]
) -> dict[str, str]:
    """Batches without scores from the first of ``scored`` on, in key order, and why.

    Why is the status of the last attempt, or MISSING: nobody made one.  They are attempts that gave
    none, once their day was over, and days of the schedule up to the newest of either.
    """
    if not scored:
        return {}
    attempts = connection.execute(
        "SELECT batch, status, finished_at FROM history.batches WHERE revision = 0 AND batch > ?",
        [scored[0]],
    ).fetchall()
    why = {
        batch: status
        for batch, status, finished in attempts
        if batch < scored[-1] or _is_over(batch, finished, settings)
    }
    days = expected(settings, scored[0], max([*scored[-1:], *why]))
    known = {*scored, *why}
    found = {**why, **{day: MISSING for day in days if day not in known}}
    place = {day: at for at, day in enumerate(days)}
    there = [day in {*scored} for day in days]
    return {
        batch: found[batch]
        for batch in sorted(found)
        if batch not in place or _is_kept(there, place[batch])
    }


def _is_over(batch: str, at: datetime, settings: Settings) -> bool:
    """Whether a day was over when it was attempted, in the time zone of the schedule."""
    try:
        day = date.fromisoformat(batch)
    except ValueError:
        return True
    ends = datetime.combine(day + timedelta(days=1), time(), ZoneInfo(settings.schedule.timezone))
    return at.replace(tzinfo=UTC) >= ends


def _is_kept(there: Sequence[bool], at: int) -> bool:
    """Whether most days of the schedule before one have scores."""
    before = there[max(0, at - LOOKED_AT) : at]
    return not before or sum(before) >= KEPT * len(before)


def night_findings(
    findings: Mapping[str, Findings], nights: Mapping[str, str], start: str
) -> list[Findings]:
    """The findings of batches with scores and of those without from ``start`` on, in key order."""
    for each in findings.values():
        each.fine.add(NIGHT)
    gaps = [Findings(key, {NIGHT}, absence=why) for key, why in nights.items() if key >= start]
    return sorted([*findings.values(), *gaps], key=lambda each: each.batch)
