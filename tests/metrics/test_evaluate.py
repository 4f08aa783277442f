"""From counts to scores, at the edges: what is missing, who is absent, what no number can hold."""

import sys
from dataclasses import replace
from math import log, log2
from typing import Any

import numpy as np
import pytest
import top_k_lists
from brute_force import SMOOTHING
from counted import by_group, counts_of, evaluated
from list_native_lists import all_rows, close
from rankings import Row

from metrics import (
    PREFIX_UNIT,
    UNIT,
    UNKNOWN,
    Counts,
    ItemCounts,
    ListSums,
    PrefixCounts,
    Reason,
    evaluate,
    parse_measure,
    parse_score,
)
from metrics.aggregations import AGGREGATIONS, WORST_DIFFERENCE, WORST_RATIO, Range
from metrics.asked import asked
from metrics.base import GroupMetric, Measure, Metric, SingleMetric
from metrics.evaluate import deciding, way_of
from metrics.fairness.prefixes import SMOOTHED_ZERO, steps, tails
from metrics.quality.ideal import highest_first
from metrics.replicates import Replicated, Replicates, bare_ranks, replicated
from metrics.terms import GroupValues, explained

TWO = all_rows("AABB", "ABAB")


def said(label: str, counts: Any) -> set[str]:
    """The reasons of all scores."""
    return {score.reason or "none" for score in evaluate(parse_measure(label), counts).scores}


def test_units_are_those_of_stored_batches() -> None:
    """A batch file holds sums in these units: another unit would read them wrong."""
    assert (UNIT, PREFIX_UNIT) == (2**60, 2**56)


def test_the_largest_ratio_that_a_number_holds_is_one() -> None:
    [ratio] = [each for each in AGGREGATIONS if each.name == "MaxMinRatio"]
    largest = sys.float_info.max
    assert ratio.undefined(np.array([1.0, largest])) is None
    assert ratio.of(np.array([1.0, largest])) == largest
    assert ratio.undefined(np.array([0.5, largest])) is Reason.ZERO_MINIMUM
    assert ratio.undefined(np.array([0.0, 1e-320])) is Reason.ZERO_MINIMUM


def test_the_worst_difference_is_the_largest_either_way() -> None:
    assert WORST_DIFFERENCE.of(np.array([-3.0, 1.0])) == 3.0
    assert WORST_DIFFERENCE.of(np.array([[-1.0, 2.0], [0.5, -0.25]])).tolist() == [2.0, 0.5]


def test_relevance_is_asked_for_where_it_is_needed() -> None:
    columns = {column for column, _ in asked(parse_measure("ERBR(decay=0.75)"), 3).totals}
    assert columns == {"rows", "judged", "relevant"}
    fields = {name: asked(parse_measure(name), 3).fields for name in ("EXP", "NDKL", "ARP", "IAA")}
    tables = {"pairs", "prefixes", "items", "list_sums"}
    assert {name: set(of & tables) for name, of in fields.items()} == {
        "EXP": set(), "NDKL": {"prefixes"}, "ARP": {"pairs"}, "IAA": {"items"}
    }  # fmt: skip


@pytest.mark.parametrize(
    ("label", "known", "reason"),
    [
        ("CTR", {"rows": 1}, Reason.CLICK_MISSING),
        ("P@1", {"rows": 1}, Reason.RELEVANCE_MISSING),
        ("P@1", {}, Reason.RELEVANCE_MISSING),
        ("P@1", {"rows": 2, "relevance": 1}, Reason.RELEVANCE_MISSING),
        # Of several, the first by name is told.
        ("CTR(method=dr)@1", {"rows": 1}, Reason.CLICK_MISSING),
        ("CTR(method=dr)@1", {"rows": 1, "click": 1}, Reason.PREDICTION_MISSING),
    ],
)
def test_a_column_that_nobody_counted_is_missing(
    label: str, known: dict[str, int], reason: Reason
) -> None:
    assert said(label, replace(counts_of(TWO[:1]), known_rows=known)) == {reason}


def test_references_that_are_not_there() -> None:
    for reference, reason, given in (
        ("catalogue", Reason.CATALOGUE_MISSING, {"catalogue": {"A": 1, "B": 1}}),
        ("target", Reason.TARGET_MISSING, {"target": {"A": 0.5, "B": 0.5}}),
    ):
        for name in ("TargetAWRF", "FAIR"):
            label = f"{name}(reference={reference})" + "@10" * (name == "FAIR")
            assert {each.reason for each in evaluated(label, TWO).scores} == {reason}
            assert reason not in {each.reason for each in evaluated(label, TWO, **given).scores}


