"""How many items of a group every prefix needs, so that a fair list fails with a set probability.

Not here: the lists that are tested (``fair_top_k``).

A list is fair to a group of share p if each of its places is given to the group with probability p,
whatever stands above.  A prefix of i places fails where it holds so few of the group that so few or
fewer have a probability of at most ``a`` under that model, and a list fails with any of its
prefixes.  Each prefix is one more chance to fail, so ``a`` has to be lower than the significance
of the whole test.  Only so many different sets of minima exist; the one is taken whose probability
of failing, computed exactly, is nearest to the significance.

Source: Zehlike et al. 2017; the exact adjustment follows Zehlike, Suehr & Castillo 2020.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np

from metrics.weights import FloatArray, IntArray

_CELLS = 4_000_000
"""Numbers held at a time, and numbers kept for the lists to come: 32 MB of either."""
_SAME = 1.0 + 1e-12
"""Probabilities this close are one: some are equal, or equal to the significance, but for a bit."""

_kept: dict[tuple[int, float, float], IntArray] = {}


def minima(depth: int, shares: FloatArray, significance: float) -> IntArray:
    """The fewest items of the group that the first 1..``depth`` places may hold.

    ``shares`` are probabilities in (0, 1), shape (n,); returns shape (n, depth).  A row of zeros
    says that no such test can be made: the list is too short for the group to be missed.  Each row
    depends on its own share alone.

    >>> minima(10, np.array([0.2]), 0.15)
    array([[0, 0, 0, 0, 0, 0, 0, 0, 1, 1]])
    """
    keys = [(depth, significance, share) for share in shares.tolist()]
    missing = sorted({key for key in keys if key not in _kept}, key=lambda key: key[2])
    if sum(map(len, _kept.values())) + depth * len(missing) > _CELLS:
        _kept.clear()
        missing = sorted(set(keys), key=lambda key: key[2])
    while missing:
        # Shares of one size need tables of one width, and those next to each other are alike.
        width = ceil(missing[-1][2] * depth) + 1
        some = missing[-max(1, _CELLS // (depth * width)) :]
        del missing[-len(some) :]
        found = _Tables.of(depth, np.array([share for _, _, share in some]), significance).nearest()
        _kept.update(zip(some, found, strict=True))
    rows = [_kept[key] for key in keys]
    return np.stack(rows) if rows else np.zeros((0, depth), dtype=np.int64)


@dataclass(frozen=True)
class _Tables:
    """Binomial probabilities for some shares, and the levels at which the minima change.

    ``cumulated[n, i - 1, x]`` is the probability of x or fewer in i places, infinite where it
    is above the significance.  ``levels`` are its finite values in order, shape (shares, cells).
    """

    shares: FloatArray
    significance: float
    cumulated: FloatArray
    levels: FloatArray

    @classmethod
    def of(cls, depth: int, shares: FloatArray, significance: float) -> "_Tables":
        """Tables for ``depth`` places; the significance is below 1/2, so x stays below the mean."""
        width = ceil(float(shares.max()) * depth) + 1
        cumulated = np.empty((len(shares), depth, width))
        chance = np.zeros((len(shares), width))
        chance[:, 0] = 1.0
        for i in range(depth):
            chance = _next(chance, shares)
            cumulated[:, i] = np.cumsum(chance, axis=1)
        cumulated[cumulated > significance * _SAME] = np.inf
        return cls(shares, significance, cumulated, np.sort(cumulated.reshape(len(shares), -1)))

    def minima(self, level: IntArray) -> IntArray:
        """Minima where the lowest ``level`` levels fail, shape (shares, depth)."""
        bound = self.levels[np.arange(len(level)), np.maximum(level - 1, 0)]
        bound = np.where(level > 0, bound * _SAME, -1.0)
        found: IntArray = (self.cumulated <= bound[:, None, None]).sum(axis=2)
        return found

    def failing(self, minima: IntArray) -> FloatArray:
        """Probability that a fair list misses one of the minima, shape (shares,)."""
        every = np.arange(len(self.shares))
        alive = np.zeros((len(self.shares), self.cumulated.shape[2]))
        alive[:, 0] = 1.0
        failed = np.zeros(len(self.shares))
        for need in minima.T:
            alive = _next(alive, self.shares)
            # Minima rise by one at most, so that one count alone can newly be too low.
            low = np.maximum(need - 1, 0)
            failed += np.where(need > 0, alive[every, low], 0.0)
            alive[every, low] = np.where(need > 0, 0.0, alive[every, low])
        return failed

    def nearest(self) -> IntArray:
        """Minima whose probability of failing is nearest to the significance; the lower of two."""
        low = np.zeros(len(self.shares), dtype=np.int64)
        last = np.isfinite(self.levels).sum(axis=1)
        high = last + 1
        at_low, at_high = np.zeros(len(low)), np.full(len(low), np.inf)
        while (high - low > 1).any():
            middle = np.minimum((low + high) // 2, last)
            at_middle = self.failing(self.minima(middle))
            down = (middle > low) & (at_middle <= self.significance)
            up = (middle > low) & ~down
            low, at_low = np.where(down, middle, low), np.where(down, at_middle, at_low)
            high, at_high = np.where(up, middle, high), np.where(up, at_middle, at_high)
        nearer = at_high - self.significance < self.significance - at_low
        return self.minima(np.where(nearer, high, low))


def _next(chance: FloatArray, shares: FloatArray) -> FloatArray:
    """Probabilities of the counts 0, 1, ... after one more place; counts beyond the table leave."""
    found = chance * (1.0 - shares)[:, None]
    found[:, 1:] += chance[:, :-1] * shares[:, None]
    return found
