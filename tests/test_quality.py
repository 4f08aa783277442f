"""Ranking quality: by hand, by other libraries, by plain loops, and by laws."""

import json
from collections.abc import Sequence
from dataclasses import replace
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import slow_quality
from hypothesis import given, settings
from hypothesis import strategies as st
from rankings import Row, batch_value, per_list, rankings

from metrics import Counts, ListSums, RankHistogram, Reason, evaluate, parse_measure
from metrics.evaluate import Evaluation
from metrics.quality import QUALITY_METRICS
from metrics.quality.ideal import highest_first

GOLDEN = json.loads((Path(__file__).parent / "golden" / "quality.json").read_text())
BINARY = ("RR", "RR@3", "P@3", "R@3", "F1@3", "AP", "AP@3", "hit@3", "AR@3")
GRADED = (
    *("CG@3", "CG(gain=exp)@3", "DCG@3", "DCG(gain=exp)@40", "nDCG", "nDCG@3"),
    *("nDCG(gain=exp)", "nDCG(gain=exp)@3"),
    *("RScore(d=0.0,alpha=5.0)", "RScore(d=0.5,alpha=1.5)"),
)
JURITY = ("JurityPrecision@3", "JurityRecall@3", "JurityMAP@3", "JurityNDCG@3")
DEEP = ("P@40", "R@40", "F1@40", "AR@40", "hit@1", "JurityPrecision@40", "JurityMAP@40")
CLICKS = tuple(
    f"CTR{method}{k}" for method in ("", "(method=ips)", "(method=dr)") for k in ("", "@3")
)
GROUPED = (
    *("GroupP@3", "GroupP@40", "GroupP(of=group)@3", "GroupP(of=group)@40"),
    *("GroupR@3", "GroupR@40", "GroupR(of=group)@3", "GroupR(of=group)@40"),
    *("GroupnDCG", "GroupnDCG@3", "GroupnDCG(of=group)", "GroupnDCG(of=group)@3"),
    *("GroupnDCG(gain=exp)@3", "GroupnDCG(of=group,gain=exp)"),
)
OF_RELEVANCE = (*BINARY, *GRADED, *JURITY, *DEEP)
LABELS = (*OF_RELEVANCE, *CLICKS, *GROUPED)


def shown(*lists: Sequence[float | None], ranks: Sequence[int] | None = None) -> list[Row]:
    """Rows of lists given by relevance in the order shown."""
    return [
        {
            "list_id": f"{number:05}",
            "item_id": f"i{at}",
            "rank": ranks[at] if ranks else at + 1,
            "relevance": value,
        }
        for number, values in enumerate(lists)
        for at, value in enumerate(values)
    ]


def of(label: str, *lists: Sequence[float], ranks: Sequence[int] | None = None) -> Any:
    """The batch value of lists given by relevance."""
    return float(batch_value(per_list(label, rankings(shown(*lists, ranks=ranks)))))


def evaluated(label: str, rows: Sequence[Row]) -> Evaluation:
    """What a batch of these lists scores."""
    measure, lists = parse_measure(label), rankings(rows, "group")
    found = per_list(label, lists)
    value = found.value.reshape(lists.lists, -1)
    weight = np.ones(value.shape)
    if found.weight is not None:
        weight = found.weight.reshape(value.shape)
    defined = ~np.isnan(value)
    sums = ListSums(
        defined.sum(axis=0),
        np.where(defined, value, 0.0).sum(axis=0),
        np.where(defined, weight, 0.0).sum(axis=0),
    )
    names = lists.groups.names
    size = lists.group_size.sum(axis=0).astype(np.int64)
    none = np.zeros(len(names), dtype=np.int64)
    columns = ("relevance", "click", "propensity", "predicted_click")
    known = {column: sum(row.get(column) is not None for row in rows) for column in columns}
    counts = Counts(
        lists=lists.lists,
        groups=names,
        ranks=RankHistogram(
            np.arange(len(names)), none + 1, size, none, none, none * 0.0, none, none * 0.0
        ),
        binary=False,
        known_rows={"rows": len(rows), **known},
        list_sums={(measure.label, None): sums},
    )
    return evaluate(measure, counts)


def reason(label: str, rows: Sequence[Row]) -> str | None:
    """Why a batch has no value."""
    return evaluated(label, rows).scores[0].reason


def near(expected: Any) -> Any:
    return pytest.approx(expected, rel=1e-12, abs=1e-12, nan_ok=True)


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


# -- other libraries


def golden_rows(scale: float = GOLDEN["scale"]) -> list[Row]:
    return shown(*([grade / scale for grade in grades] for grades in GOLDEN["lists"].values()))


