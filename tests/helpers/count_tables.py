"""Every count table of a batch, measured from files."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow
from logs import DAY, Row, Rows, audit, write

from pipeline.runs.steps import ingest_batch, measure_batch
from pipeline.settings.audit import Settings
from pipeline.store.batch_files import opened
from pipeline.store.paths import store_of
from schemas.counts import COUNT_TABLES

NAMES = (*(table.name for table in COUNT_TABLES), "bucket_counts")


def count_tables(
    folder: Path, rows: Sequence[Row] | pyarrow.Table, name: str = "log.parquet", **said: Any
) -> dict[str, Rows]:
    """Count tables of ``rows`` as one file, rows in an order of their own."""
    return from_files(folder, [write(rows, folder / "logs" / DAY / name)], **said)


def from_files(folder: Path, paths: Iterable[Path], **said: Any) -> dict[str, Rows]:
    """Count tables of log files."""
    settings = _ingested(folder, paths, said)
    measure_batch(settings, DAY, "run")
    with opened(settings, store_of(settings).staged(DAY, "run"), read_only=True) as connection:
        return {
            name: connection.sql(f"FROM batch.{name} ORDER BY ALL").to_arrow_table().to_pylist()
            for name in NAMES
        }


def without_numbers(folder: Path, rows: Rows, **said: Any) -> None:
    """Measure a file whose rows are one table of texts, as they once were."""
    settings = _ingested(folder, [write(rows, folder / "logs" / DAY / "log.parquet")], said)
    with opened(settings, store_of(settings).staged(DAY, "run")) as connection:
        connection.execute("CREATE TABLE batch.texts AS FROM batch.ranking_log")
        for name in ("ranking_log", "log_rows"):
            connection.execute(f"DROP VIEW batch.{name}")
        connection.execute("DROP TABLE batch.log_lists")
        connection.execute("ALTER TABLE batch.texts RENAME TO ranking_log")
    measure_batch(settings, DAY, "run")


def _ingested(folder: Path, paths: Iterable[Path], said: dict[str, Any]) -> Settings:
    logs = [f"logs/{{batch}}/{path.name}" for path in paths]
    settings = audit(folder, logs=logs, **said)
    ingest_batch(settings, DAY, "run")
    return settings
