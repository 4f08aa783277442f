"""The brute-force reference gives published numbers, a library's numbers, and answers by hand."""

import json
from collections.abc import Mapping, Sequence
from itertools import product
from math import log, log2, sqrt
from typing import Any

import pytest
from brute_force import (
    AGGREGATIONS,
    GROUP_METRICS,
    SINGLE_METRICS,
    SMOOTHING,
    Number,
    Undefined,
    aggregate,
    group_values,
    score,
    single_value,
    worst_and_best,
)
from places import GOLDEN

Rows = list[dict[str, Any]]


def agree(expected: object) -> object:
    """Agreement to 1e-9 relative, with no absolute slack."""
    return pytest.approx(expected, rel=1e-9, abs=0)


def ranked(lists: Sequence[Sequence[str]], groups: Mapping[str, str | None]) -> Rows:
    """Rows of whole lists of items, numbered from the top."""
    return [
        {"list_id": str(number), "item_id": item, "rank": rank, "group": groups[item]}
        for number, items in enumerate(lists)
        for rank, item in enumerate(items, start=1)
    ]


def judged(
    lists: Sequence[Sequence[tuple[str | None, float | None]]],
    clicks: Sequence[Sequence[float | None]] | None = None,
) -> Rows:
    """Rows from (group, relevance) pairs, an item of its own for each."""
    return [
        {
            "list_id": str(number),
            "item_id": f"{number}.{rank}",
            "rank": rank,
            "group": group,
            "relevance": relevance,
            "click": clicks[number][rank - 1] if clicks else None,
        }
        for number, items in enumerate(lists)
        for rank, (group, relevance) in enumerate(items, start=1)
    ]


def shown(*lists: str) -> Rows:
    """Rows of lists written as one letter per item, the letter its group; '.' has none."""
    return [
        {
            "list_id": str(number),
            "item_id": f"{number}.{rank}",
            "rank": rank,
            "group": None if letter == "." else letter,
        }
        for number, letters in enumerate(lists)
        for rank, letter in enumerate(letters, start=1)
    ]


def golden(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / name).read_text(encoding="utf-8"))
    return found


NOTEBOOK = golden("notebook.json")["cases"]
LIBRARY = golden("fairranktune.json")["cases"]


LIBRARY_RESULTS = [
    pytest.param(case, result, id=f"{case['name']}: {result['metric']}")
    for case in LIBRARY
    for result in case["results"]
]


@pytest.mark.parametrize("case", NOTEBOOK, ids=[case["metric"] for case in NOTEBOOK])
def test_notebook(case: dict[str, Any]) -> None:
    rows = ranked([case["ranking"]], case["groups"])
    if "value" in case:
        assert single_value(case["metric"], rows, "group") == agree(case["value"])
        return
    assert group_values(case["metric"], rows, "group", **case["parameters"]) == agree(
        case["values"]
    )
    assert set(case["aggregations"]) == set(AGGREGATIONS)
    for name, value in case["aggregations"].items():
        found = score(case["metric"], name, rows, "group", **case["parameters"])
        assert found == agree(value), name


@pytest.mark.parametrize(("case", "result"), LIBRARY_RESULTS)
def test_library(case: dict[str, Any], result: dict[str, Any]) -> None:
    rows = ranked(case["lists"], case["groups"])
    relevance = [value for each in case["relevance"] for value in each]
    click = [value for each in case["click"] for value in each]
    for row, judgement, rate in zip(rows, relevance, click, strict=True):
        row["relevance"], row["click"] = judgement, rate
    metric, parameters = result["metric"], result["parameters"]
    if "value" in result:
        assert single_value(metric, rows, "group") == agree(result["value"])
        return
    times = len(case["lists"]) if result["over_lists"] == "summed" else 1
    values = {name: value / times for name, value in result["values"].items()}
    assert group_values(metric, rows, "group", **parameters) == agree(values)
    assert set(result["aggregations"]) == set(AGGREGATIONS)
    for name, value in result["aggregations"].items():
        scale = {"MinMaxRatio": 1, "MaxMinRatio": 1, "Variance": times**2}.get(name, times)
        assert score(metric, name, rows, "group", **parameters) == agree(value / scale), name


def test_golden_files_cover_every_metric() -> None:
    results = [result for case in LIBRARY for result in case["results"]]
    assert {result["metric"] for result in results} == {*GROUP_METRICS, *SINGLE_METRICS}
    assert {len(case["lists"]) for case in LIBRARY} == {1, 3, 5}
    assert {len(set(case["groups"].values())) for case in LIBRARY} == {2, 3, 5}


