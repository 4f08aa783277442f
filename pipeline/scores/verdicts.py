"""Whether a score is acceptable: by its threshold, and by what it rests on.

Not here: batches before it, by which a gate may keep it from being judged (``monitoring``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from metrics import BELOW_ALL, Score
from metrics.reasons import Coded
from pipeline.scores.evidence.doubt import Doubt
from pipeline.settings.audit import Settings
from pipeline.settings.sections import Threshold


class Cause(Coded):
    """Why a verdict is ``insufficient``."""

    FEW_QUERIES = "few_queries", "a compared group is in fewer queries than evidence.min_queries"
    FEW_APPEARANCES = "few_appearances", "a compared group has fewer rows than min_appearances"
    FEW_RELEVANT = "few_relevant", "a compared group has fewer relevant rows than min_relevant"
    NO_INTERVAL = "no_interval", "too many resamples have no such score, so there is no interval"
    INTERVAL = "interval", "beyond the threshold, but the interval is not: it may be within"
    SUPPRESSED = "suppressed", "numbers about too few are not told (privacy.min_cell)"
    NOISE = "noise", "beyond the threshold, but chance alone often gives such a score"


@dataclass(frozen=True)
class Verdict:
    """``status`` is one of STATUSES; ``reason`` says why it is insufficient."""

    status: str
    reason: str | None = None


@dataclass(frozen=True)
class Basis:
    """How much a group's value rests on; ``group`` is empty for a slice as a whole."""

    group: str
    lists: int
    queries: int
    appearances: int
    relevant: int


def verdict_on(
    score: Score,
    settings: Settings,
    attribute: str | None,
    slice_name: str,
    doubt: Doubt,
    bases: Sequence[Basis],
) -> Verdict:
    """The verdict on one score of one attribute and slice.

    ``bases`` are those of the groups that are compared.  not_judged where no threshold holds,
    undefined without a value, except where no number would be low enough for a limit from below.
    A breach must be beyond the threshold with its whole interval, and beyond what chance alone
    gives; a score that is beyond it, but not for sure, is insufficient and never ok.  A value on
    the threshold is acceptable.
    """
    threshold = settings.thresholds.get(score.name.label)
    if threshold is None or not holds(threshold, attribute, slice_name):
        return Verdict("not_judged")
    shut_out = (score.reason or "").split(":")[0] in BELOW_ALL and threshold.min is not None
    if score.value is None and not shut_out:
        return Verdict("undefined")
    few = _few(score, settings, bases)
    if few is not None:
        return Verdict("insufficient", few)
    if not shut_out and not beyond(threshold, score.value):
        return Verdict("ok")
    if settings.evidence.decide_by == "interval" and settings.evidence.resamples:
        end = doubt.lower if threshold.min is None else doubt.upper
        if not shut_out and end is None:
            return Verdict("insufficient", Cause.NO_INTERVAL)
        if not shut_out and not beyond(threshold, end):
            return Verdict("insufficient", Cause.INTERVAL)
        if _may_be_noise(score, settings, doubt, threshold):
            return Verdict("insufficient", Cause.NOISE)
    return Verdict("breach")


def _may_be_noise(score: Score, settings: Settings, doubt: Doubt, threshold: Threshold) -> bool:
    """Whether chance alone gives such a score too often, on its way to one that is acceptable.

    Chance moves what is shown; it cannot show what an expected group lacks.  And where any number
    of lists in random order would be beyond the threshold too, no noise is to blame.
    """
    if doubt.p_noise is None or score.name.measure.expects is not None:
        return False
    often = doubt.p_noise > 1.0 - settings.evidence.confidence
    return often and not beyond(threshold, doubt.settled)


def _few(score: Score, settings: Settings, bases: Sequence[Basis]) -> str | None:
    """Of what, and of which group, there is too little."""
    said = settings.evidence
    needed = [
        (Cause.FEW_QUERIES, "queries", said.min_queries),
        (Cause.FEW_APPEARANCES, "appearances", said.min_appearances),
    ]
    if "relevance" in score.name.measure.columns:
        needed.append((Cause.FEW_RELEVANT, "relevant", said.min_relevant))
    for cause, name, least in needed:
        fewest = min(bases, key=lambda basis: getattr(basis, name), default=None)
        if fewest is not None and getattr(fewest, name) < least:
            return f"{cause}: {fewest.group}" if fewest.group else str(cause)
    return None


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