def test_a_group_without_rows_is_absent_from_metrics_of_lists() -> None:
    found = by_group(evaluated("SelectionRate(per=list)@1", TWO, groups=["C"]))
    assert found["C"] is Reason.GROUP_ABSENT
    assert found["A"] == 1 / 2


def test_a_score_without_an_aggregation_is_no_score_of_groups() -> None:
    with pytest.raises(TypeError, match="NDKL has groups but no aggregation"):
        way_of(parse_score("NDKL"))


# -- NDKL and IAA, on sums that are written down


def prefixes() -> PrefixCounts:
    """Of two lists: A and B have 3/4 and 1/4 of the weighted prefixes."""
    return PrefixCounts(np.array([-0.2, -0.1]), np.array([1.5, 0.5]), np.array([0.3, 0.1]))


def ndkl(reference: str, **given: Any) -> Any:
    counts = replace(counts_of(TWO), prefixes=prefixes(), **given)
    [score] = evaluate(parse_measure(f"NDKL(reference={reference})"), counts).scores
    return score.reason or score.value


def test_divergence_from_shares_by_hand() -> None:
    assert ndkl("list") == close((0.3 + 0.1) / 2)
    for reference in ("target", "catalogue"):
        entropy = 2 * SMOOTHED_ZERO + (-0.2 - 0.1) / 2
        cross = sum(
            (share + SMOOTHING) * log(wanted + SMOOTHING)
            for share, wanted in ((0.75, 0.2), (0.25, 0.8))
        )
        assert ndkl(reference, **{reference: {"A": 1, "B": 4}}) == close(entropy - cross)


def test_divergence_from_shares_that_lack_a_group() -> None:
    entropy = 2 * SMOOTHED_ZERO + (-0.2 - 0.1) / 2
    cross = (0.75 + SMOOTHING) * log(1 + SMOOTHING) + (0.25 + SMOOTHING) * log(SMOOTHING)
    assert ndkl("target", target={"A": 0.5}) == close(entropy - cross)


def test_divergence_from_shares_of_a_group_that_is_not_there() -> None:
    entropy = 3 * SMOOTHED_ZERO + (-0.2 - 0.1) / 2
    cross = sum(
        (share + SMOOTHING) * log(wanted + SMOOTHING)
        for share, wanted in ((0.75, 0.25), (0.25, 0.25), (0, 0.5))
    )
    assert ndkl("target", target={"A": 1, "B": 1, "C": 2}) == close(entropy - cross)


def test_divergence_without_anything_to_diverge_from() -> None:
    assert ndkl("target") == Reason.TARGET_MISSING
    assert ndkl("catalogue") == Reason.CATALOGUE_MISSING
    assert ndkl("target", catalogue={"A": 1, "B": 1}) == Reason.TARGET_MISSING
    one = replace(counts_of(all_rows("AA")), prefixes=prefixes())
    assert said("NDKL", one) == {Reason.ONE_GROUP}
    alone = replace(one, target={"A": 1.0, UNKNOWN: 1.0})
    assert said("NDKL(reference=target)", alone) == {Reason.ONE_GROUP}
    assert said("NDKL", counts_of(TWO)) == {Reason.NOT_COUNTED}


def test_later_rows_of_a_group_by_hand() -> None:
    """Row k: s ln(c), c ln(c), -1, nothing, s^2/2 (1/c), each as c goes from k - 1 to k."""
    s = SMOOTHING

    def nearly(*wanted: float) -> Any:
        return pytest.approx(list(wanted), rel=1e-9, abs=0)

    for k in (2, 3, 5):
        entropy = k * log(k) - (k - 1) * log(k - 1)
        gone = s * s / 2 * (1 / k - 1 / (k - 1))
        assert steps(5)[k].tolist() == nearly(s * log(k / (k - 1)), entropy, -1, 0, gone)
    assert steps(1)[1].tolist() == nearly(s * (1 - log(s)), 0, -1, -s, s * s / 2)


