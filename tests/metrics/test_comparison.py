"""Two rankings compared: by hand, beside other libraries, and by brute force."""

import json
from math import fsum, isnan, log, nan, sqrt
from random import Random
from typing import Any

import numpy as np
import pytest
import slow_comparison
from brute_force import lists_of
from cases import examples
from comparison_lists import (
    CUT,
    LABELS,
    OVERLAPS,
    PAIRS,
    READINGS,
    against,
    by_relevance,
    ordered,
    value,
    values_of,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from places import GOLDEN
from rankings import batch_value, per_list, rankings

from metrics import Rankings, parse_measure
from metrics.comparison import COMPARISON_METRICS
from metrics.comparison.correlation import inversions
from metrics.comparison.depths import DepthWeights, harmonic, prefix_weight

PUBLISHED = json.loads((GOLDEN / "comparison.json").read_text("utf-8"))

# -- by hand


def test_average_overlap_is_the_mean_agreement_of_the_prefixes() -> None:
    assert value("AO", "abc", "acb") == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert value("AO@2", "abc", "acb") == pytest.approx((1 + 1 / 2) / 2)


def test_average_overlap_ends_where_the_shorter_list_does() -> None:
    assert value("AO", "ab", "bacd") == pytest.approx((0 + 2 / 2) / 2)
    assert value("AO@10", "bacd", "ab") == pytest.approx((0 + 2 / 2) / 2)


def test_items_without_relevance_have_no_place_in_the_order_by_it() -> None:
    # a b c shown, a c by relevance: one of one, then one of two; a third depth there is not.
    assert ordered("AO", [0.9, None, 0.1]) == pytest.approx((1 + 1 / 2) / 2)


@pytest.mark.parametrize(
    ("label", "same", "opposite"),
    [("NDPM", 0, 1), ("FCP", 1, 0), ("Kendall", 1, -1), ("Spearman", 1, -1), ("Pearson", 1, -1)],
)
def test_three_items_are_the_fewest_with_an_order(label: str, same: int, opposite: int) -> None:
    assert value(label, "abc", "abc") == same
    assert value(label, "abc", "cba") == opposite
    assert isnan(value(label, "ab", "ab"))


@pytest.mark.parametrize("depth", [1, 63, 64, 65, 127, 128, 129])
def test_harmonic_numbers_reach_as_deep_as_asked(depth: int) -> None:
    found = harmonic(depth)[depth]
    assert found == pytest.approx(fsum(1 / i for i in range(1, depth + 1)), rel=1e-14)


@pytest.mark.parametrize("depth", [1, 61, 62, 63, 64, 126, 127])
def test_weights_reach_as_deep_as_asked(depth: int) -> None:
    """beyond(d) = tail(d + 1) + beyond(d + 1)."""
    p, at = 0.9, np.array([depth])
    found = DepthWeights(p, depth).beyond(at)
    deeper = DepthWeights(p, depth + 1)
    assert found == pytest.approx(deeper.tail(at + 1) + deeper.beyond(at + 1), rel=1e-9, abs=0)


def test_long_lists_that_share_nothing() -> None:
    """Nothing is known to agree; of 2n different items all prefixes from 2n on can be the same."""
    p, n = 0.999, 64
    weights = DepthWeights(p, 2 * n)
    shown, reference = [f"a{i}" for i in range(n)], [f"b{i}" for i in range(n)]
    known, agreed = weights.beyond(np.array([n, 2 * n])).tolist()
    assert value(f"RBO(p={p}).MIN", shown, reference) == 0
    assert value(f"RBO(p={p}).RES", shown, reference) == pytest.approx(2 * known - agreed)


def test_a_reference_rank_is_repeated_within_a_list_only() -> None:
    rows = [
        {"list_id": name, "item_id": str(rank), "rank": rank, "reference_rank": reference}
        for name, references in (("a", (1, 2)), ("b", (2, 3)), ("c", (3, 3)), ("d", (None, None)))
        for rank, reference in enumerate(references, start=1)
    ]
    assert rankings(rows).repeats_reference.tolist() == [False, False, True, False]


def test_the_example_of_the_write_up_has_an_overlap_of_seven() -> None:
    agreement = [1, 1 / 2, 1, 1, 1, 5 / 6, 1]
    assert value("AO", "1234567", "13245768") == pytest.approx(sum(agreement) / 7)


def test_one_item_is_worth_all_depths() -> None:
    p = 0.9
    first = (1 - p) / p * log(1 / (1 - p))
    assert value("RBO(p=0.9).MIN", "a", "a") == pytest.approx(first)
    assert value("RBO(p=0.9).RES", "a", "a") == pytest.approx(1 - first)
    assert value("RBO(p=0.9).EXT", "a", "a") == pytest.approx(1)
    # Two different items can be the first two of both lists, so all may agree from depth 2 on.
    assert value("RBO(p=0.9).MIN", "a", "b") == 0
    assert value("RBO(p=0.9).RES", "a", "b") == pytest.approx(p)
    assert value("RBO(p=0.9).EXT", "a", "b") == 0


def test_extrapolation_beyond_a_shorter_list() -> None:
    """Webber et al., eq. 32, for S = a b beside L = c a d: X = 0 1 1."""
    p, (s, long), overlaps = 0.8, (2, 3), (0, 1, 1)
    seen = fsum(x * p**d / d for d, x in enumerate(overlaps, start=1))
    carried = overlaps[s - 1] * (3 - s) / (s * 3) * p**3
    beyond = ((overlaps[2] - overlaps[1]) / long + overlaps[1] / s) * p**long
    expected = (1 - p) / p * (seen + carried) + beyond
    assert value("RBO(p=0.8).EXT", "ab", "cad") == pytest.approx(expected)
    assert value("RBO(p=0.8).EXT", "cad", "ab") == pytest.approx(expected)


@pytest.mark.parametrize("items", ["a", "abc", "abcd", "abcdefghij"])
def test_a_list_agrees_with_itself(items: str) -> None:
    for label in ("AO", "RBO(p=0.9).EXT", "AO@2", "RBO(p=0.5)@2.EXT"):
        assert value(label, items, items) == 1
        assert value(label, items, items + "xyz") == 1
    assert value("RBD(p=0.9)", items, items) == 0
    weight = prefix_weight(0.9, len(items))
    assert value("RBO(p=0.9).MIN", items, items) == pytest.approx(weight)
    assert value("RBO(p=0.9).RES", items, items) == pytest.approx(1 - weight)


def test_no_other_list_agrees_in_full() -> None:
    for other in ("acb", "abd", "cab", "xabc", "abx"):
        assert value("AO", "abc", other) < 1
        assert value("RBD(p=0.9)", "abc", other) > 0


def test_same_and_reversed_order_are_the_ends_of_the_scale_exactly() -> None:
    same = {"NDPM": 0, "FCP": 1, "Kendall": 1, "Spearman": 1, "Pearson": 1}
    turned = {"NDPM": 1, "FCP": 0, "Kendall": -1, "Spearman": -1, "Pearson": -1}
    for size in (3, 4, 7, 10, 17, 1000):
        items = [str(at) for at in range(size)]
        for label in PAIRS:
            # Pearson's sums are of doubles, and those of a reversed list are not the same ones.
            near = 1e-14 if label == "Pearson" else 0
            assert value(label, items, items) == same[label]
            assert abs(value(label, items, items[::-1]) - turned[label]) <= near


def test_most_relevant_on_top_is_the_same_order() -> None:
    assert ordered("Kendall", [1.0, 0.6, 0.1]) == 1
    assert ordered("FCP", [0.1, 0.6, 1.0]) == 0
    assert ordered("Pearson", [1.0, 0.5, 0.0]) == pytest.approx(1)
    assert ordered("AO", [1.0, 0.6, 0.1]) == pytest.approx(1)


def test_pairs_that_the_reference_ties() -> None:
    """Relevance 1 0 1: of three pairs one is right, one wrong and one tied."""
    assert ordered("NDPM", [1, 0, 1]) == 1 / 2
    assert ordered("FCP", [1, 0, 1]) == 1 / 2
    assert ordered("Kendall", [1, 0, 1]) == 0
    assert ordered("Kendall", [1, 1, 0]) == pytest.approx((2 - 0) / sqrt(3 * 2))
    # Places 1 2 3 beside 1.5 1.5 3.
    assert ordered("Spearman", [1, 1, 0]) == pytest.approx(1.5 / sqrt(2 * 1.5))


def test_ties_of_relevance_stand_as_shown_in_overlaps() -> None:
    assert np.isnan(ordered("AO", [0.5, 0.5, 0.5])), "what is all alike has no order"
    # By relevance: second, fourth, first, third.
    assert ordered("AO", [0, 1, 0, 1]) == pytest.approx((0 / 1 + 1 / 2 + 2 / 3 + 4 / 4) / 4)


def test_gaps_in_ranks_stay_beside_logged_ranks_and_close_beside_relevance() -> None:
    rows = [
        {"list_id": "q", "item_id": item, "rank": rank, "reference_rank": rank, "relevance": r}
        for item, rank, r in (("a", 1, 0.9), ("b", 3, 0.5))
    ]
    lists = rankings(rows)
    assert values_of("AO", lists)[0] == pytest.approx((1 / 1 + 1 / 2 + 2 / 3) / 3)
    assert values_of("AO(reference=relevance)", lists)[0] == pytest.approx(1)


@pytest.mark.parametrize("label", [*OVERLAPS, *CUT, *PAIRS])
def test_a_list_without_reference_has_no_value(label: str) -> None:
    assert isnan(value(label, "abc", ""))
    assert isnan(ordered(label, [None, None, None]))


def test_disjoint_lists_overlap_in_nothing_and_have_no_pairs() -> None:
    assert value("AO", "abc", "def") == 0
    assert value("RBO(p=0.9).EXT", "abc", "def") == 0
    assert value("RBD(p=0.9)", "abc", "def") == 1
    assert all(isnan(value(label, "abc", "def")) for label in PAIRS)


@pytest.mark.parametrize("label", PAIRS)
def test_two_pairs_in_strict_order_are_needed(label: str) -> None:
    assert isnan(value(label, "a", "a"))
    assert isnan(value(label, "ab", "ba"))
    assert isnan(value(label, "abcd", "bxxa"))
    assert isnan(ordered(label, [0.1, 0.1, 0.1, 0.1]))
    assert not isnan(ordered(label, [0.1, 0.1, 0.2]))


@pytest.mark.parametrize("label", ["NDPM", "FCP", "Kendall", "Spearman"])
def test_items_without_a_reference_are_in_no_pair(label: str) -> None:
    assert value(label, "xaybzc", "cab") == value(label, "abc", "cab")
    assert ordered(label, [0.2, None, 0.9, 0.4]) == ordered(label, [0.2, 0.9, 0.4])


def test_pearson_takes_the_logged_ranks_as_they_are() -> None:
    # Ranks 2 4 6 beside 2 3 1.
    assert value("Pearson", "xaybzc", "cab") == pytest.approx(-2 / sqrt(8 * 2))


def test_constant_relevance_is_constant_whatever_its_digits() -> None:
    for constant in (0.1, 0.7, 1 / 3):
        assert isnan(ordered("Pearson", [constant] * 10))
    # A last digit is a difference.
    assert ordered("Pearson", [np.nextafter(0.7, 1), 0.7, 0.7]) == pytest.approx(sqrt(3) / 2)
    assert ordered("Pearson", [5e-324, 0.0, 0.0]) == pytest.approx(sqrt(3) / 2)


def test_no_lists_have_no_values() -> None:
    none = np.zeros(0)
    whole = np.zeros(0, dtype=np.int64)
    lists = Rankings(whole, whole, none, none.astype(bool), none, whole, whole, none, none)
    for label in LABELS:
        assert values_of(label, lists).shape == (0,)


# -- beside other libraries


@pytest.mark.parametrize("case", PUBLISHED["lists"], ids=lambda case: str(case["name"]))
def test_overlaps_as_other_libraries_have_them(case: dict[str, Any]) -> None:
    rbo = f"RBO(p={case['p']})"
    found = {
        name: value(name if name == "AO" else f"{rbo}.{name}", case["shown"], case["reference"])
        for name in ("AO", *READINGS)
    }
    expected = {**case["sigir2024-rbo"], **case["rbo"]}
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-14)
    assert case["sigir2024-rbo"]["EXT"] == pytest.approx(case["rbo"]["EXT"], abs=1e-12)


