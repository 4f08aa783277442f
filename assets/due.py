"""Which batches need work, and the demo's logs where there is nothing to work on.

Not here: Dagster, so that this is found out without loading it, and the work (``audit``).
"""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from pipeline.errors import AuditError, DataRefused
from pipeline.history.manifest import Manifest, manifest
from pipeline.log.deliveries import batch_files
from pipeline.runs.outcome import Outcome, unchanged, up_to_date
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import days

DEMO_LISTS = 1_000
"""Lists a day: enough for small groups to have steady scores, little enough for a minute's run."""


def delivered(settings: Settings, batch: str) -> bool:
    """Whether the batch has files, be they readable or not."""
    try:
        return bool(batch_files(settings, batch))
    except DataRefused:
        return True


def batches_due(settings: Settings) -> list[str]:
    """Every day of the period that is over; without an end, up to the last day with logs."""
    schedule = settings.schedule
    yesterday = datetime.now(ZoneInfo(schedule.timezone)).date() - timedelta(days=1)
    batches = days(schedule.start, min(schedule.end or yesterday, yesterday))
    if schedule.end is None:
        while batches and not delivered(settings, batches[-1]):
            batches.pop()
    return batches


def standing(settings: Settings, batches: list[str]) -> dict[str, Outcome]:
    """Batches that running again would change nothing about.

    A refused batch is always tried again: what refused it may be a setting that no hash knows.
    """
    known = manifest(settings)
    outcomes = ((batch, _standing(settings, batch, known)) for batch in batches if batch in known)
    return {batch: outcome for batch, outcome in outcomes if outcome}


def _standing(settings: Settings, batch: str, known: Manifest) -> Outcome | None:
    row = known[batch]
    if up_to_date(settings, batch, known):
        return unchanged(row)
    if delivered(settings, batch):
        return None
    if row.revision:
        return unchanged(row, "its logs are gone, its scores are kept")
    return Outcome(batch, "no_data", row.message or "") if row.status == "no_data" else None


def wants_demo(settings: Settings) -> bool:
    """Whether the settings are about the demo's logs, and there are none yet."""
    from pipeline.synthetic.marketplace import ITEM_SCHEMA, LOG_SCHEMA

    schedule = settings.schedule
    return (
        (settings.logs, settings.items) == (("logs/{batch}/*",), "items.parquet")
        and {*settings.slices} <= {*LOG_SCHEMA.names}
        and {*settings.attribute_columns} <= {*ITEM_SCHEMA.names}
        and not settings.columns
        and schedule.end is not None
        and not any(delivered(settings, batch) for batch in days(schedule.start, schedule.end))
    )


def write_demo(settings: Settings, tell: Callable[[str], None]) -> None:
    """Write the demo's logs, for every day of the period."""
    from pipeline.synthetic.marketplace import generate

    start, end = settings.schedule.start, settings.schedule.end or date.today()
    number = (end - start).days + 1
    tell(f"There are no logs yet: writing {number} days of synthetic ones.")
    try:
        written = generate(
            Path(settings.folder), start=start, days=number, lists=DEMO_LISTS, progress=None
        )
    except (ValueError, OSError) as error:
        raise AuditError(f"the demo's logs cannot be written: {error}") from None
    tell(f"{written.rows:,} rows in {written.lists:,} lists.\n")
