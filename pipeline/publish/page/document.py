"""What the page holds: series, groups, lists and alerts, by number where names repeat.

Not here: queries (``reading``), a score as columns (``columns``), and HTML (``page``).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC
from typing import Any

from metrics import WHOLE
from pipeline.publish.page.columns import CODES, column, columns_of
from pipeline.publish.page.extent import Extent, Size, fitting
from pipeline.publish.page.names import Names, attribute_label
from pipeline.publish.page.proposals import proposals
from pipeline.publish.page.reading import Copy, Row
from pipeline.publish.page.scores import About, about
from pipeline.publish.page.travel import cut, plain
from pipeline.settings.audit import Settings
from pipeline.settings.value_labels import ValueLabels
from schemas.usual import BEFORE, FAR, LEAST

SLICES_BACK = 31
"""Batches back in which a slice must have been, to have a column: a month of days."""
DUE_SHOWN = 40
"""Coming batches that the page knows, to say that one is missing when it is opened later: more than
a month of nights."""
MISSING_SHOWN = 7
"""Days after the last there was that are shown as missing: a week; the page says since when."""
ALERTS_SHOWN = 30
"""Alerts on the page: who has more than that follows them elsewhere, and the page says so."""
STRIP = 62
"""Batches back to which alerts that are over are shown, as long as the band of days."""


@dataclass(frozen=True)
class Document:
    """``data`` is what the page's script reads, ``extent`` what of the history that is."""

    data: dict[str, Any]
    extent: Extent
    size: Size
    newest: str | None


def document(copy: Copy, settings: Settings) -> Document:
    """Everything the page shows of a published copy."""
    days = _in_order(_shown(copy.coverage()))
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
    names = Names(at, slices, ValueLabels(settings.labels))
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
        "finished": _epoch(days[at[newest]]["finished_at"]) if newest else None,
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
        "attributes": [[name, attribute_label(name)] for name in names.attribute.found],
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


def _shown(days: Sequence[Row]) -> Sequence[Row]:
    """Without days that nobody fed long after the last, and those that hours stand for."""
    hourly = {row["batch"].split("T")[0] for row in days if "T" in row["batch"]}
    kept = [row for row in days if row["state"] != "missing" or row["batch"] not in hourly]
    last = max((n for n, row in enumerate(kept) if row["state"] != "missing"), default=-1)
    return kept[: last + 1 + MISSING_SHOWN]


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


def _back(batches: Sequence[str], count: int | None) -> str:
    """The first batch of the last ``count``; the one after the last for none at all."""
    if count is None or count >= len(batches):
        return ""
    return batches[-count] if count else "\U0010ffff"


def _conclusions(copy: Copy, at: Mapping[str, int], names: Names) -> list[Any]:
    """What is concluded of each batch; None where nothing is."""
    said: list[Any] = [None] * len(at)
    for row in copy.conclusions():
        if row["batch"] not in at:
            continue
        facts = row["facts"]
        said[at[row["batch"]]] = {
            **{name: plain(value) for name, value in row.items() if value is not None},
            "facts": json.loads(facts) if isinstance(facts, str) else facts or [],
            "score": names.shown(row, row["label"]) if row["label"] else None,
            "shown": at.get(row["shown_batch"] or ""),
        }
    return said


def _series(copy: Copy, extent: Extent, batches: Sequence[str], names: Names) -> list[list[Any]]:
    rows = copy.scores(
        list(names.label.found), _back(batches, extent.whole), _back(batches, extent.slice)
    )
    by_key: dict[tuple[int, ...], dict[int, Row]] = {}
    for row in rows:
        if names.shows(row):
            key = (*names.place(row), names.score(row))
            by_key.setdefault(key, {})[names.at[row["batch"]]] = row
    return [[*key, columns_of(by_batch, names)] for key, by_batch in by_key.items()]


def _groups(copy: Copy, extent: Extent, batches: Sequence[str], names: Names) -> list[list[Any]]:
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
        columns = {"value": column(rows, "value")}
        for name in ("lower", "upper"):
            columns[name] = [cut(row[name]) if row else None for row in rows]
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


def _lists(rows: Sequence[Row], names: Names) -> list[dict[str, Any]]:
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
