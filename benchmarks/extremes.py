"""Intervals and verdicts of groups that are compared by the lowest or highest of them.

Worlds that are hard for extremes: equal groups, many of them, a small minority, lists of very
different lengths, lists that repeat themselves.  Only what scores are sums of is simulated, query
by query; intervals, minima and noise floors are those of the nightly batch.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from measured import table

from metrics import AGGREGATIONS
from metrics.weights import exposure_at
from pipeline.scores.evidence.chance import drawn
from pipeline.scores.evidence.comparisons import GroupResamples, ends_of, paired
from pipeline.scores.evidence.noise_floor import inflated
from pipeline.scores.evidence.randomness import normal_draws, poisson_weights
from pipeline.scores.evidence.resampling import cluster_variance, effective_queries, exact_product
from schemas.counts import BUCKETS

Array = Any
Lengths = Callable[[np.random.Generator, int], Array]
WAYS = {way.name: way for way in AGGREGATIONS}
RATIO, GAP = WAYS["MinMaxRatio"], WAYS["MaxMinDiff"]
LONGEST = 2000
MIN_EFFECTIVE = 15
"""Half of the default of evidence.min_queries."""


def usual_lengths(rng: np.random.Generator, lists: int) -> Array:
    return rng.integers(10, 21, lists)


def pareto(shape: float) -> Lengths:
    """Lengths from 5 on with a heavy tail, cut at LONGEST."""
    return lambda rng, lists: np.minimum(5 * (1 + rng.pareto(shape, lists)), LONGEST).astype(int)


def equal_shares(groups: int) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, lists: rng.dirichlet([3.0] * groups, lists)


def minority(share: float) -> Callable[[np.random.Generator, int], Array]:
    def mix(rng: np.random.Generator, lists: int) -> Array:
        small = rng.beta(10 * share, 10 * (1 - share), lists)
        return np.stack([1 - small, small], axis=1)

    return mix


@dataclass(frozen=True)
class World:
    """``behind`` is what each group's items are favoured by, in standard deviations of noise."""

    behind: Sequence[float]
    lengths: Lengths = usual_lengths
    mix: Callable[[np.random.Generator, int], Array] | None = None
    times: int = 1
    queries: int = 100


@dataclass(frozen=True)
class Night:
    """What the queries of a night add up to, shapes (queries, groups).

    ``due`` is the exposure that random orders would give, ``covariance`` what they would vary by.
    """

    exposure: Array
    rows: Array
    due: Array
    covariance: Array

    @property
    def values(self) -> Array:
        return self.exposure.sum(axis=0) / self.rows.sum(axis=0)


def night(rng: np.random.Generator, world: World, queries: int, *, alike: float = 0.9) -> Night:
    """A list for each query, or ``times`` of them that share ``alike`` of their noise."""
    behind = np.asarray(world.behind)
    groups = len(behind)
    length = world.lengths(rng, queries)
    query = np.repeat(np.arange(queries), length)
    first = np.cumsum(length) - length
    mix = (world.mix or equal_shares(groups))(rng, queries)
    group = (rng.random(len(query))[:, None] > np.cumsum(mix, axis=1)[query, :-1]).sum(axis=1)
    cell, weights = query * groups + group, exposure_at(np.arange(1, LONGEST + 1))

    def summed(values: Array) -> Array:
        return np.bincount(cell, values, queries * groups).reshape(queries, groups)

    own = summed(np.ones(len(query)))
    mean = (np.cumsum(weights) / np.arange(1, LONGEST + 1))[length - 1]
    square = (np.cumsum(weights**2) / np.arange(1, LONGEST + 1))[length - 1]
    spread = (square - mean**2) * length / np.maximum(length - 1, 1)
    shared = np.einsum("qg,qh,q->gh", own, own, spread / length)
    covariance = np.diag(own.T @ spread) - shared
    noise, exposure = rng.normal(size=len(query)), np.zeros((queries, groups))
    for _ in range(world.times):
        score = behind[group] + noise
        if world.times > 1:
            fresh = rng.normal(size=len(query))
            score = behind[group] + np.sqrt(alike) * noise + np.sqrt(1 - alike) * fresh
        order = np.lexsort((-score, query))
        rank = np.empty(len(query), dtype=np.int64)
        rank[order] = np.arange(len(query)) - first[query]
        exposure += summed(weights[rank])
    times = world.times
    return Night(exposure, own * times, own * mean[:, None] * times, covariance * times)


