"""What happens when a run fails: the manifest says so, and the log has one line per batch.

Not here: batches that a run leaves out and goes on (``left_out``).
"""

from collections.abc import Iterable

import dagster as dg

from assets.left_out import HISTORY_ASSET, left_out, reaches_history, work_id
from assets.partitions import batches_of, batches_of_run
from assets.resources import Audit
from pipeline.history.merging import record
from pipeline.log.headers import unquoted
from pipeline.runs.steps import attempt
from pipeline.settings.audit import Settings
from pipeline.store.tables import now

SENSOR = "record_failures"


@dg.run_failure_sensor(
    name=SENSOR,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Notes in the manifest which batches a failed run left without a result.",
)
def record_failures(context: dg.RunFailureSensorContext, audit: Audit) -> None:
    """Record the batches of a failed run as failed, unless the run did so itself."""
    message = message_of(context.get_step_failure_events(), context.failure_event)
    for batch in record_failure(audit.settings, context.instance, context.dagster_run, message):
        context.log.error(f"{batch} failed: {message.splitlines()[0]}")


def record_failure(
    settings: Settings, instance: dg.DagsterInstance, run: dg.DagsterRun, message: str
) -> list[str]:
    """Note the batches that a failed run neither finished nor noted itself; returns them."""
    if not reaches_history(run):
        return []
    batches = batches_of_run(run, batches_of(settings))
    settled = {*left_out(settings, run, batches), *_finished(instance, run)}
    failed = [batch for batch in batches if batch not in settled]
    for batch in failed:
        row = attempt(settings, batch, work_id(run), now(), status="failed", message=message)
        record(settings, row)
    return failed


def _finished(instance: dg.DagsterInstance, run: dg.DagsterRun) -> set[str]:
    """Batches whose result the run has put into the history."""
    records = instance.get_records_for_run(
        run.run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION
    ).records
    events = [record.asset_materialization for record in records]
    return {
        event.partition
        for event in events
        if event and event.partition and event.asset_key == dg.AssetKey(HISTORY_ASSET)
    }


def message_of(steps: Iterable[dg.DagsterEvent], run: dg.DagsterEvent | None) -> str:
    """What went wrong, in the words of the first step that says it."""
    for event in steps:
        data = event.step_failure_data
        if data.user_failure_data and data.user_failure_data.description:
            return data.user_failure_data.description
        error = data.error
        while error and error.cause:
            error = error.cause
        if error:
            # What other programs say may quote rows; what this one says does not.
            own = error.message.startswith("pipeline.")
            return error.message.strip() if own else unquoted(error.message)
    return (run.message if run else None) or "the run failed"
