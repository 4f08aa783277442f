"""From counts to scores: group values, aggregations, who gains and who loses.

Not here: any formula, and whether a score is acceptable (``pipeline.scores.verdicts``).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from metrics.aggregations import Aggregation
from metrics.base import GroupMetric, Measure, ScoreName, SingleMetric
from metrics.counts import COMPARED, Counts
from metrics.reasons import Reason
from metrics.terms import GroupValues, explained, missing
from metrics.weights import FloatArray, IntArray, ratio_of


@dataclass(frozen=True)
class Score:
    """One number, or the reason why there is none.

    ``reason`` starts with a Reason; where one group is the cause, ``: group`` follows.  ``lists``
    have a value of their own that entered the number, None where it is no summary of lists.
    """

    name: ScoreName
    value: float | None
    reason: str | None = None
    worst_group: str | None = None
    best_group: str | None = None
    lists: int | None = None


@dataclass(frozen=True)
class Evaluation:
    """All scores of one measure over one slice and attribute, and the group values behind them.

    ``lists`` are the lists that entered each group's value, None where it is no summary of lists.
    ``compared`` says where the groups that scores aggregate stand among ``groups``.
    """

    measure: Measure
    scores: tuple[Score, ...]
    groups: tuple[str, ...] = ()
    values: GroupValues | None = None
    lists: IntArray | None = None
    compared: tuple[int, ...] = ()


def evaluate(
    measure: Measure,
    counts: Counts,
    *,
    top_is_good: bool = True,
    without: Collection[str] = (),
) -> Evaluation:
    """Every score of ``measure`` on ``counts``.

    ``top_is_good`` is False where the top of a list is the bad outcome, which swaps best and worst
    group and nothing else.  Groups ``without`` which scores are asked for keep their values, and
    enter no aggregation.
    """
    metric = measure.metric
    if counts.lists == 0:
        empty = tuple(Score(name, None, Reason.NO_LISTS.value) for name in measure.scores())
        return Evaluation(measure, empty)
    if isinstance(metric, SingleMetric):
        return Evaluation(
            measure, tuple(_single(name, metric, counts) for name in measure.scores())
        )
    if not isinstance(metric, GroupMetric):
        raise TypeError(f"{metric.name} is neither a GroupMetric nor a SingleMetric")
    lists = None
    if measure.uses_lists:
        groups, lists = _over_lists(measure, counts)
    elif metric.value is not None:
        groups = metric.value.of(counts, measure.given)
    else:
        raise TypeError(f"{measure.label} says neither how counts nor how lists are summed up")
    better_high = metric.higher_is_better == top_is_good
    takes_part = counts.takes_part & [group not in without for group in counts.groups]
    compared = tuple(np.flatnonzero(takes_part).tolist())
    scores = _aggregated(measure, counts, groups, compared, top_is_good=better_high)
    if lists is not None and compared:
        # Of the group that has a value in the fewest lists.
        fewest = int(lists[takes_part].min())
        scores = tuple(replace(score, lists=fewest) for score in scores)
    return Evaluation(
        measure,
        scores,
        counts.groups,
        groups,
        lists,
        compared,
    )


_MISSING = {
    "relevance": Reason.RELEVANCE_MISSING,
    "click": Reason.CLICK_MISSING,
    "reference_rank": Reason.REFERENCE_MISSING,
    "propensity": Reason.PROPENSITY_MISSING,
    "predicted_click": Reason.PREDICTION_MISSING,
}


def _cause(measure: Measure, counts: Counts) -> Reason | None:
    """Why lists cannot have a value of ``measure``, None where they can."""
    rows = counts.known_rows.get("rows", 0)
    for column in sorted(measure.columns):
        known = counts.known_rows.get(column, 0)
        if known == 0 or (known < rows and column not in measure.metric.partial):
            return _MISSING[column]
    reference = measure.given.get("reference")
    if reference == "catalogue" and counts.catalogue is None:
        return Reason.CATALOGUE_MISSING
    if reference == "target" and counts.target is None:
        return Reason.TARGET_MISSING
    return None


def _single(name: ScoreName, metric: SingleMetric, counts: Counts) -> Score:
    """One number: of the counts, or of the lists."""
    if not name.measure.uses_lists:
        if metric.value is None:
            raise TypeError(f"{name.label} says neither how counts nor how lists are summed up")
        found = metric.value(counts, name.measure.given)
        if isinstance(found, Reason):
            return Score(name, None, found.value)
        return Score(name, float(found))
    cause = _cause(name.measure, counts)
    if cause is None and metric.grouped and counts.takes_part.sum() < COMPARED:
        cause = Reason.ONE_GROUP
    if cause is not None:
        return Score(name, None, cause.value)
    reading = name.aggregation.name if name.aggregation else None
    sums = counts.list_sums.get((name.measure.label, reading))
    if sums is None:
        return Score(name, None, Reason.NOT_COUNTED.value)
    lists = None if metric.by_query else int(sums.lists[0])
    if sums.weight[0] == 0:
        return Score(name, None, metric.empty.value, lists=lists)
    return Score(name, float(sums.value[0] / sums.weight[0]), lists=lists)


def _over_lists(measure: Measure, counts: Counts) -> tuple[GroupValues, IntArray | None]:
    """Group values from sums over lists, and the lists that entered each."""
    cause = _cause(measure, counts)
    sums = counts.list_sums.get((measure.label, None))
    if cause is not None or sums is None:
        return missing(len(counts.groups), cause or Reason.NOT_COUNTED), None
    # A total of nothing is not a zero: a group without rows here has no value, unless the measure
    # asks for groups that should be there.
    present = (counts.total("rows") > 0) | (measure.expects is not None)
    empty, undefined = measure.metric.empty, sums.weight == 0
    # A ratio by nothing is another thing than a ratio that no list has.
    never = (sums.lists == 0) & (empty is Reason.NONE_SELECTED)
    found = explained(
        ratio_of(sums.value, sums.weight),
        [
            (~present, Reason.GROUP_ABSENT),
            (undefined & ~counts.takes_part, Reason.NOT_COMPARED),
            (undefined & never, Reason.NOT_ENOUGH_ITEMS),
            (undefined, empty),
        ],
    )
    return found, sums.lists


def _aggregated(
    measure: Measure,
    counts: Counts,
    groups: GroupValues,
    compared: Sequence[int],
    *,
    top_is_good: bool,
) -> tuple[Score, ...]:
    scores = tuple(measure.scores())
    if len(compared) < COMPARED:
        return tuple(Score(name, None, Reason.ONE_GROUP.value) for name in scores)
    return tuple(_one_way(name, counts.groups, groups, compared, top_is_good) for name in scores)


def _one_way(
    name: ScoreName,
    names: tuple[str, ...],
    groups: GroupValues,
    compared: Sequence[int],
    top_is_good: bool,
) -> Score:
    """One aggregation of the groups that are compared."""
    way = way_of(name)
    decided = deciding(way, groups, compared)
    causes = [(at, groups.reasons[at]) for at in decided if groups.reasons[at] is not None]
    if causes:
        at, cause = causes[0]
        everywhere = len(causes) == len(compared) and len({reason for _, reason in causes}) == 1
        return Score(name, None, str(cause) if everywhere else f"{cause}: {names[at]}")
    values = groups.values[list(decided)]
    worst, best = _extremes([names[at] for at in decided], values, top_is_good=top_is_good)
    if len(decided) < len(compared):
        # The best is among those without a value; only the worst is known for sure.
        worst, best = worst or names[decided[0]], None
    reason = way.undefined(values)
    value = float(way.of(values)) if reason is None else None
    return Score(name, value, reason.value if reason else None, worst, best)


def way_of(name: ScoreName) -> Aggregation:
    """How a score with groups aggregates them."""
    if not isinstance(name.aggregation, Aggregation):
        raise TypeError(f"{name.label} has groups but no aggregation")
    return name.aggregation


def deciding(way: Aggregation, groups: GroupValues, compared: Sequence[int]) -> Sequence[int]:
    """The groups among those compared that an aggregation looks at."""
    return [at for at in compared if groups.reasons[at] not in way.passes_over] or compared


def _extremes(
    names: list[str], values: FloatArray, *, top_is_good: bool
) -> tuple[str | None, str | None]:
    """Worst and best group; neither when all values are equal.  Ties go to the first name."""
    low, high = int(np.argmin(values)), int(np.argmax(values))
    if values[low] == values[high]:
        return None, None
    return (names[low], names[high]) if top_is_good else (names[high], names[low])
