"""Sentences on what verdicts rest on: thin groups, chance, certainty, slices that disagree."""

from typing import Any

import pytest

from pipeline.formatting.evidence import (
    apart_texts,
    chance_text,
    composition_text,
    few_text,
    power_text,
    slice_counts_text,
    thin_text,
)
from pipeline.scores.verdicts import Cause

Row = dict[str, Any]
SCORE: Row = {
    "slice": "all",
    "metric": "EXP",
    "aggregation": "MinMaxRatio",
    "status": "ok",
    "status_reason": None,
    "value": 0.85,
    "lower": 0.82,
    "upper": 0.88,
    "lists": 100,
    "rows": 1000,
}
OLD: Row = {"slice": "all", "metric": "EXP", "aggregation": "MinMaxRatio", "lists": 9, "rows": 9}


def test_every_cause_of_too_little_has_words() -> None:
    unsaid = few_text("no cause")
    for cause in Cause:
        assert (few_text(cause.value) == unsaid) != cause.value.startswith("few_")
    assert few_text(Cause.FEW_QUERIES, 1234.0) == "few queries (1,234)"


def test_a_few_groups_are_named_and_the_others_counted() -> None:
    names = '["A", "B", "C", "D", "E"]'
    assert thin_text({"thin_groups": None}) == thin_text({}) == ""
    assert thin_text({"thin_groups": '["A", "B"]'}) == (
        "A and B are not judged: too little evidence."
    )
    assert thin_text({"thin_groups": names}, {"B": "few rows (3)"}) == (
        "A (too little evidence), B (few rows (3)), C (too little evidence) and 2 more are not "
        "judged."
    )
    reason = {"status": "insufficient", "status_reason": "few_queries: A"}
    assert thin_text({"thin_groups": '["A"]', **reason}) == "A is not judged: few queries."


@pytest.mark.parametrize("status", ["ok", "insufficient", "breach", "composition", "undefined"])
def test_rows_of_before_say_nothing(status: str) -> None:
    row = {**OLD, "status": status, "status_reason": None, "value": 0.5, "lower": None}
    row["upper"] = None
    assert power_text(row) == thin_text(row) == ""
    assert bool(chance_text(row)) == (status == "composition")


def test_certainty_is_told_to_the_unfair_side() -> None:
    assert power_text(SCORE | {"assured": True, "detectable": 0.7, "lists_needed": 40}) == (
        "Assured: 0.820 to 0.880; a value below 0.700 would have been noticed in 4 of 5 such "
        "batches."
    )
    above = SCORE | {"aggregation": "MaxMinDiff", "detectable": 0.3}
    assert "value above 0.300" in power_text(above)
    # An old history may hold a score that is declared no more.
    assert power_text(SCORE | {"metric": "Gone", "detectable": 0.3}) == ""


def test_nothing_is_assured_where_a_group_is_missing() -> None:
    """A verdict of ok is taken back then, and what it rested on stays in the row."""
    assert power_text(SCORE | {"status": "insufficient", "assured": True}) == ""


def test_certainty_is_about_the_judged_groups() -> None:
    row = SCORE | {"assured": False, "judged_value": 0.9, "judged_lower": 0.7, "judged_upper": 1.0}
    assert power_text(row) == "Not assured: 0.700 to 1.00."


@pytest.mark.parametrize(
    ("needed", "said"),
    [
        (100, ""),
        (12_345, "About 12,000 lists would settle it."),
        (10**9, "More than 1,000 times as many lists would be needed to settle it."),
    ],
)
def test_lists_that_are_needed_are_an_estimate(needed: int, said: str) -> None:
    assert power_text(SCORE | {"status": "insufficient", "lists_needed": needed}) == said


def test_chance_is_told_with_how_often_it_is_as_unfair() -> None:
    breach = SCORE | {"status": "breach", "expected": 0.93}
    assert chance_text(breach) == "Chance alone gives 0.930."
    assert chance_text(breach | {"p_noise": 0.0}).endswith("is as unfair with p < 0.0001.")


def test_composition_says_that_the_order_is_not_what_is_unfair() -> None:
    against = {"against_chance_lower": 0.95, "against_chance_upper": 1.0}
    said = chance_text(SCORE | {"status": "composition", "against_chance": 0.98, **against})
    assert said == composition_text({"against_chance": 0.98, **against})
    assert said.endswith(
        "what groups differ in is not their order. Against chance it is 0.980, 0.950 to 1.00."
    )


def parts(*statuses: str, rows: int = 300, name: str = "market") -> list[Row]:
    return [SCORE | {"slice": name, "status": status, "rows": rows} for status in statuses]


def test_a_breach_of_no_slice_by_itself_is_told() -> None:
    """Simpson's paradox: fair in every market, and not in all of them together."""
    whole = SCORE | {"status": "breach"}
    assert list(apart_texts(whole, parts("ok", "ok"))) == [
        "the whole batch breaches, and no slice of market by itself (2 ok): the groups are in "
        "different ones"
    ]
    # What could not be judged may be the breach.
    assert list(apart_texts(whole, parts("ok", "ok", "insufficient"))) == [
        "the whole batch breaches, and no slice of market by itself (2 ok, 1 insufficient): not "
        "all of them can be judged"
    ]


def test_slices_that_make_up_for_each_other_are_told() -> None:
    assert list(apart_texts(SCORE, parts("breach", "breach"))) == [
        "every slice of market that can be judged breaches by itself (2 breach), and the whole "
        "batch does not (0.850): the slices make up for each other"
    ]


@pytest.mark.parametrize(
    ("status", "slices"),
    [
        ("breach", parts("ok", "breach")),
        ("ok", parts("ok", "breach")),
        ("insufficient", parts("breach", "breach")),
        ("breach", parts("ok")),
        ("breach", parts("ok", "ok", rows=100)),
        ("breach", parts("insufficient", "insufficient")),
        ("breach", parts("ok") + parts("ok", name="device")),
    ],
)
def test_where_nothing_contradicts_nothing_is_told(status: str, slices: list[Row]) -> None:
    assert not list(apart_texts(SCORE | {"status": status}, slices))


def test_verdicts_of_slices_are_counted_by_column() -> None:
    slices = [*parts("ok", "breach", "composition"), *parts("undefined"), *parts("ok", name="app")]
    assert slice_counts_text(slices) == "app 1 ok; market 1 breach, 1 composition, 1 ok"
    assert slice_counts_text([SCORE]) == ""
