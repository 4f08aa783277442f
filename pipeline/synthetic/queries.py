"""Which queries a synthetic log answers, and how often each of them is asked.

Not here: what is answered (``marketplace``, ``biased_days``).
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_FEWEST = 500
"""Queries however few the items are: a small demo still has as many as intervals need."""
_POPULARITY = 0.7
"""Exponent of the queries' popularity: the k-th is asked in proportion to k^-0.7.  A steeper one
lets the few items of the first query decide how a small group does on every day."""


def queries_for(items: int) -> int:
    """How many queries there are over so many items."""
    return max(_FEWEST, items // 10)


def asked_between(queries: int) -> Floats:
    """Bounds in (0, 1) between one query and the next, shape (queries - 1,), by popularity.

    A number that is drawn from [0, 1) falls on a query: ``np.searchsorted(..., side="right")``.
    """
    popularity = np.arange(1, queries + 1) ** -_POPULARITY
    bounds: Floats = np.cumsum(popularity / popularity.sum())
    return bounds[:-1]