def test_exposure_family_by_hand() -> None:
    rows = judged([[("a", 1.0), ("b", 0.5), ("a", 0.25)], [("b", 1.0)]], [[1.0, 0.5, 0.0], [0.25]])
    at = [1 / log2(2), 1 / log2(3), 1 / log2(4)]
    assert group_values("EXP", rows, "group") == agree(
        {"a": (at[0] + at[2]) / 2, "b": (at[1] + at[0]) / 2}
    )
    assert group_values("EXPU", rows, "group") == agree(
        {"a": (at[0] + at[2]) / (1 + 0.25), "b": (at[1] + at[0]) / (0.5 + 1)}
    )
    assert group_values("EXPRU", rows, "group") == agree(
        {"a": (1 + 0) / (1 + 0.25), "b": (0.5 + 0.25) / (0.5 + 1)}
    )
    assert group_values("AWRF", rows, "group", p=0.2) == agree(
        {"a": (20 + 20 * 0.8**2) / 2, "b": (20 * 0.8 + 20) / 2}
    )


def test_rank_biased_family_by_hand() -> None:
    rows = judged([[("a", 1.0), ("b", 0.0), ("a", 1.0)], [("b", 1.0)]])
    a, b = 0.4 * (1 + 0.6**2), 0.4 * (0.6 + 1)
    assert group_values("ERBE", rows, "group", decay=0.6) == agree({"a": a / 2, "b": b / 2})
    assert group_values("ERBP", rows, "group", decay=0.6) == agree({"a": a / 2, "b": b / 2})
    assert group_values("ERBR", rows, "group", decay=0.6) == agree({"a": a / 2, "b": b / 1})


def test_a_weight_may_be_tiny() -> None:
    rows = shown("a" * 9 + "b")
    assert group_values("ERBE", rows, "group", decay=0.01)["b"] == agree(0.99 * 0.01**9)


def test_cutoff_keeps_denominators_whole() -> None:
    rows = judged([[("a", 1.0), ("b", 1.0), ("a", 0.0)], [("b", 1.0)]])
    assert group_values("EXP", rows, "group", k=1) == agree({"a": 1 / 2, "b": 1 / 2})
    assert group_values("EXPU", rows, "group", k=2) == agree(
        {"a": 1 / 1, "b": (1 / log2(3) + 1) / 2}
    )
    assert group_values("ERBE", rows, "group", k=1) == agree({"a": 0.25 / 2, "b": 0.25 / 2})
    assert group_values("ERBR", rows, "group", k=1) == agree({"a": 0.25 / 1, "b": 0.25 / 2})
    with pytest.raises(ValueError, match="cut-off"):
        group_values("ARP", rows, "group", k=1)


def test_weights_stand_at_logged_ranks_and_pairs_go_by_order() -> None:
    rows = shown("ab")
    rows[0]["rank"], rows[1]["rank"] = 3, 7
    assert group_values("EXP", rows, "group") == agree({"a": 1 / log2(4), "b": 1 / log2(8)})
    assert group_values("EXP", rows, "group", k=5) == agree({"a": 1 / log2(4), "b": 0.0})
    assert group_values("ARP", rows, "group") == {"a": 1.0, "b": 0.0}
    assert single_value("NDKL", rows, "group") == single_value("NDKL", shown("ab"), "group")


def test_pairs_by_hand() -> None:
    assert group_values("ARP", shown("aab"), "group") == {"a": 1.0, "b": 0.0}
    assert group_values("ARP", shown("aba"), "group") == {"a": 1 / 2, "b": 1 / 2}
    assert group_values("ARP", shown("abc"), "group") == {"a": 2 / 2, "b": 1 / 2, "c": 0.0}
    # The list of one group has no mixed pair: it takes no part, rather than counting as a zero.
    assert group_values("ARP", shown("aab", "aa", "ba", "c"), "group") == {
        "a": (2 / 2 + 0 / 1) / 2,
        "b": (0 / 2 + 1 / 1) / 2,
        "c": Undefined("no_mixed_pairs"),
    }


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_pairs_equal_the_formula_of_rank_sums(size: int) -> None:
    for letters in product("abc", repeat=size):
        for name, share in group_values("ARP", shown("".join(letters)), "group").items():
            own = letters.count(name)
            ranks = sum(rank for rank, letter in enumerate(letters, start=1) if letter == name)
            won, mixed = size * own - ranks - own * (own - 1) // 2, own * (size - own)
            assert share == (won / mixed if mixed else Undefined("no_mixed_pairs"))


