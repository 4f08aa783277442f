"""Two rankings compared: by hand, beside other libraries, by brute force and digit by digit."""

import json
from collections.abc import Sequence
from decimal import Decimal, localcontext
from itertools import product
from math import fsum, inf, isnan, log, nan, sqrt
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import slow_comparison
from hypothesis import given, settings
from hypothesis import strategies as st
from rankings import batch_value, per_list, rankings

from metrics import Rankings, parse_measure
from metrics.comparison import COMPARISON_METRICS
from metrics.comparison.correlation import inversions
from metrics.comparison.depths import DepthWeights, prefix_weight

GOLDEN = json.loads((Path(__file__).parent / "golden" / "comparison.json").read_text("utf-8"))
READINGS = ("MIN", "RES", "EXT")
OVERLAPS = ("AO", "RBD(p=0.9)", *(f"RBO(p=0.9).{reading}" for reading in READINGS))
CUT = ("AO@3", "RBD(p=0.8)@3", *(f"RBO(p=0.8)@3.{reading}" for reading in READINGS))
PAIRS = ("NDPM", "FCP", "Kendall", "Spearman", "Pearson")


def by_relevance(label: str) -> str:
    """The same label against the order by relevance."""
    name, bracket, rest = label.partition("(")
    if bracket:
        return f"{name}({rest.replace(')', ',reference=relevance)')}"
    name, at, k = name.partition("@")
    return f"{name}(reference=relevance){at}{k}"


LABELS = tuple(label for each in (*OVERLAPS, *CUT, *PAIRS) for label in (each, by_relevance(each)))


def function_of(label: str) -> Any:
    """What computes a label, with its reading after the last dot."""
    stem, dot, reading = label.rpartition(".")
    if not dot or reading not in READINGS:
        stem, reading = label, ""
    measure = parse_measure(stem)
    function = measure.list_functions[reading or None]
    return lambda lists: function(lists, measure.given).value


def against(
    shown: Sequence[str], reference: Sequence[str], name: str = "q"
) -> list[dict[str, Any]]:
    """Rows of a list beside the ranking it is compared with."""
    places = {item: place for place, item in enumerate(reference, start=1)}
    return [
        {"list_id": name, "item_id": item, "rank": rank, "reference_rank": places.get(item)}
        for rank, item in enumerate(shown, start=1)
    ]


def value(label: str, shown: Sequence[str], reference: Sequence[str]) -> float:
    """A label's value of one list and its reference, one letter per item."""
    lists = rankings(against(shown, reference), reference_length={"q": len(reference)})
    (found,) = function_of(label)(lists).tolist()
    return found


def ordered(label: str, relevance: Sequence[float | None]) -> float:
    """A label's value of one list whose items have these relevances, from the top."""
    rows = [
        {"list_id": "q", "item_id": str(rank), "rank": rank, "relevance": each}
        for rank, each in enumerate(relevance, start=1)
    ]
    (found,) = function_of(by_relevance(label))(rankings(rows)).tolist()
    return found


# By hand.


def test_average_overlap_is_the_mean_agreement_of_the_prefixes() -> None:
    assert value("AO", "abc", "acb") == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert value("AO@2", "abc", "acb") == pytest.approx((1 + 1 / 2) / 2)


def test_average_overlap_ends_where_the_shorter_list_does() -> None:
    assert value("AO", "ab", "bacd") == pytest.approx((0 + 2 / 2) / 2)
    assert value("AO@10", "bacd", "ab") == pytest.approx((0 + 2 / 2) / 2)


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
    assert ordered("AO", [0.5, 0.5, 0.5]) == pytest.approx(1)
    # By relevance: second, fourth, first, third.
    assert ordered("AO", [0, 1, 0, 1]) == pytest.approx((0 / 1 + 1 / 2 + 2 / 3 + 4 / 4) / 4)


def test_gaps_in_ranks_stay_beside_logged_ranks_and_close_beside_relevance() -> None:
    rows = [
        {"list_id": "q", "item_id": item, "rank": rank, "reference_rank": rank, "relevance": r}
        for item, rank, r in (("a", 1, 0.9), ("b", 3, 0.5))
    ]
    lists = rankings(rows)
    assert function_of("AO")(lists)[0] == pytest.approx((1 / 1 + 1 / 2 + 2 / 3) / 3)
    assert function_of("AO(reference=relevance)")(lists)[0] == pytest.approx(1)


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
        assert function_of(label)(lists).shape == (0,)


