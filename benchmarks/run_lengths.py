"""Mean run lengths of the CUSUM and the EWMA, which simulated charts are held against.

Integral equations of the chart's next state, as in ``pipeline.trends.run_lengths``.  Nothing that
runs each night needs them.
"""

import numpy as np
from scipy.special import ndtr

from pipeline.trends.run_lengths import density, nodes, solved


def cusum_arl(k: float, h: float, shift: float = 0.0, *, two_sided: bool = False) -> float:
    """Mean number of batches until a CUSUM of slack ``k`` that starts at 0 exceeds ``h``.

    Values are standard normal, moved by ``shift`` (in standard deviations, positive towards the
    alarm).  ``two_sided`` runs a second CUSUM downwards and takes what comes first.
    Source: Page 1954; Brook & Evans 1972; for two sides, Kemp 1961: 1/ARL adds up.

    >>> round(cusum_arl(0.5, 5.0, two_sided=True))
    465
    """
    if two_sided:
        up, down = cusum_arl(k, h, shift), cusum_arl(k, h, -shift)
        return 1.0 / (1.0 / up + 1.0 / down)
    node, weight = nodes(0.0, h, h)
    # State 0 has an atom of its own: everything below the slack ends there.
    state = np.concatenate([[0.0], node])
    drift = state - k + shift
    moves = np.empty((len(state), len(state)))
    moves[:, 0] = ndtr(-drift)
    moves[:, 1:] = density(node - drift[:, None]) * weight
    return float(solved(np.eye(len(state)) - moves, np.ones(len(state)))[0])


def ewma_arl(smoothing: float, limit: float, shift: float = 0.0) -> float:
    """Mean number of batches until a two-sided EWMA that starts at 0 is beyond its limits.

    ``limit`` is in standard deviations of the EWMA in the long run, sqrt(smoothing / (2 -
    smoothing)); values are standard normal, moved by ``shift``.
    Source: Crowder 1987; Lucas & Saccucci 1990.

    >>> round(ewma_arl(0.1, 2.814))
    500
    """
    half = limit * float(np.sqrt(smoothing / (2.0 - smoothing)))
    node, weight = nodes(-half, half, 2.0 * half / smoothing)
    state = np.concatenate([[0.0], node])
    step = (node - (1.0 - smoothing) * state[:, None]) / smoothing - shift
    moves = np.zeros((len(state), len(state)))
    moves[:, 1:] = density(step) * weight / smoothing
    return float(solved(np.eye(len(state)) - moves, np.ones(len(state)))[0])
