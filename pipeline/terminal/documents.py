"""Scores of files or frames as one JSON document.

Not here: how they are computed (``pipeline.runs.in_memory``).
"""

from typing import Any

from metrics import parse_measure
from pipeline.runs.in_memory import AGAINST_CHANCE, OF_INTERVALS, OF_NOISE, Quick


def as_document(scored: Quick) -> dict[str, Any]:
    """The scores as one JSON document; the slice is said only where slices were asked for."""
    values: dict[tuple[Any, ...], dict[str, float | None]] = {}
    for row in scored.groups:
        key = (row["slice"], row["slice_value"], row["attribute"], row["metric"])
        values.setdefault(key, {})[row["group_value"]] = row["value"]
    scores = []
    for row in scored.scores:
        bound = parse_measure(row["metric"])
        key = (row["slice"], row["slice_value"], row["attribute"], row["metric"])
        slice_fields = {"slice": row["slice"], "slice_value": row["slice_value"]}
        names = OF_INTERVALS[:2] + OF_NOISE + AGAINST_CHANCE
        # Rows of scores that chance says nothing about lack the last of them.
        evidence_fields = {name: row.get(name) for name in names}
        scores.append(
            {
                "metric": bound.metric.name,
                "parameters": dict(bound.shown),
                **(slice_fields if scored.settings.slices else {}),
                "attribute": row["attribute"],
                "aggregation": row["aggregation"],
                "value": row["value"],
                "reason": row["reason"],
                **(evidence_fields if scored.settings.evidence.resamples else {}),
                "worst_group": row["worst_group"],
                "best_group": row["best_group"],
                "groups": values.get(key, {}),
            }
        )
    read = scored.ingested
    # Of too few, no number is told.
    return {
        "lists": None if read.few else read.lists,
        "rows": None if read.few else read.rows_accepted,
        "rejected": None if read.few else read.rows_rejected,
        "scores": scores,
    }
