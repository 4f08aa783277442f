"""Ranking quality of each list: functions of whole lists that return a number per list.

Whether an item is relevant, and its graded relevance, are facts of the row; cut-offs and discounts
refer to the logged rank.  A list without a relevant item has no value: for graded metrics, one
whose gains are all 0.  A list shorter than the cut-off is taken as it is, and ``P@k`` still divides
by k.

Not here: whose items these are (``groups``).
"""

import numpy as np

from metrics.elementary import exp2, expm1, log, of_whole
from metrics.quality.ideal import Discount, best, discounted
from metrics.rankings import PerList, Rankings
from metrics.terms import Given
from metrics.weights import BoolArray, FloatArray, IntArray, exposure_at, ratio_of

LARGEST = 1e12
"""Sums of a list that are not below this are no number to add to others: the list is left out.

Scaled by UNIT such a sum is below 2^100, so that 2^27 lists can be added up in 128 bits."""

_LN_2 = float(log(2.0))


def cut(given: Given) -> int:
    """The cut-off, 0 for none."""
    return int(given["k"])


def hits(lists: Rankings, k: int) -> BoolArray:
    """Relevant rows at or above the cut-off, shape (rows,)."""
    return lists.relevant & lists.top(k)


def relevant_items(lists: Rankings) -> IntArray:
    """Relevant rows of each list, whatever the cut-off, shape (lists,)."""
    return lists.count(lists.relevant)


def judged(lists: Rankings, values: FloatArray | BoolArray) -> PerList:
    """``values``, shape (lists,) or (lists, groups), but NaN for lists without a relevant item."""
    found = values.astype(np.float64)
    found[relevant_items(lists) == 0] = np.nan
    return PerList(found)


def gains(lists: Rankings, given: Given) -> FloatArray:
    """What each row is worth, shape (rows,): relevance g, or 2^g - 1."""
    if given["gain"] == "linear":
        return lists.relevance
    worth = lists.relevance.copy()
    # Of 0 and 1 it is themselves; expm1 keeps the digits of small gains that 2^g - 1 cancels.
    between = np.flatnonzero((worth != 0.0) & (worth != 1.0))
    worth[between] = expm1(worth[between] * _LN_2)
    return worth


def reciprocal_rank(lists: Rankings, given: Given) -> PerList:
    """One over the rank of the first relevant item; 0 where it stands below the cut-off."""
    none = np.iinfo(np.int64).max
    ranks = np.where(hits(lists, cut(given)), lists.rank, none)
    first = np.minimum.reduceat(ranks, lists.starts) if lists.lists else ranks
    return judged(lists, np.where(first < none, 1.0 / first, 0.0))


def precision(lists: Rankings, given: Given) -> PerList:
    """Relevant items in the first k, over k."""
    k = cut(given)
    return judged(lists, lists.count(hits(lists, k)) / k)


def recall(lists: Rankings, given: Given) -> PerList:
    """Relevant items in the first k, over all relevant items of the list."""
    return PerList(ratio_of(lists.count(hits(lists, cut(given))), relevant_items(lists)))


def f1(lists: Rankings, given: Given) -> PerList:
    """Harmonic mean of precision and recall at k.

    With h hits of m relevant items, 2 (h/k) (h/m) / (h/k + h/m) is 2h / (k + m), which also says
    what no hit is worth: 0.
    """
    k = cut(given)
    return judged(lists, 2 * lists.count(hits(lists, k)) / (k + relevant_items(lists)))


def _precisions(lists: Rankings, k: int) -> FloatArray:
    """Sum over the relevant items in the first k of the precision at their rank, (lists,)."""
    at = lists.running(lists.relevant) / lists.rank
    return lists.sum(np.where(hits(lists, k), at, 0.0))


def average_precision(lists: Rankings, given: Given) -> PerList:
    """Mean, over all relevant items, of the precision at their rank, 0 for those below k."""
    return PerList(ratio_of(_precisions(lists, cut(given)), relevant_items(lists)))


def hit(lists: Rankings, given: Given) -> PerList:
    """1 where an item in the first k is relevant, else 0."""
    return judged(lists, lists.count(hits(lists, cut(given))) > 0)


def average_recall(lists: Rankings, given: Given) -> PerList:
    """Mean of the recall at 1, 2 and on to k.

    An item at rank j counts in the recall at j and on to k: k - j + 1 times.
    """
    k = cut(given)
    times = lists.count(np.where(hits(lists, k), k + 1 - lists.rank, 0))
    return PerList(ratio_of(times, k * relevant_items(lists)))


