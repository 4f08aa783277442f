"""Batches computed in this process or in several, each put into the history as it is done.

Here: processes, and what happens when one dies.  Not here: which batches, and what follows the
last of them (``batches``).
"""

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from multiprocessing import active_children, get_context

from pipeline.errors import AuditError
from pipeline.history.commits import discard
from pipeline.history.merging import merge, record
from pipeline.runs.outcome import Outcome
from pipeline.runs.steps import Attempted, ingest_batch, score_batch
from pipeline.settings.audit import Settings
from pipeline.store.batch_files import info, new_run_id, opened
from pipeline.store.checkpoints import remove_database
from pipeline.store.memory import shared
from pipeline.store.paths import store_of

_WORKER_DIED = (
    "a worker process died, killed or out of memory; "
    "run the batch again, with fewer --jobs or a memory_limit in the settings"
)


def compute_batch(settings: Settings, batch: str, run_id: str, from_counts: bool) -> Outcome:
    """Everything about a batch that needs no shared file."""
    try:
        ingested = None if from_counts else ingest_batch(settings, batch, run_id, measured=True)
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


def settle_batch(
    settings: Settings,
    batch: str,
    run_id: str,
    compute: Callable[[], Outcome],
    *,
    force: bool,
) -> Outcome:
    """What ``compute`` gives, put into the history; or the note that it gave nothing."""
    try:
        computed = compute()
    except Attempted as failed:
        return _without_scores(settings, failed)
    merged = merge(settings, batch, run_id, force=force)
    status = "done" if merged.changed else "unchanged"
    notes = computed.notes + merged.notes
    return replace(computed, status=status, revision=merged.revision, notes=notes)


def _without_scores(settings: Settings, failed: Attempted) -> Outcome:
    revision = record(settings, failed.row)
    row = failed.row
    message_lines = [str(failed.cause)]
    refused = store_of(settings).refused(row["batch"])
    if row["status"] == "refused" and refused.exists():
        message_lines.append(f"  Rejected rows: table rejected_rows of {refused}")
    if revision:
        message_lines.append(f"  The batch keeps its last good result, revision {revision}.")
    return Outcome(
        row["batch"],
        row["status"],
        "\n".join(message_lines),
        rows_read=row["rows_read"],
        rows_rejected=row["rows_rejected"],
        revision=revision,
        rules=getattr(getattr(failed.cause, "ingested", None), "rules", ()),
        exit_code=failed.cause.exit_code,
    )


def computed_batches(
    settings: Settings,
    batches: Sequence[str],
    jobs: int,
    *,
    force: bool,
    from_counts: bool,
) -> Iterator[Outcome]:
    """The outcome of each batch as it is merged; with several ``jobs``, in any order."""

    def settled(batch: str, run_id: str, compute: Callable[[], Outcome]) -> Outcome:
        try:
            return settle_batch(settings, batch, run_id, compute, force=force)
        except AuditError as error:
            return Outcome(batch, "failed", str(error), exit_code=error.exit_code)
        except BrokenProcessPool:
            return Outcome(batch, "failed", _WORKER_DIED, exit_code=AuditError.exit_code)

    if jobs == 1 or len(batches) < 2:
        for batch in batches:
            run_id = new_run_id()
            yield settled(
                batch, run_id, partial(compute_batch, settings, batch, run_id, from_counts)
            )
        return
    workers = min(jobs, len(batches))
    worker_settings = shared(settings, workers)
    pool = ProcessPoolExecutor(
        workers,
        mp_context=get_context("spawn"),
        initializer=_as_worker,
        initargs=(os.getpid(),),
    )
    pending: dict[Future[Outcome], tuple[str, str]] = {}
    other_processes = active_children()
    try:
        for batch in batches:
            run_id = new_run_id()
            try:
                task = pool.submit(compute_batch, worker_settings, batch, run_id, from_counts)
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
            if worker not in other_processes:
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
