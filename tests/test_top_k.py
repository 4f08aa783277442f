"""Fairness of a top-k cut: by hand, against Jurity, against plain loops, and by law."""

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from math import inf, isclose, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rankings import Row, batch_value, per_list, rankings
from slow_top_k import score

from metrics import (
    UNKNOWN,
    Counts,
    Evaluation,
    GroupMetric,
    LabelError,
    ListSums,
    RankHistogram,
    Rankings,
    SingleMetric,
    evaluate,
    parse_measure,
)
from metrics.top_k import TOP_K_METRICS
from metrics.top_k.entropy import MOST, SMALLEST, generalised_entropy

GOLDEN = json.loads((Path(__file__).parent / "golden" / "top_k.json").read_text())
RATES = ("SelectionRate", "TPR", "FPR", "FNR", "FOR")
DIFFERENCES = (
    "StatisticalParity",
    "EqualOpportunity",
    "PredictiveEquality",
    "FNRDifference",
    "FORDifference",
    "AverageOdds",
)
COMPARISONS = (*DIFFERENCES, "DisparateImpact")
ALPHAS = (-2.5, -1, 0, 0.25, 0.5, 1, 2, 3.5)
NAMES = [metric.name for metric in TOP_K_METRICS if metric.name != "GeneralizedEntropy"]


def labels(k: int) -> list[str]:
    """Every metric at ``k``, of the batch and of lists."""
    entropies = [f"GeneralizedEntropy(alpha={alpha}" for alpha in ALPHAS]
    return [
        *(f"{name}@{k}" for name in NAMES),
        *(f"{name}(per=list)@{k}" for name in NAMES),
        *(f"{name})@{k}" for name in entropies),
        *(f"{name},per=list)@{k}" for name in entropies),
    ]


def rows_of(*words: str) -> list[Row]:
    """Lists of letters, top first: the letter is the group, capital where relevant, x unknown."""
    return [
        {
            "list_id": f"l{number:03}",
            "item_id": f"{number}.{rank}",
            "rank": rank,
            "group": None if letter in "xX" else letter.lower(),
            "relevance": float(letter.isupper()),
        }
        for number, word in enumerate(words)
        for rank, letter in enumerate(word, start=1)
    ]


def counts_of(
    rows: Sequence[Row],
    *,
    label: str | None = None,
    relevant_from: float = 0.5,
    groups: Sequence[str] = (),
) -> Counts:
    """Counts of rows, with the sums over lists that ``label`` asks for."""
    names = tuple(sorted({row["group"] or UNKNOWN for row in rows} | set(groups)))
    cells: dict[tuple[int, int], list[int]] = {}
    for row in rows:
        cell = cells.setdefault((names.index(row["group"] or UNKNOWN), row["rank"]), [0, 0, 0])
        known = row["relevance"] is not None
        cell[0] += 1
        cell[1] += known
        cell[2] += known and row["relevance"] >= relevant_from
    at = sorted(cells)
    held, judged, relevant = np.array([cells[cell] for cell in at]).T
    nothing = np.zeros(len(at))
    histogram = RankHistogram(
        group=np.array([group for group, _ in at]),
        rank=np.array([rank for _, rank in at]),
        rows=held,
        judged=judged,
        relevant=relevant,
        relevance=nothing,
        click_known=nothing.astype(np.int64),
        click=nothing,
    )
    sums = {}
    if label is not None:
        grouping = rankings(rows, "group", target=dict.fromkeys(names, 1.0))
        found = per_list(label, grouping)
        has = ~np.isnan(found.value)
        weight = np.ones(found.value.shape) if found.weight is None else found.weight
        sums[parse_measure(label).label, None] = ListSums(
            lists=np.atleast_1d(has.sum(axis=0)),
            value=np.atleast_1d(np.where(has, found.value, 0.0).sum(axis=0)),
            weight=np.atleast_1d(np.where(has, weight, 0.0).sum(axis=0)),
        )
    return Counts(
        lists=len({row["list_id"] for row in rows}),
        groups=names,
        ranks=histogram,
        binary=True,
        known_rows={"rows": int(held.sum()), "relevance": int(judged.sum())},
        list_sums=sums,
    )


def evaluated(label: str, rows: Sequence[Row], **how: Any) -> Evaluation:
    """A label on rows, of the batch or of lists."""
    by_list = parse_measure(label).uses_lists
    return evaluate(parse_measure(label), counts_of(rows, label=label if by_list else None, **how))


def values(label: str, *words: str) -> Any:
    """Value or reason by group, or the one number or its reason."""
    found = evaluated(label, rows_of(*words))
    if found.values is None:
        return found.scores[0].reason or found.scores[0].value
    return {
        name: reason or float(value)
        for name, value, reason in zip(
            found.groups, found.values.values, found.values.reasons, strict=True
        )
    }