# Beside other libraries.


@pytest.mark.parametrize("case", GOLDEN["lists"], ids=lambda case: str(case["name"]))
def test_overlaps_as_other_libraries_have_them(case: dict[str, Any]) -> None:
    rbo = f"RBO(p={case['p']})"
    found = {
        name: value(name if name == "AO" else f"{rbo}.{name}", case["shown"], case["reference"])
        for name in ("AO", *READINGS)
    }
    expected = {**case["sigir2024-rbo"], **case["rbo"]}
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-14)
    assert case["sigir2024-rbo"]["EXT"] == pytest.approx(case["rbo"]["EXT"], abs=1e-12)


@pytest.mark.parametrize("case", GOLDEN["orders"], ids=lambda case: str(case["name"]))
def test_orders_as_other_libraries_have_them(case: dict[str, Any]) -> None:
    rows = [
        {"list_id": "q", "item_id": str(rank), "rank": rank, kind: each}
        for kind in ("reference_rank", "relevance")
        for rank, each in enumerate(case.get(kind, ()), start=1)
    ]
    logged = "reference_rank" in case
    for label, expected in {**case["scipy"], "FCP": case["fcp"]}.items():
        (found,) = function_of(label if logged else by_relevance(label))(rankings(rows))
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-14)


# By brute force.

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


@settings(max_examples=60)
@given(many_lists())
def test_every_label_is_what_its_definition_gives(drawn: tuple[list[dict[str, Any]], Any]) -> None:
    rows, depths = drawn
    lists = rankings(rows, reference_length=depths)
    for label in LABELS:
        found = function_of(label)(lists)
        expected = [
            slow_comparison.one_list(label, each, depths[name])
            for name, each in slow_comparison.split(rows)
        ]
        wanted = [nan if each is None else each for each in expected]
        assert found.tolist() == pytest.approx(wanted, rel=1e-9, abs=1e-13, nan_ok=True), label


@settings(max_examples=20)
@given(many_lists(unjudged=False))
def test_the_batch_has_the_mean_of_its_lists(drawn: tuple[list[dict[str, Any]], Any]) -> None:
    rows, depths = drawn
    lists = rankings(rows, reference_length=depths)
    for label in ("AO", "RBO(p=0.9).EXT", "Kendall", "NDPM(reference=relevance)"):
        stem, _, reading = label.partition(").") if ")." in label else (label, "", "")
        found = batch_value(per_list(f"{stem}).{reading}" if reading else stem, lists))
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
    lists = dict(slow_comparison.split(rows))
    chosen = sorted(draw.sample(sorted(lists), 60))
    together = rankings([*rows, *deep], reference_length=depths)
    at = [sorted(lists).index(name) for name in chosen]
    apart = [rankings(lists[name], reference_length={name: depths[name]}) for name in chosen]
    for label in LABELS:
        function = function_of(label)
        alone = np.concatenate([function(each) for each in apart])
        assert function(together)[at].tobytes() == alone.tobytes(), label


# What the readings promise.


def completed(
    shown: list[str], reference: list[str], depth: int, *, agreeing: bool
) -> tuple[list[str], list[str]]:
    """Both lists filled up to ``depth``, with what the other has already or with nothing common."""
    one, other = list(shown), list(reference)
    for at in range(depth):
        for mine, theirs, who in ((one, other, "s"), (other, one, "t")):
            if len(mine) > at:
                continue
            lacking = [item for item in theirs if item not in mine] if agreeing else []
            mine.append(lacking[0] if lacking else f"{at}" + ("" if agreeing else who))
    return one, other


