"""The comparison of two rankings from its definitions, in plain loops: slow and independent.

Nothing here is shared with the metrics.  Overlaps are intersections of sets, rank-biased overlap is
a series added up depth by depth until nothing is left of it, pairs are looked at one by one, and
correlations are computed in fractions.  ``score`` gives the value of some rows under a label.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations, count
from math import fsum, sqrt
from typing import Any

from brute_force import Row, lists_of
from slow import Value, known, mean, parsed

LEFT = 1e-19
"""What the rest of a series may add up to when it is cut."""


def score(
    label: str,
    rows: Sequence[Row],
    attribute: str | None = None,
    *,
    reference_length: Mapping[str, int] | None = None,
    **context: Any,
) -> Value:
    """Mean over the lists that have a value, None where none has."""
    return mean(
        one_list(label, each, (reference_length or {}).get(name))
        for name, each in lists_of(rows).items()
    )


def one_list(label: str, rows: Sequence[Row], reference_length: int | None = None) -> Value:
    """The value of one list, in order of rank; None where it has none."""
    asked = parsed(label)
    against, k = asked.given.get("reference", "logged"), asked.k
    if asked.name in PAIRS:
        return PAIRS[asked.name](*series(rows, against))
    shown, other = sides(rows, against)
    orders = [row["relevance"] for row in judged(rows)] if against == "relevance" else None
    if len(set(other.values())) < len(other) or (orders and len(set(orders)) == 1):
        return None
    depths = max(shown.values()), max(other.values(), default=0)
    if against == "logged" and reference_length is not None:
        depths = depths[0], reference_length
    short, long = sorted(min(depth, k) if k else depth for depth in depths)
    if short == 0:
        return None

    def common(depth: int) -> int:
        top = {item for item, rank in shown.items() if rank <= depth}
        return len(top & {item for item, rank in other.items() if rank <= depth})

    if asked.name == "AO":
        return fsum(common(depth) / depth for depth in range(1, short + 1)) / short
    p = float(asked.given["p"])
    if asked.name == "RBD":
        return 1 - extrapolated(common, short, long, p)
    assert asked.reading is not None, label
    return READINGS[asked.reading](common, short, long, p)


def sides(rows: Sequence[Row], against: str) -> tuple[dict[str, int], dict[str, int]]:
    """Places of the items in the list and in its reference."""
    if against == "logged":
        shown = {row["item_id"]: row["rank"] for row in rows}
        return shown, {row["item_id"]: row["reference_rank"] for row in rows if held(row)}
    by_relevance = sorted(judged(rows), key=lambda row: -row["relevance"])
    return (
        {row["item_id"]: place for place, row in enumerate(rows, start=1)},
        {row["item_id"]: place for place, row in enumerate(by_relevance, start=1)},
    )


def held(row: Row) -> bool:
    return bool(row.get("reference_rank"))


def judged(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if known(row, "relevance")]


Common = Callable[[int], int]


def least(common: Common, short: int, long: int, p: float) -> float:
    """Nothing that follows agrees."""
    return added(p, lambda depth: common(min(depth, long)) / depth, long)


def residual(common: Common, short: int, long: int, p: float) -> float:
    """Each depth below a list's end brings one more match, until all agrees, less the least."""

    def gained(depth: int) -> float:
        seen = common(min(depth, long))
        most = seen + max(0, depth - short) + max(0, depth - long)
        return (min(most, depth) - seen) / depth

    return added(p, gained, 2 * long)


def extrapolated(common: Common, short: int, long: int, p: float) -> float:
    """The shorter list goes on at the agreement of its end, then both do."""
    at_end = common(short) / short

    def agreement(depth: int) -> float:
        seen = min(depth, long)
        return (common(seen) + at_end * max(0, seen - short)) / seen

    return added(p, agreement, long)


READINGS = {"MIN": least, "RES": residual, "EXT": extrapolated}


def added(p: float, agreement: Callable[[int], float], known: int) -> float:
    """(1 - p) sum over d of p^(d-1) agreement(d), until what is left cannot matter."""
    parts = []
    for depth in count(1):
        parts.append((1 - p) * p ** (depth - 1) * agreement(depth))
        if depth > known and p**depth < LEFT:
            return fsum(parts)
    raise AssertionError


Series = Sequence[Fraction]


def series(rows: Sequence[Row], against: str) -> tuple[Series, Series]:
    """Ranks, and the numbers to compare them with, lowest first, of the items that have both."""
    if against == "logged":
        pairs = [(row["rank"], row["reference_rank"]) for row in rows if held(row)]
    else:
        pairs = [(row["rank"], -row["relevance"]) for row in judged(rows)]
    return [Fraction(a) for a, _ in pairs], [Fraction(b) for _, b in pairs]


def directions(own: Series, other: Series) -> list[int]:
    """For each pair of items +1 if ordered alike, -1 if contradicted, 0 if tied."""
    found = []
    for (a, x), (b, y) in combinations(zip(own, other, strict=True), 2):
        assert a < b
        found.append((y > x) - (y < x))
    return found


def counted(own: Series, other: Series) -> tuple[int, int, int]:
    """Pairs ordered alike, contradicted and tied."""
    found = directions(own, other)
    return found.count(1), found.count(-1), found.count(0)


def ndpm(own: Series, other: Series) -> Value:
    alike, contradicted, _ = counted(own, other)
    ordered = alike + contradicted
    # A pair that the list leaves tied would count half; a list ties none.
    return None if ordered < 2 else 2 * contradicted / (2 * ordered)


def fcp(own: Series, other: Series) -> Value:
    alike, contradicted, _ = counted(own, other)
    return None if alike + contradicted < 2 else alike / (alike + contradicted)


def kendall(own: Series, other: Series) -> Value:
    alike, contradicted, tied = counted(own, other)
    if alike + contradicted < 2:
        return None
    return (alike - contradicted) / sqrt((alike + contradicted + tied) * (alike + contradicted))


def spearman(own: Series, other: Series) -> Value:
    return pearson(places(own), places(other))


def places(values: Series) -> Series:
    """Mean place of each value, 1 = lowest."""
    return [
        Fraction(1 + 2 * sum(b < a for b in values) + sum(b == a for b in values), 2)
        for a in values
    ]


def pearson(own: Series, other: Series) -> Value:
    if sum(counted(own, other)[:2]) < 2:
        return None
    means = sum(own) / len(own), sum(other) / len(other)
    pairs = [(a - means[0], b - means[1]) for a, b in zip(own, other, strict=True)]
    square = sum(x * y for x, y in pairs) ** 2 / (
        sum(x * x for x, _ in pairs) * sum(y * y for _, y in pairs)
    )
    return sqrt(square) * (1 if sum(x * y for x, y in pairs) > 0 else -1)


PAIRS: dict[str, Callable[[Series, Series], Value]] = {
    "NDPM": ndpm,
    "FCP": fcp,
    "Kendall": kendall,
    "Spearman": spearman,
    "Pearson": pearson,
}