def test_sums_over_prefixes_by_hand() -> None:
    """Columns: w, w/i, w ln(i)/i, w ln(i), w i, where w = 1 / log2(i + 1)."""
    wanted = [
        sum(part(i) / log2(i + 1) for i in (1, 2, 3))
        for part in (lambda i: 1, lambda i: 1 / i, lambda i: log(i) / i, log, lambda i: i)
    ]
    assert tails(3)[3].tolist() == close(wanted)
    assert tails(3)[0].tolist() == [0] * 5


def iaa(normalised: bool, rows: list[Row], items: ItemCounts | None) -> Any:
    counts = replace(counts_of(rows), items=items)
    [score] = evaluate(parse_measure(f"IAA(normalised={str(normalised).lower()})"), counts).scores
    return score.reason or score.value


def test_attention_and_relevance_of_items_by_hand() -> None:
    judged = [{**row, "relevance": 1.0} for row in TWO]
    items = ItemCounts(3.0, 0.5, 2, 4.0, 6.0, 8)
    assert iaa(False, judged, items) == 3.0 / 2
    assert iaa(True, judged, items) == 0.5 / 2
    assert iaa(True, judged, replace(items, share_lists=0)) == Reason.NO_RELEVANT_ITEMS
    assert iaa(False, judged, None) == Reason.NOT_COUNTED
    # The rows of one group alone lack their relevance.
    some = [{**row, "relevance": 1.0 if row["group"] == "A" else None} for row in TWO]
    assert iaa(False, some, items) == Reason.RELEVANCE_MISSING


def gini(items: ItemCounts | None, pool: str = "shown", **given: Any) -> Any:
    counts = replace(counts_of(TWO), items=items, **given)
    [score] = evaluate(parse_measure(f"Gini(items={pool})"), counts).scores
    return score.reason or score.value


def test_inequality_of_items_by_hand() -> None:
    """Items with the exposures 1, 2 and 3, then with one that nobody saw."""
    shown = ItemCounts(0.0, 0.0, 0, 1.0 + 2 + 3, 1 * 1.0 + 2 * 2 + 3 * 3, 3)
    assert gini(shown) == close((-2 * 1 + 0 * 2 + 2 * 3) / (3 * 6))
    unseen = (-3 * 0 - 1 * 1 + 1 * 2 + 3 * 3) / (4 * 6)
    assert gini(shown, "catalogue", catalogue={"A": 3, "B": 1}) == close(unseen)
    assert gini(shown, "catalogue", catalogue={"A": 1, "B": 1}) == gini(shown), "an old item table"
    assert gini(shown, "catalogue") == Reason.CATALOGUE_MISSING
    assert gini(None) == Reason.NOT_COUNTED


# -- what stands beside a number


def test_how_many_lists_a_score_of_lists_rests_on() -> None:
    judged = [{**row, "relevance": 1.0 if row["list_id"] == "q00000" else 0.0} for row in TWO]
    [score] = evaluated("P@1", judged).scores
    assert (score.value, score.lists) == (1.0, 1)
    label = "SelectionRate(per=list)@1"
    assert {each.lists for each in evaluated(label, all_rows("AB", "BA", "AA")).scores} == {2}
    assert {each.lists for each in evaluated("EXP", TWO).scores} == {None}


def test_a_query_is_no_list() -> None:
    label = "EEL(decay=0.5)"
    counts = replace(
        counts_of(TWO),
        known_rows={"rows": 8, "relevance": 8},
        list_sums={(label, None): ListSums(np.array([2]), np.array([3.0]), np.array([2.0]))},
    )
    [score] = evaluate(parse_measure(label), counts).scores
    assert (score.value, score.lists) == (3.0 / 2, None)


def test_replicates_of_a_metric_that_was_not_counted_have_no_values() -> None:
    bare = Replicates(
        lists=np.array([[2], [2]]), groups=("A", "B"), ranks=bare_ranks(4), binary=True
    )
    found = evaluated("SelectionRate(per=list)@2", TWO)
    assert replicated(found, bare) == Replicated(None, (None,) * len(found.scores))
    key = (found.measure.label, None)
    sums = ListSums(np.ones(2), np.array([[1.0, 0.5], [0.2, 0.8]]), np.array([[1.0, 1], [2, 1]]))
    both = replicated(found, replace(bare, list_sums={key: sums}))
    np.testing.assert_array_equal(both.groups, [[1.0, 0.5], [0.1, 0.8]])
    assert both.scores[0] is not None
    assert both.scores[0].tolist() == [0.5 / 1.0, 0.1 / 0.8]


