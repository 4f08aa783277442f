"""What a history holds that nothing but the ledger can vouch for: digests of results, actions of
people.

Not here: how results are digested (``scores.digests``).
"""

from collections.abc import Iterable, Sequence
from typing import Any

import duckdb

from pipeline.scores.digests import result_hash
from schemas.columns import Table, literal
from schemas.history import HISTORY, SUPERSEDED
from schemas.monitoring import ALERT_ACTIONS, MARKERS

VERDICT = "REPLACE (verdict AS status, verdict_reason AS status_reason)"
"""Gates change the status that the history shows; what the batch said by itself stays."""


def held(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Facts for a ledger that begins with the attached history as it is.

    ``results`` are batch, revision and result_hash, current ones last; ``actions`` and ``marks``
    those of people.
    """
    return {
        "results": [
            [*key, digest_of(connection, tables, *key)]
            for tables in (SUPERSEDED, HISTORY)
            for key in sorted(revisions_of(connection, tables[0]))
        ],
        "actions": rows_of(connection, ALERT_ACTIONS),
        "marks": rows_of(connection, MARKERS, where="source = 'mark'"),
    }


def rows_of(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    database: str = "history",
    where: str = "true",
) -> list[dict[str, Any]]:
    """Rows of a table, in the columns that it has, filtered by SQL."""
    found = connection.sql(f"FROM {database}.{table.name} WHERE {where}")
    return [dict(row) for row in found.to_arrow_table().to_pylist()]


def revisions_of(
    connection: duckdb.DuckDBPyConnection, table: Table, database: str = "history"
) -> Iterable[tuple[str, int]]:
    """Batch and revision of every result in ``table``."""
    rows: list[tuple[str, int]] = connection.execute(
        f"SELECT DISTINCT batch, revision FROM {database}.{table.name}"
    ).fetchall()
    return rows


def digest_of(
    connection: duckdb.DuckDBPyConnection, tables: Sequence[Table], batch: str, revision: int
) -> str:
    """The result_hash of a result that the history holds, in scores and group values."""
    where = f"WHERE batch = {literal(batch)} AND revision = {revision}"
    scores, groups = (f"history.{table.name} {where}" for table in tables)
    # A history of an older version lacks some of the columns.
    there = {*connection.sql(f"FROM history.{tables[0].name} LIMIT 0").columns}
    verdict = VERDICT if {"verdict", "verdict_reason", "status_reason"} <= there else ""
    return result_hash(
        connection, f"(SELECT * {verdict} FROM {scores})", f"(SELECT * FROM {groups})"
    )
