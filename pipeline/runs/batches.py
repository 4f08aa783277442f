"""Whole batches from logs to history: one, or many in turn, or many at once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from pipeline.history.forget import forget_rows
from pipeline.history.manifest import manifest, newest_batch
from pipeline.monitoring.assess import Assessed, Notice, assess, due
from pipeline.monitoring.delivery import deliver
from pipeline.publish.copy import publish_changes
from pipeline.runs.outcome import Outcome, unchanged, up_to_date
from pipeline.runs.workers import _computed, _computed_in_turn, _settled
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import check_batch_key
from pipeline.store.batch_files import new_run_id
from pipeline.store.sessions import Tell


def run_batch(
    settings: Settings,
    batch: str,
    *,
    force: bool = False,
    from_counts: bool = False,
    notify: bool = False,
    waiting: Tell | None = None,
) -> Outcome:
    """Ingest, measure, score, merge and assess one batch; publishing is a step of its own.

    ``from_counts`` scores the stored counts again without reading logs.  New alerts may be sent
    if ``notify``, and if the batch is the newest.  A batch without rows or with refused rows is an
    outcome, not an error; AuditError is what no batch is to blame for.
    """
    check_batch_key(batch)
    known = {} if force or from_counts else manifest(settings, waiting)
    if known and up_to_date(settings, batch, known):
        outcome = unchanged(known[batch])
    else:
        run_id = new_run_id()
        outcome = _settled(
            settings,
            batch,
            run_id,
            lambda: _computed(settings, batch, run_id, from_counts),
            force=force,
            waiting=waiting,
        )
    if outcome.status != "done" and not due(settings):
        return outcome
    asked = [batch] if outcome.revision else []
    found = assess(settings, asked, notify="newest" if notify else "none", waiting=waiting)
    gated = batch in found.gated
    return replace(
        outcome,
        gated=gated,
        breaches=0 if gated else outcome.breaches,
        later=found.later,
        assessed=found.changed,
    )


def backfill(
    settings: Settings,
    batches: Sequence[str],
    *,
    jobs: int = 1,
    force: bool = False,
    from_counts: bool = False,
    notify: Notice = "none",
    waiting: Tell | None = None,
    assessed: Callable[[Assessed], object] = lambda found: None,
) -> Iterator[Outcome]:
    """Run many batches; yields each outcome as it is merged into the history.

    Batches that are up to date are left alone, so an interrupted backfill goes on where it
    stopped.  With several ``jobs``, batches are computed in processes of their own and merged by
    this one.  The history is assessed and the dashboard copy published once, at the end, even when
    interrupted; ``assessed`` is told what came of it.  ``notify`` says of which batches new alerts
    are sent.
    """
    known = {} if force or from_counts else manifest(settings, waiting)
    todo = []
    merged = []
    try:
        for batch in batches:
            if batch in known and up_to_date(settings, batch, known):
                yield unchanged(known[batch])
            else:
                todo.append(batch)
        for outcome in _computed_in_turn(
            settings, todo, jobs, force=force, from_counts=from_counts, waiting=waiting
        ):
            merged += [outcome.batch] if outcome.status == "done" else []
            yield outcome
    finally:
        found = assess(settings, merged, notify=notify, waiting=waiting)
        assessed(found)
        forget_rows(settings, waiting)
        publish_changes(settings, waiting)
        sends = notify == "all" or (notify == "newest" and newest_batch(settings) in batches)
        if sends and deliver(settings, waiting):
            publish_changes(settings, waiting)
