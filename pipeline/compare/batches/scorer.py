"""A score, and the values of its groups, on batches that are or never were, and on their resamples.

Not here: what these batches are made of (``counterfactuals``, ``decomposition``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from metrics import Counts, Evaluation, GroupMetric, ScoreName, evaluate, replicated
from metrics.weights import BoolArray, FloatArray
from pipeline.compare.batches.counterfactuals import Layout


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
    return _point(name, evaluate(name.measure, counts, top_is_good=top_is_good))


def _point(name: ScoreName, evaluated: Evaluation) -> Point:
    own = evaluated.scores[_place(name, evaluated)]
    groups: dict[str, float] = {}
    reasons: dict[str, str] = {}
    if evaluated.values is not None:
        groups = dict(zip(evaluated.groups, evaluated.values.values.tolist(), strict=True))
        stated = zip(evaluated.groups, evaluated.values.reasons, strict=True)
        reasons = {group: reason.value for group, reason in stated if reason is not None}
    value = nan if own.value is None else own.value
    return Point(value, own.reason, own.worst_group, groups, reasons)


def _place(name: ScoreName, evaluated: Evaluation) -> int:
    # A measure that was narrowed to one aggregation has no other.
    ways = [each.name.aggregation for each in evaluated.scores]
    return ways.index(name.aggregation)


def narrowed(name: ScoreName) -> ScoreName:
    """The same score of a measure that computes no other: to be evaluated many times."""
    metric = name.measure.metric
    if not isinstance(metric, GroupMetric):
        return name
    ways = tuple(each for each in metric.aggregations if each == name.aggregation)
    return ScoreName(replace(name.measure, metric=replace(metric, aggregations=ways)), *ways)


class Scorer:
    """A score, and the values of its groups, on rows of one layout.

    Rows are scored twice: first as they are, under a key, then their resamples, under the same key:
    which groups are compared is a matter of the former alone.
    """

    def __init__(
        self, name: ScoreName, layout: Layout, whole: Sequence[Counts], *, top_is_good: bool
    ) -> None:
        self.name, self.layout, self.whole = name, layout, whole
        self.groups = layout.groups if name.measure.metric.per_group else ()
        self._top_is_good = top_is_good
        self._found: dict[object, list[tuple[BoolArray, Evaluation]]] = {}

    def once(self, key: object, rows: FloatArray, side: int) -> FloatArray:
        """Score and group values of rows (states, size), shape (states, 1 + groups)."""
        like, layout = self.whole[side], self.layout
        found = []
        for row in rows:
            present = layout.present(row, like)
            counts = layout.counts(row, like, present)
            found.append(
                (
                    present,
                    evaluate(self.name.measure, counts, top_is_good=self._top_is_good),
                )
            )
        self._found[key] = found
        return np.array([_point(self.name, each).numbers(self.groups) for _, each in found])

    def resampled(self, key: object, rows: FloatArray, side: int) -> FloatArray:
        """The same of resamples (resamples, states, size), (resamples, states, 1 + groups)."""
        resamples = len(rows)
        values = np.full((*rows.shape[:2], 1 + len(self.groups)), np.nan)
        alike: dict[object, list[int]] = {}
        for at, (present, found) in enumerate(self._found[key]):
            alike.setdefault(_shape(present, found), []).append(at)
        for states in alike.values():
            present, found = self._found[key][states[0]]
            flat = rows[:, states].reshape(resamples * len(states), -1)
            counts = self.layout.counts(flat, self.whole[side], present)
            made = replicated(found, counts)
            score = made.scores[_place(self.name, found)]
            if score is not None:
                values[:, states, 0] = score.reshape(resamples, len(states))
            if made.groups is not None and self.groups:
                own = 1 + np.flatnonzero(present)
                shaped = made.groups.reshape(resamples, len(states), len(own))
                values[np.arange(resamples)[:, None, None], np.array(states)[:, None], own] = shaped
        return values


def _shape(present: BoolArray, found: Evaluation) -> object:
    """What decides how resamples of a row are scored."""
    reasons = () if found.values is None else tuple(map(str, found.values.reasons))
    return (
        present.tobytes(),
        found.compared,
        reasons,
        tuple(each.value is None for each in found.scores),
    )
