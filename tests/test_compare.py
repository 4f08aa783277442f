"""The comparison of two logs: which lists belong together, what is said of them, how it ends."""

import csv
import json
from collections.abc import Mapping, Sequence
from functools import partial
from math import fsum
from pathlib import Path
from random import Random
from typing import Any

import pytest
import slow_comparison
from click.testing import CliRunner, Result
from stores import DAY, deliver, ranking, write_csv, write_settings

import pipeline.comparing.two_logs
from metrics.comparison import COMPARISON_METRICS
from pipeline.cli import main
from pipeline.comparing.report import Comparison
from pipeline.comparing.two_logs import compare
from pipeline.errors import DataRefused, NoData, SettingsError
from pipeline.lists import chunks_of

Rows = list[dict[str, Any]]
LABELS = [score.label for metric in COMPARISON_METRICS for score in metric.usual.scores()]


def rankaudit(*words: str | Path) -> Result:
    result = CliRunner().invoke(main, ["compare", *map(str, words)])
    fault = result.exception
    assert fault is None or isinstance(fault, SystemExit), repr(fault)
    return result


def shown(list_id: str, items: Sequence[str], query: str | None = None) -> Rows:
    """One list, an item per letter or string."""
    return [
        {"list_id": list_id, "item_id": item, "rank": rank}
        | ({} if query is None else {"query_id": query})
        for rank, item in enumerate(items, start=1)
    ]


def logs(folder: Path, a: Sequence[Rows], b: Sequence[Rows]) -> tuple[Path, Path]:
    """Two log files of some lists each."""
    rows_a, rows_b = ([row for each in side for row in each] for side in (a, b))
    return write_csv(folder / "a.csv", rows_a), write_csv(folder / "b.csv", rows_b)


def overall(found: Comparison) -> dict[str, float | None]:
    return {each.name.label: each.value for each in found.overall}


def query(found: Comparison, name: str) -> dict[str, Any]:
    return found.query(list(found.queries).index(name))


def pair(a: Rows, b: Rows) -> dict[str, float | None]:
    """What brute force says of two lists."""
    places = {row["item_id"]: row["rank"] for row in b}
    rows = [row | {"reference_rank": places.get(row["item_id"])} for row in a]
    return {
        label: slow_comparison.one_list(label, rows, max(row["rank"] for row in b))
        for label in LABELS
    }


def mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None


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
        pipeline.comparing.two_logs, "chunks_of", partial(chunks_of, chunk_rows=rows)
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
    text = rankaudit(tmp_path / "a.csv", tmp_path / "b.csv").stdout
    assert "1 matched by list_id, 2 in order of it" in text
    assert "without a partner: 0 lists of A, 1 of B" in text


def test_the_same_list_id_under_another_query_is_another_list(tmp_path: Path) -> None:
    a = [shown("l1", "ab", "q"), shown("l2", "ba", "r")]
    b = [shown("l1", "ba", "r"), shown("l2", "ab", "q")]
    assert overall(compare(*logs(tmp_path, a, b), metrics=["AO@1"])) == {"AO@1": 1}


def test_logs_without_a_common_query_end_with_4(tmp_path: Path) -> None:
    sides = logs(tmp_path, [shown("l", "ab", "q")], [shown("l", "ab", "r")])
    result = rankaudit(*sides)
    assert result.exit_code == 4
    assert "no query is in both" in result.stderr
    with pytest.raises(NoData):
        compare(*sides)


