"""Each batch against the batches before it, in standard errors of the prediction.

For each batch and series: a baseline of earlier batches, what it makes us expect, and the distance
of the value from that.  The rows of arrays are batches, oldest first, the columns series.  Sums run
row by row, so that neither the number of series nor later batches can move a bit of a result.

Not here: memory from batch to batch (``charts``).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

CAP = 8.0
"""Largest residual.  A normal value is beyond it once in 10^15 times, so that it decides any family
of series, while one mad batch cannot keep an EWMA or a CUSUM up for months."""

FLOOR = 1e-12
FLOOR_SHARE = 1e-9
"""Smallest standard deviation, alone and as a share of the mean: a score that never moves must not
alarm when another summation order moves its last bits."""

_WEEK = 7  # days
_NO_DATE = 7
"""The bin beside the seven weekdays: of batches whose key is no date."""


@dataclass(frozen=True)
class Expectation:
    """What baselines make us expect; arrays of shape (batches, series).

    ``center`` is the predicted value, ``spread`` the standard error of the prediction with
    ``freedom`` degrees of freedom, both NaN where the baseline is too small; ``baseline`` counts
    its batches, and ``weekday`` says whether the prediction is that of the batch's day of the week.
    """

    center: Floats
    spread: Floats
    freedom: Integers
    baseline: Integers
    weekday: Flags


@dataclass(frozen=True)
class Residuals(Expectation):
    """An expectation, and how far each value is from it in standard normal units.

    ``residual`` is positive where the value is higher than expected, in [-CAP, CAP], and NaN where
    there is no value or no expectation.
    """

    residual: Floats


def standardised(
    values: Floats,
    eligible: Flags,
    weekdays: Integers | None,
    *,
    window: int,
    least: int,
    weeks: int,
    tested: int | None = None,
) -> Residuals:
    """Each value against its baseline: the eligible ones among the ``window`` batches before it.

    Takes values (NaN where there is none) and whether each may serve as baseline, of shape
    (batches, series), oldest first; and the weekday of each batch, 0 to 6, or -1 where its key is
    no date, of shape (batches,), or None.  The last ``tested`` batches are tested, by default all
    of them, and make up the rows of the result.  A baseline of fewer than ``least`` gives NaN.

    An infinite value is at the cap, and in no baseline.

    The distance u = (x - mean) / (s sqrt(1 + 1/m)) has Student's law with m - 1 degrees of freedom
    where values are independent and normal.  The residual is the normal deviate of the same
    probability: exactly standard normal, and independent but for terms of order 1/window, so that
    charts on residuals have known run lengths though mean and variance are not known.
    A baseline that never moves has the smallest standard deviation (``FLOOR``, ``FLOOR_SHARE``):
    the same value is at 0, another one at the cap.

    Once the baseline holds every weekday ``weeks`` times, x is compared with the mean of its own
    weekday, s is pooled within weekdays (each costs a degree of freedom), and the 1/m under the
    root counts the batches of the weekday.
    Source: Quesenberry 1991, Q statistics; the prediction interval of a normal sample.

    >>> nights = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> all_of_them = np.ones((4, 1), dtype=bool)
    >>> found = standardised(nights, all_of_them, None, window=3, least=3, weeks=4)
    >>> found.center[3], found.spread[3]                    # 2, and 1 x sqrt(1 + 1/3)
    (array([2.]), array([1.15470054]))
    """
    rows = len(values) if tested is None else min(tested, len(values))
    expected = _expected(values, eligible, weekdays, window, least, weeks, rows)
    newest = values[len(values) - rows :]
    return Residuals(
        center=expected.center,
        spread=expected.spread,
        freedom=expected.freedom,
        baseline=expected.baseline,
        weekday=expected.weekday,
        residual=_normal((newest - expected.center) / expected.spread, expected.freedom),
    )


def _normal(distance: Floats, freedom: Integers) -> Floats:
    """Student deviates as normal ones of the same probability, capped.

    The probability is always that of the smaller tail: near 1 it would have no digits left.
    """
    size = np.abs(distance)
    deviate = np.abs(ndtri(stdtr(np.maximum(freedom, 1), -size)))
    signed: Floats = np.copysign(np.minimum(deviate, CAP), distance)
    return signed


def _expected(
    values: Floats,
    eligible: Flags,
    weekdays: Integers | None,
    window: int,
    least: int,
    weeks: int,
    rows: int,
) -> Expectation:
    """What the last ``rows`` batches were expected to be."""
    first, series = len(values) - rows, values.shape[1]
    serves = eligible & np.isfinite(values)
    padding = ((window, 0), (0, 0))
    serving = np.pad(serves, padding)
    filled = np.pad(np.where(serves, values, 0.0), padding)
    day = np.zeros(len(values), dtype=np.int64) if weekdays is None else weekdays % (_NO_DATE + 1)
    bin_of = np.pad(day, (window, 0))
    tested_day = day[first:]
    row = np.arange(rows)
    # Oldest first: the row ``lag`` batches before each tested one.
    earlier = [
        slice(first + window - lag, first + window - lag + rows) for lag in range(window, 0, -1)
    ]

    bins = 1 if weekdays is None else _NO_DATE + 1
    sums = np.zeros((bins, rows, series))
    counts = np.zeros((bins, rows, series), dtype=np.int64)
    for lagged in earlier:
        sums[bin_of[lagged], row] += filled[lagged]
        counts[bin_of[lagged], row] += serving[lagged]
    total, baseline = _added(sums), counts.sum(axis=0)
    overall = total / np.maximum(baseline, 1)
    if weekdays is None:
        weekday = np.zeros((rows, series), dtype=np.bool_)
    else:
        weekday = (counts[:_WEEK] >= weeks).all(axis=0) & (tested_day != _NO_DATE)[:, None]
    means = np.where(weekday, sums / np.maximum(counts, 1), overall)

    squares = np.zeros((rows, series))
    for lagged in earlier:
        squares += serving[lagged] * (filled[lagged] - means[bin_of[lagged], row]) ** 2
    freedom = baseline - np.where(weekday, (counts > 0).sum(axis=0), 1)
    center = means[tested_day, row]
    has_baseline = (baseline >= least) & (freedom >= 1)
    deviation = np.sqrt(squares / np.maximum(freedom, 1))
    deviation = np.maximum(deviation, np.maximum(FLOOR, FLOOR_SHARE * np.abs(center)))
    behind = np.where(weekday, counts[tested_day, row], baseline)
    spread = deviation * np.sqrt(1.0 + 1.0 / np.maximum(behind, 1))
    return Expectation(
        center=np.where(has_baseline, center, np.nan),
        spread=np.where(has_baseline, spread, np.nan),
        freedom=freedom,
        baseline=baseline,
        weekday=weekday & has_baseline,
    )


def _added(parts: Floats) -> Floats:
    """The sum over the first axis, in its order; ``sum`` may take another for another shape."""
    total = np.zeros(parts.shape[1:])
    for part in parts:
        total += part
    return total
