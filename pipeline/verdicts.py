"""Whether a score is acceptable, by the thresholds of the settings."""

from collections.abc import Mapping

from metrics import BELOW_ALL, Score
from pipeline.settings import Threshold


def status_of(
    score: Score, thresholds: Mapping[str, Threshold], attribute: str | None, slice_name: str
) -> str:
    """The verdict on one score of one attribute and slice.

    not_judged where no threshold holds, undefined without a value, except where no number would be
    low enough for a limit from below.  A value on the threshold is acceptable.
    """
    threshold = thresholds.get(score.name.label)
    if threshold is None or not _holds(threshold, attribute, slice_name):
        return "not_judged"
    if score.value is None:
        below = (score.reason or "").split(":")[0] in BELOW_ALL
        return "breach" if below and threshold.min is not None else "undefined"
    low = threshold.min is not None and score.value < threshold.min
    high = threshold.max is not None and score.value > threshold.max
    return "breach" if low or high else "ok"


def _holds(threshold: Threshold, attribute: str | None, slice_name: str) -> bool:
    here = threshold.attributes is None or attribute in threshold.attributes
    return here and (threshold.slices is None or slice_name in threshold.slices)
