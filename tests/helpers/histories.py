"""Histories written row by row, for tests of what batches mean together: no log is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
from stores import Rows, audit, in_history, without

from pipeline.history.commits import sealed, told
from pipeline.history.merging import due_again
from pipeline.history.opening import open_history
from pipeline.history.result_digests import revisions_of, rows_of
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import days
from pipeline.store.paths import store_of
from schemas.columns import Column, Table
from schemas.history import BATCHES, COUNTS_OF_HISTORY, HISTORY, SUPERSEDED
from schemas.monitoring import ALERT_ACTIONS, ASSESSED, MARKERS

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


@dataclass(frozen=True)
class Given:
    """What the history is to hold about one batch."""

    batch: str
    scores: Sequence[Row]
    groups: Sequence[Row] = ()
    rows: int = 1000
    sizes: Mapping[str, int] | None = None

    def tables(self) -> dict[str, list[Row]]:
        """Its rows, by table."""
        sizes = self.sizes or {"F": self.rows // 2, "M": self.rows - self.rows // 2}
        part = {"batch": self.batch, "slice": "all", "slice_value": "all"}
        counted = {"lists": self.rows // 10, "queries": self.rows // 12, "rows": self.rows}
        known = {"relevance_known": self.rows, "click_known": self.rows}
        cell = part | {"attribute": "gender"}
        done = {"status": "done", "revision": 1, "lists": self.rows // 10}
        return {
            _SCORES.name: [{"batch": self.batch, **row} for row in self.scores],
            _GROUPS.name: [{"batch": self.batch, **row} for row in self.groups],
            "slice_counts": [part | counted | known],
            "rank_counts": [
                cell | {"rank": 1, "group_value": name, "rows": size}
                for name, size in sizes.items()
            ],
            "prefix_stats": [
                cell
                | {"group_value": name, "lists": size // 5, "queries": size // 6, "items": size}
                for name, size in sizes.items()
            ],
            "item_gaps": [part | {"items": self.rows}],
            BATCHES.name: [{"batch": self.batch, **done}],
        }


def write(settings: Settings, given: Sequence[Given]) -> None:
    """Make these the current rows of some batches, as merging does."""
    named = {table.name: table for table in (_SCORES, _GROUPS, *COUNTS_OF_HISTORY, BATCHES)}
    batches = [each.batch for each in given]
    tables = [each.tables() for each in given]
    with open_history(settings) as connection:
        for name in tables[0]:
            table = named[name]
            rows = [_row(table, row) for each in tables for row in each[name]]
            connection.execute(
                f"DELETE FROM history.{name} WHERE list_contains(?, batch)", [batches]
            )
            connection.register("given", pyarrow.Table.from_pylist(rows, table.arrow))
            connection.execute(f"INSERT INTO history.{name} BY NAME FROM given")
            connection.unregister("given")
        for batch in batches:
            due_again(connection, "batch = ?", batch)
        believed(connection, settings)


def put(
    settings: Settings, batch: str, scores: Sequence[Row], groups: Sequence[Row] = (), **said: Any
) -> None:
    """Make these the current rows of one batch."""
    write(settings, [Given(batch, scores, groups, **said)])


def gap(settings: Settings, batch: str, status: str = "no_data") -> None:
    """A batch without scores."""
    row = _row(BATCHES, {"batch": batch, "status": status, "revision": 0})
    with open_history(settings) as connection:
        connection.execute(
            f"INSERT INTO history.batches ({BATCHES.column_list}) "
            f"VALUES ({', '.join('?' for _ in BATCHES.names)})",
            [row[name] for name in BATCHES.names],
        )
        believed(connection, settings)


def rewrite(settings: Settings, *statements: str) -> None:
    """Let the history say something else, and the ledger too."""
    with open_history(settings) as connection:
        connection.execute("USE history")
        for statement in statements:
            connection.execute(statement)
        connection.execute("USE memory")
        believed(connection, settings)


def believed(connection: duckdb.DuckDBPyConnection, settings: Settings) -> None:
    """Let the ledger begin anew with rows that nobody announced."""
    batches = rows_of(connection, BATCHES)
    facts = {
        "batches": [told(row) | {"result_hash": None} for row in batches],
        "results": [
            [*key, None]
            for table in (_SCORES, SUPERSEDED[0])
            for key in revisions_of(connection, table)
        ],
        "actions": rows_of(connection, ALERT_ACTIONS),
        "marks": rows_of(connection, MARKERS, where="source = 'mark'"),
    }
    with sealed(connection, store_of(settings), "begin", facts):
        pass


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
    values = [(unusual or {}).get(at, quiet(at)) for at in range(count)]
    write(
        settings,
        [
            Given(batch, [score(value)], [group("F", value), group("M", 1.0)])
            for batch, value in zip(NIGHTS, values, strict=False)
        ],
    )


def alerts_of(settings: Settings, columns: str = "kind, opened, last_seen, resolved") -> list[Any]:
    """Alerts as tuples, the earliest first."""
    order = "ORDER BY opened, kind, slice, slice_value"
    return [
        tuple(row.values()) for row in in_history(settings, f"SELECT {columns} FROM alerts {order}")
    ]
