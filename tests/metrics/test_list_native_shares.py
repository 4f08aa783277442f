"""Skew, attention beside target shares, and pairs of relevant items: by hand and at the edges."""

import json
import math
from dataclasses import replace
from math import log, log2
from typing import Any

import numpy as np
import pytest
from counted import by_group, counts_of, evaluated
from list_native_lists import all_rows, close, lists_of, of_list, pooled, rows_of
from places import GOLDEN
from rankings import batch_value, per_list, rankings

from metrics import UNKNOWN, Rankings, Reason, evaluate, parse_measure

PUBLISHED = json.loads((GOLDEN / "list_native.json").read_text("utf-8"))

# -- Skew


def test_skew_of_the_batch_by_hand() -> None:
    # On top: A A B, A B B; in all: A A B B, A B B B.
    found = pooled("Skew@3", "AABB", "ABBB")
    assert found == close({"A": log(3 / 6 / (3 / 8)), "B": log(3 / 6 / (5 / 8))})
    scores = evaluated("Skew@3", all_rows("AABB", "ABBB")).scores
    assert [(each.name.label, each.worst_group, each.best_group) for each in scores] == [
        ("Skew@3.MinSkew", "B", "A"),
        ("Skew@3.MaxSkew", "B", "A"),
    ]
    assert [each.value for each in scores] == close([found["B"], found["A"]])


def test_skew_counts_known_groups_only() -> None:
    with_unknown = pooled("Skew@4", "A.AB.BBB")
    assert with_unknown == {
        "A": close(log(2 / 3 / (2 / 6))),
        "B": close(log(1 / 3 / (4 / 6))),
        "unknown": Reason.NOT_COMPARED,
    }


def test_skew_beside_target_and_catalogue() -> None:
    assert pooled("Skew(reference=target)@3", "AAB", target={"A": 0.5, "B": 0.5}) == close(
        {"A": log(2 / 3 / 0.5), "B": log(1 / 3 / 0.5)}
    )
    assert pooled("Skew(reference=catalogue)@3", "AAB", catalogue={"A": 1, "B": 3}) == close(
        {"A": log(2 / 3 / 0.25), "B": log(1 / 3 / 0.75)}
    )


def test_skew_of_the_batch_that_cannot_be_said() -> None:
    assert pooled("Skew@2", "AAB")["B"] == Reason.NOT_ON_TOP
    assert set(pooled("Skew@3", "AAB", "AB").values()) == {Reason.ALL_SELECTED}
    assert pooled("Skew@3", "AB.")["A"] == Reason.ALL_SELECTED
    assert set(pooled("Skew(reference=target)@2", "AAB").values()) == {Reason.TARGET_MISSING}
    target = {"A": 0.4, "B": 0.4, "C": 0.2}
    found = pooled("Skew(reference=target)@2", "AAB", target=target)
    assert found.pop("A") == close(log(1 / 0.4))
    assert found == {"B": Reason.NOT_ON_TOP, "C": Reason.GROUP_ABSENT}


def test_skew_of_a_group_that_should_not_be_there_is_not_compared() -> None:
    found = pooled("Skew(reference=target)@2", "ABAB", target={"A": 1.0, "B": 0.0})
    assert found == {"A": close(log(1 / 2 / 1)), "B": Reason.NOT_COMPARED}
    # Nor is one that the target does not name.
    assert pooled("Skew(reference=target)@2", "ABAB", target={"A": 1.0}) == found


def test_skew_beside_a_catalogue_with_items_without_a_group() -> None:
    sizes = {"A": 1, "B": 3, UNKNOWN: 6}
    found = pooled("Skew(reference=catalogue)@3", "AAB", catalogue=sizes)
    assert found == {
        "A": close(log(2 / 3 / (1 / 4))),
        "B": close(log(1 / 3 / (3 / 4))),
        UNKNOWN: Reason.GROUP_ABSENT,
    }
    nobody = pooled("Skew(reference=catalogue)@2", "ABAB", catalogue={UNKNOWN: 6})
    assert {nobody["A"], nobody["B"]} == {Reason.NOT_COMPARED}


@pytest.mark.parametrize(("share", "absent"), [(0.2, True), (0.0, False)])
def test_skew_beside_a_group_that_nobody_reports(share: float, absent: bool) -> None:
    counts = replace(counts_of(all_rows("AAB")), target={"A": 0.4, "B": 0.4, "C": share})
    found = by_group(evaluate(parse_measure("Skew(reference=target)@3"), counts))
    alone = {"A": close(log(2 / 3 / 0.5)), "B": close(log(1 / 3 / 0.5))}
    assert found == (dict.fromkeys("AB", Reason.GROUP_ABSENT) if absent else alone)


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
    for case in PUBLISHED["scipy"]["cases"]:
        found = of_list(case["label"], case["groups"], target=case["target"])
        assert found == close(case["value"]), case


def test_attention_at_the_ends_of_its_range() -> None:
    assert of_list("TargetAWRF", "AAAA", target={"A": 0, "B": 1}) == 0.0
    assert of_list("TargetAWRF", "AAAA", target={"A": 1, "B": 0}) == 1.0
    assert of_list("TargetAWRF@2", "ABBB", target={"A": 1, "B": 1}) == 1.0
    assert math.isnan(of_list("TargetAWRF", "AB"))
    assert math.isnan(of_list("TargetAWRF(reference=list)", "AAA"))
    assert math.isnan(of_list("TargetAWRF@2", "..AB", target={"A": 1, "B": 1}))


def test_attention_beside_a_catalogue_with_items_without_a_group() -> None:
    label = "TargetAWRF(reference=catalogue)"
    assert math.isnan(of_list(label, "A.B", catalogue={UNKNOWN: 3}))
    # Beside others, they change no share of those.
    known = of_list(label, "A.B", catalogue={"A": 1, "B": 2})
    assert of_list(label, "A.B", catalogue={"A": 1, "B": 2, UNKNOWN: 5}) == close(known)


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
    return rankings(rows, "group")


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
