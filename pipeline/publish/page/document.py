"""What the page holds: series, groups, changes, lists and alerts, by number where names repeat.

Not here: queries (``reading``), charts (``charts``), HTML (``page``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC
from math import isfinite
from typing import Any

from metrics import WHOLE
from pipeline.formatting.evidence import chance_text, power_text, thin_text
from pipeline.publish.page.extent import Extent, Size, fitting
from pipeline.publish.page.reading import Copy, Row
from pipeline.publish.page.scores import About, about

DIGITS = 4
"""Significant digits that travel; three are shown."""
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
CHANGES_SHOWN = 12
"""The largest changes of a batch that the page has: a list that people read to its end."""
CHANGES_BACK = 62
"""Batches back for which it has them, two months: earlier ones would make the page larger."""
SLICES_BACK = 31
"""Batches back in which a slice must have been, to have a column: a month of days."""
DUE_SHOWN = 40
"""Coming batches that the page knows, to say that one is missing when it is opened later: more than
a month of nights."""
ALERTS_SHOWN = 30
"""Alerts on the page: who has more than that follows them elsewhere, and the page says so."""


@dataclass
class Numbered:
    """Things by number, in the order in which they came."""

    found: dict[Any, int] = field(default_factory=dict)

    def __call__(self, key: Any) -> int:
        """The number of ``key``, a new one if it has none."""
        return self.found.setdefault(key, len(self.found))


@dataclass(frozen=True)
class Document:
    """``data`` is what the page's script reads, ``extent`` what of the history that is."""

    data: dict[str, Any]
    extent: Extent
    size: Size
    newest: str | None


def rounded(value: float | None) -> float | None:
    """A number as it travels; no number for none, nor for one that JSON cannot hold.

    >>> rounded(0.123456), rounded(None), rounded(float("inf"))
    (0.1235, None, None)
    """
    if value is None or not isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")


def document(copy: Copy) -> Document:
    """Everything the page shows of a published copy."""
    days = copy.coverage()
    batches = [row["batch"] for row in days]
    at = {batch: number for number, batch in enumerate(batches)}
    newest = max((row["batch"] for row in days if row["scored"]), default=None)
    # Nights that are missing since then take nothing away from what is shown.
    past = batches[: at[newest] + 1] if newest else []
    slices = [(WHOLE, WHOLE), *copy.slices(_back(past, SLICES_BACK))]
    labels = copy.labels()
    scores = {row["label"]: _about(row) for row in labels}
    per_slice = {row["label"]: row["series"] for row in labels}
    main = sum(count for label, count in per_slice.items() if scores[label].main)
    other = sum(per_slice.values()) - main
    size = Size(len(past), len(slices) - 1, main, other, copy.group_series())
    extent = fitting(size)
    slices = slices[: None if extent.slices is None else extent.slices + 1]
    numbers = _Names(at, slices, scores)
    series = _series(copy, extent, past, numbers)
    groups = _groups(copy, extent, past, numbers)
    changes = [
        numbers.change(row)
        for row in copy.changes(_back(past, CHANGES_BACK), CHANGES_SHOWN)
        if numbers.shows(row)
    ]
    data = {
        "about": copy.about(),
        "batches": batches,
        "states": [row["state"] for row in days],
        "messages": _messages(days, newest),
        "scored": [bool(row["scored"]) for row in days],
        "counts": _counts(copy, at),
        "releases": [
            [at[row["batch"]], row["text"]] for row in copy.markers() if row["batch"] in at
        ],
        "due": [[row["batch"], _epoch(row["due_at"])] for row in copy.due_after(newest, DUE_SHOWN)],
        "slices": [list(each) for each in slices],
        "attributes": list(numbers.attribute.found),
        "groups": list(numbers.group.found),
        "reasons": list(numbers.reason.found),
        "metrics": list(numbers.metric.found),
        "labels": [asdict(scores[label]) for label in numbers.label.found],
        "metric_of": [numbers.metric_of[label] for label in numbers.label.found],
        "series": series,
        "group_series": groups,
        "changes": changes,
        "lists": _lists(copy.lists()),
    }
    return Document(data, extent, size, newest)


