"""Questions to merged scores, answered as rows.

Here: SQL on what is in the history.  Not here: series over batches (``series``), texts.
"""

from collections.abc import Sequence
from typing import Any

from metrics import METRICS, WHOLE
from pipeline.history.commits import has_history
from pipeline.history.opening import HISTORY_DATABASE, has_table, open_history
from pipeline.privacy.small_cells import Hidden
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


def verdicts(settings: Settings, batches: Sequence[str], *, told: bool = False) -> dict[str, int]:
    """How many scores have each status; of those that are neither ok nor a breach, whole batches.

    Small slices lack groups, and differ in what lists they hold, every day, which is no news.
    ``told``: of the scores as others may see them, as for anything that is shown; exit codes are
    about all.
    """
    if not has_history(store_of(settings)):
        return {}
    with open_history(settings, read_only=True) as connection:
        source = f"{HISTORY_DATABASE}.{FAIRNESS_HISTORY.name}"
        if told:
            source = Shown(connection, settings, batches=batches).table(FAIRNESS_HISTORY)
        rows = connection.execute(
            f"SELECT status, count(*) FROM {source} "
            "WHERE (slice = ? OR status NOT IN ('undefined', 'insufficient', 'composition')) "
            "AND list_contains(?, batch) "
            "GROUP BY status",
            [WHOLE, list(batches)],
        ).fetchall()
    return dict(rows)


def judged_slices(settings: Settings, rows: Sequence[Row]) -> list[Row]:
    """The scores of slices and whole batches that have the labels and batches of some ``rows``."""
    batches, labels = ({row[name] for row in rows} for name in ("batch", "label"))
    where = "status NOT IN ('not_judged', 'gated') AND list_contains(?, batch) "
    return labelled(
        settings, f"{where} AND list_contains(?, label)", [sorted(batches), sorted(labels)]
    )


def counted_and_shifts(
    settings: Settings, batches: Sequence[str]
) -> tuple[dict[tuple[str, str], int], dict[str, int]]:
    """Told scores of whole batches by batch and status, and by batch the shifts that were seen."""
    with open_history(settings, read_only=True) as connection:
        shown = Shown(connection, settings)
        counts = {
            (batch, status): count
            for batch, status, count in connection.execute(
                f"SELECT batch, status, count(*) FROM {shown.table(FAIRNESS_HISTORY)} "
                "WHERE slice = ? AND list_contains(?, batch) GROUP BY ALL",
                [WHOLE, list(batches)],
            ).fetchall()
        }
        if not has_table(connection, ALERT_BATCHES):
            return counts, {}
        moved = connection.execute(
            f"SELECT batch, count(*) FROM {shown.table(ALERT_BATCHES)} AS seen "
            f"JOIN {shown.table(ALERTS)} AS alerts USING (alert) "
            "WHERE kind = 'shift' AND list_contains(?, batch) GROUP BY batch",
            [list(batches)],
        ).fetchall()
    return counts, dict(moved)


def hidden_of(settings: Settings, batch: str) -> Hidden:
    """What is left out of a batch of the history as about too few."""
    if settings.privacy.min_cell <= 1 or not has_history(store_of(settings)):
        return Hidden()
    with open_history(settings, read_only=True) as connection:
        return Shown(connection, settings, batches=[batch]).hidden(batch)
