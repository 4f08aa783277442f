"""Position weights: how much attention each rank gets.  A weight is a small object that can be
applied to ranks and can say its own formula.

Not here: what is weighted (``terms``).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics.elementary import log2, of_whole, powers_of

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]


def ratio_of(over: FloatArray | IntArray, under: FloatArray | IntArray) -> FloatArray:
    """``over / under``, NaN where ``under`` is 0; any shape.

    >>> ratio_of(np.array([1.0, 2.0]), np.array([4.0, 0.0]))
    array([0.25,  nan])
    """
    shape = np.broadcast_shapes(over.shape, under.shape)
    found: FloatArray = np.full(shape, np.nan)
    np.divide(over, under, out=found, where=np.broadcast_to(under != 0, shape))
    return found


@dataclass(frozen=True)
class Weight:
    """A position weight.

    ``at`` takes ranks (1 = top), shape (n,), and parameter values by name, and returns shape (n,).
    """

    name: str
    formula: str
    at: Callable[[IntArray, Mapping[str, float]], FloatArray]


_EXPOSURES = np.concatenate([[np.inf], 1.0 / log2(np.arange(1.0, 1024.0) + 1.0)])
"""Exposure of ranks below 1,024, where nearly all are; rank 0 is that of no row."""


def exposure_at(ranks: IntArray) -> FloatArray:
    """Logarithmic exposure ``1 / log2(k + 1)`` of ranks k >= 1, in (0, 1].

    >>> exposure_at(np.array([1, 3]))
    array([1. , 0.5])
    """
    if int(ranks.max(initial=0)) < len(_EXPOSURES):
        return _EXPOSURES.take(ranks)
    return 1.0 / of_whole(lambda k: log2(k + 1.0), ranks)


def _geometric(first: float, ratio: float, ranks: IntArray) -> FloatArray:
    return first * powers_of(ratio, ranks - 1)


exposure = Weight("exposure", "1 / log2(k + 1)", lambda ranks, given: exposure_at(ranks))
attention = Weight(
    "attention",
    "100 p (1 - p)^(k - 1)",
    lambda ranks, given: _geometric(100.0 * given["p"], 1.0 - given["p"], ranks),
)
rbp = Weight(
    # Kirnap et al. print decay^(1 - k), which grows with depth; RBP decays (Moffat & Zobel 2008).
    "RBP",
    "(1 - decay) decay^(k - 1)",
    lambda ranks, given: _geometric(1.0 - given["decay"], given["decay"], ranks),
)
