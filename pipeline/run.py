"""Whole batches from logs to history: one, or many in turn, or many at once."""

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from multiprocessing import active_children, get_context
from typing import Any

from pipeline.assess import Assessed, Notice, assess, due
from pipeline.batch import (
    Attempted,
    delivery,
    info,
    ingest_batch,
    measure_batch,
    new_run_id,
    opened,
    score_batch,
)
from pipeline.delivery import deliver
from pipeline.errors import AuditError
from pipeline.forget import forget_rows
from pipeline.history import Manifest, manifest, merge, newest_batch, record
from pipeline.memory import shared
from pipeline.publish import publish_changes
from pipeline.rejects import RuleCount
from pipeline.sealing import discard
from pipeline.settings import Settings, check_batch_key
from pipeline.store import Tell, remove_database, store_of
from pipeline.version import code_version

_WORKER_DIED = (
    "a worker process died, killed or out of memory; "
    "run the batch again, with fewer --jobs or a memory_limit in the settings"
)


@dataclass(frozen=True)
class Outcome:
    """What became of one batch.

    ``status``: done, unchanged, no_data, refused or failed.  ``revision`` counts replacements of
    its scores; 0 when it has none.  ``gated``: a gate keeps its scores from being judged.
    ``result_hash`` is the digest of all published numbers, None where there are none.
    ``later`` are later batches that say something else since; ``assessed``: what the history says
    has changed with an assessment.
    """

    batch: str
    status: str
    message: str = ""
    lists: int = 0
    rows_read: int = 0
    rows_accepted: int = 0
    rows_rejected: int = 0
    scores: int = 0
    breaches: int = 0
    revision: int = 0
    rules: tuple[RuleCount, ...] = ()
    notes: tuple[str, ...] = ()
    gated: bool = False
    result_hash: str | None = None
    later: tuple[str, ...] = ()
    assessed: bool = False
    exit_code: int = 0


def up_to_date(settings: Settings, batch: str, known: Manifest) -> bool:
    """Whether the history already holds what running the batch would give."""
    row = known.get(batch)
    if row is None or row["status"] != "done":
        return False
    if (row["config_hash"], row["code_version"]) != (settings.config_hash, code_version()):
        return False
    if not store_of(settings).batch(batch).exists():
        return False
    try:
        return bool(delivery(settings, batch).digest == row["input_hash"])
    except (AuditError, OSError):
        return False


def unchanged(row: dict[str, Any], why: str = "same input, settings and code") -> Outcome:
    """The outcome of a batch that is left as its row of the manifest says."""
    return Outcome(
        row["batch"],
        "unchanged",
        why,
        row["lists"],
        row["rows_read"],
        row["rows_accepted"],
        row["rows_rejected"],
        breaches=row["breaches"],
        revision=row["revision"],
        gated=row["gated"],
        result_hash=row["result_hash"],
    )


def _computed(settings: Settings, batch: str, run_id: str, from_counts: bool) -> Outcome:
    """Everything about a batch that needs no shared file."""
    try:
        ingested = None if from_counts else ingest_batch(settings, batch, run_id)
        if ingested:
            measure_batch(settings, batch, run_id)
        scores = score_batch(settings, batch, run_id)
    except BaseException:
        remove_database(store_of(settings).staged(batch, run_id))
        raise
    with opened(settings, store_of(settings).current(batch, run_id), read_only=True) as connection:
        row = info(connection)
    return Outcome(
        batch,
        "done",
        "",
        row["lists"],
        row["rows_read"],
        row["rows_accepted"],
        row["rows_rejected"],
        scores=len(scores),
        breaches=sum(row["status"] == "breach" for row in scores),
        rules=ingested.rules if ingested else (),
        notes=ingested.notes if ingested else (),
        result_hash=row["result_hash"],
    )


def _settled(
    settings: Settings,
    batch: str,
    run_id: str,
    compute: Callable[[], Outcome],
    *,
    force: bool,
    waiting: Tell | None,
) -> Outcome:
    """What ``compute`` gives, put into the history; or the note that it gave nothing."""
    try:
        found = compute()
    except Attempted as failed:
        return _without_scores(settings, failed, waiting)
    merged = merge(settings, batch, run_id, force=force, waiting=waiting)
    status = "done" if merged.changed else "unchanged"
    notes = found.notes + merged.notes
    return replace(found, status=status, revision=merged.revision, notes=notes)


def _without_scores(settings: Settings, failed: Attempted, waiting: Tell | None) -> Outcome:
    revision = record(settings, failed.row, waiting)
    row = failed.row
    said = [str(failed.cause)]
    refused = store_of(settings).refused(row["batch"])
    if row["status"] == "refused" and refused.exists():
        said.append(f"  Rejected rows: table rejected_rows of {refused}")
    if revision:
        said.append(f"  The batch keeps its last good result, revision {revision}.")
    return Outcome(
        row["batch"],
        row["status"],
        "\n".join(said),
        rows_read=row["rows_read"],
        rows_rejected=row["rows_rejected"],
        revision=revision,
        rules=getattr(getattr(failed.cause, "ingested", None), "rules", ()),
        exit_code=failed.cause.exit_code,
    )


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


def days(first: date, last: date) -> list[str]:
    """Batch keys of every day from ``first`` to ``last``."""
    return [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]


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


def _computed_in_turn(
    settings: Settings,
    batches: Sequence[str],
    jobs: int,
    *,
    force: bool,
    from_counts: bool,
    waiting: Tell | None,
) -> Iterator[Outcome]:
    def settled(batch: str, run_id: str, compute: Callable[[], Outcome]) -> Outcome:
        try:
            return _settled(settings, batch, run_id, compute, force=force, waiting=waiting)
        except AuditError as error:
            return Outcome(batch, "failed", str(error), exit_code=error.exit_code)
        except BrokenProcessPool:
            return Outcome(batch, "failed", _WORKER_DIED, exit_code=AuditError.exit_code)

    if jobs == 1 or len(batches) < 2:
        for batch in batches:
            run_id = new_run_id()
            yield settled(batch, run_id, partial(_computed, settings, batch, run_id, from_counts))
        return
    workers = min(jobs, len(batches))
    each = shared(settings, workers)
    pool = ProcessPoolExecutor(
        workers,
        mp_context=get_context("spawn"),
        initializer=_as_worker,
        initargs=(os.getpid(),),
    )
    pending: dict[Future[Outcome], tuple[str, str]] = {}
    others = active_children()
    try:
        for batch in batches:
            run_id = new_run_id()
            try:
                task = pool.submit(_computed, each, batch, run_id, from_counts)
            except BrokenProcessPool as broken:
                task = Future()
                task.set_exception(broken)
            pending[task] = batch, run_id
        for task in as_completed(pending):
            outcome = settled(*pending[task], task.result)
            del pending[task]
            yield outcome
    except BaseException:
        # Ctrl-C reaches the workers too, SIGTERM may reach this process only.
        for worker in active_children():
            if worker not in others:
                worker.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for batch, run_id in pending.values():
            discard(store_of(settings), batch, run_id)


def _as_worker(parent: int) -> None:
    """A worker says nothing on Ctrl-C, which reaches it too, and does not outlive its parent."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    done = threading.Event()

    def watch() -> None:
        while os.getppid() == parent:
            if done.wait(1):
                return
        os._exit(1)

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()

    def end() -> None:
        # A thread that outlives the interpreter keeps modules alive that complain about it.
        done.set()
        watching.join()

    atexit.register(end)
