"""What earlier assessments left in the history, as far as it can matter to the next one.

Not here: scores and other inputs (``inputs``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import duckdb

from pipeline.monitoring.actions import read_actions
from pipeline.monitoring.episodes import Episode, LastSeen, stored_episodes
from pipeline.monitoring.subjects import Part
from schemas.columns import Row, Table, quoted
from schemas.monitoring import ALERT_BATCHES, ALERTS

TOUCHED = "(resolved IS NULL OR resolved >= ?)"
"""Alerts that batches from a certain one on can change."""


@dataclass(frozen=True)
class Stored:
    """Alerts that batches from ``start`` on can change, and what people did.

    ``excluded`` are attributes and batches before ``start`` in which an acknowledged alert was
    seen: no baseline for scores of the attribute.  ``last_seen`` are all alerts before ``start``.
    """

    start: str
    alerts: dict[str, Row]
    sightings: list[Row]
    actions: dict[str, Row]
    excluded: frozenset[tuple[str | None, str]]
    last_seen: LastSeen

    @property
    def known(self) -> set[str]:
        """Alerts that people or receivers know by name."""
        sent = {name for name, row in self.alerts.items() if row["notified_at"] is not None}
        return sent | (self.actions.keys() & self.alerts.keys())

    @property
    def acknowledged(self) -> set[str]:
        """Alerts that somebody has acknowledged."""
        return {name for name, row in self.actions.items() if row["acknowledged_at"] is not None}

    @cached_property
    def episodes(self) -> list[Episode]:
        """All alerts as episodes, withdrawn ones too."""
        return stored_episodes(self.alerts.values(), self.sightings)

    @property
    def standing(self) -> list[Episode]:
        """Episodes that were not withdrawn."""
        return [each for each in self.episodes if self.alerts[each.alert]["state"] != "withdrawn"]


def read_rows(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    where: str = "true",
    values: Sequence[object] = (),
    source: str | None = None,
    order: str | None = None,
) -> list[Row]:
    """Rows of a table of the history, or of SQL in its place, by default in the order of its key.

    A column that a history of before lacks is null.
    """
    source = source or f"history.{table.name}"
    there = connection.sql(f"FROM {source} LIMIT 0").columns
    columns = ", ".join(
        quoted(name) if name in there else f"NULL AS {quoted(name)}" for name in table.names
    )
    found = connection.execute(
        f"SELECT {columns} FROM {source} WHERE {where} ORDER BY {order or ', '.join(table.key)}",
        list(values),
    ).fetchall()
    return [dict(zip(table.names, row, strict=True)) for row in found]


def read_stored(connection: duckdb.DuckDBPyConnection, start: str) -> Stored:
    """What the history holds before the batches from ``start`` on are looked at again."""
    actions = read_actions(connection)
    alerts = read_rows(connection, ALERTS, TOUCHED, [start])
    names = [row["alert"] for row in alerts]
    acknowledged = {name for name, row in actions.items() if row["acknowledged_at"] is not None}
    seen = connection.execute(
        "SELECT alert, kind, slice, slice_value, attribute, batch FROM history.alert_batches "
        "JOIN history.alerts USING (alert) WHERE batch < ? ORDER BY batch",
        [start],
    ).fetchall()
    return Stored(
        start,
        {row["alert"]: row for row in alerts},
        read_rows(connection, ALERT_BATCHES, "list_contains(?, alert)", [names]),
        actions,
        frozenset(
            (attribute, batch)
            for alert, kind, *_, attribute, batch in seen
            if alert in acknowledged and kind != "gate"
        ),
        {(kind, Part(*part)): batch for _, kind, *part, batch in seen},
    )
