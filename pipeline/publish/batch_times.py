"""When the days and hours are that batches are named after: the table batch_times.

Not here: when their scores are due (``copy_tables``), and which keys can name a batch
(``settings.batch_keys``).
"""

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from schemas.columns import Row

_DAY_OR_HOUR = re.compile(r"(?:19[7-9]\d|2[01]\d\d|2200)-\d\d-\d\d(?:T\d\d)?", re.A)
"""Years as those of ``schedule.start``."""


def batch_times(batches: Iterable[str], timezone: str) -> list[Row]:
    """Rows of the table batch_times, in the order of the keys; none for keys that are no time.

    >>> batch_times(["2026-03-29", "model-b"], "Europe/Berlin")[0]["batch_end"]
    datetime.datetime(2026, 3, 29, 22, 0)
    """
    zone = ZoneInfo(timezone)
    return [row for batch in sorted(set(batches)) for row in [_times(batch, zone)] if row]


def _times(batch: str, zone: ZoneInfo) -> Row | None:
    if not _DAY_OR_HOUR.fullmatch(batch):
        return None
    try:
        start = datetime.fromisoformat(batch)
    except ValueError:
        return None
    hourly = "T" in batch
    # By the clock on the wall: a day may have 23 hours, and an hour that comes twice is one batch.
    end = start + (timedelta(hours=1) if hourly else timedelta(days=1))
    return {
        "batch": batch,
        "batch_start": in_utc(start, zone),
        "batch_end": in_utc(end, zone),
        "day": None if hourly else start.date(),
    }


def in_utc(local: datetime, zone: ZoneInfo) -> datetime:
    """A moment of the time zone in UTC, as tables store it."""
    return local.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)


def end_of(day: date, zone: ZoneInfo) -> datetime:
    """The end of a day in UTC."""
    return in_utc(datetime.combine(day + timedelta(days=1), time()), zone)
