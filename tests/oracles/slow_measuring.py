"""Count tables in plain Python: every list by itself, every sum a whole number or a fraction."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from logs import Row, Rows

UNIT = 2**60
UNKNOWN = "unknown"
SMOOTHING = 1e-7
Key = tuple[Any, ...]
Table = dict[Key, dict[str, Any]]


def lists_of(rows: Rows) -> dict[str, Rows]:
    """Rows of each list, top first."""
    lists: dict[str, Rows] = {}
    for row in sorted(rows, key=lambda row: int(row["rank"])):
        lists.setdefault(row["list_id"], []).append(row)
    return lists


def parts_of(row: Row, slices: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The slices that a row belongs to."""
    yield "all", "all"
    for name in slices:
        yield name, row[name] or UNKNOWN


def group_of(row: Row, attribute: Sequence[str]) -> str:
    """The group of a row; unknown where one of several attributes is."""
    names = [row[name] or UNKNOWN for name in attribute]
    return UNKNOWN if UNKNOWN in names else "*".join(names)


def scaled(value: float) -> int:
    """A number as a multiple of 1 / UNIT, to the nearest, of two the even one."""
    return round(Fraction(value) * UNIT)


def slice_counts(rows: Rows, slices: Sequence[str]) -> Table:
    """Lists, queries and rows of each slice, and how many rows have what may be missing."""
    sums: dict[Key, Counter[str]] = defaultdict(Counter)
    queries: dict[Key, set[str]] = defaultdict(set)
    known = ("relevance", "click", "reference_rank", "propensity", "predicted_click")
    for name, held in lists_of(rows).items():
        for part in parts_of(held[0], slices):
            sums[part].update(lists=1, rows=len(held))
            queries[part].add(held[0].get("query_id") or name)
            for column in known:
                sums[part][f"{column}_known"] += sum(row.get(column) is not None for row in held)
    return {part: {**found, "queries": len(queries[part])} for part, found in sums.items()}


def rank_counts(
    rows: Rows, slices: Sequence[str], attributes: Mapping[str, Sequence[str]], relevant_from: float
) -> Table:
    """The rank histogram of each slice, attribute and group."""
    sums: dict[Key, Counter[str]] = defaultdict(Counter)
    for row in rows:
        relevance, click = row.get("relevance"), row.get("click")
        for part in parts_of(row, slices):
            for name, attribute in attributes.items():
                sums[*part, name, group_of(row, attribute), row["rank"]].update(
                    rows=1,
                    judged=relevance is not None,
                    graded=relevance not in (None, 0, 1),
                    relevant=relevance is not None and relevance >= relevant_from,
                    relevance_sum=scaled(relevance or 0),
                    click_known=click is not None,
                    click_sum=scaled(click or 0),
                )
    return {key: dict(found) for key, found in sums.items()}


def group_tables(
    rows: Rows, slices: Sequence[str], attributes: Mapping[str, Sequence[str]]
) -> tuple[Table, Table]:
    """Pairs that each group wins, and its share of prefixes, by slice, attribute and group.

    Sums over prefixes are numbers of the lists, not scaled.
    """
    pairs: dict[Key, Counter[str]] = defaultdict(Counter)
    prefixes: dict[Key, dict[str, Any]] = {}
    for number, held in lists_of(rows).items():
        for name, attribute in attributes.items():
            groups = [group_of(row, attribute) for row in held]
            for group in set(groups):
                mine = [each == group for each in groups]
                mixed = sum(mine) * (len(mine) - sum(mine))
                won = sum(
                    sum(not other for other in mine[at:]) for at, own in enumerate(mine) if own
                )
                numbers = prefix_sums(mine)
                for part in parts_of(held[0], slices):
                    key = (*part, name, group)
                    if mixed:
                        share = round(Fraction(won / mixed) * UNIT)
                        pairs[key].update(lists=1, pairs=mixed, won=won, share_sum=share)
                    found = prefixes.setdefault(
                        key,
                        {"lists": 0, "queries": set(), "items": set()}
                        | {"entropy": [], "share": [], "own": []},
                    )
                    found["lists"] += 1
                    found["queries"].add(held[0].get("query_id") or number)
                    found["items"] |= {
                        row["item_id"] for row, own in zip(held, mine, strict=True) if own
                    }
                    for field, value in zip(("entropy", "share", "own"), numbers, strict=True):
                        found[field].append(value)
    return dict(pairs), {
        key: {
            "lists": found["lists"],
            "queries": len(found["queries"]),
            "items": len(found["items"]),
            **{f"{field}_sum": math.fsum(found[field]) for field in ("entropy", "share", "own")},
        }
        for key, found in prefixes.items()
    }


def prefix_sums(mine: Sequence[bool]) -> tuple[float, float, float]:
    """Entropy part, weighted share and divergence from the list's own mix of one group."""
    n, s = len(mine), SMOOTHING
    weights = [1 / math.log2(i + 1) for i in range(1, n + 1)]
    shares = [sum(mine[:i]) / i for i in range(1, n + 1)]
    whole = math.fsum(weights)
    zero = s * math.log(s)
    # Where the group has not come yet a prefix adds nothing here: that is added for all at once.
    entropy = math.fsum(
        w * ((p + s) * math.log(p + s) - zero) for w, p in zip(weights, shares, strict=True)
    )
    share = math.fsum(w * p for w, p in zip(weights, shares, strict=True))
    entropy, share = entropy / whole, share / whole
    own = sum(mine) / n
    return entropy, share, entropy - ((share + s) * math.log(own + s) - zero) if own < 1 else 0.0
