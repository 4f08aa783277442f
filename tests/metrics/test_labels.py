"""A label is an identity: it can be printed, read back, and written in no second way."""

import re
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs import every_measure

from metrics import (
    AGGREGATIONS,
    FAIRNESS,
    METRICS,
    LabelError,
    Measure,
    Metric,
    Parameter,
    ScoreName,
    parse_measure,
    parse_score,
)
from metrics.families import FAMILIES


def value_of(parameter: Parameter) -> st.SearchStrategy[Any]:
    if parameter.choices:
        return st.sampled_from(parameter.choices)
    if parameter.whole:
        return st.integers(int(parameter.low) + (not parameter.from_low), 1000)
    low, high = max(parameter.low, -1e6), min(parameter.high, 1e6)
    return st.floats(low, high, exclude_min=not parameter.from_low, exclude_max=True)


@st.composite
def measures(draw: st.DrawFn) -> Measure:
    metric = draw(st.sampled_from(METRICS))
    said = {
        parameter.name: draw(value_of(parameter))
        for parameter in metric.parameters
        if draw(st.booleans())
    }
    depths = st.integers(1, 999_999_999)
    optional = st.none() if not metric.cutoff else st.one_of(st.none(), depths)
    k = draw(depths if metric.needs_cutoff else optional)
    return metric.at(k, **said)


scores = measures().flatmap(lambda measure: st.sampled_from(tuple(measure.scores())))


@given(scores)
def test_what_is_printed_can_be_read_back(score: ScoreName) -> None:
    assert parse_score(score.label) == score
    assert parse_score(score.label).label == score.label
    assert parse_measure(score.measure.label) == score.measure
    assert score.measure.metric.at(score.measure.k, **dict(score.measure.parameters)) == (
        score.measure
    )


@given(measures(), st.randoms(use_true_random=False))
def test_order_space_and_defaults_said_make_no_other_label(measure: Measure, chance: Any) -> None:
    said = [
        f" {name} = {str(value).lower() if isinstance(value, bool) else value} "
        for name, value in measure.parameters
    ]
    chance.shuffle(said)
    text = measure.metric.name + (f"({','.join(said)})" if said else "")
    text += "" if measure.k is None else f"@{measure.k}"
    assert parse_measure(f"  {text} ") == measure
    assert parse_measure(text).label == measure.label


@given(st.lists(scores, min_size=2, max_size=30))
def test_labels_and_slugs_are_as_many_as_scores(names: list[ScoreName]) -> None:
    apart = {(name.measure, name.aggregation) for name in names}
    assert len({name.label for name in names}) == len(apart)
    assert len({name.slug for name in names}) == len(apart)
    # What Dagster allows in the name of a check.
    assert all(re.fullmatch(r"[A-Za-z0-9_]+", name.slug) for name in names)


def test_slugs_of_everything_that_can_be_chosen_are_unique() -> None:
    measures = {
        measure.label: measure
        for p in (0.1, 0.11, 0.01)
        for k in (1, 11, 111)
        for measure in every_measure(p, 1 - p, k)
    }
    names = [name for measure in measures.values() for name in measure.scores()]
    assert len({name.slug for name in names}) == len(names)