@dataclass(frozen=True)
class Seen:
    """A night as the batch sees it: its groups, resampled, and the p-value of its noise floor."""

    groups: GroupResamples
    p_noise: float


def seen(rng: np.random.Generator, made: Night) -> Seen:
    bucket = rng.integers(0, BUCKETS, len(made.rows))
    sums = np.zeros((BUCKETS, 3 * made.rows.shape[1]))
    np.add.at(sums, bucket, np.hstack([made.exposure, made.rows, made.due]))
    sums = sums[np.unique(bucket)]
    exposure, rows, due = np.split(sums, 3, axis=1)
    weights = poisson_weights(1, 1000, BUCKETS)[:, np.unique(bucket)]
    product = exact_product(weights, sums)
    size = made.rows.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        resampled = product[:, :size] / product[:, size : 2 * size]
    groups = GroupResamples(made.values, resampled, effective_queries(rows))
    covariance = inflated(made.covariance, cluster_variance(exposure, due))
    draws = drawn(made.due.sum(axis=0), covariance, normal_draws(1, 2000, size))
    by_chance = RATIO.of(draws / made.rows.sum(axis=0))
    p_noise = (np.sum(by_chance <= RATIO.of(made.values)) + 1) / (len(draws) + 1)
    return Seen(groups, float(p_noise))


def truth(world: World, seed: int, queries: int) -> Array:
    """Values on very many queries; groups that are treated alike have one."""
    single = World(world.behind, world.lengths, world.mix)
    values = night(np.random.default_rng(seed), single, queries).values
    behind = np.asarray(world.behind)
    # Groups of different sizes differ in nothing else either where all shares are equal.
    if world.mix is None:
        for level in np.unique(behind):
            values[behind == level] = values[behind == level].mean()
    return values


WORLDS: dict[str, World] = {
    "2 groups, clearly different": World((0.0, -0.6)),
    "2 groups, nearly equal": World((0.0, -0.05)),
    "5 groups, one behind": World((0.0,) * 4 + (-0.6,)),
    "5 groups, evenly spread": World(tuple(np.linspace(0.0, -0.8, 5))),
    "10 groups, one behind": World((0.0,) * 9 + (-0.6,)),
    "10 groups, evenly spread": World(tuple(np.linspace(0.0, -0.8, 10))),
    "a minority of 2 %": World((0.0, -0.4), mix=minority(0.02), queries=500),
    "Pareto lengths, 2": World((0.0, -0.4), pareto(2.0)),
    "Pareto lengths, 1.5": World((0.0, -0.4), pareto(1.5)),
    "Pareto lengths, 1.1": World((0.0, -0.4), pareto(1.1)),
    "10 similar lists a query": World((0.0, -0.4), times=10),
}


def share(hits: Sequence[bool]) -> str:
    """A share, and the Monte Carlo error of it."""
    if not hits:
        return "none"
    mean = float(np.mean(hits))
    return f"{mean:.1%} ± {np.sqrt(mean * (1 - mean) / len(hits)):.1%}"


