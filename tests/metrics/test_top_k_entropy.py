"""The generalised entropy of what a cut gives: by hand, digit by digit, and by law."""

from decimal import Decimal, localcontext
from math import inf, log

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rankings import per_list, rankings
from top_k_lists import agree, rows_of, values

from metrics import LabelError, parse_measure
from metrics.top_k.entropy import MOST, SMALLEST, generalised_entropy

mixes = st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))


def entropy(mix: tuple[int, ...], alpha: float) -> float:
    return float(generalised_entropy(np.array([mix], dtype=np.float64), alpha)[0])


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


def of_each(label: str, *words: str) -> list[float]:
    found: list[float] = per_list(label, rankings(rows_of(*words), "group")).value.tolist()
    return found


def test_entropy_of_lists_by_hand() -> None:
    """Benefits: 2 above the cut though irrelevant, 0 below it though relevant, else 1."""
    # b = 2 0, 2 1, 1 0 and 1 1; alpha 2 is half of the mean of (b / m)^2, less 1.
    found = of_each("GeneralizedEntropy(alpha=2,per=list)@1", "aB", "ab", "AB", "Ab")
    assert found == agree([1 / 2, ((4 / 3) ** 2 + (2 / 3) ** 2) / 4 - 1 / 2, 1 / 2, 0.0])
    # Where a benefit is 0, an alpha of 0 or less gives the most there is; else it is a number.
    for alpha in ("0", "-1"):
        label = f"GeneralizedEntropy(alpha={alpha},per=list)@1"
        assert of_each(label, "aB", "AB", "AAAB") == [MOST] * 3
        assert 0 < of_each(label, "ab")[0] < MOST
    assert 0 < of_each("GeneralizedEntropy(alpha=0.5,per=list)@1", "aB")[0] < MOST
    # Nothing is below the cut.
    assert np.isnan(of_each("Theil(per=list)@2", "aB")).all()


def test_entropy_of_the_batch_by_hand() -> None:
    """Benefits 2, 0 and 2, 1: the mean is 5/4, that of the squares 9/4."""
    found = values("GeneralizedEntropy(alpha=2)@1", "aB", "ab")
    assert found == agree((9 / 4 / (5 / 4) ** 2 - 1) / 2)
