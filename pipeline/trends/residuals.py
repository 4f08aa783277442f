"""Each batch against the batches before it, in standard errors of the prediction.

For each batch and series: a baseline of earlier batches, what it makes us expect, and the distance
of the value from that.  The rows of arrays are batches, oldest first, the columns series.  Sums run
row by row, so that neither the number of series nor later batches can move a bit of a result.

Not here: memory from batch to batch (``charts``), and how much of one batch the next repeats
(``autocorrelation``).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metrics.distributions import normal_quantile, student_cdf

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

FURTHEST = 1e6
"""Standard errors at which stands what is infinitely far from what was expected: a group without
any exposure has no logarithm."""

OUTLIER = 4.5
"""Robust standard deviations beyond which a batch is an outlier of the baseline it is in.

A normal value is that far out once in 150,000 times; with the noise of the spread of 56 batches,
one baseline in 500 loses a value that belongs to it."""
LONG = 0.75
"""Share of the window before what is held back that is enough to hold it back."""
RARE = 0.1
"""Largest share of a baseline that can be outliers: what comes more often, such as weekends, is
usual."""

FLOOR = 1e-12
FLOOR_SHARE = 1e-9
"""Smallest standard deviation, alone and as a share of the mean: a score that never moves must not
alarm when another summation order moves its last bits."""

NORMAL_MEDIAN = 0.6744897501960817
"""Median of the absolute value of a standard normal."""
_LARGEST = 37.0
"""Largest normal deviate: beyond it the probability is no number."""
_WEEK = 7  # days
_NO_DATE = 7
"""The bin beside the seven weekdays: of batches whose key is no date."""
_BLOCK = 4_000_000
"""Deviations that are held at once: 32 MB."""


@dataclass(frozen=True)
class Expectation:
    """What baselines make us expect; arrays of shape (batches, series).

    ``center`` is the predicted value, ``spread`` the standard error of the prediction with
    ``freedom`` degrees of freedom, both NaN where the baseline is too small; ``baseline`` counts
    its batches, outliers left out, and ``weekday`` says whether the prediction is that of the
    batch's day of the week.
    """

    center: Floats
    spread: Floats
    freedom: Integers
    baseline: Integers
    weekday: Flags


@dataclass(frozen=True)
class Residuals(Expectation):
    """An expectation, and how far each value is from it.

    ``distance`` is in standard errors, ``residual`` the normal deviate of the same probability.
    Both are positive where the value is higher than expected, and NaN where there is no value or no
    expectation.
    """

    distance: Floats
    residual: Floats


def standardised(
    values: Floats,
    eligible: Flags,
    weekdays: Integers | None,
    *,
    window: int,
    least: int,
    weeks: int,
    hold: int = 0,
    tested: int | None = None,
) -> Residuals:
    """Each value against its baseline: the eligible ones among the ``window`` batches before it.

    The newest ``hold`` batches before it are in no baseline, and the window lies before them, once
    it holds ``least`` and the share ``LONG`` there: what has just begun is not yet usual.

    Takes values (NaN where there is none) and whether each may serve as baseline, of shape
    (batches, series), oldest first; and the weekday of each batch, 0 to 6, or -1 where its key is
    no date, of shape (batches,), or None.  The last ``tested`` batches are tested, by default all
    of them, and make up the rows of the result.  Fewer than ``least`` that may serve give NaN.

    An infinite value is at ``FURTHEST``, and in no baseline.  Nor are outliers: values more than
    ``OUTLIER`` robust standard deviations from the mean of their baseline, the median of these
    deviations being what is usual, unless they are several and more than the share ``RARE`` of it.

    The distance u = (x - mean) / (s sqrt(1 + 1/m)) has Student's law with m - 1 degrees of freedom
    where values are independent and normal.  The residual is the normal deviate of the same
    probability: exactly standard normal, and independent but for terms of order 1/window, so that
    charts on residuals have known run lengths though mean and variance are not known.
    A baseline that never moves has the smallest standard deviation (``FLOOR``, ``FLOOR_SHARE``):
    the same value is at 0, another one as far out as can be.

    Once the baseline holds every weekday ``weeks`` times, x is compared with the mean of its own
    weekday, s is pooled within weekdays (each costs a degree of freedom), and the 1/m under the
    root counts the batches of the weekday.
    Source: Quesenberry 1991, Q statistics; the prediction interval of a normal sample; for
    outliers, Hampel 1985 (skipped means).

    >>> nights = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> all_of_them = np.ones((4, 1), dtype=bool)
    >>> found = standardised(nights, all_of_them, None, window=3, least=3, weeks=4)
    >>> found.center[3], found.spread[3]                    # 2, and 1 x sqrt(1 + 1/3)
    (array([2.]), array([1.15470054]))
    """
    rows = len(values) if tested is None else min(tested, len(values))
    shape = (rows, values.shape[1])
    found = Residuals(
        center=np.empty(shape),
        spread=np.empty(shape),
        freedom=np.empty(shape, dtype=np.int64),
        baseline=np.empty(shape, dtype=np.int64),
        weekday=np.empty(shape, dtype=np.bool_),
        distance=np.empty(shape),
        residual=np.empty(shape),
    )
    step = max(1, _BLOCK // max(1, (window + hold) * values.shape[1]))
    for start in range(0, rows, step):
        some = slice(start, min(start + step, rows))
        last = len(values) - rows + some.stop
        first = max(0, len(values) - rows + start - window - hold)
        days = None if weekdays is None else weekdays[first:last]
        count = some.stop - start
        rows_of = slice(first, last)
        expected = _Baselines(values[rows_of], eligible[rows_of], days, window, hold, count)
        said = expected.expectation(least, weeks)
        for name, array in vars(said).items():
            getattr(found, name)[some] = array
        newest = values[last - count : last]
        with np.errstate(invalid="ignore"):
            distance = (newest - said.center) / said.spread
        found.distance[some] = np.clip(distance, -FURTHEST, FURTHEST)
        found.residual[some] = _normal(distance, said.freedom)
    return found


def _normal(distance: Floats, freedom: Integers) -> Floats:
    """Student deviates as normal ones of the same probability.

    The probability is always that of the smaller tail: near 1 it would have no digits left.
    """
    size = np.abs(distance)
    deviate = np.abs(normal_quantile(student_cdf(-size, np.maximum(freedom, 1))))
    signed: Floats = np.copysign(np.minimum(deviate, _LARGEST), distance)
    return signed


class _Baselines:
    """The batches before each of the last ``rows``, and what they say; one row is one batch."""

    def __init__(
        self,
        values: Floats,
        eligible: Flags,
        weekdays: Integers | None,
        window: int,
        hold: int,
        rows: int,
    ) -> None:
        self._window, self._hold = window, hold
        self._rows, self._first = rows, len(values) - rows
        serves = eligible & np.isfinite(values)
        padding = ((window + hold, 0), (0, 0))
        self._serving = np.pad(serves, padding)
        self._filled = np.pad(np.where(serves, values, 0.0), padding)
        self._dated = weekdays is not None
        day = np.zeros(len(values), np.int64) if weekdays is None else weekdays % (_NO_DATE + 1)
        self._bin_of = np.pad(day, (window + hold, 0))
        self._tested_day = day[self._first :]
        self._row = np.arange(rows)
        self._shape = (rows, values.shape[1])

    def _lags(self) -> Iterator[tuple[int, slice]]:
        """Places among the batches before each tested one, oldest first, and their rows."""
        for at in range(self._window + self._hold):
            yield at, slice(self._first + at, self._first + at + self._rows)

    def _held(self, least: int) -> Flags:
        """Which batches are in the baseline of each tested one, shape (places, rows, series)."""
        held = np.stack([self._serving[lagged] for _, lagged in self._lags()])
        if not self._hold:
            return held
        count = held[: self._window].sum(axis=0)
        is_long = count >= max(least, LONG * self._window)
        held[self._window :] &= ~is_long
        held[: self._hold] &= is_long
        return held

    def expectation(self, least: int, weeks: int) -> Expectation:
        """What the tested batches were expected to be."""
        serving = self._held(least)
        held = serving.sum(axis=0)
        means, weekday, _ = self._means(serving, weeks)
        deviations = np.abs(self._deviations(means))
        outlier = serving & (deviations > OUTLIER * _robust(deviations, serving))
        # What is usual may not be left out, whatever its distance.
        outlier &= outlier.sum(axis=0) <= np.maximum(1.0, RARE * held)
        if outlier.any():
            serving = serving & ~outlier
            means, weekday, counts = self._means(serving, weeks)
            deviations = self._deviations(means)
        else:
            means, weekday, counts = self._means(serving, weeks)
        squares = _added(serving * deviations**2)
        baseline = counts.sum(axis=0)
        freedom = baseline - np.where(weekday, (counts > 0).sum(axis=0), 1)
        center = means[self._tested_day, self._row]
        has_baseline = (held >= least) & (freedom >= 1)
        deviation = np.sqrt(squares / np.maximum(freedom, 1))
        deviation = np.maximum(deviation, np.maximum(FLOOR, FLOOR_SHARE * np.abs(center)))
        behind = np.where(weekday, counts[self._tested_day, self._row], baseline)
        spread = deviation * np.sqrt(1.0 + 1.0 / np.maximum(behind, 1))
        return Expectation(
            center=np.where(has_baseline, center, np.nan),
            spread=np.where(has_baseline, spread, np.nan),
            freedom=freedom,
            baseline=baseline,
            weekday=weekday & has_baseline,
        )

    def _means(self, serving: Flags, weeks: int) -> tuple[Floats, Flags, Integers]:
        """Means by bin, whether each batch is compared by weekday, and the batches of each bin."""
        bins = _NO_DATE + 1 if self._dated else 1
        sums = np.zeros((bins, *self._shape))
        counts = np.zeros((bins, *self._shape), dtype=np.int64)
        for at, lagged in self._lags():
            sums[self._bin_of[lagged], self._row] += serving[at] * self._filled[lagged]
            counts[self._bin_of[lagged], self._row] += serving[at]
        overall = _added(sums) / np.maximum(counts.sum(axis=0), 1)
        if not self._dated:
            return overall[None], np.zeros(self._shape, dtype=np.bool_), counts
        has_date = (self._tested_day != _NO_DATE)[:, None]
        weekday = (counts[:_WEEK] >= weeks).all(axis=0) & has_date
        return np.where(weekday, sums / np.maximum(counts, 1), overall), weekday, counts

    def _deviations(self, means: Floats) -> Floats:
        """Each baseline value less its mean, shape (places, rows, series)."""
        return np.stack(
            [
                self._filled[lagged] - means[self._bin_of[lagged], self._row]
                for _, lagged in self._lags()
            ]
        )


def _robust(deviations: Floats, serving: Flags) -> Floats:
    """Standard deviation from the median of deviations; infinite where half of them are 0."""
    held = np.sort(np.where(serving, deviations, np.inf), axis=0)
    count = serving.sum(axis=0)
    low, high = (np.maximum(count - 1, 0) // 2)[None], (count // 2)[None]
    high = np.minimum(high, len(held) - 1)
    middle = (np.take_along_axis(held, low, 0) + np.take_along_axis(held, high, 0))[0] / 2.0
    return np.where(middle > FLOOR, middle / NORMAL_MEDIAN, np.inf)


def _added(parts: Floats) -> Floats:
    """The sum over the first axis, in its order; ``sum`` may take another for another shape."""
    total = np.zeros(parts.shape[1:])
    for part in parts:
        total += part
    return total
