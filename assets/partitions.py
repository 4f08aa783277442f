"""A partition is a batch: one day of logs.

Not here: keys of batches outside Dagster (``pipeline.settings.batch_keys``).
"""

from collections.abc import Sequence
from datetime import timedelta

import dagster as dg

from pipeline.settings.audit import Settings

SINGLE_RUN = dg.BackfillPolicy.single_run()
"""A backfill is one run over its batches: they share a process and one publication."""


def batches_of(settings: Settings) -> dg.DailyPartitionsDefinition:
    """Every day of the settings' period that is over."""
    schedule = settings.schedule
    end = schedule.end + timedelta(days=1) if schedule.end else None
    return dg.DailyPartitionsDefinition(
        start_date=schedule.start.isoformat(),
        end_date=end.isoformat() if end else None,
        timezone=schedule.timezone,
    )


def batches_of_run(run: dg.DagsterRun, batches: dg.PartitionsDefinition[str]) -> Sequence[str]:
    """The batches that a run is about, from its tags; none for a run without partitions."""
    first = run.tags.get("dagster/asset_partition_range_start")
    last = run.tags.get("dagster/asset_partition_range_end")
    if first and last:
        return batches.get_partition_keys_in_range(dg.PartitionKeyRange(first, last))
    one = run.tags.get("dagster/partition")
    return [one] if one else []
