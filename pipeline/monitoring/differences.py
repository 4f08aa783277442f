"""What an assessment changes in the history: found by comparing, written in one transaction.

Not here: what should stand there (``result_tables``).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import duckdb
import pyarrow

from schemas.columns import Table, quoted

_NEW = "assessed_rows"


@contextmanager
def _registered(connection: duckdb.DuckDBPyConnection, rows: pyarrow.Table) -> Iterator[None]:
    connection.register(_NEW, rows)
    try:
        yield
    finally:
        connection.unregister(_NEW)


def differing(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    rows: pyarrow.Table,
    by: str,
    where: str = "true",
    values: Sequence[object] = (),
) -> set[str]:
    """Values of the column ``by`` for which the history's rows are not those of ``rows``.

    ``where`` chooses the rows of the history that ``rows`` stand for.
    """
    names = table.column_list
    stored = f"(SELECT {names} FROM history.{table.name} WHERE {where})"
    with _registered(connection, rows):
        found = connection.execute(
            f"SELECT DISTINCT {quoted(by)} FROM ("
            f"(SELECT {names} FROM {_NEW} EXCEPT SELECT {names} FROM {stored}) UNION ALL "
            f"(SELECT {names} FROM {stored} EXCEPT SELECT {names} FROM {_NEW}))",
            [*values, *values],
        ).fetchall()
    return {value for (value,) in found}


def replace(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    rows: pyarrow.Table,
    by: str,
    which: set[str],
) -> None:
    """Put those of ``rows`` whose column ``by`` is among ``which`` in the place of the stored."""
    if not which:
        return
    chosen = [sorted(which)]
    connection.execute(
        f"DELETE FROM history.{table.name} WHERE list_contains(?, {quoted(by)})", chosen
    )
    with _registered(connection, rows):
        connection.execute(
            f"INSERT INTO history.{table.name} BY NAME "
            f"SELECT * FROM {_NEW} WHERE list_contains(?, {quoted(by)})",
            chosen,
        )


_MISSING = "said.reasons[list_position(said.attributes, attribute)]"
_STATUS = (
    "CASE WHEN verdict = 'not_judged' THEN {0} WHEN said.gated IS NOT NULL THEN {1} "
    f"WHEN verdict = 'ok' AND {_MISSING} IS NOT NULL THEN {{2}} ELSE {{0}} END"
)
_WANTED = {
    "status": _STATUS.format("verdict", "'gated'", "'insufficient'"),
    "status_reason": _STATUS.format("verdict_reason", "said.gated", _MISSING),
}
Reasons = Mapping[str, str | None]
"""Why batches are gated, None where they are not."""
Lacking = Mapping[str, Mapping[str, str]]
"""By batch and attribute: why none of its scores is ok, where a group is missing."""


def wrong_statuses(
    connection: duckdb.DuckDBPyConnection, reasons: Reasons, missing: Lacking
) -> set[str]:
    """Batches whose statuses are not what gates and missing groups make of their verdicts."""
    differs = " OR ".join(f"{name} IS DISTINCT FROM {wanted}" for name, wanted in _WANTED.items())
    with _registered(connection, _as_table(reasons, missing)):
        found = connection.execute(
            f"SELECT DISTINCT batch FROM history.fairness_history JOIN {_NEW} AS said "
            f"USING (batch) WHERE {differs}"
        ).fetchall()
    return {batch for (batch,) in found}


def write_statuses(
    connection: duckdb.DuckDBPyConnection, reasons: Reasons, missing: Lacking, which: set[str]
) -> None:
    """Make the statuses of some batches what gates and missing groups make of their verdicts."""
    if not which:
        return
    assigned = ", ".join(f"{name} = {wanted}" for name, wanted in _WANTED.items())
    with _registered(connection, _as_table({b: reasons[b] for b in sorted(which)}, missing)):
        connection.execute(
            f"UPDATE history.fairness_history SET {assigned} FROM {_NEW} AS said "
            "WHERE said.batch = fairness_history.batch"
        )


def _as_table(reasons: Reasons, missing: Lacking) -> pyarrow.Table:
    lacking = [missing.get(batch, {}) for batch in reasons]
    texts = pyarrow.list_(pyarrow.string())
    return pyarrow.table(
        {
            "batch": pyarrow.array(list(reasons), pyarrow.string()),
            "gated": pyarrow.array(list(reasons.values()), pyarrow.string()),
            "attributes": pyarrow.array([list(each) for each in lacking], texts),
            "reasons": pyarrow.array([list(each.values()) for each in lacking], texts),
        }
    )
