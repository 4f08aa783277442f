"""Which of a night's many series are news: false discoveries, and parents before children.

Not here: the p-value of one series (``charts``).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Method = Literal["BY", "BH", "none"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Discoveries:
    """What a night's family of series holds; every array has shape (series,).

    ``p_adjusted`` is NaN where a series was not tested, ``family_size`` the number of series it was
    tested with (0 where not tested), ``found`` is true for news, and ``covered`` for slices that
    were left out because their whole batch is news already.
    """

    p_adjusted: Floats
    family_size: NDArray[np.int64]
    found: NDArray[np.bool_]
    covered: NDArray[np.bool_]


def adjusted(p: Floats, method: Method = "BY") -> Floats:
    """``p`` so adjusted that those at most q are discoveries with a false discovery rate of q.

    Takes p-values, shape (series,); NaN stays NaN and is not counted in the family.  "BY" holds
    whatever the dependence between series, "BH" where they are independent or depend positively,
    "none" returns ``p``, which then controls nothing but each series by itself.
    Source: Benjamini & Hochberg 1995; Benjamini & Yekutieli 2001.

    >>> adjusted(np.array([0.01, np.nan, 0.04]), "BH")
    array([0.02,  nan, 0.04])
    """
    if method == "none":
        return p.copy()
    # NaN is sorted to the end.
    order = np.argsort(p, kind="stable")[: np.count_nonzero(~np.isnan(p))]
    place = np.arange(1, len(order) + 1)
    factor = np.sum(1 / place) if method == "BY" else 1.0
    scaled = p[order] * (len(order) * factor / place)
    result = np.full(p.shape, np.nan)
    # Nobody is adjusted beyond those whose own p is larger.
    result[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return result


def discover(
    p: Floats,
    is_whole: NDArray[np.bool_],
    parent: NDArray[np.int64],
    *,
    method: Method = "BY",
    level: float = 0.05,
) -> Discoveries:
    """The news among a night's series: whole batches first, then slices of those that are none.

    Takes p-values (NaN where a series cannot be tested), whether each series is of the whole batch,
    and for each slice the index of its whole-batch series (-1 for none); all of shape (series,).
    The whole batches are one family, all tested slices another.  A slice whose parent is news is
    ``covered``: the parent's news holds it.  It stays in its family with p = 1, which makes
    p-values larger and never smaller, so that in each of the two families the expected share of
    false ones among the news is at most ``level`` (with "BY" whatever the dependence); on a night
    on which nothing moved, each family has news with probability at most ``level``.
    Source: Benjamini & Yekutieli 2001; for trees, Yekutieli 2008.
    """
    discovered = np.zeros(p.shape, dtype=np.bool_)
    covered = np.zeros(p.shape, dtype=np.bool_)
    p_adjusted = np.full(p.shape, np.nan)
    family_size = np.zeros(p.shape, dtype=np.int64)
    known = ~np.isnan(p)
    for family in (is_whole, ~is_whole):
        covered |= family & ~is_whole & (parent >= 0) & discovered[parent]
        within = family & known
        p_adjusted[within] = adjusted(np.where(covered, 1.0, p)[within], method)
        discovered |= within & (p_adjusted <= level)
        family_size[within & ~covered] = within.sum()
    p_adjusted[covered] = np.nan
    return Discoveries(p_adjusted, family_size, discovered, covered)
