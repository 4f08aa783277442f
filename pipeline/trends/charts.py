"""Control charts on residuals: one batch far out, and small shifts that last.

Residuals are standard normal where nothing changed; charts rise with positive ones.  The Shewhart
chart is the residual itself; the EWMA and the CUSUM remember.

Not here: what was expected (``residuals``), how batches follow each other (``autocorrelation``),
and the laws of the charts (``run_lengths``).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metrics.distributions import normal_cdf
from pipeline.trends.run_lengths import cusum_tail

Floats = NDArray[np.float64]
CHARTS = ("shewhart", "ewma", "cusum")

CAP = 4.0
"""Largest residual that enters the EWMA and the CUSUM.  One outlier night alone moves neither to
its limit, while nights of a shift do so as soon as they would without it."""


@dataclass(frozen=True)
class Charts:
    """Where the charts stand after each tested batch; arrays of shape (tested, series).

    ``ewma`` is in its own standard deviations, ``cusum`` in those of residuals over many batches;
    both NaN where the tested batch has no residual.  ``since`` is the row in which the present run
    of the CUSUM began, the batch after it was last 0, and the tested row where it is 0.
    """

    ewma: Floats
    cusum: Floats
    since: NDArray[np.int64]


def charts(
    residual: Floats,
    eligible: NDArray[np.bool_],
    *,
    smoothing: float,
    drift: float,
    window: int,
    tested: int | None = None,
    autocorrelation: Floats | None = None,
) -> Charts:
    """The charts of the last ``tested`` rows (all by default), each over its last ``window`` rows.

    Takes residuals and whether each may enter the charts of later batches, of shape (batches,
    series), and the ``autocorrelation`` of each tested batch, of shape (tested, series), by default
    0.  A row without residual, or that is not eligible, is passed over as if it had not been; the
    tested row itself always counts.  Residuals count up to ``CAP``.

    EWMA: E = (1 - smoothing) E + smoothing z, divided by its standard deviation, which grows with
    the number of residuals and with their autocorrelation.  CUSUM: C = max(0, C + z / f - drift),
    where f = sqrt((1 + r) / (1 - r)) is how many times as far the sum of values of autocorrelation
    r gets as that of independent ones.
    Source: Roberts 1959; Page 1954; for the variance, Lucas & Saccucci 1990; for autocorrelation,
    Schmid 1997 and Johnson & Bagshaw 1974.
    """
    rows = len(residual) if tested is None else min(tested, len(residual))
    first, shape = len(residual) - rows, (rows, residual.shape[1])
    repeats = np.zeros(shape) if autocorrelation is None else autocorrelation
    further = np.sqrt((1.0 + repeats) / (1.0 - repeats))
    padding = ((window - 1, 0), (0, 0))
    has_residual = ~np.isnan(residual)
    serving = np.pad(eligible & has_residual, padding)
    filled = np.pad(np.where(has_residual, np.clip(residual, -CAP, CAP), 0.0), padding)
    ewma, variance, cusum = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    shared = np.zeros(shape)
    since = np.full(shape, -1)
    weight_of_past = 1.0 - smoothing
    for lag in range(window - 1, -1, -1):
        lagged = slice(first + window - 1 - lag, first + window - 1 - lag + rows)
        enters = serving[lagged] if lag else has_residual[first:]
        z = filled[lagged]
        row = np.arange(first - lag, first - lag + rows)[:, None]
        since = np.where(enters & (cusum == 0), row, since)
        ewma = np.where(enters, weight_of_past * ewma + smoothing * z, ewma)
        # What the next value shares with the average so far.
        shared = np.where(enters, repeats * shared, shared)
        grown = (weight_of_past * weight_of_past) * variance + (smoothing * smoothing)
        grown += 2.0 * weight_of_past * smoothing * shared
        variance = np.where(enters, grown, variance)
        shared = np.where(enters, weight_of_past * shared + smoothing, shared)
        cusum = np.where(enters, np.maximum(0.0, cusum + z / further - drift), cusum)
    tested_known = has_residual[first:]
    since = np.where(cusum > 0, since, np.arange(first, first + rows)[:, None])
    return Charts(
        ewma=np.where(tested_known, ewma / np.sqrt(np.where(tested_known, variance, 1.0)), np.nan),
        cusum=np.where(tested_known, cusum, np.nan),
        since=np.where(tested_known, since, -1),
    )


def p_values(residual: Floats, ewma: Floats, cusum: Floats, drift: float) -> Floats:
    """How likely each chart is to stand so high, or higher, where nothing changed.

    Takes arrays of one shape; gives one with the charts in front, in the order of ``CHARTS``.  NaN
    where a chart is NaN.  The CUSUM's is that of one that has run for long.
    """
    return np.stack([normal_cdf(-residual), normal_cdf(-ewma), cusum_tail(cusum, drift)])
