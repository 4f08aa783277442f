"""Rankings with a known bias: what lists are made of, what repeats, and what metrics make of it."""

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import product
from math import log2, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pytest
from biased_logs import GROUPS, START, contents, frame
from cases import some

from pipeline import score
from pipeline.synthetic.biased import BiasedRankings
from pipeline.synthetic.biased_period import biased_table, biased_tables, generate_biased

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
    rows = biased_table(rankings, 50).to_pandas()
    assert rows.merge(items.to_pandas(), on=["item_id", "origin"]).shape[0] == len(rows)


def test_shares_are_in_any_unit() -> None:
    usual = biased_table(BiasedRankings({"F": 0.4, "M": 0.6}, 0.5), 100)
    assert biased_table(BiasedRankings({"F": 40, "M": 60}, 0.5), 100).equals(usual)
    assert biased_table(BiasedRankings({"F": 2 / 7, "M": 3 / 7}, 0.5), 100).equals(usual)


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
    assert biased_table(rankings, 20).equals(biased_table(expected, 20))


def test_columns_and_types() -> None:
    every = BiasedRankings(GROUPS, 0.5, slices={"market": ["de"]}, propensity=True)
    assert {field.name: str(field.type) for field in biased_table(every, 1).schema} == {
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
    assert biased_table(usual, 100)["group"].equals(biased_table(other, 100)["group"])


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
    usual = biased_table(BiasedRankings(GROUPS, 0.5), 200)
    hidden = biased_table(BiasedRankings(GROUPS, 0.5, relevance="none"), 200)
    assert hidden.equals(usual.drop_columns(["relevance"]))


# -- the same every time


def test_chunks_do_not_show_in_the_rows() -> None:
    rankings = BiasedRankings(
        GROUPS, 0.5, length=(3, 17), candidates=25, slices={"market": ["de", "fr"]}
    )
    usual = biased_table(rankings, 150)
    for chunk in (1, 7, 64, 1000):
        tables = list(biased_tables(rankings, 150, chunk_lists=chunk))
        assert len(tables) == -(-150 // chunk)
        assert pyarrow.concat_tables(tables).equals(usual)
    assert biased_table(rankings, 40).equals(usual.slice(0, biased_table(rankings, 40).num_rows))


def test_seeds_and_days_differ_and_repeat() -> None:
    rankings = BiasedRankings(GROUPS, 0.5)
    usual = biased_table(rankings, 50)
    assert biased_table(BiasedRankings(GROUPS, 0.5), 50).equals(usual)
    assert not biased_table(replace(rankings, seed=8), 50).equals(usual)
    other = biased_table(rankings, 50, day=START + timedelta(1))
    assert not other["item_id"].equals(usual["item_id"])
    assert not set(other["list_id"].to_pylist()) & set(usual["list_id"].to_pylist())


def test_a_slice_more_changes_nothing_else() -> None:
    one = BiasedRankings(GROUPS, 0.5, slices={"market": ["de", "fr"]})
    two = replace(one, slices={"market": ["de", "fr"], "device": ["app", "web"]})
    assert biased_table(two, 100).drop_columns(["device"]).equals(biased_table(one, 100))


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


# -- what metrics make of it


FOLLOWED = [
    pytest.param({"F": 0.4, "M": 0.6}, "smallest", id="two groups"),
    pytest.param(GROUPS, "smallest", id="three groups"),
    pytest.param({str(n): 0.1 for n in range(10)}, "given", id="ten groups"),
    pytest.param(GROUPS, "largest", id="largest first"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "order"), some(FOLLOWED, few=2))
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
        table = biased_table(rankings, 300)
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
