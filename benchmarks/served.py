"""Lists of a made-up ranker, and how sure scores of them are, without files and databases.

The sums of each bucket are made by numpy; from there on it is the code of the nightly batch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from metrics import (
    Counts,
    Evaluation,
    Grouping,
    ListSums,
    Measure,
    PairCounts,
    PrefixCounts,
    RankHistogram,
    Rankings,
    Replicates,
    asked,
    evaluate,
    replicated,
)
from metrics.fairness.prefixes import SMOOTHED_ZERO, SMOOTHING
from metrics.weights import exposure_at
from pipeline.scores.evidence.doubt import interval_ends
from pipeline.scores.evidence.randomness import poisson_weights
from pipeline.scores.evidence.resampling import effective_queries, exact_product
from schemas.counts import BUCKETS

Array = Any
DEPTH = 20
"""Rows of the longest list."""


@dataclass(frozen=True)
class Served:
    """Ranked lists: arrays have shape (lists, DEPTH), ``group`` is -1 below the end of a list.

    ``query`` says whose list it is, shape (lists,).
    """

    group: Array
    relevance: Array
    query: Array
    names: tuple[str, ...]

    @property
    def lists(self) -> int:
        return len(self.group)

    @property
    def queries(self) -> int:
        return len(np.unique(self.query))

    def again(self, times: int) -> "Served":
        """Every list served several times to its query, unchanged."""
        both = (np.repeat(each, times, axis=0) for each in (self.group, self.relevance, self.query))
        return Served(*both, self.names)

    @cached_property
    def member(self) -> Array:
        """Whether a row is of a group, shape (groups, lists, DEPTH)."""
        return self.group == np.arange(len(self.names))[:, None, None]

    @cached_property
    def length(self) -> Array:
        return (self.group >= 0).sum(axis=1)


def served(
    rng: np.random.Generator,
    lists: int,
    advantage: Sequence[float],
    *,
    rows: tuple[int, int] = (10, DEPTH),
    even: bool = False,
) -> Served:
    """A list for each of many queries, ranked by relevance, what a group is favoured by, and noise.

    ``rows`` are those of the shortest and the longest list.  Queries differ in which groups their
    items are of, unless ``even``.
    """
    groups = len(advantage)
    mix = np.full((lists, groups), 1 / groups)
    if not even:
        mix = rng.dirichlet([3.0] * groups, lists)
    drawn = rng.random((lists, DEPTH, 1))
    group = (drawn > np.cumsum(mix, axis=1)[:, None, :-1]).sum(axis=2)
    relevance = (rng.random((lists, DEPTH)) < 0.4).astype(float)
    score = relevance + np.asarray(advantage)[group] + rng.normal(size=group.shape)
    score[np.arange(DEPTH) >= rng.integers(rows[0], rows[1] + 1, lists)[:, None]] = -np.inf
    order = np.argsort(-score, axis=1, kind="stable")
    ranked = np.take_along_axis(np.where(np.isinf(score), -1, group), order, axis=1)
    names = tuple(f"g{at}" for at in range(groups))
    judged = np.take_along_axis(relevance, order, axis=1)
    return Served(ranked, np.where(ranked < 0, 0.0, judged), np.arange(lists), names)


def buckets(rng: np.random.Generator, numbers: Any) -> Any:
    """A bucket for each number, the same for equal ones, shape of ``numbers``."""
    return rng.integers(0, BUCKETS, int(numbers.max()) + 1)[numbers]


def sums_of(log: Served, measures: Iterable[Measure]) -> dict[Any, Array]:
    """What scores are sums of, list by list, shape (lists, groups) or (lists, 1)."""
    found: dict[Any, Array] = {"lists": np.ones((log.lists, 1))}
    columns = {
        "rows": np.ones(log.group.shape),
        "judged": np.ones(log.group.shape),
        "relevant": log.relevance,
        "relevance": log.relevance,
    }
    for measure in measures:
        if not measure.uses_lists:
            for (column, weight), at in asked(measure, DEPTH).totals.items():
                each = columns[column] * (1.0 if at is None else at)
                found["total", column, weight] = np.einsum("gld,ld->lg", log.member, each)
            continue
        value = measure.list_functions[None](rankings(log), measure.given)
        weight = np.ones(value.value.shape) if value.weight is None else value.weight
        some = ~np.isnan(value.value)
        found["value", measure.label] = np.where(some, value.value, 0.0)
        found["weight", measure.label] = np.where(some, weight, 0.0)
    return found | pairs_of(log) | prefixes_of(log)


def pairs_of(log: Served) -> dict[Any, Array]:
    size = log.member.sum(axis=2)
    below = log.length[:, None] - np.arange(1, DEPTH + 1)
    own = size[:, :, None] - np.cumsum(log.member, axis=2)
    won = np.where(log.member, below - own, 0).sum(axis=2)
    pairs = size * (log.length - size)
    share = np.divide(won, pairs, out=np.zeros(won.shape), where=pairs > 0)
    return {"pair_lists": (pairs > 0).astype(float).T, "pair_share": share.T}


def prefixes_of(log: Served) -> dict[Any, Array]:
    first = np.arange(1, DEPTH + 1)
    inside = first <= log.length[:, None]
    weight = np.where(inside, exposure_at(first), 0.0)
    weight /= weight.sum(axis=1, keepdims=True)
    part = np.cumsum(log.member, axis=2) / first
    smooth = part + SMOOTHING
    entropy = (smooth * np.log(smooth) * weight).sum(axis=2) - SMOOTHED_ZERO
    share = (part * weight).sum(axis=2)
    reference = log.member.sum(axis=2) / log.length
    cross = (share + SMOOTHING) * np.log(reference + SMOOTHING) - SMOOTHED_ZERO
    own = np.where(reference == 1, 0.0, entropy - cross)
    # A group without rows in the list has no part in it.
    return {
        name: np.where(reference > 0, each, 0.0).T
        for name, each in (("entropy", entropy), ("share", share), ("own", own))
    }


def rankings(log: Served) -> Rankings:
    """The same lists as metrics that look at lists want them."""
    inside = log.group >= 0
    starts = np.cumsum(log.length) - log.length
    rank = np.broadcast_to(np.arange(1, DEPTH + 1), inside.shape)[inside]
    none = np.full(len(rank), np.nan)
    return Rankings(
        starts=starts,
        rank=rank,
        relevance=log.relevance[inside],
        relevant=log.relevance[inside] >= 0.5,
        click=none,
        reference_rank=np.zeros(len(rank), dtype=np.int64),
        reference_length=np.zeros(len(starts), dtype=np.int64),
        propensity=none,
        predicted_click=none,
        grouping=Grouping(log.names, log.group[inside], np.ones(len(log.names), dtype=bool)),
    )


def counts_of(log: Served, sums: dict[Any, Array], measures: Iterable[Measure]) -> Counts:
    """Counts of the batch, from which scores are computed."""
    size, ranks = len(log.names), np.arange(1, DEPTH + 1)
    rows = log.member.sum(axis=1)
    relevant = (log.member * log.relevance).sum(axis=1)
    nothing = np.zeros(size * DEPTH)
    whole = {name: each.sum(axis=0) for name, each in sums.items()}
    return Counts(
        lists=log.lists,
        groups=log.names,
        ranks=RankHistogram(
            group=np.repeat(np.arange(size), DEPTH),
            rank=np.tile(ranks, size),
            rows=rows.ravel(),
            judged=rows.ravel(),
            relevant=relevant.ravel().astype(np.int64),
            relevance=relevant.ravel(),
            click_known=nothing.astype(np.int64),
            click=nothing,
        ),
        binary=True,
        pairs=PairCounts(whole["pair_lists"], whole["pair_share"]),
        prefixes=PrefixCounts(whole["entropy"], whole["share"], whole["own"]),
        known_rows={"rows": int(rows.sum()), "relevance": int(rows.sum())},
        list_sums=list_sums(whole, measures),
    )


def list_sums(sums: dict[Any, Array], measures: Iterable[Measure]) -> dict[Any, ListSums]:
    labels = [measure.label for measure in measures if measure.uses_lists]
    return {
        (label, None): ListSums(
            np.zeros(sums["value", label].shape, dtype=np.int64),
            sums["value", label],
            sums["weight", label],
        )
        for label in labels
    }


def replicates_of(
    counts: Counts,
    sums: dict[Any, Array],
    measures: Iterable[Measure],
    bucket: Array,
    resamples: int,
    seed: int,
) -> Replicates:
    """Resamples of the batch; ``bucket`` is that of each list, shape (lists,)."""
    occupied, place = np.unique(bucket, return_inverse=True)
    matrix = np.zeros((len(occupied), sum(each.shape[1] for each in sums.values())))
    np.add.at(matrix, place, np.concatenate(list(sums.values()), axis=1))
    product = exact_product(poisson_weights(seed, resamples, BUCKETS)[:, occupied], matrix)
    edges = np.cumsum([each.shape[1] for each in sums.values()])[:-1]
    drawn = dict(zip(sums, np.split(product, edges, axis=1), strict=True))
    ranks = {name: getattr(counts.ranks, name) for name in RankHistogram.__dataclass_fields__}
    return Replicates(
        lists=drawn["lists"],
        groups=counts.groups,
        ranks=RankHistogram(**(ranks | {"rank": np.arange(1, DEPTH + 1)})),
        binary=counts.binary,
        pairs=PairCounts(drawn["pair_lists"], drawn["pair_share"]),
        prefixes=PrefixCounts(drawn["entropy"], drawn["share"], drawn["own"]),
        known_rows=counts.known_rows,
        totals={key[1:]: each for key, each in drawn.items() if key[0] == "total"},
        list_sums=list_sums(drawn, measures),
    )


def effective(log: Served, bucket: Array) -> Array:
    """On how many queries of equal weight each group rests."""
    _, place = np.unique(bucket, return_inverse=True)
    rows = np.zeros((place.max() + 1, len(log.names)))
    np.add.at(rows, place, log.member.sum(axis=2).T)
    return effective_queries(rows)


@dataclass(frozen=True)
class Measured:
    """An evaluation, and the ends of the intervals of its scores and of its groups' values."""

    evaluation: Evaluation
    scores: tuple[Any, ...]
    groups: tuple[Any, ...]