def cumulative_gain(lists: Rankings, given: Given) -> PerList:
    """Sum of gains in the first k."""
    gain = gains(lists, given)
    found = lists.sum(np.where(lists.top(cut(given)), gain, 0.0))
    return PerList(np.where(lists.sum(gain) > 0, found, np.nan))


def discounted_gain(lists: Rankings, given: Given) -> PerList:
    """Sum of gain / log2(rank + 1) in the first k."""
    gain = gains(lists, given)
    found = lists.sum(discounted(lists, gain, exposure_at, cut(given)))
    return PerList(np.where(lists.sum(gain) > 0, found, np.nan))


def normalised_gain(lists: Rankings, given: Given) -> PerList:
    """Discounted gain in the first k, over that of the list's own items in their best order.

    The ideal takes the k best of all items of the list.  Formulas that sum "the list of relevant
    items up to position k" have been read as the items that stand in the first k; then a list that
    hides its best items below the cut-off could score 1.
    """
    gain, k = gains(lists, given), cut(given)
    found = lists.sum(discounted(lists, gain, exposure_at, k))
    # Relevance of a few bits rounds coarsely; no order is better than the best one.
    return PerList(np.minimum(ratio_of(found, best(lists, gain, exposure_at, k)), 1.0))


def half_lives(alpha: float) -> Discount:
    """Weight 1 at the top and half as much every ``alpha - 1`` ranks, in [0, 1]."""

    def discount(rank: IntArray) -> FloatArray:
        return of_whole(lambda ranks: exp2((1.0 - ranks) / (alpha - 1.0)), rank)

    return discount


def r_score(lists: Rankings, given: Given) -> PerList:
    """Utility above the neutral rating, weighted by that of the best order: R_u and R_u*."""
    worth = np.maximum(lists.relevance - float(given["d"]), 0.0)
    discount = half_lives(float(given["alpha"]))
    found = lists.sum(discounted(lists, worth, discount, 0))
    whole = best(lists, worth, discount, 0)
    return PerList(np.where(whole > 0, found, np.nan), whole)


def click_through(lists: Rankings, given: Given) -> PerList:
    """Clicks over rows, as pooled sums: by ``method`` of matched rows, or an estimate for all.

    Matched rows are those with a known click.  ``matching`` sums the clicks of matched rows and has
    no value in a list without any; ``ips`` sums click / propensity over all rows, ``dr`` predicted
    click + (click - predicted) / propensity, where rows that are not matched have no second part.
    A row whose part is not 0 but that has no propensity leaves its list without a value.
    """
    top = lists.top(cut(given))
    matched = top & ~np.isnan(lists.click)
    method = given["method"]
    if method == "matching":
        known = lists.count(matched)
        clicks = lists.sum(np.where(matched, lists.click, 0.0))
        return PerList(np.where(known > 0, clicks, np.nan), known.astype(np.float64))
    surprise = lists.click - lists.predicted_click if method == "dr" else lists.click
    matched &= surprise != 0
    usable = matched & (lists.propensity > 0)
    part = np.zeros(lists.rows)
    with np.errstate(over="ignore"):
        np.divide(surprise, lists.propensity, out=part, where=usable)
        found = lists.sum(part)
    if method == "dr":
        found = found + lists.sum(np.where(top, lists.predicted_click, 0.0))
    rows = lists.count(top)
    whole = (rows > 0) & (lists.count(matched & ~usable) == 0) & (np.abs(found) < LARGEST)
    return PerList(np.where(whole, found, np.nan), rows.astype(np.float64))


def precision_of_returned(lists: Rankings, given: Given) -> PerList:
    """Relevant items in the first k, over the items that stand there, be they fewer than k."""
    k = cut(given)
    return judged(lists, ratio_of(lists.count(hits(lists, k)), lists.count(lists.top(k))))


def average_precision_of_possible(lists: Rankings, given: Given) -> PerList:
    """Average precision whose denominator is the relevant items that the first k can hold."""
    k = cut(given)
    return PerList(ratio_of(_precisions(lists, k), np.minimum(k, relevant_items(lists))))


def normalised_gain_of_all(lists: Rankings, given: Given) -> PerList:
    """Binary nDCG whose ideal holds every relevant item, also those beyond the cut-off."""
    relevant = relevant_items(lists)
    found = lists.sum(discounted(lists, lists.relevant.astype(np.float64), exposure_at, cut(given)))
    on_top = lists.position <= lists.spread(relevant)
    whole = lists.sum(np.where(on_top, exposure_at(lists.position), 0.0))
    return PerList(ratio_of(found, whole))
