"""The formulas on counts: aggregations, weights, prefixes, and every way to have no value."""

from collections.abc import Callable, Sequence
from itertools import product
from math import fsum, isclose, log, log2, sqrt
from typing import Any

import numpy as np
import pytest
from brute_force import SMOOTHING, single_value
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import TEN, Found, Row, Rows, scored, shown, table

from metrics import (
    AGGREGATIONS,
    METRICS,
    UNIT,
    Counts,
    RankHistogram,
    Reason,
    evaluate,
    parse_measure,
)
from metrics.aggregations import WORST_DIFFERENCE, WORST_RATIO, Range
from metrics.comparison import COMPARISON_METRICS
from metrics.fairness.prefixes import SMOOTHED_ZERO, TERMS, steps, tails
from metrics.weights import attention, exposure, rbp
from pipeline import score

BY_NAME = {aggregation.name: aggregation for aggregation in AGGREGATIONS}


def agree(expected: object) -> object:
    return pytest.approx(expected, rel=1e-12, abs=0)


# -- aggregations


def test_aggregations_by_hand() -> None:
    values = [3.0, 1.0, 4.0]
    mean = 8 / 3
    expected = {
        "MinMaxRatio": 1 / 4,
        "MaxMinRatio": 4 / 1,
        "MaxMinDiff": 4 - 1,
        "MaxAbsDiff": mean - 1,
        "MeanAbsDev": ((3 - mean) + (mean - 1) + (4 - mean)) / 3,
        "LTwo": sqrt(9 + 1 + 16),
        "Variance": ((3 - mean) ** 2 + (1 - mean) ** 2 + (4 - mean) ** 2) / 3,
    }
    assert {name: each.of(np.array(values)) for name, each in BY_NAME.items()} == agree(expected)


def test_aggregations_of_many_draws_at_once() -> None:
    draws = np.array([[3.0, 1.0, 4.0], [2.0, 2.0, 2.0], [0.5, 8.0, 1.0]])
    for aggregation in AGGREGATIONS:
        each = [float(aggregation.of(draw)) for draw in draws]
        assert aggregation.of(draws) == agree(each), aggregation.name


def test_two_equal_groups_are_fair_but_for_the_norm() -> None:
    values = np.array([0.3, 0.3])
    for aggregation in AGGREGATIONS:
        assert aggregation.undefined(values) is None
        fairest = 0.3 * sqrt(2) if aggregation.fairest is None else aggregation.fairest
        assert aggregation.of(values) == agree(fairest), aggregation.name


def test_many_equal_groups_are_exactly_fair() -> None:
    for count, value in product((3, 5, 6, 7, 20), (0.1, 0.3, 0.7, 1 / 3, 1 / log2(3))):
        values = np.full(count, value)
        for aggregation in AGGREGATIONS:
            if aggregation.fairest is not None:
                assert aggregation.of(values) == aggregation.fairest, aggregation.name


values = st.lists(st.floats(0, 100), min_size=2, max_size=20)


@given(values)
def test_aggregations_stay_in_the_range_of_their_values(drawn: list[float]) -> None:
    for aggregation in AGGREGATIONS:
        if aggregation.undefined(np.array(drawn)) is None and min(drawn) > 1e-300:
            found = float(aggregation.of(np.array(drawn)))
            assert found in aggregation.range(0.0, 100.0), aggregation.name


@pytest.mark.parametrize(
    ("name", "extreme", "bound"),
    [
        ("MaxMinDiff", [0, 1], 1.0),
        ("MeanAbsDev", [0, 0, 1, 1], 1 / 2),
        ("Variance", [0, 1], 1 / 4),
        ("MinMaxRatio", [0, 1], 0.0),
    ],
)
def test_a_range_is_no_wider_than_need_be(name: str, extreme: list[int], bound: float) -> None:
    found = float(BY_NAME[name].of(np.array(extreme, dtype=float)))
    assert found == bound
    assert bound in (BY_NAME[name].range(0, 1).low, BY_NAME[name].range(0, 1).high)


