"""The statistics of series once more: plain loops over one series, with scipy.stats."""

import math
from collections.abc import Sequence
from statistics import fmean, median

import numpy as np
from scipy import stats


def residual(
    values: Sequence[float],
    eligible: Sequence[bool],
    weekdays: Sequence[int] | None,
    at: int,
    *,
    window: int,
    least: int,
    weeks: int,
    hold: int = 0,
) -> tuple[float, float, int, bool, float]:
    """Center, spread, baseline, whether by weekday, and residual of one batch of one series."""

    def serving(first: int, last: int) -> list[int]:
        span = range(max(0, first), max(0, last))
        return [row for row in span if eligible[row] and not math.isnan(values[row])]

    days = [0] * len(values) if weekdays is None else list(weekdays)

    def is_by_day(rows: Sequence[int]) -> bool:
        held = [sum(days[row] == day for row in rows) for day in range(7)]
        return weekdays is not None and days[at] >= 0 and min(held) >= weeks

    def alike(rows: Sequence[int], day: int) -> list[float]:
        return [values[row] for row in rows if not is_by_day(rows) or days[row] == day]

    rows = serving(at - window, at)
    if hold and len(early := serving(at - window - hold, at - hold)) >= max(least, 0.75 * window):
        rows = early
    held = len(rows)
    if rows:
        off = [abs(values[row] - fmean(alike(rows, days[row]))) for row in rows]
        limit = 4.5 * median(off) / float(stats.norm.ppf(0.75))
        near = [row for row, far in zip(rows, off, strict=True) if far <= limit]
        if len(rows) - len(near) <= max(1, len(rows) / 10) and median(off) > 1e-12:
            rows = near
    if held < least:
        return math.nan, math.nan, len(rows), False, math.nan
    by_day = is_by_day(rows)
    bins = [[values[row] for row in rows if not by_day or days[row] == day] for day in range(-1, 7)]
    bins = [part for part in bins if part] if by_day else bins[:1]
    own = alike(rows, days[at])
    squares = sum((value - fmean(part)) ** 2 for part in bins for value in part)
    freedom = len(rows) - len(bins)
    center = fmean(own)
    deviation = max(math.sqrt(squares / freedom), 1e-12, 1e-9 * abs(center))
    spread = deviation * math.sqrt(1 + 1 / len(own))
    distance = (values[at] - center) / spread
    if math.isnan(distance):
        return center, spread, len(rows), by_day, math.nan
    far = float(stats.norm.isf(stats.t.sf(abs(distance), freedom)))
    return center, spread, len(rows), by_day, math.copysign(far, distance)


def charted(
    z: Sequence[float],
    eligible: Sequence[bool],
    *,
    smoothing: float,
    drift: float,
    window: int,
    repeats: float = 0.0,
) -> tuple[float, float, int]:
    """EWMA in its own standard deviations, CUSUM, and since when it runs, after the last batch."""
    last = len(z) - 1
    entering = [
        row
        for row in range(max(0, last - window + 1), last + 1)
        if not math.isnan(z[row]) and (eligible[row] or row == last)
    ]
    weights = [smoothing * (1 - smoothing) ** back for back in range(len(entering))][::-1]
    z = [min(max(value, -4.0), 4.0) for value in z]
    mean = sum(weight * z[row] for weight, row in zip(weights, entering, strict=True))
    deviation = math.sqrt(
        sum(
            one * other * repeats ** abs(first - second)
            for first, one in enumerate(weights)
            for second, other in enumerate(weights)
        )
    )
    further = math.sqrt((1 + repeats) / (1 - repeats))
    cusum, since = 0.0, last
    for row in entering:
        since = row if cusum == 0 else since
        cusum = max(0.0, cusum + z[row] / further - drift)
    return mean / deviation, cusum, since if cusum > 0 else last


def step_up(p: Sequence[float], scale: float) -> list[float]:
    """Adjusted p-values by their definition: the smallest level at which each is found."""
    tests = len(p)
    return [
        min(
            1.0,
            *(
                scale * tests * other / sum(third <= other for third in p)
                for other in p
                if other >= value
            ),
        )
        for value in p
    ]


def walk_tail(k: float, value: float, *, walks: int, seed: int) -> tuple[float, float]:
    """P(C >= value) of a CUSUM in the long run, and its standard error, by importance sampling.

    The CUSUM's law is that of the highest point of a walk of normal steps with mean -k.  Turned
    round, the walk surely gets there, and exp(-2k height) is how much less likely it was.
    """
    rng = np.random.default_rng(seed)
    height, weight, live = np.zeros(walks), np.zeros(walks), np.ones(walks, dtype=bool)
    while live.any():
        height[live] += rng.normal(k, 1, live.sum())
        there = live & (height >= value)
        weight[there] = np.exp(-2 * k * height[there])
        live &= ~there
    return float(weight.mean()), float(weight.std() / math.sqrt(walks))
