"""How often a quiet CUSUM is as high as it is.

An integral equation of the chart's next state, solved on Gauss-Legendre nodes: what Brook and
Evans' Markov chain tends to as its states become many, with fewer states.  Not here: how long
charts run until they alarm (``benchmarks.run_lengths``).
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from metrics.distributions import log_normal_cdf, normal_cdf
from metrics.elementary import exp, log

Floats = NDArray[np.float64]

_NODES_PER_UNIT = 6
"""Nodes for each standard deviation of a step; the kernel is a normal density of that width.

More of them cost time with their square, for digits that nobody reads."""

_DEPTH = 20.0
"""Where the CUSUM's law is taken for an exponential; what starts at 0 is forgotten long before."""


def cusum_tail(value: Floats, k: float) -> Floats:
    """P(C >= value) of a CUSUM of slack ``k`` on standard normal values that runs for long.

    Takes and gives arrays of one shape; 1 at 0, which is where a quiet CUSUM mostly is, and NaN for
    NaN.  Far out it falls by exp(-2k) a unit.  Source: Brook & Evans 1972; for the tail, Siegmund
    1985.

    >>> cusum_tail(np.array([0.0, 3.0, 4.0]), 0.5).round(4)
    array([1.    , 0.0279, 0.0103])
    """
    grid, log_tail = _log_tail(k)
    beyond = np.maximum(value - _DEPTH, 0.0)
    tail = exp(np.interp(value, grid, log_tail) - 2.0 * k * beyond)
    return np.where(value <= 0, 1.0, tail)


@cache
def _log_tail(k: float) -> tuple[Floats, Floats]:
    """A grid of CUSUM values, and the logarithms of the probabilities to be at or beyond each.

    The density f of a positive CUSUM in the long run and the probability a to be at 0 obey
    f(y) = a phi(y + k) + integral f(x) phi(y - x + k) dx, and f falls by exp(-2k) a unit from
    ``_DEPTH`` on, where the integral is known: f(D) exp(-2k (y - D)) Phi(y - D - k).
    """
    node, weight = nodes(0.0, _DEPTH, _DEPTH)
    state = np.append(node, _DEPTH)
    moves = np.empty((len(state), len(state)))
    moves[:, :-1] = density(state[:, None] - node + k) * weight
    moves[:, -1] = exp(2.0 * k * (_DEPTH - state) + log_normal_cdf(state - _DEPTH - k))
    found = solved(np.eye(len(state)) - moves, density(state + k))
    mass, last = found[:-1] * weight, found[-1] / (2.0 * k)
    atom = 1.0 / (1.0 + float(np.cumsum(mass)[-1]) + last)
    grid = np.linspace(0.0, _DEPTH, 100 * int(_DEPTH) + 1)
    tail = normal_cdf(-grid - k)
    for at, share in zip(node, mass, strict=True):
        tail += share * normal_cdf(at - k - grid)
    falling = exp(2.0 * k * (_DEPTH - grid) + log_normal_cdf(grid - _DEPTH - k))
    tail += last * (normal_cdf(_DEPTH - k - grid) + falling)
    return grid, log(np.maximum(atom * tail, np.finfo(np.float64).tiny))


def nodes(low: float, high: float, units: float) -> tuple[Floats, Floats]:
    """Gauss-Legendre nodes and weights on [low, high], which is ``units`` kernel widths long.

    Panels of equal length keep the rule cheap to make however long the interval is.
    """
    panels = max(2, int(np.ceil(units / 2.0)))
    node, weight = np.polynomial.legendre.leggauss(2 * _NODES_PER_UNIT)
    edges = np.linspace(low, high, panels + 1)
    half = (high - low) / panels / 2.0
    return (edges[:-1, None] + half * (1.0 + node)).ravel(), np.tile(half * weight, panels)


def density(value: Floats) -> Floats:
    """The standard normal density."""
    found: Floats = exp(-0.5 * (value * value)) / np.sqrt(2.0 * np.pi)
    return found


def solved(matrix: Floats, right: Floats) -> Floats:
    """The solution x of matrix @ x = right, bit for bit the same on any number of threads.

    For identity minus a chain that dies out, which elimination solves stably without pivots; LAPACK
    would order its sums by the number of threads.
    """
    a = np.column_stack([matrix, right])
    for at in range(len(a)):
        a[at] /= a[at, at]
        a[at + 1 :] -= a[at + 1 :, at, None] * a[at]
    x = a[:, -1].copy()
    for at in range(len(a) - 1, 0, -1):
        x[:at] -= a[:at, at] * x[at]
    return x
