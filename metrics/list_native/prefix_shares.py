"""rND, rRD and rKL: how far the mix of the first 10, 20, ... items is from that of the whole list.

Each is a sum over cut points i, discounted by 1 / log2(i), over the highest sum that any order of
the same items can have.  The whole list is no news about itself, so a list has a value only if it
is longer than the first cut point and holds two groups.

Not here: shares at one cut (``group_shares``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metrics.elementary import log, log2, of_whole
from metrics.list_native.compared import compared, parts, several_groups, sizes
from metrics.rankings import PerList, Rankings
from metrics.terms import Given
from metrics.weights import BoolArray, FloatArray, IntArray, ratio_of


@dataclass(frozen=True)
class _Cuts:
    """The rows that end a prefix; arrays of cuts have shape (cuts,).

    Only rows whose group takes part are counted.
    """

    lists: Rankings
    step: int

    @cached_property
    def at(self) -> IntArray:
        """Index of the row."""
        return np.flatnonzero(self._rows & (self._running % self.step == 0))

    @cached_property
    def list_of(self) -> IntArray:
        """The list of the cut."""
        found: IntArray = self.lists.list_of[self.at]
        return found

    @cached_property
    def place(self) -> IntArray:
        """Rows of the prefix."""
        found: IntArray = self._running[self.at]
        return found

    @cached_property
    def length(self) -> IntArray:
        """Rows of the whole list."""
        found: IntArray = self._sizes[1][self.list_of]
        return found

    def count(self, group: int) -> IntArray:
        """Rows of a group in the prefix."""
        found: IntArray = self.lists.running(self.lists.groups.code == group)[self.at]
        return found

    def size(self, group: int) -> IntArray:
        """Rows of a group in the whole list."""
        found: IntArray = self._sizes[0][self.list_of, group]
        return found

    def total(self, values: FloatArray) -> FloatArray:
        """Discounted sum over the cuts of each list, shape (lists,)."""
        weights = values / of_whole(log2, self.place)
        found = np.bincount(self.list_of, weights=weights, minlength=self.lists.lists)
        return found.astype(np.float64)

    @cached_property
    def _rows(self) -> BoolArray:
        return compared(self.lists)

    @cached_property
    def _running(self) -> IntArray:
        return self.lists.running(self._rows)

    @cached_property
    def _sizes(self) -> tuple[IntArray, IntArray]:
        return sizes(self.lists)


_Unfairness = Callable[[IntArray, _Cuts, IntArray], FloatArray]
"""Of a prefix with some rows of a group, from the cuts and the group's size; shape (cuts,)."""


def _difference(count: IntArray, cuts: _Cuts, size: IntArray) -> FloatArray:
    # In whole numbers up to the division: two groups are then equally far off, to the last bit.
    found: FloatArray = np.abs(count * cuts.length - size * cuts.place) / (cuts.place * cuts.length)
    return found


def _shortfall(count: IntArray, cuts: _Cuts, size: IntArray) -> FloatArray:
    # A prefix without any other group has no ratio; for the group itself nothing is missing there.
    rest = cuts.place - count
    ratio = np.divide(count, rest, out=np.full(len(count), np.inf), where=rest > 0)
    wanted = ratio_of(size, cuts.length - size)
    found: FloatArray = np.maximum(wanted - ratio, 0.0)
    return found


def _divergence(count: IntArray, cuts: _Cuts, size: IntArray) -> FloatArray:
    """KL divergence of two groups; ``count`` and ``size`` are of one of them."""
    rest, others = cuts.place - count, cuts.length - size
    return _kl_part(count, cuts, size) + _kl_part(rest, cuts, others)


def _kl_part(count: IntArray, cuts: _Cuts, size: IntArray) -> FloatArray:
    odds = np.ones(len(count))
    np.divide(count * cuts.length, size * cuts.place, out=odds, where=count > 0)
    found: FloatArray = count / cuts.place * log(odds)
    return found


def _highest(unfairness: _Unfairness, cuts: _Cuts, size: IntArray) -> FloatArray:
    """The highest sum that an order of two groups can have, shape (lists,).

    It is that of one of the extreme orders: all of the group first, or all of it last.
    """
    first = np.minimum(cuts.place, size)
    last = np.maximum(cuts.place - (cuts.length - size), 0)
    return np.maximum(
        cuts.total(unfairness(first, cuts, size)), cuts.total(unfairness(last, cuts, size))
    )


