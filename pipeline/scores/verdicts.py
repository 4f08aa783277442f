"""Whether a score is acceptable: by its threshold, and by what it rests on.

Not here: batches before it, by which a gate may keep it from being judged (``monitoring``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from metrics import BELOW_ALL, Measure, Score
from metrics.distributions import normal_quantile
from metrics.reasons import Coded
from pipeline.scores.evidence.doubt import Doubt
from pipeline.settings.audit import Settings
from pipeline.settings.sections import Threshold

JUDGED = ("ok", "breach", "insufficient", "composition")
"""Statuses of scores that have a threshold and a value."""
_MOST_TIMES = 1000.0
"""What could be seen, over how far the value is from the threshold: beyond it, a million times as
many lists would be needed, and the number of lists is left out."""
_FOUR_OF_FIVE = float(normal_quantile(0.8))
"""How often a breach should be found that is looked for: the usual power of a test, 80 %."""


class Cause(Coded):
    """Why a verdict is ``insufficient``."""

    FEW_QUERIES = "few_queries", "a compared group is in fewer queries than evidence.min_queries"
    FEW_EFFECTIVE = (
        "few_effective_queries",
        "few queries hold most rows of a compared group: it rests on less than half of min_queries",
    )
    FEW_APPEARANCES = "few_appearances", "a compared group has fewer rows than min_appearances"
    FEW_RELEVANT = "few_relevant", "a compared group has fewer relevant rows than min_relevant"
    NO_INTERVAL = "no_interval", "too many resamples have no such score, so there is no interval"
    INTERVAL = "interval", "beyond the threshold, but the interval is not: it may be within"
    SUPPRESSED = "suppressed", "numbers about too few are not told (privacy.min_cell)"
    NOISE = "noise", "beyond the threshold, but chance alone often gives such a score"
    FEW_DAYS = "too_few_days", "fewer than half of the days of a window have scores"


@dataclass(frozen=True)
class Verdict:
    """``status`` is one of STATUSES; ``reason`` says why it is insufficient.

    ``assured`` says of what is ok whether its whole interval is.  ``detectable`` is the value that
    would be a breach in 4 of 5 batches like this one, and ``times`` how many times as many lists
    would tell the value itself from the threshold as often.
    """

    status: str
    reason: str | None = None
    assured: bool | None = None
    detectable: float | None = None
    times: float | None = None


@dataclass(frozen=True)
class Basis:
    """How much a group's value rests on; ``group`` is empty for a slice as a whole.

    ``effective`` is on how many queries of equal weight it rests, infinite where nobody knows.
    """

    group: str
    lists: int
    queries: int
    appearances: int
    relevant: int
    effective: float = inf


def verdict_on(
    score: Score,
    settings: Settings,
    attribute: str | None,
    slice_name: str,
    doubt: Doubt,
    bases: Sequence[Basis],
    left_out: str | None = None,
) -> Verdict:
    """The verdict on one score of one attribute and slice.

    ``bases`` are those of the groups that the score compares.  ``left_out`` says of which other
    group there is too little: another group makes the lowest no higher and the highest no lower,
    so that a breach is one without it, and nothing is ok.  not_judged where no threshold holds,
    undefined without a value, except where no number would be low enough for a limit from below.  A
    breach must be beyond the threshold with its whole interval, and beyond what chance alone gives;
    a score that is beyond it, but whose interval is not, is insufficient and never ok.  A value on
    the threshold is acceptable.
    """
    threshold = settings.thresholds.get(score.name.label)
    if threshold is None or not holds(threshold, attribute, slice_name):
        return Verdict("not_judged")
    shut_out = (score.reason or "").split(":")[0] in BELOW_ALL and threshold.min is not None
    if score.value is None and not shut_out:
        return Verdict("undefined")
    few = few_of(too_little(score.name.measure, settings, bases))
    if few:
        return Verdict("insufficient", few)
    verdict = _judged(score, settings, doubt, threshold, shut_out, left_out)
    if verdict.status not in ("ok", "insufficient") or shut_out:
        return verdict
    verdict = replace(verdict, **_power(score, settings, doubt, threshold, verdict.status))
    # More lists like these settle nothing where it is another group that lacks them.
    return replace(verdict, times=None) if left_out else verdict


def _judged(
    score: Score,
    settings: Settings,
    doubt: Doubt,
    threshold: Threshold,
    shut_out: bool,
    left_out: str | None,
) -> Verdict:
    """The verdict on a score of groups with enough evidence."""
    if not shut_out and not beyond(threshold, score.value):
        return Verdict("insufficient", left_out) if left_out else Verdict("ok")
    by_interval = settings.evidence.decide_by == "interval" and settings.evidence.resamples > 0
    if by_interval and not shut_out:
        end = doubt.lower if threshold.min is None else doubt.upper
        if end is None:
            return Verdict("insufficient", Cause.NO_INTERVAL)
        if not beyond(threshold, end):
            return Verdict("insufficient", Cause.INTERVAL)
    excused = _composition(score, doubt, threshold, by_interval=by_interval)
    if excused is not None:
        return excused
    if by_interval and _may_be_noise(score, settings, doubt):
        return Verdict("insufficient", Cause.NOISE)
    return Verdict("breach")


def _composition(
    score: Score, doubt: Doubt, threshold: Threshold, *, by_interval: bool
) -> Verdict | None:
    """The verdict where lists in random order would be beyond the threshold too; None for breach.

    Groups then differ in what lists they are in, or in what a metric divides by, and the order of
    the lists is not what is unfair, unless it is against chance as well.  Metrics that divide by
    relevance ask whether exposure follows it: where groups differ there, no order is an excuse.
    """
    against, measure = doubt.against_chance, score.name.measure
    if against is None or not beyond(threshold, against.settled):
        return None
    if "relevance" in measure.columns and not measure.uses_lists:
        return None
    if not beyond(threshold, against.value):
        return Verdict("composition")
    end = against.lower if threshold.min is None else against.upper
    if not by_interval or beyond(threshold, end):
        return None
    return Verdict("insufficient", Cause.NO_INTERVAL if end is None else Cause.INTERVAL)


def _power(
    score: Score, settings: Settings, doubt: Doubt, threshold: Threshold, status: str
) -> dict[str, Any]:
    """How sure an ``ok`` is, and what would have been seen: see Verdict.

    An interval reaches as far as a breach must be beyond the threshold to be one in half of all
    batches.  Ends stop where values can go no further, so the longer side is taken.
    """
    value, lower, upper = score.value, doubt.lower, doubt.upper
    if value is None or lower is None or upper is None:
        return {}
    reach = -float(normal_quantile((1.0 - settings.evidence.confidence) / 2.0))
    seen = max(value - lower, upper - value) * (1.0 + _FOUR_OF_FIVE / reach)
    found: dict[str, Any] = {}
    if status == "ok":
        found["assured"] = not (beyond(threshold, lower) or beyond(threshold, upper))
    near, limits = inf, []
    if threshold.min is not None:
        near, limits = abs(value - threshold.min), [threshold.min - seen]
    if threshold.max is not None and abs(value - threshold.max) < near:
        near, limits = abs(value - threshold.max), [threshold.max + seen]
    if limits[0] in score.name.range:
        found["detectable"] = limits[0]
    if seen < near * _MOST_TIMES:
        found["times"] = (seen / near) * (seen / near)
    return found


def _may_be_noise(score: Score, settings: Settings, doubt: Doubt) -> bool:
    """Whether chance alone gives such a score too often.

    Chance moves what is shown; it cannot show what an expected group lacks.
    """
    if doubt.p_noise is None or score.name.measure.expects is not None:
        return False
    return doubt.p_noise > 1.0 - settings.evidence.confidence


def too_little(
    measure: Measure, settings: Settings, bases: Iterable[Basis]
) -> dict[str, tuple[Cause, float]]:
    """Groups that rest on too little for a verdict: of what, and how much there is of it."""
    evidence = settings.evidence
    least = {
        Cause.FEW_QUERIES: ("queries", evidence.min_queries),
        # Queries differ in length, so that any of them rest on fewer of equal weight.
        Cause.FEW_EFFECTIVE: ("effective", evidence.min_queries / 2),
        Cause.FEW_APPEARANCES: ("appearances", evidence.min_appearances),
    }
    if "relevance" in measure.columns:
        least[Cause.FEW_RELEVANT] = ("relevant", evidence.min_relevant)
    found: dict[str, tuple[Cause, float]] = {}
    for basis in bases:
        for cause, (name, needed) in least.items():
            if getattr(basis, name) < needed:
                found[basis.group] = cause, getattr(basis, name)
                break
    return found


def few_of(thin: Mapping[str, tuple[Cause, float]]) -> str | None:
    """Of what, and of which group, there is least: a status_reason; None for no group."""
    if not thin:
        return None
    order = list(Cause)
    group, (cause, _) = min(thin.items(), key=lambda each: (order.index(each[1][0]), each[1][1]))
    return f"{cause}: {group}" if group else str(cause)


def beyond(threshold: Threshold, value: float | None) -> bool:
    """Whether a value is on the unfair side of a threshold; no value is not."""
    if value is None:
        return False
    low = threshold.min is not None and value < threshold.min
    return low or (threshold.max is not None and value > threshold.max)


def holds(threshold: Threshold, attribute: str | None, slice_name: str) -> bool:
    """Whether a threshold is about an attribute (None for metrics without groups) in a slice."""
    here = threshold.attributes is None or attribute in threshold.attributes
    return here and (threshold.slices is None or slice_name in threshold.slices)
