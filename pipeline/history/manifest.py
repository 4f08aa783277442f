"""The manifest: one row per batch that was ever tried, and whether two results are the same.

Not here: scores (``merging``, ``queries``).
"""

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

import duckdb

from pipeline.history.commits import has_history
from pipeline.history.opening import HISTORY_DATABASE, has_table, open_history
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from schemas.history import BATCHES
from schemas.monitoring import GATES


@dataclass(frozen=True)
class BatchRecord:
    """The last attempt at a batch: its row of the manifest, and what the history says of it.

    ``schemas.history.BATCHES`` says what each column means.  ``breaches``: how many of its scores
    are; ``gated``: a gate keeps it from being judged.
    """

    batch: str
    status: str
    message: str | None
    lists: int
    rows_read: int
    rows_accepted: int
    rows_rejected: int
    lists_rejected: int
    graded_rows: int
    revision: int
    run_id: str
    code_version: str
    config_hash: str
    input_hash: str
    rows_hash: str
    started_at: datetime
    finished_at: datetime
    peak_memory: int | None
    result_hash: str | None
    settings: str | None
    rows_joined: int | None
    ids_differ_in: str | None
    breaches: int
    gated: bool


Manifest = dict[str, BatchRecord]
OF_SCORES = ("rows_joined", "ids_differ_in")
"""What a row says of the current scores, also where the last attempt gave none."""


def newest_batches(settings: Settings) -> set[str]:
    """The last batch, by key, that has scores, and the last that was tried; empty without any."""
    rows = manifest(settings)
    done = [batch for batch, row in rows.items() if row.revision]
    return {*done[-1:], *[*rows][-1:]}


def manifest(settings: Settings) -> Manifest:
    """The last attempt at each batch, by batch; empty without a history."""
    if not has_history(store_of(settings)):
        return {}
    with open_history(settings, read_only=True) as connection:
        failed = "SELECT NULL AS batch"
        if has_table(connection, GATES):
            failed = "SELECT batch FROM history.gates WHERE NOT passed"
        rows = connection.sql(
            "SELECT *, (SELECT count(*) FROM history.fairness_history AS scores "
            "WHERE scores.batch = batches.batch AND scores.status = 'breach') AS breaches, "
            f"EXISTS (FROM ({failed}) AS gates WHERE gates.batch = batches.batch) AS gated "
            "FROM history.batches ORDER BY batch"
        ).to_arrow_table()
    # A history that was not written to since an upgrade lacks what is new.
    names = [field.name for field in fields(BatchRecord)]
    return {
        row["batch"]: BatchRecord(**{name: row.get(name) for name in names})
        for row in rows.to_pylist()
    }


def current_row(connection: duckdb.DuckDBPyConnection, batch: str) -> dict[str, Any] | None:
    """The batch's row of the manifest, as it is within a transaction; None without one."""
    rows = connection.sql(
        f"FROM {HISTORY_DATABASE}.batches WHERE batch = ?", params=[batch]
    ).to_arrow_table()
    return rows.to_pylist()[0] if rows.num_rows else None


def same_result(row: dict[str, Any] | None, other: dict[str, Any]) -> bool:
    """Whether two attempts read the same input with the same settings and code, and were done."""
    names = ("input_hash", "config_hash", "code_version")
    return (
        row is not None
        and row["status"] == other["status"] == "done"
        and all(row[name] == other[name] for name in names)
    )


def write_manifest(connection: duckdb.DuckDBPyConnection, row: dict[str, Any]) -> None:
    """Put ``row`` in the place of the batch's row of the manifest, within a transaction."""
    connection.execute(f"DELETE FROM {HISTORY_DATABASE}.batches WHERE batch = ?", [row["batch"]])
    marks = ", ".join("?" for _ in BATCHES.names)
    connection.execute(
        f"INSERT INTO {HISTORY_DATABASE}.batches ({BATCHES.column_list}) VALUES ({marks})",
        [row[name] for name in BATCHES.names],
    )
