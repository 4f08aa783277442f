"""How a ranking with a known amount of bias is drawn, for many lists at once.

Here: arrays in, arrays out.  Not here: which lists there are and what else is logged of them
(``biased_days``).

The groups stand in the order in which the bias prefers them: group 0 first.  The process is that of
RankTune (Cachel & Rundensteiner, FairRankTune): at each place the next group follows either the
mix of the items or the bias.  There the mix is that of the whole catalogue, and drawing ends with
the first group that is used up, the rest being stacked.  Here it is the mix of the items not
placed yet, to the end of the list, so that phi = 1 is a random order at every depth.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np

from pipeline.synthetic.queries import Floats, Integers, asked_between, queries_for

GRADES = 100
"""Graded relevance is a whole number of hundredths."""
_NOISES = 1 << 16
"""Noises that pairs of query and item draw from: half a MB, and few pairs of a list share one."""
_STANDARD = NormalDist()


def apportioned(shares: Sequence[float], total: int) -> Integers:
    """Whole numbers in proportion to ``shares`` that add up to ``total``: largest remainders.

    The shares need not add up to anything in particular; of equal remainders the first wins.

    >>> apportioned([0.1] * 10, 25)
    array([3, 3, 3, 3, 3, 2, 2, 2, 2, 2])
    """
    weights = np.asarray(shares, np.float64)
    # Ten shares of 0.1 may miss a whole quota by an ulp: equal remainders have to stay equal.
    quotas = np.round(weights / weights.sum() * total, 9)
    counts: Integers = np.floor(quotas).astype(np.int64)
    order = np.argsort(-np.round(quotas - counts, 9), kind="stable")
    counts[order[: total - counts.sum()]] += 1
    return counts


def mixes(catalogue: Integers, sizes: Integers, uniform: Floats) -> Integers:
    """Candidates of each group in each list, shape (lists, groups), ``sizes`` in each list.

    A group of ``n`` of the ``N`` items of the catalogue gets ``size * n / N`` candidates, rounded
    down or up at random such that its mean is exactly that: a group of 3 % is in one of three
    lists of ten, where fixed rounding would leave it out for ever.  One number in [0, 1) a list
    (systematic sampling).

    >>> mixes(np.array([1, 3]), np.array([2, 2, 4]), np.array([0.0, 0.5, 0.9]))
    array([[0, 2],
           [1, 1],
           [1, 3]])
    """
    total = int(catalogue.sum())
    offset = (uniform * total).astype(np.int64)
    ends = (sizes[:, None] * np.cumsum(catalogue) + offset[:, None]) // total
    counts: Integers = np.diff(ends, axis=1, prepend=0)
    return counts


def drawn_groups(
    counts: Integers, phi: Floats, coins: Floats, lots: Floats
) -> tuple[Integers, Integers]:
    """The group at each place of each list, and how many of that group stand above it.

    ``counts`` are the candidates of each group, shape (lists, groups).  At each place ``coins``
    decides, in [0, 1) and of shape (lists, places): below ``phi``, shape (lists,), the group is
    that of a random candidate among those not placed yet, which ``lots`` picks; otherwise it is
    the first group that has candidates left.  Both results have the shape (lists, places); at
    places beyond the candidates the first holds the number of groups.

    At phi = 0 whole groups follow each other, at phi = 1 every order of the candidates is equally
    likely, whatever their groups.

    >>> third = np.full((1, 3), 1 / 3)
    >>> drawn_groups(np.array([[1, 2]]), np.array([0.0]), third, third)
    (array([[0, 1, 1]]), array([[0, 0, 1]]))
    >>> drawn_groups(np.array([[1, 2]]), np.array([1.0]), third, third)
    (array([[1, 0, 1]]), array([[0, 0, 1]]))
    """
    lists, groups = counts.shape
    places = coins.shape[1]
    # Groups and places outermost: each step then runs along the lists.
    left = np.ascontiguousarray(np.cumsum(counts, axis=1).T)
    by_mix, lots = np.ascontiguousarray((coins < phi[:, None]).T), np.ascontiguousarray(lots.T)
    found, above = np.empty((2, places, lists), np.int64)
    placed = np.zeros((groups + 1, lists), np.int64)
    number, lane = np.arange(groups)[:, None], np.arange(lists)
    for place in range(places):
        # The lot 0 is the first candidate in the order of the bias.
        lot = np.where(by_mix[place], lots[place] * left[-1], 0.0).astype(np.int64)
        group = (left <= lot).sum(axis=0)
        found[place], above[place] = group, placed[group, lane]
        placed[group, lane] += 1
        left -= number >= group
    return found.T, above.T


def examination(depth: int, eta: float | None) -> Floats:
    """Probability that somebody looks at ranks 1 to ``depth``, shape (depth,).

    ``rank ** -eta`` (Joachims, Swaminathan & Schnabel 2017), or ``1 / log2(rank + 1)`` where eta
    is None: the exposure weight.
    """
    rank = np.arange(1, depth + 1, dtype=np.float64)
    weights: Floats = 1 / np.log2(rank + 1) if eta is None else rank**-eta
    return weights


@dataclass(frozen=True)
class Relevance:
    """How relevant items are, given their merit, which is standard normal in each group.

    ``means`` is the mean relevance of each group.  A graded relevance is the share of items with a
    lower merit, where merits are shifted for the mean to come out: E[Phi(z)] is Phi(m / sqrt 2)
    for z normal with mean m and variance 1.  A binary one is whether the shifted merit is
    positive, which has the probability Phi(m).
    """

    means: tuple[float, ...]
    binary: bool

    @cached_property
    def _shifts(self) -> Floats:
        spread = 1.0 if self.binary else 2**0.5
        return np.array([spread * _STANDARD.inv_cdf(mean) for mean in self.means])

    @cached_property
    def _bounds(self) -> Floats:
        """Merits between one hundredth and the next: there is no normal distribution in numpy."""
        return np.array([_STANDARD.inv_cdf((grade + 0.5) / GRADES) for grade in range(GRADES)])

    def of(self, merit: Floats, group: Integers) -> Floats:
        """Relevance in [0, 1] of items with this merit and group, any shape."""
        shifted = merit + self._shifts[group]
        if self.binary:
            return (shifted > 0).astype(np.float64)
        return np.searchsorted(self._bounds, shifted) / GRADES


@dataclass(frozen=True)
class Pool:
    """The items and queries that lists are made of: everything that stays the same every day.

    ``counts`` are the items of each group.  ``members`` holds the items group after group, in
    random order within a group, and ``groups`` the group of each item.  ``asked`` are bounds in
    [0, 1) between queries, ``begins``, shape (queries, groups), says where in the ring of a group's
    members the candidates of a query begin: a query finds the same items whenever it is asked.
    """

    counts: Integers
    members: Integers
    groups: Integers
    quality: Floats
    asked: Floats
    begins: Integers
    noises: Floats

    @classmethod
    def of(cls, counts: Integers, rng: np.random.Generator) -> "Pool":
        """The pool that a stream of random numbers makes of so many items in each group."""
        items = int(counts.sum())
        members = rng.permutation(items)
        bounds = np.cumsum(counts)
        groups = np.empty(items, np.int64)
        groups[members] = np.repeat(np.arange(len(counts)), counts)
        drawn = rng.standard_normal(items)
        quality = np.empty(items)
        for end, count in zip(bounds, counts, strict=True):
            own = members[end - count : end]
            quality[own] = _standardised(drawn[end - count : end])
        queries = queries_for(items)
        return cls(
            counts=counts,
            members=members,
            groups=groups,
            quality=quality,
            asked=asked_between(queries),
            begins=(rng.random((queries, len(counts))) * counts).astype(np.int64),
            noises=_standardised(rng.standard_normal(_NOISES)),
        )

    def items(self, query: Integers, group: Integers, nth: Integers) -> Integers:
        """The nth candidate that each query finds in a group."""
        first = np.cumsum(self.counts) - self.counts
        place = (self.begins[query, group] + nth) % self.counts[group]
        return self.members[first[group] + place]

    def merit(self, query: Integers, item: Integers) -> Floats:
        """How well items answer queries: half the item's quality, half a matter of the pair."""
        return (self.quality[item] + self.noises[_mixed(query, item)]) / 2**0.5


def _standardised(values: Floats) -> Floats:
    """The values with mean 0 and variance 1, so that few items of a group have its mean too."""
    centred = values - values.mean() if len(values) else values
    spread = centred.std() if len(values) else 0.0
    return centred / spread if spread > 0 else centred


def _mixed(query: Integers, item: Integers) -> Integers:
    """A number below ``_NOISES`` that depends on query and item and looks random.

    The finaliser of SplitMix64 (Steele, Lea & Flood 2014): a table of all pairs need not be held.
    """
    bits = (query.astype(np.uint64) << np.uint64(32)) + item.astype(np.uint64)
    bits += np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((bits ^ (bits >> np.uint64(31))) % np.uint64(_NOISES)).astype(np.int64)
