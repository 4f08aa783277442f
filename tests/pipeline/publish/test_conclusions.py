"""Conclusions: one per batch, whose sentences say what the scores of the batch say."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from stores import Rows, audit, deliver, lists, random_lists, ranking, read

from pipeline.publish.conclusions.choice import STATES, choice_of
from pipeline.publish.conclusions.conclude import _CHIPS
from pipeline.publish.conclusions.facts import facts_of
from pipeline.publish.conclusions.reading import Batch
from pipeline.publish.conclusions.sentences import _NEED_A_SCORE, _SENTENCES, About, said_of
from pipeline.publish.copy import publish
from pipeline.runs.batches import backfill
from pipeline.scores.score_texts import Names, ScoreTexts
from pipeline.scores.verdicts import Cause
from pipeline.settings.audit import Settings
from pipeline.settings.value_labels import ValueLabels
from pipeline.store.paths import store_of

FAIR = lists(ranking("q1", "FMMF"), ranking("q2", "MFFM"))
WOMEN_LAST = lists(ranking("q1", "MMFF"), ranking("q2", "MMFF"))
WORST = lists(ranking("q1", "MMMFFF"), ranking("q2", "MMMFFF"))
MEN_LAST = lists(ranking("q1", "FFMM"), ranking("q2", "FFMM"))
NIGHTS: dict[str, Rows | str] = {
    "2026-01-01": FAIR,
    "2026-01-02": FAIR,
    "2026-01-03": FAIR,
    "2026-01-04": WORST,
    "2026-01-05": WOMEN_LAST,
    "2026-01-06": "not,a,log\n1,2,3\n",
    "2026-01-08": MEN_LAST,
    "2026-01-09": FAIR,
}
LABELS = {"gender": {"F": "women", "M": "men"}}


def concluded(settings: Settings) -> dict[str, dict[str, Any]]:
    """The conclusions of a published copy, by batch."""
    rows = read(store_of(settings).dashboard, "FROM v_conclusions")
    return {row["batch"]: row | {"facts": json.loads(row["facts"])} for row in rows}


def facts(row: dict[str, Any]) -> dict[str, str]:
    """The answers of a conclusion by their headings."""
    return {fact["name"]: f"{fact['text']} {fact['more']}".strip() for fact in row["facts"]}


def audited(folder: Path, nights: dict[str, Rows | str] = NIGHTS, **said: Any) -> Settings:
    """An audit of some nights, published."""
    found = audit(
        folder,
        metrics=["EXP"],
        labels=LABELS,
        schedule={"start": min(nights), "end": max(nights)},
        gate={"least": 100},
        **said,
    )
    for batch, rows in nights.items():
        if isinstance(rows, str):
            path = folder / "logs" / batch / "part.csv"
            path.parent.mkdir(parents=True)
            path.write_text(rows, encoding="utf-8")
        else:
            deliver(folder, rows, batch)
    for _ in backfill(found, sorted(nights)):
        pass
    publish(found)
    return found


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Conclusions of nights with a threshold."""
    folder = tmp_path_factory.mktemp("nights")
    return concluded(audited(folder, thresholds={"EXP.MinMaxRatio": {"min": 0.8}}))


def test_every_night_has_a_conclusion(nights: dict[str, dict[str, Any]]) -> None:
    states = {batch: row["state"] for batch, row in nights.items()}
    assert states == {
        "2026-01-01": "calm",
        "2026-01-02": "calm",
        "2026-01-03": "calm",
        "2026-01-04": "new_breach",
        "2026-01-05": "breach",
        "2026-01-06": "refused",
        "2026-01-07": "missing",
        "2026-01-08": "breach",
        "2026-01-09": "calm",
    }
    for batch, row in nights.items():
        assert row["title"].startswith(row["sign"])
        assert row["shown_batch"] == {
            "2026-01-06": "2026-01-05",
            "2026-01-07": "2026-01-05",
        }.get(batch, batch)


