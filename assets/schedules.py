"""What runs by itself: every night the day that has just ended, every week a look at the store.

Not here: days of the past, which somebody asks for.
"""

from typing import TYPE_CHECKING

import dagster as dg

from pipeline.settings.audit import Settings

if TYPE_CHECKING:
    from dagster._core.definitions.partitions.partitioned_schedule import (
        UnresolvedPartitionedAssetScheduleDefinition,
    )
    from dagster._core.definitions.unresolved_asset_job_definition import (
        UnresolvedAssetJobDefinition,
    )

JOB = "audit"
NIGHTLY = "nightly"
WEEKLY = "weekly"
_HOURS_LATER = 6
"""After the night's run, and its further attempts."""


def audit_job() -> "UnresolvedAssetJobDefinition":
    """Everything, from logs to dashboard, for one batch or a range of them."""
    return dg.define_asset_job(
        JOB,
        selection=dg.AssetSelection.all(),
        executor_def=dg.in_process_executor,
        description="From the logs of a batch to the dashboard copy, with every check.",
    )


def nightly(
    settings: Settings, job: "UnresolvedAssetJobDefinition"
) -> "UnresolvedPartitionedAssetScheduleDefinition | dg.ScheduleDefinition":
    """The job on the newest batch, at the hour of the settings; off until it is switched on."""
    return dg.build_schedule_from_partitioned_job(
        job,
        name=NIGHTLY,
        description="Audits the day that has just ended.",
        hour_of_day=settings.schedule.hour,
        minute_of_hour=settings.schedule.minute,
    )


def weekly(settings: Settings, job: dg.JobDefinition) -> dg.ScheduleDefinition:
    """The whole store on Sundays, some hours after the night; off until it is switched on."""
    schedule = settings.schedule
    hour = (schedule.hour + _HOURS_LATER) % 24
    return dg.ScheduleDefinition(
        name=WEEKLY,
        job=job,
        cron_schedule=f"{schedule.minute} {hour} * * 0",
        execution_timezone=schedule.timezone,
        description="Reads the whole store, whatever was looked at before.",
    )
