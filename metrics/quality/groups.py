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
from metrics.weights import FloatArray, exposure_at, ratio_of


def precision_by_chance(lists: Rankings, given: Given) -> PerList:
    """The group precision of the list in random order, on average."""
    relevant = lists.group_sum(lists.relevant)
    if given["of"] == "list":
        return judged(lists, relevant * _top_share(lists, cut(given)) / cut(given))
    share = ratio_of(relevant, lists.group_size)
    # Whether the group has items in the first k is a matter of the order; where it has, is not.
    return judged(lists, np.where(np.isnan(group_precision(lists, given).value), np.nan, share))


def recall_by_chance(lists: Rankings, given: Given) -> PerList:
    """The group recall of the list in random order, on average."""
    relevant = lists.group_sum(lists.relevant)
    places = _top_share(lists, cut(given))
    if given["of"] == "list":
        return PerList(ratio_of(relevant * places, relevant_items(lists)[:, None]))
    return PerList(np.where(relevant > 0, places, np.nan))


def normalised_gain_by_chance(lists: Rankings, given: Given) -> PerList:
    """The group's normalised gain of the list in random order, on average."""
    gain, k = gains(lists, given), cut(given)
    usual = lists.sum(discounted(lists, np.ones(lists.rows), exposure_at, k)) / lists.length
    found = lists.group_sum(gain) * usual[:, None]
    if given["of"] == "list":
        return PerList(ratio_of(found, best(lists, gain, exposure_at, k)[:, None]))
    return PerList(ratio_of(found, best_of_groups(lists, gain, exposure_at, k)))


def _top_share(lists: Rankings, k: int) -> FloatArray:
    """What part of a list's rows stands in the first k, shape (lists, 1)."""
    found: FloatArray = (lists.count(lists.top(k)) / lists.length)[:, None]
    return found


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