def test_a_breach_says_who_how_much_and_since_when(nights: dict[str, dict[str, Any]]) -> None:
    # Of three men above three women: (1/2 + 1/log2(5)...) by hand.
    new, old = nights["2026-01-04"], nights["2026-01-05"]
    assert new["word"] == "New breach"
    assert new["sentence"] == "Women got 55% of the exposure per item that men got."
    assert new["emphasis"] == "55%"
    assert new["second"] == "The limit is 80%."
    assert new["note"] == "1 of 1 judged scores is beyond its limit"
    assert (new["loser"], new["winner"]) == ("F", "M")
    assert facts(new)["Since"] == "This day It is new; the 3 days before had none."
    assert old["word"] == "Breach, day 2"
    assert old["sentence"] == "Women still got 57% of the exposure per item that men got."
    assert old["second"].startswith("Since 4 January; the worst day was 4 January with 55%.")
    assert (old["since"], old["worst_batch"]) == ("2026-01-04", "2026-01-04")
    assert old["acknowledge"] == f"evenrank alerts ack {old['alert']}"
    assert old["explain"].endswith("--score EXP.MinMaxRatio --attribute gender")


def test_nobody_still_loses_who_did_not(nights: dict[str, dict[str, Any]]) -> None:
    row = nights["2026-01-08"]
    assert row["sentence"] == "Men got 57% of the exposure per item that women got."
    assert "Before, it was women who got least." in row["second"]


def test_a_reversal_names_both_groups() -> None:
    row = judged("breach", is_new=True, former_loser="F", worst_group="M", best_group="F")
    row |= {"value": 0.7, "lower": None, "upper": None, "threshold_min": 0.8}
    row |= {"threshold_max": None, "opened": "2026-01-05"}
    batch = Batch("2026-01-05", "done", True, "", {"scores": 5}, scores=[row])
    names = Names(ValueLabels(LABELS), top_is_good=True)
    about = About(batch, choice_of(batch), ScoreTexts(row, names), {})
    assert said_of(about) == (
        "Now men got 70% of the exposure per item that women got.",
        "Until then it was women who got least. The limit is 80%: a breach.",
        "70%",
    )


def test_calm_and_missing_nights(nights: dict[str, dict[str, Any]]) -> None:
    calm, refused, missing = (nights[f"2026-01-0{day}"] for day in (9, 6, 7))
    assert calm["sentence"] == "No score is beyond its limit."
    assert "got 100% of" in calm["second"] or "was 100%" in calm["second"]
    assert facts(calm)["Last breach"] == "8 January 1 score beyond a limit."
    assert refused["sentence"] == "This day has no scores: its data broke the contract."
    assert refused["second"].endswith("The page shows 5 January.")
    assert missing["sentence"] == "Nobody has run 2026-01-07."


def test_sentences_agree_with_scores(tmp_path: Path) -> None:
    """Of random nights, every number of a sentence is that of the history, rounded once."""
    nights: dict[str, Rows | str] = {
        f"2026-02-{day:02}": random_lists(day, count=3) for day in range(1, 4)
    }
    settings = audited(tmp_path, nights, thresholds={"EXP.MinMaxRatio": {"min": 0.9}})
    rows = concluded(settings)
    scores = {
        row["batch"]: row
        for row in read(
            store_of(settings).dashboard,
            "FROM v_history WHERE slice = 'all' AND label = 'EXP.MinMaxRatio'",
        )
    }
    for batch, row in rows.items():
        score = scores[batch]
        assert row["value"] == score["judged_value"]
        assert row["state"] in ("calm", "breach", "new_breach", "reversal")
        assert (row["state"] == "calm") == (score["status"] == "ok")
        if row["emphasis"]:
            shown = float(row["emphasis"].rstrip("%")) / 100
            assert abs(shown - score["judged_value"]) <= 0.005
            assert row["emphasis"] in row["sentence"]


def test_scores_of_an_earlier_attempt_say_so(tmp_path: Path) -> None:
    nights: dict[str, Rows | str] = {"2026-01-04": WORST}
    settings = audited(tmp_path, nights, thresholds={"EXP.MinMaxRatio": {"min": 0.8}})
    (tmp_path / "logs" / "2026-01-04" / "part.csv").write_text("not,a,log\n1,2,3\n", "utf-8")
    for _ in backfill(settings, ["2026-01-04"]):
        pass
    row = concluded(settings)["2026-01-04"]
    assert row["state"] == "new_breach"
    assert row["second"].endswith("The last attempt was refused; this is of the one before.")
    assert facts(row)["Last attempt"].startswith("refused")


