"""Count tables of ragged logs against plain Python; counters in memory against statements."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import some
from count_tables import count_tables, without_numbers
from logs import Row, Rows
from slow_measuring import group_tables, rank_counts, slice_counts

from metrics import PREFIX_UNIT
from pipeline.counts.prefix_terms import PrefixTerms
from pipeline.errors import AuditError

SLICES = ("device", "market")
ATTRIBUTES = {"group": ("group",), "region": ("region",), "group*region": ("group", "region")}
SLICED = {"slices": list(SLICES), "attributes": ["group", "region", ["group", "region"]]}
RELEVANT_FROM = 0.3
LOGS: dict[str, dict[str, Any]] = {
    "graded": {},
    "binary": {"binary": True},
    "binary, all known": {"binary": True, "complete": True},
    "queries repeat": {"queries": 11},
    "gaps": {"gaps": True},
    "one group": {"groups": 1},
}


def ragged(
    seed: int = 3,
    lists: int = 80,
    *,
    binary: bool = False,
    complete: bool = False,
    queries: int = 0,
    gaps: bool = False,
    groups: int = 5,
) -> Rows:
    """Lists of 1 to 20 rows; some rows lack numbers, groups and slices."""
    chance = np.random.default_rng(seed)
    rows: Rows = []
    for number in range(lists):
        n = int(chance.integers(1, 21))
        ranks = np.sort(chance.permutation(3 * n)[:n]) + 1 if gaps else np.arange(1, n + 1)
        about: Row = {
            "device": ["app", "web", None][int(chance.integers(3))],
            "market": "xyz"[int(chance.integers(3))],
        }
        if queries:
            about["query_id"] = f"q{number % queries}"
        for item, rank in zip(chance.permutation(60)[:n].tolist(), ranks.tolist(), strict=True):
            numbers = chance.random(5)
            if binary:
                numbers = np.rint(numbers)
            if not complete:
                numbers[chance.random(5) < 0.2] = np.nan
            relevance, click, propensity, predicted, reference = numbers.tolist()
            rows.append(
                {
                    "list_id": f"list {number}",
                    "item_id": f"i{item}",
                    "rank": rank,
                    "group": [None, *"abcd"][item % groups] if groups > 1 else "a",
                    "region": "ns"[item // 7 % 2],
                    "relevance": None if np.isnan(relevance) else relevance**3,
                    "click": None if np.isnan(click) else click,
                    "propensity": None if np.isnan(propensity) else 1 / (1 + propensity),
                    "predicted_click": None if np.isnan(predicted) else predicted,
                    "reference_rank": None if np.isnan(reference) else 1 + int(9 * reference),
                    **about,
                }
            )
    return rows


def settings_of(name: str) -> dict[str, Any]:
    gaps = {"ranks": {"gaps": "keep"}} if name == "gaps" else {}
    return {**SLICED, "relevant_from": RELEVANT_FROM, "metrics": ["fairness", "nDCG@3"], **gaps}


def keyed(rows: Rows, *key: str) -> dict[Any, Row]:
    found = {tuple(row[name] for name in key): row for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", some(list(LOGS), few=3))
def test_tables_against_plain_python(name: str, tmp_path: Path) -> None:
    rows = ragged(**LOGS[name])
    tables = count_tables(tmp_path, rows, **settings_of(name))
    part = ("slice", "slice_value")
    group = (*part, "attribute", "group_value")
    pairs, prefixes = group_tables(rows, SLICES, ATTRIBUTES)
    for table, key, expected in (
        ("slice_counts", part, slice_counts(rows, SLICES)),
        ("rank_counts", (*group, "rank"), rank_counts(rows, SLICES, ATTRIBUTES, RELEVANT_FROM)),
        ("pair_stats", group, pairs),
    ):
        found = keyed(tables[table], *key)
        assert set(found) == set(expected), table
        for at, numbers in expected.items():
            assert {each: found[at][each] for each in numbers} == numbers, (table, at)
    found = keyed(tables["prefix_stats"], *group)
    assert set(found) == set(prefixes)
    for at, numbers in prefixes.items():
        row = found[at]
        for counted in ("lists", "queries", "items"):
            assert row[counted] == numbers[counted], (at, counted)
        for statistic in ("entropy_sum", "share_sum", "own_sum"):
            value = int(row[statistic]) / PREFIX_UNIT
            assert value == pytest.approx(numbers[statistic], rel=1e-12, abs=1e-12), (at, statistic)


@pytest.mark.slow
@pytest.mark.parametrize("name", some(list(LOGS), few=3))
def test_buckets_add_up(name: str, tmp_path: Path) -> None:
    tables = count_tables(tmp_path, ragged(**LOGS[name]), **settings_of(name))
    sums = ("rows", "judged", "graded", "relevant", "relevance_sum", "click_known", "click_sum")
    for attribute in ATTRIBUTES:
        here = [row for row in tables["rank_counts"] if row["attribute"] == attribute]
        whole = [row for row in here if row["slice"] == "all"]
        for each in sums:
            assert sum(row[each] for row in whole) == sum(
                row[each] for row in tables["bucket_counts"]
            )
    lists = {
        (row["slice"], row["slice_value"], row["attribute"], row["group_value"]): row["lists"]
        for row in tables["pair_stats"]
    }
    for row in tables["bucket_sums"]:
        if row["statistic"] == "pair_lists":
            key = tuple(row[k] for k in ("slice", "slice_value", "attribute", "group_value"))
            assert sum(row["sums"]) == lists.get(key, 0)
            assert row["buckets"] == sorted(set(row["buckets"]))


@pytest.mark.slow
@pytest.mark.parametrize("name", some(list(LOGS), few=2))
def test_counters_and_statements_agree(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ragged(**LOGS[name])
    monkeypatch.setattr("pipeline.counts.rank_counts.CELLS_PER_ROW", 10**9)
    counters = count_tables(tmp_path / "counters", rows, **settings_of(name))
    monkeypatch.setattr("pipeline.counts.rank_counts.MOST_CELLS", 0)
    monkeypatch.setattr("pipeline.counts.group_counts.MOST_COUNTERS", 0)
    monkeypatch.setattr("pipeline.counts.group_counts.MOST_SEEN", 0)
    assert count_tables(tmp_path / "statements", rows, **settings_of(name)) == counters


@pytest.mark.slow
@pytest.mark.parametrize("chunk_rows", some([333, 50, 1], few=1))
@pytest.mark.parametrize("name", some(["graded", "queries repeat"], few=1))
def test_chunks_do_not_matter(
    name: str, chunk_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ragged(**LOGS[name])
    whole = count_tables(tmp_path / "whole", rows, **settings_of(name))
    for module in ("one_pass", "list_stats"):
        monkeypatch.setattr(f"pipeline.counts.{module}.CHUNK_ROWS", chunk_rows)
    monkeypatch.setattr("pipeline.counts.slice_counts._HELD_LISTS", 7)
    monkeypatch.setattr("pipeline.counts.mix_counts._HELD_LISTS", 7)
    assert count_tables(tmp_path / "chunks", rows, **settings_of(name)) == whole


def test_deep_lists_need_no_table_of_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(5)
    own = chance.integers(1, 40, 30)
    length = own + chance.integers(0, 200, 30)
    starts = np.cumsum(own) - own
    position = np.concatenate(
        [np.sort(chance.permutation(n)[:k]) + 1 for n, k in zip(length, own, strict=True)]
    )
    looked_up = PrefixTerms(300).sums(position, starts, own, length)
    monkeypatch.setattr("pipeline.counts.prefix_terms._MOST_ENTRIES", 0)
    for found, expected in zip(
        PrefixTerms(500).sums(position, starts, own, length), looked_up, strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_the_longest_list_there_is() -> None:
    # Whole numbers wrap on the way, but not what comes out: a group alone has all of the list.
    n = 1_000_000
    entropy, share = PrefixTerms(n).sums(
        np.arange(1, n + 1), np.array([0]), np.array([n]), np.array([n])
    )
    assert share[0] / PREFIX_UNIT == pytest.approx(1, rel=1e-12)
    assert entropy[0] / PREFIX_UNIT == pytest.approx(0, abs=1e-5)


def test_a_file_of_an_older_layout(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="run the batch again from its logs"):
        without_numbers(tmp_path, ragged(lists=3), **settings_of("graded"))
