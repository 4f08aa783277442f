"""Histories written row by row, for tests of what batches mean together: no log is read."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow
from stores import Rows, audit, in_history, without

from pipeline.history import due_again, open_history
from pipeline.run import days
from pipeline.settings import Settings
from schemas.assessments import ASSESSED
from schemas.columns import Column, Table
from schemas.tables import BATCHES, COUNTS_OF_HISTORY, HISTORY

NIGHTS = days(date(2026, 1, 1), date(2026, 3, 1))
Row = dict[str, Any]
LIMIT = 0.8
TIMES = ("assessed_at", "created_at", "acted_at", "acknowledged_at", "notified_at")
_SCORES, _GROUPS = HISTORY
_ZERO = {"VARCHAR": "x", "DOUBLE": 0.0, "BOOLEAN": False, "TIMESTAMP": datetime(2026, 1, 1)}


def small_audit(folder: Path, **said: Any) -> Settings:
    """An audit with one judged score, short windows, and no gate on what tests do not give."""
    return audit(
        folder,
        **{
            "metrics": ["EXP"],
            "slices": ["device"],
            "thresholds": {"EXP.MinMaxRatio": {"min": LIMIT}},
            "trends": {"window": 8, "least": 4},
            "gate": {"window": 6, "least": 3},
            **said,
        },
    )


def _filled(column: Column) -> Any:
    return None if column.nullable else _ZERO.get(column.type, 0)


def _row(table: Table, said: Mapping[str, Any]) -> Row:
    assert set(said) <= set(table.names)
    return {column.name: _filled(column) for column in table.columns} | dict(said)


def score(value: float | None, **said: Any) -> Row:
    """A row of fairness_history: EXP.MinMaxRatio of gender, whole batch, judged by the limit."""
    verdict = "undefined" if value is None else "breach" if value < LIMIT else "ok"
    row = {
        "slice": "all",
        "slice_value": "all",
        "attribute": "gender",
        "metric": "EXP",
        "aggregation": "MinMaxRatio",
        "value": value,
        "reason": "one_group" if value is None else None,
        "worst_group": None if value is None else "F",
        "best_group": None if value is None else "M",
        "status": verdict,
        "queries": 90,
        "lists": 100,
        "rows": 1000,
        **said,
    }
    return row | {"verdict": row["status"], "verdict_reason": row.get("status_reason")}


def group(name: str, value: float, spread: float = 0.01, **said: Any) -> Row:
    """A row of group_history with an interval of ``value`` plus and minus ``spread``."""
    row = {
        "slice": "all",
        "slice_value": "all",
        "attribute": "gender",
        "metric": "EXP",
        "group_value": name,
        "value": value,
        "lower": value - spread,
        "upper": value + spread,
        "n": 500,
        "queries": 90,
        "lists": 100,
    }
    return row | said


def put(
    settings: Settings,
    batch: str,
    scores: Sequence[Row],
    groups: Sequence[Row] = (),
    *,
    rows: int = 1000,
    sizes: Mapping[str, int] | None = None,
) -> None:
    """Make these the current rows of a batch, as merging does."""
    named = {table.name: table for table in COUNTS_OF_HISTORY}
    sizes = sizes or {"F": rows // 2, "M": rows - rows // 2}
    part = {"batch": batch, "slice": "all", "slice_value": "all"}
    counted = {"lists": rows // 10, "queries": rows // 12, "rows": rows}
    known = {"relevance_known": rows, "click_known": rows}
    tables: list[tuple[Table, list[Row]]] = [
        (_SCORES, [{"batch": batch, **row} for row in scores]),
        (_GROUPS, [{"batch": batch, **row} for row in groups]),
        (named["slice_counts"], [part | counted | known]),
        (
            named["rank_counts"],
            [
                part | {"attribute": "gender", "group_value": name, "rank": 1, "rows": size}
                for name, size in sizes.items()
            ],
        ),
        (BATCHES, [{"batch": batch, "status": "done", "revision": 1, "lists": rows // 10}]),
    ]
    with open_history(settings) as connection:
        for table, new in tables:
            connection.execute(f"DELETE FROM history.{table.name} WHERE batch = ?", [batch])
            filled = pyarrow.Table.from_pylist([_row(table, row) for row in new], table.arrow)
            connection.register("given", filled)
            connection.execute(f"INSERT INTO history.{table.name} BY NAME FROM given")
            connection.unregister("given")
        due_again(connection, "batch = ?", batch)


def gap(settings: Settings, batch: str, status: str = "no_data") -> None:
    """A batch without scores."""
    row = _row(BATCHES, {"batch": batch, "status": status, "revision": 0})
    with open_history(settings) as connection:
        connection.execute(
            f"INSERT INTO history.batches ({BATCHES.column_list}) "
            f"VALUES ({', '.join('?' for _ in BATCHES.names)})",
            [row[name] for name in BATCHES.names],
        )


def quiet(at: int, level: float = 0.9) -> float:
    """A score of a quiet series on night ``at``: up and down around its level, without drift."""
    return level + (at * 5 % 7 - 3) / 300


def assessments(settings: Settings) -> dict[str, Rows]:
    """All that assessing wrote, but for times; and the statuses."""
    found = {
        table.name: without(in_history(settings, f"FROM {table.name}"), *TIMES)
        for table in ASSESSED
    }
    statuses = "SELECT batch, slice, slice_value, status, status_reason FROM fairness_history"
    return found | {"statuses": without(in_history(settings, statuses))}


def fill(settings: Settings, count: int, unusual: Mapping[int, float] | None = None) -> None:
    """The first ``count`` nights of a quiet series, some of them with another value."""
    for at, batch in enumerate(NIGHTS[:count]):
        value = (unusual or {}).get(at, quiet(at))
        put(settings, batch, [score(value)], [group("F", value), group("M", 1.0)])


def alerts_of(settings: Settings, columns: str = "kind, opened, last_seen, resolved") -> list[Any]:
    """Alerts as tuples, the earliest first."""
    order = "ORDER BY opened, kind, slice, slice_value"
    return [
        tuple(row.values()) for row in in_history(settings, f"SELECT {columns} FROM alerts {order}")
    ]
