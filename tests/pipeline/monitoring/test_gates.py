"""The data gate: distances by hand, what is said, and what is not tested."""

from dataclasses import replace
from typing import Any

import pytest

from pipeline import trends
from pipeline.monitoring.gates import Releases, gate_rows, gates_of, reason_of
from pipeline.settings.sections import Gate
from pipeline.trends import ABSOLUTE, GATES, Facts, Gated

USUAL = Facts(
    rows=20_000,
    lists=1_000,
    relevance_known=18_000,
    click_known=20_000,
    unknown={"gender": 0.02},
    groups={"gender": {"F": 6_000, "M": 12_000, "unknown": 400}},
    joined=20_000,
)
RELATIVE = tuple(gate for gate in GATES if gate not in ABSOLUTE)
LIMITS = Gate()


def gates(today: Facts, before: Facts = USUAL, limits: Gate = LIMITS) -> dict[str, Gated]:
    found = trends.tested(today, [before] * limits.least, limits)
    names = [(gated.gate, gated.attribute) for gated in found]
    assert len(set(names)) == len(names)
    return {gated.gate: gated for gated in found}


def test_a_batch_like_the_others_passes_every_gate() -> None:
    found = gates(USUAL)
    assert tuple(found) == GATES
    assert all(gated.passed and gated.distance == 0 for gated in found.values())


CASES: list[tuple[str, dict[str, Any], float, bool]] = [
    ("joined", {"joined": 10_000}, 0.5, True),
    ("joined", {"joined": 9_999}, 1 - 9_999 / 20_000, False),
    ("joined", {"joined": 0}, 1.0, False),
    ("volume", {"rows": 10_000, "lists": 1_000}, 0.5, True),
    ("volume", {"rows": 9_999, "lists": 1_000}, 1 - 9_999 / 20_000, False),
    ("volume", {"rows": 40_001, "lists": 1_000}, 1 - 20_000 / 40_001, False),
    ("volume", {"rows": 19_000, "lists": 400}, 0.6, False),
    ("volume", {"rows": 0, "lists": 0}, 1.0, False),
    ("list_length", {"rows": 24_000}, 0.2, True),
    ("list_length", {"rows": 14_000}, 0.3, False),
    ("group_mix", {"groups": {"gender": {"F": 1, "M": 1}}}, 1 / 2 - 1 / 3, False),
    ("group_mix", {"groups": {"gender": {"F": 40, "M": 60, "unknown": 900}}}, 1 / 15, True),
    ("group_mix", {"groups": {"gender": {"X": 5}}}, 1.0, False),
    ("unknown_share", {"unknown": {"gender": 0.08}}, 0.06, False),
    ("unknown_share", {"unknown": {"gender": 0.0}}, 0.0, True),
    ("labels", {"relevance_known": 15_000}, 0.15, False),
    ("labels", {"relevance_known": 17_000}, 0.05, True),
    ("labels", {"click_known": 0}, 1.0, False),
    ("labels", {"relevance_known": 20_000}, 0.0, True),
]


@pytest.mark.parametrize(("gate", "changed", "distance", "passed"), CASES)
def test_distances(gate: str, changed: dict[str, Any], distance: float, passed: bool) -> None:
    found = gates(replace(USUAL, **changed))[gate]
    assert found.distance == pytest.approx(distance, abs=1e-12)
    assert found.passed == passed


def test_texts_say_value_usual_and_limit() -> None:
    today = Facts(18_701, 500, 9_000, 18_701, {"gender": 0.1}, {"gender": {"F": 10, "M": 90}})
    assert [gated.text for gated in gates(today).values()] == [
        "500 lists, usually 1,000: 50.0% fewer, the limit is 50%",
        "37.4 rows in a list, usually 20.0: 87.0% longer, the limit is 25%",
        "gender: 23.3% of rows changed group, the limit is 15%; "
        "most of all F, 10.0% of rows, usually 33.3%",
        "gender: 10.0% of rows without a group, usually 2.0%; the limit is 5% more",
        "relevance known for 48.1% of rows, usually 90.0%; the limit is 10% less",
    ]
    more = gates(replace(USUAL, rows=50_000))["volume"]
    assert more.text == "50,000 rows, usually 20,000: 2.5 times as many, the limit is 2 times"