def both(name: str, k: int) -> list[str]:
    return [f"{name}@{k}", f"{name}(per=list)@{k}"]


def agree(expected: object) -> Any:
    return pytest.approx(expected, rel=1e-12, abs=1e-15)


# -- by hand

ONE = "AbaABbaB"
"""At 4: of a's two relevant rows both are above the cut, of b's neither."""


@pytest.mark.parametrize(
    ("name", "a", "b"),
    [
        ("SelectionRate", 3 / 4, 1 / 4),
        ("TPR", 2 / 2, 0 / 2),
        ("FPR", 1 / 2, 1 / 2),
        ("FNR", 0 / 2, 2 / 2),
        ("FOR", 0 / 1, 2 / 3),
        ("StatisticalParity", 3 / 4 - 1 / 4, 1 / 4 - 3 / 4),
        ("DisparateImpact", (3 / 4) / (1 / 4), (1 / 4) / (3 / 4)),
        ("EqualOpportunity", 1 - 0, 0 - 1),
        ("PredictiveEquality", 1 / 2 - 1 / 2, 1 / 2 - 1 / 2),
        ("FNRDifference", 0 - 1, 1 - 0),
        ("FORDifference", 0 - 2 / 3, 2 / 3 - 0),
        ("AverageOdds", ((1 / 2 - 1 / 2) + (1 - 0)) / 2, ((1 / 2 - 1 / 2) + (0 - 1)) / 2),
    ],
)
def test_one_list_by_hand(name: str, a: float, b: float) -> None:
    for label in both(name, 4):
        assert values(label, ONE) == agree({"a": a, "b": b})


def test_one_against_the_rest_of_three_groups() -> None:
    # Above: a a b.  Rates 2/2, 1/3 and 0/3; the rest is one group, not a mean of groups.
    word = "aabbbccc"
    assert values("StatisticalParity@3", word) == agree(
        {"a": 2 / 2 - 1 / 6, "b": 1 / 3 - 2 / 5, "c": 0 / 3 - 3 / 5}
    )
    assert values("DisparateImpact@3", word) == agree(
        {"a": (2 / 2) / (1 / 6), "b": (1 / 3) / (2 / 5), "c": 0 / (3 / 5)}
    )


def test_rows_without_a_group_are_candidates_but_not_the_rest() -> None:
    # The one row below the cut has no group: something was decided, and a and b are equal.
    for label in both("StatisticalParity", 4):
        assert values(label, "aabbx") == agree({"a": 0.0, "b": 0.0, "unknown": 0.0 - 4 / 4})
    assert values("SelectionRate@3", "aabxx") == agree({"a": 1, "b": 1, "unknown": 0})
    assert values("StatisticalParity@2", "axxbxx") == agree(
        {"a": 1 / 1 - 0 / 1, "b": 0 / 1 - 1 / 1, "unknown": 1 / 4 - 1 / 2}
    )


def test_entropy_by_hand() -> None:
    # Benefits at 2: a selected 2, A right 1, b right 1, B lost 0; their mean is 1.
    word = "aAbB"
    expected = {
        "GeneralizedEntropy(alpha=2)": (4 + 1 + 1 + 0 - 4) / (4 * 2 * 1),
        "GeneralizedEntropy(alpha=3)": (8 + 1 + 1 + 0 - 4) / (4 * 3 * 2),
        "GeneralizedEntropy(alpha=0.5)": (2**0.5 + 1 + 1 + 0 - 4) / (4 * 0.5 * -0.5),
        "GeneralizedEntropy(alpha=1)": 2 * log(2) / 4,
        "Theil": 2 * log(2) / 4,
    }
    for name, value in expected.items():
        assert values(f"{name}@2", word) == agree(value)
    # Benefits 2 1 1, mean 4/3: x = 3/2, 3/4, 3/4.
    assert values("GeneralizedEntropy(alpha=0)@2", "aAb") == agree(-log(3 / 2 * 9 / 16) / 3)
    expected_at = (2 / 3 + 4 / 3 + 4 / 3 - 3) / (3 * -1 * -2)
    assert values("GeneralizedEntropy(alpha=-1)@2", "aAb") == agree(expected_at)


def test_rows_together_and_list_by_list_can_contradict_each_other() -> None:
    # In each list a is selected more often; most of a stands in the longer list, where few are.
    easy, hard = "abbbb", "aaaa" + "a" * 12 + "bbbb"
    a = ((1 / 1 - 3 / 4) + (4 / 16 - 0 / 4)) / 2
    assert values("StatisticalParity(per=list)@4", easy, hard) == agree({"a": a, "b": -a})
    a = 5 / 17 - 3 / 8
    assert values("StatisticalParity@4", easy, hard) == agree({"a": a, "b": -a})
    together, apart = (
        evaluated(label, rows_of(easy, hard)).scores[0] for label in both("StatisticalParity", 4)
    )
    assert (together.worst_group, apart.worst_group) == ("a", "b")