def test_labels_by_hand() -> None:
    label = "AWRF(p=0.1)@10.MaxMinDiff"
    score = parse_score(label)
    assert (score.measure.metric.name, score.measure.k) == ("AWRF", 10)
    assert dict(score.measure.parameters) == {"p": 0.1, "denominator": "appearances"}
    assert score.aggregation is not None
    assert score.aggregation.name == "MaxMinDiff"
    assert score.slug == "AWRF_p_0_1_10_MaxMinDiff"
    assert parse_score("AWRF.LTwo").label == "AWRF(p=0.1).LTwo"
    assert parse_score("NDKL").label == "NDKL"
    assert parse_score("EXP(denominator=appearances)@010").label == "EXP@10"
    assert parse_measure("EXP(denominator=catalogue)").label == "EXP(denominator=catalogue)"


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("", "is not a label"),
        ("EXP.", "is not a label"),
        ("EXP@", "is not a label"),
        ("EXP@1.5", "is not a label"),
        ("EXP@-1", "is not a label"),
        ("EXP@1(p=1)", "is not a label"),
        ("AWRF(p=0.1", "is not a label"),
        ("AWRF(p=0.1)@10.MaxMinDiff.LTwo", "is not a label"),
        ("exp", "did you mean EXP?"),
        ("NDLK", "did you mean NDKL?"),
        ("XYZ", "`evenrank metrics` lists them"),
        ("EXP.MinMax", "did you mean MinMaxRatio?"),
        ("EXP.ltwo", "did you mean LTwo?"),
        ("NDKL.LTwo", "NDKL is one number and takes no aggregation"),
        ("NDKL@5", "NDKL has no cut-off"),
        ("EXP@0", "a whole number from 1, not 0"),
        ("AWRF(q=0.1)", "AWRF takes p, denominator, not q"),
        ("ARP(p=0.1)", "ARP takes no parameters, not p"),
        ("AWRF(p=0.1,p=0.2)", "p is given twice"),
        ("AWRF(p)", "not of the form name=value"),
        ("AWRF(p=)", "not of the form name=value"),
        ("AWRF(=1)", "AWRF takes p, denominator"),
        ("AWRF(p=0)", "between 0 and 1 (both excluded), not 0"),
        ("AWRF(p=1)", "between 0 and 1 (both excluded), not 1"),
        ("AWRF(p=nan)", "p is a number, not nan"),
        ("AWRF(p=inf)", "p is a number, not inf"),
        ("AWRF(p=true)", "p is a number, not true"),
        ("AWRF(p=half)", "p is a number, not half"),
        ("EXP(denominator=items)", "denominator is one of appearances, catalogue, not items"),
        ("IAA(normalised=1)", "normalised is one of false, true, not 1.0"),
        ("IAA(normalised=0)", "normalised is one of false, true, not 0.0"),
        ("NDKL(reference=0.5)", "reference is one of list, catalogue, target, not 0.5"),
    ],
)
def test_what_names_nothing_is_refused_with_a_hint(label: str, text: str) -> None:
    with pytest.raises(LabelError) as refusal:
        parse_score(label)
    assert text in str(refusal.value)


def test_a_measure_takes_no_aggregation() -> None:
    with pytest.raises(LabelError, match=r"leave out \.LTwo"):
        parse_measure("EXP.LTwo")


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_score_of_a_metric_has_its_label(metric: Metric) -> None:
    usual = metric.usual
    labels = [score.label for score in usual.scores()]
    if metric.per_group or usual.ways:
        assert labels == [f"{usual.label}.{each.name}" for each in usual.ways]
    else:
        assert labels == [usual.label]
    if metric.family is FAIRNESS and metric.per_group:
        assert usual.ways == AGGREGATIONS
    for parameter in metric.parameters:
        # A parameter without which the number means little is said even at its default.
        assert parameter.always == (f"{parameter.name}=" in usual.label)


def test_where_a_number_may_lie_in_words() -> None:
    said = {
        Parameter("x", 0.5, "").bounds,
        Parameter("x", 0.5, "", from_low=True).bounds,
        Parameter("x", 2.0, "", low=1.0, high=inf).bounds,
        Parameter("x", 2.0, "", low=1.0, high=inf, from_low=True).bounds,
        Parameter("x", 2.0, "", low=-inf, high=inf).bounds,
    }
    assert said == {
        "lies between 0 and 1 (both excluded)",
        "lies between 0 and 1 (1 excluded)",
        "is above 1",
        "is at least 1",
        "is any number",
    }


def test_a_family_is_no_metric_and_another_word_is_neither() -> None:
    for family in FAMILIES:
        with pytest.raises(LabelError, match=f"{family.name} is a family of metrics"):
            parse_score(f"{family.name}@3")
    with pytest.raises(LabelError, match="there is no metric Elsewhere"):
        parse_score("Elsewhere")


@pytest.mark.parametrize("k", [0, -1, 10**9])
def test_a_cut_off_is_a_whole_number_that_a_label_can_say(k: int) -> None:
    [metric] = [metric for metric in METRICS if metric.name == "EXP"]
    with pytest.raises(ValueError, match="whole number from 1"):
        metric.at(k)
    assert metric.at(10**9 - 1).label == "EXP@999999999"
    assert metric.at(1).label == "EXP@1"
