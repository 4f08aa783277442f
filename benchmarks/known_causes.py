"""Nights of a made-up ranker whose kinds of requests and treatments are known.

Not here: what is concluded of them (``explain``).
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from metrics import Counts, RankHistogram
from metrics.weights import exposure_at

GROUPS = ("m", "w")
DEPTH, DEVICES = 10, 2
LEVELS = 3
"""What women are favoured by differs from query to query, in so many steps."""


@dataclass(frozen=True)
class World:
    """Two nights; what is said twice is that of the first and of the second.

    ``behind`` is by how much women are behind on the first and the second device, in standard
    deviations of the ranker's noise, ``better`` what they are favoured by beside.  ``turnover`` is
    the share of requests whose query is asked on that night alone.  There are LEVELS times as many
    queries as ``queries``.
    """

    causes: frozenset[str] = frozenset()
    web: tuple[float, float] = (0.4, 0.4)
    better: tuple[float, float] = (0.0, 0.0)
    behind: tuple[float, float] = (0.1, 0.6)
    step: float = 0.15
    queries: int = 25
    lists: tuple[int, int] = (3000, 3000)
    turnover: float = 0.0
    markets: int = 3


MIX, TREATMENT = frozenset({"mix"}), frozenset({"treatment"})
WORLDS = {
    "unchanged": World(),
    "unchanged, equal groups": World(behind=(0.0, 0.0), step=0.0),
    "unchanged, 12 queries": World(queries=4, lists=(600, 600)),
    "unchanged, half as many lists": World(lists=(3000, 1500)),
    "unchanged, 10% other queries": World(turnover=0.1),
    "unchanged, nearly all other queries": World(queries=5000),
    "mix": World(MIX, web=(0.4, 0.8)),
    "mix, a fifth of that": World(MIX, web=(0.4, 0.48)),
    "mix, 10% other queries": World(MIX, web=(0.4, 0.8), turnover=0.1),
    "mix, nearly all other queries": World(MIX, web=(0.4, 0.8), queries=5000),
    "treatment": World(TREATMENT, better=(0.0, -0.25)),
    "treatment, a fifth of that": World(TREATMENT, better=(0.0, -0.05)),
    "treatment, 10% other queries": World(TREATMENT, better=(0.0, -0.25), turnover=0.1),
    "treatment, nearly all other queries": World(TREATMENT, better=(0.0, -0.25), queries=5000),
    "both": World(MIX | TREATMENT, web=(0.4, 0.8), better=(0.0, -0.25)),
    "both, opposed": World(MIX | TREATMENT, web=(0.4, 0.8), better=(0.0, 0.3)),
    "both, cancelling out": World(MIX | TREATMENT, web=(0.4, 0.8), better=(0.0, 0.2)),
}


def ranked(rng: np.random.Generator, advantage: Any) -> Any:
    """Groups by rank of one list for each ``advantage`` of women, shape (lists, DEPTH)."""
    group = rng.random((len(advantage), DEPTH)) < 0.5
    score = group * advantage[:, None] + rng.normal(size=group.shape)
    return np.take_along_axis(group, np.argsort(-score, axis=1), axis=1).astype(np.int64)


@cache
def exposed(advantage: float, lists: int) -> tuple[float, float]:
    """What a list gives each group of exposure, in the mean over many."""
    rng = np.random.default_rng(7)
    group = ranked(rng, np.full(lists, advantage))
    weight = exposure_at(np.arange(1, DEPTH + 1))
    women = float((group * weight).sum() / lists)
    return float(weight.sum()) - women, women


def true_parts(world: World, large: int) -> tuple[float, float, float]:
    """Change, mix and treatment of nights of endlessly many lists."""

    def score(treated: int, mixed: int) -> float:
        total = np.zeros(2)
        for level in range(LEVELS):
            for device in range(DEVICES):
                share = world.web[mixed] if device else 1 - world.web[mixed]
                advantage = advantage_of(world, treated, level, device)
                total += share * np.array(exposed(round(float(advantage), 6), large))
        return float(total.min() / total.max())

    f = {(t, m): score(t, m) for t in (0, 1) for m in (0, 1)}
    mix = (f[0, 1] - f[0, 0] + f[1, 1] - f[1, 0]) / 2
    return f[1, 1] - f[0, 0], mix, f[1, 1] - f[0, 0] - mix


def advantage_of(world: World, night: int, query: Any, device: Any) -> Any:
    """What women are favoured by in lists of a query on a device."""
    behind = np.where(device, world.behind[1], world.behind[0])
    return (query % LEVELS - (LEVELS - 1) / 2) * world.step - behind + world.better[night]


@dataclass(frozen=True)
class Night:
    """Lists of one night: their query, slices and ranked groups."""

    query: Any
    slices: Any
    group: Any

    @property
    def counts(self) -> Counts:
        rank = np.tile(np.arange(1, DEPTH + 1), 2)
        rows = np.array([(self.group == g).sum(axis=0) for g in (0, 1)]).ravel()
        none, zero = np.zeros_like(rows), np.zeros(len(rows))
        histogram = RankHistogram(
            np.repeat([0, 1], DEPTH), rank, rows, none, none, zero, none, zero
        )
        return Counts(len(self.group), GROUPS, histogram, True)


def night(rng: np.random.Generator, world: World, which: int) -> Night:
    popular = np.arange(1, world.queries + 1) ** -0.7
    # Each level of queries is asked as often as the others.
    size = world.lists[which]
    query = rng.choice(world.queries, size, p=popular / popular.sum()) * LEVELS
    query += rng.integers(0, LEVELS, size)
    fresh = rng.random(size) < world.turnover
    query[fresh] += (1 + which) * LEVELS * world.queries
    device = (rng.random(size) < world.web[which]).astype(np.int64)
    slices = np.stack([device, rng.integers(0, world.markets, size)], axis=1)
    return Night(query, slices, ranked(rng, advantage_of(world, which, query, device)))
