"""Ranking quality: by hand, and lists and batches that have no value."""

from math import log2

import numpy as np
import pytest
from counted import evaluated
from quality_lists import CLICKS, GROUPED, LABELS, OF_RELEVANCE, near, of, reason, shown
from rankings import Row, batch_value, per_list, rankings

from metrics import Reason, parse_measure
from metrics.quality import QUALITY_METRICS
from metrics.quality.lists import LARGEST

# -- by hand

HALF = [0.0, 1.0, 0.5, 0.0]


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("RR", 1 / 2),
        ("RR@1", 0.0),
        ("P@2", 1 / 2),
        ("P@10", 2 / 10),
        ("R@2", 1 / 2),
        ("R@10", 2 / 2),
        ("F1@2", 2 * (1 / 2) * (1 / 2) / (1 / 2 + 1 / 2)),
        ("F1@1", 0.0),
        ("F1@10", 2 * (2 / 10) * 1 / (2 / 10 + 1)),
        ("AP", (1 / 2 + 2 / 3) / 2),
        ("AP@2", (1 / 2) / 2),
        ("hit@1", 0.0),
        ("hit@2", 1.0),
        ("CG@2", 0 + 1),
        ("CG(gain=exp)@10", (2**1 - 1) + (2**0.5 - 1)),
        ("DCG@10", 1 / log2(3) + 0.5 / log2(4)),
        ("DCG(gain=exp)@10", 1 / log2(3) + (2**0.5 - 1) / log2(4)),
        ("nDCG", (1 / log2(3) + 0.5 / log2(4)) / (1 / log2(2) + 0.5 / log2(3))),
        ("nDCG@2", (1 / log2(3)) / (1 / log2(2) + 0.5 / log2(3))),
        ("nDCG@1", 0.0),
        ("RScore(d=0.0,alpha=2.0)", (1 / 2 + 0.5 / 4) / (1 + 0.5 / 2)),
        ("RScore(d=0.25,alpha=3.0)", (0.75 / 2**0.5 + 0.25 / 2) / (0.75 + 0.25 / 2**0.5)),
        ("AR@4", (0 + 1 / 2 + 2 / 2 + 2 / 2) / 4),
        ("AR@6", (0 + 1 / 2 + 4 * 1) / 6),
        ("JurityPrecision@10", 2 / 4),
        ("JurityRecall@2", 1 / 2),
        ("JurityMAP@1", 0.0),
        ("JurityMAP@10", (1 / 2 + 2 / 3) / 2),
        ("JurityMAP@2", (1 / 2) / 2),
        ("JurityNDCG@2", (1 / log2(3)) / (1 / log2(2) + 1 / log2(3))),
    ],
)
def test_one_list_by_hand(label: str, expected: float) -> None:
    assert of(label, HALF) == near(expected)


def test_every_metric_of_the_family_is_tested() -> None:
    assert {parse_measure(label).metric for label in LABELS} == set(QUALITY_METRICS)


def test_lists_count_alike_whatever_their_length() -> None:
    assert of("P@2", [1.0], [1.0, 1.0, 0.0, 1.0], [0.0, 1.0]) == near((1 / 2 + 2 / 2 + 1 / 2) / 3)


def test_r_score_adds_up_utilities_before_it_divides() -> None:
    two = of("RScore(d=0.0,alpha=2.0)", [0.0, 0.1], [1.0, 0.0])
    assert two == near((0.1 / 2 + 1) / (0.1 + 1))
    assert two != near((1 / 2 + 1) / 2)


def test_gaps_in_ranks_weigh_at_the_logged_rank_and_the_ideal_has_none() -> None:
    assert of("RR", [0.0, 1.0], ranks=[1, 5]) == near(1 / 5)
    assert of("AP", [1.0, 1.0], ranks=[2, 5]) == near((1 / 2 + 2 / 5) / 2)
    assert of("P@2", [1.0, 1.0], ranks=[2, 5]) == near(1 / 2)
    assert of("AR@6", [1.0, 1.0], ranks=[2, 5]) == near((0 + 3 * (1 / 2) + 2 * 1) / 6)
    assert of("JurityPrecision@4", [1.0, 1.0], ranks=[2, 5]) == near(1 / 1)
    assert np.isnan(of("JurityPrecision@1", [1.0, 1.0], ranks=[2, 5]))
    ideal = 1 / log2(2) + 1 / log2(3)
    assert of("nDCG", [1.0, 1.0], ranks=[2, 5]) == near((1 / log2(3) + 1 / log2(6)) / ideal)
    assert of("nDCG@2", [1.0, 1.0], ranks=[2, 5]) == near((1 / log2(3)) / ideal)