def test_ranges_of_aggregations_of_values_that_can_be_negative() -> None:
    """Of values in [-3, 1], which are 4 apart at most."""
    found = {name: str(each.range(-3.0, 1.0)) for name, each in BY_NAME.items()}
    assert found == {
        "MinMaxRatio": "[0, 1]",
        "MaxMinRatio": "[1, inf)",
        "MaxMinDiff": "[0, 4]",
        "MaxAbsDiff": "[0, 4]",
        "MeanAbsDev": "[0, 2]",
        "LTwo": "[0, inf)",
        "Variance": "[0, 4]",
    }
    assert str(WORST_DIFFERENCE.range(-3.0, 1.0)) == "[0, 3]"
    assert str(WORST_DIFFERENCE.range(-1.0, 3.0)) == "[0, 3]"
    assert str(WORST_RATIO.range(-3.0, 1.0)) == "[-3, 1]"


def test_a_range_has_room_for_rounding_in_proportion() -> None:
    assert 1e6 * (1 + 1e-13) in Range(0.0, 1e6)
    assert 1e6 * (1 + 1e-11) not in Range(0.0, 1e6)
    assert -1e-13 in Range(0.0, 1e6)
    assert -1e-11 not in Range(0.0, 1e6)


def test_ratios_of_zeros() -> None:
    zeros, low = np.array([0.0, 0.0]), np.array([0.0, 2.0])
    for name, aggregation in BY_NAME.items():
        ratio = name in ("MinMaxRatio", "MaxMinRatio")
        assert aggregation.undefined(zeros) is (Reason.ALL_ZERO if ratio else None)
        infinite = name == "MaxMinRatio"
        assert aggregation.undefined(low) is (Reason.ZERO_MINIMUM if infinite else None)
    assert BY_NAME["MinMaxRatio"].of(low) == 0.0


def test_unfair_sides() -> None:
    assert {name: (each.fairest, each.alarm) for name, each in BY_NAME.items()} == {
        "MinMaxRatio": (1.0, "low"),
        "MaxMinRatio": (1.0, "high"),
        "MaxMinDiff": (0.0, "high"),
        "MaxAbsDiff": (0.0, "high"),
        "MeanAbsDev": (0.0, "high"),
        "LTwo": (None, None),
        "Variance": (0.0, "high"),
    }


@given(values, st.floats(0.01, 100))
def test_aggregations_follow_a_change_of_scale(drawn: list[float], factor: float) -> None:
    powers = {"MinMaxRatio": 0, "MaxMinRatio": 0, "Variance": 2}
    drawn = [max(value, 1e-3) for value in drawn]
    for name, aggregation in BY_NAME.items():
        once = float(aggregation.of(np.array(drawn)))
        scaled = float(aggregation.of(np.array(drawn) * factor))
        expected = once * factor ** powers.get(name, 1)
        # Differences of nearly equal values are rounding.
        slack = 1e-14 * (max(drawn) * factor) ** max(1, powers.get(name, 1))
        assert isclose(scaled, expected, rel_tol=1e-9, abs_tol=slack), name


# -- position weights


RANKS = np.array([1, 2, 3, 10, 200, 1_000_000])


def test_weights_by_formula() -> None:
    assert exposure.at(RANKS, {}) == agree([1 / log2(k + 1) for k in RANKS.tolist()])
    for p in (0.001, 0.1, 0.5, 0.999):
        expected = [100 * p * (1 - p) ** (k - 1) for k in RANKS.tolist()]
        assert attention.at(RANKS, {"p": p}) == pytest.approx(expected, rel=1e-9, abs=0)
    for decay in (0.01, 0.75, 0.999999):
        expected = [(1 - decay) * decay ** (k - 1) for k in RANKS.tolist()]
        assert rbp.at(RANKS, {"decay": decay}) == pytest.approx(expected, rel=1e-9, abs=0)


def test_attention_and_rbp_are_spent_in_full() -> None:
    ranks = np.arange(1, 2001)
    for p in (0.05, 0.3, 0.9):
        assert fsum(attention.at(ranks, {"p": p})) == agree(100.0)
        assert fsum(rbp.at(ranks, {"decay": 1 - p})) == agree(1.0)


def test_a_weight_of_any_size_is_exact() -> None:
    # 0.01^149 is 1e-298: scaled integers would have lost it after nine ranks.
    rows = shown("a" * 149 + "b")
    found = scored(rows, metrics=["ERBE(decay=0.01)", "AWRF(p=0.99)"])
    assert found.values("ERBE(decay=0.01)")["b"] == agree(0.99 * 0.01**149)
    assert found.values("ERBE(decay=0.01)")["a"] == agree(1.0)
    assert found.values("AWRF(p=0.99)")["b"] == agree(99 * (1 - 0.99) ** 149)


