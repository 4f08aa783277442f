"""Many versions of one batch at once: what scores are under resampling, or under chance alone.

Here: counts with a leading axis of replicates, and what measures give on them.  Which groups are
compared, and what is defined at all, is a matter of the batch itself; a replicate in which a score
does not exist has NaN there.  Not here: how replicates are drawn (``pipeline.scores.evidence``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from metrics.asked import Total, total_of
from metrics.base import GroupMetric, SingleMetric
from metrics.counts import Counts, RankHistogram
from metrics.evaluate import Evaluation, deciding, way_of
from metrics.reasons import Reason
from metrics.weights import FloatArray, ratio_of


@dataclass(frozen=True)
class Replicates(Counts):
    """Counts of replicates: arrays have shape (replicates, groups) where Counts has (groups,).

    ``lists`` has shape (replicates, 1).  ``ranks`` holds the ranks 1..n, once and without counts;
    what is asked of them stands in ``totals``.  Sums of metrics without groups have shape
    (replicates, 1).
    """

    lists: Any
    totals: Mapping[Total, FloatArray] = field(default_factory=dict)

    def total(self, column: str, weight: FloatArray | None = None) -> FloatArray:
        """Sum over ranks, shape (replicates, groups); KeyError for one that was not made."""
        return self.totals[total_of(column, weight)]

    @property
    def single(self) -> "Replicates":
        """The same, as metrics that are one number want it: ``lists`` of shape (replicates,)."""
        return replace(self, lists=self.lists[:, 0])


def bare_ranks(depth: int) -> RankHistogram:
    """The ranks 1..``depth`` without counts, as Replicates hold them."""
    none = np.zeros(0, dtype=np.int64)
    return RankHistogram(
        group=none,
        rank=np.arange(1, depth + 1),
        rows=none,
        judged=none,
        relevant=none,
        relevance=np.zeros(0),
        click_known=none,
        click=np.zeros(0),
    )


@dataclass(frozen=True)
class Replicated:
    """What a measure gives on replicates.

    ``groups`` has shape (replicates, groups), None for metrics that are one number; ``scores`` one
    array of shape (replicates,) per score of the evaluation, None where the batch has no value.
    ``decided`` are the groups that each score with groups is made of.
    """

    groups: FloatArray | None
    scores: tuple[FloatArray | None, ...]
    decided: tuple[Sequence[int], ...] = ()


def replicated(found: Evaluation, counts: Replicates) -> Replicated:
    """What the measure of ``found``, its evaluation on the batch, gives on replicates of it."""
    measure = found.measure
    with np.errstate(divide="ignore", invalid="ignore"):
        if isinstance(measure.metric, SingleMetric):
            return Replicated(
                None,
                tuple(
                    None if score.value is None else _single(score.name, counts)
                    for score in found.scores
                ),
            )
        groups = group_values(found, counts)
        if groups is None or found.values is None:
            return Replicated(None, (None,) * len(found.scores))
        ways = [way_of(score.name) for score in found.scores]
        decided = tuple(list(deciding(way, found.values, found.compared)) for way in ways)
        scores = tuple(
            None if score.value is None else np.asarray(way.of(groups[:, which]))
            for score, way, which in zip(found.scores, ways, decided, strict=True)
        )
    return Replicated(groups, scores, decided)


def group_values(found: Evaluation, counts: Replicates) -> FloatArray | None:
    """Values of the groups of ``found`` in replicates, shape (replicates, groups); None if none."""
    measure = found.measure
    if measure.uses_lists:
        sums = counts.list_sums.get((measure.label, None))
        return None if sums is None else ratio_of(sums.value, sums.weight)
    if not isinstance(measure.metric, GroupMetric) or measure.metric.value is None:
        return None
    return measure.metric.value.of(counts, measure.given).values


def _single(name: Any, counts: Replicates) -> FloatArray | None:
    measure = name.measure
    if measure.uses_lists:
        reading = name.aggregation.name if name.aggregation else None
        sums = counts.list_sums.get((measure.label, reading))
        return None if sums is None else ratio_of(sums.value[:, 0], sums.weight[:, 0])
    value = measure.metric.value(counts.single, measure.given)
    return None if isinstance(value, Reason) else np.asarray(value)
