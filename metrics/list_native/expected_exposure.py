"""Expected exposure of the items of a query, over the lists that were shown for it.

Items of equal relevance should get equal exposure over repeated requests: the target of an item is
the mean position weight of the places that its relevance grade takes up when items stand in order
of relevance.  A list here is a query; see ``Rankings``.

Not here: exposure of groups (``metrics.fairness``).
"""

import numpy as np

from metrics.elementary import expm1, log, of_whole, powers_of
from metrics.rankings import PerList, Rankings
from metrics.terms import Given
from metrics.weights import FloatArray, Weight

GRADE = 1e-9
"""Relevance that differs by less is one grade: means of equal numbers need not be equal."""

browsing = Weight(
    # As in the paper, without the factor that makes the weights of RBP add up to 1.
    "browsing",
    "decay^(k - 1)",
    lambda ranks, given: powers_of(given["decay"], ranks - 1),
)


def target_exposure(lists: Rankings, decay: float) -> FloatArray:
    """Exposure that each item should get, shape (rows,).

    A grade of m items with b items above it takes up the places b + 1 to b + m, whose mean weight
    is ``decay^b (1 - decay^m) / (m (1 - decay))``.
    """
    grade = np.rint(lists.relevance / GRADE)
    order = lists.order(-grade)
    above = lists.position - 1
    new = (above == 0) | (np.diff(grade[order], prepend=np.nan) != 0)
    starts = np.flatnonzero(new)
    items = np.diff(starts, append=lists.rows)
    reached = powers_of(decay, above[starts])
    left = of_whole(lambda rows: -expm1(rows * log(decay)), items)
    mean = reached * left / (items * (1.0 - decay))
    target = np.empty(lists.rows)
    target[order] = np.repeat(mean, items)
    return target


def _exposure(lists: Rankings) -> FloatArray:
    if lists.exposure is None:
        raise TypeError("these lists are no queries: they come without exposure")
    return lists.exposure


def _of_several(lists: Rankings, values: FloatArray) -> PerList:
    """Sums over the items of each query; NaN for a query of one item, which nothing can harm."""
    return PerList(np.where(lists.length > 1, lists.sum(values), np.nan))


def exposure_loss(lists: Rankings, given: Given) -> PerList:
    """EEL: squared distance of exposure from the target, shape (queries,)."""
    gap = _exposure(lists) - target_exposure(lists, float(given["decay"]))
    return _of_several(lists, gap * gap)


def exposure_disparity(lists: Rankings, given: Given) -> PerList:
    """EED: sum of squared exposure, shape (queries,); lowest when all items get the same."""
    found = _exposure(lists)
    return _of_several(lists, found * found)


def exposure_relevance(lists: Rankings, given: Given) -> PerList:
    """EER: sum of exposure times target exposure, shape (queries,).

    EEL = EED - 2 EER + sum of squared targets.
    """
    return _of_several(lists, _exposure(lists) * target_exposure(lists, float(given["decay"])))