def test_what_is_usual_is_the_median_of_the_window() -> None:
    before = [replace(USUAL, rows=rows) for rows in (10**9, 10**9, 10**9, 1, 10, 12, 11, 10**6)]
    (found,) = (
        gated
        for gated in trends.tested(replace(USUAL, rows=11), before, Gate(window=5, least=5))
        if gated.gate == "volume"
    )
    assert found.usual in (11, 1000)
    again = trends.tested(replace(USUAL, rows=11), before[-5:], Gate(window=5, least=5))
    assert found in again


def test_usual_shares_of_groups_add_up_again() -> None:
    mixes = [{"A": 8, "B": 1, "C": 1}, {"A": 1, "B": 8, "C": 1}, {"A": 1, "B": 1, "C": 8}]
    before = [replace(USUAL, groups={"gender": mix}) for mix in mixes]
    today = replace(USUAL, groups={"gender": {"A": 1, "B": 1, "C": 1}})
    found = trends.tested(today, before, Gate(least=3))
    assert next(gated for gated in found if gated.gate == "group_mix").distance == pytest.approx(0)


def test_few_batches_before_are_no_baseline() -> None:
    found = trends.tested(USUAL, [USUAL] * (LIMITS.least - 1), LIMITS)
    assert tuple(gated.gate for gated in found) == ABSOLUTE


def test_few_rows_that_join_close_the_gate_of_the_first_batch_of_all() -> None:
    half = replace(USUAL, joined=9_800)
    facts = {"n00": half, "n01": replace(half, joined=10_200)}
    found = gates_of(NIGHTS[:2], 0, facts, set(), NO_RELEASE, LIMITS)
    assert {name: reason_of(said) for name, (said, _) in found.items()} == {
        "n00": "gate_joined",
        "n01": None,
    }
    ((gate,), baselines) = found["n00"]
    assert baselines == (0,)
    assert gate.text == (
        "10,200 of 20,000 rows name an item that the item table does not hold: 49.0% join, "
        "the limit is 50%"
    )


def test_why_few_rows_join_is_told_of_few_only() -> None:
    few = replace(USUAL, joined=0, ids_differ="leading zeros")
    assert gates(few)["joined"].text.endswith("; ids differ in leading zeros")
    assert "zeros" not in gates(replace(few, joined=15_000))["joined"].text


def test_a_limit_of_1_wants_every_row_and_others_hold_to_the_row() -> None:
    for limit, joined, passed in (
        (1.0, 20_000, True),
        (1.0, 19_999, False),
        (0.9, 18_000, True),
        (0.9, 17_999, False),
        (0.7, 14_000, True),
    ):
        today = replace(USUAL, joined=joined)
        assert gates(today, limits=Gate(joined=limit))["joined"].passed == passed


def test_what_joins_first_is_what_a_batch_is_gated_for() -> None:
    dead = replace(USUAL, joined=0, unknown={"gender": 1.0}, groups={"gender": {"unknown": 20_000}})
    found = gates(dead)
    assert [gate for gate, gated in found.items() if not gated.passed] == [
        "joined",
        "unknown_share",
    ]
    assert reason_of(list(found.values())) == "gate_joined"


@pytest.mark.parametrize("gate", GATES)
def test_a_gate_without_a_limit_is_not_tested(gate: str) -> None:
    found = gates(USUAL, limits=Gate(**{gate: None}))
    assert set(found) == set(GATES) - {gate}


def test_a_column_that_was_never_there_is_no_failure() -> None:
    bare = replace(USUAL, relevance_known=0, click_known=0, unknown={}, groups={}, joined=None)
    found = gates(bare, before=bare)
    assert set(found) == {"volume", "list_length"}
    # Nor is one that is new.
    assert all(gated.passed for gated in gates(USUAL, before=bare).values())


def test_each_attribute_has_its_own_gates() -> None:
    two = replace(
        USUAL,
        unknown={"b": 0.5, "a": 0.0},
        groups={"b": {"X": 1, "Y": 1}, "a": {"X": 1}},
    )
    found = [(gated.gate, gated.attribute) for gated in trends.tested(two, [two] * 7, LIMITS)]
    assert [name for gate, name in found if gate == "group_mix"] == ["a", "b"]
    assert [name for gate, name in found if gate == "unknown_share"] == ["a", "b"]


# -- which batches a batch is compared with

NIGHTS = tuple(f"n{at:02}" for at in range(20))
EACH = dict.fromkeys(NIGHTS, USUAL)
NO_RELEASE = Releases(())
SHORT = Gate(window=3, least=1)