def divergence(mix: Sequence[float], reference: Sequence[float]) -> float:
    return sum(
        (p + SMOOTHING) * log((p + SMOOTHING) / (q + SMOOTHING))
        for p, q in zip(mix, reference, strict=True)
    )


def test_prefix_divergence_by_hand() -> None:
    w = [1 / log2(2), 1 / log2(3), 1 / log2(4)]
    alone = w[0] * divergence([1, 0], [1 / 2, 1 / 2]) / (w[0] + w[1])
    assert single_value("NDKL", shown("ab"), "group") == agree(alone)
    three = (
        w[0] * divergence([1, 0], [2 / 3, 1 / 3])
        + w[1] * divergence([1, 0], [2 / 3, 1 / 3])
        + w[2] * divergence([2 / 3, 1 / 3], [2 / 3, 1 / 3])
    ) / sum(w)
    assert single_value("NDKL", shown("aab"), "group") == agree(three)
    # Lists of one group match their own mix, and count.
    assert single_value("NDKL", shown("ab", "aaa", "b"), "group") == agree((alone + 0 + 0) / 3)


def test_prefix_divergence_from_a_given_mix() -> None:
    rows = shown("ab", "a")
    w = [1 / log2(2), 1 / log2(3)]
    mix = [1 / 4, 1 / 4, 2 / 4]
    first = w[0] * divergence([1, 0, 0], mix) + w[1] * divergence([1 / 2, 1 / 2, 0], mix)
    expected = (first / sum(w) + divergence([1, 0, 0], mix)) / 2
    items = [{"item_id": str(at), "group": group} for at, group in enumerate("abcc")]
    target = {"a": 0.25, "b": 0.25, "c": 0.5}
    for reference, catalogue in (("catalogue", items), ("catalogue", {"a": 1, "b": 1, "c": 2})):
        found = single_value("NDKL", rows, "group", reference=reference, catalogue=catalogue)
        assert found == agree(expected)
    assert single_value("NDKL", rows, "group", reference=target) == agree(expected)
    # A group that the reference leaves out has share 0 there.
    w0 = divergence([1, 0], [1, 0])
    w1 = divergence([1 / 2, 1 / 2], [1, 0])
    assert single_value("NDKL", shown("ab"), "group", reference={"a": 1.0}) == agree(
        (w[0] * w0 + w[1] * w1) / sum(w)
    )
    missing = single_value("NDKL", rows, "group", reference="catalogue")
    assert missing == Undefined("catalogue_missing")


def item_lists(*lists: Sequence[tuple[str, float | None]]) -> Rows:
    return [
        {"list_id": number, "item_id": item, "rank": rank, "relevance": relevance}
        for number, items in enumerate(lists)
        for rank, (item, relevance) in enumerate(items, start=1)
    ]


def test_attention_gap_by_hand() -> None:
    second = 1 / log2(3)
    rows = item_lists([("x", 1.0), ("y", 0.5)], [("y", 0.0), ("x", 1.0)], [("z", 0.25)])
    x, y, z = abs(1 + second - 2), abs(second + 1 - 0.5), abs(1 - 0.25)
    assert single_value("IAA", rows) == agree((x + y + z) / 3)
    whole = 1 + second
    x = abs(1 / whole + second / whole - (1 / 1.5 + 1))
    y = abs(second / whole + 1 / whole - 0.5 / 1.5)
    assert single_value("IAA", rows, normalised=True) == agree((x + y + 0) / 3)


def test_attention_gap_normalised_leaves_out_lists_without_relevance() -> None:
    rows = item_lists([("x", 1.0), ("y", 1.0)], [("y", 0.0), ("x", 0.0)])
    whole = 1 + 1 / log2(3)
    assert single_value("IAA", rows, normalised=True) == agree(
        (abs(1 / whole - 1 / 2) + abs(1 / log2(3) / whole - 1 / 2)) / 1
    )
    nothing = item_lists([("x", 0.0)])
    assert single_value("IAA", nothing, normalised=True) == Undefined("no_relevant_items")
    assert single_value("IAA", nothing) == 1.0
    for normalised in (False, True):
        found = single_value("IAA", item_lists([("x", 1.0), ("y", None)]), normalised=normalised)
        assert found == Undefined("relevance_missing")


