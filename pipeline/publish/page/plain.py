"""The newest day as plain HTML, for readers without script: the verdict, and tables.

Not here: the same for any chosen day, which the script draws.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.formatting.looks import LOOKS, VERDICTS
from pipeline.formatting.numbers import interval_text, number

_STRIP = 31
"""Batches in the list of days: a month."""
_ROWS = 120
"""Rows of the table of scores: a few screens."""
_LOOKS = {
    **dict.fromkeys(("new_breach", "breach"), "bad"),
    "insufficient": "unsure",
    **dict.fromkeys(("gated", "refused"), "held"),
}
_ORDER = [look.name for look in VERDICTS]
Data = Mapping[str, Any]


def _text(value: float | None) -> str:
    """A number as the script writes it."""
    text = number(value)
    return f"−{text[1:]}" if text.startswith("-") else text


def verdict(data: Data) -> dict[str, Any]:
    """The verdict of the newest day: of the newest that was scored, else of the last there is."""
    at = data["newest"]
    said = [each for each in data["conclusions"] if each]
    found = data["conclusions"][at] if at is not None else (said[-1] if said else None)
    if not found:
        sentence = "No batch has been scored yet."
        found = {"sign": "○", "word": "No data", "sentence": sentence}
    empty = dict.fromkeys(("note", "second", "small", "emphasis", "label"), "")
    found = {**empty, "title": f"{found['sign']} {found['sentence']}", **found}
    before, emphasis, after = found["sentence"].partition(found["emphasis"] or "\0")
    commands = [found[name] for name in ("explain", "acknowledge") if found.get(name)]
    return {
        **found,
        "before": before,
        "emphasis": emphasis,
        "after": after,
        "facts": found.get("facts", []),
        "commands": commands,
        "look": _LOOKS.get(found.get("state", ""), ""),
    }


def strip(data: Data) -> list[Mapping[str, Any]]:
    """The verdicts of the last batches, newest first."""
    return [each for each in data["conclusions"][-_STRIP:] if each][::-1]


def tables(data: Data) -> dict[str, Any]:
    """The scores of the newest day, the gravest first, and its groups, the lowest first."""
    at = data["newest"]
    if at is None:
        return {"scores": [], "left": 0, "groups": [], "thing": ""}
    scores = sorted(_scores(data, at), key=lambda row: _ORDER.index(row["look"].name))
    said = data["conclusions"][at] or {}
    return {
        "scores": scores[:_ROWS],
        "left": max(0, len(scores) - _ROWS),
        **_groups(data, at, said.get("score")),
    }


def _scores(data: Data, at: int) -> list[dict[str, Any]]:
    rows = []
    codes = data["codes"]
    for place, attribute, label, columns in data["series"]:
        k = at - columns["from"]
        if not 0 <= k < len(columns["status"]) or columns["status"][k] not in codes:
            continue
        status = codes[columns["status"][k]]
        if place and status == "not_judged":
            continue
        value = columns.get("judged", {}).get(at, [columns["value"][k]])[0]
        worst = columns["worst"][k] if "worst" in columns else -1
        about = data["labels"][label]
        rows.append(
            {
                "label": about["label"],
                "plain": about["plain"],
                "attribute": data["attributes"][attribute][1],
                "slice": data["slices"][place][2],
                "value": _text(value),
                "look": LOOKS[status],
                "worst": data["groups"][worst][2] if worst >= 0 else "",
            }
        )
    return rows


def _groups(data: Data, at: int, score: Sequence[int] | None) -> dict[str, Any]:
    """Groups of the whole batch, by the metric of the score that speaks."""
    metric = data["metric_of"][score[2]] if score else 0
    rows = []
    for place, attribute, of, group, columns in data["group_series"]:
        k = at - columns["from"]
        if place or of != metric or not 0 <= k < len(columns["value"]):
            continue
        value, lower, upper = (columns[name][k] for name in ("value", "lower", "upper"))
        if value is None:
            continue
        rows.append(
            {
                "order": (attribute, value),
                "attribute": data["attributes"][attribute][1],
                "group": data["groups"][group][2],
                "value": _text(value),
                "interval": interval_text(lower, upper),
            }
        )
    rows.sort(key=lambda row: row["order"])
    return {"groups": rows[:_ROWS], "thing": data["metrics"][metric] if data["metrics"] else ""}
