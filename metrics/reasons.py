"""Why a value is null.

Here: the closed list of reasons.  Not here: when one of them holds, and anything else.
"""

from enum import StrEnum
from typing import Self


class Coded(StrEnum):
    """A closed list of codes for machines, each with a text that says what it means."""

    text: str

    def __new__(cls, code: str, text: str) -> Self:  # noqa: D102
        member = str.__new__(cls, code)
        member._value_ = code
        member.text = text
        return member


class Reason(Coded):
    """Cause of an undefined value."""

    NO_LISTS = "no_lists", "no list was accepted"
    ONE_GROUP = "one_group", "fewer than two groups to compare"
    GROUP_ABSENT = "group_absent", "the group has no rows here"
    ZERO_RELEVANCE = "zero_relevance", "the group's relevance sums to zero"
    NO_RELEVANT_ITEMS = "no_relevant_items", "no row is relevant"
    NO_MIXED_PAIRS = "no_mixed_pairs", "no list holds the group beside another group"
    RELEVANCE_MISSING = "relevance_missing", "relevance is missing on some rows"
    RELEVANCE_NOT_BINARY = "relevance_not_binary", "relevance holds values other than 0 and 1"
    CLICK_MISSING = "click_missing", "click is missing on some rows"
    REFERENCE_MISSING = "reference_missing", "no row has a rank in the reference ranking"
    PROPENSITY_MISSING = "propensity_missing", "propensity is missing where it is needed"
    PREDICTION_MISSING = "prediction_missing", "predicted_click is missing where it is needed"
    NOT_ENOUGH_ITEMS = "not_enough_items", "too few items that can be compared"
    NOT_COMPARED = "not_compared", "the group takes no part, or there is no share it should have"
    NONE_SELECTED = "none_selected", "nobody of those compared with stands above the cut-off"
    NOT_ON_TOP = "not_on_top", "no item of the group stands above the cut-off"
    NO_LIST_FAILS = "no_list_fails", "no list that can be tested fails the test"
    ALL_SELECTED = "all_selected", "nobody stands below the cut-off"
    NONE_QUALIFIED = "none_qualified", "no item of the group, or of the others, is relevant"
    ALL_QUALIFIED = "all_qualified", "every item of the group, or of the others, is relevant"
    ZERO_BENEFIT = "zero_benefit", "a relevant item below the cut-off has benefit 0: no index"
    ALL_ZERO = "all_zero", "every group's value is zero, so they have no ratio"
    ZERO_MINIMUM = "zero_minimum", "the lowest group's value is zero, or too small to divide by"
    CATALOGUE_MISSING = "catalogue_missing", "no item table gives the groups' sizes"
    TARGET_MISSING = "target_missing", "no target shares are set for the attribute"
    NOT_COUNTED = "not_counted", "the stored counts lack what this metric needs"
    SUPPRESSED = "suppressed", "numbers about too few people or queries are not told"


BELOW_ALL = frozenset({Reason.NOT_ON_TOP})
"""Reasons of values that no number is low enough for: a limit from below is passed for sure."""
