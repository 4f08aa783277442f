"""Fairness of a top-k cut: by hand, against Jurity, who is worst off, and why there is no value."""

import json
from typing import Any

import numpy as np
import pytest
from counted import evaluated
from places import GOLDEN
from rankings import batch_value, per_list, rankings
from top_k_lists import ALPHAS, COMPARISONS, RATES, agree, both, rows_of, values, values_of

from metrics import GroupMetric, SingleMetric
from metrics.top_k import TOP_K_METRICS

PUBLISHED = json.loads((GOLDEN / "top_k.json").read_text("utf-8"))

# -- by hand

ONE = "AbaABbaB"
"""At 4: of a's two relevant rows both are above the cut, of b's neither."""


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [
        ("SelectionRate", 3 / 4, 1 / 4),
        ("TPR", 2 / 2, 0 / 2),
        ("FPR", 1 / 2, 1 / 2),
        ("FNR", 0 / 2, 2 / 2),
        ("FOR", 0 / 1, 2 / 3),
        ("StatisticalParity", 3 / 4 - 1 / 4, 1 / 4 - 3 / 4),
        ("DisparateImpact", (3 / 4) / (1 / 4), (1 / 4) / (3 / 4)),
        ("EqualOpportunity", 1 - 0, 0 - 1),
        ("PredictiveEquality", 1 / 2 - 1 / 2, 1 / 2 - 1 / 2),
        ("FNRDifference", 0 - 1, 1 - 0),
        ("FORDifference", 0 - 2 / 3, 2 / 3 - 0),
        ("AverageOdds", ((1 / 2 - 1 / 2) + (1 - 0)) / 2, ((1 / 2 - 1 / 2) + (0 - 1)) / 2),
    ],
)
def test_one_list_by_hand(name: str, a: float, b: float) -> None:
    for label in both(name, 4):
        assert values(label, ONE) == agree({"a": a, "b": b})


def test_one_against_the_rest_of_three_groups() -> None:
    # Above: a a b.  Rates 2/2, 1/3 and 0/3; the rest is one group, not a mean of groups.
    word = "aabbbccc"
    assert values("StatisticalParity@3", word) == agree(
        {"a": 2 / 2 - 1 / 6, "b": 1 / 3 - 2 / 5, "c": 0 / 3 - 3 / 5}
    )
    assert values("DisparateImpact@3", word) == agree(
        {"a": (2 / 2) / (1 / 6), "b": (1 / 3) / (2 / 5), "c": 0 / (3 / 5)}
    )


def test_rows_without_a_group_are_candidates_but_not_the_rest() -> None:
    # The one row below the cut has no group: something was decided, and a and b are equal.
    for label in both("StatisticalParity", 4):
        assert values(label, "aabbx") == agree({"a": 0.0, "b": 0.0, "unknown": 0.0 - 4 / 4})
    assert values("SelectionRate@3", "aabxx") == agree({"a": 1, "b": 1, "unknown": 0})
    assert values("StatisticalParity@2", "axxbxx") == agree(
        {"a": 1 / 1 - 0 / 1, "b": 0 / 1 - 1 / 1, "unknown": 1 / 4 - 1 / 2}
    )


def test_rows_together_and_list_by_list_can_contradict_each_other() -> None:
    # In each list a is selected more often; most of a stands in the longer list, where few are.
    easy, hard = "abbbb", "aaaa" + "a" * 12 + "bbbb"
    a = ((1 / 1 - 3 / 4) + (4 / 16 - 0 / 4)) / 2
    assert values("StatisticalParity(per=list)@4", easy, hard) == agree({"a": a, "b": -a})
    a = 5 / 17 - 3 / 8
    assert values("StatisticalParity@4", easy, hard) == agree({"a": a, "b": -a})
    together, apart = (
        evaluated(label, rows_of(easy, hard)).scores[0] for label in both("StatisticalParity", 4)
    )
    assert (together.worst_group, apart.worst_group) == ("a", "b")


