"""Rates at a cut: of a group, of its relevant rows or of its others, who stands above, who below.

What belongs here: what a cut makes of the rows, of the batch or of each list, and shares of that.
A row is a candidate of a list.  It is *selected* where its rank is at most k, and *qualified*
where it is relevant.  Where nobody at all stands below the cut, nothing was decided: a log that
ends at k does not show who was left out, so no rate of it says anything, and none is given.  In
the batch a list no longer than k counts as one whose candidates were all selected; list by list,
such a list is left out.

Not here: one group beside the rest (``comparisons``).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from metrics.counts import Counts
from metrics.rankings import ListFunction, PerList, Rankings
from metrics.reasons import Reason
from metrics.terms import Given, GroupValues, Term, explained
from metrics.weights import BoolArray, FloatArray, IntArray, ratio_of


@dataclass(frozen=True)
class Cut:
    """Rows of each group, by what a cut made of them.

    Whole numbers of shape (groups,) for a batch and (lists, groups) for lists.  ``hits`` are both
    selected and qualified.  ``decided`` says whether any row at all, of whatever group, stands
    below the cut; shape (1,) or (lists, 1).
    """

    rows: FloatArray
    selected: FloatArray
    qualified: FloatArray
    hits: FloatArray
    decided: BoolArray

    def rest(self, takes_part: BoolArray) -> "Cut":
        """What the cut made of the others: the rows of all other groups that take part."""
        return Cut(
            others(self.rows, takes_part),
            others(self.selected, takes_part),
            others(self.qualified, takes_part),
            others(self.hits, takes_part),
            self.decided,
        )


def others(values: FloatArray, takes_part: BoolArray) -> FloatArray:
    """For each group, the sum of whole numbers over all other groups that take part.

    Shape (..., groups).  A group that takes no part is itself compared with all that do.

    >>> others(np.array([5.0, 3.0, 1.0]), np.array([True, True, False]))
    array([3., 5., 8.])
    """
    compared: FloatArray = np.where(takes_part, values, 0.0)
    whole: FloatArray = compared.sum(axis=-1, keepdims=True)
    return whole - compared


def cut_of_counts(counts: Counts, given: Given) -> Cut:
    """What the cut at ``k`` makes of the batch, shape (groups,)."""
    above = np.where(counts.ranks.rank <= int(given["k"]), 1.0, 0.0)
    rows, selected = counts.total("rows"), counts.total("rows", above)
    return Cut(
        rows,
        selected,
        counts.total("relevant"),
        counts.total("relevant", above),
        selected.sum(axis=-1, keepdims=True) < rows.sum(axis=-1, keepdims=True),
    )


def cut_of_lists(lists: Rankings, given: Given) -> Cut:
    """What the cut at ``k`` makes of each list, shape (lists, groups)."""
    groups = len(lists.groups.names)
    cell = lists.list_of * groups + lists.groups.code
    kind = 2 * lists.top(int(given["k"])) + lists.relevant
    counted: IntArray = np.bincount(4 * cell + kind, minlength=4 * lists.lists * groups)
    below, missed, chosen, hits = np.moveaxis(
        counted.reshape(lists.lists, groups, 4).astype(np.float64), -1, 0
    )
    return Cut(
        rows=below + missed + chosen + hits,
        selected=chosen + hits,
        qualified=missed + hits,
        hits=hits,
        decided=(below + missed).sum(axis=-1, keepdims=True) > 0,
    )


@dataclass(frozen=True)
class Rate:
    """A share of a group's rows, ``over / under``, both whole numbers.

    ``zero`` is the reason for a null where there is nothing to take a share of.
    """

    text: str
    over: Callable[[Cut], FloatArray]
    under: Callable[[Cut], FloatArray]
    zero: Reason
    columns: frozenset[str] = frozenset({"relevance"})

    def of(self, cut: Cut) -> FloatArray:
        """The rate in the shape of the cut; NaN without rows to take it of, or without a cut."""
        found: FloatArray = np.where(cut.decided, ratio_of(self.over(cut), self.under(cut)), np.nan)
        return found


SELECTION = Rate(
    "rows of g at ranks <= k / rows of g",
    over=lambda cut: cut.selected,
    under=lambda cut: cut.rows,
    zero=Reason.GROUP_ABSENT,
    columns=frozenset(),
)
TRUE_POSITIVES = Rate(
    "relevant rows of g at ranks <= k / relevant rows of g",
    over=lambda cut: cut.hits,
    under=lambda cut: cut.qualified,
    zero=Reason.NONE_QUALIFIED,
)
FALSE_POSITIVES = Rate(
    "irrelevant rows of g at ranks <= k / irrelevant rows of g",
    over=lambda cut: cut.selected - cut.hits,
    under=lambda cut: cut.rows - cut.qualified,
    zero=Reason.ALL_QUALIFIED,
)
FALSE_NEGATIVES = Rate(
    "relevant rows of g at ranks > k / relevant rows of g",
    over=lambda cut: cut.qualified - cut.hits,
    under=lambda cut: cut.qualified,
    zero=Reason.NONE_QUALIFIED,
)
FALSE_OMISSIONS = Rate(
    "relevant rows of g at ranks > k / rows of g at ranks > k",
    over=lambda cut: cut.qualified - cut.hits,
    under=lambda cut: cut.rows - cut.selected,
    zero=Reason.ALL_SELECTED,
)


def unjudged(counts: Counts, columns: frozenset[str]) -> FloatArray:
    """Rows that lack the relevance which ``columns`` ask for, shape (groups,)."""
    gone = counts.total("rows") - counts.total("judged")
    return gone if "relevance" in columns else np.zeros(len(counts.groups))


def rate_of_counts(rate: Rate) -> Term:
    """A rate of each group in the batch."""

    def of(counts: Counts, given: Given) -> GroupValues:
        cut = cut_of_counts(counts, given)
        return explained(
            rate.of(cut),
            [
                (cut.rows == 0, Reason.GROUP_ABSENT),
                (unjudged(counts, rate.columns) > 0, Reason.RELEVANCE_MISSING),
                (~cut.decided, Reason.ALL_SELECTED),
                (rate.under(cut) == 0, rate.zero),
            ],
        )

    return Term(rate.text, of, rate.columns)


def rate_of_lists(rate: Rate) -> ListFunction:
    """A rate of each group in each list; NaN where the list has none."""

    def of(lists: Rankings, given: Given) -> PerList:
        return PerList(rate.of(cut_of_lists(lists, given)))

    return of
