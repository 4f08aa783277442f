"""Which batch a caller means: its key, or a moment of the day that it is; and what can be a key.

Not here: whether there is a log of it (``log.deliveries``).
"""

import re
from calendar import monthrange
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from pipeline.errors import SettingsError, several
from pipeline.settings.audit import Settings
from pipeline.settings.text import cut


def batch_key(text: str, settings: Settings) -> str:
    """The key of the batch that ``text`` names; SettingsError where a moment cannot be placed.

    A moment in ISO 8601 with date and time, as schedulers have it, stands for its day in the time
    zone of the schedule; without an offset it is taken to be in that zone.  Whatever can be a key
    is one, so hourly batches may be named 2026-01-05T07.

    >>> batch_key("2026-01-18T23:00:00+00:00", Settings(attributes=["a"]))
    '2026-01-18'
    """
    if BATCH_KEY.fullmatch(text):
        return text
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    zone = ZoneInfo(settings.schedule.timezone)
    try:
        return (moment.astimezone(zone) if moment.tzinfo else moment).date().isoformat()
    except OverflowError:
        raise SettingsError(
            f"{cut(text, 70)!r} is no moment of our time in {settings.schedule.timezone}"
        ) from None


def batch_keys(texts: Iterable[str], settings: Settings) -> list[str]:
    """The keys of the batches that are named, each once, in that order.

    SettingsError lists all that name none, or none of the kind that ``schedule.batches`` says.
    """
    keys, problems = [], []
    for each in texts:
        try:
            keys.append(expected_key(batch_key(each, settings), settings))
        except SettingsError as error:
            problems.append(str(error))
    if len(problems) > 1:
        raise SettingsError(several(f"--batch: {len(problems)} problems", problems))
    if problems:
        raise SettingsError(problems[0])
    return list(dict.fromkeys(keys))


def expected_key(batch: str, settings: Settings) -> str:
    """``batch`` if a run may begin a batch of that key; SettingsError with the nearest otherwise.

    What a store already holds may have other keys: it is read under whatever it was named.

    >>> expected_key("2026-01-05T07", Settings(attributes=["a"]))
    '2026-01-05T07'
    """
    check_batch_key(batch)
    near = _nearest(batch)
    if settings.schedule.batches == "names" or batch == near:
        return batch
    hint = f"did you mean {near}? Other names" if near else "other names"
    raise SettingsError(
        f"{batch!r} is no day, as in 2026-01-05, and no hour of one, as in 2026-01-05T07; {hint} "
        "need `batches: names` under `schedule` in the settings"
    )


def _nearest(text: str) -> str | None:
    """The day, or hour, that stands closest to what ``text`` says in numbers; None without one.

    >>> _nearest("2026-2-30"), _nearest("20260105t7"), _nearest("yesterday")
    ('2026-02-28', '2026-01-05T07', None)
    """
    found = _LIKE_A_DAY.match(text)
    if not found:
        return None
    year, month, day = int(found["year"]), int(found["month"]), int(found["day"])
    month = min(max(month, 1), 12)
    day = min(max(day, 1), monthrange(year, month)[1])
    hour = f"T{min(int(found['hour']), 23):02}" if found["hour"] else ""
    return f"{year}-{month:02}-{day:02}{hour}"


_LIKE_A_DAY = re.compile(
    r"(?P<year>19[7-9]\d|2[01]\d\d|2200)(?P<sign>[._-])?"
    r"(?P<month>(?(sign)\d\d?|\d\d))(?(sign)[._-])(?P<day>(?(sign)\d\d?|\d\d))"
    r"([Tt._-]?(?P<hour>\d\d?))?",
    re.A,
)
"""Years as those of ``schedule.start``; what follows the hour is not looked at."""


def days(first: date, last: date) -> list[str]:
    """Batch keys of every day from ``first`` to ``last``."""
    return [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]


BATCH_KEY = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")


def check_batch_key(batch: str) -> str:
    """``batch`` if it can name a batch and its file; SettingsError otherwise."""
    if BATCH_KEY.fullmatch(batch) and not batch.endswith("."):
        return batch
    raise SettingsError(
        f"{cut(batch, 70)!r} cannot name a batch: 1 to 64 letters, digits, '.', '_' or '-', "
        "a letter or digit first, and no '.' last"
    )
