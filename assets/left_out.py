"""Batches that a run had to leave out, so that the others could go on.

Each leaves a note beside the run's staged files.  Later steps skip the batch, the last step fails
the run in its name, and a re-execution of the failed part still knows.

Not here: why a batch was left out, which is in the manifest.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import dagster as dg

from pipeline.errors import AuditError, several
from pipeline.history.merging import place, record
from pipeline.runs.steps import Attempted, attempt
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.store.tables import now
from pipeline.terminal.notes import notes_to

T = TypeVar("T")
HISTORY_ASSET = "fairness_history"
_LISTED = 20  # lines of a message that people read


@dataclass(frozen=True)
class LeftOut:
    """Why a batch was left out; ``status`` is that of the manifest."""

    batch: str
    status: str
    message: str
    run: str


def work_id(run: dg.DagsterRun) -> str:
    """Names the staged files of a run; a re-execution goes on with those of the first run."""
    return run.root_run_id or run.run_id


def _note(settings: Settings, batch: str, work: str) -> Path:
    return store_of(settings).staged(batch, work).with_suffix(".left-out")


def left_out(settings: Settings, run: dg.DagsterRun, batches: Iterable[str]) -> dict[str, LeftOut]:
    """Those of ``batches`` that the run has left out so far.

    A re-execution tries again what failed; data that was missing or refused still is.
    """
    found = {}
    for batch in batches:
        note = _note(settings, batch, work_id(run))
        if note.exists():
            why = LeftOut(**json.loads(note.read_text(encoding="utf-8")))
            if why.status != "failed" or why.run == run.run_id:
                found[batch] = why
    return found


def forget(settings: Settings, batch: str) -> None:
    """Remove the notes of a batch, of this run and of earlier ones: it is done, or begun anew."""
    for note in (store_of(settings).root / "staged").glob(f"{batch}.*.left-out"):
        note.unlink(missing_ok=True)


def leave_out(
    settings: Settings,
    run: dg.DagsterRun,
    batch: str,
    error: AuditError | Attempted,
    started: datetime,
) -> None:
    """Note for the rest of the run, and in the manifest, that a batch cannot be done.

    A run about a few assets that were not ready for it says nothing about the batch as a whole.
    """
    row = (
        error.row
        if isinstance(error, Attempted)
        else attempt(settings, batch, work_id(run), started, status="failed", message=str(error))
    )
    if isinstance(error, Attempted) or reaches_history(run):
        record(settings, row)
    store_of(settings).make()
    why = LeftOut(batch, row["status"], str(error), run.run_id)
    _note(settings, batch, work_id(run)).write_text(json.dumps(asdict(why)), encoding="utf-8")


def each_batch(
    context: dg.AssetExecutionContext, settings: Settings, do: Callable[[str], T]
) -> tuple[dict[str, T], dict[str, LeftOut]]:
    """``do(batch)`` for every batch of the run that is not left out, and those that are.

    A batch that fails is left out from there on.  A run that stops short of the history leaves
    what it did in the batch's file, for a later run to go on with.
    """
    run, keys = context.run, context.partition_keys
    skipped = left_out(settings, run, keys)
    found = {}
    for batch in keys:
        if batch in skipped:
            continue
        started = now()
        try:
            with notes_to(context.log.log):
                found[batch] = do(batch)
                if not reaches_history(run):
                    place(settings, batch, work_id(run))
        except (AuditError, Attempted) as error:
            context.log.warning(f"{batch} is left out: {error}")
            leave_out(settings, run, batch, error, started)
    return found, left_out(settings, run, keys)


def materialized(
    context: dg.AssetExecutionContext,
    asset: str,
    numbers: Mapping[str, Mapping[str, Any]],
    gone: Mapping[str, LeftOut],
) -> dg.MaterializeResult[None]:
    """The result of an asset, with numbers per batch.

    Dagster counts it for every batch of the run, so those that were left out say so.
    """
    for batch, said in numbers.items():
        context.add_asset_metadata(said, asset, batch)
    for batch, why in gone.items():
        context.add_asset_metadata({"status": why.status}, asset, batch)
    return dg.MaterializeResult(asset_key=asset)


def reaches_history(run: dg.DagsterRun) -> bool:
    """Whether the run goes on to the history: what it computes is final there, not before."""
    if run.asset_selection:
        return dg.AssetKey(HISTORY_ASSET) in run.asset_selection
    return not run.asset_check_selection


def failure(gone: Mapping[str, LeftOut], batches: int) -> dg.Failure:
    """The end of a run that could not do all of its batches."""
    if batches == 1:
        (only,) = gone.values()
        return dg.Failure(_with_batch(only), {"status": only.status}, allow_retries=False)
    lines = [_with_batch(each).split("\n", 1)[0] for each in gone.values()]
    if len(lines) > _LISTED:
        lines[_LISTED:] = [f"and {len(lines) - _LISTED} more"]
    done = batches - len(gone)
    advice = "The others are done and published." if done else ""
    return dg.Failure(
        several(f"{len(gone)} of {batches} batches could not be done", lines, advice),
        {"batches_left_out": len(gone), "batches_done": done},
        allow_retries=False,
    )


def _with_batch(gone: LeftOut) -> str:
    head = gone.message if gone.message.startswith(gone.batch) else f"{gone.batch}: {gone.message}"
    return f"{gone.status.replace('_', ' ')}: {head}"
