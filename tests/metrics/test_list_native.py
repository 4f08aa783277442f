"""List-native fairness: declarations, against loops over random lists, and laws of all metrics."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import slow_list_native as slow
from cases import examples
from counted import one_of
from hypothesis import given
from list_native_lists import (
    LABELS,
    QUERY_LABELS,
    Row,
    close,
    lists_of,
    logs,
    of_list,
    pooled,
    rows_of,
)
from rankings import batch_value, per_list, rankings
from slow_queries import as_queries

from metrics import GroupMetric, PerList, Rankings, Reason, parse_measure
from metrics.list_native import LIST_NATIVE_METRICS

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


# -- against loops


CONTEXT: dict[str, Any] = {
    "target": {"A": 0.5, "B": 0.25, "C": 0.125, "D": 0.125},
    "catalogue": {"A": 3.0, "B": 5.0, "E": 8.0, "unknown": 4.0},
}


@examples(60, few=10)
@given(rows=logs())
@pytest.mark.parametrize("label", LABELS)
def test_every_metric_agrees_with_loops(label: str, rows: list[Row]) -> None:
    lists = rankings(rows, "group", **CONTEXT)
    found = batch_value(per_list(label, lists))
    wanted = slow.score(label, rows, "group", **CONTEXT)
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
    lists = rankings(rows, "group", **CONTEXT)
    assert lists.grouping is not None
    everyone = replace(lists.grouping, takes_part=np.ones(len(lists.grouping.names), dtype=bool))
    found = batch_value(per_list(label, replace(lists, grouping=everyone)))
    wanted = slow.score(label, rows, "group", unknown_counts=True, **CONTEXT)
    values = wanted if isinstance(wanted, dict) else {"": wanted}
    by_name = dict(zip(lists.grouping.names, np.atleast_1d(found).tolist(), strict=False))
    for group, value in values.items():
        mine = by_name[group] if group else float(found)
        assert mine == pytest.approx(
            math.nan if value is None else value, rel=1e-9, abs=1e-12, nan_ok=True
        ), group


@examples(60, few=10)
@given(rows=logs())
@pytest.mark.parametrize("label", ["Skew@3", "Skew@10", "Skew(reference=target)@4"])
def test_skew_of_the_batch_agrees_with_loops(label: str, rows: list[Row]) -> None:
    for row in rows:
        row["rank"] = int(row["item_id"][1:]) + 1
    names = sorted({row["list_id"] for row in rows})
    texts = [
        "".join(row["group"] or "." for row in rows if row["list_id"] == name) for name in names
    ]
    target = {"A": 0.75, "B": 0.25}
    found = pooled(label, *texts, target=target)
    for group, value in slow.score(label, rows, "group", target=target).items():  # type: ignore[union-attr]
        assert (found[group] if value is not None else None) == (
            None if value is None else close(value)
        ), group
        assert (value is None) == isinstance(found[group], Reason), group


@examples(60, few=10)
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


@cache
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


@pytest.mark.parametrize("label", [*LABELS, *QUERY_LABELS, "FAIR@100", "Skew(per=list)@1000"])
def test_a_list_among_a_thousand_has_the_same_bits_as_alone(label: str) -> None:
    lists = many_lists()
    together = per_list(label, lists)
    for at in (*range(0, 999, 37), 998, 999):
        alone = per_list(label, one_of(lists, at))
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


ORDER = np.append(np.arange(20)[::-1], 20)
"""Other places for the groups of ``many_lists``; who has no group stays the last."""


@cache
def renamed_lists() -> Rankings:
    lists = many_lists()
    assert lists.grouping is not None
    turned = replace(
        lists.grouping,
        code=ORDER[lists.grouping.code],
        target=lists.grouping.target[ORDER],  # type: ignore[index]
        catalogue=lists.grouping.catalogue[ORDER],  # type: ignore[index]
    )
    return replace(lists, grouping=turned)


@pytest.mark.parametrize("label", LABELS)
def test_names_of_groups_do_not_matter(label: str) -> None:
    found = per_list(label, many_lists()).value
    other = per_list(label, renamed_lists()).value
    other = other[:, ORDER] if other.ndim == 2 else other
    # As pytest.approx has it, which takes half a second for so many numbers.
    with np.errstate(invalid="ignore"):
        near = np.abs(other - found) <= np.maximum(1e-9 * np.abs(found), 1e-12)
    assert (near | (other == found) | (np.isnan(other) & np.isnan(found))).all()
