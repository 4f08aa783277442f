"""The numerators and denominators that group metrics are written with.

A term turns counts into one number per group, or says why a group has none.  ``ratio`` joins two
terms into a metric's definition; the formula in the documentation is joined from their texts.

Not here: metrics, and numbers that are computed list by list (``rankings``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from metrics.counts import Counts
from metrics.reasons import Reason
from metrics.weights import BoolArray, FloatArray, Weight, ratio_of

Value = float | int | str | bool
Given = Mapping[str, Value]
"""Parameter values by name, with the cut-off under ``k`` (0 when there is none)."""


Number = float | FloatArray | Reason
"""What a metric that is one number gives: for a batch, for replicates of it (shape (...,)), or why
there is none."""
Causes = Sequence[tuple[BoolArray, Reason]]
"""Where a reason for a null holds, in the order in which reasons are told."""


@dataclass(frozen=True)
class GroupValues:
    """One number per group, shape (..., groups), and why some are NaN.

    Counts of a batch give shape (groups,); leading axes are those of replicates.
    """

    values: FloatArray
    causes: Causes = ()

    @cached_property
    def reasons(self) -> tuple[Reason | None, ...]:
        """Why each group of a batch has no value, None where it has one."""
        holding = [(np.broadcast_to(mask, self.values.shape), why) for mask, why in self.causes]
        return tuple(
            next((why for mask, why in holding if mask[at]), None) for at in range(len(self.values))
        )


def explained(values: FloatArray, causes: Causes) -> GroupValues:
    """``values``, but null where a cause holds; the first that does is the reason."""
    null = np.zeros(values.shape, dtype=np.bool_)
    for mask, _ in causes:
        null = null | mask
    return GroupValues(np.where(null, np.nan, values), tuple(causes))


def missing(groups: int, reason: Reason) -> GroupValues:
    """No group has a value, all for one reason."""
    return explained(np.zeros(groups), [(np.ones(groups, dtype=np.bool_), reason)])


@dataclass(frozen=True)
class Term:
    """One side of a ratio: its text in formulas, the log columns it needs, how it is computed.

    ``zero`` is the reason for a null when the term is a denominator and zero.
    """

    text: str
    of: Callable[[Counts, Given], GroupValues]
    columns: frozenset[str] = frozenset()
    zero: Reason | None = None


def weighted(weight: Weight) -> Term:
    """Sum of a position weight over the rows of each group; ranks below the cut-off weigh 0."""

    def of(counts: Counts, given: Given) -> GroupValues:
        ranks = counts.ranks.rank
        numbers = {name: float(v) for name, v in given.items() if isinstance(v, int | float)}
        at = weight.at(ranks, numbers)
        cutoff = numbers.get("k", 0.0)
        if cutoff:
            at = np.where(ranks <= cutoff, at, 0.0)
        return GroupValues(counts.total("rows", at))

    return Term(f"sum of {weight.formula}", of)


def _appearances(counts: Counts, given: Given) -> GroupValues:
    rows = counts.total("rows")
    if given.get("denominator") != "catalogue":
        return GroupValues(rows)
    if counts.catalogue is None:
        return missing(len(counts.groups), Reason.CATALOGUE_MISSING)
    items = np.array([counts.catalogue.get(group, 0) for group in counts.groups], dtype=np.float64)
    return GroupValues(items * counts.lists)


def _summed(column: str, known: str, gone: Reason) -> Callable[[Counts, Given], GroupValues]:
    def of(counts: Counts, given: Given) -> GroupValues:
        incomplete = counts.total(known) < counts.total("rows")
        return explained(counts.total(column), [(incomplete, gone)])

    return of


def _relevant(counts: Counts, given: Given) -> GroupValues:
    if not counts.binary:
        return missing(len(counts.groups), Reason.RELEVANCE_NOT_BINARY)
    incomplete = counts.total("judged") < counts.total("rows")
    return explained(counts.total("relevant"), [(incomplete, Reason.RELEVANCE_MISSING)])


def _lists(counts: Counts, given: Given) -> GroupValues:
    return GroupValues(np.ones(len(counts.groups)) * counts.lists)


def _pair_shares(counts: Counts, given: Given) -> GroupValues:
    if counts.pairs is None:
        return missing(len(counts.groups), Reason.NOT_COUNTED)
    return GroupValues(counts.pairs.share)


def _pair_lists(counts: Counts, given: Given) -> GroupValues:
    if counts.pairs is None:
        return missing(len(counts.groups), Reason.NOT_COUNTED)
    return GroupValues(counts.pairs.lists.astype(np.float64))


appearances = Term("n_g", _appearances, zero=Reason.GROUP_ABSENT)
lists = Term("R", _lists, zero=Reason.NO_LISTS)
relevance = Term(
    "sum of relevance",
    _summed("relevance", "judged", Reason.RELEVANCE_MISSING),
    frozenset({"relevance"}),
    Reason.ZERO_RELEVANCE,
)
clicks = Term(
    "sum of click", _summed("click", "click_known", Reason.CLICK_MISSING), frozenset({"click"})
)
relevant = Term("relevant rows", _relevant, frozenset({"relevance"}), zero=Reason.NO_RELEVANT_ITEMS)
pair_shares = Term("sum over lists of mixed pairs won / mixed pairs", _pair_shares)
pair_lists = Term("lists with mixed pairs", _pair_lists, zero=Reason.NO_MIXED_PAIRS)


def ratio(over: Term, under: Term) -> Term:
    """``over / under`` per group.

    A group without rows is absent, whatever the terms say: a total of nothing is not a zero.  The
    exception is a denominator taken from the catalogue, which counts items that were never shown.
    """

    def of(counts: Counts, given: Given) -> GroupValues:
        absent = counts.total("rows") == 0
        if given.get("denominator") == "catalogue":
            absent = np.zeros(len(counts.groups), dtype=np.bool_)
        top, bottom = over.of(counts, given), under.of(counts, given)
        causes = [(absent, Reason.GROUP_ABSENT), *top.causes, *bottom.causes]
        if under.zero is not None:
            causes.append((bottom.values == 0, under.zero))
        return explained(ratio_of(top.values, bottom.values), causes)

    text = f"{_one_word(over.text)} / {_one_word(under.text)}"
    return Term(text, of, over.columns | under.columns)


def _one_word(text: str) -> str:
    return f"({text})" if " " in text else text
