"""Pairwise fairness: how often do the relevant items of a group stand above items that are not?

Not here: pairs of groups whatever their relevance (ARP, in ``metrics.fairness``).
"""

import numpy as np

from metrics.list_native.compared import compared, parts
from metrics.rankings import PerList, Rankings
from metrics.terms import Given
from metrics.weights import ratio_of


def pairs_in_order(lists: Rankings, given: Given) -> PerList:
    """Pairs in the right order, of all pairs of a relevant item of g and one that is not relevant.

    Shape (lists, groups).  Counted in whole numbers, so exact.  ``pairs`` says whose items the
    others are: anyone's, another group's or the group's own.  NaN for lists without such pairs.
    """
    code = lists.groups.code
    others = compared(lists) & ~lists.relevant
    shape = lists.group_size.shape
    won, pairs = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for group in parts(lists):
        mine, against = code == group, others
        if given["pairs"] != "all":
            against = others & (mine if given["pairs"] == "intra" else ~mine)
        number = lists.count(against)
        below = lists.spread(number) - lists.running(against)
        won[:, group] = lists.count(np.where(mine & lists.relevant, below, 0))
        pairs[:, group] = lists.count(mine & lists.relevant) * number
    if given["over"] == "lists":
        return PerList(ratio_of(won, pairs))
    return PerList(np.where(pairs > 0, won, np.nan), pairs.astype(np.float64))
