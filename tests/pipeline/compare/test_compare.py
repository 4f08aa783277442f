"""The comparison of two logs: what is computed, and which lists belong together."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random

import pytest
import slow_comparison
from command import evenrank
from compare_logs import LABELS, Rows, logs, overall, query, shown
from slow import mean
from stores import write_csv

import pipeline.compare.logs.compare
from pipeline.compare.logs.compare import compare
from pipeline.counts.rankings import chunks_of
from pipeline.errors import NoData


def pair(a: Rows, b: Rows) -> dict[str, float | None]:
    """What brute force says of two lists."""
    places = {row["item_id"]: row["rank"] for row in b}
    rows = [row | {"reference_rank": places.get(row["item_id"])} for row in a]
    return {
        label: slow_comparison.one_list(label, rows, max(row["rank"] for row in b))
        for label in LABELS
    }


def same(found: Mapping[str, float | None], expected: Mapping[str, float | None]) -> None:
    assert {label for label in found if found[label] is None} == {
        label for label in expected if expected[label] is None
    }
    assert {label: value or 0.0 for label, value in found.items()} == pytest.approx(
        {label: value or 0.0 for label, value in expected.items()}, rel=1e-9, abs=1e-13
    )


# -- what is computed


def test_a_swap_by_hand(tmp_path: Path) -> None:
    found = compare(*logs(tmp_path, [shown("l", "abc", "q")], [shown("m", "acb", "q")]))
    values = overall(found)
    assert values["AO"] == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert values["NDPM"] == pytest.approx(1 / 3)
    assert values["Kendall"] == pytest.approx((2 - 1) / 3)
    assert query(found, "q") == {
        "query_id": "q",
        "lists": 1,
        "items_a": 3,
        "items_b": 3,
        "shared": 3,
        "values": values,
        "reasons": {},
    }


def test_the_order_of_b_is_the_reference_of_all_it_shows(tmp_path: Path) -> None:
    a, b = shown("l", "ab"), shown("l", "cbaxyz")
    same(overall(compare(*logs(tmp_path, [a], [b]))), pair(a, b))
    same(overall(compare(*logs(tmp_path, [b], [a]))), pair(b, a))


def drawn(seed: int) -> tuple[list[Rows], list[Rows]]:
    """Two random logs: lists of other lengths, in part other items, and queries of their own."""
    draw = Random(seed)
    pool = [f"i{at}" for at in range(25)]
    sides = []
    for side in "ab":
        lists = []
        for at in range(40):
            if draw.random() < 0.8:
                lists.append(
                    shown(f"{side}{at}", draw.sample(pool, draw.randint(1, 20)), f"q{at % 30}")
                )
        sides.append(lists)
    return sides[0], sides[1]


def by_query(lists: Sequence[Rows]) -> dict[str, list[Rows]]:
    found: dict[str, list[Rows]] = {}
    for rows in sorted(lists, key=lambda rows: str(rows[0]["list_id"])):
        found.setdefault(rows[0]["query_id"], []).append(rows)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_random_logs_as_brute_force_has_them(tmp_path: Path, seed: int) -> None:
    a, b = drawn(seed)
    found = compare(*logs(tmp_path, a, b))
    queries_a, queries_b = by_query(a), by_query(b)
    pairs = {
        name: [pair(*each) for each in zip(queries_a[name], queries_b[name], strict=False)]
        for name in sorted(set(queries_a) & set(queries_b))
    }
    assert list(found.queries) == list(pairs)
    for name, each in pairs.items():
        expected = {label: mean([values[label] for values in each]) for label in LABELS}
        same(query(found, name)["values"], expected)
    every = [values for each in pairs.values() for values in each]
    same(overall(found), {label: mean([values[label] for values in every]) for label in LABELS})
    assert {each.name.label: each.lists for each in found.overall} == {
        label: sum(values[label] is not None for values in every) for label in LABELS
    }
    how = found.matching
    assert (how.queries, how.lists) == (len(pairs), len(every))
    assert how.only_a == len(set(queries_a) - set(queries_b))
    assert how.only_b == len(set(queries_b) - set(queries_a))
    assert how.lists + how.left_a == sum(len(queries_a[name]) for name in pairs)
    assert how.lists + how.left_b == sum(len(queries_b[name]) for name in pairs)


def test_the_order_of_rows_and_files_changes_nothing(tmp_path: Path) -> None:
    a, b = drawn(7)
    expected = compare(*logs(tmp_path, a, b)).document()
    rows = [row for each in a for row in each]
    Random(1).shuffle(rows)
    for at in range(3):
        write_csv(tmp_path / "parts" / f"{at}.csv", rows[at::3])
    found = compare(tmp_path / "parts", tmp_path / "b.csv").document()
    assert found | {"a": None} == expected | {"a": None}


@pytest.mark.parametrize("rows", [1, 50, 400])
def test_rows_held_at_a_time_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    sides = logs(tmp_path, *drawn(8))
    expected = compare(*sides).document()
    monkeypatch.setattr(
        pipeline.compare.logs.compare, "chunks_of", partial(chunks_of, chunk_rows=rows)
    )
    assert compare(*sides).document() == expected


def test_a_log_compared_with_itself_is_the_same(tmp_path: Path) -> None:
    a, _ = logs(tmp_path, [shown("l", "abcd"), shown("m", "dcba")], [shown("l", "ab")])
    values = overall(compare(a, a))
    for label in ("AO", "RBO(p=0.9).EXT", "FCP", "Kendall", "Spearman", "Pearson"):
        assert values[label] == 1, label
    assert values["NDPM"] == values["RBD(p=0.9)"] == 0


def test_parameters_go_to_the_metrics_that_take_them(tmp_path: Path) -> None:
    sides = logs(tmp_path, [shown("l", "abcde")], [shown("l", "badce")])
    assert list(overall(compare(*sides, k=2, p=0.5))) == [
        "AO@2",
        *(f"RBO(p=0.5)@2.{reading}" for reading in ("MIN", "RES", "EXT")),
        "RBD(p=0.5)@2",
        "NDPM",
        "FCP",
        "Kendall",
        "Spearman",
        "Pearson",
    ]
    chosen = compare(*sides, metrics=["Kendall", "AO@1"])
    assert overall(chosen) == {"Kendall": pytest.approx((10 - 2 * 2) / 10), "AO@1": 0}
    assert chosen.deciding.label == "Kendall"


def test_what_cannot_be_computed_is_counted_with_its_reason(tmp_path: Path) -> None:
    a = [shown("l", "ab"), shown("m", "abc"), shown("n", "abc")]
    b = [shown("l", "ba"), shown("m", "xyz"), shown("n", "cba")]
    document = compare(*logs(tmp_path, a, b)).document()
    scores = {each["score"]: each for each in document["overall"]}
    assert scores["Kendall"] == {
        "score": "Kendall",
        "value": -1,
        "reason": None,
        "lists": 1,
        "without_value": 2,
    }
    assert scores["AO"]["lists"] == 3
    queries = {each["query_id"]: each for each in document["queries"]}
    assert queries["m"]["values"]["AO"] == 0
    assert queries["m"]["values"]["Kendall"] is None
    assert queries["m"]["reasons"]["Kendall"] == "not_enough_items"
    assert "AO" not in queries["m"]["reasons"]

    document = compare(*logs(tmp_path, a[:2], b[:2]), metrics="Kendall").document()
    assert document["overall"] == [
        {
            "score": "Kendall",
            "value": None,
            "reason": "not_enough_items",
            "lists": 0,
            "without_value": 2,
        }
    ]


@pytest.mark.slow
def test_what_differs_most_comes_first_and_what_has_no_value_last(tmp_path: Path) -> None:
    a = [shown(name, "abcd") for name in "npqr"]
    b = [shown("n", "xyz"), shown("p", "abcd"), shown("q", "dcba"), shown("r", "bacd")]
    sides = logs(tmp_path, a, b)
    for label in ("NDPM", "Kendall", "FCP"):
        found = compare(*sides, metrics=label)
        assert [found.queries[at] for at in found.most_different()] == ["q", "r", "p", "n"]
    for label in ("RBD(p=0.9)", "RBO(p=0.9)", "AO"):
        found = compare(*sides, metrics=label)
        assert [found.queries[at] for at in found.most_different()] == ["n", "q", "r", "p"]


# -- which lists belong together


def test_lists_are_their_own_queries_where_none_is_logged(tmp_path: Path) -> None:
    found = compare(*logs(tmp_path, [shown("l", "ab")], [shown("l", "ab"), shown("m", "ab")]))
    assert list(found.queries) == ["l"]
    assert (found.matching.queries, found.matching.only_a, found.matching.only_b) == (1, 0, 1)


def test_lists_of_one_query_go_by_list_id_then_in_order(tmp_path: Path) -> None:
    a = [shown("l2", "ab", "q"), shown("l1", "cd", "q"), shown("l5", "ef", "q")]
    b = [shown("l2", "ab", "q"), shown("k7", "cx", "q"), shown("k8", "ex", "q")]
    b += [shown("k9", "yz", "q"), shown("only", "ab", "p")]
    found = compare(*logs(tmp_path, a, b), metrics=["AO@1"])
    how = found.matching
    assert (how.one_to_one, how.by_list_id, how.in_order) == (0, 1, 2)
    assert (how.left_a, how.left_b, how.only_b) == (0, 1, 1)
    # l2 beside l2, l1 beside k7 and l5 beside k8: their first items are the same.
    assert overall(found) == {"AO@1": 1}
    assert query(found, "q")["lists"] == 3
    text = evenrank("compare", tmp_path / "a.csv", tmp_path / "b.csv").stdout
    assert "1 matched by list_id, 2 in order of it" in text
    assert "without a partner: 0 lists of A, 1 of B" in text


def test_the_same_list_id_under_another_query_is_another_list(tmp_path: Path) -> None:
    a = [shown("l1", "ab", "q"), shown("l2", "ba", "r")]
    b = [shown("l1", "ba", "r"), shown("l2", "ab", "q")]
    assert overall(compare(*logs(tmp_path, a, b), metrics=["AO@1"])) == {"AO@1": 1}


def test_logs_without_a_common_query_end_with_4(tmp_path: Path) -> None:
    sides = logs(tmp_path, [shown("l", "ab", "q")], [shown("l", "ab", "r")])
    result = evenrank("compare", *sides)
    assert result.exit_code == 4
    assert "no query is in both" in result.stderr
    with pytest.raises(NoData):
        compare(*sides)
