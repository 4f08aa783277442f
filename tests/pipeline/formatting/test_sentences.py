"""What a score says: of every declared score, in digits that tell its numbers apart."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metrics import METRICS, ScoreName, parse_score
from metrics.aggregations import Unit
from pipeline.formatting.apart import texts_apart
from pipeline.formatting.batches import batch_text
from pipeline.formatting.sentences import Ends, Group, ends_of, score_sentence, score_title

SCORES = [score for metric in METRICS for score in metric.usual.scores()]
WOMEN, MEN = Group("F", "women"), Group("M", "men")


@pytest.mark.parametrize("score", SCORES, ids=lambda score: score.label)
def test_every_score_makes_a_sentence(score: ScoreName) -> None:
    said = score_sentence(score, "VALUE", Ends(WOMEN, MEN))
    assert said.count("VALUE") == 1
    assert said[0].isupper() or said.startswith("VALUE") or "nDCG" in said
    assert not re.search(r"[{}]|  |\.$", said)
    assert ("women" in said.lower()) or score.aggregation is None or "{low}" not in score.said
    alone = score_sentence(score, "VALUE", Ends(None, None))
    assert "None" not in alone
    assert "VALUE" in alone
    assert score_title(score, "gender", "all requests").endswith(" of gender, all requests")


def test_sentences_name_the_groups_that_are_low_and_high() -> None:
    ratio, gap = parse_score("EXP@10.MinMaxRatio"), parse_score("ARP.MaxMinDiff")
    ends = Ends(WOMEN, MEN)
    assert score_sentence(ratio, "72%", ends, still=True) == (
        "Women still got 72% of the exposure per item in the first 10 that men got"
    )
    assert score_sentence(gap, "0.112", ends) == (
        "The win rate in mixed pairs of women was 0.112 below that of men"
    )
    assert score_sentence(parse_score("EXP.MaxMinRatio"), "1.4 times", ends) == (
        "Men got 1.4 times the exposure per item that women got"
    )
    raw = Ends(Group("iphone", "iphone"), Group("{low}", "{low}"))
    assert score_sentence(parse_score("DisparateImpact@10.Min"), "50%", raw).startswith(
        "iphone had"
    )
    assert "that {low} got" in score_sentence(parse_score("EXP.MinMaxRatio"), "1%", raw)


def test_who_is_low_depends_on_what_is_good() -> None:
    exposure, missed = parse_score("EXP.MinMaxRatio"), parse_score("FNR@10.MinMaxRatio")
    assert ends_of(exposure, WOMEN, MEN, top_is_good=True) == Ends(WOMEN, MEN)
    assert ends_of(exposure, WOMEN, MEN, top_is_good=False) == Ends(MEN, WOMEN)
    assert ends_of(missed, WOMEN, MEN, top_is_good=True) == Ends(MEN, WOMEN)
    assert ends_of(exposure, WOMEN, None, top_is_good=True) == Ends(WOMEN, None)


VALUES = st.one_of(
    st.floats(0, 2, allow_subnormal=False), st.sampled_from([0.8, 0.79999, 0.7996, 1.0, 0.99951])
)


@given(st.lists(VALUES, min_size=2, max_size=5), st.sampled_from(["number", "percent", "times"]))
def test_what_differs_reads_differently(values: list[float], unit: Unit) -> None:
    texts = texts_apart({str(at): value for at, value in enumerate(values)}, unit, beside=1.0)
    for at, value in enumerate(values):
        for other, against in enumerate(values):
            if value == against:
                assert texts[str(at)] == texts[str(other)]
            elif abs(value - against) > 1e-6 * max(value, against):
                assert texts[str(at)] != texts[str(other)]
        if unit == "percent" and abs(value - 1.0) > 1e-6:
            assert texts[str(at)] not in ("100%", "100.0%")


def test_digits_are_those_that_are_needed() -> None:
    assert texts_apart({"value": 0.7195, "limit": 0.8, "none": None}, "percent", beside=1.0) == {
        "value": "72%",
        "limit": "80%",
    }
    assert texts_apart({"value": 0.79999, "limit": 0.8}) == {"value": "0.79999", "limit": "0.800"}
    assert texts_apart({"one": 1.234, "small": 0.0066}, "percent") == {
        "one": "123%",
        "small": "0.66%",
    }


def test_batches_read_as_dates() -> None:
    assert batch_text("2026-01-05", beside="2026-12-31") == "5 January"
    assert batch_text("2026-01-05", beside="2025-12-31") == "5 January 2026"
    assert batch_text("2026-13-05") == "2026-13-05"
    assert batch_text("run.7", beside="2026-01-01") == "run.7"
