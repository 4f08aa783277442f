"""Rankings with a known bias: the laws of how they are drawn, and what metrics make of them."""

import random
from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from itertools import permutations, product
from math import log2, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

from pipeline import score
from pipeline.cli import main
from pipeline.synthetic import days as biased_day
from pipeline.synthetic.biased import BiasedIncidents, BiasedRankings, generate_biased
from pipeline.synthetic.files import CannotGenerate
from pipeline.synthetic.marketplace import Incidents, generate
from pipeline.synthetic.orders import apportioned, drawn_groups, mixes

START = date(2026, 1, 1)
GROUPS = {"a": 0.2, "b": 0.3, "c": 0.5}


def frame(rankings: BiasedRankings, lists: int, **more: Any) -> pd.DataFrame:
    return rankings.table(lists, **more).to_pandas()


def exposures(rows: pd.DataFrame) -> pd.Series:
    """Mean of 1 / log2(rank + 1) by group, from the definition."""
    return (1 / np.log2(rows["rank"] + 1)).groupby(rows["group"]).mean()


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


# -- how groups are drawn


def test_items_are_shared_out_by_largest_remainders() -> None:
    assert apportioned([0.4, 0.6], 10).tolist() == [4, 6]
    assert apportioned([1, 1, 1], 10).tolist() == [4, 3, 3]
    assert apportioned([5, 0, 3, 2], 7).tolist() == [4, 0, 2, 1]  # quotas 3.5, 0, 2.1, 1.4
    assert sum([0.1] * 10) != 1
    assert apportioned([0.1] * 10, 2000).tolist() == [200] * 10
    assert 0.1 + 0.2 > 0.3  # but not by enough to be served first
    assert apportioned([0.3, 0.1 + 0.2, 0.4], 5).tolist() == [2, 1, 2]
    for total in range(1, 60):
        shares = [0.05, 0.3, 0.0, 0.25, 0.4]
        counts = apportioned(shares, total)
        assert counts.sum() == total
        assert all(abs(n - total * share) < 1 for n, share in zip(counts, shares, strict=True))


@pytest.mark.parametrize("size", [1, 7, 20, 60])
def test_the_mix_of_a_list_is_that_of_the_catalogue_on_average(size: int) -> None:
    catalogue = np.array([2, 0, 17, 41])
    every = (np.arange(60) + 0.5) / 60
    counts = mixes(catalogue, np.full(60, size), every)
    assert (counts.sum(axis=1) == size).all()
    assert counts.sum(axis=0).tolist() == [size * n for n in catalogue]
    exact = size * catalogue / 60
    assert (counts >= np.floor(exact)).all()
    assert (counts <= np.ceil(exact)).all()


def one_list(counts: list[int], phi: float, coins: list[float], lots: list[float]) -> list[int]:
    """The groups of one list, candidate by candidate."""
    waiting = [group for group, n in enumerate(counts) for _ in range(n)]
    drawn = []
    for coin, lot in zip(coins, lots, strict=True):
        drawn.append(waiting.pop(int(lot * len(waiting)) if coin < phi else 0))
    return drawn


def test_groups_are_drawn_as_from_a_queue() -> None:
    rng = np.random.default_rng(3)
    for groups, places in product((2, 3, 7), (1, 4, 15)):
        counts = rng.integers(0, 6, (40, groups)) + (np.arange(groups) == 1) * places
        phi = rng.choice([0.0, 0.3, 0.8, 1.0], 40)
        coins, lots = rng.random((2, 40, places))
        found, above = drawn_groups(counts, phi, coins, lots)
        for n in range(40):
            expected = one_list(counts[n].tolist(), phi[n], coins[n].tolist(), lots[n].tolist())
            assert found[n].tolist() == expected
            assert above[n].tolist() == [
                expected[:place].count(group) for place, group in enumerate(expected)
            ]


def test_the_ends_hold_for_the_least_and_the_greatest_number_drawn() -> None:
    counts, places = np.array([[1, 2]]), (1, 3)
    greatest = np.full(places, np.nextafter(1, 0))
    for phi, coins, expected in ((0.0, np.zeros(places), [0, 1, 1]), (1.0, greatest, [1, 1, 0])):
        found, _ = drawn_groups(counts, np.array([phi]), coins, greatest)
        assert found.tolist() == [expected]


def test_at_one_every_order_of_the_candidates_is_equally_likely() -> None:
    """Lots run through all combinations of (first of 4, first of 3, ...): 24, 4 for each of 6."""
    lots = np.array(
        [[(i + 0.5) / (4 - place) for place, i in enumerate(each)]
         for each in product(range(4), range(3), range(2), range(1))]
    )  # fmt: skip
    found, _ = drawn_groups(np.full((24, 2), 2), np.ones(24), np.full((24, 4), 0.999), lots)
    assert Counter(map(tuple, found.tolist())) == dict.fromkeys(permutations([0, 0, 1, 1]), 4)


