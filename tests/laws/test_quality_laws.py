"""Ranking quality: against plain loops over random lists, and by law."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import slow_quality
from cases import examples
from counted import evaluated
from hypothesis import given
from hypothesis import strategies as st
from quality_lists import LABELS, OF_RELEVANCE, near, of, shown
from rankings import Row, batch_value, per_list, rankings

from metrics.quality.ideal import highest_first

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


@examples(100, few=15)
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