@pytest.mark.parametrize(
    ("shown", "reference"),
    list(product(["abc", "a", "dcbaef", "xyz"], ["abc", "cabd", "efgh", "xa"])),
)
def test_the_readings_are_the_bounds_over_all_that_may_follow(shown: str, reference: str) -> None:
    p, depth = 0.7, 90
    found = {name: value(f"RBO(p={p}).{name}", shown, reference) for name in READINGS}
    reached = []
    for agreeing in (False, True):
        one, other = completed(list(shown), list(reference), depth, agreeing=agreeing)
        reached.append(
            fsum(
                (1 - p) * p ** (d - 1) * len(set(one[:d]) & set(other[:d])) / d
                for d in range(1, depth + 1)
            )
        )
    least, most = reached
    assert found["MIN"] == pytest.approx(least, abs=1e-12)
    assert found["MIN"] + found["RES"] == pytest.approx(most, abs=1e-12)
    assert least - 1e-12 <= found["EXT"] <= most + 1e-12


def overlaps(shown: str, reference: str) -> list[int]:
    """X_d of two lists of equal depth."""
    return [len(set(shown[:d]) & set(reference[:d])) for d in range(1, len(shown) + 1)]


def defining_sums(found: list[int], p: float) -> tuple[float, float]:
    """MIN and RES as their sums to infinity: base and tail, with X_d = X_k beyond k at least."""
    k, last, far = len(found), found[-1], 2000
    least = fsum(
        (1 - p) * p ** (d - 1) * (found[d - 1] if d <= k else last) / d for d in range(1, far)
    )
    gained = fsum(
        (1 - p) * p ** (d - 1) * (min(d, last + 2 * (d - k)) - last) / d for d in range(k + 1, far)
    )
    return least, gained


@pytest.mark.parametrize(("shown", "reference"), [("abcd", "badc"), ("abcd", "xbyz"), ("ab", "ab")])
def test_the_log_term_stands_outside_the_sum(shown: str, reference: str) -> None:
    p, found = 0.9, overlaps(shown, reference)
    k, last = len(found), found[-1]
    terms = [(x - last) * p**d / d for d, x in enumerate(found, start=1)]
    outside = (1 - p) / p * (fsum(terms) - last * log(1 - p))
    printed = (1 - p) / p * fsum(term - last * log(1 - p) for term in terms)
    least, _ = defining_sums(found, p)
    assert outside == pytest.approx(least, rel=1e-12)
    assert value(f"RBO(p={p}).MIN", shown, reference) == pytest.approx(least, rel=1e-12)
    assert k > 1
    assert printed - least == pytest.approx((k - 1) * (1 - p) / p * last * -log(1 - p))
    assert printed > least + 0.1


@pytest.mark.parametrize(("shown", "reference"), [("abcd", "wxyz"), ("abcd", "xbyz"), ("ab", "ab")])
def test_what_is_gained_beyond_full_agreement_is_added_once(shown: str, reference: str) -> None:
    """The bracket as printed takes the second sum into the first: once per depth from k+1 to f."""
    p, found = 0.9, overlaps(shown, reference)
    k, last = len(found), found[-1]
    full = 2 * k - last
    rising = [2 * (d - k) / d * p ** (d - 1) for d in range(k + 1, full + 1)]
    beyond = fsum((1 - last / d) * p ** (d - 1) for d in range(full + 1, 2000))
    printed = (1 - p) * fsum(term + beyond for term in rising)
    _, gained = defining_sums(found, p)
    assert (1 - p) * (fsum(rising) + beyond) == pytest.approx(gained, rel=1e-12)
    assert value(f"RBO(p={p}).RES", shown, reference) == pytest.approx(gained, rel=1e-12)
    assert abs(printed - gained) > 0.1


# Digit by digit.


def exact_tails(p: float, depths: int) -> list[Decimal]:
    """(1 - p) sum over d >= m of p^(d-1) / d for m = 1..depths, in the digits of the context."""
    exact = Decimal(p)
    rest, power, tails = (1 / (1 - exact)).ln(), Decimal(1), []
    for d in range(1, depths + 1):
        tails.append((1 - exact) / exact * rest)
        power *= exact
        rest -= power / d
    return tails


NEAR_ONE = (0.5, 0.9, 0.99, 0.999, 0.9999, 1 - 1e-6, 1 - 1e-9, 1 - 2**-52)