def test_groups_by_hand() -> None:
    values = [("A", 1.0), ("B", 0.5), (None, 1.0), ("B", 0.25), ("A", 1.0)]
    rows = [
        {**row, "group": group}
        for row, (group, _) in zip(shown([value for _, value in values]), values, strict=True)
    ]
    lists = rankings(rows, "group")
    assert lists.groups.names == ("A", "B", "unknown")

    def found(label: str) -> list[float]:
        return per_list(label, lists).value[0].tolist()

    ideal = 1 / log2(2) + 1 / log2(3) + 1 / log2(4)
    a, b, unknown = 1 / log2(2), 0.5 / log2(3), 1 / log2(4)
    assert found("GroupP@3") == near([1 / 3, 1 / 3, 1 / 3])
    assert found("GroupP@2") == near([1 / 2, 1 / 2, 0])
    assert found("GroupP(of=group)@4") == near([1 / 1, 1 / 2, 1 / 1])
    assert found("GroupP(of=group)@2") == near([1, 1, np.nan])
    assert found("GroupR@3") == near([1 / 4, 1 / 4, 1 / 4])
    assert found("GroupR(of=group)@3") == near([1 / 2, 1 / 1, 1 / 1])
    assert found("GroupnDCG@3") == near([a / ideal, b / ideal, unknown / ideal])
    best_a, best_b = 1 / log2(2) + 1 / log2(3), 0.5 / log2(2) + 0.25 / log2(3)
    assert found("GroupnDCG(of=group)@3") == near([a / best_a, b / best_b, unknown / 1])


def test_a_group_absent_from_a_list_contributes_nothing_there() -> None:
    rows = [
        {"list_id": name, "item_id": at, "rank": at, "relevance": 1.0, "group": group}
        for name, groups in (("1", "AB"), ("2", "A"))
        for at, group in enumerate(groups, start=1)
    ]
    lists = rankings(rows, "group")
    assert batch_value(per_list("GroupP@1", lists)).tolist() == [1.0, 0.0]
    assert batch_value(per_list("GroupR@2", lists)).tolist() == near([(1 / 2 + 1) / 2, (1 / 2) / 2])
    assert batch_value(per_list("GroupR(of=group)@2", lists)).tolist() == [1.0, 1.0]


# -- lists and batches without a value


@pytest.mark.parametrize("label", OF_RELEVANCE)
def test_a_list_without_a_relevant_item_is_left_out(label: str) -> None:
    rows = rankings(shown([0.0, 0.0], [1.0, 0.0, 1.0], [0.0]))
    found = per_list(label, rows)
    assert np.isnan(found.value).tolist() == [True, False, True]
    assert batch_value(found) == near(of(label, [1.0, 0.0, 1.0]))


@pytest.mark.parametrize("label", ["P@3", "AP", "JurityNDCG@3"])
def test_graded_relevance_below_the_threshold_is_not_relevant(label: str) -> None:
    assert np.isnan(of(label, [0.4, 0.1]))
    assert of("nDCG", [0.4, 0.1]) == 1.0


def test_why_a_batch_has_no_value() -> None:
    grouped = [{**row, "group": name} for row, name in zip(shown([0.0, 0.0]), "AB", strict=True)]
    for label in (*OF_RELEVANCE, *GROUPED):
        assert reason(label, grouped) == Reason.NO_RELEVANT_ITEMS, label
        holes = [grouped[0], {**grouped[1], "relevance": None}]
        assert reason(label, holes) == Reason.RELEVANCE_MISSING, label
    for label in CLICKS:
        assert reason(label, grouped) == Reason.CLICK_MISSING, label
    clicked = [{**grouped[0], "click": 1.0}, grouped[1]]
    assert evaluated("CTR", clicked).scores[0].value == 1.0
    assert reason("CTR(method=ips)", clicked) == Reason.PROPENSITY_MISSING
    assert reason("CTR(method=dr)", clicked) in (
        Reason.PROPENSITY_MISSING,
        Reason.PREDICTION_MISSING,
    )
    clicked[0]["propensity"] = 0.5
    assert evaluated("CTR(method=ips)", clicked).scores[0].value == near((1 / 0.5) / 2)
    clicked[0]["predicted_click"] = 0.25
    assert reason("CTR(method=dr)", clicked) == Reason.PREDICTION_MISSING
    clicked[1]["predicted_click"] = 0.75
    whole = (0.25 + 0.75 + (1 - 0.25) / 0.5) / 2
    assert evaluated("CTR(method=dr)", clicked).scores[0].value == near(whole)