def test_replicates_of_a_number_of_lists_are_sums_divided() -> None:
    judged = [{**row, "relevance": 1.0} for row in TWO]
    bare = Replicates(
        lists=np.array([[2], [2]]), groups=("A", "B"), ranks=bare_ranks(4), binary=True
    )
    found = evaluated("P@1", judged)
    assert replicated(found, bare) == Replicated(None, (None,))
    sums = ListSums(np.ones(2), np.array([[1.0], [3.0]]), np.array([[2.0], [4.0]]))
    [score] = replicated(found, replace(bare, list_sums={("P@1", None): sums})).scores
    assert score is not None
    assert score.tolist() == [1 / 2, 3 / 4]


def test_lists_are_those_of_the_groups_compared() -> None:
    with_unknown = all_rows("AB.", "AB.", "ABA")
    found = evaluated("SelectionRate(per=list)@1", with_unknown)
    assert {score.lists for score in found.scores} == {3}


def test_a_number_of_lists_that_speaks_of_groups_needs_two() -> None:
    for label, reason in (
        ("TargetAWRF(reference=list)", Reason.ONE_GROUP),
        # What is missing is told before.
        ("TargetAWRF(reference=target)", Reason.TARGET_MISSING),
    ):
        assert {score.reason for score in evaluated(label, all_rows("AA", "A.")).scores} == {reason}
    [score] = evaluated("TargetAWRF(reference=list)", all_rows("ABAB")).scores
    assert score.value is not None


def test_sizes_of_groups_of_the_item_table() -> None:
    """EXP over appearances: two lists of ranks 1 and 2, of which A has the first."""
    rows = all_rows("AB", "AB")
    label = "EXP(denominator=catalogue)"
    assert by_group(evaluated(label, rows)) == dict.fromkeys("AB", Reason.CATALOGUE_MISSING)
    found = by_group(evaluated(label, rows, catalogue={"A": 4, "B": 1, "C": 5}))
    second = 1 / log2(3)
    assert found == close({"A": 2 / (4 * 2), "B": 2 * second / (1 * 2), "C": 0.0})


def test_the_first_cause_that_holds_is_the_reason() -> None:
    first, second = np.array([True, False, False]), np.array([True, True, False])
    found = explained(
        np.array([1.0, 2.0, 3.0]), [(first, Reason.ALL_ZERO), (second, Reason.NO_LISTS)]
    )
    assert found.reasons == (Reason.ALL_ZERO, Reason.NO_LISTS, None)
    np.testing.assert_array_equal(found.values, [np.nan, np.nan, 3.0])


def test_groups_that_cannot_decide_are_passed_over_unless_nobody_can() -> None:
    def among(*lacking: int) -> GroupValues:
        mask = np.isin(np.arange(3), lacking)
        return explained(np.array([0.5, 1.0, 2.0]), [(mask, Reason.NONE_SELECTED)])

    assert deciding(WORST_RATIO, among(1), [0, 1, 2]) == [0, 2]
    assert deciding(WORST_RATIO, among(0, 1, 2), [0, 1, 2]) == [0, 1, 2]
    assert deciding(WORST_DIFFERENCE, among(1), [0, 1, 2]) == [0, 1, 2]


def replicates(label: str, *batches: Counts) -> Replicates:
    """Batches of the same groups as replicates of one, with what a label asks of them."""
    depth = max(int(batch.ranks.rank.max()) for batch in batches)
    totals = {
        (column, known): np.stack(
            [
                batch.total(column, None if weight is None else weight[batch.ranks.rank - 1])
                for batch in batches
            ]
        )
        for (column, known), weight in asked(parse_measure(label), depth).totals.items()
    }
    lists = np.array([[batch.lists] for batch in batches])
    groups = batches[0].groups
    return Replicates(lists, groups, bare_ranks(depth), True, totals=totals)


def test_entropy_of_replicates_of_which_some_have_none() -> None:
    """Of a benefit of 0 there is no logarithm; the third has nothing below the cut."""
    label = "GeneralizedEntropy(alpha=0)@1"
    none, some, above = (counts_of(top_k_lists.rows_of(*words))
                         for words in (["aB"], ["ab", "Ba"], ["a", "b"]))  # fmt: skip
    found = evaluate(parse_measure(label), some)
    [whole] = found.scores
    [score] = replicated(found, replicates(label, none, some, above)).scores
    assert score is not None
    assert np.isnan(score[[0, 2]]).all()
    assert score[1] == whole.value


