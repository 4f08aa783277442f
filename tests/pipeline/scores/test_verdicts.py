"""Every way to a verdict: a table of cases, and batches in which each of them comes about."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from logs import Found, Rows, scored_file

from metrics import Reason, Score, parse_score
from pipeline.scores.evidence.doubt import AgainstChance, Doubt
from pipeline.scores.verdicts import Basis, Cause, Verdict, verdict_on
from pipeline.settings.audit import Settings
from pipeline.settings.load import settings_from
from schemas.scores import STATUSES

LOW, HIGH, OF_RELEVANCE = "EXP.MinMaxRatio", "EXP.MaxMinDiff", "EXPU.MinMaxRatio"
ENOUGH = Basis("a", lists=100, queries=100, appearances=1000, relevant=100)
SURE = Doubt(lower=0.5, upper=0.7, p_noise=0.001)
"""Of a ratio of 0.6 against a limit of 0.8."""


def settings(evidence: dict[str, Any] | None = None, **thresholds: Any) -> Settings:
    said = thresholds or {LOW: {"min": 0.8}, HIGH: {"max": 0.2}, OF_RELEVANCE: {"min": 0.8}}
    return settings_from(
        {"attributes": ["group"], "slices": ["device"], "thresholds": said,
         "evidence": evidence or {}},
        folder=Path(),
    )  # fmt: skip


def judged(
    value: float | None = 0.6,
    *bases: Basis,
    label: str = LOW,
    doubt: Doubt = SURE,
    reason: str | None = None,
    said: Settings | None = None,
    attribute: str | None = "group",
    slice_name: str = "all",
    left_out: str | None = None,
) -> Verdict:
    score = Score(parse_score(label), value, reason)
    given = bases or (ENOUGH, Basis("b", 50, 50, 500, 50))
    here = attribute, slice_name
    return verdict_on(score, said or settings(), *here, doubt, given, left_out=left_out)


POINT = {"decide_by": "point"}
OFF = {"resamples": 0}
CASES: dict[str, tuple[dict[str, Any], str, str | None]] = {
    "beyond, with the whole interval": ({}, "breach", None),
    "within": ({"value": 0.9, "doubt": Doubt(0.85, 0.95)}, "ok", None),
    "within, though the interval is not": ({"value": 0.81, "doubt": Doubt(0.6, 1.0)}, "ok", None),
    "on the threshold": ({"value": 0.8, "doubt": Doubt(0.8, 0.8)}, "ok", None),
    "just beyond": ({"value": 0.79999, "doubt": Doubt(0.79, 0.79999)}, "breach", None),
    "the end on the threshold": ({"doubt": Doubt(0.5, 0.8)}, "insufficient", "interval"),
    "the interval reaches across": ({"doubt": Doubt(0.5, 0.81)}, "insufficient", "interval"),
    "no end": ({"doubt": Doubt(0.5, None)}, "insufficient", "no_interval"),
    "no ends": ({"doubt": Doubt()}, "insufficient", "no_interval"),
    "no far end, which does not matter": ({"doubt": Doubt(None, 0.7)}, "breach", None),
    "chance alone": ({"doubt": Doubt(0.5, 0.7, p_noise=0.06)}, "insufficient", "noise"),
    "as chance would have it": (
        {"doubt": replace(SURE, against_chance=AgainstChance(0.9, 0.85, 0.95, settled=0.7))},
        "composition", None,
    ),
    "as chance would have it, and noise": (
        {"doubt": Doubt(0.5, 0.7, p_noise=0.4, against_chance=AgainstChance(1.0, 0.9, 1.0, 0.7))},
        "composition", None,
    ),
    "further than chance, but its interval is not": (
        {"doubt": replace(SURE, against_chance=AgainstChance(0.75, 0.65, 0.81, settled=0.7))},
        "insufficient", "interval",
    ),
    "further than chance, by nobody knows how much": (
        {"doubt": replace(SURE, against_chance=AgainstChance(0.1, None, None, settled=0.7))},
        "insufficient", "no_interval",
    ),
    "exposure that does not follow relevance, as in random order": (
        {"label": OF_RELEVANCE,
         "doubt": replace(SURE, against_chance=AgainstChance(1.0, 0.9, 1.0, settled=0.7))},
        "breach", None,
    ),
    "further than chance": (
        {"doubt": replace(SURE, against_chance=AgainstChance(0.7, 0.65, 0.79, settled=0.7))},
        "breach", None,
    ),
    "chance itself is within": (
        {"doubt": replace(SURE, against_chance=AgainstChance(0.9, 0.85, 0.95, settled=0.8))},
        "breach", None,
    ),
    "high, as chance would have it": (
        {"label": HIGH, "value": 0.3,
         "doubt": Doubt(0.25, 0.4, against_chance=AgainstChance(0.15, 0.05, 0.25, settled=0.21))},
        "composition", None,
    ),
    "by the point, as chance would have it": (
        {"said": settings(POINT),
         "doubt": replace(SURE, against_chance=AgainstChance(0.8, 0.5, 0.9, settled=0.7))},
        "composition", None,
    ),
    "by the point, further than chance": (
        {"said": settings(POINT),
         "doubt": replace(SURE, against_chance=AgainstChance(0.79, 0.5, 0.9, settled=0.7))},
        "breach", None,
    ),
    "few queries hold most rows": (
        {"bases": [ENOUGH, Basis("b", 50, 50, 500, 50, effective=14.9)]},
        "insufficient", "few_effective_queries: b",
    ),
    "queries of different lengths": (
        {"bases": [ENOUGH, Basis("b", 50, 50, 500, 50, effective=15.0)]}, "breach", None
    ),
    "within, but a group is left out": (
        {"value": 0.9, "left_out": "few_queries: c"}, "insufficient", "few_queries: c"
    ),
    "beyond, whatever a group that is left out would say": (
        {"left_out": "few_queries: c"}, "breach", None
    ),
    "nearly chance": ({"doubt": Doubt(0.5, 0.7, p_noise=0.05)}, "breach", None),
    "as seldom by chance as may be": (
        {"doubt": Doubt(0.5, 0.7, p_noise=1.0 - 0.95)}, "breach", None
    ),
    "no noise floor": ({"doubt": Doubt(0.5, 0.7)}, "breach", None),
    "high": ({"label": HIGH, "value": 0.3, "doubt": Doubt(0.25, 0.4)}, "breach", None),
    "high within": ({"label": HIGH, "value": 0.2, "doubt": Doubt(0.1, 0.4)}, "ok", None),
    "high, reaches across": (
        {"label": HIGH, "value": 0.3, "doubt": Doubt(0.2, 0.4)}, "insufficient", "interval"
    ),
    "high, no lower end": (
        {"label": HIGH, "value": 0.3, "doubt": Doubt(None, 0.4)}, "insufficient", "no_interval"
    ),
    "high, no upper end": ({"label": HIGH, "value": 0.3, "doubt": Doubt(0.25)}, "breach", None),
    "no value": ({"value": None, "reason": "group_absent: b"}, "undefined", None),
    "no value, little of all": (
        {"value": None, "reason": "no_lists", "bases": [Basis("", 0, 0, 0, 0)]}, "undefined", None
    ),
    "no threshold": ({"label": "EXP.Variance"}, "not_judged", None),
    "no threshold, no value": (
        {"label": "EXP.Variance", "value": None, "reason": "one_group"}, "not_judged", None
    ),
    "few queries": (
        {"bases": [ENOUGH, Basis("b", 99, 29, 500, 50)]}, "insufficient", "few_queries: b"
    ),
    "just enough queries": ({"bases": [ENOUGH, Basis("b", 30, 30, 500, 50)]}, "breach", None),
    "few appearances": (
        {"bases": [Basis("a", 99, 50, 99, 50), ENOUGH]}, "insufficient", "few_appearances: a"
    ),
    "just enough appearances": ({"bases": [ENOUGH, Basis("b", 50, 50, 100, 50)]}, "breach", None),
    "few relevant rows that do not matter": (
        {"bases": [ENOUGH, Basis("b", 50, 50, 500, 0)]}, "breach", None
    ),
    "few relevant rows": (
        {"label": OF_RELEVANCE, "bases": [ENOUGH, Basis("b", 50, 50, 500, 29)]},
        "insufficient", "few_relevant: b",
    ),
    "just enough relevant rows": (
        {"label": OF_RELEVANCE, "bases": [ENOUGH, Basis("b", 50, 50, 500, 30)]}, "breach", None
    ),
    "few of all: queries are told first, of the group with fewest": (
        {"label": OF_RELEVANCE, "bases": [Basis("b", 9, 9, 9, 9), Basis("c", 8, 8, 8, 8)]},
        "insufficient", "few_queries: c",
    ),
    "few, of a metric without groups": (
        {"bases": [Basis("", 99, 29, 500, 50)]}, "insufficient", "few_queries"
    ),
    "few, and within": (
        {"value": 0.9, "bases": [Basis("b", 9, 9, 500, 50)]}, "insufficient", "few_queries: b"
    ),
    "minima of nothing": (
        {"said": settings({"min_queries": 0, "min_appearances": 0, "min_relevant": 0}),
         "label": OF_RELEVANCE, "bases": [Basis("b", 0, 0, 0, 0)]}, "breach", None
    ),
    "by the point": (
        {"said": settings(POINT), "doubt": Doubt(0.5, 0.9, p_noise=0.5)}, "breach", None
    ),
    "by the point, within": ({"said": settings(POINT), "value": 0.9}, "ok", None),
    "by the point, but few": (
        {"said": settings(POINT), "bases": [Basis("b", 9, 9, 500, 50)]},
        "insufficient", "few_queries: b",
    ),
    "no resamples": ({"said": settings(OFF), "doubt": Doubt()}, "breach", None),
    "another confidence": (
        {"said": settings({"confidence": 0.9}), "doubt": Doubt(0.5, 0.7, p_noise=0.06)},
        "breach", None,
    ),
    "another attribute": (
        {"said": settings(**{LOW: {"min": 0.8, "attributes": ["group"]}}), "attribute": "town"},
        "not_judged", None,
    ),
    "another slice": (
        {"said": settings(**{LOW: {"min": 0.8, "slices": ["all"]}}), "slice_name": "device"},
        "not_judged", None,
    ),
    "that slice": (
        {"said": settings(**{LOW: {"min": 0.8, "slices": ["device"]}}), "slice_name": "device"},
        "breach", None,
    ),
    "shut out": ({"value": None, "reason": f"{Reason.NOT_ON_TOP}: b"}, "breach", None),
    "shut out, of which nothing is known": (
        {"value": None, "reason": f"{Reason.NOT_ON_TOP}: b", "doubt": Doubt()}, "breach", None
    ),
    "shut out, as by chance": (
        {"value": None, "reason": f"{Reason.NOT_ON_TOP}: b", "doubt": Doubt(p_noise=0.06)},
        "insufficient", "noise",
    ),
    "shut out, by the point": (
        {"said": settings(POINT), "value": None, "reason": f"{Reason.NOT_ON_TOP}: b",
         "doubt": Doubt(p_noise=0.06)}, "breach", None,
    ),
    "shut out, of little": (
        {"value": None, "reason": f"{Reason.NOT_ON_TOP}: b", "bases": [Basis("b", 9, 9, 9, 9)]},
        "insufficient", "few_queries: b",
    ),
    "shut out, against a limit from above": (
        {"label": HIGH, "value": None, "reason": f"{Reason.NOT_ON_TOP}: b"}, "undefined", None
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_verdict(case: str) -> None:
    how, status, reason = CASES[case]
    rest = {name: value for name, value in how.items() if name not in ("value", "bases")}
    found = judged(how.get("value", 0.6), *how.get("bases", ()), **rest)
    assert (found.status, found.reason) == (status, reason)
    assert found.status in STATUSES
    assert (found.status == "insufficient") == (found.reason is not None)


@pytest.mark.parametrize(
    ("value", "doubt", "assured", "detectable", "times"),
    [
        (0.9, Doubt(0.85, 0.95), True, 0.8 - 0.05 * 1.4294, (0.05 * 1.4294 / 0.1) ** 2),
        (0.9, Doubt(0.79, 0.95), False, 0.8 - 0.11 * 1.4294, (0.11 * 1.4294 / 0.1) ** 2),
        # the fair end stops at 1, and says nothing of how far the interval reaches
        (0.99, Doubt(0.89, 1.0), True, 0.8 - 0.1 * 1.4294, (0.1 * 1.4294 / 0.19) ** 2),
        # nothing below 0 is a value
        (0.9, Doubt(0.1, 1.0), False, None, (0.8 * 1.4294 / 0.1) ** 2),
        # no number of lists tells a value from the limit on which it is
        (0.8, Doubt(0.75, 0.85), False, 0.8 - 0.05 * 1.4294, None),
        (0.8 + 1e-200, Doubt(0.75, 0.85), False, 0.8 - 0.05 * 1.4294, None),
        (0.9, Doubt(), None, None, None),
    ],
)
def test_how_sure_an_ok_is(
    value: float, doubt: Doubt, assured: bool | None, detectable: float | None, times: float | None
) -> None:
    found = judged(value, doubt=doubt)
    assert (found.status, found.assured) == ("ok", assured)
    assert found.detectable == (None if detectable is None else pytest.approx(detectable, abs=1e-4))
    assert found.times == (None if times is None else pytest.approx(times, rel=1e-3))


def test_every_cause_has_its_case() -> None:
    said = {reason.split(":")[0] for _, _, reason in CASES.values() if reason}
    # What is not told has a verdict; it is left out where it is published.  Days are of windows.
    assert said == {cause.value for cause in set(Cause) - {Cause.SUPPRESSED, Cause.FEW_DAYS}}
    assert all(cause.text for cause in Cause)


def served(
    lists: int, orders: tuple[str, ...], *, relevance: float = 1.0, device: str = "app"
) -> Rows:
    """Lists of their own queries, a letter per item, in one order after the other."""
    return [
        {
            "list_id": f"{device} {number}",
            "item_id": f"{number}.{rank}",
            "rank": rank,
            "relevance": relevance,
            "group": letter,
            "device": device,
        }
        for number in range(lists)
        for rank, letter in enumerate(orders[number % len(orders)], start=1)
    ]


def verdicts(
    rows: Rows, label: str, limit: dict[str, float], evidence: dict[str, Any] | None = None,
    **said: Any,
) -> dict[tuple[str, str], tuple[str, str | None]]:  # fmt: skip
    """Status and its reason, by slice."""
    quick = {"resamples": 300, "noise_draws": 300, **(evidence or {})}
    metrics = [parse_score(label).measure.label]
    found: Found = scored_file(
        rows, metrics=metrics, thresholds={label: limit}, evidence=quick, **said
    )
    return {
        key[:2]: (row["status"], row["status_reason"])
        for key, row in found.scores.items()
        if key[3] == label
    }


UNFAIR, MIXED = ("aaabbb", "aababb"), ("aaabbb", "bbaaba", "abbaba", "babaab")
WHOLE = ("all", "all")


def test_a_sure_breach() -> None:
    assert verdicts(served(60, UNFAIR), LOW, {"min": 0.8})[WHOLE] == ("breach", None)


@pytest.mark.slow
def test_too_little_for_a_breach() -> None:
    rows = served(20, UNFAIR)
    assert verdicts(rows, LOW, {"min": 0.8})[WHOLE] == ("insufficient", "few_queries: a")
    minima = {"min_queries": 20, "min_appearances": 61}
    found = verdicts(rows, LOW, {"min": 0.8}, minima)
    assert found[WHOLE] == ("insufficient", "few_appearances: a")
    # Requests of one query are one observation.
    one = [{**row, "query_id": row["item_id"][:1]} for row in served(200, UNFAIR)]
    assert verdicts(one, LOW, {"min": 0.8})[WHOLE] == ("insufficient", "few_queries: a")


@pytest.mark.slow
def test_a_difference_that_may_be_none() -> None:
    rows = served(60, MIXED)
    found = verdicts(rows, LOW, {"min": 0.999}, {"noise_draws": 0})
    assert found[WHOLE] == ("insufficient", "interval")
    assert verdicts(rows, LOW, {"min": 0.999}, POINT)[WHOLE] == ("breach", None)


def test_slices_stand_on_their_own() -> None:
    rows = [*served(60, UNFAIR), *served(10, UNFAIR, device="web")]
    found = verdicts(rows, LOW, {"min": 0.8}, slices=["device"])
    assert found[WHOLE] == found["device", "app"] == ("breach", None)
    assert found["device", "web"] == ("insufficient", "few_queries: a")


def test_a_group_that_is_absent_is_undefined() -> None:
    rows = [*served(60, UNFAIR), *served(60, ("aaaa",), device="web")]
    found = verdicts(rows, LOW, {"min": 0.8}, slices=["device"])
    assert found["device", "web"] == ("undefined", None)


def test_a_group_of_the_catalogue_that_is_never_shown_can_still_breach() -> None:
    label = "EXP(denominator=catalogue).MinMaxRatio"
    rows = served(60, UNFAIR)
    items = [{"item_id": row["item_id"], "group": "a"} for row in rows]
    for row in rows:
        del row["group"]
    shown = scored_file(
        rows,
        items=[*items, {"item_id": "never", "group": "b"}],
        metrics=["EXP(denominator=catalogue)"],
        thresholds={label: {"min": 0.8}},
        evidence={"resamples": 300, "noise_draws": 300},
    ).score(label)
    assert (shown["value"], shown["worst_group"]) == (0.0, "b")
    assert (shown["lower"], shown["upper"]) == (0.0, 0.0)
    assert (shown["status"], shown["status_reason"]) == ("breach", None)


@pytest.mark.slow
def test_a_group_that_is_kept_off_the_top() -> None:
    label = "Skew@3.MinSkew"
    assert verdicts(served(60, ("aaabbb",)), label, {"min": -1})[WHOLE] == ("breach", None)
    few = verdicts(served(20, ("aaabbb",)), label, {"min": -1})
    assert few[WHOLE] == ("insufficient", "few_queries: a")


def test_few_relevant_rows() -> None:
    rows = served(60, UNFAIR)
    for row in rows:
        number, rank = map(int, row["item_id"].split("."))
        row["relevance"] = float(row["group"] == "a" or (rank == 6 and number < 20))
    found = verdicts(rows, OF_RELEVANCE, {"min": 0.8})
    assert found[WHOLE] == ("insufficient", "few_relevant: b")


def test_an_undefined_ratio_in_many_resamples() -> None:
    # One query holds all that is relevant of group b: 37 % of the resamples have none of it.
    rows = served(40, ("aaabbb", "bbbaaa"))
    for row in rows:
        row["relevance"] = float(row["item_id"] in ("0.1", "0.4", "2.1"))
    label = "EXPU.MinMaxRatio"
    minima = {"min_relevant": 0, "noise_draws": 0}
    assert verdicts(rows, label, {"min": 0.9}, minima)[WHOLE] == ("insufficient", "no_interval")


@pytest.mark.slow
def test_a_score_that_is_unfair_in_any_order() -> None:
    # A group with a fifth of the rows has a fifth of the weight, wherever it stands.
    orders = tuple("".join("b" if at == place else "a" for at in range(5)) for place in range(5))
    rows, limit = served(200, orders), {"min": 0.8}
    found = {
        label: verdicts(rows, f"{label}(decay=0.75).MinMaxRatio", limit)[WHOLE]
        for label in ("ERBE", "ERBP")
    }
    assert found == {"ERBE": ("composition", None), "ERBP": ("ok", None)}


@pytest.mark.slow
def test_a_small_group_far_down_long_lists_may_be_there_by_chance() -> None:
    """A random order keeps 3 of 1,000 rows off the top 10 of 34 lists with probability 0.36."""
    found = {}
    for length in (100, 1000):
        rows = served(34, ("a" * 10 + "b" * 3 + "a" * (length - 13),))
        found[length] = verdicts(rows, "Skew@10.MinSkew", {"min": -1.0})[WHOLE]
    assert found == {100: ("breach", None), 1000: ("insufficient", "noise")}