def test_a_weight_below_the_smallest_double_is_a_zero_with_a_reason() -> None:
    found = scored(shown("a" * 199 + "b"), metrics=["ERBE(decay=0.01)"])
    assert found.values("ERBE(decay=0.01)") == {"a": agree(1.0), "b": 0.0}
    assert found.score("ERBE(decay=0.01).MinMaxRatio")["value"] == 0.0
    row = found.score("ERBE(decay=0.01).MaxMinRatio")
    assert (row["value"], row["reason"]) == (None, "zero_minimum")


def test_a_ratio_beyond_the_largest_double_is_no_number() -> None:
    found = scored(shown("a" * 157 + "b"), metrics=["ERBE(decay=0.01)"])
    row = found.score("ERBE(decay=0.01).MaxMinRatio")
    assert (row["value"], row["reason"]) == (None, "zero_minimum")
    assert found.score("ERBE(decay=0.01).MinMaxRatio")["value"] > 0


# -- prefixes


def divergence(letters: str) -> float:
    """NDKL of one list from running counts: every prefix in full, O(n) groups at a time."""
    names = sorted(set(letters))
    own = [letters.count(name) / len(letters) for name in names]
    counts = dict.fromkeys(names, 0)
    parts, weights = [], []
    for length, letter in enumerate(letters, start=1):
        counts[letter] += 1
        weights.append(1 / log2(length + 1))
        parts += [
            weights[-1]
            * (counts[name] / length + SMOOTHING)
            * log((counts[name] / length + SMOOTHING) / (share + SMOOTHING))
            for name, share in zip(names, own, strict=True)
        ]
    return fsum(parts) / fsum(weights)


LONG = {
    "one rare item, last": "a" * 1999 + "b",
    "one rare item, first": "b" + "a" * 1999,
    "one rare item in the middle": "a" * 1000 + "b" + "a" * 999,
    "two rare groups": "a" * 700 + "b" + "a" * 800 + "c" + "a" * 498,
    "halves": "a" * 1000 + "b" * 1000,
    "in turn": "ab" * 1000,
    "twenty groups in turn": "abcdefghijklmnopqrst" * 100,
    "half of them alone": "a" * 1000 + "".join(chr(0x4E00 + at) for at in range(100)) + "a" * 900,
}


def test_the_running_count_agrees_with_the_brute_force() -> None:
    for letters in ("ab", "aab", "abcabc", "b" + "a" * 30, "abcdefghijklmnopqrst" * 2):
        assert single_value("NDKL", shown(letters), "group") == agree(divergence(letters))


def test_prefix_divergence_of_long_lists() -> None:
    found = scored(
        [{**row, "kind": name} for name, letters in LONG.items() for row in
         [{**each, "list_id": name} for each in shown(letters)]],
        metrics=["NDKL"],
        slices=["kind"],
    )  # fmt: skip
    for name, letters in LONG.items():
        value = found.scores["kind", name, "group", "NDKL"]["value"]
        assert value == pytest.approx(divergence(letters), rel=1e-9, abs=0), name


@given(st.text("abc", min_size=1, max_size=60))
def test_prefix_tables_give_the_entropy_of_each_list(letters: str) -> None:
    tail, step = tails(len(letters)), steps(len(letters))
    assert tail.shape == step.shape == (len(letters) + 1, TERMS)
    own = dict.fromkeys(letters, 0)
    found = len(own) * SMOOTHED_ZERO
    for position, letter in enumerate(letters, start=1):
        own[letter] += 1
        found += float(step[own[letter]] @ (tail[-1] - tail[position - 1])) / tail[-1, 0]
    counts = dict.fromkeys(own, 0)
    expected = 0.0
    for length, letter in enumerate(letters, start=1):
        counts[letter] += 1
        expected += sum(
            (n / length + SMOOTHING) * log(n / length + SMOOTHING) for n in counts.values()
        ) / log2(length + 1)
    expected /= sum(1 / log2(length + 1) for length in range(1, len(letters) + 1))
    assert isclose(found, expected, rel_tol=1e-10, abs_tol=1e-12)


# -- the sums that metrics are made of