# -- terms


def test_terms_by_hand() -> None:
    rows = [{**row, "relevance": 1.0} for row in all_rows("AB", "AB")]
    assert by_group(evaluated("EXP@1", rows)) == close({"A": 2 / 2, "B": 0 / 2})
    # 100 p (1 - p)^(k - 1), per list.
    assert by_group(evaluated("AWRF(p=0.1)", rows)) == close({"A": 2 * 10 / 2, "B": 2 * 9 / 2})
    # (1 - d) d^(k - 1), per list and per relevant row.
    assert by_group(evaluated("ERBE(decay=0.75)", rows)) == close({"A": 0.25, "B": 0.25 * 0.75})
    assert by_group(evaluated("ERBR(decay=0.75)", rows)) == close(
        {"A": 2 * 0.25 / 2, "B": 2 * 0.25 * 0.75 / 2}
    )
    rows[0]["relevance"] = None
    found = by_group(evaluated("ERBR(decay=0.75)", rows))
    assert found == {"A": Reason.RELEVANCE_MISSING, "B": close(0.25 * 0.75)}


def test_what_is_neither_counted_nor_summed_over_lists() -> None:
    judged = counts_of([{**row, "relevance": 1.0} for row in TWO])
    assert said("P@1", judged) == {Reason.NOT_COUNTED}
    assert said("SelectionRate(per=list)@1", judged) == {Reason.NOT_COUNTED}
    bare = Metric("Bare", "Of no kind", Range(0.0, 1.0), "nobody")
    with pytest.raises(TypeError, match="Bare is neither a GroupMetric nor a SingleMetric"):
        evaluate(Measure(bare, ()), judged)
    single = SingleMetric("Bare", "A number", Range(0.0, 1.0), "nobody", text="none")
    groups = GroupMetric("Bare", "A number per group", Range(0.0, 1.0), "nobody")
    for nothing in (single, groups):
        with pytest.raises(TypeError, match="says neither how counts nor how lists"):
            evaluate(Measure(nothing, ()), judged)


def test_replicates_without_relevance_have_no_value_and_the_others_have() -> None:
    judged = [{**row, "relevance": 1.0} for row in TWO]
    measure = parse_measure("IAA(normalised=true)")
    found = evaluate(
        measure, replace(counts_of(judged), items=ItemCounts(3.0, 0.5, 2, 4.0, 6.0, 8))
    )
    rows = np.array([[4.0, 4.0], [4.0, 4.0]])
    both = Replicates(
        lists=np.array([[2], [2]]), groups=("A", "B"), ranks=bare_ranks(4), binary=True,
        items=ItemCounts(0.0, np.array([0.0, 0.5]), np.array([0, 2]), 0.0, 0.0, 8),
        totals={("rows", None): rows, ("judged", None): rows},
    )  # fmt: skip
    [score] = replicated(found, both).scores
    assert score is not None
    np.testing.assert_array_equal(score, [np.nan, 0.5 / 2])


def test_of_groups_of_which_one_has_no_ratio_only_the_worst_is_known() -> None:
    [score] = evaluated("DisparateImpact@1", all_rows("AB")).scores
    assert (score.value, score.worst_group, score.best_group) == (0.0, "B", None)


def test_an_advantage_is_over_the_lists_that_hold_both() -> None:
    found = by_group(evaluated("DisparateImpact(per=list)@1", all_rows("AB", "BA", "AA")))
    assert found == {"A": 1.0, "B": 1.0}


def test_values_in_falling_order_by_stretch() -> None:
    values = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 6.0])
    for lengths, wanted in (
        ([3, 3], [3, 2, 1, 6, 5, 4]),
        ([2, 4], [3, 1, 6, 5, 4, 2]),
        ([1] * 6, values),
        ([6], [6, 5, 4, 3, 2, 1]),
    ):
        assert highest_first(values, np.array(lengths)).tolist() == list(wanted)
    assert highest_first(np.zeros(0), np.zeros(0, dtype=np.int64)).shape == (0,)


def test_attention_of_a_query_falls_from_one() -> None:
    weight = parse_measure("EEL(decay=0.5)").metric.by_query
    assert weight is not None
    assert weight.at(np.array([1, 2, 3]), {"decay": 0.5}).tolist() == [1, 1 / 2, 1 / 4]
