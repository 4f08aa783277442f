"""From resampled scores to intervals.  Not here: resampling (``resampling``)."""

import numpy as np

from metrics.distributions import normal_cdf, normal_quantile, student_quantile
from metrics.weights import FloatArray

LEAST_DEFINED = 0.95
"""Share of resamples in which a score must exist for it to have an interval: with fewer,
the ends would speak of those resamples only in which it happens to exist."""
LEAST_QUERIES = 2.0
"""One query says nothing of others."""


def intervals(
    resampled: FloatArray, value: FloatArray, queries: int | FloatArray, confidence: float
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends, shape (scores,); NaN where there is no interval, or no such end.

    ``resampled`` has shape (resamples, scores), ``value`` (scores,); ``queries`` is on how many
    queries of equal weight a score rests, one number or one for each.  The ends are quantiles of
    the resamples, at levels corrected twice: for the median of the resamples, which lies off the
    value where groups are compared by the lowest or highest (Efron 1981, bias-corrected
    percentiles), and for few queries, where percentiles are too narrow by sqrt((n - 1) / n) and by
    what the t distribution has over the normal one (Hesterberg 2015).  The value itself is always
    inside.

    The correction for the median only ever moves an end outwards.  With two groups that are nearly
    equal it would draw in the fair end, by which a difference is missed; with many, the percentile
    alone is too far on the unfair side.
    """
    nothing = np.full(len(value), np.nan)
    if not len(resampled):
        return nothing, nothing.copy()
    enough, queries = np.asarray(queries) >= LEAST_QUERIES, np.maximum(queries, LEAST_QUERIES)
    ordered = np.sort(resampled, axis=0)
    count = len(ordered) - np.isnan(ordered).sum(axis=0)
    usable = (count >= LEAST_DEFINED * len(ordered)) & ~np.isnan(value) & enough
    count = np.maximum(count, 1)
    with np.errstate(invalid="ignore"):
        below = (ordered < value).sum(axis=0) + (ordered == value).sum(axis=0) / 2.0
    bias = normal_quantile(np.clip(below / count, 0.5 / count, 1.0 - 0.5 / count))
    wide = -student_quantile((1.0 - confidence) / 2.0, queries - 1)
    wide = wide * np.sqrt(queries / (queries - 1.0))
    lower = _quantile(ordered, count, normal_cdf(np.minimum(2.0 * bias, 0.0) - wide))
    upper = _quantile(ordered, count, normal_cdf(np.maximum(2.0 * bias, 0.0) + wide))
    lower, upper = np.fmin(lower, value), np.fmax(upper, value)
    # Where an end is infinite, there is none.
    return (
        np.where(usable & np.isfinite(lower), lower, np.nan),
        np.where(usable & np.isfinite(upper), upper, np.nan),
    )


def _quantile(ordered: FloatArray, count: FloatArray, level: FloatArray) -> FloatArray:
    """The quantile of each column's first ``count`` numbers, between order statistics."""
    place = np.clip(level * (count + 1.0) - 1.0, 0.0, count - 1.0)
    under = np.floor(place).astype(np.int64)
    over = np.minimum(under + 1, count - 1)
    columns = np.arange(ordered.shape[1])
    low, high = ordered[under, columns], ordered[over, columns]
    with np.errstate(invalid="ignore"):
        between = low + (high - low) * (place - under)
    # On an order statistic, the next one does not matter, be it infinite.
    found: FloatArray = np.where((low == high) | (place == under), low, between)
    return found