def test_by_list_every_one_of_three_groups_can_be_ahead_of_the_rest() -> None:
    # One group, each in its turn, is nearly the whole list, and the rest of the two others.
    words = ["abb" + "c" * 30, "bcc" + "a" * 30, "caa" + "b" * 30]
    ahead = ((1 / 1 - 1 / 32) + (1 / 2 - 1 / 31) + (0 / 30 - 2 / 3)) / 3
    assert ahead > 0.25
    assert values("StatisticalParity(per=list)@2", *words) == agree(dict.fromkeys("abc", ahead))
    assert values("StatisticalParity@2", *words) == agree(dict.fromkeys("abc", 0.0))


def test_impact_over_lists_is_a_ratio_of_means() -> None:
    # Ratios 2 and 1/2: their mean would be 1.25 for both groups.
    assert values("DisparateImpact(per=list)@3", "aabb", "bbaa") == agree({"a": 1, "b": 1})
    # The list in which b has nobody above the cut counts; its ratio would not exist.
    assert values("DisparateImpact(per=list)@2", "aabb", "abab") == agree(
        {"a": (2 / 2 + 1 / 2) / (0 / 2 + 1 / 2), "b": (0 / 2 + 1 / 2) / (2 / 2 + 1 / 2)}
    )
    found = evaluated("DisparateImpact(per=list)@2", rows_of("aabb", "abab"))
    assert found.lists is not None
    assert found.lists.tolist() == [2, 2]


# -- printed formulas that are not the metric


def test_average_odds_is_not_the_printed_formula() -> None:
    # a is ahead in both rates: FPR 1/2 against 0/1, TPR 2/2 against 1/2.  With the sign of the
    # TPR difference reversed, the two cancel out and the cut looks fair.
    word = "AaABbBa"
    assert values("FPR@4", word) == agree({"a": 1 / 2, "b": 0})
    assert values("TPR@4", word) == agree({"a": 2 / 2, "b": 0 / 2 + 1 / 2})
    printed = ((1 / 2 - 0) + (1 / 2 - 2 / 2)) / 2
    assert printed == 0
    for label in both("AverageOdds", 4):
        assert values(label, word)["a"] == agree(((1 / 2 - 0) + (2 / 2 - 1 / 2)) / 2)


def test_equal_opportunity_is_a_difference_and_not_a_ratio() -> None:
    word = "AaABbBa"
    for label in both("EqualOpportunity", 4):
        assert values(label, word) == agree({"a": 2 / 2 - 1 / 2, "b": 1 / 2 - 2 / 2})
    # Equal rates are 0, where a ratio is 1; none of b's above the cut is a number, too.
    assert values("EqualOpportunity@4", "ABABAB") == agree({"a": 0, "b": 0})
    assert values("EqualOpportunity@1", "AB") == agree({"a": 1, "b": -1})


# -- against Jurity


@pytest.mark.parametrize("case", PUBLISHED["cases"], ids=lambda case: "-".join(case["lists"])[:30])
def test_agrees_with_jurity(case: dict[str, Any]) -> None:
    compared = 0
    for group, expected in case["groups"].items():
        for name, value in expected.items():
            assert values(f"{name}@{case['k']}", *case["lists"])[group] == agree(value), name
            if len(case["lists"]) == 1:
                label = f"{name}(per=list)@{case['k']}"
                assert values(label, *case["lists"])[group] == agree(value), name
            compared += 1
    for name, value in case["whole"].items():
        found = values(f"{name}@{case['k']}", *case["lists"])
        # A logarithm or a reciprocal of benefit 0 is infinite there, and no value here.
        assert found == ("zero_benefit" if value == "inf" else agree(value)), name
        compared += 1
    assert compared == 7 * len(case["groups"]) + 7