def measured(
    log: Served,
    measures: Sequence[Measure],
    bucket: Array,
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 1,
) -> list[Measured]:
    """Every measure with its intervals; what is resampled are the buckets of lists."""
    sums = sums_of(log, measures)
    counts = counts_of(log, sums, measures)
    drawn = replicates_of(counts, sums, measures, bucket, resamples, seed)
    queries = effective(log, bucket)
    found = []
    for measure in measures:
        evaluation = evaluate(measure, counts)
        made = replicated(evaluation, drawn)
        ends = interval_ends(evaluation, made, log.queries, confidence, effective=queries)
        found.append(Measured(evaluation, *ends))
    return found


def truth(log: Served, measures: Sequence[Measure]) -> list[Evaluation]:
    """Scores of very many lists: what those of fewer are estimates of."""
    counts = counts_of(log, sums_of(log, measures), measures)
    return [evaluate(measure, counts) for measure in measures]


def exposure_by_chance(log: Served) -> tuple[Array, Array]:
    """Mean and covariance of groups' exposure if every list were in random order."""
    weight = exposure_at(np.arange(1, DEPTH + 1))
    inside = np.where(log.group >= 0, weight, 0.0)
    mean = inside.sum(axis=1) / log.length
    spread = ((inside - mean[:, None]) ** 2 * (log.group >= 0)).sum(axis=1) / (log.length - 1)
    size = log.member.sum(axis=2)
    shared = np.einsum("gl,hl,l->gh", size, size, spread / log.length)
    return size @ mean, np.diag(size @ spread) - shared