def test_by_list_every_one_of_three_groups_can_be_ahead_of_the_rest() -> None:
    # One group, each in its turn, is nearly the whole list, and the rest of the two others.
    words = ["abb" + "c" * 30, "bcc" + "a" * 30, "caa" + "b" * 30]
    ahead = ((1 / 1 - 1 / 32) + (1 / 2 - 1 / 31) + (0 / 30 - 2 / 3)) / 3
    assert ahead > 0.25
    assert values("StatisticalParity(per=list)@2", *words) == agree(dict.fromkeys("abc", ahead))
    assert values("StatisticalParity@2", *words) == agree(dict.fromkeys("abc", 0.0))


def test_impact_over_lists_is_a_ratio_of_means() -> None:
    # Ratios 2 and 1/2: their mean would be 1.25 for both groups.
    assert values("DisparateImpact(per=list)@3", "aabb", "bbaa") == agree({"a": 1, "b": 1})
    # The list in which b has nobody above the cut counts; its ratio would not exist.
    assert values("DisparateImpact(per=list)@2", "aabb", "abab") == agree(
        {"a": (2 / 2 + 1 / 2) / (0 / 2 + 1 / 2), "b": (0 / 2 + 1 / 2) / (2 / 2 + 1 / 2)}
    )
    found = evaluated("DisparateImpact(per=list)@2", rows_of("aabb", "abab"))
    assert found.lists is not None
    assert found.lists.tolist() == [2, 2]


# -- printed formulas that are not the metric


def test_average_odds_is_not_the_printed_formula() -> None:
    # a is ahead in both rates: FPR 1/2 against 0/1, TPR 2/2 against 1/2.  With the sign of the
    # TPR difference reversed, the two cancel out and the cut looks fair.
    word = "AaABbBa"
    assert values("FPR@4", word) == agree({"a": 1 / 2, "b": 0})
    assert values("TPR@4", word) == agree({"a": 2 / 2, "b": 0 / 2 + 1 / 2})
    printed = ((1 / 2 - 0) + (1 / 2 - 2 / 2)) / 2
    assert printed == 0
    for label in both("AverageOdds", 4):
        assert values(label, word)["a"] == agree(((1 / 2 - 0) + (2 / 2 - 1 / 2)) / 2)


def test_equal_opportunity_is_a_difference_and_not_a_ratio() -> None:
    word = "AaABbBa"
    for label in both("EqualOpportunity", 4):
        assert values(label, word) == agree({"a": 2 / 2 - 1 / 2, "b": 1 / 2 - 2 / 2})
    # Equal rates are 0, where a ratio is 1; none of b's above the cut is a number, too.
    assert values("EqualOpportunity@4", "ABABAB") == agree({"a": 0, "b": 0})
    assert values("EqualOpportunity@1", "AB") == agree({"a": 1, "b": -1})


# -- against Jurity


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: "-".join(case["lists"])[:30])
def test_agrees_with_jurity(case: dict[str, Any]) -> None:
    compared = 0
    for group, expected in case["groups"].items():
        for name, value in expected.items():
            assert values(f"{name}@{case['k']}", *case["lists"])[group] == agree(value), name
            if len(case["lists"]) == 1:
                label = f"{name}(per=list)@{case['k']}"
                assert values(label, *case["lists"])[group] == agree(value), name
            compared += 1
    for name, value in case["whole"].items():
        found = values(f"{name}@{case['k']}", *case["lists"])
        # A logarithm or a reciprocal of benefit 0 is infinite there, and no value here.
        assert found == ("zero_benefit" if value == "inf" else agree(value)), name
        compared += 1
    assert compared == 7 * len(case["groups"]) + 7


DIFFERS: dict[tuple[str, str], tuple[Any, Any]] = {
    # It returns how many of the group were selected where the rest has none.
    ("rest has nobody above", "DisparateImpact"): (2.0, "none_selected"),
    # These need nothing relevant: the rates of what is not relevant, or below the cut, exist.
    ("no relevant in one group", "PredictiveEquality"): (None, 1 / 2 - 1 / 2),
    ("nothing relevant", "PredictiveEquality"): (None, 2 / 3 - 1 / 3),
    ("no relevant in one group", "FORDifference"): (None, 1 / 2 - 0 / 1),
    ("nothing relevant", "FORDifference"): (None, 0 / 1 - 0 / 2),
    # A share of nobody counts as 0 there, the best that a false omission rate can be.
    ("rest has nobody above", "FORDifference"): (0 - 1 / 2, "all_selected"),
    ("all of one group above", "FORDifference"): (0 - 2 / 3, "all_selected"),
    ("group all relevant, all above", "FORDifference"): ("error: ValueError", "all_selected"),
    # A group of one kind of rows makes its table of errors too small to unpack.
    ("group all relevant, all above", "EqualOpportunity"): ("error: ValueError", 2 / 2 - 0 / 2),
    ("group all relevant, all above", "FNRDifference"): ("error: ValueError", 0 / 2 - 2 / 2),
    # A cut that leaves nobody out is called fair there.
    **{
        ("all above", name): (1.0 if name == "DisparateImpact" else 0.0, "all_selected")
        for name in COMPARISONS
    },
}


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("edge", GOLDEN["edges"])
def test_where_jurity_differs(edge: str, name: str) -> None:
    case = GOLDEN["edges"][edge]
    theirs = case["groups"]["a"][name]
    ours = values(f"{name}@{case['k']}", *case["lists"])["a"]
    if (edge, name) in DIFFERS:
        expected, value = DIFFERS[edge, name]
        assert theirs == (agree(expected) if isinstance(expected, float) else expected)
        assert ours == (value if isinstance(value, str) else agree(value))
    elif theirs is None:
        assert ours in ("none_qualified", "all_qualified")
    else:
        assert ours == agree(theirs)


