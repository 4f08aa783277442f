"""The root of the code location: what `dagster dev` loads, put together from the settings.

Not here: any asset, check or schedule itself.
"""

from pathlib import Path
from warnings import catch_warnings, simplefilter

import dagster as dg

from assets.alert_checks import alert_check
from assets.counts import count_assets
from assets.history import history_assets
from assets.location import settings_file
from assets.log import log_asset
from assets.partitions import batches_of
from assets.resources import Audit, NothingPassed
from assets.schedules import audit_job, nightly, weekly
from assets.score_checks import score_checks
from assets.scores import measures_by_asset, metric_assets
from assets.sensors import record_failures
from assets.verification import verify_job
from pipeline.settings.load import load_settings


def definitions(file: Path) -> dg.Definitions:
    """Everything of the code location, for the audit that ``file`` describes.

    Backfill policies and partitioned checks are announced as beta and preview by the one version
    of Dagster that this project pins; the announcements are for whoever moves the pin.
    """
    with catch_warnings():
        simplefilter("ignore", dg.BetaWarning)
        simplefilter("ignore", dg.PreviewWarning)
        return _definitions(file)


def _definitions(file: Path) -> dg.Definitions:
    settings = load_settings(file)
    batches = batches_of(settings)
    metrics = list(measures_by_asset(settings))
    job = audit_job()
    return dg.Definitions(
        assets=[
            log_asset(settings, batches),
            count_assets(settings, batches),
            metric_assets(settings, batches),
            history_assets(settings, batches, metrics),
        ],
        asset_checks=[*score_checks(settings, batches, metrics), alert_check(batches)],
        jobs=[job, verify_job],
        schedules=[nightly(settings, job), weekly(settings, verify_job)],
        sensors=[record_failures],
        resources={
            "audit": Audit(settings_file=str(file.absolute())),
            "io_manager": NothingPassed(),
        },
        executor=dg.in_process_executor,
    )


@dg.definitions
def defs() -> dg.Definitions:
    """The audit that EVENRANK_CONFIG names, or that of audit.yaml in this folder."""
    return definitions(settings_file())
