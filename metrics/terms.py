"""The numerators and denominators that group metrics are written with.

A term turns counts into one number per group, or says why a group has none.  ``ratio`` joins two
terms into a metric's definition; the formula in the documentation is joined from their texts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from metrics.counts import Counts
from metrics.reasons import Reason
from metrics.weights import FloatArray, Weight

Value = float | int | str | bool
Given = Mapping[str, Value]
"""Parameter values by name, with the cut-off under ``k`` (0 when there is none)."""


@dataclass(frozen=True)
class GroupValues:
    """One number per group, shape (groups,); NaN exactly where ``reasons`` is not None."""

    values: FloatArray
    reasons: tuple[Reason | None, ...]


@dataclass(frozen=True)
class Term:
    """One side of a ratio: its text in formulas, the log columns it needs, how it is computed.

    ``zero`` is the reason for a null when the term is a denominator and zero.
    """

    text: str
    of: Callable[[Counts, Given], GroupValues]
    columns: frozenset[str] = frozenset()
    zero: Reason | None = None


def _defined(values: FloatArray) -> GroupValues:
    return GroupValues(values, (None,) * len(values))


def _undefined(count: int, reason: Reason) -> GroupValues:
    return GroupValues(np.full(count, np.nan), (reason,) * count)


def _where(values: FloatArray, present: FloatArray, reason: Reason) -> GroupValues:
    """``values`` where ``present`` is true, null with ``reason`` elsewhere."""
    return GroupValues(
        np.where(present, values, np.nan), tuple(None if yes else reason for yes in present)
    )


def weighted(weight: Weight) -> Term:
    """Sum of a position weight over the rows of each group; ranks below the cut-off weigh 0."""

    def of(counts: Counts, given: Given) -> GroupValues:
        ranks = counts.ranks.rank
        numbers = {name: float(v) for name, v in given.items() if isinstance(v, int | float)}
        at = weight.at(ranks, numbers)
        cutoff = numbers.get("k", 0.0)
        if cutoff:
            at = np.where(ranks <= cutoff, at, 0.0)
        return _defined(counts.total("rows", at))

    return Term(f"sum of {weight.formula}", of)


def _appearances(counts: Counts, given: Given) -> GroupValues:
    rows = counts.total("rows")
    if given.get("denominator") != "catalogue":
        return _defined(rows)
    if counts.catalogue is None:
        return _undefined(len(rows), Reason.CATALOGUE_MISSING)
    items = np.array([counts.catalogue.get(group, 0) for group in counts.groups], dtype=np.float64)
    return _defined(items * counts.lists)


def _summed(column: str, known: str, missing: Reason) -> Callable[[Counts, Given], GroupValues]:
    def of(counts: Counts, given: Given) -> GroupValues:
        complete = counts.total(known) == counts.total("rows")
        return _where(counts.total(column), complete, missing)

    return of


def _relevant(counts: Counts, given: Given) -> GroupValues:
    if not counts.binary:
        return _undefined(len(counts.groups), Reason.RELEVANCE_NOT_BINARY)
    complete = counts.total("judged") == counts.total("rows")
    return _where(counts.total("relevant"), complete, Reason.RELEVANCE_MISSING)


def _lists(counts: Counts, given: Given) -> GroupValues:
    return _defined(np.full(len(counts.groups), float(counts.lists)))


def _pair_shares(counts: Counts, given: Given) -> GroupValues:
    if counts.pairs is None:
        return _undefined(len(counts.groups), Reason.NOT_COUNTED)
    return _defined(counts.pairs.share)


def _pair_lists(counts: Counts, given: Given) -> GroupValues:
    if counts.pairs is None:
        return _undefined(len(counts.groups), Reason.NOT_COUNTED)
    return _defined(counts.pairs.lists.astype(np.float64))


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
        present = counts.total("rows") > 0
        if given.get("denominator") == "catalogue":
            present = np.full(len(present), fill_value=True)
        top, bottom = over.of(counts, given), under.of(counts, given)
        reasons: list[Reason | None] = []
        for here, a, b, low in zip(
            present, top.reasons, bottom.reasons, bottom.values, strict=True
        ):
            reason = None if here else Reason.GROUP_ABSENT
            reasons.append(reason or a or b or (under.zero if low == 0 else None))
        defined = np.array([reason is None for reason in reasons], dtype=bool)
        values = np.full(len(present), np.nan)
        np.divide(top.values, bottom.values, out=values, where=defined)
        return GroupValues(values, tuple(reasons))

    text = f"{_one_word(over.text)} / {_one_word(under.text)}"
    return Term(text, of, over.columns | under.columns)


def _one_word(text: str) -> str:
    return f"({text})" if " " in text else text