def test_a_total_is_rounded_once() -> None:
    rows = np.array([1, 1, 1, 1], dtype=np.int64)
    nothing = np.zeros(4)
    ranks = RankHistogram(
        np.array([0, 0, 0, 2]), np.array([1, 2, 3, 1]), rows, rows, rows, nothing, rows, nothing
    )
    counts = Counts(1, ("a", "b", "c"), ranks, binary=True)
    # Left to right, 1 would vanish beside 1e100; the group without cells sums to nothing.
    assert counts.total("rows", np.array([1e100, 1.0, -1e100, 0.5])).tolist() == [1.0, 0.0, 0.5]


@settings(max_examples=20)
@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=30))
def test_sums_of_relevance_keep_fifteen_digits(relevance: list[float]) -> None:
    scaled = [round(value * UNIT) for value in relevance]
    assert isclose(sum(scaled) / UNIT, fsum(relevance), rel_tol=1e-15)


def test_a_tiny_relevance_is_graded() -> None:
    rows = shown("aab", relevance=[[1e-20, 1.0, 1.0]])
    assert scored(rows, metrics=["ERBR"]).values("ERBR(decay=0.75)") == {
        "a": "relevance_not_binary",
        "b": "relevance_not_binary",
    }


# -- worst and best


def who(found: Found, label: str) -> tuple[str | None, str | None]:
    row = found.score(label)
    return row["worst_group"], row["best_group"]


def test_ties_go_to_the_first_name() -> None:
    # Exposure of the first rank is 1 for a and c, 1 / log2(3) for b and d.
    rows = shown("cd", "ab")
    assert who(scored(rows, metrics=["EXP"]), "EXP.MaxMinDiff") == ("b", "a")


def test_equal_groups_have_no_worst() -> None:
    assert who(scored(shown("ab", "ba"), metrics=["EXP"]), "EXP.MaxMinDiff") == (None, None)


def test_a_ratio_that_is_undefined_still_knows_who() -> None:
    found = scored(shown("ab"), metrics=["EXP@1", "ARP"])
    assert found.score("ARP.MaxMinRatio")["reason"] == "zero_minimum"
    assert who(found, "ARP.MaxMinRatio") == ("b", "a")
    assert who(found, "EXP@1.MaxMinRatio") == ("b", "a")


# -- no value: one case for each reason


def reasons(rows: Sequence[Row], labels: list[str], **options: Any) -> set[str | None]:
    found = scored(rows, metrics=labels, **options)
    return {row["reason"] for row in found.scores.values()}


def no_lists() -> set[str | None]:
    """Slices and batches without lists have no rows, so it takes counts made by hand."""
    nothing = np.zeros(0, dtype=np.int64)
    empty = RankHistogram(*([nothing] * 8))
    found = [
        each.reason
        for metric in METRICS
        for each in evaluate(metric.usual, Counts(0, ("a", "b"), empty, binary=True)).scores
    ]
    return set(found)


def not_counted() -> set[str | None]:
    one = np.array([0, 1]), *([np.array([1, 1])] * 7)
    counts = Counts(1, ("a", "b"), RankHistogram(*one), binary=True)
    measures = [parse_measure(label) for label in ("ARP", "NDKL", "IAA")]
    return {found.reason for each in measures for found in evaluate(each, counts).scores}


def sliced(*parts: tuple[str, str]) -> Rows:
    rows = shown(*(letters for _, letters in parts))
    kinds = {f"l{number}": kind for number, (kind, _) in enumerate(parts)}
    return [{**row, "kind": kinds[row["list_id"]], "relevance": 1.0, "click": 1.0} for row in rows]


def group_absent() -> set[str | None]:
    labels = [metric.usual.label for metric in TEN if metric.per_group]
    found = scored(
        sliced(("x", "ab"), ("y", "aa")),
        metrics=labels,
        slices=["kind"],
        settings={"groups": {"group": ["a", "b"]}},
    )
    for label in labels:
        assert found.groups["kind", "y", "group", label]["b"]["reason"] == "group_absent"
    return {
        row["reason"] for (_, part, *_), row in found.scores.items() if part == "y"
    } - {"no_mixed_pairs: a"}  # fmt: skip


