"""What the page holds: series, groups, lists and alerts, by number where names repeat.

Values travel whole: the script rounds each once, as everything else does.

Not here: queries (``reading``), and HTML (``page``).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC
from math import isfinite
from typing import Any

from metrics import WHOLE
from pipeline.publish.page.extent import Extent, Size, fitting
from pipeline.publish.page.proposals import proposals
from pipeline.publish.page.reading import Copy, Row
from pipeline.publish.page.reasons import reason_text
from pipeline.publish.page.scores import About, about
from pipeline.settings.audit import Settings
from pipeline.settings.value_labels import ValueLabels
from schemas.usual import BEFORE, FAR, LEAST

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
SLICES_BACK = 31
"""Batches back in which a slice must have been, to have a column: a month of days."""
DUE_SHOWN = 40
"""Coming batches that the page knows, to say that one is missing when it is opened later: more than
a month of nights."""
ALERTS_SHOWN = 30
"""Alerts on the page: who has more than that follows them elsewhere, and the page says so."""
STRIP = 62
"""Batches back to which alerts that are over are shown, as long as the band of days."""
_ALERT = (
    *("alert", "kind", "state", "opened", "last_seen", "resolved", "worst_value", "worst_batch"),
    *("latest_value", "reading_of", "former_loser", "text", "acknowledged_by"),
)


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


def whole(value: float | None) -> float | None:
    """A number as it travels; none for one that JSON cannot hold."""
    return value if value is not None and isfinite(value) else None


def document(copy: Copy, settings: Settings) -> Document:
    """Everything the page shows of a published copy."""
    days = _in_order(copy.coverage())
    batches = [row["batch"] for row in days]
    at = {batch: number for number, batch in enumerate(batches)}
    newest = next((row["batch"] for row in reversed(days) if row["scored"]), None)
    # Nights that are missing since then take nothing away from what is shown.
    past = sorted(batches[: at[newest] + 1]) if newest else []
    slices = [(WHOLE, WHOLE), *copy.slices(_back(past, SLICES_BACK))]
    labels = copy.labels()
    scores = {row["label"]: about(row["label"]) for row in labels}
    shown = [row for row in labels if row["judged"] or scores[row["label"]].main]
    size = Size(
        len(past), len(slices) - 1, sum(row["series"] for row in shown), copy.group_series()
    )
    extent = fitting(size)
    slices = slices[: None if extent.slices is None else extent.slices + 1]
    names = _Names(at, slices, ValueLabels(settings.labels))
    for row in shown:
        names.score(row)
    series = _series(copy, extent, past, names)
    data = {
        "about": copy.about(),
        "batches": batches,
        "states": [row["state"] for row in days],
        "scored": [bool(row["scored"]) for row in days],
        "conclusions": _conclusions(copy, at, names),
        "counts": _counts(copy, at),
        "releases": [
            [at[row["batch"]], row["text"]] for row in copy.markers() if row["batch"] in at
        ],
        "due": [[row["batch"], _epoch(row["due_at"])] for row in copy.due_after(newest, DUE_SHOWN)],
        "slices": [[*each, names.labels.slice(*each)] for each in slices],
        "series": series,
        "group_series": _groups(copy, extent, past, names),
        "lists": _lists(copy.lists(), names),
        "alerts": [names.alert(row) for row in _alerts(copy, batches)],
        "windows": [names.window(row) for row in copy.windows(list(names.label.found))],
        "proposals": proposals(copy, settings) if newest else None,
        "newest": at[newest] if newest else None,
        "codes": {letter: status for status, letter in CODES.items()},
        "usual": {"before": BEFORE, "least": LEAST, "far": FAR},
        "gated": sorted(at[batch] for batch in copy.gated() if batch in at),
        "flip": settings.top_of_list == "bad",
        "confidence": settings.evidence.confidence,
        "slices_left_out": size.slices + 1 - len(slices),
        "slices_from": _first(extent.slice, size.batches),
        "whole_from": _first(extent.whole, size.batches),
    }
    data |= {
        "attributes": [[name, _attribute_label(name)] for name in names.attribute.found],
        "groups": [
            [names.attribute(attribute), group, names.labels.group(attribute or "", group)]
            for attribute, group in names.group.found
        ],
        "reasons": list(names.reason.found),
        "metrics": list(names.metric.found),
        "labels": [asdict(_about(row, scores)) for row in shown],
        "metric_of": [names.metric_of[label] for label in names.label.found],
    }
    return Document(data, extent, size, newest)


def _in_order(days: Sequence[Row]) -> Sequence[Row]:
    """Days and hours as they follow each other; batches with names in order of appearance."""
    if all(row["batch"][:1].isdigit() and row["batch"][4:5] == "-" for row in days):
        return days
    return sorted(
        days, key=lambda row: (row["finished_at"] is None, row["finished_at"], row["batch"])
    )


def _first(back: int | None, batches: int) -> int:
    return 0 if back is None else max(0, batches - back)


def _about(row: Row, scores: Mapping[str, About]) -> About:
    said = scores[row["label"]]
    return replace(said, main=said.main or bool(row["judged"]))


def _attribute_label(name: str | None) -> str:
    return "" if name is None else " and ".join(name.split("*"))


class _Names:
    """Numbers for names, shared by all series of a document."""

    def __init__(
        self, at: Mapping[str, int], slices: Sequence[tuple[str, str]], labels: ValueLabels
    ) -> None:
        self.at = at
        self.labels = labels
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

    def group_of(self, attribute: str | None, group: str | None) -> int:
        """The number of a group; -1 for none."""
        return -1 if group is None else self.group((attribute, group))

    def shown(self, row: Row, label: str | None) -> list[int] | None:
        """Where a score stands on the page: slice, attribute, label; None where it does not."""
        place = (row["slice"], row["slice_value"])
        if label not in self.label.found or place not in self.slice:
            return None
        return [*self.place(row), self.label(label)]

    def alert(self, row: Row) -> dict[str, Any]:
        """An alert as the script reads it."""
        said = {name: _plain(row[name]) for name in _ALERT}
        return {
            **said,
            "score": self.shown(row, row["reading_of"]),
            "loser": self.group_of(row["attribute"], row["worst_loser"]),
            "latest_loser": self.group_of(row["attribute"], row["latest_loser"]),
            "slice": self.labels.slice(row["slice"], row["slice_value"]),
        }

    def window(self, row: Row) -> dict[str, Any]:
        """A score of several days as the script reads it."""
        return {
            "days": row["days"],
            "first": row["first_day"],
            "last": row["batch"],
            "attribute": self.attribute(row["attribute"]),
            "label": self.label(row["label"]),
            "value": whole(row["judged_value"]),
            "lower": whole(row["judged_lower"]),
            "upper": whole(row["judged_upper"]),
            "worst": self.group_of(row["attribute"], row["worst_group"]),
            "status": row["status"],
        }


def _plain(value: Any) -> Any:
    return whole(value) if isinstance(value, float) else value


def _back(batches: Sequence[str], count: int | None) -> str:
    """The first batch of the last ``count``; the one after the last for none at all."""
    if count is None or count >= len(batches):
        return ""
    return batches[-count] if count else "\U0010ffff"


def _conclusions(copy: Copy, at: Mapping[str, int], names: _Names) -> list[Any]:
    """What is concluded of each batch; None where nothing is."""
    said: list[Any] = [None] * len(at)
    for row in copy.conclusions():
        if row["batch"] not in at:
            continue
        facts = row["facts"]
        said[at[row["batch"]]] = {
            **{name: _plain(value) for name, value in row.items() if value is not None},
            "facts": json.loads(facts) if isinstance(facts, str) else facts or [],
            "score": names.shown(row, row["label"]) if row["label"] else None,
            "shown": at.get(row["shown_batch"] or ""),
        }
    return said


def _series(copy: Copy, extent: Extent, batches: Sequence[str], names: _Names) -> list[list[Any]]:
    rows = copy.scores(
        list(names.label.found), _back(batches, extent.whole), _back(batches, extent.slice)
    )
    by_key: dict[tuple[int, ...], dict[int, Row]] = {}
    for row in rows:
        if names.shows(row):
            key = (*names.place(row), names.score(row))
            by_key.setdefault(key, {})[names.at[row["batch"]]] = row
    return [[*key, _columns(by_batch, names)] for key, by_batch in by_key.items()]


def _columns(by_batch: Mapping[int, Row], names: _Names) -> dict[str, Any]:
    """A score from its first batch to its last; None, or '.', where it has no row."""
    first = min(by_batch)
    rows = [by_batch.get(number) for number in range(first, max(by_batch) + 1)]
    columns: dict[str, Any] = {
        "from": first,
        "value": _column(rows, "value"),
        "status": "".join(CODES[row["status"]] if row else NO_SCORE for row in rows),
    }
    for name in ("lower", "upper"):
        column = _column(rows, name)
        if any(value is not None for value in column):
            columns[name] = column
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


def _column(rows: Iterable[Row | None], name: str) -> list[float | None]:
    return [whole(row[name]) if row else None for row in rows]


def _steps(rows: Iterable[tuple[int, Row]]) -> list[list[Any]]:
    """From which batch on which threshold held: batch, least, most."""
    steps: list[list[Any]] = []
    for at, row in rows:
        limits = [whole(row["threshold_min"]), whole(row["threshold_max"])]
        if limits != (steps[-1][1:] if steps else [None, None]):
            steps.append([at, *limits])
    return steps


def _groups(copy: Copy, extent: Extent, batches: Sequence[str], names: _Names) -> list[list[Any]]:
    by_key: dict[tuple[int, ...], dict[int, Row]] = {}
    for row in copy.groups(
        _back(batches, extent.whole_groups), _back(batches, extent.slice_groups)
    ):
        if names.shows(row) and row["metric"] in names.metric.found:
            group = names.group_of(row["attribute"], row["group_value"])
            key = (*names.place(row), names.metric(row["metric"]), group)
            by_key.setdefault(key, {})[names.at[row["batch"]]] = row
    series = []
    for key, by_batch in by_key.items():
        first = min(by_batch)
        rows = [by_batch.get(number) for number in range(first, max(by_batch) + 1)]
        columns = {name: _column(rows, name) for name in ("value", "lower", "upper")}
        counted = [row["n"] if row else None for row in rows]
        series.append([*key, {"from": first, **columns, "n": counted}])
    return series


def _counts(copy: Copy, at: Mapping[str, int]) -> dict[str, list[int]]:
    """Scores of each batch by verdict."""
    counts = {status: [0] * len(at) for status in CODES}
    for row in copy.batches():
        if row["batch"] in at:
            for status, column in counts.items():
                column[at[row["batch"]]] = row[status]
    return counts


def _alerts(copy: Copy, batches: Sequence[str]) -> list[Row]:
    since = sorted(batches)[-STRIP:][:1]
    return copy.alerts(since[0] if since else "", ALERTS_SHOWN + 1)


def _lists(rows: Sequence[Row], names: _Names) -> list[dict[str, Any]]:
    """The worst lists, each with its ranks and groups from the top."""
    by_place: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        if row["batch"] not in names.at:
            continue
        worst_list = by_place.setdefault(
            (row["batch"], row["attribute"], row["place"]),
            {
                "batch": names.at[row["batch"]],
                "attribute": names.attribute(row["attribute"]),
                "place": row["place"],
                "list": row["list_id"],
                "query": row.get("query_id"),
                "slices": [
                    names.labels.slice(name, value)
                    for name, value in json.loads(row.get("slices") or "{}").items()
                ],
                "loses": names.group_of(row["attribute"], row["losing_group"]),
                "length": row["length"],
                "ranks": [],
                "groups": [],
            },
        )
        worst_list["ranks"].append(row["rank"])
        worst_list["groups"].append(names.group_of(row["attribute"], row["group_value"]))
    return list(by_place.values())


def _epoch(moment: Any) -> int:
    """A UTC moment in milliseconds since 1970, as the script counts time."""
    return int(moment.replace(tzinfo=UTC).timestamp() * 1000)
