"""Every batch through the real assets, in this process: ``python -m assets.audit``.

What a webserver and a daemon would show lands in the same folder of runs, so that ``make dev``
opens on it.  Dagster is imported only where there is something to do.

Not here: which batches need work (``due``).
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from assets.due import batches_due, delivered, standing, wants_demo, write_demo
from assets.interrupts import noticed_interrupts
from assets.location import dagster_home, settings_file
from pipeline.errors import AuditError
from pipeline.history.manifest import manifest
from pipeline.log.rejected_rows import RuleCount
from pipeline.publish.page.fresh import show
from pipeline.runs.batches import run_batch
from pipeline.runs.outcome import Outcome
from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings
from pipeline.store.checkpoints import remove_database
from pipeline.store.paths import store_of
from pipeline.terminal.closing import closing
from pipeline.terminal.notes import notes_to
from pipeline.terminal.printing import batch_line, console, details, printable

if TYPE_CHECKING:
    import dagster as dg
    from rich.console import Console

INTERRUPTED = 130  # what shells report for Ctrl-C: 128 + SIGINT
_REFUSED = 3  # as the command line has it: DataRefused in pipeline.errors
_SILENT = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
"""Dagster prints every failure with its stack; here each has its line, and its run the stack."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Audit what needs it; returns the exit code: 1 a batch failed, 3 one was refused, 0 else."""
    parser = argparse.ArgumentParser(prog="python -m assets.audit", description=__doc__)
    parser.add_argument("--config", type=Path, help="settings file (default: audit.yaml)")
    parser.add_argument("--quiet", action="store_true", help="print errors only")
    given = parser.parse_args(arguments)
    file = given.config or settings_file()
    out, err = console(quiet=given.quiet), console(stderr=True)
    try:
        settings = load_settings(file)
        if given.config is None and wants_demo(settings):
            write_demo(settings, out.print)
        with notes_to(lambda _, text: err.print(printable(text))):
            outcomes = audited(settings, file, out)
        if not given.quiet:
            closing(settings, outcomes, str(given.config or "audit.yaml"))
    except AuditError as error:
        err.print(printable(str(error)))
        return error.exit_code
    except KeyboardInterrupt:
        err.print("\nInterrupted. Finished batches are kept; call again to go on.")
        return INTERRUPTED
    found = {outcome.status for outcome in outcomes}
    return 1 if "failed" in found else _REFUSED if "refused" in found else 0


def audited(settings: Settings, file: Path, out: "Console") -> list[Outcome]:
    """Outcomes of all batches, those that need work after running them."""
    batches = batches_due(settings)
    if not batches:
        raise AuditError(
            f"{file}: no batch is due: no logs lie under {', '.join(settings.logs)} for a day "
            f"from {settings.schedule.start} on (schedule.start) that is over"
        )
    outcomes = standing(settings, batches)
    todo = [batch for batch in batches if batch not in outcomes]
    if not todo:
        out.print("Nothing to do: every batch is up to date.")
        if not store_of(settings).dashboard.exists() and manifest(settings):
            show(settings)
    elif outcomes:
        out.print(f"{len(outcomes)} of {len(batches)} batches are up to date.")
    for outcome in _run(settings, file, todo) if todo else ():
        outcomes[outcome.batch] = outcome
        for line in (batch_line(outcome, out.encoding), *details(outcome)):
            out.print(line)
    return [outcomes[batch] for batch in batches]


def _run(settings: Settings, file: Path, batches: Sequence[str]) -> Iterator[Outcome]:
    home = dagster_home(file)
    import dagster as dg

    from assets.definitions import definitions
    from assets.schedules import JOB

    job = definitions(file).resolve_job_def(JOB)
    with dg.DagsterInstance.from_config(str(home)) as instance, noticed_interrupts() as interrupted:
        for batch in batches:
            if not delivered(settings, batch):
                # A past day without logs stays an empty partition; the manifest has its gap.
                yield run_batch(settings, batch)
                continue
            run_id = str(uuid4())
            try:
                result = job.execute_in_process(
                    partition_key=batch,
                    instance=instance,
                    run_id=run_id,
                    run_config=_SILENT,
                    raise_on_error=False,
                )
                if interrupted() and not result.success:
                    raise KeyboardInterrupt
            except KeyboardInterrupt:
                remove_database(store_of(settings).staged(batch, run_id))
                raise
            if result.success:
                yield _succeeded(batch, result)
            else:
                yield _failed(settings, instance, batch, result)
            if interrupted():
                raise KeyboardInterrupt


def _succeeded(batch: str, result: "dg.ExecuteInProcessResult") -> Outcome:
    said = {
        event.asset_key.to_user_string(): event.materialization.metadata
        for event in result.all_events
        if event.is_step_materialization and event.asset_key
    }
    log, history = said["ranking_log"], said["fairness_history"]
    # Of a batch of too few, no number is told.
    lists, read, accepted, rejected = (
        _count(log, name) if name in log else None
        for name in ("lists", "rows_read", "dagster/row_count", "rows_rejected")
    )
    return Outcome(
        batch,
        "done" if history["changed"].value else "unchanged",
        lists=lists,
        rows_read=read,
        rows_accepted=accepted,
        rows_rejected=rejected,
        scores=_count(history, "dagster/row_count"),
        breaches=0 if history["gated"].value else _count(history, "breaches"),
        gated=bool(history["gated"].value),
        revision=_count(history, "revision"),
        rules=_rules(result),
    )


def _failed(
    settings: Settings,
    instance: "dg.DagsterInstance",
    batch: str,
    result: "dg.ExecuteInProcessResult",
) -> Outcome:
    from assets.left_out import left_out
    from assets.sensors import message_of, record_failure

    run = result.dagster_run
    why = left_out(settings, run, [batch]).get(batch)
    if why:
        return Outcome(batch, why.status, why.message, rules=_rules(result))
    message = message_of([e for e in result.all_events if e.is_step_failure], None)
    record_failure(settings, instance, run, message)
    return Outcome(batch, "failed", message, exit_code=1)


def _rules(result: "dg.ExecuteInProcessResult") -> tuple[RuleCount, ...]:
    from assets.log_checks import CONTRACT, rules_of

    for evaluation in result.get_asset_check_evaluations():
        if evaluation.check_name == CONTRACT:
            return rules_of(evaluation)
    return ()


def _count(metadata: Any, name: str) -> int:
    return int(metadata[name].value)


if __name__ == "__main__":
    sys.exit(main())