CASES: dict[Reason, tuple[Callable[[], set[str | None]], set[str]]] = {
    Reason.NO_LISTS: (no_lists, {"no_lists"}),
    Reason.NOT_COUNTED: (not_counted, {"not_counted"}),
    Reason.ONE_GROUP: (
        lambda: reasons(
            shown("aa.", relevance=[[1, 1, 1]], click=[[1, 1, 1]]),
            # A target may name groups that no list shows, so its absence is told first.
            [each.usual.label for each in METRICS if each.grouped and each.name != "TargetAWRF"],
        ),
        {"one_group"},
    ),
    Reason.GROUP_ABSENT: (group_absent, {"group_absent: b"}),
    Reason.ZERO_RELEVANCE: (
        lambda: reasons(
            shown("abc", relevance=[[1, 0, 0]], click=[[0, 0, 0]]), ["EXPU", "EXPRU", "EXPU@1"]
        ),
        {"zero_relevance: b"},
    ),
    Reason.NO_RELEVANT_ITEMS: (
        lambda: reasons(shown("ab", relevance=[[0, 0]]), ["ERBR", "IAA(normalised=true)"]),
        {"no_relevant_items"},
    ),
    Reason.NO_MIXED_PAIRS: (
        lambda: reasons(shown("ab", "cc"), ["ARP"]),
        {"no_mixed_pairs: c"},
    ),
    Reason.RELEVANCE_MISSING: (
        lambda: reasons(
            shown("ab", click=[[1, 1]]), ["EXPU", "EXPRU", "ERBR", "IAA", "IAA(normalised=true)"]
        ),
        {"relevance_missing"},
    ),
    Reason.RELEVANCE_NOT_BINARY: (
        lambda: reasons(shown("ab", "ab", relevance=[[1, 1], [1, 0.5]]), ["ERBR"]),
        {"relevance_not_binary"},
    ),
    Reason.CLICK_MISSING: (
        lambda: reasons(shown("ab", relevance=[[1, 1]], click=[[1, None]]), ["EXPRU"]),
        {"click_missing: b"},
    ),
    Reason.ALL_ZERO: (
        lambda: {
            scored(shown(".ab"), metrics=["EXP@1"]).score(f"EXP@1.{name}")["reason"]
            for name in ("MinMaxRatio", "MaxMinRatio")
        },
        {"all_zero"},
    ),
    Reason.ZERO_MINIMUM: (
        lambda: reasons(shown("ab"), ["ARP"]) - {None},
        {"zero_minimum"},
    ),
    Reason.CATALOGUE_MISSING: (
        lambda: reasons(
            shown("ab"),
            [f"{name}(denominator=catalogue)" for name in ("EXP", "AWRF", "ERBP")]
            + ["NDKL(reference=catalogue)"],
        ),
        {"catalogue_missing"},
    ),
    Reason.TARGET_MISSING: (
        lambda: reasons(shown("ab"), ["NDKL(reference=target)", "TargetAWRF"]),
        {"target_missing"},
    ),
    Reason.REFERENCE_MISSING: (
        lambda: reasons(shown("ab"), [each.usual.label for each in COMPARISON_METRICS]),
        {"reference_missing"},
    ),
    Reason.PROPENSITY_MISSING: (
        lambda: reasons(shown("ab", click=[[1, 0]]), ["CTR(method=ips)"]),
        {"propensity_missing"},
    ),
    Reason.PREDICTION_MISSING: (
        lambda: reasons(
            shown("ab", click=[[1, 0]], propensity=[[1, 1]], predicted_click=[[1, None]]),
            ["CTR(method=dr)"],
        ),
        {"prediction_missing"},
    ),
    Reason.NOT_ENOUGH_ITEMS: (
        lambda: reasons(shown("ab", reference_rank=[[1, None]]), ["Kendall", "Pearson"]),
        {"not_enough_items"},
    ),
    Reason.NONE_SELECTED: (
        # Who has all there is has no ratio; where one of the others has, the lowest is known.
        lambda: reasons(shown(".ab"), ["DisparateImpact@1"]),
        {"none_selected"},
    ),
    Reason.ALL_SELECTED: (
        lambda: reasons(
            shown("ab", relevance=[[1, 0]]),
            ["SelectionRate@2", "SelectionRate(per=list)@2", "Skew@2", "Theil@2"],
        ),
        {"all_selected"},
    ),
    Reason.NONE_QUALIFIED: (
        lambda: reasons(shown("ab", relevance=[[1, 0]]), ["TPR@1", "FNR@1"]),
        {"none_qualified: b"},
    ),
    Reason.ALL_QUALIFIED: (
        lambda: reasons(shown("ab", relevance=[[1, 0]]), ["FPR@1"]),
        {"all_qualified: a"},
    ),
    Reason.NOT_COMPARED: (
        lambda: {scored(shown("ab."), metrics=["Skew@1"]).values("Skew@1")["unknown"]},
        {"not_compared"},
    ),
    Reason.NOT_ON_TOP: (lambda: reasons(shown("ab"), ["Skew@1"]), {"not_on_top: b"}),
    Reason.NO_LIST_FAILS: (
        lambda: reasons(shown("ab" * 10), ["FAIRFirst@10"]),
        {"no_list_fails"},
    ),
    Reason.ZERO_BENEFIT: (
        lambda: reasons(shown("ab", relevance=[[0, 1]]), ["GeneralizedEntropy(alpha=0)@1"]),
        {"zero_benefit"},
    ),
}