def test_where_jurity_differs_on_entropy() -> None:
    for edge, case in GOLDEN["edges"].items():
        for name, value in case["whole"].items():
            found = values(f"{name}@{case['k']}", *case["lists"])
            if edge == "all above":
                assert found == "all_selected"
            else:
                assert found == ("zero_benefit" if value == "inf" else agree(value))


# -- against plain loops


@st.composite
def logs(draw: st.DrawFn, *, whole: bool = False, groups: str = "abc.") -> list[Row]:
    letters = [None if letter == "." else letter for letter in groups]
    graded = draw(st.booleans())
    grades = st.sampled_from([0.0, 0.25, 0.5, 1.0] if graded else [0.0, 1.0])
    relevance = grades if whole or draw(st.integers(0, 4)) else st.none() | grades
    constant = draw(st.sampled_from([None, None, None, 0.0, 1.0]))
    rows = []
    for number in range(draw(st.integers(1, 5))):
        rank = 0
        for _ in range(draw(st.integers(1, draw(st.sampled_from([3, 8, 30]))))):
            rank += draw(st.sampled_from([1, 1, 1, 2, 5]))
            rows.append({
                "list_id": f"l{number}",
                "item_id": str(rank),
                "rank": rank,
                "group": draw(st.sampled_from(letters)),
                "relevance": draw(relevance) if constant is None else constant,
            })  # fmt: skip
    return rows


