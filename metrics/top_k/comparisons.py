"""One group against the rest at a cut: differences and ratios of rates.

What belongs here: the member's rate less, or by, that of the rest, which is the rows of all other
groups that take part, as if they were one group.  Always member minus rest, so that a negative
difference of a rate that is good to have is the member's loss.  With two groups the one's
difference is the other's with the sign turned, and ratios are reciprocal.  With more, means over
lists need not have two signs: a small group can be ahead of a rest that is mostly one large group
in one list, and lose little where it is the large one.

Not here: the rates themselves (``rates``).
"""

import numpy as np

from metrics.counts import COMPARED, Counts
from metrics.rankings import ListFunction, PerList, Rankings
from metrics.reasons import Reason
from metrics.terms import Causes, Given, GroupValues, Term, explained
from metrics.top_k.rates import (
    SELECTION,
    Cut,
    Rate,
    cut_of_counts,
    cut_of_lists,
    others,
    unjudged,
)
from metrics.weights import FloatArray, ratio_of


def _columns(rates: tuple[Rate, ...]) -> frozenset[str]:
    """Log columns that the rates need."""
    return frozenset[str]().union(*(rate.columns for rate in rates))


def _causes(counts: Counts, cut: Cut, rest: Cut, rates: tuple[Rate, ...]) -> Causes:
    """Why a group of the batch cannot be compared with the rest, in the order to be told.

    What is wrong with one of two groups is the reason of both, whatever their names.
    """
    missing = unjudged(counts, _columns(rates))
    alone = counts.takes_part.sum() < COMPARED
    return [
        (cut.rows == 0, Reason.GROUP_ABSENT),
        (rest.rows == 0, Reason.ONE_GROUP if alone else Reason.GROUP_ABSENT),
        (missing + others(missing, counts.takes_part) > 0, Reason.RELEVANCE_MISSING),
        (~cut.decided, Reason.ALL_SELECTED),
        *(((rate.under(cut) == 0) | (rate.under(rest) == 0), rate.zero) for rate in rates),
    ]


def _difference(rates: tuple[Rate, ...], cut: Cut, rest: Cut) -> FloatArray:
    gaps = [rate.of(cut) - rate.of(rest) for rate in rates]
    found: FloatArray = np.sum(gaps, axis=0) / len(rates)
    return found


def difference_of_counts(text: str, *rates: Rate) -> Term:
    """Mean over ``rates`` of the member's less that of the rest, in the batch."""

    def of(counts: Counts, given: Given) -> GroupValues:
        cut = cut_of_counts(counts, given)
        rest = cut.rest(counts.takes_part)
        return explained(_difference(rates, cut, rest), _causes(counts, cut, rest, rates))

    return Term(text, of, _columns(rates))


def difference_of_lists(*rates: Rate) -> ListFunction:
    """The same in each list; NaN where the member or the rest lacks one of the rates."""

    def of(lists: Rankings, given: Given) -> PerList:
        cut = cut_of_lists(lists, given)
        return PerList(_difference(rates, cut, cut.rest(lists.groups.takes_part)))

    return of


def _impact(counts: Counts, given: Given) -> GroupValues:
    cut = cut_of_counts(counts, given)
    rest = cut.rest(counts.takes_part)
    causes = _causes(counts, cut, rest, (SELECTION,))
    return explained(
        ratio_of(SELECTION.of(cut), SELECTION.of(rest)),
        [*causes, (rest.selected == 0, Reason.NONE_SELECTED)],
    )


impact_of_counts = Term(
    "SelectionRate of g / that of the rest; by list, their means are divided",
    _impact,
    SELECTION.columns,
)


def impact_of_lists(lists: Rankings, given: Given) -> PerList:
    """Member's selection rate by that of the rest: the mean of the one by the mean of the other.

    Both means are over the same lists, those that hold member and rest and rows below the cut.  A
    mean of the ratios themselves would lose the lists in which the rest has nobody above the cut,
    and call 2 in one list and 1/2 in the next an advantage, 1.25, of both of two groups.
    """
    cut = cut_of_lists(lists, given)
    member, rest = SELECTION.of(cut), SELECTION.of(cut.rest(lists.groups.takes_part))
    apart = np.isnan(member) | np.isnan(rest)
    return PerList(np.where(apart, np.nan, member), np.where(apart, 0.0, rest))
