"""Signed comparisons with intervals that hold all at once, and what extremes of them can be.

An aggregation such as ``min V / max V`` is the largest of many comparisons of two groups, each with
a sign.  Its own resamples know no sign: noise can only ever make groups look further apart.  So the
comparisons are resampled, every one of them gets an interval, wide enough to hold all of them at
once, and the aggregation lies where these intervals say.

Not here: resampling (``resampling``), and percentiles of a single number (``intervals``).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metrics import Aggregation
from metrics.distributions import normal_cdf, normal_quantile, student_quantile
from metrics.weights import BoolArray, FloatArray, IntArray
from pipeline.scores.evidence.intervals import LEAST_DEFINED

_BLOCK = 2_000_000
"""Resampled comparisons that are held at once: 16 MB, whatever the number of groups."""


@dataclass(frozen=True)
class Comparisons:
    """Comparisons and their intervals, all of which hold at once; shapes (comparisons,).

    ``error`` is the standard error.  Where too many resamples lack one, all ends are NaN.
    """

    value: FloatArray
    error: FloatArray
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True)
class _Blocks:
    """Comparisons and their resamples, shape (resamples, some), a block at a time."""

    value: FloatArray
    queries: FloatArray
    resampled: Callable[[slice], FloatArray]
    resamples: int

    def __iter__(self) -> Iterator[tuple[slice, FloatArray]]:
        step = max(1, _BLOCK // max(1, self.resamples))
        for start in range(0, len(self.value), step):
            some = slice(start, start + step)
            yield some, self.resampled(some)


def simultaneous(
    value: FloatArray, resampled: FloatArray, queries: FloatArray, confidence: float
) -> Comparisons:
    """Intervals of some comparisons that hold all of them with probability ``confidence``.

    ``value`` has shape (comparisons,), ``resampled`` (resamples, comparisons); ``queries`` is on
    how many queries of equal weight each rests, shape (comparisons,).  An interval reaches as many
    standard errors to either side as the largest of all deviations does in that share of resamples
    (max-t: Hothorn, Bretz & Westfall 2008), corrected for few queries as percentiles are.  One
    comparison alone has the interval that it would have anyway.
    """
    return _at_once(
        _Blocks(value, queries, lambda some: resampled[:, some], len(resampled)), confidence
    )


def paired(
    first: FloatArray,
    second: FloatArray,
    resampled: tuple[FloatArray, FloatArray],
    queries: FloatArray,
    confidence: float,
) -> Comparisons:
    """First less second of things that are counted in the same buckets, with intervals.

    Two groups, two batches or two rankers: ``resampled`` are both in the same resamples, shapes
    (resamples, comparisons).  What moves both is no difference, and makes no interval wider.
    """
    return simultaneous(first - second, resampled[0] - resampled[1], queries, confidence)


def _at_once(blocks: _Blocks, confidence: float) -> Comparisons:
    error = np.zeros(len(blocks.value))
    largest = np.zeros(blocks.resamples)
    defined = np.full(blocks.resamples, bool(np.isfinite(blocks.value).all()))
    for some, drawn in blocks:
        usable: BoolArray = np.asarray(np.isfinite(drawn).all(axis=1))
        defined = defined & usable
        count = int(usable.sum())
        if count < 2:
            break
        deviation = np.where(usable[:, None], drawn, 0.0)
        deviation -= deviation.sum(axis=0) / count
        deviation[~usable] = 0.0
        error[some] = np.sqrt((deviation**2).sum(axis=0) / (count - 1))
        # What never moves is certain: it does not reach anywhere.
        moves = error[some] > 0.0
        if moves.any():
            largest = np.maximum(
                largest, (np.abs(deviation[:, moves]) / error[some][moves]).max(axis=1)
            )
    if not defined.any() or defined.sum() < LEAST_DEFINED * blocks.resamples:
        nothing = np.full(len(blocks.value), np.nan)
        return Comparisons(blocks.value, error, nothing, nothing)
    reach = _quantile(largest[defined], confidence)
    wide = few_queries(reach, blocks.queries) * error
    return Comparisons(blocks.value, error, blocks.value - wide, blocks.value + wide)


def _quantile(numbers: FloatArray, level: float) -> float:
    """The quantile between order statistics, at level * (n + 1) of n numbers."""
    place = min(max(level * (len(numbers) + 1.0) - 1.0, 0.0), len(numbers) - 1.0)
    under = int(place)
    over = min(under + 1, len(numbers) - 1)
    low, high = np.partition(numbers, (under, over))[[under, over]].tolist()
    return float(low + (high - low) * (place - under))


def few_queries(reach: float, queries: FloatArray) -> FloatArray:
    """Standard errors that ``reach`` of them become with so many queries (Hesterberg 2015)."""
    own = np.maximum(queries, 2.0)
    one = -student_quantile(normal_cdf(-reach), own - 1.0)
    found: FloatArray = one * np.sqrt(own / (own - 1.0))
    return found


@dataclass(frozen=True)
class GroupResamples:
    """Values of the groups that are compared, and what they are in resamples.

    ``value`` has shape (groups,), ``resampled`` (resamples, groups); ``queries`` is on how many
    queries of equal weight each group rests, shape (groups,).
    """

    value: FloatArray
    resampled: FloatArray
    queries: FloatArray
    _ratios: dict[float, tuple[float, float]] = field(default_factory=dict, compare=False)

    def pairs(self, compare: Callable[[FloatArray, FloatArray], FloatArray]) -> _Blocks:
        """Every two groups."""
        first, second = _pairs(len(self.value))
        return _Blocks(
            compare(self.value[first], self.value[second]),
            np.minimum(self.queries[first], self.queries[second]),
            lambda some: compare(self.resampled[:, first[some]], self.resampled[:, second[some]]),
            len(self.resampled),
        )

    @property
    def fewest(self) -> float:
        """Queries that the group with the fewest rests on."""
        return float(self.queries.min())


def _pairs(groups: int) -> tuple[IntArray, IntArray]:
    first, second = np.triu_indices(groups, 1)
    return first.astype(np.int64), second.astype(np.int64)


def relative(first: FloatArray, second: FloatArray) -> FloatArray:
    """``(a - b) / (a + b)``, in [-1, 1]: half the logarithm of a / b for ratios near 1.

    It orders ratios as their logarithms do, has a value where one of the two is 0, and the same
    bits on every machine, which logarithms have not.  Two zeros are equal.
    """
    total = first + second
    found: FloatArray = np.divide(
        first - second, total, out=np.zeros_like(total), where=total != 0.0
    )
    return found


def _furthest(found: Comparisons) -> tuple[float, float]:
    """Ends of the largest of all comparisons, whichever sign they have."""
    if not np.isfinite(found.lower).all():
        return np.nan, np.nan
    lower = max(0.0, float(np.maximum(found.lower, -found.upper).max()))
    return lower, float(np.maximum(found.upper, -found.lower).max())


def _lowest_ratio(groups: GroupResamples, confidence: float) -> tuple[float, float]:
    # The highest ratio is asked for, too, and is one over it.
    if confidence not in groups._ratios:
        near, far = _furthest(_at_once(groups.pairs(relative), confidence))
        far = min(far, 1.0)
        groups._ratios[confidence] = (1.0 - far) / (1.0 + far), (1.0 - near) / (1.0 + near)
    return groups._ratios[confidence]


def _highest_ratio(groups: GroupResamples, confidence: float) -> tuple[float, float]:
    lower, upper = _lowest_ratio(groups, confidence)
    with np.errstate(divide="ignore"):
        ends = 1.0 / np.array([upper, lower])
    return float(ends[0]), float(ends[1])


def _largest_gap(groups: GroupResamples, confidence: float) -> tuple[float, float]:
    return _furthest(_at_once(groups.pairs(np.subtract), confidence))


def _from_mean(values: FloatArray) -> FloatArray:
    shifted = values - values[..., :1]
    found: FloatArray = shifted - shifted.mean(axis=-1, keepdims=True)
    return found


def _furthest_from_mean(groups: GroupResamples, confidence: float) -> tuple[float, float]:
    fewest = np.full(len(groups.value), groups.fewest)
    return _furthest(
        simultaneous(_from_mean(groups.value), _from_mean(groups.resampled), fewest, confidence)
    )


def _furthest_from_zero(groups: GroupResamples, confidence: float) -> tuple[float, float]:
    return _furthest(simultaneous(groups.value, groups.resampled, groups.queries, confidence))


def _highest(groups: GroupResamples, confidence: float) -> tuple[float, float]:
    found = simultaneous(groups.value, groups.resampled, groups.queries, confidence)
    return float(found.lower.max()), float(found.upper.max())


def _lowest(groups: GroupResamples, confidence: float) -> tuple[float, float]:
    found = simultaneous(groups.value, groups.resampled, groups.queries, confidence)
    return float(found.lower.min()), float(found.upper.min())


def _mean_distance(values: FloatArray) -> FloatArray:
    found: FloatArray = np.abs(_from_mean(values)).mean(axis=-1)
    return found


def _root_mean_square(values: FloatArray) -> FloatArray:
    found: FloatArray = np.sqrt((_from_mean(values) ** 2).mean(axis=-1))
    return found


def _length(
    groups: GroupResamples, confidence: float, norm: Callable[[FloatArray], FloatArray]
) -> tuple[float, float]:
    """Ends of a length: noise of length q makes it longer or shorter by q at most.

    Unlike its own resamples, this reaches 0 where groups may be equal.
    """
    usable: BoolArray = np.asarray(np.isfinite(groups.resampled).all(axis=1))
    if usable.sum() < LEAST_DEFINED * len(usable):
        return np.nan, np.nan
    drawn = groups.resampled[usable]
    noise = norm(drawn - drawn.sum(axis=0) / len(drawn))
    level = _quantile(noise, confidence)
    usual = float(-normal_quantile((1.0 - confidence) / 2.0))
    level *= float(few_queries(usual, np.array([groups.fewest]))[0]) / usual
    value = float(norm(groups.value))
    return max(0.0, value - level), value + level


def _mean_gap(groups: GroupResamples, confidence: float) -> tuple[float, float]:
    return _length(groups, confidence, _mean_distance)


def _variance(groups: GroupResamples, confidence: float) -> tuple[float, float]:
    lower, upper = _length(groups, confidence, _root_mean_square)
    return lower * lower, upper * upper


_ENDS: dict[str, Callable[[GroupResamples, float], tuple[float, float]]] = {
    "MinMaxRatio": _lowest_ratio,
    "MaxMinRatio": _highest_ratio,
    "MaxMinDiff": _largest_gap,
    "MaxAbsDiff": _furthest_from_mean,
    "MeanAbsDev": _mean_gap,
    "Variance": _variance,
    "MaxAbs": _furthest_from_zero,
    "Max": _highest,
    "Min": _lowest,
}
"""How each aggregation is made of comparisons; what is not here is resampled as it is."""
OF_RATIOS = frozenset({"MinMaxRatio", "MaxMinRatio", "Min"})
"""Aggregations for which twice as much is the same for large values as for small ones."""


def is_compared(way: Any) -> bool:
    """Whether an aggregation is an extreme, or a length, of comparisons of groups."""
    return isinstance(way, Aggregation) and way.name in _ENDS


def ends_of(way: Aggregation, groups: GroupResamples, confidence: float) -> tuple[float, float]:
    """Ends of the interval of one aggregation of groups; NaN where there is none.

    The value of the batch itself lies inside, but for the last bits.
    """
    with np.errstate(invalid="ignore"):
        return _ENDS[way.name](groups, confidence)
