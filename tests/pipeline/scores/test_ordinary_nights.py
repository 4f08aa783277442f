"""Nights as they come: stray values, absent groups, groups in different lists, equal groups."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from logs import Found, Rows, scored_file

RATIO = "EXP.MinMaxRatio"
LIMIT = {RATIO: {"min": 0.8}}
QUICK = {"resamples": 300, "noise_draws": 300}
WHOLE = ("all", "all")


def lists(orders: Sequence[str], count: int, *, name: str = "q", **columns: Any) -> Rows:
    """Lists of their own queries, a letter per item, in one order after the other."""
    return [
        {
            "list_id": f"{name}{number}",
            "item_id": f"{name}{number}.{rank}",
            "rank": rank,
            "group": letter,
            **columns,
        }
        for number in range(count)
        for rank, letter in enumerate(orders[number % len(orders)], start=1)
    ]


def shuffled(rng: np.random.Generator, count: int, length: int, share: float) -> list[str]:
    """Lists in random order with that share of F in each."""
    letters = np.array(list("F" * round(length * share) + "M" * (length - round(length * share))))
    return ["".join(rng.permutation(letters)) for _ in range(count)]


def night(rows: Rows, *, thresholds: Any = LIMIT, metrics: Any = ("EXP",), **said: Any) -> Found:
    said.setdefault("evidence", QUICK)
    return scored_file(rows, metrics=list(metrics), thresholds=thresholds, **said)


def row_of(found: Found, label: str = RATIO, where: tuple[str, str] = WHOLE) -> dict[str, Any]:
    return next(row for key, row in found.scores.items() if key[:2] == where and key[3] == label)


UNFAIR = ("MMMFMMFFFF", "MMMMFMFFFF", "MMFMMMFFFF")


@pytest.fixture(scope="module")
def stray() -> Found:
    """A certain breach, and one row of 1,000 whose group is written in another way."""
    rows = lists(UNFAIR, 100, device="web")
    rows[9]["group"] = "Female"
    labels = ("EXP.MinMaxRatio", "EXP.MaxMinRatio", "EXP.MaxMinDiff", "EXP.Variance")
    limits = dict(
        zip(labels, ({"min": 0.8}, {"max": 1.2}, {"max": 0.05}, {"max": 1e-4}), strict=True)
    )
    return night(
        rows,
        thresholds={**limits, "NDKL": {"max": 0.01}},
        metrics=("EXP", "NDKL"),
        slices=["device"],
    )


@pytest.mark.parametrize("aggregation", ["MinMaxRatio", "MaxMinRatio", "MaxMinDiff", "Variance"])
@pytest.mark.parametrize("where", [WHOLE, ("device", "web")])
def test_one_stray_value_does_not_silence_a_breach(
    stray: Found, aggregation: str, where: tuple[str, str]
) -> None:
    row = row_of(stray, f"EXP.{aggregation}", where)
    assert row["status"] == "breach"
    assert json.loads(row["judged_groups"]) == ["F", "M"]
    assert json.loads(row["thin_groups"]) == ["Female"]
    assert (row["judged_worst_group"], row["judged_best_group"]) == ("F", "M")
    # The value is still that of all groups that have one.
    assert row["worst_group"] == "Female"
    assert row["judged_lower"] <= row["judged_value"] <= row["judged_upper"]


def test_what_is_judged_is_the_score_of_the_groups_with_enough(stray: Found) -> None:
    rows = [row for row in lists(UNFAIR, 100) if row["item_id"] != "q0.10"]
    alone = row_of(night(rows))
    judged = row_of(stray)
    assert judged["judged_value"] == pytest.approx(alone["value"], rel=1e-12)
    assert judged["value"] < judged["judged_value"]


def test_a_number_of_lists_is_a_breach_whatever_one_group_lacks(stray: Found) -> None:
    assert row_of(stray, "NDKL")["status"] == "breach"


def test_one_stray_value_keeps_a_fair_night_from_being_ok() -> None:
    rng = np.random.default_rng(1)
    rows = lists(shuffled(rng, 100, 10, 0.5), 100)
    assert row_of(night(rows))["status"] == "ok"
    rows[0]["group"] = "Female"
    row = row_of(night(rows))
    assert (row["status"], row["status_reason"]) == ("insufficient", "few_queries: Female")
    assert row["judged_value"] > 0.9


def test_a_group_without_value_does_not_silence_the_others() -> None:
    """A stray group whose relevance sums to zero has no value, and neither has the score."""
    rows = lists(UNFAIR, 100, relevance=1.0)
    rows[9] |= {"group": "Female", "relevance": 0.0}
    row = row_of(
        night(rows, metrics=("EXPU",), thresholds={"EXPU.MinMaxRatio": {"min": 0.8}}),
        "EXPU.MinMaxRatio",
    )
    assert (row["value"], row["reason"]) == (None, "zero_relevance: Female")
    assert row["status"] == "breach"
    assert row["judged_value"] < 0.8


def test_a_group_that_is_not_in_a_slice_is_left_out_there() -> None:
    rows = lists(("MFX", "FXM", "XMF"), 120, device="app")
    rows += lists(("MF", "FM"), 120, name="w", device="web")
    for limit, said in ((None, {}), ("one_group", {"groups": {"group": ["F", "M", "X"]}})):
        found = night(rows, slices=["device"], **said)
        app, web = (row_of(found, where=("device", name)) for name in ("app", "web"))
        assert json.loads(app["judged_groups"]) == ["F", "M", "X"]
        if limit is None:
            assert json.loads(web["judged_groups"]) == ["F", "M"]
            assert web["value"] == pytest.approx(1.0)
            assert web["status"] == "ok"
        else:
            # The settings say that it should be there.
            assert (web["value"], web["reason"]) == (None, "group_absent: X")
            assert (web["status"], web["status_reason"]) == ("insufficient", "few_queries: X")


def mixed(seed: int, pull: float = 0.0) -> Rows:
    """Random orders: short lists with many F, long ones with few; ``pull`` moves F up."""
    rng = np.random.default_rng(seed)
    found: Rows = []
    for name, count, length, share in (("mobile", 200, 5, 0.8), ("web", 200, 40, 0.2)):
        orders = shuffled(rng, count, length, share)
        orders = ["".join(sorted(o)) if rng.random() < pull else o for o in orders]
        found += lists(orders, count, name=name, device=name)
    return found


@pytest.fixture(scope="module")
def composed() -> Found:
    return night(mixed(5), slices=["device"])


def test_a_random_order_is_no_breach_whatever_lists_groups_are_in(composed: Found) -> None:
    row = row_of(composed)
    assert row["value"] < 0.8
    assert row["status"] == "composition"
    assert row["against_chance"] > 0.95
    assert row["expected"] == pytest.approx(row["value"], abs=0.05)
    for device in ("mobile", "web"):
        assert row_of(composed, where=("device", device))["status"] == "ok"


def test_an_unfair_order_is_a_breach_whatever_lists_groups_are_in() -> None:
    row = row_of(night(mixed(5, pull=0.8), slices=["device"]))
    assert row["against_chance_upper"] < 0.8
    assert row["status"] == "breach"


def test_two_nearly_equal_groups_may_be_equal() -> None:
    rng = np.random.default_rng(3)
    row = row_of(night(lists(shuffled(rng, 100, 10, 0.5), 100)))
    assert row["value"] < 1.0
    assert row["upper"] == 1.0


def test_how_sure_an_ok_is() -> None:
    rng = np.random.default_rng(2)
    few, many = (row_of(night(lists(shuffled(rng, n, 10, 0.5), n))) for n in (40, 400))
    assert many["status"] == "ok"
    assert many["assured"]
    assert few["status"] == "ok"
    assert few["detectable"] < many["detectable"] < 0.8
    assert many["lists_needed"] < 400


def test_one_query_that_is_most_of_the_night_is_no_evidence() -> None:
    """One query was answered 2,000 times with one and the same list."""
    rows = lists(UNFAIR, 40, query_id="") + lists(UNFAIR[:1], 500, name="bot", query_id="bot")
    for row in rows:
        row["query_id"] = row["query_id"] or row["list_id"]
    row = row_of(night(rows))
    assert row["status"] == "insufficient"
    assert row["status_reason"].startswith("few_effective_queries")


def test_noise_knows_queries() -> None:
    """The same random lists ten times over are no more than once."""
    rng = np.random.default_rng(11)
    orders = shuffled(rng, 60, 8, 0.5)
    p = {}
    for times in (1, 10):
        rows = [
            row | {"list_id": f"{row['list_id']}.{again}", "query_id": row["list_id"]}
            for row in lists(orders, 60)
            for again in range(times)
        ]
        found = night(rows, metrics=("EXP", "ARP", "NDKL"))
        p[times] = [row_of(found, label)["p_noise"] for label in (RATIO, "ARP.MinMaxRatio", "NDKL")]
    assert p[10] == pytest.approx(p[1], abs=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("of", ["list", "group"])
@pytest.mark.parametrize("name", ["GroupP", "GroupR", "GroupnDCG"])
def test_quality_by_group_of_an_order_that_knows_no_group_is_no_breach(name: str, of: str) -> None:
    """A tenth of the items are F, and relevance knows no group either."""
    rng = np.random.default_rng(6)
    rows = lists(shuffled(rng, 300, 20, 0.1), 300)
    for row, relevant in zip(rows, rng.random(len(rows)) < 0.4, strict=True):
        row["relevance"] = float(relevant)
    measure = f"{name}@10" if of == "list" else f"{name}(of=group)@10"
    label = f"{measure}.MinMaxRatio"
    row = row_of(night(rows, metrics=(measure,), thresholds={label: {"min": 0.8}}), label)
    if of == "list":
        assert row["value"] < 0.2
        assert row["status"] == "composition"
    assert row["status"] != "breach"
    assert row["against_chance"] > 0.85


def test_a_group_that_is_hardly_ever_on_top_is_a_breach() -> None:
    """B is among the first three of 2 lists of 200, in lists of both kinds."""
    orders = ["AAAAB" if at % 2 else "AAAA" + "B" * 12 for at in range(200)]
    orders[0] = orders[2] = "BAAABBBBBBBBBBBA"
    label = "EXP@3.MinMaxRatio"
    row = row_of(
        night(lists(orders, 200), metrics=("EXP@3",), thresholds={label: {"min": 0.8}}), label
    )
    assert row["against_chance_upper"] < 0.1
    assert row["status"] == "breach"


def test_a_stray_group_does_not_silence_that_another_is_kept_off_the_top() -> None:
    label = "Skew@3.MinSkew"
    rows = lists(("AAAAABBB",), 200)
    for stray in (False, True):
        rows[7]["group"] = "C" if stray else "B"
        row = row_of(night(rows, metrics=("Skew@3",), thresholds={label: {"min": -0.5}}), label)
        assert (row["status"], row["p_noise"]) == ("breach", pytest.approx(0.0, abs=1e-6))


def test_exposure_that_does_not_follow_relevance_is_a_breach_in_any_order() -> None:
    """Every list has as many A as B, B is three times as relevant, and order knows no group."""
    rng = np.random.default_rng(4)
    rows = lists(shuffled(rng, 300, 10, 0.5), 300)
    for row, luck in zip(rows, rng.random(len(rows)), strict=True):
        row["relevance"] = float(luck < (0.75 if row["group"] == "F" else 0.25))
    label = "EXPU.MinMaxRatio"
    row = row_of(night(rows, metrics=("EXPU",), thresholds={label: {"min": 0.8}}), label)
    assert row["value"] < 0.5
    assert row["against_chance"] > 0.9
    # Chance would do the same, and there is no breach of it either: it cannot be told.
    assert (row["status"], row["status_reason"]) == ("insufficient", "noise")


@pytest.mark.parametrize("name", ["SelectionRate@3.MinMaxRatio", "DisparateImpact@3.Min"])
def test_a_random_order_is_no_breach_of_a_cut(name: str) -> None:
    rng = np.random.default_rng(5)
    orders = [
        "".join(rng.permutation(list("AAAAB" if at % 2 else "AAAA" + "B" * 12)))
        for at in range(400)
    ]
    measure = name.rsplit(".", 1)[0]
    row = row_of(
        night(lists(orders, 400), metrics=(measure,), thresholds={name: {"min": 0.8}}), name
    )
    assert row["value"] < 0.7
    assert row["status"] == "composition"
    assert row["against_chance"] > 0.9


def test_many_queries_are_many_however_many_buckets_there_are() -> None:
    rows = lists(("ABAB", "BABA"), 3000)
    evidence = {**QUICK, "min_queries": 3000}
    row = row_of(night(rows, evidence=evidence))
    assert row["status"] == "ok"


def test_nothing_is_said_of_what_was_not_judged() -> None:
    """15 queries hold F: whatever its value, nothing would have been noticed."""
    rows = lists(("MFMFMFMF",), 15) + lists(("MMMM",), 40, name="m")
    row = row_of(night(rows))
    assert row["status_reason"] == "few_queries: F"
    assert row.get("judged_value") is row.get("judged_groups") is row["detectable"] is None
    assert json.loads(row["thin_groups"]) == ["F"]


@pytest.mark.parametrize(
    "said", [{"groups": {"group": ["F", "M", "X"]}}, {"targets": {"group": {"F": 0.5, "X": 0.5}}}]
)
def test_a_group_that_the_settings_name_and_no_list_holds_keeps_scores_from_being_ok(
    said: dict[str, Any],
) -> None:
    rng = np.random.default_rng(1)
    row = row_of(night(lists(shuffled(rng, 100, 10, 0.5), 100), **said))
    assert (row["status"], row["status_reason"]) == ("insufficient", "few_queries: X")
    assert json.loads(row["thin_groups"]) == ["X"]
    assert json.loads(row["judged_groups"]) == ["F", "M"]