def test_matched_rows_without_a_usable_propensity_leave_their_list_out() -> None:
    def clicked(list_id: str, propensity: float | None) -> Row:
        return {
            "list_id": list_id,
            "item_id": "i",
            "rank": 1,
            "click": 1.0,
            "propensity": propensity,
            "predicted_click": 0.5,
        }

    rows = [clicked("1", 0.5), clicked("2", None), clicked("3", 0.0), clicked("4", 1e-300)]
    lists = rankings(rows)
    assert np.isnan(per_list("CTR(method=ips)", lists).value).tolist() == [False, True, True, True]
    assert batch_value(per_list("CTR(method=ips)", lists)) == 1 / 0.5
    assert batch_value(per_list("CTR(method=dr)", lists)) == 0.5 + (1 - 0.5) / 0.5
    assert batch_value(per_list("CTR", lists)) == 1.0


# -- labels


def test_parameters_and_labels() -> None:
    assert parse_measure("nDCG(gain=linear)@10").label == "nDCG@10"
    assert parse_measure("RScore").label == "RScore(d=0.0,alpha=5.0)"
    assert parse_measure("GroupP(of=list)@5").label == "GroupP@5"
    assert parse_measure("CTR(method=matching)").label == "CTR"
    for wrong in ("P", "RScore(alpha=1)", "RScore(d=1)", "RScore(d=-0.1)", "nDCG(gain=log)"):
        with pytest.raises(ValueError, match=wrong.split("(", maxsplit=1)[0]):
            parse_measure(wrong)
    for metric in QUALITY_METRICS:
        for score in metric.usual.scores():
            assert score.alarm == "low" or metric.per_group


def test_little_gain_is_a_gain() -> None:
    rows = [
        {"list_id": "l", "item_id": str(rank), "rank": rank, "relevance": relevance}
        for rank, relevance in enumerate((0.25, 0.5), start=1)
    ]
    assert per_list("CG(gain=linear)@1", rankings(rows)).value.tolist() == [0.25]
    assert per_list("DCG(gain=linear)@1", rankings(rows)).value.tolist() == [0.25]


def test_a_list_that_begins_below_the_cut_has_no_click_through() -> None:
    rows = [{"list_id": "l", "item_id": "a", "rank": 2, "click": 1.0, "propensity": 0.5}]
    assert np.isnan(per_list("CTR(method=ips)@1", rankings(rows)).value).all()
    assert per_list("CTR(method=ips)@2", rankings(rows)).value.tolist() == [1 / 0.5]
    # By matched rows, one is needed whose click is known.
    assert np.isnan(per_list("CTR@2", rankings([{**rows[0], "click": None}])).value).all()


def test_estimates_of_clicks_at_the_edges() -> None:
    def estimate(*clicks: tuple[float, float | None], method: str = "ips") -> float:
        rows = [
            {"list_id": "l", "item_id": str(rank), "rank": rank, "click": click, "propensity": seen,
             "predicted_click": 1.0}
            for rank, (click, seen) in enumerate(clicks, start=1)
        ]  # fmt: skip
        [found] = per_list(f"CTR(method={method})@9", rankings(rows)).value.tolist()
        return float(found)

    assert estimate((1.0, 0.5), (0.0, None)) == 1 / 0.5, "what was not clicked needs no propensity"
    assert np.isnan(estimate((1.0, 0.5), (1.0, None)))
    # Sums are numbers below 1e12.
    assert np.isnan(estimate((1.0, 1 / LARGEST)))
    assert estimate((1.0, 2 / LARGEST)) == LARGEST / 2
    assert np.isnan(estimate((0.0, 1 / LARGEST / 2), method="dr"))
    assert estimate((0.0, 2 / LARGEST), method="dr") == 1 - LARGEST / 2