DIFFERS: dict[tuple[str, str], tuple[Any, Any]] = {
    # It returns how many of the group were selected where the rest has none.
    ("rest has nobody above", "DisparateImpact"): (2.0, "none_selected"),
    # These need nothing relevant: the rates of what is not relevant, or below the cut, exist.
    ("no relevant in one group", "PredictiveEquality"): (None, 1 / 2 - 1 / 2),
    ("nothing relevant", "PredictiveEquality"): (None, 2 / 3 - 1 / 3),
    ("no relevant in one group", "FORDifference"): (None, 1 / 2 - 0 / 1),
    ("nothing relevant", "FORDifference"): (None, 0 / 1 - 0 / 2),
    # A share of nobody counts as 0 there, the best that a false omission rate can be.
    ("rest has nobody above", "FORDifference"): (0 - 1 / 2, "all_selected"),
    ("all of one group above", "FORDifference"): (0 - 2 / 3, "all_selected"),
    ("group all relevant, all above", "FORDifference"): ("error: ValueError", "all_selected"),
    # A group of one kind of rows makes its table of errors too small to unpack.
    ("group all relevant, all above", "EqualOpportunity"): ("error: ValueError", 2 / 2 - 0 / 2),
    ("group all relevant, all above", "FNRDifference"): ("error: ValueError", 0 / 2 - 2 / 2),
    # A cut that leaves nobody out is called fair there.
    **{
        ("all above", name): (1.0 if name == "DisparateImpact" else 0.0, "all_selected")
        for name in COMPARISONS
    },
}


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("edge", PUBLISHED["edges"])
def test_where_jurity_differs(edge: str, name: str) -> None:
    case = PUBLISHED["edges"][edge]
    theirs = case["groups"]["a"][name]
    ours = values(f"{name}@{case['k']}", *case["lists"])["a"]
    if (edge, name) in DIFFERS:
        expected, value = DIFFERS[edge, name]
        assert theirs == (agree(expected) if isinstance(expected, float) else expected)
        assert ours == (value if isinstance(value, str) else agree(value))
    elif theirs is None:
        assert ours in ("none_qualified", "all_qualified")
    else:
        assert ours == agree(theirs)


def test_where_jurity_differs_on_entropy() -> None:
    for edge, case in PUBLISHED["edges"].items():
        for name, value in case["whole"].items():
            found = values(f"{name}@{case['k']}", *case["lists"])
            if edge == "all above":
                assert found == "all_selected"
            else:
                assert found == ("zero_benefit" if value == "inf" else agree(value))


# -- who is worst off


@pytest.mark.parametrize(
    ("name", "worst", "best"),
    [(name, "b", "a") for name in (*RATES, *COMPARISONS)],
)
def test_who_is_worst_off(name: str, worst: str, best: str) -> None:
    # a has more above the cut whatever one asks for, and b more relevant rows below.
    for label in both(name, 6):
        for each in evaluated(label, rows_of("AaAaaBAaaBBb")).scores:
            assert (each.worst_group, each.best_group) == (worst, best), label


def test_the_furthest_group_decides_and_the_lowest_is_worst_off() -> None:
    # a is furthest from the rest, above it; c is the one that is worst off.
    found = evaluated("StatisticalParity@2", rows_of("aabbccc")).scores[0]
    assert found.value == agree(2 / 2 - 0 / 5)
    assert (found.worst_group, found.best_group) == ("c", "a")


def test_declared_directions() -> None:
    harms = {"FNR", "FOR", "FNRDifference", "FORDifference"}
    for metric in TOP_K_METRICS:
        measure = metric.usual
        assert metric.needs_cutoff
        assert metric.family.name == "top_k"
        assert ("relevance" in measure.columns) != (
            metric.name in ("SelectionRate", "StatisticalParity", "DisparateImpact")
        )
        if isinstance(metric, GroupMetric):
            assert metric.higher_is_better == (metric.name not in harms)
            ways = [way.name for way in metric.aggregations]
            if metric.name in COMPARISONS:
                assert ways == (["Min"] if metric.name == "DisparateImpact" else ["MaxAbs"])
            else:
                assert len(ways) == 7
        else:
            assert isinstance(metric, SingleMetric)
            assert (metric.fairest, metric.alarm, metric.grouped) == (0.0, "high", False)


