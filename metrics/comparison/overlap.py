"""Overlap of two rankings, depth by depth: average overlap and rank-biased overlap.

Not here: pairs and correlations (``correlation``).

S is the list as shown, T the reference.  An item stands in both prefixes of depth d once d reaches
the deeper of its two places m, so the overlap X_d is the number of items with m <= d, and a sum
over depths of X_d becomes a sum over items of what a match at m is worth.  With s and l the depths
of the shorter and the longer list, and in the words of ``metrics.comparison.depths``, the formulas
of Webber, Moffat & Zobel (2010, eq. 11, 30 and 32) are

    MIN = sum over items of tail(m)
    RES = beyond(s) + beyond(l) - beyond(s + l - X_l)
    EXT = MIN + (X_s / s) beyond(s) + ((X_l - X_s) / l) beyond(l) ,

without a difference that could cancel.  Equal depths are the case s = l.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metrics.comparison.depths import DepthWeights, harmonic
from metrics.rankings import PerList, Rankings
from metrics.terms import Given
from metrics.weights import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Overlap:
    """What two rankings have in common.

    ``at`` is the depth from which on an item is in both prefixes, shape (rows,), and ``found``
    says for which items there is one.  ``shorter`` and ``longer`` are the depths of the two lists,
    shape (lists,); a ``shorter`` of 0 means that there is no reference.  ``ordered`` says whether
    the reference is an order at all: of distinct ranks, or of relevance that is not all the same.
    """

    lists: Rankings
    at: IntArray
    found: BoolArray
    shorter: IntArray
    longer: IntArray
    ordered: BoolArray

    def until(self, depth: IntArray) -> BoolArray:
        """Items that both prefixes of ``depth`` hold; takes shape (lists,), returns (rows,)."""
        within: BoolArray = self.found & (self.at <= self.lists.spread(depth))
        return within

    def complete(self) -> BoolArray:
        """Lists whose prefixes agree in full at every depth of the shorter one, shape (lists,).

        They get their 1 exactly, which sums of rounded weights may miss by a last bit.
        """
        early = self.until(self.shorter)
        places = self.lists.count(np.where(early, self.at, 0))
        # No prefix of depth d holds more than d: with all found, places add up to least if X_d = d.
        least = self.shorter * (self.shorter + 1) // 2
        agreed: BoolArray = (self.lists.count(early) == self.shorter) & (places == least)
        return agreed

    @property
    def deepest(self) -> int:
        """Depth of the longest list, 0 where there are no lists."""
        return int(self.longer.max(initial=0))


def by_relevance(lists: Rankings) -> IntArray:
    """Place of each row in the order by relevance, 1 = most relevant, ties as shown; shape (rows,).

    Rows without relevance have no place: 0.
    """
    place = np.empty(lists.rows, dtype=np.int64)
    place[lists.order(-lists.relevance)] = lists.position
    place[np.isnan(lists.relevance)] = 0
    return place


def overlap(lists: Rankings, given: Given) -> Overlap:
    """The lists beside their reference, both cut at ``k`` where there is a cut-off.

    The order by relevance is one of the items shown, so both sides then count places, not ranks:
    gaps in ranks are closed.
    """
    if given["reference"] == "relevance":
        own, other = lists.position, by_relevance(lists)
        depth, other_depth = lists.length, lists.count(other > 0)
        ends = (extreme.reduceat(lists.relevance, lists.starts) for extreme in (np.fmin, np.fmax))
        ordered = np.less(*ends)
    else:
        own, other = lists.rank, lists.reference_rank
        other_depth = lists.reference_length
        ordered = ~lists.repeats_reference
        depth = np.maximum.reduceat(own, lists.starts) if lists.lists else lists.length
    if given["k"]:
        k = int(given["k"])
        depth, other_depth = np.minimum(depth, k), np.minimum(other_depth, k)
    shorter, longer = np.minimum(depth, other_depth), np.maximum(depth, other_depth)
    at = np.maximum(own, other)
    found = (other > 0) & (at <= lists.spread(longer))
    return Overlap(lists, at, found, shorter, longer, ordered)


def _where_compared(both: Overlap, values: FloatArray) -> PerList:
    """Numbers in [0, 1] up to rounding, NaN where there is no reference or it is no order."""
    compared = both.ordered & (both.shorter > 0)
    return PerList(np.where(compared, np.clip(values, 0.0, 1.0), np.nan))


def average_overlap(lists: Rankings, given: Given) -> PerList:
    """Mean over depths 1..D of the share that prefixes of that depth have in common, per list.

    D is the cut-off, or the depth of the shorter list where that ends first: beyond it nothing is
    known of one of the two.  Source: Fagin, Kumar & Sivakumar 2003; named by Webber et al. 2010.
    """
    both = overlap(lists, given)
    numbers = harmonic(both.deepest)
    counted = both.until(both.shorter)
    at = np.where(counted, both.at, 1)
    worth = lists.spread(numbers[both.shorter]) - numbers[at - 1]
    sums = lists.sum(np.where(counted, worth, 0.0))
    found = np.where(both.complete(), 1.0, sums / np.maximum(both.shorter, 1))
    return _where_compared(both, found)


def _rank_biased(
    reading: Callable[[Overlap, DepthWeights], FloatArray],
) -> Callable[[Rankings, Given], PerList]:
    def per_list(lists: Rankings, given: Given) -> PerList:
        both = overlap(lists, given)
        weights = DepthWeights(float(given["p"]), 2 * both.deepest)
        return _where_compared(both, reading(both, weights))

    return per_list


def _least(both: Overlap, weights: DepthWeights) -> FloatArray:
    worth = weights.tail(np.where(both.found, both.at, 1))
    return both.lists.sum(np.where(both.found, worth, 0.0))


def _residual(both: Overlap, weights: DepthWeights) -> FloatArray:
    agreed = both.shorter + both.longer - both.lists.count(both.found)
    known = weights.beyond(both.shorter) + weights.beyond(both.longer)
    found: FloatArray = known - weights.beyond(agreed)
    return found


def _extrapolated(both: Overlap, weights: DepthWeights) -> FloatArray:
    early = both.lists.count(both.until(both.shorter))
    late = both.lists.count(both.found) - early
    carried = early / np.maximum(both.shorter, 1) * weights.beyond(both.shorter)
    carried += late / np.maximum(both.longer, 1) * weights.beyond(both.longer)
    found: FloatArray = np.where(both.complete(), 1.0, _least(both, weights) + carried)
    return found


rbo_min = _rank_biased(_least)
"""The least that rank-biased overlap can be, whatever follows below the lists; per list."""
rbo_res = _rank_biased(_residual)
"""How far above the least it can be, if all that follows agrees; per list."""
rbo_ext = _rank_biased(_extrapolated)
"""Rank-biased overlap if the agreement seen last goes on for ever; per list."""
rbd = _rank_biased(lambda both, weights: 1.0 - _extrapolated(both, weights))
"""Rank-biased distance, what extrapolated overlap lacks of 1; per list."""