def same(found: float | None, expected: float | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return isclose(found, expected, rel_tol=1e-9, abs_tol=1e-13)


def numbers(found: Evaluation) -> Any:
    """Values as plain loops give them, None for each that has a reason."""
    if found.values is None:
        return found.scores[0].value
    return {
        name: None if np.isnan(value) else float(value)
        for name, value in zip(found.groups, found.values.values, strict=True)
    }


@given(logs(), st.integers(1, 9))
def test_agrees_with_plain_loops(rows: list[Row], k: int) -> None:
    for label in labels(k):
        measure = parse_measure(label)
        found, expected = evaluated(label, rows), score(label, rows, "group")
        if isinstance(expected, dict):
            mine = numbers(found)
            assert set(mine) == set(expected)
            assert all(same(mine[name], expected[name]) for name in mine), (label, mine, expected)
            assert found.values is not None
            for name, reason in zip(found.groups, found.values.reasons, strict=True):
                assert (reason is None) == (expected[name] is not None)
        else:
            assert same(numbers(found), expected), (label, numbers(found), expected)
        for each in found.scores:
            assert (each.value is None) == (each.reason is not None)
            if each.value is not None:
                assert each.value in each.name.range, label
        for value in (numbers(found) or {}).values() if isinstance(expected, dict) else ():
            assert value is None or value in measure.metric.range, label


@given(logs(whole=True), st.integers(1, 9))
def test_graded_relevance_is_cut_where_the_settings_say(rows: list[Row], k: int) -> None:
    for name in ("TPR", "FORDifference", "Theil"):
        expected = score(f"{name}@{k}", rows, "group", relevant_from=0.75)
        found = numbers(evaluated(f"{name}@{k}", rows, relevant_from=0.75))
        lists = rankings(rows, "group", relevant_from=0.75)
        apart = score(f"{name}(per=list)@{k}", rows, "group", relevant_from=0.75)
        each = batch_value(per_list(f"{name}(per=list)@{k}", lists))
        if isinstance(expected, dict) and isinstance(apart, dict):
            assert all(same(found[group], expected[group]) for group in expected)
            for at, group in enumerate(lists.groups.names):
                assert same(None if np.isnan(each[at]) else float(each[at]), apart[group])
        else:
            assert same(found, expected)  # type: ignore[arg-type]
            assert same(None if np.isnan(each) else float(each), apart)  # type: ignore[arg-type]


def test_agrees_with_plain_loops_on_many_groups_and_long_lists() -> None:
    chance = np.random.default_rng(3)
    letters = [*"abcdefghijklmnopqrstABCDEFGHIJKLMNOPQRSTx"]
    rows = rows_of(*("".join(chance.choice(letters, size=size)) for size in (1000, 1, 300, 60)))
    for name in (*RATES, *COMPARISONS, "Theil"):
        for label in both(name, 50):
            found, expected = numbers(evaluated(label, rows)), score(label, rows, "group")
            if isinstance(expected, dict):
                assert len(expected) == 21
                assert all(same(found[group], expected[group]) for group in expected), label
            else:
                assert same(found, expected), label


@given(logs(whole=True), st.integers(1, 9))
def test_the_unknown_group_takes_part_where_configured(rows: list[Row], k: int) -> None:
    counts = replace(counts_of(rows), unknown_counts=True)
    lists = rankings(rows, "group")
    everyone = np.ones(len(lists.groups.names), dtype=np.bool_)
    lists = replace(lists, grouping=replace(lists.groups, takes_part=everyone))
    for name in COMPARISONS:
        together, apart = both(name, k)
        expected = score(together, rows, "group", unknown_counts=True)
        found = numbers(evaluate(parse_measure(together), counts))
        assert isinstance(expected, dict)
        assert all(same(found[group], expected[group]) for group in expected)
        expected = score(apart, rows, "group", unknown_counts=True)
        assert isinstance(expected, dict)
        each = batch_value(per_list(apart, lists))
        for value, group in zip(each, lists.groups.names, strict=True):
            assert same(None if np.isnan(value) else float(value), expected[group])


# -- laws


@given(logs(whole=True, groups="ab."), st.integers(1, 9))
def test_of_two_groups_one_is_the_mirror_of_the_other(rows: list[Row], k: int) -> None:
    for name in COMPARISONS:
        for label in both(name, k):
            found = numbers(evaluated(label, rows))
            a, b = found.get("a"), found.get("b")
            if name != "DisparateImpact":
                assert a == (None if b is None else -b), label
            elif a and b:
                assert a * b == agree(1.0)
            else:
                assert not a
                assert not b


@given(logs(whole=True), st.integers(1, 9))
def test_one_list_is_the_batch(rows: list[Row], k: int) -> None:
    one = [row for row in rows if row["list_id"] == "l0"]
    for label in labels(k):
        measure = parse_measure(label)
        given_here = {**dict(measure.parameters), "per": "list"}
        apart = measure.metric.at(k, **given_here).label
        assert numbers(evaluated(label, one)) == numbers(evaluated(apart, one)), label


@given(logs(), st.integers(1, 9), st.sampled_from([2, 3, 7]))
def test_volume_changes_not_one_bit(rows: list[Row], k: int, times: int) -> None:
    copies = [
        {**row, "list_id": f"{copy} {row['list_id']}"} for copy in range(times) for row in rows
    ]
    for label in labels(k):
        before, after = numbers(evaluated(label, rows)), numbers(evaluated(label, copies))
        if "per=list" not in label:
            assert before == after, label
        elif isinstance(before, dict):
            assert all(same(before[name], after[name]) for name in before), label
        else:
            assert same(before, after), label


@given(logs(), st.data())
def test_a_cut_that_nobody_stands_below_has_no_value(rows: list[Row], data: st.DataObject) -> None:
    k = max(row["rank"] for row in rows) + data.draw(st.integers(0, 3))
    for label in labels(k):
        found = evaluated(label, rows)
        assert {each.value for each in found.scores} == {None}
        if found.values is not None:
            assert np.isnan(found.values.values).all()


def test_why_a_log_that_ends_at_the_cut_has_no_value() -> None:
    for name in (*RATES, *COMPARISONS, "Theil", "GeneralizedEntropy(alpha=2)"):
        found = evaluated(f"{name}@4", rows_of("aAbB", "AbB"))
        assert {each.reason for each in found.scores} == {"all_selected"}


def test_a_short_list_beside_longer_ones() -> None:
    # In the batch its candidates were all selected; of the lists it is left out.
    assert values("SelectionRate@2", "a", "aabb")["a"] == agree((1 + 2) / 3)
    found = evaluated("SelectionRate(per=list)@2", rows_of("a", "aabb"))
    assert numbers(found) == {"a": 1.0, "b": 0.0}
    assert found.lists is not None
    assert found.lists.tolist() == [1, 1]


@given(logs(whole=True, groups="abc"), st.integers(1, 9))
def test_groups_in_each_others_place_are_treated_alike(rows: list[Row], k: int) -> None:
    turns = [str.maketrans("abc", turned) for turned in ("abc", "bca", "cab")]
    alike = [
        {**row, "list_id": f"{turn} {row['list_id']}", "group": row["group"].translate(how)}
        for turn, how in enumerate(turns)
        for row in rows
    ]
    for name in (*RATES, *COMPARISONS):
        found = evaluated(f"{name}@{k}", alike)
        assert len({*numbers(found).values()}) == 1
        for each in found.scores:
            assert each.worst_group is each.best_group is None
            if each.value is not None and each.name.fairest is not None:
                assert each.value == each.name.fairest


@given(logs(whole=True), st.integers(1, 9))
def test_worst_over_groups_is_never_better_than_fair(rows: list[Row], k: int) -> None:
    found = evaluated(f"DisparateImpact@{k}", rows).scores[0]
    assume(found.value is not None)
    assert found.value is not None
    assert found.value <= 1.0 + 1e-12


def moved(rows: list[Row], at: int) -> list[Row]:
    """The row at ``at`` and the one before it change places."""
    upper, lower = rows[at - 1], rows[at]
    ranks = {id(upper): lower["rank"], id(lower): upper["rank"]}
    return [{**row, "rank": ranks.get(id(row), row["rank"])} for row in rows]


@given(logs(whole=True, groups="abc"), st.integers(1, 9), st.data())
def test_moving_up_never_makes_a_group_worse(rows: list[Row], k: int, data: st.DataObject) -> None:
    places = [
        at
        for at in range(1, len(rows))
        if rows[at]["list_id"] == rows[at - 1]["list_id"]
        and rows[at]["group"] != rows[at - 1]["group"]
    ]
    assume(places)
    at = data.draw(st.sampled_from(places))
    gainer, loser = rows[at]["group"], rows[at - 1]["group"]
    after = moved(rows, at)
    # False omission rates can rise with a row that is not relevant: one less to divide by.
    for name in (*RATES, *COMPARISONS):
        if name.startswith("FOR"):
            continue
        sign = -1 if name.startswith("FNR") else 1
        for label in both(name, k):
            one, two = numbers(evaluated(label, rows)), numbers(evaluated(label, after))
            for group, value in one.items():
                if value is None or two[group] is None:
                    # A ratio loses or gains its denominator, and nothing else does.
                    assert value is two[group] or name == "DisparateImpact"
                    continue
                gain = sign * (two[group] - value)
                assert gain >= -1e-12 or group != gainer, label
                assert gain <= 1e-12 or group != loser, label


# -- who is worst off


@pytest.mark.parametrize(
    ("name", "worst", "best"),
    [(name, "b", "a") for name in (*RATES, *COMPARISONS)],
)
def test_who_is_worst_off(name: str, worst: str, best: str) -> None:
    # a has more above the cut whatever one asks for, and b more relevant rows below.
    for label in both(name, 6):
        for each in evaluated(label, rows_of("AaAaaBAaaBBb")).scores:
            assert (each.worst_group, each.best_group) == (worst, best), label


def test_the_furthest_group_decides_and_the_lowest_is_worst_off() -> None:
    # a is furthest from the rest, above it; c is the one that is worst off.
    found = evaluated("StatisticalParity@2", rows_of("aabbccc")).scores[0]
    assert found.value == agree(2 / 2 - 0 / 5)
    assert (found.worst_group, found.best_group) == ("c", "a")


def test_declared_directions() -> None:
    harms = {"FNR", "FOR", "FNRDifference", "FORDifference"}
    for metric in TOP_K_METRICS:
        measure = metric.usual
        assert metric.needs_cutoff
        assert metric.family.name == "top_k"
        assert ("relevance" in measure.columns) != (
            metric.name in ("SelectionRate", "StatisticalParity", "DisparateImpact")
        )
        if isinstance(metric, GroupMetric):
            assert metric.higher_is_better == (metric.name not in harms)
            ways = [way.name for way in metric.aggregations]
            if metric.name in COMPARISONS:
                assert ways == (["Min"] if metric.name == "DisparateImpact" else ["MaxAbs"])
            else:
                assert len(ways) == 7
        else:
            assert isinstance(metric, SingleMetric)
            assert (metric.fairest, metric.alarm, metric.grouped) == (0.0, "high", False)


# -- no value, and why


@pytest.mark.parametrize(
    ("label", "words", "reason"),
    [
        ("TPR@2", ["Aaab"], "none_qualified: b"),
        ("FPR@2", ["AaaB"], "all_qualified: b"),
        ("FNR@2", ["aabb"], "none_qualified"),
        ("FOR@2", ["aAbbB"], "all_selected: a"),
        ("SelectionRate@2", ["aaaa"], "one_group"),
        ("StatisticalParity@2", ["aaaa"], "one_group"),
        ("DisparateImpact@2", ["aabb"], "none_selected: a"),
        ("DisparateImpact(per=list)@2", ["aabb"], "none_selected: a"),
        ("EqualOpportunity@2", ["Aaab"], "none_qualified"),
        ("PredictiveEquality@2", ["ABBa"], "all_qualified"),
        ("AverageOdds@2", ["ABBa"], "all_qualified"),
        ("AverageOdds@2", ["abbA"], "none_qualified"),
        ("FNRDifference@2", ["Aaab"], "none_qualified"),
        ("FORDifference@2", ["aAbbB"], "all_selected"),
        ("SelectionRate(per=list)@4", ["aabb"], "all_selected"),
        ("TPR(per=list)@4", ["AaBb"], "not_enough_items"),
        ("StatisticalParity(per=list)@2", ["aaaa", "bbbb"], "not_enough_items"),
        ("GeneralizedEntropy(alpha=0)@2", ["aabB"], "zero_benefit"),
        ("GeneralizedEntropy(alpha=-1)@2", ["aabB"], "zero_benefit"),
        ("GeneralizedEntropy(alpha=0,per=list)@2", ["aabB"], "not_enough_items"),
    ],
)
def test_reasons(label: str, words: list[str], reason: str) -> None:
    found = evaluated(label, rows_of(*words))
    assert {(each.value, each.reason) for each in found.scores} == {(None, reason)}


def test_a_group_that_is_absent_here() -> None:
    rows = rows_of("aabb")
    for name in (*RATES, *COMPARISONS):
        found = evaluated(f"{name}@2", rows, groups=["c"])
        assert found.values is not None
        assert found.values.reasons[2] == "group_absent"
    # Without the other of two, both are without a comparison, and for the same reason.
    found = evaluated("StatisticalParity@2", rows_of("aaaa"), groups=["b"])
    assert found.scores[0].reason == "group_absent"


def test_relevance_that_is_missing() -> None:
    rows = rows_of("AabBaAbB")
    rows[3] = {**rows[3], "relevance": None}
    free = ("SelectionRate", "StatisticalParity", "DisparateImpact")
    for metric in TOP_K_METRICS:
        if metric.name in free:
            for label in both(metric.name, 4):
                assert evaluated(label, rows).scores[0].reason is None
            continue
        reason = evaluated(metric.at(4).label, rows).scores[0].reason
        named = metric.name in RATES
        assert reason == ("relevance_missing: b" if named else "relevance_missing")
        apart = evaluated(metric.at(4, per="list").label, rows).scores[0]
        assert apart.reason == "relevance_missing"
        # Relevance that is unknown does no harm where it is not needed, and never raises.
        assert per_list(metric.at(4, per="list").label, rankings(rows, "group")).value.size


def test_nobody_selected_and_everything_relevant() -> None:
    # Ranks may start below the cut: every benefit is 0, so none is a share of their mean.
    rows = [{**row, "rank": row["rank"] + 5} for row in rows_of("AABB")]
    for alpha in ALPHAS:
        assert values_at(f"GeneralizedEntropy(alpha={alpha})@5", rows) == "zero_benefit"
        assert np.isnan(
            batch_value(per_list(f"GeneralizedEntropy(alpha={alpha},per=list)@5", rankings(rows)))
        )


def values_at(label: str, rows: Sequence[Row]) -> Any:
    found = evaluated(label, rows).scores[0]
    return found.reason or found.value


# -- entropy

mixes = st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))


