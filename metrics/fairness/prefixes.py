"""NDKL without a running count per group.

Not here: the sums over rows, which are counted elsewhere.

Write c(i) for the count of a group among the first i of n items, p = c(i) / i, w(i) = 1 / log2(i+1)
and s for the smoothing.  The entropy part of NDKL is a sum over prefixes of w(i) (p+s) ln(p+s).
In powers of s,

    (p+s) ln(p+s) = p ln p + s (ln p + 1) + s^2 / (2p) + O(s^3 / p^2)      for p > 0,

and ``p ln p = (c ln c - c ln i) / i``: a function of c times a function of i.  Summation by parts
turns each such sum over prefixes into a sum over the group's rows: the row that raises c from k-1
to k at position i adds (f(k) - f(k-1)) * (sum of the other function from i to n).  A row's share is

    sum over j of  step[j](k) * (tail[j](n) - tail[j](i-1)) / tail[0](n),

bilinear in two small tables, one by ordinal k and one by position i.  What is left out is below
s^3 n^2 / 6, which is 2e-14 at n = 10,000.
"""

import numpy as np

from metrics.elementary import log
from metrics.weights import FloatArray, exposure_at

SMOOTHING = 1e-7
"""Added to shares, so that a missing group is far off and not infinitely far.

A tenth of the share of one row in a million, the longest list that is read: a group that is there
never counts as if it were missing."""
TERMS = 5
"""Products of ``tails`` and ``steps`` that are added up: what is left out is below rounding."""
SMOOTHED_ZERO = SMOOTHING * float(log(SMOOTHING))


def _log(values: FloatArray) -> FloatArray:
    return log(np.maximum(values, 1.0))


def tails(depth: int) -> FloatArray:
    """Running sums over positions 0..depth, shape (depth + 1, TERMS); row 0 is zero.

    Columns: w, w/i, w ln(i)/i, w ln(i), w i.
    """
    i = np.arange(1, depth + 1, dtype=np.float64)
    w = exposure_at(i.astype(np.int64))
    columns = np.stack([w, w / i, w * log(i) / i, w * log(i), w * i], axis=1)
    return np.concatenate([np.zeros((1, TERMS)), np.cumsum(columns, axis=0)])


def steps(depth: int) -> FloatArray:
    """What the k-th row of a group contributes per unit of tail, shape (depth + 1, TERMS).

    Row k belongs to ordinal k; row 0 is unused and zero.
    """
    k = np.arange(1, depth + 1, dtype=np.float64)
    before = k - 1.0
    first = k == 1.0
    s = SMOOTHING
    c_ln_c = k * _log(k) - before * _log(before)
    ln_c = np.where(first, 1.0 - log(s), _log(k) - _log(before))
    inverse = 1.0 / k - np.where(first, 0.0, 1.0 / np.maximum(before, 1.0))
    table = np.stack(
        [s * ln_c, c_ln_c, np.full(depth, -1.0), np.where(first, -s, 0.0), s * s / 2 * inverse],
        axis=1,
    )
    return np.concatenate([np.zeros((1, TERMS)), table])