# -- what can be compared


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings of an audit of two days, run; the second day shows every list the other way."""
    folder = tmp_path_factory.mktemp("store")
    config = write_settings(folder)
    for day, turned in (("2026-01-05", False), ("2026-01-06", True)):
        rows = []
        for at in range(4):
            each = ranking(f"l{at}", "FMFM")
            for row in each:
                row["rank"] = 5 - row["rank"] if turned else row["rank"]
            rows += each
        deliver(folder, rows, batch=day)
        words = ["run", "--batch", day, "-q", "--config", str(config)]
        assert CliRunner().invoke(main, words).exit_code == 0
    return config


def test_batches_of_a_store(store: Path) -> None:
    found = compare("2026-01-05", "2026-01-06", config=store)
    assert overall(found)["Kendall"] == -1
    assert (found.a.lists, found.a.rows, found.matching.queries) == (4, 16, 4)
    assert overall(compare(DAY, DAY, config=store))["Kendall"] == 1


def test_a_batch_beside_a_file_and_a_folder(store: Path) -> None:
    logs = store.parent / "logs" / "2026-01-06"
    assert overall(compare("2026-01-05", logs / "part.csv", config=store))["FCP"] == 0
    assert overall(compare(logs, "2026-01-05", config=store))["FCP"] == 0


def test_the_settings_of_this_folder_name_the_store(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(store.parent)
    assert overall(compare("2026-01-05", "logs/2026-01-06"))["NDPM"] == 1


def test_settings_say_how_files_are_read_but_groups_are_not_needed(tmp_path: Path) -> None:
    config = write_settings(
        tmp_path, "attributes: [gender]\nslices: [device]\ncolumns: {item_id: sku}\n"
    )
    rows = [
        {"sku" if name == "item_id" else name: value for name, value in row.items()}
        for row in shown("l", "abc")
    ]
    log = write_csv(tmp_path / "log.csv", rows)
    assert overall(compare(log, log, config=config))["Kendall"] == 1
    with pytest.raises(DataRefused, match="no column 'item_id'"):
        compare(log, log)


# -- how it ends


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("nowhere.csv", "b.csv"), 2, "nowhere.csv: no such file or folder; for a batch"),
        (("a.csv", "b.csv", "--metric", "EXP"), 2, "EXP does not compare two rankings"),
        (("a.csv", "b.csv", "--metric", "Kendal"), 2, "did you mean Kendall"),
        (("a.csv", "b.csv", "--metric", "AO(reference=relevance)"), 2, "leave reference out"),
        (("a.csv", "b.csv", "--p", "1"), 2, "p lies between 0 and 1"),
        (("a.csv", "b.csv", "--k", "0"), 2, "whole number from 1"),
        (("a.csv", "b.csv", "--csv", "no/such/folder.csv"), 2, "--csv"),
        (("a.csv",), 2, "Missing argument 'B'"),
        (("a.csv", "broken.csv"), 3, "broken.csv: "),
        (("a.csv", "other.csv"), 3, "no column 'item_id'"),
        (("a.csv", "none.csv"), 4, "none.csv: the files hold no rows"),
        (("empty", "b.csv"), 4, "empty: no files in this folder"),
    ],
)
def test_exit_codes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    logs(tmp_path, [shown("l", "abc")], [shown("l", "abc")])
    write_csv(tmp_path / "broken.csv", [row | {"rank": "first"} for row in shown("l", "abc")])
    write_csv(tmp_path / "other.csv", [{"list_id": "l", "rank": 1}])
    (tmp_path / "none.csv").write_text("list_id,item_id,rank\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    result = rankaudit(*words)
    assert result.exit_code == code
    assert said in result.stderr
    assert result.stdout == ""


def test_batches_that_are_not_there(store: Path) -> None:
    result = rankaudit("2026-01-05", "2026-03-01", "--config", store, "--json")
    assert result.exit_code == 4
    assert "no batch of the store" in json.loads(result.stdout)["error"]
    with pytest.raises(SettingsError, match="no such file or folder"):
        compare("no/path.csv", "2026-01-05", config=store)


# -- what is printed


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    a = [shown(f"l{at:02}", "abcdefgh") for at in range(20)]
    b = [
        shown(f"l{at:02}", "abcdefgh"[: at % 8 + 1][::-1] + "abcdefgh"[at % 8 + 1 :])
        for at in range(18)
    ]
    return logs(tmp_path, a, b)


def test_a_table_for_people(sides: tuple[Path, Path]) -> None:
    result = rankaudit(*sides, "--top", "3")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "18 queries in both, 2 only in A, 0 only in B" in lines
    assert "Mean over 18 matched lists" in lines
    assert "p=0.9: the first 10 ranks decide 86% of RBO and RBD" in lines
    at = lines.index("Most different by RBO(p=0.9).EXT")
    # The whole list turned round differs most: the queries of which B shows all eight reversed.
    assert [line.split()[0] for line in lines[at + 2 : at + 5]][:2] == ["l07", "l15"]
    assert lines[-1] == "  and 15 more: --top, --csv or --json"
    assert "Most different" not in rankaudit(*sides, "--top", "0").stdout


def test_a_document_for_scripts(sides: tuple[Path, Path]) -> None:
    document = json.loads(rankaudit(*sides, "--json").stdout.splitlines()[-1])
    assert document == json.loads(json.dumps(compare(*sides).document()))
    assert document["matched"]["lists"] == 18
    assert document["ordered_by"] == "RBO(p=0.9).EXT"
    values = [each["values"]["RBO(p=0.9).EXT"] for each in document["queries"]]
    assert values == sorted(values)
    assert len(values) == 18
    assert document["prefix_weights"] == [
        {"p": 0.9, "ranks": 10, "weight": pytest.approx(0.8556, abs=1e-4)}
    ]


def test_a_row_per_query_as_csv(sides: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "queries.csv"
    assert rankaudit(*sides, "--quiet", "--csv", path).stdout == ""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["query_id", "lists", "items_a", "items_b", "shared", *LABELS]
    document = compare(*sides).document()
    assert [row["query_id"] for row in rows] == [each["query_id"] for each in document["queries"]]
    assert float(rows[0]["Kendall"]) == document["queries"][0]["values"]["Kendall"]


def test_rejected_rows_are_told_and_left_out(tmp_path: Path) -> None:
    a = [shown(f"l{at}", "abcd") for at in range(40)]
    a[3][1]["item_id"] = "a"
    result = rankaudit(*logs(tmp_path, a, [shown(f"l{at}", "abcd") for at in range(40)]))
    assert result.exit_code == 0
    assert "39 lists, 156 rows, 4 rejected" in result.stdout
    assert "duplicate_item" in result.stdout
    assert "39 queries in both, 0 only in A, 1 only in B" in result.stdout


def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    name = "q\x1b[31m[bold]"
    result = rankaudit(*logs(tmp_path, [shown("l", "abc", name)], [shown("l", "acb", name)]))
    assert "\x1b" not in result.stdout
    assert "q?[31m[bold]" in result.stdout


def test_nothing_is_left_behind(
    sides: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(room))
    before = sorted(tmp_path.rglob("*"))
    assert rankaudit(*sides).exit_code == 0
    assert sorted(tmp_path.rglob("*")) == before