@pytest.mark.parametrize(
    ("library", "label"),
    [(name, label) for name in ("trec_eval", "ranx", "jurity") for label in GOLDEN[name]],
)
def test_libraries_agree_on_every_list(library: str, label: str) -> None:
    found = per_list(label, rankings(golden_rows(), relevant_from=GOLDEN["relevant_from"])).value
    held = GOLDEN[library][label]
    for name, ours, theirs in zip(GOLDEN["lists"], found, held, strict=True):
        if np.isnan(ours):
            # trec_eval and ranx count a list without relevant items as 0; Jurity leaves it out.
            assert theirs == (None if library == "jurity" else 0.0), name
        else:
            assert ours == pytest.approx(theirs, rel=1e-12, abs=0), name


@pytest.mark.parametrize("label", GOLDEN["jurity means"])
def test_jurity_means(label: str) -> None:
    found = batch_value(per_list(label, rankings(golden_rows())))
    assert found == pytest.approx(GOLDEN["jurity means"][label], rel=1e-12)


def test_exponential_gain_depends_on_the_scale_of_relevance() -> None:
    label = "nDCG(gain=exp)@10"
    theirs = np.array(GOLDEN["ranx grades"][label])
    of_grades = per_list(label, rankings(golden_rows(scale=1))).value
    of_shares = per_list(label, rankings(golden_rows())).value
    judged = ~np.isnan(of_shares)
    assert of_grades[judged] == pytest.approx(theirs[judged], rel=1e-12)
    # Grades 0 to 4 and relevance 0 to 1 are not the same question: 2^4 - 1 is 15, not 4 times 1.
    assert np.abs(of_shares[judged] - theirs[judged]).max() > 0.01
    linear = per_list("nDCG@10", rankings(golden_rows(scale=1))).value
    assert linear == near(per_list("nDCG@10", rankings(golden_rows())).value)


def test_an_unjudged_item_is_no_irrelevant_item() -> None:
    grades = GOLDEN["unjudged"]["grades"]
    scale = GOLDEN["scale"]
    rows = shown([None if grade is None else grade / scale for grade in grades])
    for label, theirs in GOLDEN["unjudged"]["trec_eval"].items():
        # trec_eval takes it as not relevant; nobody knows that, so there is no value here.
        grouped = [{**row, "group": "A"} for row in rows]
        assert reason(label, grouped) == Reason.RELEVANCE_MISSING
        assert of(label, [(grade or 0) / scale for grade in grades]) == near(theirs)


@pytest.mark.parametrize("label", GOLDEN["ctr"]["jurity"])
def test_jurity_click_through(label: str) -> None:
    found = batch_value(per_list(label, rankings(GOLDEN["ctr"]["rows"])))
    assert found == pytest.approx(GOLDEN["ctr"]["jurity"][label], rel=1e-12)


def test_propensities_are_not_made_up() -> None:
    bare = [
        {name: value for name, value in row.items() if name != "propensity"}
        for row in GOLDEN["ctr"]["rows"]
    ]
    # Jurity then assumes that each of its distinct items was equally likely to be shown.
    items = len({row["item_id"] for row in bare if "click" in row})
    uniform = [{**row, "propensity": 1 / items} for row in bare]
    found = batch_value(per_list("CTR(method=ips)", rankings(uniform)))
    assert found == near(GOLDEN["ctr"]["ips without propensities"])
    grouped = [{**row, "group": "A"} for row in bare]
    assert reason("CTR(method=ips)", grouped) == Reason.PROPENSITY_MISSING


def printed_ndcg(relevance: Sequence[float], k: int) -> float:
    """nDCG with the ideal as it can be read in print: of the items that stand in the first k."""
    top = relevance[:k]
    over = sum(value / log2(rank + 1) for rank, value in enumerate(top, 1))
    under = sum(value / log2(rank + 1) for rank, value in enumerate(sorted(top, reverse=True), 1))
    return over / under if under else 0.0


def test_the_ideal_knows_the_items_below_the_cut_off() -> None:
    hidden = [0.5, 0.0, 1.0]
    assert printed_ndcg(hidden, 2) == 1.0
    assert of("nDCG@2", hidden) == near(0.5 / (1 / log2(2) + 0.5 / log2(3)))
    theirs = GOLDEN["trec_eval"]["nDCG@5"]
    found = per_list("nDCG@5", rankings(golden_rows())).value
    gaps = [
        abs(printed_ndcg(grades, 5) - held)
        for grades, held in zip(GOLDEN["lists"].values(), theirs, strict=True)
    ]
    assert max(gaps) > 0.1
    assert np.nan_to_num(found) == pytest.approx(theirs, rel=1e-12)


# -- plain loops over random lists