@pytest.mark.parametrize("case", PUBLISHED["orders"], ids=lambda case: str(case["name"]))
def test_orders_as_other_libraries_have_them(case: dict[str, Any]) -> None:
    rows = [
        {"list_id": "q", "item_id": str(rank), "rank": rank, kind: each}
        for kind in ("reference_rank", "relevance")
        for rank, each in enumerate(case.get(kind, ()), start=1)
    ]
    logged = "reference_rank" in case
    for label, expected in {**case["scipy"], "FCP": case["fcp"]}.items():
        (found,) = values_of(label if logged else by_relevance(label), rankings(rows))
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-14)


# -- by brute force

GRADES = st.sampled_from([None, 0.0, 0.25, 0.5, 0.7, 1.0])


@st.composite
def many_lists(draw: st.DrawFn, *, unjudged: bool = True) -> tuple[list[dict[str, Any]], Any]:
    """Ragged lists of 1 to 30 rows, with gaps in ranks and references of other depths."""
    rows: list[dict[str, Any]] = []
    depths = {}
    for number in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1, 30))
        gaps = draw(st.booleans())
        ranks = sorted(draw(st.permutations(range(1, size + 6)))[:size])
        depth = draw(st.integers(0, 30))
        places = draw(st.permutations([*range(1, depth + 1), *[0] * (size + 1)]))
        name = f"q{number}"
        depths[name] = depth
        rows += [
            {
                "list_id": name,
                "item_id": f"{name} {at}",
                "rank": ranks[at] if gaps else at + 1,
                "reference_rank": places[at] or None,
                "relevance": draw(GRADES if unjudged else st.sampled_from([0.0, 0.5, 1.0])),
            }
            for at in range(size)
        ]
    return rows, depths