def _messages(days: Sequence[Row], newest: str | None) -> dict[int, str]:
    """Why batches after the newest that was scored have no scores, in a line."""
    return {
        number: row["message"].split("\n")[0]
        for number, row in enumerate(days)
        if row["message"] and row["batch"] > (newest or "")
    }


def _about(row: Row) -> About:
    said = about(row["label"])
    return replace(said, main=said.main or bool(row["judged"]))


class _Names:
    """Numbers for names, shared by all series of a document."""

    def __init__(
        self,
        at: Mapping[str, int],
        slices: Sequence[tuple[str, str]],
        scores: Mapping[str, About],
    ) -> None:
        self.at = at
        self.scores = scores
        self.slice = {each: number for number, each in enumerate(slices)}
        self.attribute, self.label, self.group = Numbered(), Numbered(), Numbered()
        self.metric, self.reason = Numbered(), Numbered()
        self.metric_of: dict[str, int] = {}

    def shows(self, row: Row) -> bool:
        """Whether the slice and the batch of a row are on the page."""
        return (row["slice"], row["slice_value"]) in self.slice and row["batch"] in self.at

    def place(self, row: Row) -> list[int]:
        """Slice and attribute."""
        return [self.slice[row["slice"], row["slice_value"]], self.attribute(row["attribute"])]

    def score(self, row: Row) -> int:
        """The number of the label, whose metric is noted."""
        self.metric_of.setdefault(row["label"], self.metric(row["metric"]))
        return self.label(row["label"])

    def optional(self, numbered: Numbered, name: str | None) -> int:
        """The number of a name; -1 for none."""
        return -1 if name is None else numbered(name)

    def change(self, row: Row) -> list[Any]:
        """A change as the script reads it."""
        return [
            self.at[row["batch"]],
            *self.place(row),
            self.score(row),
            rounded(row["value"]),
            rounded(row["center"]),
            rounded(row["residual"]),
            int(bool(row["worse"])),
            int(bool(row["shift"])),
            row["since"],
        ]


def _back(batches: Sequence[str], count: int | None) -> str:
    """The first batch of the last ``count``; the one after the last for none at all."""
    if count is None or count >= len(batches):
        return ""
    return batches[-count] if count else "\U0010ffff"


def _series(copy: Copy, extent: Extent, batches: Sequence[str], names: _Names) -> list[Any]:
    main = [label for label, each in names.scores.items() if each.main]
    rows = copy.scores(
        main,
        whole=(_back(batches, extent.whole_main), _back(batches, extent.whole_other)),
        parts=(_back(batches, extent.slice_main), _back(batches, extent.slice_other)),
    )
    series_by_key: dict[tuple[int, ...], _Series] = {}
    for row in rows:
        if not names.shows(row):
            continue
        key = (*names.place(row), names.score(row))
        series_by_key.setdefault(key, _Series(names)).add(row)
    if batches:
        for row in copy.judged(batches[-1]):
            if (row["slice"], row["slice_value"]) not in names.slice:
                continue
            series = series_by_key.get((*names.place(row), names.score(row)))
            if series is not None:
                series.rests_on(names.at[batches[-1]], row)
    return [[*key, each.told()] for key, each in series_by_key.items()]


