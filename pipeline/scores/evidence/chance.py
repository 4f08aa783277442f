"""What chance alone does to the groups of some lists, if group does not matter for position.

Not here: scores under this law, and how unusual a value is (``noise_floor``).

Every list is its own items in random order.  What a group gets of a position weight w in a list of
n items is then a sample without replacement: with n_g items its mean is n_g * mean(w), and

    Cov(g, h) = (n_g [g = h] n - n_g n_h) / n * S2(w),   S2(w) = sum of (w - mean)^2 / (n - 1),

and lists add up.  Sums over many lists are normal, whatever the weight, so that groups are drawn
from their joint normal law and aggregated; no list is ever shuffled.  Pairs won are such a sum too,
with the position as weight.  NDKL is no sum over rows: its mean is exact here, from the
hypergeometric law of every prefix, and its variance comes from shuffles of some lists.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, sqrt

import numpy as np

from metrics import PrefixCounts
from metrics.distributions import log_factorial
from metrics.elementary import exp, log
from metrics.fairness.prefixes import SMOOTHED_ZERO, SMOOTHING, TERMS, steps, tails
from metrics.weights import FloatArray, IntArray, exposure_at
from pipeline.scores.evidence.randomness import SHUFFLING, raw

SHUFFLES = 32
"""Random orders of each sampled list: what is needed of them is a variance, averaged over lists."""
MOST_WORK = 20_000_000
"""Terms of the exact mean of NDKL up to which it is computed: beyond, it is given up rather than
waited for."""
_CHUNK = 1_000_000
"""Numbers that are held at once, where there could be many: 8 MB of them."""
_FAR = 6.5
"""How far from its mean a group's count in a prefix is looked at, in square roots of its rows: it
is further away in fewer than 1 of 10^36 orders (Hoeffding 1963)."""


@dataclass(frozen=True)
class Mix:
    """Which groups some lists are mixed of.

    ``own`` and ``length`` say how many rows of group ``group`` are in a list of how many, shape
    (cells,), and ``lists`` how many lists are like that.  ``first``, ``second`` and
    ``pair_length`` name two groups and a length, shape (pairs,); ``product`` is the sum of the
    product of their rows over such lists, ``pair_product`` that of (n + 1) / ((n - n_g) (n - n_h)).
    ``paired`` is False where pairs were not counted: then covariances are not known.
    """

    groups: int
    group: IntArray
    length: IntArray
    own: IntArray
    lists: IntArray
    first: IntArray
    second: IntArray
    pair_length: IntArray
    product: FloatArray
    pair_product: FloatArray
    paired: bool = True

    def _by_group(self, numbers: FloatArray) -> FloatArray:
        found = np.bincount(self.group, weights=numbers, minlength=self.groups)
        return found.astype(np.float64)

    def _with_pairs(self, variance: FloatArray, numbers: FloatArray) -> FloatArray:
        size = self.groups
        one_side = np.bincount(
            self.first * size + self.second, weights=numbers, minlength=size * size
        ).reshape(size, size)
        found: FloatArray = np.diag(variance) + one_side + one_side.T
        return found

    def weighted(self, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean, shape (groups,), and covariance, (groups, groups), of each group's weight.

        ``weight`` is that of ranks 1..n, shape (n,), n at least the longest list's length.
        """
        mean, spread = _moments(weight)
        own, length = self.own.astype(np.float64), self.length.astype(np.float64)
        variance = self.lists * (own * (length - own) / length) * spread[self.length]
        shared = -self.product / self.pair_length * spread[self.pair_length]
        return (
            self._by_group(self.lists * own * mean[self.length]),
            self._with_pairs(self._by_group(variance), shared),
        )

    def reach(self, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least and the most weight that each group can get, shapes (groups,).

        ``weight`` is as in ``weighted``, and nowhere rises: best is a place at the top.
        """
        sums = np.concatenate([[0.0], np.cumsum(weight)])
        least = sums[self.length] - sums[self.length - self.own]
        return self._by_group(self.lists * least), self._by_group(self.lists * sums[self.own])

    def shut_out(self, weight: FloatArray) -> FloatArray:
        """The probability that a group gets no weight in any list, shape (groups,).

        In a list of n rows, of which z stand where there is no weight, all n_g of the group stand
        there with probability C(z, n_g) / C(n, n_g).  ``weight`` is as in ``weighted``.
        """
        free = np.concatenate([[0], np.cumsum(weight == 0.0)])[self.length]
        held = np.minimum(self.own, free)
        logs = log_factorial(free) - log_factorial(free - held)
        logs -= log_factorial(self.length) - log_factorial(self.length - self.own)
        found: FloatArray = exp(
            self._by_group(np.where(self.own <= free, self.lists * logs, -np.inf))
        )
        return found

    def pairs_won(self) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of each group's sum over lists of the share of pairs it wins.

        In a list with n_g items of the group the share has mean 1/2 and variance
        (n + 1) / (12 n_g (n - n_g)) (Mann & Whitney 1947); two groups are tied by
        -(n + 1) / (12 (n - n_g) (n - n_h)).
        """
        mixed = self.own < self.length
        lists = np.where(mixed, self.lists, 0).astype(np.float64)
        others = np.where(mixed, self.length - self.own, 1)
        variance = lists * (self.length + 1.0) / (12.0 * self.own * others)
        return (
            self._by_group(lists / 2.0),
            self._with_pairs(self._by_group(variance), -self.pair_product / 12.0),
        )

    def prefixes(self) -> PrefixCounts | None:
        """The mean of NDKL's parts, shape (1, groups); None where that would take too long."""
        base = int(self.length.max(initial=0)) + 1
        kinds, place = np.unique(self.length * base + self.own, return_inverse=True)
        pairs = [divmod(kind, base) for kind in kinds.tolist()]
        if sum(length * len(_near(length, own)) for length, own in pairs) > MOST_WORK:
            return None
        entropy = np.array([_mean_entropy(length, own) for length, own in pairs])[place]
        share = self.own / self.length
        own = np.where(self.own == self.length, 0.0, entropy - _cross(share, share))
        return PrefixCounts(
            *(self._by_group(self.lists * part)[None] for part in (entropy, share, own))
        )


def _moments(weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of the first n weights: mean, and S2; n = 0 to all, shapes (n + 1,).

    Only what is not negative is added up (Welford 1962): equal weights have no spread.
    """
    count = np.arange(1, len(weight) + 1)
    mean = np.cumsum(weight) / count
    squares = np.cumsum((weight[1:] - mean[:-1]) ** 2 * (count[:-1] / count[1:]))
    return np.concatenate([[0.0], mean]), np.concatenate([[0.0, 0.0], squares / count[:-1]])


def _cross(share: FloatArray, reference: FloatArray) -> FloatArray:
    """A group's part of the cross entropy with its reference share, less an absent group's."""
    found: FloatArray = (share + SMOOTHING) * log(reference + SMOOTHING) - SMOOTHED_ZERO
    return found


def _prefix_weights(length: int) -> FloatArray:
    weights = exposure_at(np.arange(1, length + 1))
    found: FloatArray = weights / weights.sum()
    return found


@lru_cache(maxsize=100_000)
def _near(length: int, own: int) -> range:
    """How far from its mean, in rows, the group's count in a prefix can be."""
    far = min(own, ceil(_FAR * sqrt(min(own, length - own))) + 1)
    return range(-far, far + 1)


@lru_cache(maxsize=100_000)
def _mean_entropy(length: int, own: int) -> float:
    """Mean over all orders of a group's smoothed p ln p, weighted over prefixes, less absence.

    Among the first i of n items, the group has c with the hypergeometric probability.
    """
    logs = log_factorial(np.arange(length + 1))
    near = np.array(_near(length, own))
    each = np.empty(length)
    step = max(1, _CHUNK // len(near))
    for start in range(0, length, step):
        first = np.arange(start + 1, min(start + step, length) + 1)[:, None]
        count = first * own // length + near
        possible = (count >= 0) & (count <= np.minimum(own, first))
        possible &= first - count <= length - own
        held = np.where(possible, count, np.maximum(0, first - (length - own)))
        rest = first - held
        chance = exp(
            (logs[own] - logs[held] - logs[own - held])
            + (logs[length - own] - logs[rest] - logs[length - own - rest])
            - (logs[length] - logs[first] - logs[length - first])
        )
        share = held / first + SMOOTHING
        each[start : start + step] = np.where(possible, chance * share * log(share), 0.0).sum(
            axis=1
        )
    return float((_prefix_weights(length) * each).sum()) - SMOOTHED_ZERO


def shuffled_prefixes(rows: IntArray, seed: int) -> PrefixCounts:
    """NDKL's parts of some lists in random orders, shape (lists, SHUFFLES, groups).

    ``rows`` gives the rows of each group in each list, shape (lists, groups).
    """
    shape = (len(rows), SHUFFLES, rows.shape[1])
    found = PrefixCounts(*(np.zeros(shape) for _ in range(3)))
    lengths = rows.sum(axis=1)
    at_once = max(1, _CHUNK // (SHUFFLES * int(lengths.max(initial=1))))
    by_length = np.argsort(lengths, kind="stable")
    for start in range(0, len(rows), at_once):
        _shuffle(found, rows, by_length[start : start + at_once], seed)
    return found


def _shuffle(found: PrefixCounts, rows: IntArray, some: IntArray, seed: int) -> None:
    """Fill in the parts of ``some`` lists, by the steps of ``metrics.fairness.prefixes``.

    Shorter lists are filled up with items of no group, which stay at the end.
    """
    held = rows[some]
    length = held.sum(axis=1)
    longest = int(length.max())
    edges = np.concatenate([np.zeros((len(some), 1), np.int64), held.cumsum(axis=1)], axis=1)
    item = np.arange(longest)
    labels = (item[:, None] >= edges[:, None, 1:]).sum(axis=2)
    # The first of the lists names the stream: no two calls for the same lists have it in common.
    shape = (len(some), SHUFFLES, longest)
    keys = raw(seed, SHUFFLING, int(some[0]), len(some) * SHUFFLES * longest).reshape(shape)
    keys = np.where((item < length[:, None])[:, None], keys, np.uint64(2**64 - 1))
    # Places of the items, which stand group by group: of each group from the top down.
    offset = (labels * longest)[:, None]
    places = np.sort(np.argsort(keys, axis=2, kind="stable") + offset, axis=2) - offset
    step = steps(longest)[item - np.take_along_axis(edges, labels, 1) + 1]
    tail = tails(longest)
    whole = tail[length]
    left = [(whole[:, at, None, None] - tail[:, at][places]) for at in range(TERMS)]
    entropy = left[0] * step[:, None, :, 0]
    for at in range(1, TERMS):
        entropy += left[at] * step[:, None, :, at]
    found.entropy[some] = _between(entropy, edges) / whole[:, 0, None, None]
    # The second of NDKL's terms is the share alone.
    found.share[some] = _between(left[1], edges) / whole[:, 0, None, None]
    reference = (held / length[:, None])[:, None]
    divergence = found.entropy[some] - _cross(found.share[some], reference)
    found.own[some] = np.where(reference == 1.0, 0.0, divergence)


def _between(values: FloatArray, edges: IntArray) -> FloatArray:
    """Sums between edges, shape (lists, orders, edges - 1), of values, (lists, orders, rows)."""
    sums = np.concatenate([np.zeros((*values.shape[:2], 1)), values.cumsum(axis=2)], axis=2)
    found: FloatArray = np.diff(np.take_along_axis(sums, edges[:, None], 2), axis=2)
    return found


def drawn(mean: FloatArray, covariance: FloatArray, standard: FloatArray) -> FloatArray:
    """Vectors with this mean and covariance, shape (draws, groups), from standard normal ones."""
    factor = _root(covariance)
    found = np.repeat(mean[:, None], len(standard), axis=1)
    for at in np.flatnonzero(factor.diagonal()).tolist():
        found[at:] += factor[at:, at, None] * standard[:, at]
    return found.T


def _root(covariance: FloatArray) -> FloatArray:
    """A lower triangular L with L L' = ``covariance``, which may be singular (Cholesky).

    Groups that share lists always are: what one gets, the others lack.
    """
    size = len(covariance)
    rest = covariance.copy()
    found = np.zeros_like(rest)
    least = 1e-12 * max(float(np.diag(covariance).max(initial=0.0)), 1e-300)
    for at in range(size):
        if rest[at, at] > least:
            found[at:, at] = rest[at:, at] / np.sqrt(rest[at, at])
            rest -= np.outer(found[:, at], found[:, at])
    return found
