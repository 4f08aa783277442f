"""rND, rRD and rKL of one list in plain loops: prefix by prefix, and the worst order by search."""

import math
from collections.abc import Callable, Sequence
from itertools import permutations

from slow import Value


def difference(prefix: Sequence[str], whole: Sequence[str], group: str) -> float:
    return abs(prefix.count(group) / len(prefix) - whole.count(group) / len(whole))


def shortfall(prefix: Sequence[str], whole: Sequence[str], group: str) -> float:
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


def of_group(
    groups: Sequence[str], group: str, step: int, unfairness: Callable[..., float]
) -> Value:
    """rND or rRD of one list, from the group of each row, top first."""
    if group not in groups or len(set(groups)) < 2:
        return None
    order = [name if name == group else "" for name in groups]
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


def rkl(groups: Sequence[str], step: int) -> Value:
    """rKL of one list, from the group of each row, top first."""
    names = sorted(set(groups))
    if len(names) < 2:
        return None
    if len(names) == 2:
        highest = highest_of_two(
            groups, step, lambda prefix, whole, group: divergence(prefix, whole), names[0]
        )
    else:
        highest = math.fsum(
            most_divergent(groups, i) / math.log2(i) for i in range(step, len(groups) + 1, step)
        )
    return raw(groups, step, divergence) / highest if highest > 0 else None


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