def entropy(mix: tuple[int, ...], alpha: float) -> float:
    return float(generalised_entropy(np.array([mix], dtype=np.float64), alpha)[0])


@given(mixes, mixes, st.sampled_from([0.5, 1, 2, 3.5]))
def test_entropy_splits_into_within_and_between(
    one: tuple[int, int, int], two: tuple[int, int, int], alpha: float
) -> None:
    # Shorrocks 1980: the whole is the parts, weighted by size and mean, and that of their means.
    sizes, totals = (
        [sum(mix) for mix in (one, two)],
        [mix[1] + 2 * mix[2] for mix in (one, two)],
    )
    assume(all(sizes) and all(totals))
    n, mean = sum(sizes), sum(totals) / sum(sizes)
    within = between = 0.0
    for mix, size, total in zip((one, two), sizes, totals, strict=True):
        x = total / size / mean
        within += size / n * x**alpha * entropy(mix, alpha)
        if alpha == 1:
            between += size / n * x * log(x)
        else:
            between += size / n * (x**alpha - 1) / (alpha * (alpha - 1))
    whole = entropy(tuple(a + b for a, b in zip(one, two, strict=True)), alpha)
    assert whole == pytest.approx(within + between, rel=1e-9, abs=1e-12)


@given(mixes, st.floats(-9.5, 9.5), st.integers(2, 1000))
def test_entropy_is_a_distance_from_equal_that_knows_no_volume(
    mix: tuple[int, int, int], alpha: float, times: int
) -> None:
    found = entropy(mix, alpha)
    alpha = 0.0 if abs(alpha) <= SMALLEST else alpha
    none = sum(mix) == 0 or (mix[1] == mix[2] == 0) or (alpha <= 0 and mix[0] > 0)
    assert np.isnan(found) == none
    if none:
        return
    assert entropy(tuple(times * count for count in mix), alpha) == pytest.approx(found, rel=1e-12)
    assert 0 <= found < inf
    if sum(count > 0 for count in mix) == 1:
        assert found == 0
    elif abs(alpha) < 5:
        assert found > 0


