"""Whole batches from logs to history: one, or many in turn, or many at once.

Not here: the steps of one batch (``steps``), processes (``workers``), and what follows the last
batch (``finish``).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace

from pipeline.history.manifest import manifest
from pipeline.monitoring.assess import Notice, due
from pipeline.runs.finish import Finished, Publishing, finish
from pipeline.runs.outcome import Outcome, unchanged, up_to_date
from pipeline.runs.workers import compute_batch, computed_batches, settle_batch
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import batch_keys, expected_key
from pipeline.store.batch_files import living, new_run_id


def run_batch(
    settings: Settings,
    batch: str,
    *,
    force: bool = False,
    from_counts: bool = False,
    notify: bool = False,
    publishing: Publishing = "nothing",
) -> Outcome:
    """Audit one batch: ingest, count, score, merge, and what follows every run (``finish``).

    ``from_counts`` scores the stored counts again without reading logs.  New alerts are sent if
    ``notify``, and if the batch is the newest.  A batch without rows or with refused rows is an
    outcome, not an error; AuditError is what no batch is to blame for, SettingsError a key that
    none may have.
    """
    expected_key(batch, settings)
    known = {} if force or from_counts else manifest(settings)
    if known and up_to_date(settings, batch, known):
        outcome = unchanged(known[batch])
    else:
        run_id = new_run_id()
        with living(settings):
            outcome = settle_batch(
                settings,
                batch,
                run_id,
                lambda: compute_batch(settings, batch, run_id, from_counts),
                force=force,
            )
    looked_at = bool(outcome.revision) and (outcome.status == "done" or due(settings))
    assessed = finish(
        settings,
        [batch] if looked_at else [],
        [batch],
        notify="newest" if notify else "none",
        publishing=publishing,
    ).assessed
    gated = batch in assessed.gated if looked_at else outcome.gated
    return replace(
        outcome,
        gated=gated,
        breaches=0 if gated else outcome.breaches,
        later=assessed.later,
        assessed=assessed.changed,
    )


def backfill(
    settings: Settings,
    batches: Sequence[str],
    *,
    jobs: int = 1,
    force: bool = False,
    from_counts: bool = False,
    notify: Notice = "none",
    finished: Callable[[Finished], object] = lambda _: None,
) -> Iterator[Outcome]:
    """Run many batches; yields each outcome as it is merged into the history.

    Batches that are up to date are left alone, so an interrupted backfill goes on where it
    stopped.  With several ``jobs``, batches are computed in processes of their own and merged by
    this one.  What follows every run (``finish``) comes once, at the end, even when interrupted;
    ``finished`` gets what came of it.  ``notify`` says of which batches new alerts are sent.
    """
    batch_keys(batches, settings)
    manifest_rows = {} if force or from_counts else manifest(settings)
    todo = []
    merged = []
    try:
        for batch in batches:
            if batch in manifest_rows and up_to_date(settings, batch, manifest_rows):
                yield unchanged(manifest_rows[batch])
            else:
                todo.append(batch)
        work = {"force": force, "from_counts": from_counts}
        with living(settings) if todo else nullcontext():
            for outcome in computed_batches(settings, todo, jobs, **work):
                merged += [outcome.batch] if outcome.status == "done" else []
                yield outcome
    finally:
        finished(finish(settings, merged, batches, notify=notify))