def extremes(days: int, large: int, seed: int) -> str:
    """Where the true score lies, on nights on which a verdict is given."""
    rows = []
    for name, world in WORLDS.items():
        true = truth(world, seed, large)
        low, high = int(np.argmin(true)), int(np.argmax(true))
        inside: dict[str, list[bool]] = {"ratio": [], "gap": [], "unfair": []}
        widths, enough = [], []
        for day in range(days):
            rng = np.random.default_rng([seed, day])
            groups = seen(rng, night(rng, world, world.queries)).groups
            enough.append(groups.fewest >= MIN_EFFECTIVE)
            if not enough[-1]:
                continue
            ends = ends_of(RATIO, groups, 0.95)
            inside["ratio"].append(ends[0] <= RATIO.of(true) <= ends[1])
            inside["unfair"].append(ends[1] < RATIO.of(true))
            gap = ends_of(GAP, groups, 0.95)
            inside["gap"].append(gap[0] <= GAP.of(true) <= gap[1])
            one, other = [low], [high]
            own = paired(
                groups.value[one],
                groups.value[other],
                (groups.resampled[:, one], groups.resampled[:, other]),
                np.minimum(groups.queries[one], groups.queries[other]),
                0.95,
            )
            widths.append((gap[1] - gap[0]) / (own.upper - own.lower)[0])
        cells = [share(inside[kind]) for kind in ("ratio", "gap", "unfair")]
        rows.append(
            [name, f"{np.mean(enough):.1%}", *cells, f"{np.median(widths or [np.nan]):.2f}"]
        )
    heads = ["world", "verdicts", "ratio held", "difference held", "false breach", "width"]
    return table(heads, rows)


def found_gaps(days: int, large: int, seed: int) -> str:
    """How often a gap of so many standard errors of one pair is found, of groups all else alike."""
    rows = []
    for count, errors in ((2, 3.0), (5, 3.75), (10, 4.25)):
        equal, one = (World((0.0,) * (count - 1) + (low,)) for low in (0.0, -0.1))
        fair, apart = (truth(world, seed, large) for world in (equal, one))
        values = [
            night(np.random.default_rng([seed, day]), equal, 300).values for day in range(days)
        ]
        error = np.std([each[0] - each[-1] for each in values])
        # The gap grows with how far a group is behind, in proportion while it is small.
        behind = -0.1 * errors * error / (GAP.of(apart) - GAP.of(fair))
        world, hits = World((0.0,) * (count - 1) + (behind,)), []
        for day in range(days):
            rng = np.random.default_rng([seed, 1, day])
            groups = seen(rng, night(rng, world, 300)).groups
            hits.append(ends_of(GAP, groups, 0.95)[0] > 0.0)
        rows.append([str(count), f"{errors:g}", share(hits)])
    return table(["groups", "standard errors", "found"], rows)


FAIR: dict[str, World] = {
    "2 groups": World((0.0, 0.0)),
    "5 groups": World((0.0,) * 5),
    "10 groups": World((0.0,) * 10),
    "a minority of 2 %": World((0.0, 0.0), mix=minority(0.02), queries=500),
    "Pareto lengths, 1.5": World((0.0, 0.0), pareto(1.5)),
    "60 queries, 10 similar lists each": World((0.0, 0.0), times=10, queries=60),
    "60 queries, 10 equal lists each": World((0.0, 0.0), times=10, queries=60),
}


def fair_nights(days: int, seed: int) -> str:
    """Rankers that know no group: how often noise is unlikely, and how often there is a breach."""
    rows = []
    for name, world in FAIR.items():
        low, breach = [], []
        for day in range(days):
            rng = np.random.default_rng([seed, day])
            made = night(rng, world, world.queries, alike=1.0 if "equal" in name else 0.9)
            found = seen(rng, made)
            low.append(found.p_noise < 0.05)
            upper = ends_of(RATIO, found.groups, 0.95)[1]
            enough = found.groups.fewest >= MIN_EFFECTIVE
            breach.append(bool(enough and low[-1] and upper < 0.8))
        rows.append([name, share(low), share(breach)])
    return table(["fair ranker", "p_noise below 5 %", "breach of 0.8"], rows)


def tables(quick: bool, days: int, seed: int) -> Iterator[tuple[str, str]]:
    """The measured tables, each with the name of its markers."""
    large = 2_000 if quick else 100_000
    yield "extremes", extremes(days, large, seed)
    yield "gaps found", found_gaps(days, large, seed)
    yield "fair nights", fair_nights(days, seed)
