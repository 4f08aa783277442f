"""Ranking quality as other libraries have it, and where they differ."""

import json
from collections.abc import Sequence
from math import log2

import numpy as np
import pytest
from places import GOLDEN
from quality_lists import near, of, reason, shown
from rankings import Row, batch_value, per_list, rankings

from metrics import Reason

PUBLISHED = json.loads((GOLDEN / "quality.json").read_text("utf-8"))


def golden_rows(scale: float = PUBLISHED["scale"]) -> list[Row]:
    return shown(*([grade / scale for grade in grades] for grades in PUBLISHED["lists"].values()))


@pytest.mark.parametrize(
    ("library", "label"),
    [(name, label) for name in ("trec_eval", "ranx", "jurity") for label in PUBLISHED[name]],
)
def test_libraries_agree_on_every_list(library: str, label: str) -> None:
    found = per_list(label, rankings(golden_rows(), relevant_from=PUBLISHED["relevant_from"])).value
    held = PUBLISHED[library][label]
    for name, ours, theirs in zip(PUBLISHED["lists"], found, held, strict=True):
        if np.isnan(ours):
            # trec_eval and ranx count a list without relevant items as 0; Jurity leaves it out.
            assert theirs == (None if library == "jurity" else 0.0), name
        else:
            assert ours == pytest.approx(theirs, rel=1e-12, abs=0), name


@pytest.mark.parametrize("label", PUBLISHED["jurity means"])
def test_jurity_means(label: str) -> None:
    found = batch_value(per_list(label, rankings(golden_rows())))
    assert found == pytest.approx(PUBLISHED["jurity means"][label], rel=1e-12)


def test_exponential_gain_depends_on_the_scale_of_relevance() -> None:
    label = "nDCG(gain=exp)@10"
    theirs = np.array(PUBLISHED["ranx grades"][label])
    of_grades = per_list(label, rankings(golden_rows(scale=1))).value
    of_shares = per_list(label, rankings(golden_rows())).value
    judged = ~np.isnan(of_shares)
    assert of_grades[judged] == pytest.approx(theirs[judged], rel=1e-12)
    # Grades 0 to 4 and relevance 0 to 1 are not the same question: 2^4 - 1 is 15, not 4 times 1.
    assert np.abs(of_shares[judged] - theirs[judged]).max() > 0.01
    linear = per_list("nDCG@10", rankings(golden_rows(scale=1))).value
    assert linear == near(per_list("nDCG@10", rankings(golden_rows())).value)


def test_an_unjudged_item_is_no_irrelevant_item() -> None:
    grades = PUBLISHED["unjudged"]["grades"]
    scale = PUBLISHED["scale"]
    rows = shown([None if grade is None else grade / scale for grade in grades])
    for label, theirs in PUBLISHED["unjudged"]["trec_eval"].items():
        # trec_eval takes it as not relevant; nobody knows that, so there is no value here.
        grouped = [{**row, "group": "A"} for row in rows]
        assert reason(label, grouped) == Reason.RELEVANCE_MISSING
        assert of(label, [(grade or 0) / scale for grade in grades]) == near(theirs)


@pytest.mark.parametrize("label", PUBLISHED["ctr"]["jurity"])
def test_jurity_click_through(label: str) -> None:
    found = batch_value(per_list(label, rankings(PUBLISHED["ctr"]["rows"])))
    assert found == pytest.approx(PUBLISHED["ctr"]["jurity"][label], rel=1e-12)


def test_propensities_are_not_made_up() -> None:
    bare = [
        {name: value for name, value in row.items() if name != "propensity"}
        for row in PUBLISHED["ctr"]["rows"]
    ]
    # Jurity then assumes that each of its distinct items was equally likely to be shown.
    items = len({row["item_id"] for row in bare if "click" in row})
    uniform = [{**row, "propensity": 1 / items} for row in bare]
    found = batch_value(per_list("CTR(method=ips)", rankings(uniform)))
    assert found == near(PUBLISHED["ctr"]["ips without propensities"])
    grouped = [{**row, "group": "A"} for row in bare]
    assert reason("CTR(method=ips)", grouped) == Reason.PROPENSITY_MISSING


def printed_ndcg(relevance: Sequence[float], k: int) -> float:
    """nDCG with the ideal as it can be read in print: of the items that stand in the first k."""
    top = relevance[:k]
    over = sum(value / log2(rank + 1) for rank, value in enumerate(top, 1))
    under = sum(value / log2(rank + 1) for rank, value in enumerate(sorted(top, reverse=True), 1))
    return over / under if under else 0.0


def test_the_ideal_knows_the_items_below_the_cut_off() -> None:
    hidden = [0.5, 0.0, 1.0]
    assert printed_ndcg(hidden, 2) == 1.0
    assert of("nDCG@2", hidden) == near(0.5 / (1 / log2(2) + 0.5 / log2(3)))
    theirs = PUBLISHED["trec_eval"]["nDCG@5"]
    found = per_list("nDCG@5", rankings(golden_rows())).value
    gaps = [
        abs(printed_ndcg(grades, 5) - held)
        for grades, held in zip(PUBLISHED["lists"].values(), theirs, strict=True)
    ]
    assert max(gaps) > 0.1
    assert np.nan_to_num(found) == pytest.approx(theirs, rel=1e-12)
