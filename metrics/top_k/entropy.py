"""Inequality of what a cut gives: the generalised entropy of the benefits of all rows.

What belongs here: the index of Speicher et al. 2018, from counts of rows or list by list.  A row's
benefit is b = selected - qualified + 1: 0 where a relevant row stands below the cut (lost), 1
where the cut is right, 2 where a row that is not relevant stands above it (gained).  The index
looks at no groups.  It is 0 where all benefits are equal, and grows without bound as few rows have
the benefit of all.  Where nobody stands below the cut, there is nothing to be unequal about, and
no value.

Not here: rates and groups.
"""

import numpy as np

from metrics.counts import Counts
from metrics.elementary import expm1, log1p
from metrics.parameters import Parameter
from metrics.rankings import PerList, Rankings
from metrics.reasons import Reason
from metrics.terms import Given, Number
from metrics.top_k.rates import cut_of_counts, unjudged
from metrics.weights import FloatArray

ALPHA = Parameter(
    "alpha",
    2.0,
    "weight of high benefits against low ones; 1 is Theil's index, 0 the mean log deviation",
    low=-10.0,
    high=10.0,
    always=True,
)
MOST = 1e9
"""What a list's index counts as at most: sums over lists hold no more.

A list of n rows comes to at most n^(alpha - 1) / (alpha (alpha - 1)): with alpha = 2 no list
reaches it.
"""
SMALLEST = 1e-100
"""An alpha closer to 0 is taken for 0: its reciprocal soon is no number."""
BENEFITS = np.array([0.0, 1.0, 2.0])


def generalised_entropy(rows: FloatArray, alpha: float) -> FloatArray:
    """Generalised entropy of benefits 0, 1 and 2 that ``rows`` have, shape (..., 3) to (...).

    For b with mean m: mean of ((b / m)^alpha - 1) / (alpha (alpha - 1)); at 1 the mean of
    b/m ln(b/m), where 0 ln 0 = 0; at 0 the mean of -ln(b/m).  NaN without rows, where every
    benefit is 0, and where any is while alpha is 0 or less.

    Close to 0 and 1, and with nearly equal benefits, powers less 1 lose all their digits.  So the
    formula is divided by alpha first, or by alpha - 1, whichever is further from its pole, and
    b / m - 1 comes from whole numbers; both limits are then no special cases of it.

    >>> generalised_entropy(np.array([[1.0, 0.0, 1.0]]), 2.0)     # b = 0 and 2: (0 + 4 - 2) / 4
    array([0.5])
    """
    alpha = alpha if abs(alpha) > SMALLEST else 0.0
    count = rows.sum(axis=-1, keepdims=True)
    total = (rows * BENEFITS).sum(axis=-1, keepdims=True)
    some = total > 0
    safe = np.where(some, total, 1.0)
    share = rows / np.maximum(count, 1.0)
    relative = BENEFITS * count / safe
    # Benefit 0, whose logarithm does not exist, is put in below.
    logs = log1p(np.where(some & (BENEFITS > 0), (BENEFITS * count - total) / safe, 0.0))
    if alpha < 0.5:
        terms = expm1(alpha * logs) / alpha if alpha else logs
        lowest = -1.0 / alpha if alpha > 0 else np.nan
        terms = np.where(BENEFITS > 0, terms, np.where(rows > 0, lowest, 0.0)) / (alpha - 1.0)
    else:
        terms = expm1((alpha - 1.0) * logs) / (alpha - 1.0) if alpha != 1 else logs
        terms = relative * terms / alpha
    found: FloatArray = (share * terms).sum(axis=-1)
    # Equal benefits come to 0 exactly; rounding must not print -1e-17 elsewhere.
    return np.where(some[..., 0], np.maximum(found, 0.0), np.nan)


def _alpha(given: Given) -> float:
    """The parameter, 1 for Theil's index, which has none."""
    return float(given.get("alpha", 1.0))


def entropy_of_counts(counts: Counts, given: Given) -> Number:
    """The index of all rows of the batch."""
    cut = cut_of_counts(counts, given)
    rows, selected, qualified, hits = (
        each.sum(axis=-1) for each in (cut.rows, cut.selected, cut.qualified, cut.hits)
    )
    if unjudged(counts, frozenset({"relevance"})).any():
        return Reason.RELEVANCE_MISSING
    if not cut.decided.any():
        return Reason.ALL_SELECTED
    lost, gained = qualified - hits, selected - hits
    benefits = np.stack([lost, rows - lost - gained, gained], axis=-1)
    found = np.where(cut.decided[..., 0], generalised_entropy(benefits, _alpha(given)), np.nan)
    return Reason.ZERO_BENEFIT if np.isnan(found).all() else found


def entropy_of_lists(lists: Rankings, given: Given) -> PerList:
    """The index of each list, at most MOST.

    With alpha of 0 or less, a benefit of 0 beside others makes it infinite: such lists count as
    MOST, as leaving them out would leave the fair ones.
    """
    top = lists.top(int(given["k"]))
    lost = lists.count(~top & lists.relevant)
    gained = lists.count(top & ~lists.relevant)
    benefits = np.stack([lost, lists.length - lost - gained, gained], axis=-1)
    found = generalised_entropy(benefits.astype(np.float64), _alpha(given))
    infinite = (_alpha(given) <= 0) & (lost > 0) & (lists.length - lost + gained > 0)
    found = np.where(infinite, MOST, np.minimum(found, MOST))
    return PerList(np.where(lists.count(top) < lists.length, found, np.nan))