@st.composite
def batches(draw: st.DrawFn) -> list[Row]:
    """Ragged lists with ties, gaps, unknown groups and lists in which nothing is relevant."""
    groups = st.sampled_from(["A", "B", "C", None])
    few = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    many = st.integers(0, 1000).map(lambda value: value / 1000)
    predicted = draw(st.booleans())
    rows: list[Row] = []
    for number in range(draw(st.integers(1, 6))):
        relevance = draw(st.sampled_from([few, many, st.just(0.0), st.just(0.3)]))
        step = st.integers(1, 4) if draw(st.booleans()) else st.just(1)
        rank = 0
        for at in range(draw(st.integers(1, 30))):
            rank += draw(step)
            click = draw(st.sampled_from([None, 0.0, 1.0, 0.5]))
            likely = st.sampled_from([0.05, 0.3, 1.0])
            rows.append(
                {
                    "list_id": f"{number}",
                    "item_id": f"i{at}",
                    "rank": rank,
                    "group": draw(groups),
                    "relevance": draw(relevance),
                    "click": click,
                    "propensity": None if click is None else draw(likely),
                    "predicted_click": draw(many) if predicted else None,
                }
            )
    if draw(st.integers(0, 3)) == 0:
        hole = draw(st.sampled_from(["relevance", "click", "propensity", "predicted_click"]))
        rows[draw(st.integers(0, len(rows) - 1))][hole] = None  # type: ignore[index]
    return rows


@settings(max_examples=100)
@given(rows=batches())
def test_plain_loops_agree(rows: list[Row]) -> None:
    for label in LABELS:
        found = evaluated(label, rows)
        expected = slow_quality.score(label, rows, "group")
        if isinstance(expected, dict):
            assert found.values is not None
            ours = dict(zip(found.groups, found.values.values.tolist(), strict=True))
            theirs = {name: np.nan if v is None else v for name, v in expected.items()}
            assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12, nan_ok=True), label
            values = [value for value in ours.values() if not np.isnan(value)]
        else:
            value = found.scores[0].value
            assert (value is None) == (expected is None), label
            values = [] if value is None else [value]
            assert values == (
                [] if expected is None else [pytest.approx(expected, rel=1e-9, abs=1e-12)]
            ), label
        assert all(value in found.measure.metric.range for value in values), label


# -- laws


def many_rows() -> list[Row]:
    """Lists of 1 to 300 rows, some of the same length."""
    rng = np.random.default_rng(6)
    rows: list[Row] = []
    for number, size in enumerate([*rng.integers(1, 40, 60).tolist(), 300, 150, 150]):
        graded = rng.random() < 0.5
        for at in range(size):
            value = rng.random() if graded else float(rng.random() < 0.2)
            click = None if rng.random() < 0.5 else float(rng.random() < 0.3)
            rows.append(
                {
                    "list_id": f"{number:05}",
                    "item_id": f"i{at}",
                    "rank": at + 1,
                    "group": rng.choice(["A", "B", "C", ""]),
                    "relevance": value,
                    "click": click,
                    "propensity": None if click is None else rng.uniform(0.1, 1),
                    "predicted_click": rng.random(),
                }
            )
    return rows


MANY = many_rows()


@pytest.mark.parametrize("label", LABELS)
def test_a_list_has_the_same_bits_alone_and_among_others(label: str) -> None:
    # Target shares name every group, also where some lists lack one.
    groups = dict.fromkeys(["A", "B", "C", "unknown"], 1)
    together = per_list(label, rankings(MANY, "group", target=groups))
    by_list: dict[str, list[Row]] = {}
    for row in MANY:
        by_list.setdefault(row["list_id"], []).append(row)
    names = sorted(by_list)
    pairs = [names[at : at + 2] for at in range(0, len(names), 2)]
    for chunks in ([[name] for name in names], pairs):
        at = 0
        for chunk in chunks:
            rows = [row for name in chunk for row in by_list[name]]
            alone = per_list(label, rankings(rows, "group", target=groups))
            for mine, whole in ((alone.value, together.value), (alone.weight, together.weight)):
                if mine is not None and whole is not None:
                    assert mine.tobytes() == whole[at : at + len(chunk)].tobytes()
            at += len(chunk)
        assert at == len(together.value)


@pytest.mark.parametrize(
    ("grouped", "whole"),
    [
        ("GroupP@3", "P@3"),
        ("GroupP@40", "P@40"),
        ("GroupR@3", "R@3"),
        ("GroupR@40", "R@40"),
        ("GroupnDCG", "nDCG"),
        ("GroupnDCG@3", "nDCG@3"),
        ("GroupnDCG(gain=exp)@3", "nDCG(gain=exp)@3"),
    ],
)
def test_contributions_of_groups_add_up(grouped: str, whole: str) -> None:
    lists = rankings(MANY, "group")
    parts, total = per_list(grouped, lists).value, per_list(whole, lists).value
    assert parts.sum(axis=1) == near(total)
    assert np.nansum(batch_value(per_list(grouped, lists))) == near(
        batch_value(per_list(whole, lists))
    )
    if whole[0] == "P":
        k = int(whole[2:])
        assert (np.rint(parts * k).sum(axis=1) == np.rint(total * k))[~np.isnan(total)].all()


