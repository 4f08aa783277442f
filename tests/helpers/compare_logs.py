"""Pairs of small logs for tests of their comparison, and looks at what was found."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stores import write_csv

from metrics.comparison import COMPARISON_METRICS
from pipeline.compare.logs.report import Comparison

Rows = list[dict[str, Any]]
LABELS = [score.label for metric in COMPARISON_METRICS for score in metric.usual.scores()]


def shown(list_id: str, items: Sequence[str], query: str | None = None) -> Rows:
    """One list, an item per letter or string."""
    return [
        {"list_id": list_id, "item_id": item, "rank": rank}
        | ({} if query is None else {"query_id": query})
        for rank, item in enumerate(items, start=1)
    ]


def logs(folder: Path, a: Sequence[Rows], b: Sequence[Rows]) -> tuple[Path, Path]:
    """Two log files of some lists each."""
    rows_a, rows_b = ([row for each in side for row in each] for side in (a, b))
    return write_csv(folder / "a.csv", rows_a), write_csv(folder / "b.csv", rows_b)


def overall(found: Comparison) -> dict[str, float | None]:
    return {each.name.label: each.value for each in found.overall}


def query(found: Comparison, name: str) -> dict[str, Any]:
    return found.query(list(found.queries).index(name))