def test_without_limits_the_worst_group_is_still_named(tmp_path: Path) -> None:
    nothing = [*ranking("q1", "MMMF"), *ranking("q2", "MMMF")]
    settings = audit(tmp_path, metrics=["EXP", "EXP@3"], labels=LABELS)
    deliver(tmp_path, nothing)
    for _ in backfill(settings, ["2026-01-05"]):
        pass
    publish(settings)
    row = concluded(settings)["2026-01-05"]
    assert row["state"] == "no_limits"
    assert row["sentence"].startswith("Women got 0% of the exposure per item in the first 3")
    assert row["note"] == "No limit is set, so nothing can be a breach."


def test_a_new_breach_speaks_before_an_old_one(tmp_path: Path) -> None:
    def night(genders: str, regions: str) -> Rows:
        each = [ranking(f"q{at}", genders, region=[*regions]) for at in range(2)]
        return lists(*each)

    even = lists(ranking("q1", "FMMF", region=[*"NSSN"]), ranking("q2", "MFFM", region=[*"SNNS"]))
    nights: dict[str, Rows | str] = {
        "2026-01-01": even,
        "2026-01-02": [
            *ranking("q1", "MMFF", region=[*"NSSN"]),
            *ranking("q2", "MMFF", region=[*"SNNS"]),
        ],
        "2026-01-03": night("MMFF", "NNSS"),
    }
    settings = audited(
        tmp_path,
        nights,
        attributes=["gender", "region"],
        thresholds={"EXP.MinMaxRatio": {"min": 0.8}},
    )
    found = concluded(settings)
    assert (found["2026-01-02"]["state"], found["2026-01-02"]["loser"]) == ("new_breach", "F")
    both = found["2026-01-03"]
    assert (both["state"], both["attribute"], both["loser"]) == ("new_breach", "region", "S")
    assert facts(both)["Also"].startswith("Exposure ratio, gender: 0.5")


def test_gated_days_are_not_days_without_a_breach() -> None:
    row = judged("breach", is_new=True, worst_group="F", best_group="M", alert="a")
    row |= {"value": 0.7, "lower": None, "upper": None, "threshold_min": 0.8}
    row |= {"threshold_max": None, "opened": "2026-01-05"}
    counts = {"scores": 5, "lists": 1, "rows_accepted": 1, "breach": 0}
    gated = Batch("2026-01-04", "done", True, "", counts | {"ok": 0})
    fine = [Batch(f"2026-01-0{at}", "done", True, "", counts | {"ok": 3}) for at in (3, 2)]
    names = Names(ValueLabels(LABELS), top_is_good=True)
    for before, said in (([gated, *fine], "It is new."), (fine, "It is new; the 2 days before")):
        batch = Batch("2026-01-05", "done", True, "", counts, scores=[row], before=before)
        about = About(batch, choice_of(batch), ScoreTexts(row, names), {})
        first, *_ = facts_of(about, names)
        assert first["more"].startswith(said)


def test_other_labels_make_other_sentences(tmp_path: Path) -> None:
    nights = {"2026-01-04": WORST}
    settings = audited(tmp_path, nights, thresholds={"EXP.MinMaxRatio": {"min": 0.8}})
    other = settings.model_copy(update={"labels": {"gender": {"F": "female sellers"}}})
    publish(other)
    said = concluded(other)["2026-01-04"]["sentence"]
    assert said == "Female sellers got 55% of the exposure per item that M got."


def test_every_state_has_words() -> None:
    attempted = set(STATES) - {"missing"}
    assert attempted == set(_CHIPS) == set(_SENTENCES)
    assert set(_SENTENCES) >= _NEED_A_SCORE


def judged(status: str, **more: Any) -> dict[str, Any]:
    row = {"status": status, "slice": "all", "slice_value": "all", "attribute": "gender"}
    return {**row, "label": "EXP.MinMaxRatio", "is_new": None, "former_loser": None, **more}


