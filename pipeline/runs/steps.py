"""One batch, step by step: ingest, measure, score.

Each step opens a file, does one thing in one transaction and leaves a whole file behind, so that a
scheduler can run, repeat or select steps.  A run works on a staged file of its own, which takes the
place of the batch's file with its merge into the history; that file itself is never written to.

Not here: the history, and which batches are due (``batches``).
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from shutil import copyfile
from typing import Any

from metrics import Measure
from pipeline.counts.count import count_batch
from pipeline.counts.group_items import add_group_items
from pipeline.counts.stored_counts import StoredCounts, check_counts
from pipeline.errors import AuditError, DataRefused, NoData
from pipeline.history.proof import check_batch_file
from pipeline.log.deliveries import delivery, input_hash
from pipeline.log.ingest import BatchRefused, Ingested, ingest
from pipeline.log.sources import open_sources
from pipeline.privacy.hashed_ids import check_key
from pipeline.runs.leftovers import sweep
from pipeline.scores import scoring
from pipeline.scores.digests import result_hash, rows_of_file
from pipeline.scores.evidence.doubt import Evidence
from pipeline.scores.scoring import drop_other_measures, origin_of_scores
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import expected_key
from pipeline.store.batch_files import DATABASE, info, opened, write_info
from pipeline.store.checkpoints import remove_database
from pipeline.store.files import replace_file
from pipeline.store.memory import peak_memory, watch_memory
from pipeline.store.paths import store_of
from pipeline.store.sessions import SMALL_BLOCKS, attach, working
from pipeline.store.tables import add_columns, create, now, transaction
from pipeline.version import code_version
from schemas.columns import Row
from schemas.scores import FAIRNESS_HISTORY, GROUP_HISTORY


def attempt(
    settings: Settings,
    batch: str,
    run_id: str,
    started_at: datetime,
    *,
    status: str = "done",
    message: str | None = None,
    ingested: Ingested | None = None,
    digest: str = "",
) -> dict[str, Any]:
    """A manifest row, without its revision."""
    return {
        "batch": batch,
        "status": status,
        "message": message,
        "lists": ingested.lists if ingested else 0,
        "rows_read": ingested.rows_read if ingested else 0,
        "rows_accepted": ingested.rows_accepted if ingested and status == "done" else 0,
        "rows_rejected": ingested.rows_rejected if ingested else 0,
        "lists_rejected": ingested.lists_rejected if ingested else 0,
        "graded_rows": ingested.graded_rows if ingested else 0,
        "run_id": run_id,
        "code_version": code_version(),
        "config_hash": settings.config_hash,
        "input_hash": digest,
        "rows_hash": settings.rows_hash,
        "started_at": started_at,
        "finished_at": now(),
        "peak_memory": peak_memory(),
        "result_hash": None,
        "settings": settings.deciding,
        "rows_joined": ingested.rows_joined if ingested and status == "done" else None,
        "ids_differ_in": ingested.ids_differ_in if ingested and status == "done" else None,
    }


class Attempted(Exception):
    """A batch could not be done; carries the manifest row to record, raised from the cause."""

    def __init__(self, row: dict[str, Any], cause: AuditError) -> None:
        super().__init__(str(cause))
        self.row = row
        self.cause = cause

    def __reduce__(self) -> tuple[type["Attempted"], tuple[dict[str, Any], AuditError]]:
        """How it comes back from a worker process, whole."""
        return Attempted, (self.row, self.cause)


def ingest_batch(
    settings: Settings, batch: str, run_id: str, *, measured: bool = False
) -> Ingested:
    """Read, check and stage the rows of a batch; ``measured``: count them while they are in hand.

    Attempted carries the manifest row when there are no rows or they are refused; rejected rows
    of a refused batch are kept in the store's ``refused`` folder.
    """
    expected_key(batch, settings)
    check_key(settings)
    started = now()
    watch_memory(f"{batch} {run_id}")
    store = store_of(settings)
    store.make()
    sweep(settings, batch)
    staged = store.staged(batch, run_id)
    remove_database(staged)
    digest = ""
    try:
        found = delivery(settings, batch)
        with working(settings, [*found.folders, staged.parent]) as connection:
            sources = open_sources(found.paths, settings, connection)
            tables = open_sources([found.items], settings, connection) if found.items else []
            items = tables[0] if tables else None
            digest = input_hash(source.digest for source in (*sources, *tables))
            attach(connection, staged, DATABASE, block_size=_block_size(found.paths))
            try:
                ingested, rows = ingest(connection, settings, sources, items, DATABASE)
            except BatchRefused:
                # What was rejected is kept, in a file without a write-ahead log.
                connection.execute(f"CHECKPOINT {DATABASE}")
                raise
            with transaction(connection):
                rows.store()
            if measured:
                count_batch(connection, settings, DATABASE, rows)
            row = attempt(settings, batch, run_id, started, ingested=ingested, digest=digest)
            with transaction(connection):
                write_info(connection, row)
            connection.execute(f"CHECKPOINT {DATABASE}")
    except BaseException as error:
        if isinstance(error, BatchRefused) and staged.exists():
            replace_file(staged, store.refused(batch))
        remove_database(staged)
        if isinstance(error, NoData | DataRefused):
            row = attempt(
                settings,
                batch,
                run_id,
                started,
                status="no_data" if isinstance(error, NoData) else "refused",
                message=str(error),
                ingested=error.ingested if isinstance(error, BatchRefused) else None,
                digest=digest,
            )
            raise Attempted(row, error) from error
        raise
    remove_database(store.refused(batch))
    return ingested


_LITTLE_BYTES = 2**20
"""Delivered text, some 25,000 rows, below which small blocks make a file of half the size or less.
From about five times as many rows on they make a larger one."""
_PACKED = {".parquet": 8, ".gz": 8}
"""About how many bytes of text one of theirs stands for, by the end of a file's name."""


