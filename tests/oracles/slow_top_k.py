"""The metrics of a top-k cut, written the slow and obvious way.

What belongs here: a second opinion.  Plain loops over rows, straight from the definitions, sharing
no code with what they check.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from brute_force import UNKNOWN, Row, group_of, lists_of
from slow import Value, known, mean, parsed

WITHOUT_RELEVANCE = ("SelectionRate", "StatisticalParity", "DisparateImpact")
SINGLE = ("GeneralizedEntropy", "Theil")
MOST = 1e9


def score(
    label: str,
    rows: Sequence[Row],
    attribute: str | None = None,
    *,
    relevant_from: float = 0.5,
    unknown_counts: bool = False,
    groups: Iterable[str] = (),
    **context: Any,
) -> Value | dict[str, Value]:
    """The number of the batch, or that of each group, None where there is none.

    ``groups`` are groups to report beside those in ``rows``; further context means nothing here.
    """
    asked = parsed(label)
    name, k = asked.name, asked.k
    assert k is not None, label
    alpha = 1.0 if name == "Theil" else float(asked.given.get("alpha", "2"))
    by_list = asked.given.get("per", "batch") == "list"

    lists = list(lists_of(rows).values())
    needs = name not in WITHOUT_RELEVANCE
    missing = needs and not all(known(row, "relevance") for row in rows)

    if name in SINGLE:
        if missing:
            return None
        if not by_list:
            return _entropy(rows, k, alpha, relevant_from)
        each = [_entropy(one, k, alpha, relevant_from, MOST) for one in lists]
        return mean(None if value is None else min(value, MOST) for value in each)

    assert attribute is not None, label
    names = sorted({group_of(row, attribute) for row in rows} | set(groups))

    def compared(group: str) -> list[str]:
        return [
            other
            for other in names
            if other != group and (unknown_counts or other != UNKNOWN)
        ]  # fmt: skip

    answer: dict[str, Value] = {}
    for group in names:
        pick = _picker(attribute, group, compared(group))
        if not by_list:
            members, rest = pick(rows)
            looked_at = members if name in RATES else members + rest
            if needs and not all(known(row, "relevance") for row in looked_at):
                answer[group] = None
            else:
                answer[group] = _value(name, rows, members, rest, k, relevant_from)
            continue
        if missing:
            answer[group] = None
            continue
        found, under = [], []
        for one in lists:
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


def _picker(
    attribute: str, group: str, compared: list[str]
) -> Callable[[Sequence[Row]], tuple[list[Row], list[Row]]]:
    def pick(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
        members = [row for row in rows if group_of(row, attribute) == group]
        return members, [row for row in rows if group_of(row, attribute) in compared]

    return pick


def _share(rows: list[Row], holds: Callable[[Row], bool]) -> Value:
    return len([row for row in rows if holds(row)]) / len(rows) if rows else None


def _rate(name: str, rows: list[Row], k: int, relevant_from: float) -> Value:
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
) -> Value:
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


def _entropy(
    rows: Sequence[Row], k: int, alpha: float, relevant_from: float, endless: Value = None
) -> Value:
    if all(row["rank"] <= k for row in rows):
        return None
    benefits = [
        (1 if row["rank"] <= k else 0) - (1 if row["relevance"] >= relevant_from else 0) + 1
        for row in rows
    ]
    if sum(benefits) == 0:
        return None
    if alpha <= 0 and 0 in benefits:
        return endless
    mean = sum(benefits) / len(benefits)
    shares = [benefit / mean for benefit in benefits]
    if alpha == 1:
        return math.fsum(x * math.log(x) if x else 0.0 for x in shares) / len(shares)
    if alpha == 0:
        return -math.fsum(math.log(x) for x in shares) / len(shares)
    return math.fsum(x**alpha - 1 for x in shares) / (len(shares) * alpha * (alpha - 1))
