"""List-native fairness written the slow and obvious way: loops over rows, orders and tables.

What belongs here: a second opinion, straight from the definitions, sharing no code with what it
checks.  Prefixes and the tables of FA*IR have files of their own, ``slow_prefixes`` and
``slow_fair``.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from brute_force import UNKNOWN, Row, group_of, lists_of
from slow import Value, known, mean, parsed
from slow_fair import minima
from slow_prefixes import difference, of_group, rkl, shortfall

DEFAULTS: dict[str, dict[str, str]] = {
    "Skew": {"reference": "list", "per": "batch"},
    "rND": {"step": "10"},
    "rRD": {"step": "10"},
    "rKL": {"step": "10"},
    "FAIR": {"alpha": "0.1", "reference": "list"},
    "FAIRFirst": {"alpha": "0.1", "reference": "list"},
    "TargetAWRF": {"weight": "log", "p": "0.1", "reference": "target"},
    "Pairwise": {"pairs": "all", "over": "pairs"},
    "EEL": {"decay": "0.5"},
    "EED": {"decay": "0.5"},
    "EER": {"decay": "0.5"},
}


def score(
    label: str,
    rows: Sequence[Row],
    attribute: str | None = None,
    *,
    relevant_from: float = 0.5,
    target: Mapping[str, float] | None = None,
    catalogue: Mapping[str, float] | None = None,
    unknown_counts: bool = False,
    **context: Any,
) -> Value | dict[str, Value]:
    """What ``label`` (without an aggregation) says of all lists: one number, or one per group.

    None where there is no value.  ``target`` and ``catalogue`` are shares or sizes by group.
    """
    asked = parsed(label)
    name, given = asked.name, {**DEFAULTS[asked.name], **asked.given}
    judged = all(known(row, "relevance") for row in rows)
    if name in ("EEL", "EED", "EER"):
        if not judged:
            return None
        return mean(_of_query(name, query, float(given["decay"])) for query in _queries(rows))
    assert attribute is not None, label
    groups = sorted({group_of(row, attribute) for row in rows})
    names = {group for group in groups if unknown_counts or group != UNKNOWN}
    wanted = {"list": None, "target": target, "catalogue": catalogue}.get(
        given.get("reference", "")
    )
    if given.get("reference", "list") != "list" and wanted is None:
        return None if name in ("FAIRFirst", "TargetAWRF") else dict.fromkeys(groups)
    if wanted is not None:
        part = {g: s for g, s in wanted.items() if unknown_counts or g != UNKNOWN}
        whole = sum(part.values())
        wanted = {g: s / whole for g, s in part.items()} if whole else {}
        names |= set(part)
        groups = sorted({*groups, *part})
    lists = [List(each, attribute, names, asked.k) for each in lists_of(rows).values()]
    if name == "TargetAWRF":
        return mean(_attention_match(each, given, wanted) for each in lists)
    if name == "rKL":
        return mean(rkl(each.groups, int(given["step"])) for each in lists)
    if name == "FAIRFirst":
        return mean(_first_failure(each, given, wanted) for each in lists)
    if name == "Skew" and given["per"] == "batch":
        return {group: _pooled_skew(lists, group, wanted) for group in groups}
    if name == "Pairwise":
        if not judged:
            return dict.fromkeys(groups)
        return {group: _pairwise(lists, group, given, relevant_from) for group in groups}
    of_list: dict[str, Callable[[List, str], Value]] = {
        "Skew": lambda each, group: _skew(each, group, wanted),
        "rND": lambda each, group: of_group(each.groups, group, int(given["step"]), difference),
        "rRD": lambda each, group: of_group(each.groups, group, int(given["step"]), shortfall),
        "FAIR": lambda each, group: _fair(each, group, given, wanted),
    }
    return {
        group: mean(of_list[name](each, group) for each in lists) if group in names else None
        for group in groups
    }


class List:
    """One list: its rows whose group takes part, from the top."""

    def __init__(self, rows: Sequence[Row], attribute: str, names: set[str], k: int | None) -> None:
        self.rows = [row for row in rows if group_of(row, attribute) in names]
        self.groups = [group_of(row, attribute) for row in self.rows]
        self.ranks = [row["rank"] for row in self.rows]
        self.top = len([rank for rank in self.ranks if k is None or rank <= k])
        self.names = names

    def share(self, group: str, wanted: Mapping[str, float] | None) -> Fraction | None:
        """Reference share of the group; None in a list of one group held against its own mix."""
        if wanted is not None:
            return Fraction(wanted.get(group, 0.0)).limit_denominator(10**6)
        if len(set(self.groups)) < 2:
            return None
        return Fraction(self.groups.count(group), len(self.groups))


# -- Skew


def _pooled_skew(lists: Sequence[List], group: str, wanted: Mapping[str, float] | None) -> Value:
    top = [name for each in lists for name in each.groups[: each.top]]
    rows = [name for each in lists for name in each.groups]
    if group not in rows or group not in top:
        return None
    if wanted is None and len(top) == len(rows):
        return None
    share = rows.count(group) / len(rows) if wanted is None else wanted.get(group, 0.0)
    return math.log(top.count(group) / len(top) / share) if share else None


def _skew(each: List, group: str, wanted: Mapping[str, float] | None) -> Value:
    share = each.share(group, wanted)
    if not share or each.top == 0 or (wanted is None and each.top == len(each.groups)):
        return None
    if wanted is not None:
        share = wanted[group]
    count = each.groups[: each.top].count(group)
    return math.log((count + share) / (each.top + 1) / share)


# -- FA*IR


def _failing_rank(
    each: List, group: str, given: Mapping[str, str], wanted: Mapping[str, float] | None
) -> float | None:
    """First rank that fails; infinite when none does, None when nothing can be tested."""
    share = each.share(group, wanted)
    if share is None or not 0 < share < 1 or each.top == 0:
        return None
    table = minima(min(each.top, 1000), share, Fraction(given["alpha"]))
    if table[-1] == 0:
        return None
    if wanted is None:
        worst = sorted(each.groups, key=lambda name: name == group)
        if all(worst[:i].count(group) >= need for i, need in enumerate(table, start=1)):
            return None
    for i, need in enumerate(table, start=1):
        if each.groups[:i].count(group) < need:
            return float(each.ranks[i - 1])
    return math.inf


def _fair(
    each: List, group: str, given: Mapping[str, str], wanted: Mapping[str, float] | None
) -> Value:
    found = _failing_rank(each, group, given, wanted)
    return None if found is None else float(found == math.inf)


def _first_failure(
    each: List, given: Mapping[str, str], wanted: Mapping[str, float] | None
) -> Value:
    found = [_failing_rank(each, group, given, wanted) for group in each.names]
    ranks = [rank for rank in found if rank is not None and rank < math.inf]
    return min(ranks) if ranks else None


# -- attention beside shares


def _attention_match(
    each: List, given: Mapping[str, str], wanted: Mapping[str, float] | None
) -> Value:
    if each.top == 0 or (wanted is None and len(set(each.groups)) < 2) or wanted == {}:
        return None
    weights = [
        1 / math.log2(max(rank, 2))
        if given["weight"] == "log"
        else (1 - float(given["p"])) ** (rank - 1)
        for rank in each.ranks[: each.top]
    ]
    if sum(weights) == 0:
        return None
    whole = 0.0
    for name in each.names:
        seen = sum(w for w, group in zip(weights, each.groups, strict=False) if group == name)
        a, b = seen / sum(weights), float(each.share(name, wanted) or 0)
        if wanted is not None:
            b = wanted.get(name, 0.0)
        for part in (a, b):
            if part:
                whole += part * math.log2(part / ((a + b) / 2)) / 2
    return 1 - whole


# -- pairs of a relevant item and one that is not


def _pairwise(
    lists: Sequence[List], group: str, given: Mapping[str, str], relevant_from: float
) -> Value:
    found = []
    for each in lists:
        won = pairs = 0
        for i, mine in enumerate(each.rows):
            for j, other in enumerate(each.rows):
                same = each.groups[j] == group
                wanted = {"all": True, "intra": same, "inter": not same}[given["pairs"]]
                relevant = mine["relevance"] >= relevant_from > other["relevance"]
                if each.groups[i] == group and relevant and wanted:
                    pairs += 1
                    won += i < j
        found.append((won, pairs))
    if given["over"] == "lists":
        return mean(won / pairs if pairs else None for won, pairs in found)
    won, pairs = sum(won for won, _ in found), sum(pairs for _, pairs in found)
    return won / pairs if pairs else None


# -- expected exposure


def _queries(rows: Sequence[Row]) -> list[list[list[Row]]]:
    """Lists of each query; a list that names none is its own."""
    found: dict[str, list[list[Row]]] = {}
    for name, each in lists_of(rows).items():
        found.setdefault(each[0].get("query_id", name), []).append(each)
    return [*found.values()]


def query_items(lists: Sequence[Sequence[Row]], decay: float) -> list[tuple[float, float]]:
    """Mean exposure and mean relevance of each item of a query."""
    items = {row["item_id"] for each in lists for row in each}
    found = []
    for item in sorted(items):
        shown = [row for each in lists for row in each if row["item_id"] == item]
        exposure = math.fsum(decay ** (row["rank"] - 1) for row in shown) / len(lists)
        found.append((exposure, math.fsum(row["relevance"] for row in shown) / len(shown)))
    return found


def _of_query(name: str, lists: Sequence[Sequence[Row]], decay: float) -> Value:
    items = query_items(lists, decay)
    if len(items) < 2:
        return None
    whole = 0.0
    for exposure, relevance in items:
        above = sum(other > relevance + 5e-10 for _, other in items)
        equal = sum(abs(other - relevance) <= 5e-10 for _, other in items)
        target = math.fsum(decay**place for place in range(above, above + equal)) / equal
        whole += {
            "EEL": (exposure - target) ** 2,
            "EED": exposure**2,
            "EER": exposure * target,
        }[name]
    return whole