@pytest.mark.parametrize("label", ["RR", "AP", "nDCG", "nDCG@3", "nDCG(gain=exp)", "hit@1"])
def test_the_best_order_is_exactly_1(label: str) -> None:
    rng = np.random.default_rng(7)
    lists = [sorted(rng.random(size), reverse=True) for size in (1, 2, 7, 8, 9, 40, 200)]
    found = per_list(label, rankings(shown(*lists), relevant_from=0.0)).value
    assert (found == 1.0).all()
    alone = [{**row, "group": "A"} for row in shown(*lists)]
    own = per_list("GroupnDCG(of=group)@9", rankings(alone, "group")).value
    assert (own == 1.0).all()


@pytest.mark.parametrize("label", OF_RELEVANCE)
def test_moving_a_better_item_up_never_lowers_a_list(label: str) -> None:
    rng = np.random.default_rng(8)
    for _ in range(20):
        values = [round(value, 2) for value in rng.random(rng.integers(2, 9)).tolist()]
        at = int(rng.integers(0, len(values) - 1))
        moved = values.copy()
        moved[at], moved[at + 1] = max(values[at : at + 2]), min(values[at : at + 2])
        before, after = of(label, values), of(label, moved)
        assert np.isnan(before) == np.isnan(after)
        assert not after < before - 1e-15


@pytest.mark.parametrize("label", LABELS)
def test_doubling_every_list_changes_nothing(label: str) -> None:
    twin = [{**row, "list_id": f"twin of {row['list_id']}"} for row in MANY]
    once = batch_value(per_list(label, rankings(MANY, "group")))
    assert batch_value(per_list(label, rankings([*twin, *MANY], "group"))) == near(once)


@pytest.mark.parametrize("name", ["RR", "AP", "nDCG", "nDCG(gain=exp)", "GroupnDCG", "CTR"])
def test_a_cut_off_below_every_list_cuts_nothing(name: str) -> None:
    lists = rankings(MANY, "group")
    whole, cut = per_list(name, lists), per_list(f"{name}@300", lists)
    assert cut.value.tobytes() == whole.value.tobytes()


def test_gains_are_one_thing_where_relevance_is_0_or_1() -> None:
    rows = [{**row, "relevance": float(row["relevance"] > 0.5)} for row in MANY]
    lists = rankings(rows)
    for name in ("CG", "DCG", "nDCG"):
        exponential = per_list(f"{name}(gain=exp)@9", lists).value
        assert exponential == near(per_list(f"{name}@9", lists).value)


def test_how_the_variants_differ() -> None:
    lists = rankings(MANY)
    relevant = lists.count(lists.relevant)

    def found(label: str) -> Any:
        return per_list(label, lists).value

    for k in (1, 5, 60):
        assert found(f"JurityPrecision@{k}") * np.minimum(k, lists.length) == near(
            found(f"P@{k}") * k
        )
        assert found(f"JurityMAP@{k}") * np.minimum(k, relevant) == near(
            found(f"AP@{k}") * relevant
        )
        assert found(f"JurityRecall@{k}").tobytes() == found(f"R@{k}").tobytes()
        recalls = sum(found(f"R@{depth}") for depth in range(1, k + 1))
        assert found(f"AR@{k}") == near(recalls / k)


def test_numbers_of_many_stretches_fall() -> None:
    rng = np.random.default_rng(9)
    for lengths in ([1], [3, 3, 3], [1, 5, 2, 5, 1, 9], rng.integers(1, 20, 50).tolist()):
        values = rng.integers(0, 4, sum(lengths)) / 4
        edges = np.cumsum(lengths)[:-1]
        expected = [sorted(part, reverse=True) for part in np.split(values, edges)]
        found = np.split(highest_first(values, np.array(lengths)), edges)
        assert [part.tolist() for part in found] == expected


@pytest.mark.parametrize("label", LABELS)
def test_no_lists_have_no_values(label: str) -> None:
    row = rankings([{**MANY[0], "group": "A"}], "group")
    whole, none = np.zeros(0, dtype=np.int64), np.zeros(0)
    empty = replace(
        row,
        **dict.fromkeys(("starts", "rank", "reference_rank", "reference_length"), whole),
        **dict.fromkeys(("relevance", "click", "propensity", "predicted_click"), none),
        relevant=none > 0,
        grouping=replace(row.groups, code=whole),
    )
    assert per_list(label, empty).value.shape == per_list(label, row).value[:0].shape


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
