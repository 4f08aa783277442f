"""List-native fairness written the slow and obvious way: loops over rows, orders and tables.

What belongs here: a second opinion, straight from the definitions, sharing no code with what it
checks.  A row is a mapping with ``list_id``, ``item_id``, ``rank``, attribute columns and perhaps
``relevance`` and ``query_id``; None, NaN or a missing key means unknown.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations
from typing import Any

Row = Mapping[str, Any]
Value = float | None
UNKNOWN = "unknown"
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
    match = re.fullmatch(r"(\w+)(?:\((.*)\))?(?:@(\d+))?", label)
    assert match is not None, label
    name, k = match[1], int(match[3]) if match[3] else None
    said = dict(pair.split("=") for pair in (match[2] or "").split(",") if pair)
    given = {**DEFAULTS[name], **said}
    if name in ("EEL", "EED", "EER"):
        if not all(known(row) for row in rows):
            return None
        return _mean(_of_query(name, query, float(given["decay"])) for query in _queries(rows))
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
    lists = [List(each, attribute, names, k) for each in _by(rows, "list_id")]
    if name == "TargetAWRF":
        return _mean(_attention_match(each, given, wanted) for each in lists)
    if name == "rKL":
        return _mean(_rkl(each, int(given["step"])) for each in lists)
    if name == "FAIRFirst":
        return _mean(_first_failure(each, given, wanted) for each in lists)
    if name == "Skew" and given["per"] == "batch":
        return {group: _pooled_skew(lists, group, wanted) for group in groups}
    if name == "Pairwise":
        if not all(known(row) for row in rows):
            return dict.fromkeys(groups)
        return {group: _pairwise(lists, group, given, relevant_from) for group in groups}
    of_list: dict[str, Callable[[List, str], Value]] = {
        "Skew": lambda each, group: _skew(each, group, wanted),
        "rND": lambda each, group: _prefixes(each, group, int(given["step"]), _difference),
        "rRD": lambda each, group: _prefixes(each, group, int(given["step"]), _shortfall),
        "FAIR": lambda each, group: _fair(each, group, given, wanted),
    }
    return {
        group: _mean(of_list[name](each, group) for each in lists) if group in names else None
        for group in groups
    }


class List:
    """One list: its rows whose group takes part, from the top."""

    def __init__(
        self, rows: Sequence[Row], attribute: str | None, names: set[str], k: int | None
    ) -> None:
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


def known(row: Row) -> bool:
    value = row.get("relevance")
    return value is not None and not math.isnan(value)


def group_of(row: Row, attribute: str | None) -> str:
    found = row.get(attribute) if attribute else None
    return found if isinstance(found, str) and found else UNKNOWN


def _by(rows: Sequence[Row], column: str) -> list[list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row.get(column, row["list_id"]), []).append(row)
    return [sorted(each, key=lambda row: row["rank"]) for each in found.values()]


def _mean(values: Iterable[Value]) -> Value:
    found = [value for value in values if value is not None]
    return math.fsum(found) / len(found) if found else None


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


# -- rND, rRD, rKL


def _difference(prefix: Sequence[str], whole: Sequence[str], group: str) -> float:
    return abs(prefix.count(group) / len(prefix) - whole.count(group) / len(whole))


def _shortfall(prefix: Sequence[str], whole: Sequence[str], group: str) -> float:
    def ratio(part: Sequence[str]) -> float:
        others = len(part) - part.count(group)
        return part.count(group) / others if others else math.inf

    return max(0.0, ratio(whole) - ratio(prefix))


def divergence(prefix: Sequence[str], whole: Sequence[str]) -> float:
    return math.fsum(
        prefix.count(name)
        / len(prefix)
        * math.log(prefix.count(name) / len(prefix) / (whole.count(name) / len(whole)))
        for name in set(prefix)
    )


def raw(order: Sequence[str], step: int, unfairness: Callable[..., float], *group: str) -> float:
    """Discounted sum over the prefixes of one order of groups."""
    return math.fsum(
        unfairness(order[:i], order, *group) / math.log2(i)
        for i in range(step, len(order) + 1, step)
    )


def _prefixes(each: List, group: str, step: int, unfairness: Callable[..., float]) -> Value:
    if group not in each.groups or len(set(each.groups)) < 2:
        return None
    order = [name if name == group else "" for name in each.groups]
    highest = highest_of_two(order, step, unfairness, group)
    return raw(order, step, unfairness, group) / highest if highest > 0 else None


def highest_of_two(
    order: Sequence[str], step: int, unfairness: Callable[..., float], group: str
) -> float:
    """The highest sum over all orders of a group and the rest, whatever comes between the cuts.

    ``best[c]`` is the highest sum of the prefixes so far that ends with c of the group.
    """
    n, size = len(order), order.count(group)
    rest = next((name for name in order if name != group), "")
    whole = [group] * size + [rest] * (n - size)
    best, before = {0: 0.0}, 0
    for i in range(step, n + 1, step):
        found = {}
        for c in range(max(0, i - (n - size)), min(i, size) + 1):
            reached = [b for q, b in best.items() if 0 <= c - q <= i - before]
            prefix = [group] * c + [rest] * (i - c)
            found[c] = max(reached) + unfairness(prefix, whole, group) / math.log2(i)
        best, before = found, i
    return max(best.values())


def _rkl(each: List, step: int) -> Value:
    names = sorted(set(each.groups))
    if len(names) < 2:
        return None
    if len(names) == 2:
        highest = highest_of_two(
            each.groups, step, lambda prefix, whole, group: divergence(prefix, whole), names[0]
        )
    else:
        highest = math.fsum(
            most_divergent(each.groups, i) / math.log2(i)
            for i in range(step, len(each.groups) + 1, step)
        )
    return raw(each.groups, step, divergence) / highest if highest > 0 else None


def most_divergent(groups: Sequence[str], i: int) -> float:
    """The bound on the divergence of the first i, from whole groups and one that is cut."""
    n = len(groups)
    if i == n:
        return 0.0
    sizes = [groups.count(name) for name in set(groups)]

    def loss(room: int, kept: Callable[[int, int], int]) -> float:
        fitting = sum(size for size in sizes if size < room)
        if fitting >= room:
            return 0.0
        large = min(size for size in sizes if size >= room)
        counts = [kept(large, room), kept(large, room - fitting)]
        return min(c * math.log(large / c) if c else 0.0 for c in counts)

    inside = loss(i, lambda large, c: c)
    outside = loss(n - i, lambda large, c: large - c)
    return max(0.0, math.log(n / i) - max(inside, outside) / i)


def highest_divergence(groups: Sequence[str], step: int) -> float:
    """The highest sum that any order of a short list has, by trying them all."""
    return max(raw(order, step, divergence) for order in set(permutations(groups)))


# -- FA*IR


@cache
def minima(depth: int, share: Fraction, alpha: Fraction) -> tuple[int, ...]:
    """Fewest items in the first 1..depth, so that the whole test fails nearest to ``alpha``."""
    at_most = [
        [
            sum(math.comb(i, j) * share**j * (1 - share) ** (i - j) for j in range(x + 1))
            for x in range(i + 1)
        ]
        for i in range(1, depth + 1)
    ]
    levels = sorted({p for row in at_most for p in row if p <= alpha})
    best: tuple[int, ...] = (0,) * depth
    gap = alpha
    for level in levels:
        table = tuple(sum(p <= level for p in row) for row in at_most)
        failing = probability(table, share)
        if abs(failing - alpha) < gap:
            best, gap = table, abs(failing - alpha)
        if failing > alpha:
            break
    return best


def probability(table: Sequence[int], share: Fraction | float) -> Any:
    """Probability that a list of independent places misses one of the minima."""
    alive: dict[int, Any] = {0: 1}
    for need in table:
        after: dict[int, Any] = {}
        for count, chance in alive.items():
            after[count] = after.get(count, 0) + chance * (1 - share)
            after[count + 1] = after.get(count + 1, 0) + chance * share
        alive = {count: chance for count, chance in after.items() if count >= need}
    return 1 - sum(alive.values())


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
        return _mean(won / pairs if pairs else None for won, pairs in found)
    won, pairs = sum(won for won, _ in found), sum(pairs for _, pairs in found)
    return won / pairs if pairs else None


# -- expected exposure


def _queries(rows: Sequence[Row]) -> list[list[list[Row]]]:
    """Lists of each query."""
    return [_by(query, "list_id") for query in _by(rows, "query_id")]


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
