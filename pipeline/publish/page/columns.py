"""A score, batch after batch, as columns that the script reads.

Not here: names by number (``names``), and what a document holds (``document``).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.publish.page.names import Names
from pipeline.publish.page.reading import Row
from pipeline.publish.page.reasons import reason_text
from pipeline.publish.page.travel import whole

CODES = {
    "ok": "k",
    "breach": "b",
    "composition": "c",
    "insufficient": "i",
    "undefined": "u",
    "not_judged": "n",
    "gated": "g",
}
"""A verdict as one letter of a series; '.' is no score."""
NO_SCORE = "."
_JUDGED = ("judged_value", "judged_lower", "judged_upper")


def columns_of(by_batch: Mapping[int, Row], names: Names) -> dict[str, Any]:
    """A score from its first batch to its last; None, or '.', where it has no row."""
    first = min(by_batch)
    rows = [by_batch.get(number) for number in range(first, max(by_batch) + 1)]
    columns: dict[str, Any] = {
        "from": first,
        "value": column(rows, "value"),
        "status": "".join(CODES[row["status"]] if row else NO_SCORE for row in rows),
    }
    for name in ("lower", "upper"):
        values = column(rows, name)
        if any(value is not None for value in values):
            columns[name] = values
    worst = [names.group_of(row["attribute"], row["worst_group"]) if row else -1 for row in rows]
    if any(number >= 0 for number in worst):
        columns["worst"] = worst
    there = [(first + at, row) for at, row in enumerate(rows) if row]
    optional = {
        "judged": {
            at: [whole(row[name]) for name in _JUDGED]
            for at, row in there
            if any(row[name] != row[name.removeprefix("judged_")] for name in _JUDGED)
        },
        "why": {
            at: names.reason(reason_text(said))
            for at, row in there
            if (said := row["status_reason"] or row["reason"])
        },
        "assured": [at for at, row in there if row["assured"]],
        "limits": _steps(there),
    }
    return columns | {name: value for name, value in optional.items() if value}


def column(rows: Iterable[Row | None], name: str) -> list[float | None]:
    """One column of rows as it travels; None where there is no row."""
    return [whole(row[name]) if row else None for row in rows]


def _steps(rows: Iterable[tuple[int, Row]]) -> list[list[Any]]:
    """From which batch on which threshold held: batch, least, most."""
    steps: list[list[Any]] = []
    for at, row in rows:
        limits = [whole(row["threshold_min"]), whole(row["threshold_max"])]
        if limits != (steps[-1][1:] if steps else [None, None]):
            steps.append([at, *limits])
    return steps