@pytest.mark.parametrize(
    ("order", "first_to_last"), [("smallest", "bca"), ("largest", "acb"), ("given", "abc")]
)
@pytest.mark.parametrize("candidates", [None, 20])
def test_at_zero_whole_groups_follow_each_other(
    order: Any, first_to_last: str, candidates: int | None
) -> None:
    rankings = BiasedRankings(
        {"a": 5, "b": 2, "c": 3}, 0.0, items=100, length=10, order=order, candidates=candidates
    )
    rows = frame(rankings, 30)
    seen = rows.groupby("list_id")["group"].agg("".join).unique().tolist()
    whole = "".join(name * {"a": 5, "b": 2, "c": 3}[name] for name in first_to_last)
    doubled = "".join(name * (2 * whole.count(name)) for name in first_to_last)
    assert seen == [whole if candidates is None else doubled[:10]]


def test_groups_of_one_size_keep_the_order_they_are_given_in() -> None:
    for order in ("smallest", "largest", "given"):
        rankings = BiasedRankings({"y": 1, "x": 1}, 0.0, length=4, order=order)  # type: ignore[arg-type]
        assert frame(rankings, 1)["group"].tolist() == ["y", "y", "x", "x"]


def test_the_fully_biased_end_is_that_of_the_reference() -> None:
    """FairRankTune's page: GenFromGroups([.1, .9], 1000, phi=0) and its EXP."""
    rankings = BiasedRankings({"0": 0.1, "1": 0.9}, 0.0, items=1000, length=1000)
    found = exposures(frame(rankings, 1))
    assert found["0"] == pytest.approx(0.2093867087428094, rel=1e-9)
    assert found["1"] == pytest.approx(0.11350318011191189, rel=1e-9)
    assert found.min() / found.max() == pytest.approx(0.5420744267551784, rel=1e-9)


def test_between_the_ends_the_first_place_is_a_mixture() -> None:
    """P(first group at rank 1) = (1 - phi) + phi * share; every list has both groups."""
    lists = 6000
    for phi in (0.0, 0.3, 0.7, 1.0):
        rows = frame(BiasedRankings({"F": 0.25, "M": 0.75}, phi, length=8), lists)
        share = (rows.loc[rows["rank"] == 1, "group"] == "F").mean()
        expected = (1 - phi) + phi * 0.25
        assert abs(share - expected) <= 4 * sqrt(expected * (1 - expected) / lists)


def test_at_one_every_rank_has_the_mix_of_the_catalogue() -> None:
    lists = 5000
    rows = frame(BiasedRankings(GROUPS, 1.0, length=(3, 12)), lists)
    for rank, there in rows.groupby("rank"):
        for name, share in GROUPS.items():
            error = sqrt(share * (1 - share) / len(there))
            assert abs((there["group"] == name).mean() - share) <= 4.5 * error, (rank, name)


# -- what a list is made of


@pytest.mark.parametrize("phi", [0.0, 0.4, 1.0])
@pytest.mark.parametrize(
    "more",
    [{}, {"length": (1, 30)}, {"length": 5, "candidates": 50}, {"length": 300, "items": 300}],
    ids=str,
)
def test_lists_are_whole_and_hold_an_item_once(phi: float, more: dict[str, Any]) -> None:
    rankings = BiasedRankings(GROUPS, phi, slices={"market": ["de", "fr"]}, **more)
    rows = frame(rankings, 60)
    fewest, most = rankings.lengths
    by_list = rows.groupby("list_id", sort=False)
    assert rows["list_id"].nunique() == 60
    assert (rows["rank"] == by_list.cumcount() + 1).all()
    assert by_list.size().between(fewest, most).all()
    assert by_list.size().nunique() > 15 * (most > fewest)
    assert not rows.duplicated(["list_id", "item_id"]).any()
    assert (by_list[["query_id", "market"]].nunique() == 1).all(axis=None)
    assert rows.notna().all(axis=None)
    if rankings.candidates is None:
        for name, share in GROUPS.items():
            counts = by_list["group"].agg(lambda own, name=name: (own == name).sum())
            assert ((counts - by_list.size() * share).abs() < 1).all()


def test_the_item_table_has_the_shares_asked_for() -> None:
    rankings = BiasedRankings({str(n): 0.1 for n in range(10)}, 0.5, items=500, attribute="origin")
    items = rankings.item_table()
    assert items.column_names == ["item_id", "origin"]
    assert len(items["item_id"].unique()) == 500
    assert Counter(items["origin"].to_pylist()) == dict.fromkeys(map(str, range(10)), 50)
    rows = rankings.table(50).to_pandas()
    assert rows.merge(items.to_pandas(), on=["item_id", "origin"]).shape[0] == len(rows)


