"""Pairwise fairness: how often do the relevant items of a group stand above items that are not?"""

import numpy as np

from metrics.list_native.compared import compared, parts
from metrics.rankings import PerList, Rankings, ratio_of
from metrics.terms import Given


def pairs_in_order(lists: Rankings, given: Given) -> PerList:
    """Pairs in the right order, of all pairs of a relevant item of g and one that is not relevant.

    Shape (lists, groups).  Counted in whole numbers, so exact.  ``pairs`` says whose items the
    others are: anyone's, another group's or the group's own.  NaN for lists without such pairs.
    """
    rows = compared(lists)
    code = lists.groups.code
    others = rows & ~lists.relevant
    below = lists.spread(lists.count(others)) - lists.running(others)
    shape = lists.group_size.shape
    won, pairs = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for group in parts(lists):
        own = others & (code == group)
        own_below = lists.spread(lists.count(own)) - lists.running(own)
        mine = lists.relevant & (code == group)
        found = {
            "all": (below, lists.count(others)),
            "intra": (own_below, lists.count(own)),
            "inter": (below - own_below, lists.count(others & (code != group))),
        }
        after, number = found[str(given["pairs"])]
        won[:, group] = lists.count(np.where(mine, after, 0))
        pairs[:, group] = lists.count(mine) * number
    if given["over"] == "lists":
        return PerList(ratio_of(won, pairs))
    return PerList(np.where(pairs > 0, won, np.nan), pairs.astype(np.float64))
