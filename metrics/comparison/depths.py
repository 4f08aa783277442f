"""How much of rank-biased overlap each depth carries, and how much lies beyond.

Not here: the lists that are compared (``overlap``).

Agreement at depth d is weighted by (1 - p) p^(d-1), and a match found at depth m adds 1/d to the
agreement at every depth d from m on.  It is therefore worth

    tail(m) = (1 - p) sum_{d >= m} p^(d-1) / d ,

and the ranks below depth d can together still be worth

    beyond(d) = tail(d + 1) + tail(d + 2) + ... = p^d - d tail(d + 1) .

Every reading of the measure is a sum of these two.  Differences of prefix sums would lose all
digits of a deep tail, so tails are summed from the deep end.  A table is made of blocks that
double in size, each from an anchor of its own at its end: an entry has the same bits whatever the
depth of the table.
"""

from functools import lru_cache
from math import ceil

import numpy as np

from metrics.elementary import expm1, log, log1p, power
from metrics.weights import FloatArray, IntArray

_FIRST_BLOCK = 64
"""Depths in the first block of a table; a power of two, as the sizes of all tables are.

A larger one computes depths that short lists never reach; a smaller one needs more anchors."""
_AT_ONCE = 1 << 16
"""Weights held in memory at a time: half a MB, however slowly a tail falls."""
_FAT = 4.0
"""A tail that begins at a depth d with p^d above exp(-4) is a large part of the whole series."""
_NEGLIGIBLE = 44.0
"""exp(-44) is below the last bit of a sum that starts with 1."""


def _size_for(depths: int) -> int:
    """Size of the smallest table that holds so many depths."""
    return max(_FIRST_BLOCK, 1 << (depths - 1).bit_length())


def _weights(p: float, first: int, last: int) -> FloatArray:
    """Weights (1 - p) p^(d-1) / d of depths first <= d < last."""
    depths = np.arange(first, last, dtype=np.float64)
    found: FloatArray = (1.0 - p) * power(p, depths - 1.0) / depths
    return found


def _summed(p: float, first: int, last: int) -> float:
    """Sum of the weights of depths first <= d < last, smallest pieces first."""
    pieces = range(first, last, _AT_ONCE)
    sums = (float(_weights(p, at, min(at + _AT_ONCE, last)).sum()) for at in reversed(pieces))
    return sum(sums, start=0.0)


def _anchor(p: float, depth: int) -> float:
    """``tail(depth)``, on its own.

    A tail is either thin, and ends soon enough to be added up, or so fat that taking the depths
    above it from the whole series, ln(1 / (1 - p)) (1 - p) / p, costs no more than a few bits.
    """
    fall = -float(log(p))
    if fall * depth > _FAT:
        return _summed(p, depth, depth + ceil(_NEGLIGIBLE / fall))
    return -float(log1p(-p)) * (1.0 - p) / p - _summed(p, 1, depth)


@lru_cache(maxsize=16)
def _table(p: float, size: int) -> tuple[FloatArray, FloatArray]:
    """Tails of depths 0 <= d < size and powers p^d; ``size`` is the first block times 2^n."""
    tails, powers = [], []
    start, end = 0, _FIRST_BLOCK
    while start < size:
        first = max(start, 1)
        block = np.cumsum(np.append(_weights(p, first, end), _anchor(p, end))[::-1])[:0:-1]
        tails.append(block if start else np.append(1.0, block))
        powers.append(power(p, np.arange(start, end, dtype=np.float64)))
        start, end = end, 2 * end
    found = np.concatenate(tails), np.concatenate(powers)
    for array in found:
        array.flags.writeable = False
    return found


class DepthWeights:
    """Tails and what lies beyond, of depths up to ``depth``, for one ``p`` in (0, 1)."""

    def __init__(self, p: float, depth: int) -> None:
        self._tails, self._powers = _table(p, _size_for(depth + 2))

    def tail(self, depths: IntArray) -> FloatArray:
        """Worth of a match found at each of ``depths`` >= 1, any shape."""
        return self._tails[depths]

    def beyond(self, depths: IntArray) -> FloatArray:
        """Worth of all ranks below each of ``depths`` >= 0, any shape; 1 at depth 0."""
        found: FloatArray = self._powers[depths] - depths * self._tails[depths + 1]
        return found


def prefix_weight(p: float, depth: int) -> float:
    """Share of rank-biased overlap that the first ``depth`` ranks decide, in [0, 1].

    W(1:d) = 1 - p^(d-1) + d ((1 - p) / p) (ln(1 / (1 - p)) - sum_{i < d} p^i / i), 0 at depth 0.
    ``p`` lies in (0, 1).  Source: Webber, Moffat & Zobel 2010, eq. 21.

    >>> round(prefix_weight(0.9, 10), 4)
    0.8556
    """
    if not 0.0 < p < 1.0:
        raise ValueError(f"p lies between 0 and 1 (both excluded), not {p:g}")
    if depth < 1:
        return 0.0
    tail = DepthWeights(p, depth).tail(np.array([depth]))[0]
    return min(1.0, depth * float(tail) - float(expm1((depth - 1) * log(p))))


@lru_cache(maxsize=16)
def _harmonics(size: int) -> FloatArray:
    table = np.append(0.0, np.cumsum(1.0 / np.arange(1, size, dtype=np.float64)))
    table.flags.writeable = False
    return table


def harmonic(depth: int) -> FloatArray:
    """Harmonic numbers H(0)..H(depth) = 1 + 1/2 + ... + 1/depth, shape (>= depth + 1,)."""
    return _harmonics(_size_for(depth + 1))