def test_shares_are_in_any_unit() -> None:
    usual = BiasedRankings({"F": 0.4, "M": 0.6}, 0.5).table(100)
    assert BiasedRankings({"F": 40, "M": 60}, 0.5).table(100).equals(usual)
    assert BiasedRankings({"F": 2 / 7, "M": 3 / 7}, 0.5).table(100).equals(usual)


def test_lengths_between_two_are_equally_likely() -> None:
    rows = frame(BiasedRankings(GROUPS, 0.5, length=(3, 5)), 3000)
    seen = rows.groupby("list_id").size().value_counts()
    assert set(seen.index) == {3, 4, 5}
    assert (abs(seen - 1000) < 4 * sqrt(3000 * 2 / 9)).all()


def test_a_group_of_no_share_has_no_items() -> None:
    rows = frame(BiasedRankings({"a": 1, "none": 0, "b": 1}, 0.5), 50)
    assert set(rows["group"]) == {"a", "b"}


def test_a_small_group_is_in_some_lists() -> None:
    rows = frame(BiasedRankings({"rare": 0.03, "rest": 0.97}, 0.5, length=10), 4000)
    assert (rows["group"] == "rare").mean() == pytest.approx(0.03, abs=0.003)


def test_slices_have_their_shares() -> None:
    slices = {"market": {"de": 3, "fr": 1}, "device": ["app", "web"]}
    heads = frame(BiasedRankings(GROUPS, 0.5, slices=slices, length=1), 8000)
    assert (heads["market"] == "de").mean() == pytest.approx(0.75, abs=0.02)
    assert (heads["device"] == "app").mean() == pytest.approx(0.50, abs=0.025)
    both = (heads["market"] == "de") & (heads["device"] == "app")
    assert both.mean() == pytest.approx(0.375, abs=0.025)


def test_one_value_of_a_slice_may_stand_alone() -> None:
    assert set(frame(BiasedRankings(GROUPS, 0.5, slices={"market": "dee"}), 5)["market"]) == {"dee"}


def test_what_a_caller_changes_later_is_not_seen() -> None:
    groups, shares = dict(GROUPS), {"de": 1.0, "fr": 1.0}
    slices = {"market": shares}
    rankings = BiasedRankings(groups, 0.5, slices=slices)
    groups.clear()
    shares["us"] = 1.0
    slices.clear()
    expected = BiasedRankings(GROUPS, 0.5, slices={"market": ["de", "fr"]})
    assert rankings.table(20).equals(expected.table(20))


def test_columns_and_types() -> None:
    every = BiasedRankings(GROUPS, 0.5, slices={"market": ["de"]}, propensity=True)
    assert {field.name: str(field.type) for field in every.table(1).schema} == {
        "list_id": "string",
        "query_id": "string",
        "item_id": "string",
        "rank": "int32",
        "relevance": "double",
        "click": "int8",
        "propensity": "double",
        "market": "string",
        "group": "string",
    }
    fewest = replace(every, slices={}, propensity=False, relevance="none", clicks="none")
    assert fewest.schema.names == ["list_id", "query_id", "item_id", "rank"]


# -- relevance


def test_relevance_has_the_means_asked_for() -> None:
    for relevance, gap in product(("graded", "binary"), (0.0, 0.4, -0.3)):
        rankings = BiasedRankings(
            GROUPS, 0.5, mean_relevance=0.4, group_gap=gap, relevance=relevance  # type: ignore[arg-type]
        )  # fmt: skip
        means = frame(rankings, 3000).groupby("group")["relevance"].mean()
        expected = {"a": 0.4 + gap / 2, "b": 0.4, "c": 0.4 - gap / 2}
        assert means.to_dict() == pytest.approx(expected, abs=0.03)


def test_graded_relevance_is_in_hundredths_and_binary_is_not() -> None:
    rankings = BiasedRankings(GROUPS, 0.5)
    graded = frame(rankings, 3000)["relevance"]
    assert graded.between(0, 1).all()
    assert (graded == (graded * 100).round() / 100).all()
    assert graded.nunique() == 101
    assert set(frame(replace(rankings, relevance="binary"), 100)["relevance"]) == {0.0, 1.0}


def test_an_item_is_judged_alike_whenever_its_query_is_asked() -> None:
    rankings = BiasedRankings(GROUPS, 0.2)
    rows = pd.concat([frame(rankings, 400), frame(rankings, 400, day=START + timedelta(1))])
    judged = rows.groupby(["query_id", "item_id"])["relevance"]
    assert (judged.nunique() == 1).all()
    assert judged.size().max() > 20
    assert (rows.groupby("item_id")["relevance"].nunique() > 1).any()


