"""What a check says of the verdicts on one score, without Dagster running anything."""

from typing import Any

import pytest
from histories import score

from assets.alert_checks import finding
from assets.score_checks import verdict
from metrics import parse_score
from pipeline.settings.sections import Threshold

LIMIT = Threshold(min=0.8)
SCORE = parse_score("EXP.MinMaxRatio")
NOTHING = dict.fromkeys(("lower", "upper", "expected", "p_noise", "status_reason"))


def row(value: float | None, **said: Any) -> dict[str, Any]:
    return NOTHING | score(value, **said)


def test_composition_is_told_plainly_and_fails_nothing() -> None:
    found = verdict(SCORE, LIMIT, "d", [row(0.9), row(0.5, status="composition")])
    assert found.passed
    assert found.description == (
        "1 of 2 are at least 0.8; 1 are not, nor would lists in random order be (gender): what "
        "groups differ in is not their order."
    )
    assert (found.metadata["composition"], found.metadata["breaches"]) == (1, 0)


@pytest.mark.parametrize("status", ["breach", "insufficient", "undefined"])
def test_what_is_not_shown_to_be_fair_fails(status: str) -> None:
    reason = {"status": status, "status_reason": "interval", "reason": None}
    found = verdict(SCORE, LIMIT, "d", [row(0.9), row(0.5, **reason)])
    assert not found.passed


def test_breaches_are_shown_as_judged_the_worst_first() -> None:
    judged = {"judged_value": 0.7, "judged_groups": '["F", "M"]', "judged_worst_group": "F"}
    thin = {"worst_group": "X", "thin_groups": '["X"]', "expected": 0.93, "p_noise": 0.01}
    found = verdict(SCORE, LIMIT, "d", [row(0.1, **judged, **thin), row(0.6)])
    first, second = (record.data for record in found.metadata["breaching"].records)
    assert (first["value"], second["value"]) == (0.6, 0.7)
    assert (second["worst_group"], second["not_judged"]) == ("F", "X")
    assert (second["expected"], second["p_noise"]) == (0.93, 0.01)


def test_how_sure_an_ok_is_stands_beside_it() -> None:
    sure = {"lower": 0.79, "upper": 0.86, "assured": False, "detectable": 0.76}
    found = verdict(SCORE, LIMIT, "d", [row(0.82, **sure, lists_needed=12_345)])
    (record,) = found.metadata["ok"].records
    assert record.data["certainty"] == (
        "Not assured: 0.790 to 0.860; a value below 0.760 would have been noticed in 4 of 5 such "
        "batches; about 12,000 lists would settle it."
    )


def test_an_attribute_without_groups_is_never_fine() -> None:
    found = verdict(SCORE, LIMIT, "d", [row(0.9)], groupless={"gender", "size"})
    assert not found.passed
    assert found.description.startswith("gender has no group but unknown. 1 of 1 are at least 0.8")


def test_a_gate_whose_alert_may_not_be_told_fails_the_check_all_the_same() -> None:
    assert finding("d", []).passed
    closed = finding("d", [], gated=True)
    assert (closed.passed, closed.description) == (False, "A data gate is closed.")


def test_slices_alone_need_a_value_somewhere() -> None:
    empty = row(None, slice="device", slice_value="phone")
    other = row(0.9, slice="device", slice_value="watch")
    assert not verdict(SCORE, LIMIT, "d", [empty]).passed
    assert verdict(SCORE, LIMIT, "d", [empty, other]).passed
    assert not verdict(SCORE, LIMIT, "d", [empty, other | {"attribute": "size"}]).passed
    # Where the whole batch has a value, slices may lack one.
    assert verdict(SCORE, LIMIT, "d", [row(0.9), empty]).passed
    few = row(0.9, status="insufficient", slice="device", slice_value="watch")
    assert verdict(SCORE, LIMIT, "d", [few]).passed