# -- no value, and why


@pytest.mark.parametrize(
    ("label", "words", "reason"),
    [
        ("TPR@2", ["Aaab"], "none_qualified: b"),
        ("FPR@2", ["AaaB"], "all_qualified: b"),
        ("FNR@2", ["aabb"], "none_qualified"),
        ("FOR@2", ["aAbbB"], "all_selected: a"),
        ("SelectionRate@2", ["aaaa"], "one_group"),
        ("StatisticalParity@2", ["aaaa"], "one_group"),
        ("DisparateImpact@2", ["xxab"], "none_selected"),
        ("DisparateImpact(per=list)@2", ["xxab"], "none_selected"),
        ("EqualOpportunity@2", ["Aaab"], "none_qualified"),
        ("PredictiveEquality@2", ["ABBa"], "all_qualified"),
        ("AverageOdds@2", ["ABBa"], "all_qualified"),
        ("AverageOdds@2", ["abbA"], "none_qualified"),
        ("FNRDifference@2", ["Aaab"], "none_qualified"),
        ("FORDifference@2", ["aAbbB"], "all_selected"),
        ("SelectionRate(per=list)@4", ["aabb"], "all_selected"),
        ("TPR(per=list)@4", ["AaBb"], "not_enough_items"),
        ("StatisticalParity(per=list)@2", ["aaaa", "bbbb"], "not_enough_items"),
        ("GeneralizedEntropy(alpha=0)@2", ["aabB"], "zero_benefit"),
        ("GeneralizedEntropy(alpha=-1)@2", ["aabB"], "zero_benefit"),
    ],
)
def test_reasons(label: str, words: list[str], reason: str) -> None:
    found = evaluated(label, rows_of(*words))
    assert {(each.value, each.reason) for each in found.scores} == {(None, reason)}


def test_a_group_that_is_absent_here() -> None:
    rows = rows_of("aabb")
    for name in (*RATES, *COMPARISONS):
        found = evaluated(f"{name}@2", rows, groups=["c"])
        assert found.values is not None
        assert found.values.reasons[2] == "group_absent"
    # Without the other of two, both are without a comparison, and for the same reason.
    found = evaluated("StatisticalParity@2", rows_of("aaaa"), groups=["b"])
    assert found.scores[0].reason == "group_absent"


def test_relevance_that_is_missing() -> None:
    rows = rows_of("AabBaAbB")
    rows[3] = {**rows[3], "relevance": None}
    free = ("SelectionRate", "StatisticalParity", "DisparateImpact")
    for metric in TOP_K_METRICS:
        if metric.name in free:
            for label in both(metric.name, 4):
                assert evaluated(label, rows).scores[0].reason is None
            continue
        reason = evaluated(metric.at(4).label, rows).scores[0].reason
        named = metric.name in RATES
        assert reason == ("relevance_missing: b" if named else "relevance_missing")
        apart = evaluated(metric.at(4, per="list").label, rows).scores[0]
        assert apart.reason == "relevance_missing"
        # Relevance that is unknown does no harm where it is not needed, and never raises.
        assert per_list(metric.at(4, per="list").label, rankings(rows, "group")).value.size


def test_nobody_selected_and_everything_relevant() -> None:
    # Ranks may start below the cut: every benefit is 0, so none is a share of their mean.
    rows = [{**row, "rank": row["rank"] + 5} for row in rows_of("AABB")]
    for alpha in ALPHAS:
        assert values_of(f"GeneralizedEntropy(alpha={alpha})@5", rows) == "zero_benefit"
        assert np.isnan(
            batch_value(per_list(f"GeneralizedEntropy(alpha={alpha},per=list)@5", rankings(rows)))
        )