def within_groups(rankings: BiasedRankings) -> float:
    """Correlation of relevance with the order of a group, over whole lists of two groups."""
    rows = frame(rankings, 1500)
    own = rows.groupby(["list_id", "group"])
    place = own.cumcount() - own["rank"].transform("size") / 2
    relevance = rows["relevance"] - own["relevance"].transform("mean")
    return float(np.corrcoef(-place, relevance)[0, 1])


def test_order_within_a_group_follows_relevance_as_far_as_asked() -> None:
    halves = BiasedRankings({"F": 1, "M": 1}, 0.5, length=20)
    found = [within_groups(replace(halves, correlation=rho)) for rho in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    assert found == sorted(found)
    assert found[2] == pytest.approx(0, abs=0.02)
    assert found[4] == pytest.approx(-found[0], abs=0.02)
    assert found[4] > 0.9
    best_first = frame(replace(halves, correlation=1.0), 200)
    for _, own in best_first.groupby(["list_id", "group"]):
        assert own["relevance"].is_monotonic_decreasing


def test_relevance_does_not_change_which_groups_are_drawn() -> None:
    usual = BiasedRankings(GROUPS, 0.5)
    other = replace(usual, correlation=0.0, group_gap=0.5, relevance="binary", clicks="power")
    assert usual.table(100)["group"].equals(other.table(100)["group"])


# -- clicks


@pytest.mark.parametrize(
    ("more", "examined"),
    [
        ({}, lambda rank: 1 / log2(rank + 1)),
        ({"clicks": "power", "eta": 0.0}, lambda rank: 1.0),
        ({"clicks": "power", "eta": 0.5, "click_noise": 0.1}, lambda rank: 1 / sqrt(rank)),
        ({"relevance": "binary", "click_noise": 0.2}, lambda rank: 1 / log2(rank + 1)),
    ],
    ids=["log", "flat", "power", "binary"],
)
def test_clicks_follow_the_model(more: dict[str, Any], examined: Any) -> None:
    rankings = BiasedRankings(GROUPS, 0.5, length=8, propensity=True, **more)
    rows = frame(rankings, 6000)
    assert set(rows["click"]) == {0, 1}
    for rank, there in rows.groupby("rank"):
        assert there["propensity"].unique() == pytest.approx([examined(rank)], rel=1e-12)
        noise = rankings.click_noise
        rates = examined(rank) * (noise + (1 - noise) * there["relevance"])
        error = np.sqrt((rates * (1 - rates)).sum())
        assert abs(there["click"].sum() - rates.sum()) <= 4 * error
    irrelevant = rows.loc[rows["relevance"] == 0, "click"]
    assert (irrelevant.sum() > 0) == (rankings.click_noise > 0)


def test_clicks_follow_relevance_that_is_not_logged() -> None:
    usual = BiasedRankings(GROUPS, 0.5).table(200)
    hidden = BiasedRankings(GROUPS, 0.5, relevance="none").table(200)
    assert hidden.equals(usual.drop_columns(["relevance"]))


# -- the same every time


def test_chunks_do_not_show_in_the_rows() -> None:
    rankings = BiasedRankings(
        GROUPS, 0.5, length=(3, 17), candidates=25, slices={"market": ["de", "fr"]}
    )
    usual = rankings.table(150)
    for chunk in (1, 7, 64, 1000):
        tables = list(rankings.tables(150, chunk_lists=chunk))
        assert len(tables) == -(-150 // chunk)
        assert pyarrow.concat_tables(tables).equals(usual)
    assert rankings.table(40).equals(usual.slice(0, rankings.table(40).num_rows))


def test_seeds_and_days_differ_and_repeat() -> None:
    rankings = BiasedRankings(GROUPS, 0.5)
    usual = rankings.table(50)
    assert BiasedRankings(GROUPS, 0.5).table(50).equals(usual)
    assert not replace(rankings, seed=8).table(50).equals(usual)
    other = rankings.table(50, day=START + timedelta(1))
    assert not other["item_id"].equals(usual["item_id"])
    assert not set(other["list_id"].to_pylist()) & set(usual["list_id"].to_pylist())


def test_a_slice_more_changes_nothing_else() -> None:
    one = BiasedRankings(GROUPS, 0.5, slices={"market": ["de", "fr"]})
    two = replace(one, slices={"market": ["de", "fr"], "device": ["app", "web"]})
    assert two.table(100).drop_columns(["device"]).equals(one.table(100))


def test_rankings_of_another_phi_share_all_but_the_order() -> None:
    low, high = (frame(BiasedRankings(GROUPS, phi), 100) for phi in (0.1, 0.9))
    assert low["query_id"].equals(high["query_id"])
    for name in ("list_id", "item_id"):
        assert sorted(low[name]) == sorted(high[name])


def test_global_random_state_is_neither_read_nor_changed(tmp_path: Path) -> None:
    random.seed(1)
    np.random.seed(1)
    before = random.getstate(), repr(np.random.get_state())
    rankings = BiasedRankings(GROUPS, 0.5)
    generate_biased(tmp_path / "a", rankings, start=START, days=2, lists=10)
    assert (random.getstate(), repr(np.random.get_state())) == before
    np.random.seed(2)
    generate_biased(tmp_path / "b", replace(rankings), start=START, days=2, lists=10)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


# -- files


def test_files_hold_the_same_rows_as_tables(tmp_path: Path) -> None:
    rankings = BiasedRankings(GROUPS, 0.5, slices={"market": ["de", "fr"]})
    lines: list[str] = []
    written = generate_biased(
        tmp_path, rankings, start=START, days=2, lists=40, progress=lines.append
    )
    assert pyarrow.parquet.read_table(written.items).equals(rankings.item_table())
    assert [str(path.relative_to(tmp_path)) for path in written.files] == [
        "logs/2026-01-01/part-0.parquet",
        "logs/2026-01-02/part-0.parquet",
    ]
    for path, day in zip(written.files, written.days, strict=True):
        rows = rankings.table(40, day=day).drop_columns(["group"])
        assert pyarrow.parquet.read_table(path).equals(rows)
    assert (written.lists, written.rows) == (80, 2 * 40 * 20)
    assert lines == ["2026-01-01  40 lists  800 rows", "2026-01-02  40 lists  800 rows"]


def test_a_large_day_is_split_into_files_between_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(biased_day, "PART_ROWS", 650)
    rankings = BiasedRankings(GROUPS, 0.5)
    written = generate_biased(tmp_path, rankings, start=START, days=1, lists=70, chunk_lists=9)
    parts = [pyarrow.parquet.read_table(path) for path in written.files]
    assert [len(part) for part in parts] == [32 * 20, 32 * 20, 6 * 20]
    assert pyarrow.concat_tables(parts).equals(rankings.table(70).drop_columns(["group"]))


def test_one_table_is_held_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, held, sizes = [1], [], []  # the items are drawn before the lists
    draw, write = biased_day.BiasedDay.next_lists, pyarrow.parquet.ParquetWriter.write_table

    def counted_draw(self: Any, first: int, end: int) -> Any:
        drawn[0] += 1
        return draw(self, first, end)

    def counted_write(self: Any, table: Any, **more: Any) -> None:
        held.append(drawn[0])
        drawn[0] -= 1
        sizes.append(pyarrow.total_allocated_bytes())
        write(self, table, **more)

    rankings = BiasedRankings(GROUPS, 0.5)
    monkeypatch.setattr(biased_day.BiasedDay, "next_lists", counted_draw)
    monkeypatch.setattr(pyarrow.parquet.ParquetWriter, "write_table", counted_write)
    generate_biased(tmp_path, rankings, start=START, days=1, lists=20_000, chunk_lists=500)
    assert held == [1] * 41
    assert max(sizes[21:]) < 1.5 * max(sizes[1:21])


def test_incidents_happen_on_their_days(tmp_path: Path) -> None:
    days = [START + timedelta(n) for n in range(5)]
    rankings = BiasedRankings({"F": 0.4, "M": 0.6}, 1.0, slices={"market": ["de", "fr"]})
    lines: list[str] = []
    written = generate_biased(
        tmp_path,
        rankings,
        start=START,
        days=5,
        lists=600,
        incidents=BiasedIncidents(
            unfair={days[1]: 0.1, days[2]: 0.0},
            broken=[days[3]],
            missing=[days[4]],
            only={"market": "de"},
        ),
        progress=lines.append,
    )
    assert written.days == tuple(days[:4])
    assert not (tmp_path / "logs" / "2026-01-05").exists()
    notes = ["", "phi 0.1 in market de", "phi 0 in market de", "some wrong rows"]
    assert [line.partition("rows")[2].strip() for line in lines[:4]] == notes
    assert lines[4] == "2026-01-05  no log"
    items = rankings.item_table().to_pandas()
    usual, unfair, stacked, broken = (
        pyarrow.parquet.read_table(path).to_pandas().merge(items, on="item_id", how="left")
        for path in written.files
    )
    ratios = []
    for rows in (usual, unfair, stacked):
        means = {market: exposures(own) for market, own in rows.groupby("market")}
        ratios.append([means[market].min() / means[market].max() for market in ("de", "fr")])
    assert ratios[0][0] > 0.95
    assert 0.6 > ratios[1][0] > ratios[2][0]
    assert min(of_fr for _, of_fr in ratios) > 0.95

    whole = frame(rankings, 600, day=days[3])
    assert (broken["relevance"] == 1.2).sum() == 1
    assert broken["relevance"].isna().sum() == 1
    assert broken.duplicated(["list_id", "item_id"]).sum() == 1
    by_list = broken.groupby("list_id")["rank"]
    assert ((by_list.max() - by_list.size()) == 1).sum() == 1
    touched = broken[["rank", "relevance", "item_id"]] != whole[["rank", "relevance", "item_id"]]
    assert 4 <= touched.any(axis=1).sum() <= 20
    same = ["list_id", "query_id", "click", "market"]
    pd.testing.assert_frame_equal(broken[same], whole[same])


@pytest.mark.parametrize("length", [1, 2, 5])
def test_faults_fit_into_short_lists(tmp_path: Path, length: int) -> None:
    rankings = BiasedRankings(GROUPS, 0.5, length=length)
    incidents = BiasedIncidents(broken=[START])
    written = generate_biased(
        tmp_path, rankings, start=START, days=1, lists=400, incidents=incidents
    )
    rows = pyarrow.parquet.read_table(written.files[0]).to_pandas()
    assert (rows["relevance"] == 1.2).sum() == rows["relevance"].isna().sum() == 1
    assert rows.duplicated(["list_id", "item_id"]).sum() == (length > 1)
    assert (rows.groupby("list_id")["rank"].max() > length).sum() == (length > 1)


def test_a_day_does_not_depend_on_the_others(tmp_path: Path) -> None:
    rankings = BiasedRankings(GROUPS, 0.5)
    generate_biased(tmp_path / "a", rankings, start=START, days=3, lists=30)
    generate_biased(tmp_path / "b", rankings, start=START + timedelta(2), days=1, lists=30)
    name = "logs/2026-01-03/part-0.parquet"
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_it_takes_the_place_of_other_generated_logs_only(tmp_path: Path) -> None:
    generate(tmp_path / "a", start=START, days=2, lists=20, incidents=Incidents())
    rankings = BiasedRankings(GROUPS, 0.5)
    missing = BiasedIncidents(missing=[START])
    for name in ("a", "b"):
        generate_biased(tmp_path / name, rankings, start=START, days=2, lists=20, incidents=missing)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    mine = tmp_path / "c" / "logs" / "2026-01-01" / "mine.csv"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(ValueError, match="not generated"):
        generate_biased(tmp_path / "c", rankings, start=START, days=2, lists=20)
    assert contents(tmp_path / "c") == {"logs/2026-01-01/mine.csv": b"mine"}


# -- what cannot be


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"groups": {"a": 1}}, "groups: give shares of 2 or more"),
        ({"groups": {"a": 1, "b": -0.1}}, "b has the share -0.1"),
        ({"groups": {"a": 1, "b": float("nan")}}, "b has the share nan"),
        ({"groups": {"a": 1, "b": float("inf")}}, "b has the share inf"),
        ({"groups": {"a": 0, "b": 0}}, "groups: no share is above 0"),
        ({"groups": {"a": 1, " b": 1}}, "' b' is no name"),
        ({"groups": {"a": 1, "": 1}}, "'' is no name"),
        ({"groups": {"a": 1e-5, "b": 1}}, "group a: its share of 2000 items is less than one"),
        ({"phi": -0.1}, "phi is -0.1: give 0 to 1"),
        ({"phi": 1.01}, "phi is 1.01: give 0 to 1"),
        ({"phi": float("nan")}, "phi is nan"),
        ({"items": 0}, "items is 0"),
        ({"items": 10}, "length is 20, but there are 10 items"),
        ({"length": 0}, "length is 0: give 1 or more"),
        ({"length": (9, 5)}, "length is 9 to 5: give 1 or more, the fewest"),
        ({"length": 1_000_001, "items": 2_000_000}, "the deepest rank is 1000000"),
        ({"candidates": 19}, "candidates is 19: give 20"),
        ({"candidates": 2001}, r"candidates is 2001: .* 2000 \(items\)"),
        ({"order": "biggest"}, "order is 'biggest': choose smallest, largest or given"),
        ({"relevance": "yes"}, "relevance is 'yes'"),
        ({"clicks": "eta"}, "clicks is 'eta'"),
        ({"attribute": "Rank"}, "attribute Rank: the log has a column"),
        ({"attribute": "a*b"}, "attribute 'a.b' is no column name"),
        ({"slices": {"propensity": ["x"]}}, "slice propensity: the log has"),
        ({"slices": {"group": ["x"]}}, "column group is asked for twice"),
        ({"slices": {"market": []}}, "slice market: give at least one value"),
        ({"slices": {"market": ["x", "x"]}}, "slice market: x stands twice"),
        ({"slices": {"market": {"x": -1}}}, "slice market: x has the share -1"),
        ({"slices": {"market": {"x": 0}}}, "slice market: no share is above 0"),
        ({"correlation": 1.1}, "correlation is 1.1: give -1 to 1"),
        ({"group_gap": 1.0}, "means from 1 to 0: all have to lie between"),
        ({"mean_relevance": float("nan")}, "mean_relevance nan"),
        ({"click_noise": 2}, "click_noise is 2"),
        ({"eta": -1.0}, "eta is -1"),
        ({"propensity": True, "clicks": "none"}, "propensity comes from the click model"),
        ({"seed": -1}, "seed is -1: give 0 or more"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_impossible_rankings_are_refused_with_a_reason(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(CannotGenerate, match=text) as refusal:
        BiasedRankings(**{"groups": GROUPS, "phi": 0.5, **wrong})
    assert len(refusal.value.problems) == 1


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"days": 0}, "days is 0"),
        ({"lists": 0}, "lists is 0"),
        ({"chunk_lists": 0}, "chunk_lists is 0"),
        ({"start": date.max, "days": 2}, "after 9999-12-31"),
        ({"incidents": BiasedIncidents(broken=[date(2025, 1, 1)])}, "broken day 2025-01-01 is not"),
        ({"incidents": BiasedIncidents({START: 0.1}, missing=[START])}, "two incidents"),
        ({"incidents": BiasedIncidents({START: 1.5})}, "unfair day 2026-01-01 is 1.5"),
        ({"incidents": BiasedIncidents({START: 0}, only={"x": "y"})}, "x is no slice"),
        ({"incidents": BiasedIncidents({START: 0}, only={"market": "us"})}, "values are de or fr"),
        ({"incidents": BiasedIncidents(only={"market": "de"})}, "name an unfair day"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_impossible_periods_are_refused_with_a_reason(
    tmp_path: Path, wrong: dict[str, Any], text: str
) -> None:
    rankings = BiasedRankings(GROUPS, 0.5, slices={"market": ["de", "fr"]})
    period: dict[str, Any] = {"start": START, "days": 3, "lists": 10, **wrong}
    with pytest.raises(CannotGenerate, match=text) as refusal:
        generate_biased(tmp_path / "out", rankings, **period)
    assert len(refusal.value.problems) == 1
    assert not (tmp_path / "out").exists()


def test_all_problems_come_at_once() -> None:
    with pytest.raises(ValueError, match="nothing was generated") as refusal:
        BiasedRankings({"a": -1, "b": 1}, 2.0, items=0, seed=-1, clicks="none", propensity=True)
    assert len(str(refusal.value).splitlines()) == 1 + 5


# -- what metrics make of it


@pytest.mark.parametrize(
    ("groups", "order"),
    [
        ({"F": 0.4, "M": 0.6}, "smallest"),
        (GROUPS, "smallest"),
        ({str(n): 0.1 for n in range(10)}, "given"),
        (GROUPS, "largest"),
    ],
    ids=["two groups", "three groups", "ten groups", "largest first"],
)
def test_metrics_follow_phi(groups: dict[str, float], order: Any) -> None:
    """Over seeds, EXP.MinMaxRatio rises and NDKL falls from each phi to the next.

    A large group on top of a list is close to the mix of the whole list, so NDKL is only held to
    that where the bias is for smaller groups.
    """
    phis, seeds = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), range(5)
    rows = []
    for phi, seed in product(phis, seeds):
        run = f"{phi} {seed}"
        rankings = BiasedRankings(groups, phi, order=order, seed=seed, slices={"run": [run]})
        table = rankings.table(300)
        ids = pyarrow.array([f"{run} {name}" for name in table["list_id"].to_pylist()])
        rows.append(table.set_column(0, "list_id", ids))
    found = score(pyarrow.concat_tables(rows), "group", slices="run", metrics=["EXP", "NDKL"])
    found = found[found["slice"] == "run"]
    found["phi"] = found["slice_value"].str.split().str[0].astype(float)
    exposure = found[found["aggregation"] == "MinMaxRatio"].groupby("phi")["value"]
    divergence = found[found["metric"] == "NDKL"].groupby("phi")["value"]
    for values in (exposure, divergence):
        assert values.count().to_dict() == dict.fromkeys(phis, len(seeds))
    assert (np.diff(exposure.mean()) > 0.02).all()
    assert exposure.mean()[1.0] > 0.9
    if order != "largest":
        assert (np.diff(divergence.mean()) < -0.01).all()