def test_groups_of_the_item_table_are_compared_though_never_shown() -> None:
    label = "EXP(denominator=catalogue)"
    items: Rows = [{"item_id": str(at), "group": g} for at, g in enumerate(["a", "a", "b", "c"])]
    unknown: Row = {"item_id": "?", "group": None}
    second = 1 / log2(3)
    # Items without a group are a group only where they are shown.
    found = scored(shown("ab"), items=[*items, unknown], metrics=[label])
    assert found.values(label) == {"a": 1 / 2, "b": agree(second), "c": 0.0}
    assert found.score(f"{label}.MaxMinDiff")["value"] == agree(second)
    assert who(found, f"{label}.MaxMinDiff") == ("c", "b")
    found = scored(shown("a.", "ad"), items=[*items, unknown], metrics=[label])
    assert found.values(label) == {
        "a": 2 / (2 * 2), "b": 0.0, "c": 0.0, "d": "group_absent", "unknown": agree(second / 2),
    }  # fmt: skip
    assert found.score(f"{label}.MaxMinDiff")["reason"] == "group_absent: d"


@pytest.mark.parametrize("reason", CASES, ids=str)
def test_a_value_that_is_undefined_says_why(reason: Reason) -> None:
    made, expected = CASES[reason]
    assert made() == expected
    assert {text.split(":")[0] for text in expected} == {reason.value}


def test_every_reason_has_a_case() -> None:
    # What is not told has a value; it is left out where it is published.
    assert set(CASES) == set(Reason) - {Reason.SUPPRESSED}


def test_undefined_leaves_the_other_metrics_standing() -> None:
    rows = shown("ab", relevance=[[1, 0.5]], click=[[1, 1]])
    found = scored(rows)
    null = {row["metric"] for row in found.scores.values() if row["value"] is None}
    assert null == {"ERBR(decay=0.75)", "ARP"}
    assert found.score("ARP.MaxMinRatio")["reason"] == "zero_minimum"


def test_one_undefined_group_names_itself_unless_all_share_the_cause() -> None:
    some = shown("abc", relevance=[[1, None, None]])
    assert reasons(some, ["EXPU"]) == {"relevance_missing: b"}
    every = shown("abc", relevance=[[None, None, None]])
    assert reasons(every, ["EXPU"]) == {"relevance_missing"}
    # Two causes: the first group in name order speaks.
    mixed = shown("abc", relevance=[[0, None, 1]])
    assert reasons(mixed, ["EXPU"]) == {"zero_relevance: a"}


def test_the_unknown_group_is_counted_and_speaks_only_if_asked() -> None:
    rows = shown(".ab", relevance=[[None, 1, 1]])
    found = scored(rows, metrics=["EXPU", "ARP"])
    assert found.values("EXPU")["unknown"] == "relevance_missing"
    assert found.score("EXPU.MaxMinDiff")["value"] == agree(1 / log2(3) - 1 / 2)
    assert found.values("ARP") == {"a": 1 / 2, "b": 0.0, "unknown": 1.0}
    asked = scored(
        rows, metrics=["EXPU", "ARP"], settings={"unknown_group": {"in_aggregations": True}}
    )
    assert asked.score("EXPU.MaxMinDiff")["reason"] == "relevance_missing: unknown"
    assert asked.score("ARP.MaxMinDiff")["value"] == 1.0
    assert asked.score("ARP.MaxMinDiff")["best_group"] == "unknown"


def test_a_metric_without_groups_has_no_group_values() -> None:
    assert score(table(shown("ab")), ["group"], metrics=["NDKL"], groups=True).empty
