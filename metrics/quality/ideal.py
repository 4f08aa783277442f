"""The best order of what is there: discounted sums of rows as they stand, and as they could stand.

An ideal order has no gaps: it fills the ranks 1, 2, 3 and on, whatever ranks were logged.

Not here: gains and cut-offs of a metric (``lists``).
"""

from collections.abc import Callable

import numpy as np

from metrics.rankings import Rankings
from metrics.weights import FloatArray, IntArray

Discount = Callable[[IntArray], FloatArray]
"""A weight of ranks (1 = top) that never grows with depth."""

_RADIX_GROUPS = 2**15
"""Group codes below this fit into two bytes, which are sorted by radix: in linear time."""


def highest_first(values: FloatArray, lengths: IntArray) -> FloatArray:
    """``values`` of each stretch in falling order.

    Stretches follow one another and cover ``values``; ``lengths`` are their rows, each at least 1.
    Those of one length are sorted together as a matrix, which takes a fraction of the time of one
    sort by stretch and value.  NaN comes first.

    >>> highest_first(np.array([1.0, 2.0, 5.0, 3.0, 4.0]), np.array([2, 3]))
    array([2., 1., 5., 4., 3.])
    """
    if len(lengths) == 0:
        return values.copy()
    if (lengths == lengths[0]).all():
        block = np.sort(values.reshape(len(lengths), -1), axis=1)
        return np.ascontiguousarray(block[:, ::-1]).reshape(-1)
    found = np.empty_like(values)
    starts = np.cumsum(lengths) - lengths
    by_length = np.argsort(lengths, kind="stable")
    sizes, edges = np.unique(lengths[by_length], return_index=True)
    for size, same in zip(sizes.tolist(), np.split(by_length, edges[1:]), strict=True):
        rows = starts[same][:, None] + np.arange(size)
        found[rows] = np.sort(values[rows], axis=1)[:, ::-1]
    return found


def discounted(lists: Rankings, gain: FloatArray, discount: Discount, k: int) -> FloatArray:
    """Gain times discount of each row at its logged rank, 0 below the cut-off, shape (rows,)."""
    return gain * _weights(lists.rank, discount, k)


def best(lists: Rankings, gain: FloatArray, discount: Discount, k: int) -> FloatArray:
    """The highest sum of ``discounted`` that any order of a list's items has, shape (lists,)."""
    weight = _weights(lists.position, discount, k)
    return lists.sum(highest_first(gain, lists.length) * weight)


def best_of_groups(lists: Rankings, gain: FloatArray, discount: Discount, k: int) -> FloatArray:
    """The highest sum that a group's items of a list could have on top of it, (lists, groups).

    0 where the group has no items.
    """
    groups = len(lists.groups.names)
    code = lists.groups.code
    small = code.astype(np.int16) if groups <= _RADIX_GROUPS else code
    order = np.argsort(small, kind="stable")
    cell = code[order] * lists.lists + lists.list_of[order]
    size = np.bincount(cell, minlength=groups * lists.lists)
    lengths = size[size > 0]
    ends = np.cumsum(lengths)
    place = np.arange(1, lists.rows + 1) - np.repeat(ends - lengths, lengths)
    worth = highest_first(gain[order], lengths) * _weights(place, discount, k)
    # Summed the way group_sum does: a group in its best order has exactly this sum.
    found = np.bincount(cell, weights=worth, minlength=groups * lists.lists)
    return np.ascontiguousarray(found.reshape(groups, lists.lists).T)


def _weights(rank: IntArray, discount: Discount, k: int) -> FloatArray:
    """Discount of each rank, 0 below the cut-off."""
    if k == 0:
        return discount(rank)
    # Logarithms and powers are what costs here: they are taken above the cut-off only.
    found = np.zeros(len(rank))
    top = np.flatnonzero(rank <= k)
    found[top] = discount(rank[top])
    return found