def test_catalogue_denominator() -> None:
    rows = shown("a.b", "a")
    items = [{"item_id": str(at), "group": group} for at, group in enumerate([*"aabc", None])]
    found = group_values("EXP", rows, "group", denominator="catalogue", catalogue=items)
    assert found == agree(
        {"a": 2 / (2 * 2), "b": 1 / log2(4) / (1 * 2), "c": 0.0, "unknown": 1 / log2(3) / (1 * 2)}
    )
    # Without unknown items in the batch, those of the item table are no group.
    found = group_values("AWRF", shown("ab"), "group", denominator="catalogue", catalogue=items)
    assert found == agree({"a": 10 / 2, "b": 10 * 0.9 / 1, "c": 0.0})
    found = group_values("ERBP", shown("d"), "group", denominator="catalogue", catalogue={"a": 1})
    assert found == {"a": 0.0, "d": Undefined("group_absent")}
    found = group_values("EXP", rows, "group", denominator="catalogue")
    assert set(found.values()) == {Undefined("catalogue_missing")}


@pytest.mark.parametrize("metric", ["EXP", "AWRF", "ERBP"])
def test_denominators_agree_on_full_rankings_of_one_pool(metric: str) -> None:
    rows = shown("aabcc", "cabca", "ccaab")
    catalogue = {"a": 2, "b": 1, "c": 2}
    expected = group_values(metric, rows, "group")
    assert group_values(
        metric, rows, "group", denominator="catalogue", catalogue=catalogue
    ) == agree(expected)


def test_aggregations_by_hand() -> None:
    values = [3.0, 1.0, 4.0]
    mean = 8 / 3
    expected = {
        "MinMaxRatio": 1 / 4,
        "MaxMinRatio": 4 / 1,
        "MaxMinDiff": 4 - 1,
        "MaxAbsDiff": mean - 1,
        "MeanAbsDev": ((3 - mean) + (mean - 1) + (4 - mean)) / 3,
        "LTwo": sqrt(9 + 1 + 16),
        "Variance": ((3 - mean) ** 2 + (1 - mean) ** 2 + (4 - mean) ** 2) / 3,
    }
    assert set(expected) == set(AGGREGATIONS)
    for name, value in expected.items():
        assert aggregate(name, values) == agree(value), name
        assert aggregate(name, [1.0]) == aggregate(name, []) == Undefined("one_group")


def test_ratios_of_zeros() -> None:
    zeros = {"MinMaxRatio": Undefined("all_zero"), "MaxMinRatio": Undefined("all_zero")}
    low = {"MinMaxRatio": 0.0, "MaxMinRatio": Undefined("zero_minimum")}
    for name in AGGREGATIONS:
        assert aggregate(name, [0.0, 0.0]) == zeros.get(name, 0.0)
        if name in low:
            assert aggregate(name, [0.0, 2.0]) == low[name]


def test_two_equal_groups() -> None:
    fairest = {"MinMaxRatio": 1.0, "MaxMinRatio": 1.0, "LTwo": sqrt(2 * 0.5**2)}
    for name in AGGREGATIONS:
        assert aggregate(name, [0.5, 0.5]) == agree(fairest.get(name, 0.0)), name


R, N = Undefined("relevance_missing"), Undefined("relevance_not_binary")


@pytest.mark.parametrize(
    ("metric", "rows", "expected"),
    [
        ("EXPU", judged([[("a", None), ("b", 1.0)]]), {"a": R, "b": 1 / log2(3)}),
        ("EXPU", judged([[("a", 0.0), ("b", 1.0)]]), {"a": Undefined("zero_relevance")}),
        ("EXPRU", judged([[("a", 1.0)]], [[None]]), {"a": Undefined("click_missing")}),
        ("EXPRU", judged([[("a", float("nan"))]], [[1.0]]), {"a": R}),
        ("EXPRU", judged([[("a", 0.0)]], [[1.0]]), {"a": Undefined("zero_relevance")}),
        ("ERBR", judged([[("a", 1.0), ("b", 0.5)]]), {"a": N, "b": N}),
        ("ERBR", judged([[("a", None), ("b", 1.0)]]), {"a": R, "b": 0.25 * 0.75}),
        ("ERBR", judged([[("a", 0.0), ("b", 1.0)]]), {"a": Undefined("no_relevant_items")}),
        ("ARP", shown("aa"), {"a": Undefined("no_mixed_pairs")}),
    ],
)
def test_undefined_groups(metric: str, rows: Rows, expected: dict[str, Number]) -> None:
    found = group_values(metric, rows, "group")
    assert {name: found[name] for name in expected} == agree_or_same(expected)


def agree_or_same(expected: dict[str, Number]) -> dict[str, Any]:
    return {
        name: value if isinstance(value, Undefined) else agree(value)
        for name, value in expected.items()
    }


