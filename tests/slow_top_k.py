"""The metrics of a top-k cut, written the slow and obvious way.

What belongs here: a second opinion.  Plain loops over rows, straight from the definitions, sharing
no code with what they check.  A row is a mapping with ``list_id``, ``rank``, perhaps ``relevance``
(None or NaN where missing) and attribute columns (None or '' for an unknown group).
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
Number = float | None

UNKNOWN = "unknown"
WITHOUT_RELEVANCE = ("SelectionRate", "StatisticalParity", "DisparateImpact")
SINGLE = ("GeneralizedEntropy", "Theil")
MOST = 1e9
_LABEL = re.compile(r"([A-Za-z]+)(?:\(([^)]*)\))?@([0-9]+)")


def score(
    label: str,
    rows: Sequence[Row],
    attribute: str | None = None,
    *,
    relevant_from: float = 0.5,
    unknown_counts: bool = False,
    groups: Iterable[str] = (),
    **context: Any,
) -> Number | dict[str, Number]:
    """The number of the batch, or that of each group, None where there is none.

    ``groups`` are groups to report beside those in ``rows``; further context means nothing here.
    """
    matched = _LABEL.fullmatch(label)
    if matched is None:
        raise ValueError(f"{label} is not a label of a cut")
    name, k = matched[1], int(matched[3])
    parameters = dict(part.split("=") for part in (matched[2] or "").split(",") if part)
    alpha = 1.0 if name == "Theil" else float(parameters.get("alpha", "2"))
    by_list = parameters.get("per", "batch") == "list"

    lists: dict[Any, list[Row]] = {}
    for row in rows:
        lists.setdefault(row["list_id"], []).append(row)
    names = sorted({_group(row, attribute) for row in rows} | set(groups)) if attribute else []
    needs = name not in WITHOUT_RELEVANCE
    missing = needs and any(_missing(row) for row in rows)

    if name in SINGLE:
        if missing:
            return None
        if not by_list:
            return _entropy(rows, k, alpha, relevant_from)
        each = [_entropy(one, k, alpha, relevant_from) for one in lists.values()]
        found = [min(value, MOST) for value in each if value is not None]
        return math.fsum(found) / len(found) if found else None

    def compared(group: str) -> list[str]:
        return [
            other
            for other in names
            if other != group and (unknown_counts or other != UNKNOWN)
        ]  # fmt: skip

    answer: dict[str, Number] = {}
    for group in names:
        pick = _picker(attribute, group, compared(group))
        if not by_list:
            members, rest = pick(rows)
            looked_at = members if name in RATES else members + rest
            if needs and any(_missing(row) for row in looked_at):
                answer[group] = None
            else:
                answer[group] = _value(name, rows, members, rest, k, relevant_from)
            continue
        if missing:
            answer[group] = None
            continue
        found, under = [], []
        for one in lists.values():
            members, rest = pick(one)
            if name == "DisparateImpact":
                a = _value("SelectionRate", one, members, rest, k, relevant_from)
                b = _value("SelectionRate", one, rest, members, k, relevant_from)
                if a is not None and b is not None:
                    found.append(a)
                    under.append(b)
            else:
                value = _value(name, one, members, rest, k, relevant_from)
                if value is not None:
                    found.append(value)
                    under.append(1.0)
        whole = math.fsum(under)
        answer[group] = math.fsum(found) / whole if whole else None
    return answer


def _group(row: Row, attribute: str | None) -> str:
    return str(row.get(attribute or "") or UNKNOWN)


def _missing(row: Row) -> bool:
    relevance = row.get("relevance")
    return relevance is None or math.isnan(relevance)


def _picker(
    attribute: str | None, group: str, compared: list[str]
) -> Callable[[Sequence[Row]], tuple[list[Row], list[Row]]]:
    def pick(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
        members = [row for row in rows if _group(row, attribute) == group]
        return members, [row for row in rows if _group(row, attribute) in compared]

    return pick


def _share(rows: list[Row], holds: Callable[[Row], bool]) -> Number:
    return len([row for row in rows if holds(row)]) / len(rows) if rows else None


def _rate(name: str, rows: list[Row], k: int, relevant_from: float) -> Number:
    def selected(row: Row) -> bool:
        return bool(row["rank"] <= k)

    def qualified(row: Row) -> bool:
        return bool(row["relevance"] >= relevant_from)

    if name == "SelectionRate":
        return _share(rows, selected)
    if name == "TPR":
        return _share([row for row in rows if qualified(row)], selected)
    if name == "FPR":
        return _share([row for row in rows if not qualified(row)], selected)
    if name == "FNR":
        return _share([row for row in rows if qualified(row)], lambda row: not selected(row))
    if name == "FOR":
        return _share([row for row in rows if not selected(row)], qualified)
    raise ValueError(f"there is no rate {name}")


RATES = ("SelectionRate", "TPR", "FPR", "FNR", "FOR")
DIFFERENCES = {
    "StatisticalParity": ["SelectionRate"],
    "EqualOpportunity": ["TPR"],
    "PredictiveEquality": ["FPR"],
    "FNRDifference": ["FNR"],
    "FORDifference": ["FOR"],
    "AverageOdds": ["FPR", "TPR"],
}


def _value(
    name: str,
    everyone: Sequence[Row],
    members: list[Row],
    rest: list[Row],
    k: int,
    relevant_from: float,
) -> Number:
    if all(row["rank"] <= k for row in everyone):
        return None
    if name in RATES:
        return _rate(name, members, k, relevant_from)
    if name == "DisparateImpact":
        a = _rate("SelectionRate", members, k, relevant_from)
        b = _rate("SelectionRate", rest, k, relevant_from)
        return a / b if a is not None and b else None
    gaps = []
    for rate in DIFFERENCES[name]:
        a, b = _rate(rate, members, k, relevant_from), _rate(rate, rest, k, relevant_from)
        if a is None or b is None:
            return None
        gaps.append(a - b)
    return math.fsum(gaps) / len(gaps)


def _entropy(rows: Sequence[Row], k: int, alpha: float, relevant_from: float) -> Number:
    if all(row["rank"] <= k for row in rows):
        return None
    benefits = [
        (1 if row["rank"] <= k else 0) - (1 if row["relevance"] >= relevant_from else 0) + 1
        for row in rows
    ]
    if sum(benefits) == 0 or (alpha <= 0 and 0 in benefits):
        return None
    mean = sum(benefits) / len(benefits)
    shares = [benefit / mean for benefit in benefits]
    if alpha == 1:
        return math.fsum(x * math.log(x) if x else 0.0 for x in shares) / len(shares)
    if alpha == 0:
        return -math.fsum(math.log(x) for x in shares) / len(shares)
    return math.fsum(x**alpha - 1 for x in shares) / (len(shares) * alpha * (alpha - 1))