# -- the command


def rankaudit(*words: object) -> Result:
    result = CliRunner().invoke(main, [str(word) for word in words])
    fault = result.exception
    assert fault is None or isinstance(fault, SystemExit), repr(fault)
    return result


def said(out: Path, *more: object, days: int = 1, lists: int = 50) -> Result:
    period = ("--start", START, "--days", days, "--lists", lists)
    return rankaudit("generate", "--out", out, *period, *more)


FM = ("--group", "F=0.4", "--group", "M=0.6")


def test_the_command_does_what_the_call_does(tmp_path: Path) -> None:
    days = [START + timedelta(n) for n in range(4)]
    result = said(
        tmp_path / "a", "--phi", 0.9, *FM, "--order", "largest", "--attribute", "gender",
        "--items", 300, "--seed", 5, "--length", "5-15", "--candidates", 30,
        "--slice", "market=de:0.6,fr:0.4", "--slice", "device=app,web",
        "--relevance", "binary", "--correlation", 0, "--mean-relevance", 0.3,
        "--group-gap", -0.1, "--clicks", "power", "--eta", 0.5, "--click-noise", 0.05,
        "--propensity", "--unfair", days[1], "--unfair-phi", 0.2, "--unfair-in", "market=de",
        "--broken", days[2], "--missing", days[3], days=4,
    )  # fmt: skip
    assert (result.exit_code, result.stdout) == (0, "")
    assert len(result.stderr.splitlines()) == 4
    assert all(len(line) <= 80 for line in result.stderr.splitlines())
    rankings = BiasedRankings(
        {"F": 0.4, "M": 0.6}, 0.9, order="largest", attribute="gender", items=300, seed=5,
        length=(5, 15), candidates=30,
        slices={"market": {"de": 0.6, "fr": 0.4}, "device": ["app", "web"]},
        relevance="binary", correlation=0.0, mean_relevance=0.3, group_gap=-0.1,
        clicks="power", eta=0.5, click_noise=0.05, propensity=True,
    )  # fmt: skip
    incidents = BiasedIncidents(
        unfair={days[1]: 0.2}, broken=[days[2]], missing=[days[3]], only={"market": "de"}
    )
    generate_biased(tmp_path / "b", rankings, start=START, days=4, lists=50, incidents=incidents)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_defaults_of_the_command_are_those_of_the_call(tmp_path: Path) -> None:
    assert said(tmp_path / "a", "--phi", 0, *FM, "--unfair", START).exit_code == 0
    incidents = BiasedIncidents({START: 0.0})
    rankings = BiasedRankings({"F": 0.4, "M": 0.6}, 0.0)
    generate_biased(tmp_path / "b", rankings, start=START, days=1, lists=50, incidents=incidents)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_what_the_command_writes_can_be_audited(tmp_path: Path) -> None:
    broken = START + timedelta(1)
    result = said(
        tmp_path, "--phi", 0.2, *FM, "--slice", "market=de,fr", "--broken", broken, "--quiet",
        days=2, lists=200,
    )  # fmt: skip
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    config = tmp_path / "audit.yaml"
    config.write_text("items: items.parquet\nattributes: [group]\nslices: [market]\n")
    for day in (START, broken):
        result = rankaudit("run", "--batch", day, "--config", config)
        assert result.exit_code == 0, result.output
        assert ("rejected" in result.output) == (day == broken)
    files = sorted((tmp_path / "logs" / START.isoformat()).iterdir())
    result = rankaudit("score", *files, "--items", tmp_path / "items.parquet", "--metric", "EXP")
    assert result.exit_code == 0
    assert "200 lists, 4,000 rows" in result.stdout