def counts(
    facts: dict[str, Facts], *, start: int = 0, failed: tuple[str, ...] = (),
    releases: Releases = NO_RELEASE, limits: Gate = SHORT,
) -> dict[str, dict[str, int]]:  # fmt: skip
    """Of each batch and gate that is not absolute, how many batches were its baseline."""
    found = gates_of(NIGHTS, start, facts, set(failed), releases, limits)
    assert list(found) == list(NIGHTS[start:])
    every = {
        name: {gate.gate: count for gate, count in zip(said, baselines, strict=True)}
        for name, (said, baselines) in found.items()
    }
    assert all(each.get(gate, 0) == 0 for each in every.values() for gate in ABSOLUTE)
    return {
        name: {gate: count for gate, count in each.items() if gate in RELATIVE}
        for name, each in every.items()
    }


def test_the_last_batches_of_the_window_are_compared() -> None:
    found = counts(EACH)
    assert found["n00"] == {}
    assert [set(found[name].values()) for name in NIGHTS[1:6]] == [{1}, {2}, {3}, {3}, {3}]
    assert counts(EACH, start=18) == {name: dict.fromkeys(RELATIVE, 3) for name in NIGHTS[18:]}


def test_what_a_gate_kept_out_is_replaced_by_older_ones_up_to_twice_the_window() -> None:
    assert set(counts(EACH, start=19, failed=("n18", "n16"))["n19"].values()) == {3}
    assert set(counts(EACH, start=19, failed=NIGHTS[15:19])["n19"].values()) == {2}
    assert set(counts(EACH, start=19, failed=NIGHTS[14:19])["n19"].values()) == {1}
    assert counts(EACH, start=19, failed=NIGHTS[13:19])["n19"] == {}


def test_a_batch_that_fails_now_is_no_baseline_for_the_next() -> None:
    half = replace(USUAL, rows=100, lists=5, relevance_known=90, click_known=100)
    facts = EACH | {"n10": half}
    found = gates_of(NIGHTS[:12], 10, facts, set(), NO_RELEASE, Gate(window=1, least=1))
    assert [reason_of(said) for said, _ in found.values()] == ["gate_volume", None]


def test_a_batch_without_facts_has_no_gates_and_is_no_baseline() -> None:
    facts = {name: USUAL for name in NIGHTS if name not in ("n18", "n19")}
    found = counts(facts, start=18, limits=Gate(window=1, least=1))
    assert found == {"n18": {}, "n19": {}}


def test_a_release_starts_anew_for_what_it_may_change() -> None:
    logged = counts(EACH, start=12, releases=Releases(("n05", "n11")))["n12"]
    assert logged == {**dict.fromkeys(RELATIVE, 3), "list_length": 1, "group_mix": 1}
    marked = counts(EACH, start=12, releases=Releases(("n05", "n10", "n11"), ("n10",)))["n12"]
    assert marked == {**dict.fromkeys(RELATIVE, 2), "list_length": 1, "group_mix": 1}
    assert list(marked) == list(RELATIVE)
    # A release that is still to come changes nothing.
    assert counts(EACH, start=12, releases=Releases(("n19",)))["n12"] == dict.fromkeys(RELATIVE, 3)


def test_a_batch_belongs_to_the_last_release_before_it() -> None:
    releases = Releases(("b", "d"), ("d",))
    assert [releases.of(name) for name in "abcde"] == ["", "b", "b", "d", "d"]
    assert [releases.data_of(name) for name in "abcde"] == ["", "", "", "d", "d"]


def test_rows_and_reason_of_what_the_gates_said() -> None:
    length = Gated("list_length", None, 10.0, 20.0, 0.5, 0.25, False, "shorter")
    mix = Gated("group_mix", "town", 0.4, 0.3, 0.2, 0.15, False, "mixed")
    fine = replace(length, gate="volume", passed=True)
    assert reason_of([fine, length, mix]) == "gate_list_length"
    assert reason_of([fine, mix, length]) == "gate_group_mix: town"
    assert reason_of([fine]) is None
    first, second = gate_rows({"b": ((fine, mix), (7, 8))})
    assert second == {
        "batch": "b", "gate": "group_mix", "attribute": "town", "value": 0.4, "usual": 0.3,
        "distance": 0.2, "allowed": 0.15, "passed": False, "text": "mixed", "baseline": 8,
    }  # fmt: skip
    assert (first["gate"], first["passed"], first["baseline"]) == ("volume", True, 7)
