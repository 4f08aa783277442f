"""Chance once more: every order of small lists, and many orders of larger ones.

A list is a tuple of group names, one per item.  Nothing here shares code with what it checks, and
no law is used but that every order of a list is as likely as any other.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np

List = tuple[str, ...]
Groups = Sequence[str]

SMOOTHING = 1e-7

WEIGHTS: Mapping[str, Callable[[Any], Any]] = {
    "EXP": lambda rank: 1 / np.log2(rank + 1),
    "EXPU": lambda rank: 1 / np.log2(rank + 1),
    "AWRF": lambda rank: 10 * 0.9 ** (rank - 1),
    "ERBE": lambda rank: 0.25 * 0.75 ** (rank - 1),
    "ERBP": lambda rank: 0.25 * 0.75 ** (rank - 1),
    "ERBR": lambda rank: 0.25 * 0.75 ** (rank - 1),
    "Skew": lambda rank: np.ones(len(rank)),
}
"""Position weights, with the parameters at their defaults."""

AGGREGATIONS: Mapping[str, Callable[[Any], Any]] = {
    "MinMaxRatio": lambda v: v.min(axis=1) / v.max(axis=1),
    "MaxMinRatio": lambda v: v.max(axis=1) / v.min(axis=1),
    "MaxMinDiff": lambda v: v.max(axis=1) - v.min(axis=1),
    "MaxAbsDiff": lambda v: np.abs(v - v.mean(axis=1)[:, None]).max(axis=1),
    "MeanAbsDev": lambda v: np.abs(v - v.mean(axis=1)[:, None]).mean(axis=1),
    "LTwo": lambda v: np.sqrt((v**2).sum(axis=1)),
    "Variance": lambda v: ((v - v.mean(axis=1)[:, None]) ** 2).mean(axis=1),
}


def every_order(lists: Sequence[List], statistic: Callable[[List], Any]) -> tuple[Any, Any]:
    """Exact mean and covariance of a vector that is added up over lists, each in any order."""
    mean, covariance = 0.0, 0.0
    for each in lists:
        found = np.array([statistic(order) for order in permutations(each)])
        mean = mean + found.mean(axis=0)
        away = found - found.mean(axis=0)
        covariance = covariance + away.T @ away / len(found)
    return mean, covariance


def weight_of(order: List, groups: Groups, weight: Sequence[float]) -> list[float]:
    """Each group's weight in one list."""
    return [math.fsum(w for w, g in zip(weight, order, strict=False) if g == it) for it in groups]


def pairs_won(order: List, groups: Groups) -> list[float]:
    """Each group's share of the pairs with items of others in which its item is above; else 0."""
    found = []
    for group in groups:
        pairs = [
            one == group
            for at, one in enumerate(order)
            for other in order[at + 1 :]
            if (one == group) != (other == group)
        ]
        found.append(sum(pairs) / len(pairs) if pairs else 0.0)
    return found


def divergence(order: List, reference: Mapping[str, float] | None = None) -> float:
    """NDKL of one list against shares of groups; by default the list's own."""
    own = {group: order.count(group) / len(order) for group in order}
    wanted = own if reference is None else reference
    total = whole = 0.0
    for first in range(1, len(order) + 1):
        weight = 1 / math.log2(first + 1)
        whole += weight
        for group in {*wanted, *own}:
            share = order[:first].count(group) / first + SMOOTHING
            total += weight * share * math.log(share / (wanted.get(group, 0) + SMOOTHING))
    return total / whole


def shuffled(lists: Sequence[List], orders: int, seed: int) -> Iterator[tuple[List, Any]]:
    """Each list, and the ranks of its items in random orders, shape (orders, items)."""
    chance = np.random.default_rng(seed)
    for each in lists:
        yield each, chance.random((orders, len(each))).argsort(axis=1) + 1


class Shuffled:
    """What groups get in random orders of lists, shape (orders, groups) each."""

    def __init__(
        self, lists: Sequence[List], groups: Groups, orders: int, seed: int, k: int
    ) -> None:
        self.lists, self.groups, self.k = lists, groups, k
        shape = (orders, len(groups))
        self.share = np.zeros(shape)
        self.mixed = np.zeros(len(groups))
        self.ndkl = np.zeros(orders)
        labels = [f"{name}{cut}" for name in WEIGHTS for cut in ("", f"@{k}")]
        self.sums = {label: np.zeros(shape) for label in labels}
        for each, ranks in shuffled(lists, orders, seed):
            self._add(np.array(each), ranks)

    def _add(self, each: Any, ranks: Any) -> None:
        length = ranks.shape[1]
        at = np.arange(1, length + 1)
        place = np.argsort(ranks, axis=1)
        for name, weight in WEIGHTS.items():
            for label, last in ((name, length), (f"{name}@{self.k}", self.k)):
                table = np.where(at <= last, weight(at), 0.0)[ranks - 1]
                for column, group in enumerate(self.groups):
                    self.sums[label][:, column] += table[:, each == group].sum(axis=1)
        discount = 1 / np.log2(at + 1)
        total = np.zeros(len(ranks))
        for column, group in enumerate(self.groups):
            mine = each == group
            held = int(mine.sum())
            if not held:
                continue
            share = np.cumsum(mine[place], axis=1) / at + SMOOTHING
            logs = np.log(share / (held / length + SMOOTHING))
            total += (share * logs * discount).sum(axis=1)
            if held < length:
                # Every item of others below an item of the group is a pair won.
                below = length * held - ranks[:, mine].sum(axis=1) - held * (held - 1) / 2
                self.share[:, column] += below / (held * (length - held))
                self.mixed[column] += 1
        self.ndkl += total / discount.sum() / len(self.lists)

    def values(self, label: str, relevant: Mapping[str, float], items: Mapping[str, int]) -> Any:
        """Group values by a label of a covered metric, shape (orders, groups).

        ``relevant`` are the relevant rows of each group, ``items`` its items in the catalogue.
        """
        rows = np.array([sum(each.count(group) for each in self.lists) for group in self.groups])
        plain = label.replace("(denominator=catalogue)", "").replace(",denominator=catalogue", "")
        name = plain.split("(")[0].split("@")[0]
        sums = self.sums[name + (f"@{self.k}" if "@" in label else "")] if name != "ARP" else None
        if name == "ARP":
            return self.share / self.mixed
        if name == "ERBE":
            return sums / len(self.lists)
        if name in ("EXPU", "ERBR"):
            return sums / np.array([relevant[group] for group in self.groups])
        if "catalogue" in label:
            return sums / (np.array([items[group] for group in self.groups]) * len(self.lists))
        return sums / rows

    def skews(self) -> Any:
        """ln of each group's share of the top over its share of all rows."""
        top = self.sums[f"Skew@{self.k}"]
        whole = self.sums["Skew"]
        return np.log(top / top.sum(axis=1)[:, None] / (whole / whole.sum(axis=1)[:, None]))