@examples(60, few=10)
@given(many_lists())
def test_every_label_is_what_its_definition_gives(drawn: tuple[list[dict[str, Any]], Any]) -> None:
    rows, depths = drawn
    lists = rankings(rows, reference_length=depths)
    for label in LABELS:
        found = values_of(label, lists)
        expected = [
            slow_comparison.one_list(label, each, depths[name])
            for name, each in sorted(lists_of(rows).items())
        ]
        wanted = [nan if each is None else each for each in expected]
        assert found.tolist() == pytest.approx(wanted, rel=1e-9, abs=1e-13, nan_ok=True), label


@settings(max_examples=20)
@given(many_lists(unjudged=False))
def test_the_batch_has_the_mean_of_its_lists(drawn: tuple[list[dict[str, Any]], Any]) -> None:
    rows, depths = drawn
    lists = rankings(rows, reference_length=depths)
    for label in ("AO", "RBO(p=0.9).EXT", "Kendall", "NDPM(reference=relevance)"):
        found = batch_value(per_list(label, lists))
        expected = slow_comparison.score(label, rows, reference_length=depths)
        assert found == pytest.approx(
            nan if expected is None else expected, rel=1e-9, abs=1e-13, nan_ok=True
        )


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=40), min_size=1, max_size=8))
def test_inversions_are_the_pairs_out_of_order(values: list[list[int]]) -> None:
    starts = np.cumsum([0, *map(len, values[:-1])])
    expected = [sum(a > b for at, a in enumerate(each) for b in each[at + 1 :]) for each in values]
    assert inversions(np.concatenate(values), starts).tolist() == expected


