"""How the groups of rankings with a known bias are drawn."""

from collections import Counter
from itertools import permutations, product
from math import sqrt
from typing import Any

import numpy as np
import pytest
from biased_logs import GROUPS, exposures, frame

from pipeline.synthetic.biased import BiasedRankings
from pipeline.synthetic.biased_orders import apportioned, drawn_groups, mixes


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
