"""What chance alone does to groups: closed forms against every order of small lists."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, permutations

import numpy as np
import pytest
from slow_chance import WEIGHTS, Groups, List, divergence, every_order, pairs_won, weight_of

from metrics import Counts, RankHistogram, evaluate, parse_measure
from metrics.weights import FloatArray
from pipeline.scores.evidence.chance import SHUFFLES, Mix, drawn, shuffled_prefixes
from pipeline.scores.evidence.randomness import normal_draws

SMALL: dict[str, Sequence[List]] = {
    "two groups": [tuple("aab"), tuple("abbbb"), tuple("ba"), tuple("aabbab")],
    "three, ragged": [tuple("abc"), tuple("aabbcc"), tuple("c"), tuple("abcabca"), tuple("bb")],
    "unknown": [("a", "unknown", "b", "a"), ("unknown", "unknown"), ("b", "unknown", "b")],
    "four": [tuple("abcd"), tuple("aabcdd"), tuple("dab"), tuple("ca")],
    "one group": [tuple("aaa"), tuple("a")],
    "never together": [tuple("aab"), tuple("ccd"), tuple("dc")],
    "one item each": [tuple("a"), tuple("b"), tuple("a")],
}
EACH = pytest.mark.parametrize("name", SMALL)


def groups_of(lists: Sequence[List]) -> Groups:
    return sorted({group for each in lists for group in each})


def mix_of(lists: Sequence[List]) -> Mix:
    """The mix of some lists, counted one by one."""
    at = {group: place for place, group in enumerate(groups_of(lists))}
    cells: Counter[tuple[int, int, int]] = Counter()
    product: Counter[tuple[int, int, int]] = Counter()
    pair_product: Counter[tuple[int, int, int]] = Counter()
    for each in lists:
        held = Counter(each)
        n = len(each)
        for group, own in held.items():
            cells[at[group], n, own] += 1
        for one, other in combinations(sorted(held), 2):
            key = at[one], at[other], n
            product[key] += held[one] * held[other]
            pair_product[key] += (n + 1) / ((n - held[one]) * (n - held[other]))
    group, length, own = np.array(list(cells)).T
    keys = np.array(list(product), dtype=np.int64).reshape(-1, 3).T
    return Mix(
        len(at),
        group,
        length,
        own,
        np.array(list(cells.values())),
        *keys,
        np.array(list(product.values()), dtype=float),
        np.array(list(pair_product.values()), dtype=float),
    )


def ranks_to(depth: int) -> FloatArray:
    return np.arange(1.0, depth + 1)


ALL_WEIGHTS = {
    **WEIGHTS,
    "EXP@3": lambda rank: np.where(rank <= 3, 1 / np.log2(rank + 1), 0.0),
    "top 2": lambda rank: np.where(rank <= 2, 1.0, 0.0),
    "steep": lambda rank: 0.99 * 0.01 ** (rank - 1),
    "flat": lambda rank: 0.01 * 0.99 ** (rank - 1),
}


@EACH
@pytest.mark.parametrize("weight", ALL_WEIGHTS)
def test_moments_of_a_weight(name: str, weight: str) -> None:
    lists = SMALL[name]
    at = ALL_WEIGHTS[weight](ranks_to(8))
    mean, covariance = every_order(lists, lambda order: weight_of(order, groups_of(lists), at))
    found = mix_of(lists).weighted(at)
    np.testing.assert_allclose(found[0], mean, atol=1e-10)
    np.testing.assert_allclose(found[1], covariance, atol=1e-10)


@EACH
@pytest.mark.parametrize("weight", ALL_WEIGHTS)
def test_reach(name: str, weight: str) -> None:
    lists = SMALL[name]
    at = ALL_WEIGHTS[weight](ranks_to(8))
    each = [
        np.array([weight_of(order, groups_of(lists), at) for order in permutations(one)])
        for one in lists
    ]
    least, most = mix_of(lists).reach(at)
    np.testing.assert_allclose(least, sum(one.min(axis=0) for one in each), atol=1e-12)
    np.testing.assert_allclose(most, sum(one.max(axis=0) for one in each), atol=1e-12)


@EACH
@pytest.mark.parametrize("weight", ["EXP", "EXP@3", "top 2"])
def test_shut_out(name: str, weight: str) -> None:
    lists = SMALL[name]
    at = ALL_WEIGHTS[weight](ranks_to(8))
    none = [
        np.array([weight_of(order, groups_of(lists), at) for order in permutations(one)]) == 0
        for one in lists
    ]
    expected = np.prod([one.mean(axis=0) for one in none], axis=0)
    np.testing.assert_allclose(mix_of(lists).shut_out(at), expected, atol=1e-12)


@EACH
def test_moments_of_pairs(name: str) -> None:
    lists = SMALL[name]
    mean, covariance = every_order(lists, lambda order: pairs_won(order, groups_of(lists)))
    found = mix_of(lists).pairs_won()
    np.testing.assert_allclose(found[0], mean, atol=1e-10)
    np.testing.assert_allclose(found[1], covariance, atol=1e-10)


def prefixes_as(lists: Sequence[List], label: str, shares: dict[str, float]) -> float:
    """NDKL by its own formula from the mean of its parts."""
    mean = mix_of(lists).prefixes()
    assert mean is not None
    none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
    counts = Counts(
        lists=len(lists),
        groups=tuple(groups_of(lists)),
        ranks=RankHistogram(none, none, none, none, none, nothing, none, nothing),
        binary=True,
        prefixes=type(mean)(mean.entropy[0], mean.share[0], mean.own[0]),
        catalogue={group: round(1000 * share) for group, share in shares.items()},
        target=shares,
    )
    measure = parse_measure(label)
    (score,) = evaluate(measure, counts).scores
    assert score.value is not None
    return score.value


NDKLS = [
    *((name, "NDKL") for name in SMALL if name != "one group"),
    *((name, f"NDKL(reference={other})") for name in SMALL for other in ("catalogue", "target")),
]


@pytest.mark.parametrize(("name", "label"), NDKLS)
def test_mean_of_ndkl(name: str, label: str) -> None:
    lists = SMALL[name]
    groups = groups_of(lists)
    # "z" has a share and no rows.
    shares = {group: 0.9 / len(groups) for group in groups} | {"z": 0.1}
    wanted = None
    if label != "NDKL":
        whole = sum(round(1000 * share) for share in shares.values())
        wanted = {group: round(1000 * share) / whole for group, share in shares.items()}
        if "target" in label:
            wanted = shares
    mean = sum(
        math.fsum(divergence(order, wanted) for order in permutations(each))
        / math.factorial(len(each))
        for each in lists
    )
    assert prefixes_as(lists, label, shares) == pytest.approx(mean / len(lists), abs=1e-10)


@pytest.mark.slow
def test_mean_of_ndkl_in_long_lists() -> None:
    # Beyond the window of counts that are looked at, nothing is left: compare with all of them.
    length, own = 400, 130
    mix = mix_of([("a",) * own + ("b",) * (length - own)])
    found = mix.prefixes()
    assert found is not None
    weights = [1 / math.log2(i + 1) for i in range(1, length + 1)]
    total = 0.0
    for i, weight in enumerate(weights, start=1):
        for c in range(max(0, i - length + own), min(own, i) + 1):
            chance = math.comb(own, c) * math.comb(length - own, i - c) / math.comb(length, i)
            share = c / i + 1e-7
            total += weight * chance * share * math.log(share)
    absent = 1e-7 * math.log(1e-7)
    assert found.entropy[0, 0] == pytest.approx(total / math.fsum(weights) - absent, abs=1e-12)


def test_too_long_for_the_mean_of_ndkl() -> None:
    lists = 30
    mix = Mix(
        2,
        np.repeat([0, 1], lists),
        np.tile(np.arange(20_000, 20_000 + lists), 2),
        np.full(2 * lists, 10_000),
        np.ones(2 * lists, dtype=np.int64),
        *(np.zeros(0, dtype=np.int64),) * 3,
        *(np.zeros(0),) * 2,
    )
    assert mix.prefixes() is None


def test_shuffles_of_ndkl() -> None:
    lists = [tuple("aaab"), tuple("aabbccc"), tuple("bb"), tuple("abcabcabcc"), tuple("c")]
    rows = np.array([[each.count(group) for group in "abc"] for each in lists])
    parts = shuffled_prefixes(rows, seed=3)
    assert parts.own.shape == (5, SHUFFLES, 3)
    for at, each in enumerate(lists[:2]):
        possible = sorted({round(divergence(order), 9) for order in permutations(each)})
        found = {round(value, 9) for value in parts.own[at].sum(axis=1).tolist()}
        assert len(found) > 1
        for value in found:
            assert min(abs(value - other) for other in possible) < 2e-9
    for at, each in enumerate(lists):
        share = [each.count(group) / len(each) for group in "abc"]
        spread = 4 * 0.5 / math.sqrt(SHUFFLES)
        np.testing.assert_allclose(parts.share[at].mean(axis=0), share, atol=spread)
        np.testing.assert_allclose(parts.share[at].sum(axis=1), 1.0, atol=1e-12)
    assert (parts.own[[2, 4]] == 0).all()


def test_shuffles_of_ndkl_have_its_moments() -> None:
    each = tuple("aabbbcc")
    values = np.array([divergence(order) for order in permutations(each)])
    rows = np.tile([[2, 3, 2]], (200, 1))
    found = shuffled_prefixes(rows, seed=8).own.sum(axis=2).ravel()
    error = values.std() / math.sqrt(len(found))
    assert abs(found.mean() - values.mean()) < 4 * error
    fourth = ((values - values.mean()) ** 4).mean()
    error = math.sqrt((fourth - values.var() ** 2) / len(found))
    assert abs(found.var() - values.var()) < 4 * error


def test_shuffles_do_not_depend_on_how_many_are_held_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.tile([[300, 200]], (4, 1))
    mean = shuffled_prefixes(rows, 1).own.sum(axis=2).mean()
    monkeypatch.setattr("pipeline.scores.evidence.chance._CHUNK", 1)
    apart = shuffled_prefixes(rows, 1).own.sum(axis=2)
    assert apart.mean() == pytest.approx(mean, rel=0.1)
    # Each list has its own orders.
    assert len(np.unique(apart[:, 0])) == 4


@EACH
def test_draws_have_their_covariance(name: str) -> None:
    lists = SMALL[name]
    mean, covariance = mix_of(lists).weighted(1 / np.log2(ranks_to(8) + 1))
    draws = 20_000
    found = drawn(mean, covariance, normal_draws(1, draws, len(mean)))
    error = np.sqrt(np.outer(covariance.diagonal(), covariance.diagonal()) * 2 / draws)
    np.testing.assert_allclose(found.mean(axis=0), mean, atol=4 * error.max() ** 0.5 / 10 + 1e-12)
    assert (np.abs(np.cov(found.T) - covariance) <= 5 * error + 1e-12).all()
    # What lists share out is fixed: the draws of all groups together have no spread.
    total = found.sum(axis=1)
    np.testing.assert_allclose(total, total[0], rtol=1e-10)


def test_draws_of_few_groups_are_those_of_many() -> None:
    assert (normal_draws(1, 50, 3) == normal_draws(1, 50, 5)[:, :3]).all()


@pytest.mark.parametrize("decay", [0.01, 0.99, 0.999999])
def test_long_lists(decay: float) -> None:
    depth = 5_000
    weight = (1 - decay) * decay ** (ranks_to(depth) - 1)
    each = ("a",) * 100 + ("b",) * (depth - 100)
    mean, covariance = mix_of([each, tuple("ab"), tuple("aab")]).weighted(weight)
    assert np.isfinite(covariance).all()
    expected = 0.0
    for n, own in ((depth, 100), (2, 1), (3, 2)):
        # Exactly rounded, from fractions of each weight.
        middle = math.fsum(weight[:n]) / n
        squares = math.fsum((weight[:n] - middle) ** 2) / (n - 1)
        expected += own * (n - own) / n * squares
    assert covariance[0, 0] == pytest.approx(expected, rel=1e-9)
    assert mean.sum() == pytest.approx(weight.sum() + weight[:2].sum() + weight[:3].sum(), rel=1e-9)


def test_equal_weights_have_no_spread() -> None:
    mix = mix_of([tuple("aabbc"), tuple("abc")])
    for equal in (1.0, 0.1, 1e-9):
        mean, covariance = mix.weighted(np.where(ranks_to(9) <= 6, equal, 0.0))
        assert covariance.max() <= (1e-12 * mean.min()) ** 2


def test_many_lists() -> None:
    once = mix_of(SMALL["three, ragged"])
    many = Mix(
        once.groups,
        once.group,
        once.length,
        once.own,
        once.lists * 10**9,
        once.first,
        once.second,
        once.pair_length,
        once.product * 1e9,
        once.pair_product * 1e9,
    )
    weight = 1 / np.log2(ranks_to(8) + 1)
    for one, other in zip(once.weighted(weight), many.weighted(weight), strict=True):
        np.testing.assert_allclose(other, one * 1e9, rtol=1e-12)
    found = drawn(*many.weighted(weight), normal_draws(1, 200, 3))
    np.testing.assert_allclose(found.sum(axis=1), found[0].sum(), rtol=1e-12)
