"""How much of one batch the next one repeats, from what came before.

A score whose noise lasts for some nights stays on one side of its mean for longer than independent
values do, and a chart that remembers would take that for a shift.

Not here: what follows for the limits (``charts``).
"""

import numpy as np

from pipeline.trends.residuals import Flags, Floats

BOUND = 0.9
"""The largest autocorrelation that limits are widened for; near 1 nothing is ever a shift."""
PRIOR = 0.2
PRIOR_PAIRS = 7
"""What a series is taken for before it says so itself, and the pairs of batches that it is worth.
With these, first weeks have no more false shifts than later ones (docs/trends.md)."""
_FAR = 3.0
"""Residuals count up to this: one outlier says nothing of how batches follow each other."""


def autocorrelations(
    residual: Floats, eligible: Flags, *, window: int, hold: int, tested: int
) -> Floats:
    """Autocorrelation from batch to batch that each of the last ``tested`` rows is charted with.

    Takes residuals (NaN where there is none) and whether each may enter charts, of shape (batches,
    series); gives shape (tested, series), in [0, BOUND].  Of each tested row count the ``window``
    rows before the newest ``hold``: values around a shift look as if each repeated the last.  The
    estimate of lag 1 of the residuals, whose usual value is 0,
    is corrected for few batches (Kendall 1954: it is too small by (1 + 3 r) / n) and drawn towards
    ``PRIOR``; one below 0 is 0, because narrower limits are not worth the risk.
    """
    known = eligible & ~np.isnan(residual)
    z = np.where(known, np.clip(np.nan_to_num(residual), -_FAR, _FAR), 0.0)
    pairs = np.zeros(z.shape, dtype=np.bool_)
    pairs[1:] = known[1:] & known[:-1]
    products, halves = np.zeros(z.shape), np.zeros(z.shape)
    products[1:] = np.where(pairs[1:], z[1:] * z[:-1], 0.0)
    halves[1:] = np.where(pairs[1:], (z[1:] ** 2 + z[:-1] ** 2) / 2.0, 0.0)
    top, bottom, count = (
        _over(part, window, hold, tested) for part in (products, halves, pairs.astype(np.float64))
    )
    found = np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0.0)
    n = np.maximum(count, 4.0)
    found = (n * found + 1.0) / (n - 3.0)
    drawn = (count * found + PRIOR_PAIRS * PRIOR) / (count + PRIOR_PAIRS)
    return np.asarray(np.clip(drawn, 0.0, BOUND))


def _over(parts: Floats, window: int, hold: int, tested: int) -> Floats:
    """Sums over the pairs that count for each of the last ``tested`` rows, added oldest first."""
    reach = window + hold
    padded = np.pad(parts, ((reach, 0), (0, 0)))
    total = np.zeros((tested, parts.shape[1]))
    first = len(parts) - tested
    for lag in range(reach - 1, hold, -1):
        total += padded[first + reach - lag : first + reach - lag + tested]
    return total
