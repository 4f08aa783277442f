"""Random numbers that are the same everywhere: keyed, and made of a documented stream.

numpy promises the raw output of its bit generators, not what its distributions make of it; so
distributions are made here, from raw numbers.

Not here: what is resampled or drawn with them (``resampling``, ``chance``).
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from metrics.distributions import normal_quantile
from metrics.elementary import exp
from metrics.weights import FloatArray

RESAMPLING, NOISE, SHUFFLING = range(3)
"""What random numbers are for: each use has streams of its own."""
_MOST = 16
"""Largest weight of a resample: Poisson(1) is above it once in 10^14 draws."""


def raw(seed: int, use: int, stream: int, count: int) -> npt.NDArray[np.uint64]:
    """``count`` whole numbers below 2^64 of one stream, shape (count,)."""
    key = np.array([seed, (use << 48) | stream], dtype=np.uint64)
    return np.random.Philox(key=key).random_raw(count)


@lru_cache(maxsize=2)
def poisson_weights(seed: int, resamples: int, buckets: int) -> FloatArray:
    """How often each bucket is drawn in each resample, shape (resamples, buckets): Poisson(1).

    An entry depends on seed, resample and bucket alone, so more resamples leave the first ones as
    they are.  Source of Poisson weights: Hanley & MacGibbon 2006; Chamandy et al. 2012.
    """
    terms = float(exp(-1.0)) / np.cumprod([1.0, *range(1, _MOST)])
    # Counted in steps of 2^-53: doubles hold these numbers exactly.
    steps = np.floor(np.cumsum(terms) * 2.0**53).astype(np.uint64)
    weights = np.empty((resamples, buckets))
    for at in range(resamples):
        drawn = raw(seed, RESAMPLING, at, buckets) >> np.uint64(11)
        weights[at] = np.searchsorted(steps, drawn, side="right")
    weights.setflags(write=False)
    return weights


@lru_cache(maxsize=4)
def normal_draws(seed: int, draws: int, count: int) -> FloatArray:
    """Standard normal numbers, shape (draws, count); column j is the same for every ``count``."""
    found = np.empty((draws, count))
    for at in range(count):
        middle = (raw(seed, NOISE, at, draws) >> np.uint64(11)).astype(np.float64) + 0.5
        found[:, at] = normal_quantile(middle * 2.0**-53)
    found.setflags(write=False)
    return found
