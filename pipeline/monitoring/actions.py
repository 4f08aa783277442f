"""What people did about alerts, and what follows from it.

Not here: doing it, which is a change of the history (``alerts``).
"""

from collections.abc import Iterable, Mapping
from typing import Any

import duckdb

from schemas.columns import Row
from schemas.monitoring import ALERT_ACTIONS

COLUMNS = ("acknowledged_at", "acknowledged_by", "note", "snoozed_until")
"""Columns of alerts that derive from actions."""
_NOTHING: Mapping[str, Any] = dict.fromkeys(COLUMNS)


def read_actions(connection: duckdb.DuckDBPyConnection) -> dict[str, Row]:
    """For every alert that was acted on, its columns that derive from actions."""
    rows = connection.execute(
        f"SELECT {ALERT_ACTIONS.column_list} FROM history.alert_actions ORDER BY acted_at"
    ).fetchall()
    return standing(dict(zip(ALERT_ACTIONS.names, row, strict=True)) for row in rows)


def standing(actions: Iterable[Row]) -> dict[str, Row]:
    """How things stand after ``actions``, in order of time, by alert.

    >>> standing([{"alert": "a", "action": "ack", "acted_at": 1, "who": "eve", "note": "known"},
    ...           {"alert": "a", "action": "undo", "acted_at": 2}])["a"]["note"] is None
    True
    """
    found: dict[str, Row] = {}
    for action in actions:
        here = found.setdefault(action["alert"], dict(_NOTHING))
        if action["action"] == "undo":
            here.update(_NOTHING)
            continue
        if action["note"] is not None:
            here["note"] = action["note"]
        if action["action"] == "ack":
            here["acknowledged_at"] = action["acted_at"]
            here["acknowledged_by"] = action["who"]
        else:
            here["snoozed_until"] = action["snoozed_until"]
    return found
