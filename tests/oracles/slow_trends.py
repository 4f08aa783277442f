"""The statistics of series once more: plain loops over one series, with scipy.stats."""

import math
from collections.abc import Sequence
from statistics import fmean

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
) -> tuple[float, float, int, bool, float]:
    """Center, spread, baseline, whether by weekday, and residual of one batch of one series."""
    rows = [
        row
        for row in range(max(0, at - window), at)
        if eligible[row] and not math.isnan(values[row])
    ]
    if len(rows) < least:
        return math.nan, math.nan, len(rows), False, math.nan
    days = [0] * len(values) if weekdays is None else list(weekdays)
    held = [sum(days[row] == day for row in rows) for day in range(7)]
    by_day = weekdays is not None and days[at] >= 0 and min(held) >= weeks
    bins = [[values[row] for row in rows if not by_day or days[row] == day] for day in range(-1, 7)]
    bins = [part for part in bins if part] if by_day else bins[:1]
    own = [values[row] for row in rows if not by_day or days[row] == days[at]]
    squares = sum((value - fmean(part)) ** 2 for part in bins for value in part)
    freedom = len(rows) - len(bins)
    center = fmean(own)
    deviation = max(math.sqrt(squares / freedom), 1e-12, 1e-9 * abs(center))
    spread = deviation * math.sqrt(1 + 1 / len(own))
    distance = (values[at] - center) / spread
    if math.isnan(distance):
        return center, spread, len(rows), by_day, math.nan
    far = min(8.0, float(stats.norm.isf(stats.t.sf(abs(distance), freedom))))
    return center, spread, len(rows), by_day, math.copysign(far, distance)


def charted(
    z: Sequence[float], eligible: Sequence[bool], *, smoothing: float, drift: float, window: int
) -> tuple[float, float, int]:
    """EWMA in its own standard deviations, CUSUM, and since when it runs, after the last batch."""
    last = len(z) - 1
    entering = [
        row
        for row in range(max(0, last - window + 1), last + 1)
        if not math.isnan(z[row]) and (eligible[row] or row == last)
    ]
    weights = [smoothing * (1 - smoothing) ** back for back in range(len(entering))][::-1]
    mean = sum(weight * z[row] for weight, row in zip(weights, entering, strict=True))
    deviation = math.sqrt(sum(weight**2 for weight in weights))
    cusum, since = 0.0, last
    for row in entering:
        since = row if cusum == 0 else since
        cusum = max(0.0, cusum + z[row] - drift)
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