def test_binary_is_a_fact_of_the_batch() -> None:
    batch = judged([[("a", 1.0), ("b", 1.0)], [("a", 0.5)]])
    part = [row for row in batch if row["list_id"] == "0"]
    assert group_values("ERBR", part, "group") == agree({"a": 0.25, "b": 0.25 * 0.75})
    assert set(group_values("ERBR", part, "group", batch=batch).values()) == {N}


@pytest.mark.parametrize("metric", GROUP_METRICS)
def test_absent_groups_are_named(metric: str) -> None:
    rows = judged([[("a", 1.0), ("b", 1.0)]], [[1.0, 1.0]])
    assert group_values(metric, rows, "group", groups=["z"])["z"] == Undefined("group_absent")
    found = score(metric, "LTwo", rows, "group", groups=["z"])
    assert found == Undefined("group_absent: z")


@pytest.mark.parametrize("metric", GROUP_METRICS)
def test_an_empty_batch_and_a_lonely_group(metric: str) -> None:
    assert score(metric, "MaxMinDiff", [], "group") == Undefined("no_lists")
    rows = judged([[("a", 1.0), (None, 1.0)]], [[1.0, 1.0]])
    assert score(metric, "MaxMinDiff", rows, "group") == Undefined("one_group")


def test_a_single_number_needs_lists_and_groups() -> None:
    assert single_value("NDKL", [], "group") == Undefined("no_lists")
    assert single_value("IAA", []) == Undefined("no_lists")
    assert single_value("NDKL", shown("a.", "."), "group") == Undefined("one_group")
    # A slice of one group, in a batch of two, is compared with its lists' own mix.
    assert single_value("NDKL", shown("aa"), "group", groups=["b"]) == 0.0


def test_the_unknown_group_is_counted_but_not_compared() -> None:
    rows = shown(".ab")
    assert group_values("ARP", rows, "group") == {"a": 1 / 2, "b": 0.0, "unknown": 1.0}
    assert score("ARP", "MaxMinDiff", rows, "group") == 1 / 2
    assert score("ARP", "MaxMinDiff", rows, "group", unknown_counts=True) == 1.0
    assert single_value("NDKL", rows, "group") == single_value("NDKL", shown("cab"), "group")
    # An undefined value of the unknown group is nobody's business.
    rows = judged([[(None, None), ("a", 1.0), ("b", 1.0)]])
    assert score("EXPU", "MaxMinDiff", rows, "group") == agree(1 / log2(3) - 1 / log2(4))


def test_reasons_name_the_group() -> None:
    rows = judged([[("a", 1.0), ("b", 0.0), ("c", 0.0)]])
    for name in AGGREGATIONS:
        assert score("EXPU", name, rows, "group") == Undefined("zero_relevance: b")
    rows = judged([[("a", None), ("b", None)]])
    assert score("EXPU", "LTwo", rows, "group") == Undefined("relevance_missing")


def test_intersections() -> None:
    people = [("f", "x"), ("m", "x"), ("f", None), ("f", "x"), ("", "y")]
    rows: Rows = [
        {"list_id": "1", "item_id": str(rank), "rank": rank, "sex": sex, "town": town}
        for rank, (sex, town) in enumerate(people, start=1)
    ]
    assert group_values("EXP", rows, ["sex", "town"]) == agree(
        {
            "f*x": (1 + 1 / log2(5)) / 2,
            "m*x": 1 / log2(3),
            "unknown": (1 / log2(4) + 1 / log2(6)) / 2,
        }
    )


def test_who() -> None:
    gone = Undefined("group_absent")
    assert worst_and_best({"a": 2.0, "b": 1.0, "c": 1.0, "d": gone, "e": 2.0}) == ("b", "a")
    assert worst_and_best({"a": 1.0, "b": 1.0}) == (None, None)
    assert worst_and_best({"a": gone}) == (None, None)


@pytest.mark.parametrize("metric", GROUP_METRICS)
def test_row_order_and_doubling_change_nothing(metric: str) -> None:
    rows = judged([[("a", 1.0), ("b", 1.0), ("a", 0.0)], [("b", 1.0), ("a", 1.0)]], [[1.0] * 3] * 2)
    expected = group_values(metric, rows, "group")
    assert group_values(metric, rows[::-1], "group") == expected
    twice = rows + [{**row, "list_id": f"again {row['list_id']}"} for row in rows]
    assert group_values(metric, twice, "group") == agree(expected)
