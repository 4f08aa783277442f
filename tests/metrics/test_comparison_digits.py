"""Rank-biased overlap: what its readings promise, and digit by digit at any depth."""

from decimal import Decimal, localcontext
from itertools import product
from math import fsum, inf, log, nan

import numpy as np
import pytest
from comparison_lists import READINGS, value, values_of
from rankings import rankings

from metrics.comparison.depths import DepthWeights, prefix_weight

# -- what the readings promise


def completed(
    shown: list[str], reference: list[str], depth: int, *, agreeing: bool
) -> tuple[list[str], list[str]]:
    """Both lists filled up to ``depth``, with what the other has already or with nothing common."""
    one, other = list(shown), list(reference)
    for at in range(depth):
        for mine, theirs, who in ((one, other, "s"), (other, one, "t")):
            if len(mine) > at:
                continue
            lacking = [item for item in theirs if item not in mine] if agreeing else []
            mine.append(lacking[0] if lacking else f"{at}" + ("" if agreeing else who))
    return one, other


@pytest.mark.parametrize(
    ("shown", "reference"),
    list(product(["abc", "a", "dcbaef", "xyz"], ["abc", "cabd", "efgh", "xa"])),
)
def test_the_readings_are_the_bounds_over_all_that_may_follow(shown: str, reference: str) -> None:
    p, depth = 0.7, 90
    found = {name: value(f"RBO(p={p}).{name}", shown, reference) for name in READINGS}
    reached = []
    for agreeing in (False, True):
        one, other = completed(list(shown), list(reference), depth, agreeing=agreeing)
        reached.append(
            fsum(
                (1 - p) * p ** (d - 1) * len(set(one[:d]) & set(other[:d])) / d
                for d in range(1, depth + 1)
            )
        )
    least, most = reached
    assert found["MIN"] == pytest.approx(least, abs=1e-12)
    assert found["MIN"] + found["RES"] == pytest.approx(most, abs=1e-12)
    assert least - 1e-12 <= found["EXT"] <= most + 1e-12


def overlaps(shown: str, reference: str) -> list[int]:
    """X_d of two lists of equal depth."""
    return [len(set(shown[:d]) & set(reference[:d])) for d in range(1, len(shown) + 1)]


def defining_sums(found: list[int], p: float) -> tuple[float, float]:
    """MIN and RES as their sums to infinity: base and tail, with X_d = X_k beyond k at least."""
    k, last, far = len(found), found[-1], 2000
    least = fsum(
        (1 - p) * p ** (d - 1) * (found[d - 1] if d <= k else last) / d for d in range(1, far)
    )
    gained = fsum(
        (1 - p) * p ** (d - 1) * (min(d, last + 2 * (d - k)) - last) / d for d in range(k + 1, far)
    )
    return least, gained


@pytest.mark.parametrize(("shown", "reference"), [("abcd", "badc"), ("abcd", "xbyz"), ("ab", "ab")])
def test_the_log_term_stands_outside_the_sum(shown: str, reference: str) -> None:
    p, found = 0.9, overlaps(shown, reference)
    k, last = len(found), found[-1]
    terms = [(x - last) * p**d / d for d, x in enumerate(found, start=1)]
    outside = (1 - p) / p * (fsum(terms) - last * log(1 - p))
    printed = (1 - p) / p * fsum(term - last * log(1 - p) for term in terms)
    least, _ = defining_sums(found, p)
    assert outside == pytest.approx(least, rel=1e-12)
    assert value(f"RBO(p={p}).MIN", shown, reference) == pytest.approx(least, rel=1e-12)
    assert k > 1
    assert printed - least == pytest.approx((k - 1) * (1 - p) / p * last * -log(1 - p))
    assert printed > least + 0.1


@pytest.mark.parametrize(("shown", "reference"), [("abcd", "wxyz"), ("abcd", "xbyz"), ("ab", "ab")])
def test_what_is_gained_beyond_full_agreement_is_added_once(shown: str, reference: str) -> None:
    """The bracket as printed takes the second sum into the first: once per depth from k+1 to f."""
    p, found = 0.9, overlaps(shown, reference)
    k, last = len(found), found[-1]
    full = 2 * k - last
    rising = [2 * (d - k) / d * p ** (d - 1) for d in range(k + 1, full + 1)]
    beyond = fsum((1 - last / d) * p ** (d - 1) for d in range(full + 1, 2000))
    printed = (1 - p) * fsum(term + beyond for term in rising)
    _, gained = defining_sums(found, p)
    assert (1 - p) * (fsum(rising) + beyond) == pytest.approx(gained, rel=1e-12)
    assert value(f"RBO(p={p}).RES", shown, reference) == pytest.approx(gained, rel=1e-12)
    assert abs(printed - gained) > 0.1


# -- digit by digit


