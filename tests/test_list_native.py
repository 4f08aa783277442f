"""List-native fairness: by hand, against other programs, against loops, and at the edges."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, permutations
from math import log, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import slow_list_native as slow
from hypothesis import given, settings
from hypothesis import strategies as st
from rankings import batch_value, per_list, rankings

from metrics import (
    Counts,
    GroupMetric,
    ListSums,
    PerList,
    RankHistogram,
    Rankings,
    Reason,
    evaluate,
    parse_measure,
)
from metrics.list_native import LIST_NATIVE_METRICS
from metrics.list_native.binomial_test import minima
from metrics.list_native.expected_exposure import target_exposure

GOLDEN = json.loads((Path(__file__).parent / "golden" / "list_native.json").read_text())
LABELS = (
    "Skew(per=list)@3",
    "Skew(per=list)@10",
    "Skew(reference=target,per=list)@5",
    "Skew(reference=catalogue,per=list)@5",
    "rND(step=2)",
    "rND(step=5)",
    "rND",
    "rRD(step=2)",
    "rRD(step=5)",
    "rRD",
    "rKL(step=2)",
    "rKL(step=3)",
    "rKL",
    "FAIR@5",
    "FAIR@10",
    "FAIR(alpha=0.25,reference=target)@8",
    "FAIR(reference=catalogue)@10",
    "FAIRFirst@10",
    "FAIRFirst(alpha=0.25,reference=target)@8",
    "TargetAWRF",
    "TargetAWRF@3",
    "TargetAWRF(weight=geometric,p=0.3)",
    "TargetAWRF(reference=list)@5",
    "TargetAWRF(reference=catalogue)",
    "Pairwise",
    "Pairwise(pairs=inter)",
    "Pairwise(pairs=intra)",
    "Pairwise(over=lists)",
    "Pairwise(pairs=inter,over=lists)",
)
QUERY_LABELS = ("EEL(decay=0.5)", "EED(decay=0.5)", "EER(decay=0.5)", "EEL(decay=0.9)")
Row = dict[str, Any]
Found = Any


def close(expected: object) -> Any:
    return pytest.approx(expected, rel=1e-9, abs=1e-12)


def rows_of(text: str, relevance: Sequence[float] = (), name: str = "q") -> list[Row]:
    """One list with a group per letter; a dot is an item without a group."""
    return [
        {
            "list_id": name,
            "item_id": f"{name}{at}",
            "rank": at + 1,
            "g": None if letter == "." else letter,
            "relevance": relevance[at] if relevance else None,
        }
        for at, letter in enumerate(text)
    ]


def lists_of(*texts: str, **context: Any) -> Rankings:
    rows = [row for at, text in enumerate(texts) for row in rows_of(text, name=f"q{at:03}")]
    return rankings(rows, "g", **context)


def of_list(label: str, text: str, **context: Any) -> Found:
    """What a label says of one list: a number, or a number per group."""
    lists = lists_of(text, **context)
    value = per_list(label, lists).value[0]
    if np.ndim(value) == 0:
        return float(value)
    return dict(zip(lists.groups.names, value.tolist(), strict=True))


def counts_of(
    texts: Sequence[str],
    target: Mapping[str, float] | None = None,
    catalogue: Mapping[str, int] | None = None,
) -> Counts:
    """Counts of some lists, with a group per letter."""
    cells: dict[tuple[str, int], int] = {}
    for text in texts:
        for at, letter in enumerate(text):
            key = ("unknown" if letter == "." else letter, at + 1)
            cells[key] = cells.get(key, 0) + 1
    expected = {*(target or {}), *(catalogue or {})}
    names = tuple(sorted({*expected, *(name for name, _ in cells)}))
    order = sorted(cells)
    nothing = np.zeros(len(order))
    ranks = RankHistogram(
        np.array([names.index(name) for name, _ in order]),
        np.array([rank for _, rank in order]),
        np.array([cells[key] for key in order]),
        *(nothing.astype(np.int64), nothing.astype(np.int64)),
        *(nothing, nothing.astype(np.int64), nothing),
    )
    return Counts(len(texts), names, ranks, binary=False, target=target, catalogue=catalogue)


def pooled(label: str, counts: Counts) -> dict[str, Any]:
    """Group values of a label on counts, or the reason why a group has none."""
    found = evaluate(parse_measure(label), counts)
    assert found.values is not None
    return {
        name: value if reason is None else reason
        for name, value, reason in zip(
            found.groups, found.values.values.tolist(), found.values.reasons, strict=True
        )
    }


# -- declarations


def test_every_metric_has_defaults_that_it_takes() -> None:
    labels = [metric.usual.label for metric in LIST_NATIVE_METRICS]
    assert labels == [
        "Skew@10",
        "rND",
        "rKL",
        "rRD",
        "FAIR@10",
        "FAIRFirst@10",
        "TargetAWRF",
        "Pairwise",
        "EEL(decay=0.5)",
        "EED(decay=0.5)",
        "EER(decay=0.5)",
        "Gini",
    ]
    for label in (*labels, *LABELS, *QUERY_LABELS):
        assert parse_measure(label).label == label


@pytest.mark.parametrize("label", ["rND(step=1)", "rKL(step=2.5)", "FAIR(alpha=0.5)@10", "Skew"])
def test_parameters_out_of_bounds_are_refused(label: str) -> None:
    with pytest.raises(ValueError, match=r"step|alpha|cut-off"):
        parse_measure(label)


# -- Skew


def test_skew_of_the_batch_by_hand() -> None:
    # On top: A A B, A B B; in all: A A B B, A B B B.
    found = pooled("Skew@3", counts_of(["AABB", "ABBB"]))
    assert found == close({"A": log(3 / 6 / (3 / 8)), "B": log(3 / 6 / (5 / 8))})
    scores = evaluate(parse_measure("Skew@3"), counts_of(["AABB", "ABBB"])).scores
    assert [(each.name.label, each.worst_group, each.best_group) for each in scores] == [
        ("Skew@3.MinSkew", "B", "A"),
        ("Skew@3.MaxSkew", "B", "A"),
    ]
    assert [each.value for each in scores] == close([found["B"], found["A"]])


def test_skew_counts_known_groups_only() -> None:
    with_unknown = pooled("Skew@4", counts_of(["A.AB.BBB"]))
    assert with_unknown == {
        "A": close(log(2 / 3 / (2 / 6))),
        "B": close(log(1 / 3 / (4 / 6))),
        "unknown": Reason.NOT_ENOUGH_ITEMS,
    }


def test_skew_beside_target_and_catalogue() -> None:
    counts = counts_of(["AAB"], target={"A": 0.5, "B": 0.5}, catalogue={"A": 1, "B": 3})
    assert pooled("Skew(reference=target)@3", counts) == close(
        {"A": log(2 / 3 / 0.5), "B": log(1 / 3 / 0.5)}
    )
    assert pooled("Skew(reference=catalogue)@3", counts) == close(
        {"A": log(2 / 3 / 0.25), "B": log(1 / 3 / 0.75)}
    )


def test_skew_of_the_batch_that_cannot_be_said() -> None:
    assert pooled("Skew@2", counts_of(["AAB"]))["B"] == Reason.NOT_ON_TOP
    assert set(pooled("Skew@3", counts_of(["AAB", "AB"])).values()) == {Reason.ALL_SELECTED}
    assert set(pooled("Skew(reference=target)@2", counts_of(["AAB"])).values()) == {
        Reason.TARGET_MISSING
    }
    unseen = counts_of(["AAB"], target={"A": 0.4, "B": 0.4, "C": 0.2})
    found = pooled("Skew(reference=target)@2", unseen)
    assert found.pop("A") == close(log(1 / 0.4))
    assert found == {"B": Reason.NOT_ON_TOP, "C": Reason.GROUP_ABSENT}


def test_skew_list_by_list_adds_one_item_of_the_reference_mix() -> None:
    found = of_list("Skew(per=list)@2", "AABB")
    assert found == close({"A": log((2 + 0.5) / 3 / 0.5), "B": log(0.5 / 3 / 0.5)})
    assert found["B"] == close(-log(3)), "absent from the top 2: the lowest value"
    assert of_list("Skew(per=list)@2", "ABAB") == close({"A": 0.0, "B": 0.0})


def test_lists_without_a_group_on_top_are_not_left_out() -> None:
    # In most of the lists B is not among the first two; the mean must not be that of the others.
    lists = lists_of("AAB", "AAB", "AAB", "ABA")
    found = batch_value(per_list("Skew(per=list)@2", lists))
    wanted = (3 * log((0 + 1 / 3) / 3 / (1 / 3)) + log((1 + 1 / 3) / 3 / (1 / 3))) / 4
    assert found[1] == close(wanted)
    assert wanted < 0 < log(1 / 2 / (1 / 3))


# -- rND, rRD, rKL


def test_prefix_measures_by_hand() -> None:
    # Cut points 2 and 4 of six: A A, A A B B; A is half of the list.
    worst = (1 / 2 / log2(2), 1 / 4 / log2(4))
    assert of_list("rND(step=2)", "AABBAB") == close(dict.fromkeys("AB", worst[0] / sum(worst)))
    kl = (log(2), 3 / 4 * log(3 / 2) + 1 / 4 * log(1 / 2))
    assert of_list("rKL(step=2)", "AABBAB") == close(kl[0] / (kl[0] + kl[1] / 2))
    # For B one half is missing from the ratio 1 at the first cut point, nothing after it.
    lack = (1 / log2(2), (1 - 1 / 3) / log2(4))
    assert of_list("rRD(step=2)", "AABBAB") == close({"A": 0.0, "B": lack[0] / sum(lack)})


@pytest.mark.parametrize("text", ["AAABBBBBBB", "BBBBBBBAAA", "AAAAABBBBB"])
@pytest.mark.parametrize("step", [2, 3, 5])
def test_the_worst_order_of_two_groups_scores_one(text: str, step: int) -> None:
    whole = {text, text[::-1]}
    for label in (f"rND(step={step})", f"rKL(step={step})"):
        found = [of_list(label, each) for each in whole]
        values = [max(each.values()) if isinstance(each, dict) else each for each in found]
        assert max(values) == close(1.0), label
    assert of_list(f"rRD(step={step})", text)[text[-1]] == close(1.0)


@pytest.mark.parametrize("text", ["AB", "AAB", "ABBB", "AABBB", "ABBBBB", "AAABBBBB", "AABBBBBBB"])
@pytest.mark.parametrize("step", [2, 3])
def test_no_order_of_two_groups_exceeds_one_and_one_reaches_it(text: str, step: int) -> None:
    orders = sorted({"".join(each) for each in permutations(text)})
    lists = lists_of(*orders)
    for label in (f"rND(step={step})", f"rRD(step={step})", f"rKL(step={step})"):
        value = per_list(label, lists).value
        if len(text) <= step:
            assert np.isnan(value).all(), label
        else:
            assert np.nanmin(value) >= 0, label
            assert np.nanmax(value, axis=0) == close(np.ones(value.shape[1:])), label


@pytest.mark.parametrize("text", ["ABC", "AABCC", "ABBCCC", "AABBCCC", "ABCCCCC", "ABCDEE"])
@pytest.mark.parametrize("step", [2, 3])
def test_no_order_of_more_groups_exceeds_the_bound(text: str, step: int) -> None:
    bound = math.fsum(
        slow.most_divergent(text, i) / log2(i) for i in range(step, len(text) + 1, step)
    )
    highest = slow.highest_divergence(text, step)
    assert highest <= bound * (1 + 1e-12)
    assert highest >= 0.75 * bound, "the bound is of use"


def test_printed_ratio_difference_would_hide_a_group_kept_off_the_top() -> None:
    # One-sided, A last is the worst that can happen to A.  Two-sided as printed, nine of A and one
    # B in the first ten have ratio 9 where 1/4 is fair: the highest sum is 40 times that of A last.
    def two_sided(prefix: Sequence[str], whole: Sequence[str], group: str) -> float:
        a, b = prefix.count(group), len(prefix) - prefix.count(group)
        size, rest = whole.count(group), len(whole) - whole.count(group)
        return abs((a / b if b else 0.0) - size / rest)

    last = "B" * 80 + "A" * 20
    printed = slow.raw(list(last), 10, two_sided, "A")
    highest = slow.raw(list("A" * 9 + "B" + "A" * 9 + "B" + "A" * 2 + "B" * 78), 10, two_sided, "A")
    assert printed / highest < 0.1
    assert of_list("rRD", last)["A"] == close(1.0)


def test_a_prefix_of_one_group_lacks_nothing_of_it() -> None:
    # The published program sets the ratio to 0 there, as if nobody of the group were on top.
    assert of_list("rRD(step=2)", "AABBBB")["A"] == 0.0


@pytest.mark.parametrize("label", ["rND(step=3)", "rRD(step=3)", "rKL(step=3)"])
def test_lists_no_longer_than_the_first_cut_point_have_no_value(label: str) -> None:
    for text in ("A", "AB", "AAB", "ABC", "AAAAAAAA", "A......", "......"):
        assert np.isnan(per_list(label, lists_of(text)).value).all(), text


def test_items_without_a_group_are_no_part_of_a_prefix() -> None:
    for label in ("rND(step=2)", "rKL(step=2)", "rRD(step=2)"):
        bare, mixed = of_list(label, "AABABB"), of_list(label, ".AA..BA.BB")
        if isinstance(mixed, dict):
            assert math.isnan(mixed.pop("unknown"))
        assert mixed == bare, label


# -- FA*IR


def test_minima_are_those_of_the_package_or_nearer_to_the_significance() -> None:
    same = 0
    for case in GOLDEN["fairsearchcore"]["cases"]:
        k, share, alpha = case["k"], case["p"], case["alpha"]
        theirs = [sum(rise <= i for rise in case["adjusted_rises"]) for i in range(1, k + 1)]
        ours = minima(k, np.array([share]), alpha)[0].tolist()
        if ours == theirs:
            same += 1
            continue
        # The package leaves the last place out of the probability, and its search can stop early.
        gap = abs(float(slow.probability(ours, share)) - alpha)
        assert gap < abs(float(slow.probability(theirs, share)) - alpha), case
    assert same == GOLDEN["fairsearchcore"]["same"]


def test_the_package_leaves_the_last_place_out() -> None:
    case = GOLDEN["fairsearchcore"]["last_place"]
    table = [sum(rise <= i for rise in case["rises"]) for i in range(1, case["k"] + 1)]
    assert case["fail_probability"] != pytest.approx(float(slow.probability(table, case["p"])))
    assert case["fail_probability"] == pytest.approx(
        float(slow.probability(table[:-1], case["p"])), rel=1e-9
    )


def test_published_examples_of_the_minima() -> None:
    for case in GOLDEN["fairsearchcore"]["published"]:
        found = minima(len(case["adjusted"]), np.array([case["p"]]), case["alpha"])[0]
        assert found.tolist() == case["adjusted"]
        assert float(slow.probability(found.tolist(), case["p"])) == pytest.approx(
            case["fail_probability"], rel=1e-9
        )


@pytest.mark.parametrize("alpha", [Fraction(1, 20), Fraction(1, 10), Fraction(1, 4)])
def test_minima_against_every_table_in_exact_fractions(alpha: Fraction) -> None:
    for depth in (1, 2, 3, 5, 8, 12):
        shares = [Fraction(a, b) for b in range(2, 11) for a in range(1, b)]
        found = minima(depth, np.array([float(share) for share in shares]), float(alpha))
        for share, row in zip(shares, found.tolist(), strict=True):
            assert tuple(row) == slow.minima(depth, share, alpha), (depth, share)


def test_probabilities_that_differ_by_a_bit_are_equal() -> None:
    # 1 - 0.7 is just above 0.3; the others have two levels that only rounding tells apart.
    for depth, share, alpha in (
        (3, Fraction(7, 10), Fraction(3, 10)),
        (12, Fraction(6, 11), Fraction(9, 20)),
        (16, Fraction(2, 3), Fraction(1, 10)),
    ):
        found = minima(depth, np.array([float(share)]), float(alpha))[0]
        assert tuple(found.tolist()) == slow.minima(depth, share, alpha), (depth, share)


def test_a_minimum_does_not_depend_on_the_shares_beside_it() -> None:
    shares = np.linspace(0.013, 0.987, 75)
    together = minima(60, shares, 0.073)
    for share, row in zip(shares[::9], together[::9], strict=True):
        assert (minima(60, np.array([share, 0.5]), 0.0730000001)[0] == row).all()
    assert (np.diff(together, axis=1, prepend=0) <= 1).all()
    assert (np.diff(together, axis=1, prepend=0) >= 0).all()


def test_the_adjusted_level_of_the_package_gives_its_minima() -> None:
    for case in GOLDEN["fairsearchcore"]["cases"]:
        k, share, level = case["k"], case["p"], case["adjusted_alpha"]
        if k > 20:
            continue
        found = []
        for i in range(1, k + 1):
            chances = [math.comb(i, j) * share**j * (1 - share) ** (i - j) for j in range(i + 1)]
            # Equal to the level is not below it, whatever the last bits say.
            below = level * (1 - 1e-12)
            found.append(sum(math.fsum(chances[: x + 1]) < below for x in range(i + 1)))
        assert [i for i in range(1, k + 1) if found[i - 1] > ([0, *found])[i - 1]] == (
            case["adjusted_rises"]
        ), case


def test_only_the_first_thousand_places_are_tested() -> None:
    # None of A is missing from the first 1,000, and all of the last 400.
    lists = lists_of("AB" * 500 + "B" * 400, target={"A": 1, "B": 1})
    found = {
        k: per_list(f"FAIR(reference=target)@{k}", lists).value[0].tolist() for k in (1000, 1400)
    }
    assert found[1000] == found[1400] == [1.0, 1.0]


def test_of_fair_lists_about_the_significance_fails() -> None:
    # Every order of 12 places, weighted by its probability, through the metric itself.
    share, k = 0.4, 12
    every = np.arange(2**k)
    chosen = (every[:, None] >> np.arange(k)) & 1
    lists = len(every)
    chance = share ** chosen.sum(axis=1) * (1 - share) ** (k - chosen.sum(axis=1))
    base = lists_of("A" * 6 + "B" * 6, target={"A": share, "B": 1 - share})
    assert base.grouping is not None
    many = _repeat(base, lists, 1 - chosen.reshape(-1))
    found = per_list("FAIR(reference=target)@12", many).value
    wanted = float(slow.probability(slow.minima(12, Fraction(2, 5), Fraction(1, 10)), share))
    assert (chance * (1 - found[:, 0])).sum() == pytest.approx(wanted, rel=1e-9)
    assert 0.05 < wanted < 0.15


def _repeat(base: Rankings, times: int, code: Any) -> Rankings:
    """Lists of one length, with other groups."""
    assert base.grouping is not None
    rows = base.rows * times
    nothing = np.full(rows, np.nan)
    return Rankings(
        starts=np.arange(times) * base.rows,
        rank=np.tile(base.rank, times),
        relevance=nothing,
        relevant=np.zeros(rows, dtype=bool),
        click=nothing,
        reference_rank=np.zeros(rows, dtype=np.int64),
        reference_length=np.zeros(times, dtype=np.int64),
        propensity=nothing,
        predicted_click=nothing,
        grouping=replace(base.grouping, code=code),
    )


def test_fair_test_by_hand() -> None:
    # Ten places, share 1/2: none of 4 has probability 1/16, at most one of 7 8/128, at most two
    # of 10 56/1024.  One of these happens to 114 of 1024 fair lists, nearest to the tenth; the next
    # lower minima, of 5, 8 and 10 places, fail 77 of 1024.
    need = minima(10, np.array([0.5]), 0.1)[0]
    assert need.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert slow.probability(need.tolist(), Fraction(1, 2)) == Fraction(114, 1024)
    lower = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]
    assert slow.probability(lower, Fraction(1, 2)) == Fraction(77, 1024)
    assert of_list("FAIR@10", "ABABABABAB") == {"A": 1.0, "B": 1.0}
    assert of_list("FAIR@10", "AAAAABBBBB") == {"A": 1.0, "B": 0.0}
    assert of_list("FAIRFirst@10", "AAAAABBBBB") == 4.0
    equal = {"A": 1, "B": 1}
    assert of_list("FAIRFirst(reference=target)@10", "BAAAAAABBB", target=equal) == 7.0
    assert of_list("FAIRFirst(reference=target)@10", "BAAAABAAAA", target=equal) == 10.0
    assert math.isnan(of_list("FAIRFirst@10", "ABABABABAB"))


def test_a_test_that_cannot_fail_is_no_pass() -> None:
    for text in ("A", "AB", "BA", "AAB", "BAAB", "AAAA", "...."):
        values = of_list("FAIR@10", text)
        assert all(map(math.isnan, values.values())), text
    assert math.isnan(of_list("FAIR@10", "B" * 19 + "A")["A"]), "one of twenty is easily missed"
    assert of_list("FAIR@10", "B" * 19 + "A")["B"] == 1.0


def test_first_failure_is_a_logged_rank() -> None:
    rows = rows_of("AAAAABBBBB")
    for row in rows:
        row["rank"] *= 3
    found = per_list("FAIRFirst@30", rankings(rows, "g"))
    assert found.value.tolist() == [12.0]


def test_without_a_failing_list_there_is_no_first_failure() -> None:
    none = ListSums(np.array([0]), np.array([0.0]), np.array([0.0]))
    counts = replace(counts_of(["ABABABABAB"]), list_sums={("FAIRFirst@10", None): none})
    score = evaluate(parse_measure("FAIRFirst@10"), counts).scores[0]
    assert (score.value, score.reason) == (None, Reason.NO_LIST_FAILS)


# -- attention


def test_attention_beside_target_by_hand() -> None:
    # TREC gives ranks 1 and 2 the weight 1, rank 3 1 / log2(3).
    weights = [1.0, 1.0, 1 / log2(3)]
    a, b = weights[0] / sum(weights), sum(weights[1:]) / sum(weights)
    js = sum(
        x / 2 * log2(2 * x / (x + y)) + y / 2 * log2(2 * y / (x + y))
        for x, y in ((a, 0.5), (b, 0.5))
    )
    assert of_list("TargetAWRF", "ABB", target={"A": 1, "B": 1}) == close(1 - js)


def test_attention_agrees_with_scipy() -> None:
    for case in GOLDEN["scipy"]["cases"]:
        found = of_list(case["label"], case["groups"], target=case["target"])
        assert found == close(case["value"]), case


def test_attention_at_the_ends_of_its_range() -> None:
    assert of_list("TargetAWRF", "AAAA", target={"A": 0, "B": 1}) == 0.0
    assert of_list("TargetAWRF", "AAAA", target={"A": 1, "B": 0}) == 1.0
    assert of_list("TargetAWRF@2", "ABBB", target={"A": 1, "B": 1}) == 1.0
    assert math.isnan(of_list("TargetAWRF", "AB"))
    assert math.isnan(of_list("TargetAWRF(reference=list)", "AAA"))
    assert math.isnan(of_list("TargetAWRF@2", "..AB", target={"A": 1, "B": 1}))


def test_attention_of_items_without_a_group_goes_to_nobody() -> None:
    # The unknown item keeps rank 1, so that A and B share the attention of ranks 2 and 3.
    a, b = 1.0, 1 / log2(3)
    equal = of_list("TargetAWRF", ".AB", target={"A": a / (a + b), "B": b / (a + b)})
    assert equal == close(1.0)


# -- pairs


def relevant_lists(*texts: tuple[str, str]) -> Rankings:
    """Lists of groups, and of 1 and 0 for relevance."""
    rows = [
        row
        for at, (groups, marks) in enumerate(texts)
        for row in rows_of(groups, [float(mark) for mark in marks], name=f"q{at}")
    ]
    return rankings(rows, "g")


def test_pairs_by_hand() -> None:
    # Relevant: A at 1, B at 3.  Not relevant: A at 2, B at 4.
    lists = relevant_lists(("AABB", "1010"))
    assert batch_value(per_list("Pairwise", lists)).tolist() == [2 / 2, 1 / 2]
    assert batch_value(per_list("Pairwise(pairs=inter)", lists)).tolist() == [1 / 1, 0 / 1]
    assert batch_value(per_list("Pairwise(pairs=intra)", lists)).tolist() == [1 / 1, 1 / 1]


def test_pairs_of_the_batch_weigh_long_lists_more() -> None:
    lists = relevant_lists(("AB", "10"), ("BBBA", "0001"))
    assert batch_value(per_list("Pairwise(pairs=inter)", lists))[0] == 1 / 4
    assert batch_value(per_list("Pairwise(pairs=inter,over=lists)", lists))[0] == 1 / 2


def test_pairs_with_others_and_own_are_all_pairs() -> None:
    lists = relevant_lists(("ABC.BCAAB", "010110010"), ("CCBA", "0110"))
    total: list[Any] = []
    for label in ("Pairwise(pairs=inter)", "Pairwise(pairs=intra)", "Pairwise"):
        found = per_list(label, lists)
        assert found.weight is not None
        total.append((np.nan_to_num(found.value), found.weight))
    assert (total[0][0] + total[1][0] == total[2][0]).all()
    assert (total[0][1] + total[1][1] == total[2][1]).all()


def test_lists_without_pairs_have_no_value() -> None:
    for groups, marks in (("AB", "11"), ("AB", "00"), ("A", "1"), ("AB", "01")):
        found = per_list("Pairwise", relevant_lists((groups, marks)))
        assert np.isnan(found.value[0, 0])


# -- expected exposure


def queries(*lists: tuple[str, str, Sequence[tuple[str, float]]]) -> tuple[list[Row], Rankings]:
    """Rows of (query, list, [(item, relevance), ...]), and the queries as lists at decay 1/2."""
    rows = [
        {"query_id": q, "list_id": name, "item_id": item, "rank": at, "relevance": relevance}
        for q, name, items in lists
        for at, (item, relevance) in enumerate(items, start=1)
    ]
    return rows, as_queries(rows, 0.5)


def as_queries(rows: Sequence[Row], decay: float) -> Rankings:
    found = []
    for query in sorted({row["query_id"] for row in rows}):
        mine = [row for row in rows if row["query_id"] == query]
        names = sorted({row["list_id"] for row in mine})
        lists = [[row for row in mine if row["list_id"] == name] for name in names]
        for at, (exposure, relevance) in enumerate(slow.query_items(lists, decay), start=1):
            found.append(
                {"list_id": query, "rank": at, "relevance": relevance, "exposure": exposure}
            )
    return replace(rankings(found), exposure=np.array([row["exposure"] for row in found]))


def test_expected_exposure_by_hand() -> None:
    # Two items of equal relevance and one of none; both are first once: the target is met.
    _, lists = queries(
        ("q", "a", [("x", 1.0), ("y", 1.0), ("z", 0.0)]),
        ("q", "b", [("y", 1.0), ("x", 1.0), ("z", 0.0)]),
    )
    assert target_exposure(lists, 0.5) == close([3 / 4, 3 / 4, 1 / 4])
    assert per_list("EEL(decay=0.5)", lists).value == close([0.0])
    both = 2 * (3 / 4) ** 2 + (1 / 4) ** 2
    assert per_list("EED(decay=0.5)", lists).value == close([both])
    assert per_list("EER(decay=0.5)", lists).value == close([both])
    # The same order each time, and the worst: z first.
    _, fixed = queries(("q", "a", [("z", 0.0), ("x", 1.0), ("y", 1.0)]))
    gaps = (1 - 1 / 4, 1 / 2 - 3 / 4, 1 / 4 - 3 / 4)
    assert per_list("EEL(decay=0.5)", fixed).value == close([sum(gap**2 for gap in gaps)])


def test_target_is_the_mean_over_all_orders_by_relevance() -> None:
    relevance = [0.5, 1.0, 0.5, 0.0, 0.5, 1.0]
    _, lists = queries(("q", "a", [(f"i{at}", grade) for at, grade in enumerate(relevance)]))
    orders = [
        order
        for order in permutations(range(6))
        if all(relevance[a] >= relevance[b] for a, b in pairwise(order))
    ]
    wanted = [sum(0.5 ** order.index(item) for order in orders) / len(orders) for item in range(6)]
    assert target_exposure(lists, 0.5) == close(wanted)


def test_loss_is_disparity_less_relevance_and_a_constant() -> None:
    rng = np.random.default_rng(7)
    _, lists = queries(
        *(
            (f"q{q}", f"q{q}.{at}", [(f"i{i}", (i % 3) / 2) for i in rng.permutation(8)[:6]])
            for q in range(9)
            for at in range(3)
        )
    )
    eel, eed, eer = (per_list(f"{name}(decay=0.5)", lists).value for name in ("EEL", "EED", "EER"))
    target = lists.sum(target_exposure(lists, 0.5) ** 2)
    assert eel == close(eed - 2 * eer + target)


def test_queries_of_one_item_have_no_expected_exposure() -> None:
    _, lists = queries(("q", "a", [("x", 1.0)]), ("q", "b", [("x", 1.0)]))
    for label in QUERY_LABELS:
        assert np.isnan(per_list(label, lists).value).all()
    with pytest.raises(TypeError, match="exposure"):
        per_list("EEL(decay=0.5)", lists_of("AB"))


def test_means_of_equal_relevance_are_one_grade() -> None:
    _, lists = queries(("q", "a", [("x", 0.3), ("y", 0.1 + 0.2), ("z", 0.7)]))
    assert target_exposure(lists, 0.5) == close([3 / 8, 3 / 8, 1])


# -- against loops


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    rows: list[Row] = []
    letters = draw(st.sampled_from(["AB", "ABC", "A", "AAAB", "ABCDEFGH"]))
    for q in range(draw(st.integers(1, 5))):
        length = draw(st.integers(1, 30))
        gap = draw(st.sampled_from([1, 1, 1, 2]))
        grades = draw(st.sampled_from([(0.0,), (1.0,), (0.0, 1.0), (0.0, 0.25, 0.5, 1.0)]))
        pool = letters + draw(st.sampled_from(["", ".", ".."]))
        for at in range(length):
            letter = draw(st.sampled_from(pool))
            rows.append(
                {
                    "query_id": f"q{q % 2}",
                    "list_id": f"l{q}",
                    "item_id": f"i{at}",
                    "rank": at * gap + 1,
                    "g": None if letter == "." else letter,
                    "relevance": draw(st.sampled_from(grades)),
                }
            )
    return rows


CONTEXT: dict[str, Any] = {
    "target": {"A": 0.5, "B": 0.25, "C": 0.125, "D": 0.125},
    "catalogue": {"A": 3.0, "B": 5.0, "E": 8.0, "unknown": 4.0},
}


@settings(max_examples=60)
@given(rows=logs())
@pytest.mark.parametrize("label", LABELS)
def test_every_metric_agrees_with_loops(label: str, rows: list[Row]) -> None:
    lists = rankings(rows, "g", **CONTEXT)
    found = batch_value(per_list(label, lists))
    wanted = slow.score(label, rows, "g", **CONTEXT)
    if isinstance(wanted, dict):
        by_name = dict(zip(lists.groups.names, found.tolist(), strict=True))
        for group, value in wanted.items():
            assert by_name[group] == pytest.approx(
                math.nan if value is None else value, rel=1e-9, abs=1e-12, nan_ok=True
            ), group
    else:
        assert float(found) == pytest.approx(
            math.nan if wanted is None else wanted, rel=1e-9, abs=1e-12, nan_ok=True
        )


@pytest.mark.parametrize("label", LABELS)
def test_the_unknown_group_takes_part_where_configured(label: str) -> None:
    texts = ["A.B..A.B", "..AAB", "BBBB.BB...A", ".", "A."]
    marks = [1.0, 0.0, 0.0, 1.0, 0.5, 0.25, 1.0, 0.0, 0.0, 1.0, 0.0]
    rows = [row for at, text in enumerate(texts) for row in rows_of(text, marks, f"q{at}")]
    lists = rankings(rows, "g", **CONTEXT)
    assert lists.grouping is not None
    everyone = replace(lists.grouping, takes_part=np.ones(len(lists.grouping.names), dtype=bool))
    found = batch_value(per_list(label, replace(lists, grouping=everyone)))
    wanted = slow.score(label, rows, "g", unknown_counts=True, **CONTEXT)
    values = wanted if isinstance(wanted, dict) else {"": wanted}
    by_name = dict(zip(lists.grouping.names, np.atleast_1d(found).tolist(), strict=False))
    for group, value in values.items():
        mine = by_name[group] if group else float(found)
        assert mine == pytest.approx(
            math.nan if value is None else value, rel=1e-9, abs=1e-12, nan_ok=True
        ), group


@settings(max_examples=60)
@given(rows=logs())
@pytest.mark.parametrize("label", ["Skew@3", "Skew@10", "Skew(reference=target)@4"])
def test_skew_of_the_batch_agrees_with_loops(label: str, rows: list[Row]) -> None:
    for row in rows:
        row["rank"] = int(row["item_id"][1:]) + 1
    names = sorted({row["list_id"] for row in rows})
    texts = ["".join(row["g"] or "." for row in rows if row["list_id"] == name) for name in names]
    target = {"A": 0.75, "B": 0.25}
    found = pooled(label, counts_of(texts, target))
    for group, value in slow.score(label, rows, "g", target=target).items():  # type: ignore[union-attr]
        assert (found[group] if value is not None else None) == (
            None if value is None else close(value)
        ), group
        assert (value is None) == isinstance(found[group], Reason), group


@settings(max_examples=60)
@given(rows=logs())
@pytest.mark.parametrize("label", QUERY_LABELS)
def test_expected_exposure_agrees_with_loops(label: str, rows: list[Row]) -> None:
    decay = float(parse_measure(label).given["decay"])
    found = batch_value(per_list(label, as_queries(rows, decay)))
    wanted = slow.score(label, rows)
    assert isinstance(wanted, float | None)
    assert float(found) == pytest.approx(
        math.nan if wanted is None else wanted, rel=1e-9, abs=1e-12, nan_ok=True
    )


# -- laws of all of them


def many_lists() -> Rankings:
    """A thousand lists of 1 to 60 rows and twenty groups, and one of a thousand rows."""
    rng = np.random.default_rng(11)
    lengths = np.append(rng.integers(1, 61, 999), 1000)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    rows = int(lengths.sum())
    rank = np.arange(rows) - np.repeat(starts, lengths) + 1
    names = (*(f"g{at:02}" for at in range(20)), "unknown")
    template = lists_of("AB")
    assert template.grouping is not None
    shares = np.append(np.arange(1.0, 21.0) / 210, 0.0)
    relevance = rng.integers(0, 5, rows) / 4
    return replace(
        template,
        starts=starts,
        rank=rank,
        relevance=relevance,
        relevant=relevance >= 0.5,
        click=np.full(rows, np.nan),
        reference_rank=np.zeros(rows, dtype=np.int64),
        reference_length=np.zeros(len(starts), dtype=np.int64),
        propensity=np.full(rows, np.nan),
        predicted_click=np.full(rows, np.nan),
        grouping=replace(
            template.grouping,
            names=names,
            code=rng.choice(21, rows, p=np.append(np.arange(1, 21) / 230, 20 / 230)),
            takes_part=np.array([name != "unknown" for name in names]),
            target=shares,
            catalogue=shares[::-1] / 2 + shares / 2,
        ),
        exposure=np.exp2(-(rng.integers(1, 40, rows) - 1.0)),
    )


def only(lists: Rankings, at: int) -> Rankings:
    """One of the lists."""
    rows = slice(lists.starts[at], lists.starts[at] + lists.length[at])
    assert lists.grouping is not None
    assert lists.exposure is not None
    return replace(
        lists,
        starts=np.array([0]),
        reference_length=lists.reference_length[at : at + 1],
        grouping=replace(lists.grouping, code=lists.grouping.code[rows]),
        exposure=lists.exposure[rows],
        **{
            name: getattr(lists, name)[rows]
            for name in (
                *("rank", "relevance", "relevant", "click"),
                *("reference_rank", "propensity", "predicted_click"),
            )
        },
    )


@pytest.mark.parametrize("label", [*LABELS, *QUERY_LABELS, "FAIR@100", "Skew(per=list)@1000"])
def test_a_list_among_a_thousand_has_the_same_bits_as_alone(label: str) -> None:
    lists = many_lists()
    together = per_list(label, lists)
    for at in (*range(0, 999, 37), 998, 999):
        alone = per_list(label, only(lists, at))
        assert np.array_equal(together.value[at], alone.value[0], equal_nan=True), at
        if together.weight is not None:
            assert alone.weight is not None
            assert np.array_equal(together.weight[at], alone.weight[0]), at


@pytest.mark.parametrize("label", [*LABELS, *QUERY_LABELS])
def test_values_lie_in_the_declared_range(label: str) -> None:
    lists = many_lists()
    measure = parse_measure(label)
    found = per_list(label, lists)
    value = _ratio(found)
    defined = value[~np.isnan(value)]
    assert all(each in measure.metric.range for each in defined.ravel().tolist())
    if isinstance(measure.metric, GroupMetric):
        assert np.isnan(value[:, -1]).all(), "the unknown group is not compared"


def _ratio(found: PerList) -> Any:
    if found.weight is None:
        return found.value
    with np.errstate(invalid="ignore"):
        return found.value / found.weight


@pytest.mark.parametrize(
    ("label", "fair", "unfair"),
    [
        ("Skew(per=list)@4", "ABABABAB", "AAAABBBB"),
        ("rND(step=2)", "ABABABAB", "AAAABBBB"),
        ("rRD(step=2)", "ABABABAB", "AAAABBBB"),
        ("rKL(step=2)", "ABABABAB", "AAAABBBB"),
        ("FAIR@10", "ABABABABAB", "AAAAABBBBB"),
        ("TargetAWRF", "ABBAABBA", "AAAABBBB"),
    ],
)
def test_fair_lists_score_better_than_unfair_ones(label: str, fair: str, unfair: str) -> None:
    measure = parse_measure(label)
    score = next(iter(measure.scores()))
    both = [of_list(label, text, target={"A": 1, "B": 1}) for text in (fair, unfair)]
    if isinstance(both[0], dict):
        both = [float(score.aggregation.of(np.array(list(each.values())))) for each in both]  # type: ignore[union-attr]
    assert score.fairest == pytest.approx(both[0], abs=0.02)
    assert both[1] < both[0] if score.alarm == "low" else both[1] > both[0]


@pytest.mark.parametrize("label", LABELS)
def test_names_of_groups_do_not_matter(label: str) -> None:
    lists = many_lists()
    assert lists.grouping is not None
    order = np.append(np.arange(20)[::-1], 20)
    turned = replace(
        lists.grouping,
        code=order[lists.grouping.code],
        target=lists.grouping.target[order],  # type: ignore[index]
        catalogue=lists.grouping.catalogue[order],  # type: ignore[index]
    )
    found = per_list(label, lists).value
    other = per_list(label, replace(lists, grouping=turned)).value
    other = other[:, order] if other.ndim == 2 else other
    assert other == pytest.approx(found, rel=1e-9, abs=1e-12, nan_ok=True)
