"""FA*IR: the minima against the package and in exact fractions, and the test of lists."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
import slow_fair as slow
from counted import evaluated
from list_native_lists import all_rows, lists_of, of_list, rows_of
from places import GOLDEN
from rankings import per_list, rankings

from metrics import Reason
from metrics.list_native import binomial_test, fair_top_k
from metrics.list_native.binomial_test import minima

PUBLISHED = json.loads((GOLDEN / "list_native.json").read_text("utf-8"))


def test_minima_are_those_of_the_package_or_nearer_to_the_significance() -> None:
    same = 0
    for case in PUBLISHED["fairsearchcore"]["cases"]:
        k, share, alpha = case["k"], case["p"], case["alpha"]
        theirs = [sum(rise <= i for rise in case["adjusted_rises"]) for i in range(1, k + 1)]
        ours = minima(k, np.array([share]), alpha)[0].tolist()
        if ours == theirs:
            same += 1
            continue
        # The package leaves the last place out of the probability, and its search can stop early.
        gap = abs(float(slow.probability(ours, share)) - alpha)
        assert gap < abs(float(slow.probability(theirs, share)) - alpha), case
    assert same == PUBLISHED["fairsearchcore"]["same"]


def test_the_package_leaves_the_last_place_out() -> None:
    case = PUBLISHED["fairsearchcore"]["last_place"]
    table = [sum(rise <= i for rise in case["rises"]) for i in range(1, case["k"] + 1)]
    assert case["fail_probability"] != pytest.approx(float(slow.probability(table, case["p"])))
    assert case["fail_probability"] == pytest.approx(
        float(slow.probability(table[:-1], case["p"])), rel=1e-9
    )


def test_published_examples_of_the_minima() -> None:
    for case in PUBLISHED["fairsearchcore"]["published"]:
        found = minima(len(case["adjusted"]), np.array([case["p"]]), case["alpha"])[0]
        assert found.tolist() == case["adjusted"]
        assert float(slow.probability(found.tolist(), case["p"])) == pytest.approx(
            case["fail_probability"], rel=1e-9
        )


@pytest.mark.parametrize("alpha", [Fraction(1, 20), Fraction(1, 10), Fraction(1, 4)])
def test_minima_against_every_table_in_exact_fractions(alpha: Fraction) -> None:
    for depth in (1, 2, 3, 5, 8, 12):
        shares = [Fraction(a, b) for b in range(2, 11) for a in range(1, b)]
        found = minima(depth, np.array([float(share) for share in shares]), float(alpha))
        for share, row in zip(shares, found.tolist(), strict=True):
            assert tuple(row) == slow.minima(depth, share, alpha), (depth, share)


def test_probabilities_that_differ_by_a_bit_are_equal() -> None:
    # 1 - 0.7 is just above 0.3; the others have two levels that only rounding tells apart.
    for depth, share, alpha in (
        (3, Fraction(7, 10), Fraction(3, 10)),
        (12, Fraction(6, 11), Fraction(9, 20)),
        (16, Fraction(2, 3), Fraction(1, 10)),
    ):
        found = minima(depth, np.array([float(share)]), float(alpha))[0]
        assert tuple(found.tolist()) == slow.minima(depth, share, alpha), (depth, share)


def test_a_minimum_does_not_depend_on_the_shares_beside_it() -> None:
    shares = np.linspace(0.013, 0.987, 75)
    together = minima(60, shares, 0.073)
    for share, row in zip(shares[::9], together[::9], strict=True):
        assert (minima(60, np.array([share, 0.5]), 0.0730000001)[0] == row).all()
    assert (np.diff(together, axis=1, prepend=0) <= 1).all()
    assert (np.diff(together, axis=1, prepend=0) >= 0).all()


def test_minima_are_the_same_with_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = np.array([0.5, 0.05, 0.3, 0.5, 0.2])
    wanted = {depth: minima(depth, shares, 0.1) for depth in (20, 12)}
    monkeypatch.setattr(binomial_test, "_CELLS", 100)
    monkeypatch.setattr(binomial_test, "_kept", {})
    for depth in (20, 12, 20):
        np.testing.assert_array_equal(minima(depth, shares, 0.1), wanted[depth])
        assert sum(map(len, binomial_test._kept.values())) <= 100
    assert minima(20, np.array([]), 0.1).shape == (0, 20)
    # What was kept is taken, what was not is computed.
    both = minima(20, np.array([0.3, 0.4]), 0.1)
    np.testing.assert_array_equal(both[0], wanted[20][2])
    np.testing.assert_array_equal(both[1], minima(20, np.array([0.4]), 0.1)[0])


def test_the_adjusted_level_of_the_package_gives_its_minima() -> None:
    for case in PUBLISHED["fairsearchcore"]["cases"]:
        k, share, level = case["k"], case["p"], case["adjusted_alpha"]
        if k > 20:
            continue
        found = []
        for i in range(1, k + 1):
            chances = [math.comb(i, j) * share**j * (1 - share) ** (i - j) for j in range(i + 1)]
            # Equal to the level is not below it, whatever the last bits say.
            below = level * (1 - 1e-12)
            found.append(sum(math.fsum(chances[: x + 1]) < below for x in range(i + 1)))
        assert [i for i in range(1, k + 1) if found[i - 1] > ([0, *found])[i - 1]] == (
            case["adjusted_rises"]
        ), case


def test_only_the_first_thousand_places_are_tested() -> None:
    # None of A is missing from the first 1,000, and all of the last 400.
    lists = lists_of("AB" * 500 + "B" * 400, target={"A": 1, "B": 1})
    found = {
        k: per_list(f"FAIR(reference=target)@{k}", lists).value[0].tolist() for k in (1000, 1400)
    }
    assert found[1000] == found[1400] == [1.0, 1.0]
    assert fair_top_k.DEEPEST == 1000


def test_of_two_levels_as_near_the_lower_is_taken() -> None:
    # Fair coins, four places: 4/16 and 6/16 of the lists can be made to fail, 5/16 is between.
    need = minima(4, np.array([0.5]), 5 / 16)[0].tolist()
    assert slow.probability(need, Fraction(1, 2)) == Fraction(4, 16)
    more = minima(4, np.array([0.5]), 5 / 16 + 1e-6)[0].tolist()
    assert slow.probability(more, Fraction(1, 2)) == Fraction(6, 16)


def test_the_last_place_that_is_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of ten places with share 1/2 three are needed at the tenth, and two before.
    monkeypatch.setattr(fair_top_k, "DEEPEST", 10)
    equal = {"A": 1, "B": 1}
    assert of_list("FAIRFirst(reference=target)@20", "ABABAAAAAABB", target=equal) == 10.0
    assert of_list("FAIRFirst(reference=target)@20", "ABABAAAAABAA", target=equal) != 10.0


def test_of_fair_lists_about_the_significance_fails() -> None:
    # Every order of 12 places, weighted by its probability, through the metric itself.
    share, k = 0.4, 12
    every = np.arange(2**k)
    chosen = (every[:, None] >> np.arange(k)) & 1
    chance = share ** chosen.sum(axis=1) * (1 - share) ** (k - chosen.sum(axis=1))
    texts = ("".join("BA"[bit] for bit in row) for row in chosen.tolist())
    lists = lists_of(*texts, target={"A": share, "B": 1 - share})
    found = per_list("FAIR(reference=target)@12", lists).value
    wanted = float(slow.probability(slow.minima(12, Fraction(2, 5), Fraction(1, 10)), share))
    assert (chance * (1 - found[:, 0])).sum() == pytest.approx(wanted, rel=1e-9)
    assert 0.05 < wanted < 0.15


def test_fair_test_by_hand() -> None:
    # Ten places, share 1/2: none of 4 has probability 1/16, at most one of 7 8/128, at most two
    # of 10 56/1024.  One of these happens to 114 of 1024 fair lists, nearest to the tenth; the next
    # lower minima, of 5, 8 and 10 places, fail 77 of 1024.
    need = minima(10, np.array([0.5]), 0.1)[0]
    assert need.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2, 3]
    assert slow.probability(need.tolist(), Fraction(1, 2)) == Fraction(114, 1024)
    lower = [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]
    assert slow.probability(lower, Fraction(1, 2)) == Fraction(77, 1024)
    assert of_list("FAIR@10", "ABABABABAB") == {"A": 1.0, "B": 1.0}
    assert of_list("FAIR@10", "AAAAABBBBB") == {"A": 1.0, "B": 0.0}
    assert of_list("FAIRFirst@10", "AAAAABBBBB") == 4.0
    equal = {"A": 1, "B": 1}
    assert of_list("FAIRFirst(reference=target)@10", "BAAAAAABBB", target=equal) == 7.0
    assert of_list("FAIRFirst(reference=target)@10", "BAAAABAAAA", target=equal) == 10.0
    assert math.isnan(of_list("FAIRFirst@10", "ABABABABAB"))
    # One place, share 9/10: not of the group with probability 1/10.
    most = {"A": 9, "B": 1}
    assert of_list("FAIR(reference=target)@1", "BA", target=most)["A"] == 0.0
    assert of_list("FAIR(reference=target)@1", "AB", target=most)["A"] == 1.0


def test_a_test_that_cannot_fail_is_no_pass() -> None:
    for text in ("A", "AB", "BA", "AAB", "BAAB", "AAAA", "...."):
        values = of_list("FAIR@10", text)
        assert all(map(math.isnan, values.values())), text
    whole = of_list("FAIR(reference=target)@5", "AABAA", target={"A": 1, "B": 0})
    assert all(map(math.isnan, whole.values())), "a share of 1, and one of 0"
    assert math.isnan(of_list("FAIR@10", "B" * 19 + "A")["A"]), "one of twenty is easily missed"
    assert of_list("FAIR@10", "B" * 19 + "A")["B"] == 1.0


def test_first_failure_is_a_logged_rank() -> None:
    rows = rows_of("AAAAABBBBB")
    for row in rows:
        row["rank"] *= 3
    found = per_list("FAIRFirst@30", rankings(rows, "group"))
    assert found.value.tolist() == [12.0]


def test_without_a_failing_list_there_is_no_first_failure() -> None:
    score = evaluated("FAIRFirst@10", all_rows("ABABABABAB")).scores[0]
    assert (score.value, score.reason) == (None, Reason.NO_LIST_FAILS)
