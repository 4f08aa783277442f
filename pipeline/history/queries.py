"""Questions to merged scores, answered as rows.

Here: SQL on what is in the history.  Not here: series over batches (``series``), texts.
"""

from collections.abc import Sequence
from typing import Any

from metrics import METRICS, WHOLE
from pipeline.history.commits import has_history
from pipeline.history.opening import HISTORY_DATABASE, has_table, open_history
from pipeline.privacy.suppression import Shown
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from schemas.columns import Row, quoted
from schemas.monitoring import ALERT_BATCHES, ALERTS
from schemas.scores import FAIRNESS_HISTORY, LABEL, WAYS


def labelled(settings: Settings, where: str = "true", values: Sequence[Any] = ()) -> list[Row]:
    """Current scores with their label, filtered by a SQL condition on bound values.

    Whole batches come before slices.  Read from the history itself, so that a run sees what it
    has just merged; what is about too few is left out or told without numbers.
    """
    if not has_history(store_of(settings)):
        return []
    with open_history(settings, read_only=True) as connection:
        # A history that was not written to since an upgrade lacks what is new.
        stored_columns = connection.sql(f"FROM {HISTORY_DATABASE}.fairness_history LIMIT 0").columns
        absent = "".join(
            f", NULL::{column.type} AS {quoted(column.name)}"
            for column in FAIRNESS_HISTORY.columns
            if column.name not in stored_columns
        )
        scores = connection.sql(
            f"SELECT *{absent}, {LABEL} AS label "
            f"FROM {Shown(connection, settings).table(FAIRNESS_HISTORY)} WHERE {where} "
            "ORDER BY slice <> 'all', batch, slice, slice_value, attribute, "
            "list_position(?, regexp_extract(metric, '^[A-Za-z0-9]+')), metric, "
            "list_position(?, aggregation)",
            params=[
                *values,
                [metric.name for metric in METRICS],
                WAYS,
            ],
        )
        return [dict(row) for row in scores.to_arrow_table().to_pylist()]


def breaches(settings: Settings, batches: Sequence[str]) -> list[Row]:
    """Scores of ``batches`` that are beyond their threshold and may be told; slices come last."""
    return labelled(settings, "status = 'breach' AND list_contains(?, batch)", [list(batches)])


def verdicts(settings: Settings, batches: Sequence[str]) -> dict[str, int]:
    """How many scores have each status; where nothing can be told, of whole batches only.

    Small slices lack groups every day, which is no news.
    """
    if not has_history(store_of(settings)):
        return {}
    with open_history(settings, read_only=True) as connection:
        rows = connection.execute(
            f"SELECT status, count(*) FROM {HISTORY_DATABASE}.fairness_history "
            "WHERE (slice = ? OR status NOT IN ('undefined', 'insufficient')) "
            "AND list_contains(?, batch) "
            "GROUP BY status",
            [WHOLE, list(batches)],
        ).fetchall()
    return dict(rows)


def insufficient_and_shifts(
    settings: Settings, batches: Sequence[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """By batch: scores of the whole batch that could not be told for sure, and shifts seen."""
    with open_history(settings, read_only=True) as connection:
        few = connection.execute(
            "SELECT batch, count(*) FROM history.fairness_history WHERE status = 'insufficient' "
            "AND slice = ? AND list_contains(?, batch) GROUP BY batch",
            [WHOLE, list(batches)],
        ).fetchall()
        if not has_table(connection, ALERT_BATCHES):
            return dict(few), {}
        shown = Shown(connection, settings)
        moved = connection.execute(
            f"SELECT batch, count(*) FROM {shown.table(ALERT_BATCHES)} AS seen "
            f"JOIN {shown.table(ALERTS)} AS alerts USING (alert) "
            "WHERE kind = 'shift' AND list_contains(?, batch) GROUP BY batch",
            [list(batches)],
        ).fetchall()
    return dict(few), dict(moved)