def about_of(row: dict[str, Any], alerts: Sequence[dict[str, Any]] = ()) -> About:
    limits = {"threshold_min": 0.8, "threshold_max": None, "reason": None, "opened": None}
    ends = {"worst_group": "F", "best_group": "M", "lower": 0.6, "upper": 0.79, "value": 0.7}
    row = {"metric": "EXP", "aggregation": "MinMaxRatio", **limits, **ends, **row}
    counts = {"scores": 5, "insufficient": 0}
    batch = Batch("2026-01-05", "done", True, "", counts, scores=[row], alerts=[*alerts])
    choice = choice_of(batch)
    score = ScoreTexts(choice.score, NAMES) if choice.score else None
    return About(batch, choice, score, {})


NAMES = Names(ValueLabels(LABELS), top_is_good=True)
SAID = "Women got 70% of the exposure per item that men got"


@pytest.mark.parametrize(
    ("reason", "sentence", "second"),
    [
        (Cause.INTERVAL, f"{SAID}, which may be within the limit.", "it lies between 60% and 79%"),
        (Cause.NOISE, f"{SAID}, as chance alone often gives.", "Too few lists to tell it"),
        (Cause.NO_INTERVAL, f"{SAID}, on too little data to judge.", "The limit is 80%."),
        (Cause.FEW_QUERIES, f"{SAID}, on too little data to judge.", "Few queries. The limit"),
        ("few_queries: F", f"{SAID}, on too little data to judge.", "Women: few queries."),
        ("missing_group: F", "Not one row of women came; usually there are some.", "No score of"),
    ],
)
def test_what_is_unsure_says_why(reason: str, sentence: str, second: str) -> None:
    said = said_of(about_of(judged("insufficient", status_reason=str(reason))))
    assert said.sentence == sentence
    assert second in said.second


def test_nothing_is_still_so_that_nobody_knows_of() -> None:
    """Where alerts are not told, a breach may be the first."""
    about = about_of(judged("breach"))
    assert (about.choice.state, said_of(about).sentence) == ("breach", f"{SAID}.")


def test_a_breach_of_several_days_is_no_calm_day() -> None:
    series = {"slice": "all", "slice_value": "all", "attribute": "gender", "metric": "EXP"}
    alert = {**series, "aggregation": "MinMaxRatio", "kind": "window", "alert": "abc"}
    alert |= {"opened": "2026-01-04", "label": "EXP.MinMaxRatio", "text": "Over 7 days: 72%.\nx"}
    for last_seen, second in (
        ("2026-01-05", "Over 7 days: 72%."),
        ("2026-01-07", "EXP.MinMaxRatio, since 4 January."),
    ):
        about = about_of(judged("ok"), [{**alert, "last_seen": last_seen}])
        assert about.choice.state == "window"
        said = said_of(about)
        assert said.sentence == "This day alone is no breach, but several days together are."
        assert said.second == second
    assert about_of(judged("breach"), [{**alert, "last_seen": "x"}]).choice.state == "breach"


@pytest.mark.parametrize(
    ("scores", "state"),
    [
        ([judged("ok"), judged("breach", is_new=True)], "new_breach"),
        ([judged("ok"), judged("breach", is_new=False)], "breach"),
        ([judged("breach", is_new=None)], "breach"),
        ([judged("breach", is_new=True, former_loser="F")], "reversal"),
        ([judged("gated"), judged("gated")], "gated"),
        ([judged("ok"), judged("composition")], "composition"),
        ([judged("ok"), judged("insufficient")], "insufficient"),
        ([judged("insufficient"), judged("composition")], "composition"),
        ([judged("ok"), judged("insufficient", slice="device")], "calm"),
        ([judged("undefined")], "undefined"),
        ([judged("insufficient", slice="device")], "insufficient"),
        ([judged("ok", slice="device")], "calm"),
        ([], "no_limits"),
    ],
)
def test_the_worst_state_speaks(scores: list[dict[str, Any]], state: str) -> None:
    batch = Batch("2026-01-05", "done", True, "", {"scores": 5}, scores=scores)
    assert choice_of(batch).state == state


def test_batches_without_scores_have_their_own_states() -> None:
    for state in ("refused", "no_data", "failed"):
        assert choice_of(Batch("x", state, False, "", {"scores": 0})).state == state
    assert choice_of(Batch("x", "done", True, "", {"scores": 0})).state == "withheld"