def exact_tails(p: float, depths: int) -> list[Decimal]:
    """(1 - p) sum over d >= m of p^(d-1) / d for m = 1..depths, in the digits of the context."""
    exact = Decimal(p)
    rest, power, tails = (1 / (1 - exact)).ln(), Decimal(1), []
    for d in range(1, depths + 1):
        tails.append((1 - exact) / exact * rest)
        power *= exact
        rest -= power / d
    return tails


NEAR_ONE = (0.5, 0.9, 0.99, 0.999, 0.9999, 1 - 1e-6, 1 - 1e-9, 1 - 2**-52)


@pytest.mark.parametrize("p", NEAR_ONE)
def test_tails_keep_their_digits_at_any_depth(p: float) -> None:
    depth = 10_000
    weights = DepthWeights(p, depth)
    with localcontext() as context:
        context.prec = 120 if p > 0.98 else 2 * depth
        if p < 0.98:
            depth = 900
            context.prec = 400
        tails = exact_tails(p, depth + 1)
        for d in (*range(1, 140), 500, 511, 512, depth // 2, depth - 1, depth):
            tail, beyond = tails[d - 1], Decimal(p) ** d - d * tails[d]
            if tail < Decimal("1e-250"):
                continue
            at = np.array([d])
            assert abs(Decimal(float(weights.tail(at)[0])) / tail - 1) < Decimal("1e-12")
            assert abs(Decimal(float(weights.beyond(at)[0])) / beyond - 1) < Decimal("1e-12")
            whole = 1 - Decimal(p) ** (d - 1) + d * tail
            assert abs(Decimal(prefix_weight(p, d)) / whole - 1) < Decimal("1e-12")


@pytest.mark.parametrize("p", NEAR_ONE)
def test_readings_keep_their_digits_at_depth_ten_thousand(p: float) -> None:
    """A list beside one that is shifted by a few places and goes on for longer."""
    size, more, shift = 9_000, 1_000, 7
    places = [(at + shift - 1) % size + 1 for at in range(1, size + 1)]
    rows = [
        {"list_id": "q", "item_id": str(at), "rank": at, "reference_rank": place}
        for at, place in enumerate(places, start=1)
    ]
    lists = rankings(rows, reference_length={"q": size + more})
    found = {name: float(values_of(f"RBO(p={p!r}).{name}", lists)[0]) for name in READINGS}
    with localcontext() as context:
        context.prec = 1000 if p < 0.98 else 120
        exact, base = Decimal(p), Decimal(0)
        s, long = size, size + more
        x, power = 0, Decimal(1)
        deeper = sorted(max(at, place) for at, place in enumerate(places, start=1))
        carried = gained = Decimal(0)
        for d in range(1, long + 1):
            power *= exact
            while x < size and deeper[x] <= d:
                x += 1
            base += x * power / d
            carried += Decimal(size * (d - s)) / (s * d) * power if d > s else 0
            gained += Decimal(max(0, d - s)) / d * power
        rest = (1 / (1 - exact)).ln()
        series = [exact**d / d for d in range(1, long + 1)]
        least = (1 - exact) / exact * (base + x * (rest - sum(series)))
        # All that the shorter list may still bring agrees at depth s + l - X = l, from there on.
        full = exact**long - (1 - exact) / exact * x * (rest - sum(series))
        expected = {
            "MIN": least,
            "RES": (1 - exact) / exact * gained + full,
            "EXT": (1 - exact) / exact * (base + carried) + power * x / s,
        }
        for name, number in expected.items():
            if number > Decimal("1e-290"):
                assert abs(Decimal(found[name]) / number - 1) < Decimal("1e-9"), name


def test_a_deep_match_alone_keeps_its_digits() -> None:
    rows = [
        {"list_id": "q", "item_id": str(at), "rank": at, "reference_rank": None}
        for at in range(1, 2000)
    ]
    rows.append({"list_id": "q", "item_id": "last", "rank": 2000, "reference_rank": 2000})
    found = float(values_of("RBO(p=0.99).MIN", rankings(rows))[0])
    with localcontext() as context:
        context.prec = 100
        tail = exact_tails(0.99, 2000)[-1]
        assert tail < Decimal("1e-12")
        assert abs(Decimal(found) / tail - 1) < Decimal("1e-12")


def test_weights_of_prefixes() -> None:
    """The paper says 86 % of the first ten ranks for p = 0.9; the ends of the scale are exact."""
    assert prefix_weight(0.9, 10) == pytest.approx(0.86, abs=0.005)
    assert prefix_weight(0.9, 0) == 0
    assert prefix_weight(0.5, 1) == pytest.approx(log(2))
    assert prefix_weight(1e-300, 1) == 1
    assert prefix_weight(0.9, 5000) == 1
    for p in (0, 1, -0.1, nan, inf):
        with pytest.raises(ValueError, match="p lies between 0 and 1"):
            prefix_weight(p, 3)
