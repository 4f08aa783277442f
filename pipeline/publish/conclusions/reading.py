"""What conclusions rest on, selected from the views of the copy in use.

Not here: what follows from it (``choice``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow

from metrics import WHOLE
from pipeline.settings.labels import JOIN
from schemas.columns import Row, literal
from schemas.monitoring import SERIES_KEY

_CANDIDATES = 12
"""Scores of a batch and a verdict that are looked at: the first speaks, few others are named."""
_BACK = 31
"""Batches back that a batch knows of."""
_SLICES = 3
"""Slices that are named as the worst of a score."""
_SERIES = ", ".join(SERIES_KEY)


@dataclass
class Batch:
    """Everything that is known of one batch.

    ``scores`` are its judged scores, by verdict those first that say most; ``unjudged`` those
    that speak where nothing has a limit.  ``gates`` are those that tested it, ``alerts`` those
    seen in it, ``before`` the batches before it that were attempted, newest first, up to a month
    of days, and ``shown`` the newest with scores up to this one.
    """

    name: str
    state: str
    is_scored: bool
    message: str
    counts: Row
    scores: list[Row] = field(default_factory=list)
    unjudged: list[Row] = field(default_factory=list)
    gates: list[Row] = field(default_factory=list)
    alerts: list[Row] = field(default_factory=list)
    before: "Sequence[Batch]" = ()
    shown: str | None = None


def _rows(connection: duckdb.DuckDBPyConnection, query: str) -> list[Row]:
    rows: list[Row] = connection.sql(query).to_arrow_table().to_pylist()
    return rows


def _same(one: str, other: str) -> str:
    return " AND ".join(f"{one}.{name} IS NOT DISTINCT FROM {other}.{name}" for name in SERIES_KEY)


def read_batches(
    connection: duckdb.DuckDBPyConnection, in_order: Sequence[str]
) -> dict[str, Batch]:
    """Every batch that was attempted, oldest first.

    ``in_order`` are labels of scores, those first that speak before others.
    """
    counts = {row["batch"]: row for row in _rows(connection, "FROM v_batches")}
    batches: dict[str, Batch] = {}
    before: list[Batch] = []
    attempted = _rows(
        connection,
        "SELECT batch, state, scored, message FROM v_coverage WHERE state <> 'missing' "
        "ORDER BY batch",
    )
    for row in attempted:
        name = row["batch"]
        shown = name if row["scored"] else before[0].shown if before else None
        message = row["message"] or ""
        batches[name] = Batch(
            name, row["state"], row["scored"], message, counts[name], before=before, shown=shown
        )
        before = [batches[name], *before[: _BACK - 1]]
    # A history that somebody edited may hold scores of batches that it does not name.
    unnamed = Batch("", "missing", False, "", {})
    for row in _rows(connection, _candidates(in_order)):
        batches.get(row["batch"], unnamed).scores.append(row)
    for row in _rows(connection, _without_limits()):
        batches.get(row["batch"], unnamed).unjudged.append(row)
    for row in _rows(connection, "FROM v_gates ORDER BY passed, gate, attribute NULLS FIRST"):
        batches.get(row["batch"], unnamed).gates.append(row)
    for row in _rows(connection, "FROM v_alerts WHERE state <> 'withdrawn'"):
        for name, batch in batches.items():
            if row["opened"] <= name <= row["last_seen"]:
                batch.alerts.append(row)
    return batches


_COLUMNS = (
    f"batch, {_SERIES}, label, status, status_reason, reason, judged_value AS value, "
    "judged_lower AS lower, judged_upper AS upper, judged_worst_group AS worst_group, "
    "judged_best_group AS best_group, threshold_min, threshold_max, expected, p_noise, "
    "against_chance"
)


def _candidates(in_order: Sequence[str]) -> str:
    """Judged scores, with the alert that is about each; the most telling first.

    Margins are in parts of the way from the limit to what is fairest.
    """
    places = ", ".join(map(literal, in_order)) or "''"
    return f"""
        WITH judged AS (
            SELECT {_COLUMNS}, margin / coalesce(
                nullif(abs(coalesce(threshold_min, threshold_max) - fairest), 0), 1) AS margin
            FROM v_history WHERE status <> 'not_judged'
        ),
        incidents AS (
            SELECT {_SERIES}, alert, opened, last_seen, former_loser FROM v_alerts
            WHERE kind = 'breach' AND state <> 'withdrawn'
        ),
        known AS (
            SELECT judged.*, alert, opened, former_loser, opened = batch AS is_new
            FROM judged LEFT JOIN incidents ON {_same("judged", "incidents")}
                AND batch BETWEEN opened AND last_seen
        )
        FROM known QUALIFY row_number() OVER (
            PARTITION BY batch, status ORDER BY is_new DESC NULLS LAST, slice <> '{WHOLE}',
            list_position([{places}], label) NULLS LAST, margin NULLS FIRST, {_SERIES}
        ) <= {_CANDIDATES}
        OR (status = 'ok' AND row_number() OVER (
            PARTITION BY batch, status ORDER BY margin NULLS FIRST, {_SERIES}) = 1)
        ORDER BY batch, is_new DESC NULLS LAST, slice <> '{WHOLE}',
            list_position([{places}], label) NULLS LAST, margin NULLS FIRST, {_SERIES}"""


_TELLING = (
    f"judged_value > 0, contains(attribute, {literal(JOIN)}), NOT starts_with(metric, 'EXP'), "
    f"metric <> 'EXP', coalesce(against_chance, judged_value), {_SERIES}"
)
"""A group with nothing first, then exposure, the furthest from chance; intersections last."""


def _without_limits() -> str:
    """Scores of batches without a judged one, those first that say most."""
    return f"""
        SELECT {_COLUMNS} FROM v_history
        WHERE slice = '{WHOLE}' AND judged_value IS NOT NULL AND attribute IS NOT NULL
            AND aggregation IN ('MinMaxRatio', 'Min')
            AND batch NOT IN (SELECT batch FROM v_history WHERE status <> 'not_judged')
        QUALIFY row_number() OVER (
            PARTITION BY batch ORDER BY {_TELLING}
        ) <= {_CANDIDATES}
        ORDER BY batch, {_TELLING}"""


def beside(
    connection: duckdb.DuckDBPyConnection, speaking: Iterable[Row]
) -> dict[str, Mapping[str, Any]]:
    """What else is known of the score that speaks for each batch, by batch.

    ``usual``, the median of the batches before; ``days`` in breach since the incident began, the
    ``worst_batch`` of them and its ``worst_value``, and ``loser_before``, the group that was worst
    off in the last of them before; ``slices``, the same score in slices, worst
    first.
    """
    rows = [
        {name: row.get(name) for name in ("batch", *SERIES_KEY, "label", "opened")}
        for row in speaking
    ]
    if not rows:
        return {}
    names = ("batch", *SERIES_KEY, "label", "opened")
    schema = pyarrow.schema([(name, pyarrow.string()) for name in names])
    connection.register("speaking", pyarrow.Table.from_pylist(rows, schema=schema))
    try:
        found = _rows(connection, _of_series(rows))
        slices = _rows(connection, _of_slices())
    finally:
        connection.unregister("speaking")
    known: dict[str, dict[str, Any]] = {row["batch"]: {**row, "slices": []} for row in found}
    for row in slices:
        known[row["batch"]]["slices"].append(row)
    return known  # type: ignore[return-value]


def _of_series(speaking: Iterable[Row]) -> str:
    # Said as literals, which reach into the view: it would work out every score otherwise.
    only = " AND ".join(
        f"{name} IN ({', '.join(sorted({literal(row[name]) for row in speaking}))})"
        for name in ("label", "slice")
    )
    return f"""
        WITH breaching AS (
            SELECT speaking.batch, past.batch AS day, past.judged_value AS value,
                past.judged_worst_group AS loser,
                CASE WHEN past.threshold_min IS NOT NULL THEN past.judged_value
                ELSE -past.judged_value END AS fair
            FROM speaking JOIN v_history AS past ON {_same("speaking", "past")}
                AND past.batch BETWEEN speaking.opened AND speaking.batch
            WHERE past.status = 'breach'
        )
        SELECT speaking.batch,
            (SELECT usual FROM (FROM v_usual WHERE {only}) AS v_usual
             WHERE v_usual.batch = speaking.batch AND {_same("v_usual", "speaking")}) AS usual,
            (SELECT count(*) FROM breaching WHERE breaching.batch = speaking.batch) AS days,
            (SELECT arg_max(loser, day) FROM breaching
             WHERE breaching.batch = speaking.batch AND day < speaking.batch) AS loser_before,
            (SELECT arg_min(day, fair) FROM breaching
             WHERE breaching.batch = speaking.batch) AS worst_batch,
            (SELECT arg_min(value, fair) FROM breaching
             WHERE breaching.batch = speaking.batch) AS worst_value
        FROM speaking"""


def _of_slices() -> str:
    return f"""
        SELECT speaking.batch, slices.slice, slices.slice_value, slices.status,
            slices.judged_value AS value
        FROM speaking JOIN v_history AS slices ON slices.batch = speaking.batch
            AND slices.slice <> '{WHOLE}' AND slices.label = speaking.label
            AND slices.attribute IS NOT DISTINCT FROM speaking.attribute
        WHERE speaking.slice = '{WHOLE}' AND slices.judged_value IS NOT NULL
        QUALIFY row_number() OVER (
            PARTITION BY speaking.batch, slices.status ORDER BY
            CASE WHEN threshold_max IS NULL THEN value ELSE -value END,
            slices.slice, slices.slice_value
        ) <= {_SLICES}
        ORDER BY speaking.batch, slices.status <> 'breach',
            CASE WHEN threshold_max IS NULL THEN value ELSE -value END,
            slices.slice, slices.slice_value"""
