"""Where a series changed level, seen from today.

Not here: whether tonight is news (``discoveries``).
"""

from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np

from metrics.elementary import log
from pipeline.trends.residuals import FLOOR, FLOOR_SHARE, Floats

_NORMAL_MEDIAN = 0.6745
"""Median of the absolute value of a standard normal."""
_NEAR = 3
_SPIKE = 4.0
"""A value is a spike if it is more than so many standard deviations from the median of itself and
its ``_NEAR`` neighbours on each side.  Up to three spikes in a row are told from a change of level,
of which four values are on one side.  With 4, steps of 1 to 3 are found as often as without."""


@dataclass(frozen=True)
class ChangePoint:
    """A change of level: the row of its first batch, and the means of the segments around it."""

    index: int
    before: float
    after: float


def change_points(
    values: Floats, *, least: int = 7, penalty: float | None = None
) -> list[ChangePoint]:
    """The changes of level of one series, oldest first, as the whole series shows them.

    Takes values of shape (batches,), oldest first; what is not finite is left out, and indices
    count rows of ``values``.  Spikes are left out too: a bad batch, or two or three in a row, would
    make a segment of ``least`` around them another level.

    Segments hold at least ``least`` values.  The division into segments is the one with the least
    sum of squares around segment means, in units of the noise variance,
    plus ``penalty`` for each change, found by PELT.  The noise is the median absolute first
    difference, so that changes do not count as noise.  The default penalty, 3 ln n for n values,
    gives fewer than one in twenty quiet series of 30 values or more a change (docs/trends.md has
    the rates).
    Source: Killick, Fearnhead & Eckley 2012 (PELT); for spikes, Hampel 1974.
    """
    at = np.flatnonzero(np.isfinite(values))
    if len(at) < 2 * least:
        return []
    noise = _noise(values[at])
    at = at[np.abs(values[at] - _medians(values[at])) <= _SPIKE * noise]
    if len(at) < 2 * least:
        return []
    usable_values = values[at]
    # Values are squared, so the level would cost digits.
    scaled = (usable_values - np.median(usable_values)) / noise
    cost = 3.0 * log(len(usable_values)) if penalty is None else penalty
    ends = segment_ends(scaled, least, float(cost))
    edges = [0, *ends]
    means = [
        float(np.cumsum(usable_values[low:high])[-1] / (high - low))
        for low, high in pairwise(edges)
    ]
    return [
        ChangePoint(int(at[edge]), before, after)
        for edge, before, after in zip(ends, means, means[1:], strict=False)
    ]


def segment_ends(values: Floats, least: int, penalty: float) -> list[int]:
    """Ends of the best segments of at least ``least`` values, the last one included, by PELT.

    Sums are added in the order of KernelCPD of ruptures, linear kernel, and ties go to the earlier
    start, so that both find the same; its import takes longer than a thousand series of a month.
    """
    count = len(values)
    squares = np.concatenate([[0.0], np.cumsum(values * values)])
    # Of each start: the sum of the products of all pairs of values from it on.
    products = np.zeros(count)
    # Of each end: the cost of the best segments up to it, and where the last of them starts.
    best, starts_at = np.zeros(count + 1), np.zeros(count + 1, dtype=np.int64)
    earliest = 0
    for end in range(1, count + 1):
        newest = values[end - 1]
        onwards = np.cumsum((values[earliest:end] * newest)[::-1])[::-1]
        products[earliest:end] += 2.0 * onwards - newest * newest
        # There is no room for two segments at first.
        later = np.arange(max(earliest + 1, least), end - least + 1)
        starts = np.concatenate([[earliest], later]) if end >= 2 * least else np.array([0])
        within = squares[end] - squares[starts] - products[starts] / (end - starts)
        unpunished = best[starts] + within
        costs = unpunished + penalty
        at = int(np.argmin(costs))
        best[end], starts_at[end] = costs[at], starts[at]
        if end < 2 * least:
            continue
        # A start that is no better without the penalty never will be.
        for start, cost in zip(starts.tolist(), unpunished.tolist(), strict=True):
            if start != earliest or cost < best[end]:
                break
            earliest += least if earliest == 0 else 1
    ends = [count]
    while starts_at[ends[0]]:
        ends.insert(0, int(starts_at[ends[0]]))
    return ends


def _noise(known: Floats) -> float:
    """Standard deviation from one batch to the next, robust against changes of level."""
    steps = np.abs(np.diff(known))
    noise = float(np.median(steps)) / (_NORMAL_MEDIAN * sqrt(2.0))
    return max(noise, FLOOR, FLOOR_SHARE * float(np.max(np.abs(known))))


def _medians(known: Floats) -> Floats:
    """The median of each value and its neighbours; at the ends, of those that there are."""
    padded = np.pad(known, _NEAR, constant_values=np.nan)
    near: Floats = np.nanmedian(np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEAR + 1), 1)
    return near