def exactly(mix: tuple[int, ...], alpha: float) -> Decimal:
    """The definition in 80 digits; where alpha is 0 or 1, its limit."""
    with localcontext() as context:
        context.prec = 80
        a, n = Decimal(alpha), Decimal(sum(mix))
        mean = (mix[1] + 2 * mix[2]) / n
        x = [Decimal(b) / mean for b in range(3)]
        if alpha == 0:
            return -sum((c * x[b].ln() for b, c in enumerate(mix) if c), Decimal(0)) / n
        if alpha == 1:
            return sum((c * x[b] * x[b].ln() for b, c in enumerate(mix) if b and c), Decimal(0)) / n
        powers = sum((c * ((x[b] ** a if x[b] else 0) - 1) for b, c in enumerate(mix) if c), 0)
        return Decimal(powers) / (n * a * (a - 1))


@pytest.mark.parametrize("mix", [(3, 5, 2), (1, 10**6, 1), (0, 10**6, 1), (10**6, 1, 0), (2, 0, 7)])
def test_entropy_is_exact_close_to_its_poles(mix: tuple[int, int, int]) -> None:
    near = [1e-12, 1e-6, 0.499, 0.5, 1 - 1e-9, 1.0, 1 + 1e-12, 1 + 1e-6, 2.0, 4.5]
    if not mix[0]:
        near += [-4.5, -1e-6, -1e-12, 0.0]
    for alpha in near:
        assert entropy(mix, alpha) == pytest.approx(float(exactly(mix, alpha)), rel=1e-9), alpha


