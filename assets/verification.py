"""The whole store, looked at by Dagster: a job of one step that computes nothing.

Not here: what is looked at (``pipeline.integrity.verify``), and when (``schedules``).
"""

import dagster as dg

from assets.resources import Audit
from pipeline.integrity.verify import verify

JOB = "verify"


@dg.op(
    name="whole_store", description="Reads every file of the store; fails where anything is wrong."
)
def _verified(context: dg.OpExecutionContext, audit: Audit) -> None:
    found = verify(audit.settings)
    head = "none" if found.head is None else f"line {found.head[0]}, {found.head[1]}"
    context.log.info(
        f"{found.batches} batches, {found.revisions} results, {found.files} files; "
        f"the ledger's last line: {head}"
    )
    if found.problems:
        # What is wrong may name people who acknowledged alerts, which is nothing for events.
        raise dg.Failure(
            f"{len(found.problems)} things are wrong in the store; `evenrank verify` names them",
            metadata={"problems": len(found.problems)},
            allow_retries=False,
        )


@dg.job(
    name=JOB,
    description="Every file of the store against the ledger, whatever was looked at before.",
    executor_def=dg.in_process_executor,
)
def verify_job() -> None:
    """Look at the whole store."""
    _verified()