def _block_size(paths: Sequence[Path]) -> int | None:
    """The size of blocks that suits what is delivered; None for that of DuckDB."""
    text = 0
    for path in paths:
        with suppress(OSError):
            text += path.stat().st_size * _PACKED.get(path.suffix, 1)
    return SMALL_BLOCKS if text < _LITTLE_BYTES else None


def measure_batch(settings: Settings, batch: str, run_id: str) -> dict[str, int]:
    """Count the rows of a batch; returns rows per count table."""
    watch_memory(f"{batch} {run_id}")
    with opened(settings, _own(settings, batch, run_id)) as connection:
        counted = count_batch(connection, settings, DATABASE)
        row = info(connection)
        with transaction(connection):
            write_info(connection, row | _more_memory(row))
    return counted


def score_batch(
    settings: Settings, batch: str, run_id: str, measures: Sequence[Measure] | None = None
) -> list[Row]:
    """Compute scores from the counts of a batch and store them in its file.

    ``measures`` restricts the work to some of the settings' measures.  Returns rows of
    fairness_history.  AuditError if the counts were made under other settings.
    """
    chosen_measures = settings.measures if measures is None else tuple(measures)
    watch_memory(f"{batch} {run_id}")
    with opened(settings, _own(settings, batch, run_id)) as connection:
        row = info(connection)
        if row["rows_hash"] != settings.rows_hash:
            raise AuditError(
                f"{batch}: its rows were counted under other settings (columns, ranks, attributes, "
                "slices, values, rejects, relevant_from or what is missing); run it again from its "
                "logs"
            )
        check_counts(connection, batch)
        add_group_items(connection, settings, DATABASE)
        stamp = scoring.RunStamp(
            run_id, code_version(), settings.config_hash, row["input_hash"], now()
        )
        stored = StoredCounts(connection, DATABASE)
        scored = scoring.scored(stored, settings, chosen_measures)
        evidence = Evidence(connection, DATABASE, settings, chosen_measures)
        scores, groups = scoring.rows_of(scored, stored, settings, batch, stamp, evidence)
        create(connection, DATABASE, FAIRNESS_HISTORY, GROUP_HISTORY)
        add_columns(connection, DATABASE, FAIRNESS_HISTORY, GROUP_HISTORY)
        with transaction(connection):
            scoring.write_scores(connection, DATABASE, scores, groups, chosen_measures)
            drop_other_measures(connection, settings)
            write_info(
                connection,
                row
                | origin_of_scores(connection, settings, stamp)
                | _more_memory(row)
                | {"result_hash": result_hash(connection, *rows_of_file(DATABASE))}
                | {"run_id": run_id, "finished_at": now()},
            )
    return scores


def _more_memory(row: dict[str, Any]) -> dict[str, int | None]:
    """What a batch took, its steps so far included, each perhaps in a process of its own."""
    return {"peak_memory": max(row["peak_memory"] or 0, peak_memory() or 0) or None}


def _own(settings: Settings, batch: str, run_id: str) -> Path:
    """The staged file of a run; at first a copy of what the batch has."""
    store = store_of(settings)
    staged, path = store.staged(batch, run_id), store.batch(batch)
    if not staged.exists():
        if not path.exists():
            raise NoData(f"{batch}: nothing is stored yet; run the batch from its logs first")
        check_batch_file(store, batch)
        part = staged.with_suffix(".part")
        copyfile(path, part)
        part.replace(staged)
    return staged
