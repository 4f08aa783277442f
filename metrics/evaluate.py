"""From counts to scores: group values, aggregations, who gains and who loses."""

from dataclasses import dataclass

import numpy as np

from metrics.base import GroupMetric, Measure, ScoreName, SingleMetric
from metrics.counts import COMPARED, UNKNOWN, Counts
from metrics.reasons import Reason
from metrics.terms import GroupValues
from metrics.weights import FloatArray


@dataclass(frozen=True)
class Score:
    """One number, or the reason why there is none.

    ``reason`` starts with a Reason; where one group is the cause, ``: group`` follows.
    """

    name: ScoreName
    value: float | None
    reason: str | None = None
    worst_group: str | None = None
    best_group: str | None = None


@dataclass(frozen=True)
class Evaluation:
    """All scores of one measure over one slice and attribute, and the group values behind them."""

    measure: Measure
    scores: tuple[Score, ...]
    groups: tuple[str, ...] = ()
    values: GroupValues | None = None


def evaluate(
    measure: Measure,
    counts: Counts,
    *,
    unknown_counts: bool = False,
    top_is_good: bool = True,
) -> Evaluation:
    """Every score of ``measure`` on ``counts``.

    ``unknown_counts`` lets the unknown group take part in aggregations; ``top_is_good`` is False
    where the top of a list is the bad outcome, which swaps best and worst group and nothing else.
    """
    metric = measure.metric
    if isinstance(metric, SingleMetric):
        found = Reason.NO_LISTS if counts.lists == 0 else metric.value(counts, measure.given)
        name = ScoreName(measure, None)
        if isinstance(found, Reason):
            return Evaluation(measure, (Score(name, None, found.value),))
        return Evaluation(measure, (Score(name, float(found)),))
    if not isinstance(metric, GroupMetric):
        raise TypeError(f"{metric.name} is neither a GroupMetric nor a SingleMetric")
    if counts.lists == 0:
        empty = tuple(Score(name, None, Reason.NO_LISTS.value) for name in measure.scores())
        return Evaluation(measure, empty)
    groups = metric.value.of(counts, measure.given)
    takes_part = [unknown_counts or group != UNKNOWN for group in counts.groups]
    return Evaluation(
        measure,
        _aggregated(measure, counts.groups, groups, takes_part, top_is_good=top_is_good),
        counts.groups,
        groups,
    )


def _aggregated(
    measure: Measure,
    names: tuple[str, ...],
    groups: GroupValues,
    takes_part: list[bool],
    *,
    top_is_good: bool,
) -> tuple[Score, ...]:
    compared = [at for at, yes in enumerate(takes_part) if yes]
    scores = tuple(measure.scores())
    if len(compared) < COMPARED:
        return tuple(Score(name, None, Reason.ONE_GROUP.value) for name in scores)
    causes = [(at, groups.reasons[at]) for at in compared if groups.reasons[at] is not None]
    if causes:
        at, cause = causes[0]
        everywhere = len(causes) == len(compared) and len({reason for _, reason in causes}) == 1
        text = str(cause) if everywhere else f"{cause}: {names[at]}"
        return tuple(Score(name, None, text) for name in scores)
    values = groups.values[compared]
    worst, best = _extremes([names[at] for at in compared], values, top_is_good=top_is_good)
    found = []
    for name in scores:
        if name.aggregation is None:
            raise TypeError(f"{name.label} has groups but no aggregation")
        reason = name.aggregation.undefined(values)
        if reason is None:
            found.append(Score(name, float(name.aggregation.of(values)), None, worst, best))
        else:
            found.append(Score(name, None, reason.value, worst, best))
    return tuple(found)


def _extremes(
    names: list[str], values: FloatArray, *, top_is_good: bool
) -> tuple[str | None, str | None]:
    """Worst and best group; neither when all values are equal.  Ties go to the first name."""
    low, high = int(np.argmin(values)), int(np.argmax(values))
    if values[low] == values[high]:
        return None, None
    return (names[low], names[high]) if top_is_good else (names[high], names[low])