def test_options_of_bias_need_phi(tmp_path: Path) -> None:
    result = said(tmp_path / "out", *FM, "--length", 5, "--unfair", START, "--propensity")
    assert result.exit_code == 2
    assert "--group, --length, --propensity, --unfair: only" in result.stderr
    assert "--phi" in result.stderr
    assert not (tmp_path / "out").exists()


def test_the_command_tells_all_problems_at_once(tmp_path: Path) -> None:
    wrong = (
        "--phi", 1.5, "--group", "F=lots", "--group", "M", "--group", "F=1", "--length", "few",
        "--slice", "market=de:x,de", "--eta", 2, "--unfair-phi", 0.5, "--unfair-in", "device=app",
        "--broken", START, "--missing", START, "--seed", -2,
    )  # fmt: skip
    result = said(tmp_path / "out", *wrong)
    assert result.exit_code == 2
    for text in (
        "--eta: only with --clicks power",
        "--unfair-phi: on which day?",
        "--group M: write it as in F=0.4",
        "--group F: given twice",
        "--group F: 'lots' is not a number",
        "--length few: write it as in 20 or 5-30",
        "--slice market, de: 'x' is not a number",
        "--slice market: de stands twice",
        "groups: give shares of 2 or more",
        "phi is 1.5",
        "seed is -2",
        "device is no slice",
        "two incidents on one day",
    ):
        assert text in result.stderr
    assert "Traceback" not in result.output
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pyarrow.parquet.ParquetWriter, "write_table", full_disk)
    for more in ((), ("--phi", 0.5, *FM)):
        result = said(tmp_path / "out", *more)
        assert result.exit_code == 1
        assert "cannot be written (No space left on device)" in result.stderr