@pytest.mark.parametrize("p", NEAR_ONE)
def test_tails_keep_their_digits_at_any_depth(p: float) -> None:
    depth = 10_000
    weights = DepthWeights(p, depth)
    with localcontext() as context:
        context.prec = 120 if p > 0.98 else 2 * depth
        if p < 0.98:
            depth = 900
            context.prec = 400
        tails = exact_tails(p, depth + 1)
        for d in (*range(1, 140), 500, 511, 512, depth // 2, depth - 1, depth):
            tail, beyond = tails[d - 1], Decimal(p) ** d - d * tails[d]
            if tail < Decimal("1e-250"):
                continue
            at = np.array([d])
            assert abs(Decimal(float(weights.tail(at)[0])) / tail - 1) < Decimal("1e-12")
            assert abs(Decimal(float(weights.beyond(at)[0])) / beyond - 1) < Decimal("1e-12")
            whole = 1 - Decimal(p) ** (d - 1) + d * tail
            assert abs(Decimal(prefix_weight(p, d)) / whole - 1) < Decimal("1e-12")


@pytest.mark.parametrize("p", NEAR_ONE)
def test_readings_keep_their_digits_at_depth_ten_thousand(p: float) -> None:
    """A list beside one that is shifted by a few places and goes on for longer."""
    size, more, shift = 9_000, 1_000, 7
    places = [(at + shift - 1) % size + 1 for at in range(1, size + 1)]
    rows = [
        {"list_id": "q", "item_id": str(at), "rank": at, "reference_rank": place}
        for at, place in enumerate(places, start=1)
    ]
    lists = rankings(rows, reference_length={"q": size + more})
    found = {name: float(function_of(f"RBO(p={p!r}).{name}")(lists)[0]) for name in READINGS}
    with localcontext() as context:
        context.prec = 1000 if p < 0.98 else 120
        exact, base = Decimal(p), Decimal(0)
        s, long = size, size + more
        x, power = 0, Decimal(1)
        deeper = sorted(max(at, place) for at, place in enumerate(places, start=1))
        carried = gained = Decimal(0)
        for d in range(1, long + 1):
            power *= exact
            while x < size and deeper[x] <= d:
                x += 1
            base += x * power / d
            carried += Decimal(size * (d - s)) / (s * d) * power if d > s else 0
            gained += Decimal(max(0, d - s)) / d * power
        rest = (1 / (1 - exact)).ln()
        series = [exact**d / d for d in range(1, long + 1)]
        least = (1 - exact) / exact * (base + x * (rest - sum(series)))
        # All that the shorter list may still bring agrees at depth s + l - X = l, from there on.
        full = exact**long - (1 - exact) / exact * x * (rest - sum(series))
        expected = {
            "MIN": least,
            "RES": (1 - exact) / exact * gained + full,
            "EXT": (1 - exact) / exact * (base + carried) + power * x / s,
        }
        for name, number in expected.items():
            if number > Decimal("1e-290"):
                assert abs(Decimal(found[name]) / number - 1) < Decimal("1e-9"), name


def test_a_deep_match_alone_keeps_its_digits() -> None:
    rows = [
        {"list_id": "q", "item_id": str(at), "rank": at, "reference_rank": None}
        for at in range(1, 2000)
    ]
    rows.append({"list_id": "q", "item_id": "last", "rank": 2000, "reference_rank": 2000})
    found = float(function_of("RBO(p=0.99).MIN")(rankings(rows))[0])
    with localcontext() as context:
        context.prec = 100
        tail = exact_tails(0.99, 2000)[-1]
        assert tail < Decimal("1e-12")
        assert abs(Decimal(found) / tail - 1) < Decimal("1e-12")


def test_weights_of_prefixes() -> None:
    """The paper says 86 % of the first ten ranks for p = 0.9; the ends of the scale are exact."""
    assert prefix_weight(0.9, 10) == pytest.approx(0.86, abs=0.005)
    assert prefix_weight(0.9, 0) == 0
    assert prefix_weight(0.5, 1) == pytest.approx(log(2))
    assert prefix_weight(1e-300, 1) == 1
    assert prefix_weight(0.9, 5000) == 1
    for p in (0, 1, -0.1, nan, inf):
        with pytest.raises(ValueError, match="p lies between 0 and 1"):
            prefix_weight(p, 3)


# Declarations.


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
