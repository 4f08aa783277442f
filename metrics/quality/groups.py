"""Ranking quality of each list, taken apart by group: functions that return (lists, groups).

With ``of="list"`` a group's value is what its items contribute to the list's: the values of all
groups, the unknown one included, add up to it, and a group that is absent from a list contributes
0 there.  With ``of="group"`` its items are measured against what they alone could have had, and a
group without such items in a list has no value there.  A list without a relevant item has none for
any group.

Not here: the quality of the list as a whole (``lists``).
"""

import numpy as np

from metrics.quality.ideal import best, best_of_groups, discounted
from metrics.quality.lists import cut, gains, hits, judged, relevant_items
from metrics.rankings import PerList, Rankings
from metrics.terms import Given
from metrics.weights import exposure_at, ratio_of


def group_precision(lists: Rankings, given: Given) -> PerList:
    """The group's relevant items in the first k, over k or over the group's items there."""
    k = cut(given)
    shown = lists.group_sum(hits(lists, k))
    places = lists.group_sum(lists.top(k)) if given["of"] == "group" else np.array(k)
    return judged(lists, ratio_of(shown, places))


def group_recall(lists: Rankings, given: Given) -> PerList:
    """The group's relevant items in the first k, over the list's relevant items or its own."""
    found = lists.group_sum(hits(lists, cut(given)))
    if given["of"] == "list":
        return PerList(ratio_of(found, relevant_items(lists)[:, None]))
    return PerList(ratio_of(found, lists.group_sum(lists.relevant)))


def group_normalised_gain(lists: Rankings, given: Given) -> PerList:
    """Discounted gain of the group's items in the first k, over the best of the list or its own.

    A group's own best has its items on top of the list, before those of all others.
    """
    gain, k = gains(lists, given), cut(given)
    found = lists.group_sum(discounted(lists, gain, exposure_at, k))
    if given["of"] == "list":
        return PerList(ratio_of(found, best(lists, gain, exposure_at, k)[:, None]))
    return PerList(ratio_of(found, best_of_groups(lists, gain, exposure_at, k)))