class _Series:
    """One score of one slice and attribute, batch after batch."""

    def __init__(self, names: _Names) -> None:
        self.names = names
        self.rows: dict[int, Row] = {}
        self.sure: dict[int, int] = {}

    def rests_on(self, batch: int, row: Row) -> None:
        """What its verdict in a batch rests on: in sentences, as a reason has a number."""
        by_chance = chance_text(row) if row["status"] in ("breach", "composition") else ""
        if text := " ".join(filter(None, (power_text(row), by_chance, thin_text(row)))):
            self.sure[batch] = self.names.reason(text)

    def add(self, row: Row) -> None:
        """A batch of it."""
        self.rows[self.names.at[row["batch"]]] = row

    def told(self) -> dict[str, Any]:
        """Columns from its first batch to its last; None, or '.', where it has no row."""
        first, last = min(self.rows), max(self.rows)
        rows = [self.rows.get(number) for number in range(first, last + 1)]
        columns: dict[str, Any] = {
            "from": first,
            "value": _column(rows, "value"),
            "status": "".join(CODES[row["status"]] if row else NO_SCORE for row in rows),
        }
        for name in ("lower", "upper", "noise_limit"):
            column = _column(rows, name)
            if any(value is not None for value in column):
                columns[name] = column
        worst = [
            self.names.optional(self.names.group, row["worst_group"]) if row else -1 for row in rows
        ]
        if any(number >= 0 for number in worst):
            columns["worst"] = worst
        judged = {
            first + at: [rounded(row[name]) for name in _JUDGED]
            for at, row in enumerate(rows)
            if row and any(row[name] != row[name.removeprefix("judged_")] for name in _JUDGED)
        }
        if judged:
            columns["judged"] = judged
        if self.sure:
            columns["sure"] = self.sure
        why = {
            first + at: self.names.reason(said)
            for at, row in enumerate(rows)
            if row and (said := row["status_reason"] or row["reason"])
        }
        if why:
            columns["why"] = why
        if limits := _steps(rows, first):
            columns["limits"] = limits
        return columns


def _column(rows: Iterable[Row | None], name: str) -> list[float | None]:
    return [rounded(row[name]) if row else None for row in rows]


def _steps(rows: Iterable[Row | None], first: int) -> list[list[Any]]:
    """From which batch on which threshold held: batch, least, most."""
    steps: list[list[Any]] = []
    for at, row in enumerate(rows):
        if row is None:
            continue
        limits = [rounded(row["threshold_min"]), rounded(row["threshold_max"])]
        if limits != (steps[-1][1:] if steps else [None, None]):
            steps.append([first + at, *limits])
    return steps


def _groups(copy: Copy, extent: Extent, batches: Sequence[str], names: _Names) -> list[Any]:
    rows_by_series: dict[tuple[int, ...], dict[int, Row]] = {}
    for row in copy.groups(
        _back(batches, extent.whole_groups), _back(batches, extent.slice_groups)
    ):
        if names.shows(row):
            key = (*names.place(row), names.metric(row["metric"]), names.group(row["group_value"]))
            rows_by_series.setdefault(key, {})[names.at[row["batch"]]] = row
    series = []
    for key, by_batch in rows_by_series.items():
        first = min(by_batch)
        rows = [by_batch.get(number) for number in range(first, max(by_batch) + 1)]
        columns = {name: _column(rows, name) for name in ("value", "lower", "upper")}
        columns["n"] = [row["n"] if row else None for row in rows]
        series.append([*key, {"from": first, **columns}])
    return series


def _counts(copy: Copy, at: Mapping[str, int]) -> dict[str, list[int]]:
    """Scores of each batch by verdict."""
    counts = {status: [0] * len(at) for status in CODES}
    for row in copy.batches():
        if row["batch"] in at:
            for status, column in counts.items():
                column[at[row["batch"]]] = row[status]
    return counts


def _lists(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The worst lists, each with its entries from the top."""
    lists_by_place: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        worst_list = lists_by_place.setdefault(
            (row["attribute"], row["place"]),
            {
                "batch": row["batch"],
                "attribute": row["attribute"],
                "place": row["place"],
                "list": row["list_id"],
                "loses": row["losing_group"],
                "shortfall": rounded(row["shortfall"]),
                "length": row["length"],
                "entries": [],
            },
        )
        worst_list["entries"].append(
            [row["rank"], row["item_id"], row["group_value"], rounded(row["relevance"])]
        )
    return list(lists_by_place.values())


def _epoch(moment: Any) -> int:
    """A UTC moment in milliseconds since 1970, as the script counts time."""
    return int(moment.replace(tzinfo=UTC).timestamp() * 1000)
