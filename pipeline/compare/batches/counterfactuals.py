"""Counts as plain rows of numbers, so that batches that never were can be put together and scored.

Not here: which batches are put together, and why (``decomposition``).

Counts are additive, and so are such rows: cells times weights, added up in the order of the cells,
are the counts of a batch with another mix of cells.  They need not be whole numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import nan
from typing import Any, cast

import numpy as np

from metrics import (
    UNKNOWN,
    Counts,
    GroupMetric,
    ListSums,
    Measure,
    PairCounts,
    PrefixCounts,
    RankHistogram,
    ScoreName,
    evaluate,
)
from metrics.weights import FloatArray, IntArray

_HISTOGRAM = ("rows", "judged", "relevant", "relevance", "click_known", "click")
_PAIRS = ("lists", "share")
_PREFIXES = ("entropy", "share", "own")
_SUMS = ("lists", "value", "weight")


@dataclass(frozen=True)
class Row:
    """A row of numbers that is 0 but for ``value`` at ``at``; both of shape (entries,)."""

    at: IntArray
    value: FloatArray

    def times(self, factor: float) -> "Row":
        """The same counts, ``factor`` times."""
        return Row(self.at, self.value * factor)

    def less(self, other: "Row", size: int) -> "Row":
        """What is here less ``other``, of rows of ``size`` numbers, without what cancels out."""
        whole = np.zeros(size)
        whole[self.at] = self.value
        whole[other.at] -= other.value
        at = np.flatnonzero(whole)
        return Row(at, whole[at])


@dataclass(frozen=True)
class Layout:
    """Which number of a row is which count.

    ``groups`` are all that any cell has, in name order.  ``group`` and ``rank`` say where in the
    histogram rows stand, shape (places,), by group, then rank.  ``known`` are log columns, and
    ``sums`` the readings of the measure that have sums over lists, of ``width`` numbers each.
    """

    measure: Measure
    groups: tuple[str, ...]
    group: IntArray
    rank: IntArray
    known: tuple[str, ...]
    sums: tuple[tuple[str, str | None], ...]
    width: int

    @classmethod
    def of(cls, measure: Measure, counts: Sequence[Counts]) -> "Layout":
        """The layout that holds all of ``counts``, as far as ``measure`` looks at them."""
        groups = tuple(sorted({name for each in counts for name in each.groups}))
        code = {name: at for at, name in enumerate(groups)}
        places = [np.stack([_codes(each, code), each.ranks.rank]) for each in counts]
        group, rank = np.unique(np.concatenate(places, axis=1), axis=1)
        keys = {(measure.label, reading) for reading in measure.list_functions}
        return cls(
            measure,
            groups,
            group,
            rank,
            tuple(sorted({name for each in counts for name in each.known_rows})),
            tuple(sorted(keys.intersection(*(each.list_sums for each in counts)), key=str)),
            len(groups) if measure.metric.per_group else 1,
        )

    @cached_property
    def _starts(self) -> list[int]:
        """Where the parts of a row begin, and where it ends.

        Lists, rows with a known value, histogram, pairs, prefixes, sums over lists.
        """
        sizes = (
            1,
            len(self.known),
            len(_HISTOGRAM) * len(self.rank),
            len(_PAIRS) * len(self.groups),
            len(_PREFIXES) * len(self.groups),
            len(_SUMS) * len(self.sums) * self.width,
        )
        return [0, *np.cumsum(sizes).tolist()]

    @property
    def size(self) -> int:
        """Numbers in a row."""
        return self._starts[-1]

    def row(self, counts: Counts) -> Row:
        """``counts`` as a row."""
        state = np.zeros(self.size)
        _, known, histogram, pairs, prefixes, sums, _ = self._starts
        code = {name: at for at, name in enumerate(self.groups)}
        state[0] = counts.lists
        state[known:histogram] = [counts.known_rows.get(name, 0) for name in self.known]
        depth = int(self.rank.max(initial=0)) + 1
        place = np.searchsorted(
            self.group * depth + self.rank, _codes(counts, code) * depth + counts.ranks.rank
        )
        _put(state[histogram:pairs], _HISTOGRAM, counts.ranks, place)
        groups = np.array([code[name] for name in counts.groups], dtype=np.int64)
        if counts.pairs is not None:
            _put(state[pairs:prefixes], _PAIRS, counts.pairs, groups)
        if counts.prefixes is not None:
            _put(state[prefixes:sums], _PREFIXES, counts.prefixes, groups)
        measured_groups = groups if self.measure.metric.per_group else np.zeros(1, dtype=np.int64)
        tables = state[sums:].reshape(len(self.sums), len(_SUMS) * self.width)
        for table, key in zip(tables, self.sums, strict=True):
            _put(table, _SUMS, counts.list_sums[key], measured_groups)
        at = np.flatnonzero(state)
        return Row(at, state[at])

    def counts(self, state: FloatArray, like: Counts) -> Counts:
        """The counts that a row stands for, shape (size,); what is no count is as in ``like``.

        Its groups are those with rows, and those that the measure expects.
        """
        _, known_rows, histogram, pairs, prefixes, sums = (
            state[a:b] for a, b in pairwise(self._starts)
        )
        columns = histogram.reshape(len(_HISTOGRAM), -1)
        rows = np.bincount(self.group, weights=columns[0], minlength=len(self.groups))
        expected = _expected(self.measure, like)
        groups_kept = np.array(
            [n > 0 or name in expected for n, name in zip(rows, self.groups, strict=True)],
            dtype=np.bool_,
        )
        rows_kept = groups_kept[self.group]
        place = np.cumsum(groups_kept) - 1
        measured_groups = (
            groups_kept if self.measure.metric.per_group else np.ones(1, dtype=np.bool_)
        )
        tables = sums.reshape(len(self.sums), len(_SUMS), self.width)[:, :, measured_groups]
        # Nothing that is computed from counts asks them to be whole numbers.
        histogram_columns = cast(Any, columns[:, rows_kept])
        pair_columns = cast(Any, pairs.reshape(len(_PAIRS), -1)[:, groups_kept])
        prefix_columns = prefixes.reshape(len(_PREFIXES), -1)[:, groups_kept]
        return replace(
            like,
            lists=cast(int, float(state[0])),
            groups=tuple(name for name, yes in zip(self.groups, groups_kept, strict=True) if yes),
            ranks=RankHistogram(
                place[self.group[rows_kept]], self.rank[rows_kept], *histogram_columns
            ),
            pairs=PairCounts(*pair_columns) if like.pairs is not None else None,
            prefixes=PrefixCounts(*prefix_columns) if like.prefixes is not None else None,
            items=None,
            known_rows=dict(zip(self.known, known_rows.tolist(), strict=True)),
            list_sums={
                key: ListSums(*cast(Any, table))
                for key, table in zip(self.sums, tables, strict=True)
            },
        )

    def pooled(self, parts: Sequence[Counts], like: Counts) -> Counts | None:
        """What cells hold together; None for none."""
        state = np.zeros(self.size)
        for row in map(self.row, parts):
            state[row.at] += row.value
        return (
            replace(self.counts(state, like), lists=sum(each.lists for each in parts))
            if parts
            else None
        )


def _codes(counts: Counts, code: dict[str, int]) -> IntArray:
    """The group of each entry of the histogram, as ``code`` numbers groups."""
    own = np.array([code[name] for name in counts.groups], dtype=np.int64)
    return own[counts.ranks.group]


def _put(part: FloatArray, names: Sequence[str], source: object, where: IntArray) -> None:
    table = part.reshape(len(names), -1)
    for column, name in zip(table, names, strict=True):
        column[where] = getattr(source, name)


def _expected(measure: Measure, like: Counts) -> set[str]:
    """Groups that count although no row has them."""
    named = {"catalogue": like.catalogue, "target": like.target}.get(measure.expects or "")
    return {name for name in named or () if like.unknown_counts or name != UNKNOWN}


@dataclass(frozen=True)
class Point:
    """A score and the group values behind it; what is undefined is NaN and has a reason."""

    value: float
    reason: str | None
    worst_group: str | None
    groups: dict[str, float]
    reasons: dict[str, str]

    def numbers(self, groups: Sequence[str]) -> FloatArray:
        """The score, then the values of ``groups``, NaN for those that it lacks."""
        return np.array([self.value, *(self.groups.get(name, nan) for name in groups)])


def point(name: ScoreName, counts: Counts, *, top_is_good: bool = True) -> Point:
    """What ``name`` is on ``counts``."""
    evaluated = evaluate(name.measure, counts, top_is_good=top_is_good)
    # A measure that was narrowed to one aggregation has no other.
    own = next(each for each in evaluated.scores if each.name.aggregation == name.aggregation)
    groups: dict[str, float] = {}
    reasons: dict[str, str] = {}
    if evaluated.values is not None:
        groups = dict(zip(evaluated.groups, evaluated.values.values.tolist(), strict=True))
        stated = zip(evaluated.groups, evaluated.values.reasons, strict=True)
        reasons = {group: reason.value for group, reason in stated if reason is not None}
    value = nan if own.value is None else own.value
    return Point(value, own.reason, own.worst_group, groups, reasons)


def narrowed(name: ScoreName) -> ScoreName:
    """The same score of a measure that computes no other: to be evaluated many times."""
    metric = name.measure.metric
    if not isinstance(metric, GroupMetric):
        return name
    ways = tuple(each for each in metric.aggregations if each == name.aggregation)
    return ScoreName(replace(name.measure, metric=replace(metric, aggregations=ways)), *ways)