def test_alpha_next_to_0_is_0() -> None:
    for alpha in (5e-324, -5e-324, 1e-200):
        assert entropy((0, 2, 1), alpha) == entropy((0, 2, 1), 0)
        assert np.isnan(entropy((1, 2, 1), alpha))
    # Not so close, benefit 0 weighs 1 / alpha.
    assert entropy((1, 2, 1), 1e-50) == agree(1e50 / 4)


def test_alpha_is_a_number_that_no_power_overflows_with() -> None:
    assert parse_measure("GeneralizedEntropy@10").label == "GeneralizedEntropy(alpha=2.0)@10"
    for alpha in (-9.9, 9.9):
        assert 0 < entropy((0, 10**9, 1), alpha) < inf
        label = f"GeneralizedEntropy(alpha={alpha},per=list)@3"
        assert parse_measure(label).label == label
    for alpha in ("-10", "10", "1e9"):
        with pytest.raises(LabelError, match=r"alpha .*-10 and .*10"):
            parse_measure(f"GeneralizedEntropy(alpha={alpha})@10")


def test_the_most_that_a_list_counts() -> None:
    # A long list of nothing but relevant items: all benefits but that of the first are 0.
    lists = rankings(rows_of("A" * 3000))
    high = per_list("GeneralizedEntropy(alpha=9,per=list)@1", lists).value
    assert high.tolist() == [MOST]
    usual = per_list("GeneralizedEntropy(alpha=2,per=list)@1", lists).value
    assert usual == pytest.approx([(3000 - 1) / 2], rel=1e-12)


# -- lists do not know each other


def chunk(lists: Rankings, at: int) -> Rankings:
    """One list of several, on its own."""
    begin, end = int(lists.starts[at]), int(lists.starts[at] + lists.length[at])
    grouping = lists.groups
    return Rankings(
        starts=np.array([0]),
        reference_length=lists.reference_length[at : at + 1],
        grouping=type(grouping)(grouping.names, grouping.code[begin:end], grouping.takes_part),
        **{
            name: getattr(lists, name)[begin:end]
            for name in ("rank", "relevance", "relevant", "click", "reference_rank")
        },
        propensity=lists.propensity[begin:end],
        predicted_click=lists.predicted_click[begin:end],
    )


def test_a_list_has_the_same_bits_alone_and_among_a_thousand() -> None:
    chance = np.random.default_rng(5)
    words = ["".join(chance.choice([*"abcxABCX"], size=chance.integers(1, 40))) for _ in range(999)]
    words.append("Ab" * 500)
    lists = rankings(rows_of(*words), "group")
    for label in labels(7):
        if "per=list" not in label:
            continue
        together = per_list(label, lists)
        assert together.value.shape[0] == len(words)
        for at in [*range(0, 999, 37), 999]:
            alone = per_list(label, chunk(lists, at))
            assert alone.value.tobytes() == together.value[at : at + 1].tobytes(), label
            if together.weight is not None and alone.weight is not None:
                assert alone.weight.tobytes() == together.weight[at : at + 1].tobytes(), label