def test_pairs_of_a_long_list_are_counted_exactly() -> None:
    """A reversed list of n items has n (n - 1) / 2 of them, and a known few fewer."""
    n = 100_000
    turned = np.arange(n)[::-1].copy()
    turned[[0, 1]] = turned[[1, 0]]
    assert inversions(turned, np.array([0])).tolist() == [n * (n - 1) // 2 - 1]


def test_a_list_has_the_same_bits_alone_and_among_others() -> None:
    draw = Random(5)
    rows: list[dict[str, Any]] = []
    depths = {}
    for number in range(1000):
        size = draw.choice([1, 2, 3, 5, 8, 13, 40])
        name = f"q{number:04}"
        depths[name] = draw.randint(0, 60)
        places = draw.sample(range(1, 61), size)
        rows += [
            {
                "list_id": name,
                "item_id": str(at),
                "rank": at + 1,
                "reference_rank": places[at] if places[at] <= depths[name] else None,
                "relevance": draw.random(),
            }
            for at in range(size)
        ]
    deep = against([str(at) for at in range(3000)], [str(at) for at in range(3000)], "z")
    depths["z"] = 3000
    lists = lists_of(rows)
    chosen = sorted(draw.sample(sorted(lists), 60))
    together = rankings([*rows, *deep], reference_length=depths)
    at = [sorted(lists).index(name) for name in chosen]
    apart = [rankings(lists[name], reference_length={name: depths[name]}) for name in chosen]
    for label in LABELS:
        alone = np.concatenate([values_of(label, each) for each in apart])
        assert values_of(label, together)[at].tobytes() == alone.tobytes(), label


# -- declarations


def test_declared_sides_and_ranges() -> None:
    said = {
        score.label: (score.fairest, score.alarm, str(score.range))
        for metric in COMPARISON_METRICS
        for score in metric.usual.scores()
    }
    unit, signed = "[0, 1]", "[-1, 1]"
    assert said == {
        "AO": (1, "low", unit),
        "RBO(p=0.9).MIN": (None, "low", unit),
        "RBO(p=0.9).RES": (None, None, unit),
        "RBO(p=0.9).EXT": (1, "low", unit),
        "RBD(p=0.9)": (0, "high", unit),
        "NDPM": (0, "high", unit),
        "FCP": (1, "low", unit),
        "Kendall": (1, "low", signed),
        "Spearman": (1, "low", signed),
        "Pearson": (1, "low", signed),
    }


def test_each_reference_needs_its_own_column() -> None:
    for metric in COMPARISON_METRICS:
        usual = metric.usual
        other = metric.at(reference="relevance")
        assert usual.columns == {"reference_rank"} == metric.partial
        assert other.columns == {"relevance"}
        assert not metric.grouped


@pytest.mark.parametrize("label", PAIRS)
def test_metrics_of_pairs_look_at_whole_lists(label: str) -> None:
    with pytest.raises(ValueError, match="needs whole lists"):
        parse_measure(f"{label}@10")