def _per_group(unfairness: _Unfairness, lists: Rankings, given: Given) -> PerList:
    cuts = _Cuts(lists, int(given["step"]))
    value = np.full(lists.group_size.shape, np.nan)
    judged = several_groups(lists)
    for group in parts(lists):
        size = cuts.size(group)
        found = cuts.total(unfairness(cuts.count(group), cuts, size))
        share = ratio_of(found, _highest(unfairness, cuts, size))
        here = judged & (lists.group_size[:, group] > 0)
        value[:, group] = np.where(here, np.minimum(share, 1.0), np.nan)
    return PerList(value)


def rnd(lists: Rankings, given: Given) -> PerList:
    """Normalised discounted difference of each list and group, shape (lists, groups), in [0, 1]."""
    return _per_group(_difference, lists, given)


def rrd(lists: Rankings, given: Given) -> PerList:
    """Normalised discounted ratio of each list and group, shape (lists, groups), in [0, 1].

    What a prefix falls short of: the ratio of the group to all others in the whole list, less that
    in the prefix, 0 where the prefix has more.  The printed formula takes the difference both ways,
    and sets the ratio of a prefix without others to 0.  Nine items of a small group and one other
    then outweigh any order that keeps the group off the top, and a prefix of the group alone is
    rated like one without it.  The authors' program has the one side only, as here, but for those
    prefixes.
    """
    return _per_group(_shortfall, lists, given)


def rkl(lists: Rankings, given: Given) -> PerList:
    """Normalised discounted KL divergence of each list, shape (lists,), in [0, 1].

    With two groups 1 is reached by the worst order.  With more, the worst order is not to be had
    in short time; each prefix is then held against the highest divergence that a prefix of its
    length can have, which no order exceeds.
    """
    cuts = _Cuts(lists, int(given["step"]))
    found = np.zeros(len(cuts.at))
    fewest = cuts.length
    groups = np.zeros(len(cuts.at), dtype=np.int64)
    for group in parts(lists):
        size = cuts.size(group)
        found += _kl_part(cuts.count(group), cuts, size)
        fewest = np.where(size > 0, np.minimum(fewest, size), fewest)
        groups += size > 0
    pair = np.bincount(cuts.list_of, weights=groups == 2, minlength=lists.lists) > 0
    highest = np.where(pair, _highest(_divergence, cuts, fewest), cuts.total(_most_divergent(cuts)))
    share = np.clip(ratio_of(cuts.total(found), highest), 0.0, 1.0)
    return PerList(np.where(several_groups(lists), share, np.nan))


def _most_divergent(cuts: _Cuts) -> FloatArray:
    """No prefix of that length can diverge more, shape (cuts,).

    Divergence is convex in the counts, so it is highest where all groups but one are in the prefix
    as a whole or not at all: ln(n / i), less c ln(N / c) / i for c of the N items of that one.
    Where the groups that fit into the prefix do not fill it, that one is larger than the prefix,
    and c lies between what they leave open and i; the loss is concave in c and grows with N, so
    the ends of the interval and the smallest such group bound it.  The same holds for what the
    prefix leaves out.
    """
    inside, outside = cuts.place, cuts.length - cuts.place
    loss = np.maximum(
        _least_loss(cuts, inside, left_out=False), _least_loss(cuts, outside, left_out=True)
    )
    whole = log(cuts.length / inside)
    return np.where(outside > 0, np.maximum(whole - loss / inside, 0.0), 0.0)


def _least_loss(cuts: _Cuts, room: IntArray, *, left_out: bool) -> FloatArray:
    fitting, larger = np.zeros_like(room), np.full_like(room, np.iinfo(np.int64).max)
    for group in parts(cuts.lists):
        size = cuts.size(group)
        fitting += np.where(size < room, size, 0)
        larger = np.where((size >= room) & (size > 0), np.minimum(larger, size), larger)
    tight = fitting < room
    large = np.where(tight, larger, 1)
    ends = [np.where(tight, room, 0), np.where(tight, room - fitting, 0)]
    losses = [_loss(large - end if left_out else end, large) for end in ends]
    return np.where(tight, np.minimum(losses[0], losses[1]), 0.0)


def _loss(count: IntArray, size: IntArray) -> FloatArray:
    odds = np.ones(len(count))
    np.divide(size, count, out=odds, where=count > 0)
    found: FloatArray = log(odds) * count
    return found
