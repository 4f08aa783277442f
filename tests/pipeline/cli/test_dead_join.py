"""Nights on which nothing was judged, from delivered files to exit codes: none of them is quiet."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command import evenrank
from histories import NIGHTS, Given, put, score, small_audit, write
from stores import DAY, Rows, deliver, in_history, ranking, read, write_csv, write_settings

from pipeline.monitoring.assess import assess
from pipeline.monitoring.unjudged import unjudged
from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings
from pipeline.store.paths import store_of

THRESHOLD = "thresholds: {EXP.MinMaxRatio: {min: 0.1}}\n"
SETTINGS = "attributes: [gender]\nmetrics: [EXP]\n"
ITEMS = "items: items.csv\n"
BREACH = ("--fail-on", "breach")


def nightly(folder: Path, text: str = "", judged: str = THRESHOLD) -> Path:
    """Settings of an audit whose groups come from an item table of the items 0 to 99."""
    rows = [{"item_id": str(at), "gender": "FM"[at % 2]} for at in range(100)]
    write_csv(folder / "items.csv", rows)
    return write_settings(folder, SETTINGS + ITEMS + judged + text)


def shown(items: Sequence[str]) -> Rows:
    """Lists of two, without groups."""
    rows = [
        row
        for at in range(0, len(items), 2)
        for row in ranking(f"l{at}", "--", item_id=list(items[at : at + 2]))
    ]
    return [{name: value for name, value in row.items() if name != "gender"} for row in rows]


def joining(percent: int, other: str = "{}.0") -> Rows:
    """A hundred rows, of which so many join."""
    return shown([str(at) if at < percent else other.format(at) for at in range(100)])


def run(config: Path, *more: str, batch: str = DAY) -> Any:
    return evenrank("run", "--batch", batch, *more, "-c", config)


def document(result: Any) -> Any:
    return json.loads(result.stdout.splitlines()[-1])


def gates(config: Path) -> Rows:
    return in_history(load_settings(config), "SELECT batch, gate, value, passed FROM gates")


# -- item ids that join nothing


def test_the_first_night_of_all_on_which_nothing_joins(tmp_path: Path) -> None:
    config, summary = nightly(tmp_path), tmp_path / "summary.json"
    deliver(tmp_path, joining(0))
    result = run(config, *BREACH, "--json", "--summary", str(summary))
    assert result.exit_code == 5
    reason = (
        f"{DAY}: the data gate joined is closed: 100 of 100 rows name an item that the item table "
        "does not hold: 0.0% join, the limit is 50%; ids differ in zero decimals (3.0 for 3)"
    )
    assert f"evenrank: exit code 5: {reason}\n" in result.stderr
    assert document(result)["failed_on"] == [reason]
    assert document(result)["gated"] is True
    assert json.loads(summary.read_text())["failed_on"] == [reason]
    settings = load_settings(config)
    statuses = "SELECT DISTINCT status, status_reason FROM fairness_history"
    assert in_history(settings, f"{statuses} WHERE aggregation = 'MinMaxRatio'") == [
        {"status": "gated", "status_reason": "gate_joined"}
    ]
    dashboard = store_of(settings).dashboard
    (told,) = read(dashboard, "SELECT gate, passed, value, usual, baseline FROM v_gates")
    assert told == {"gate": "joined", "passed": False, "value": 0, "usual": 1, "baseline": 0}
    (batch,) = read(dashboard, "SELECT rows_joined, ids_differ_in, gated FROM v_batches")
    assert batch == {"rows_joined": 0, "ids_differ_in": "decimals", "gated": 1}
    (alert,) = read(dashboard, "SELECT kind, metric, text FROM v_alerts")
    assert (alert["kind"], alert["metric"]) == ("gate", "joined")
    assert "run the batch again" in alert["text"]
    assert "mark a release" not in alert["text"]


def test_what_a_person_sees_of_it(tmp_path: Path) -> None:
    config = nightly(tmp_path)
    deliver(tmp_path, joining(0))
    text = " ".join(run(config).stdout.split())
    assert "gated" in text
    assert "100 of 100 rows name an item that items.csv does not hold" in text
    assert "Gate joined: 100 of 100 rows" in text
    assert "3.0 for 3" in text
    # What was found before is found again where nothing has changed.
    again = run(config, *BREACH, "--log")
    assert again.exit_code == 5
    (failed,) = (line for line in again.stderr.splitlines() if line.startswith("evenrank failed"))
    assert 'exit_code=5 message="2026-01-05: the data gate joined is closed' in failed
    quiet = run(config, *BREACH, "-q")
    assert (quiet.exit_code, quiet.stdout) == (5, "")
    assert "exit code 5" in quiet.stderr
    # Mended, it is judged.
    deliver(tmp_path, joining(100))
    assert run(config, *BREACH).exit_code == 0
    assert gates(config) == [{"batch": DAY, "gate": "joined", "value": 1.0, "passed": True}]


@pytest.mark.parametrize(
    ("percent", "text", "code"),
    [
        (49, "", 5),
        (50, "", 0),
        (51, "", 0),
        (49, "gate: {joined: null}\n", 0),
        (49, "gate: {joined: 0.49}\n", 0),
        (99, "gate: {joined: 1}\n", 5),
    ],
)
def test_a_join_that_is_half_dead(tmp_path: Path, percent: int, text: str, code: int) -> None:
    config = nightly(tmp_path, text)
    deliver(tmp_path, joining(percent))
    assert run(config, *BREACH, "-q").exit_code == code
    assert run(config, "--fail-on", "gate", "-q").exit_code == code
    assert run(config, "-q").exit_code == 0
    (row,) = in_history(load_settings(config), "SELECT rows_joined FROM batches")
    assert row == {"rows_joined": percent}
    closed = [row for row in gates(config) if not row["passed"]]
    assert len(closed) == (code == 5)


def test_without_the_gate_a_dead_join_has_no_group_to_judge(tmp_path: Path) -> None:
    config = nightly(tmp_path, "gate: {joined: null}\n")
    deliver(tmp_path, joining(0))
    result = run(config, *BREACH, "--json")
    assert result.exit_code == 5
    assert document(result)["failed_on"] == [
        f"{DAY}: gender has no group but unknown: no score of it says anything"
    ]
    assert gates(config) == []
    assert run(config, "--fail-on", "gate", "-q").exit_code == 0


def test_a_backfill_names_the_days(tmp_path: Path) -> None:
    config = nightly(tmp_path, "schedule: {start: 2026-01-05}\n")
    for at, percent in enumerate((100, 0, 100, 10)):
        deliver(tmp_path, joining(percent), batch=f"2026-01-{5 + at:02}")
    words = ("backfill", "--from", "2026-01-05", "--to", "2026-01-08", *BREACH, "--json")
    result = evenrank(*words, "-c", config)
    assert result.exit_code == 5
    days = [text.split(":")[0] for text in document(result)["failed_on"]]
    assert days == ["2026-01-06", "2026-01-08"]
    assert document(result)["breaches"] == 0
    assert "2 batches not judged, as a data gate is closed: 2026-01-06, 2026-01-08" in " ".join(
        result.stdout.split()
    )
    assert evenrank(*words[:3], "--to", "2026-01-05", *BREACH, "-q", "-c", config).exit_code == 0
    # Days that a gate keeps out are no baseline for the others.
    assert [row["passed"] for row in gates(config)] == [True, False, True, False]


# -- attributes with a threshold, and nothing to judge


def logged(genders: str, **more: Any) -> Rows:
    groups = [None if each == "-" else each for each in genders]
    return [row for at in range(9) for row in ranking(f"l{at}", "x" * len(groups), gender=groups,
                                                      **more)]  # fmt: skip


@pytest.mark.parametrize(
    ("genders", "judged", "code"),
    [
        ("--", THRESHOLD, 5),
        ("--", "", 0),
        ("FF", THRESHOLD, 5),
        ("FM", THRESHOLD, 0),
        ("F-", THRESHOLD, 5),
        ("FM-", THRESHOLD, 0),
        # Another attribute, or none that is there, is judged.
        ("--", "thresholds: {EXP.MinMaxRatio: {min: 0.1, attributes: [size]}}\n", 0),
    ],
)
def test_an_attribute_of_the_log(tmp_path: Path, genders: str, judged: str, code: int) -> None:
    text = SETTINGS.replace("[gender]", "[gender, size]") + judged
    config = write_settings(tmp_path, text)
    sizes = ["SL"[at % 2] for at in range(len(genders))]
    deliver(tmp_path, logged(genders, size=sizes))
    result = run(config, *BREACH, "--json")
    assert result.exit_code == code
    (said,) = document(result)["failed_on"] or [""]
    assert ("gender" in said) == (code == 5)
    assert ("unknown" in said) == (genders == "--" and code == 5)
    assert ("one_group" in said) == (genders in ("FF", "F-"))


def test_too_little_evidence_fails_nothing(tmp_path: Path) -> None:
    config = write_settings(tmp_path, SETTINGS + THRESHOLD)
    config.write_text(config.read_text().replace("min_queries: 0", "min_queries: 999"))
    deliver(tmp_path, logged("FM"))
    assert run(config, *BREACH, "--json").exit_code == 0
    rows = in_history(load_settings(config), "SELECT DISTINCT status FROM fairness_history")
    assert {"status": "insufficient"} in rows


def test_one_value_of_several_is_enough(tmp_path: Path) -> None:
    """No relevance is known: EXP has a value, and the score that divides by relevance has none."""
    both = "thresholds: {EXP.MinMaxRatio: {min: 0.1}, ERBR.MinMaxRatio: {min: 0.1}}\n"
    text = "attributes: [gender]\nmetrics: [EXP, ERBR]\n"
    config = write_settings(tmp_path, text + both)
    deliver(tmp_path, logged("FM", relevance=None))
    assert run(config, *BREACH, "-q").exit_code == 0
    only = "thresholds: {ERBR.MinMaxRatio: {min: 0.1}}\n"
    result = run(write_settings(tmp_path, text + only), *BREACH, "--json")
    assert result.exit_code == 5
    (said,) = document(result)["failed_on"]
    assert said.startswith(f"{DAY}: no value in 1 score of gender with a threshold (")


def test_a_metric_without_groups_has_to_have_a_value_too(tmp_path: Path) -> None:
    text = "attributes: [gender]\nmetrics: [nDCG@10]\nthresholds: {nDCG@10: {min: 0.1}}\n"
    config = write_settings(tmp_path, text)
    deliver(tmp_path, logged("FM", relevance=0))
    result = run(config, *BREACH, "--json")
    assert result.exit_code == 5
    assert "no value in 1 score without groups" in document(result)["failed_on"][0]


# -- by what the history holds


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return small_audit(tmp_path, slices=["device"])


def why(settings: Settings) -> list[str]:
    return [each.text for each in unjudged(settings, [NIGHTS[0]])]


def test_slices_speak_only_where_the_whole_batch_is_not_judged(settings: Settings) -> None:
    part = {"slice": "device", "slice_value": "phone"}
    put(settings, NIGHTS[0], [score(None), score(0.9, **part)])
    assert why(settings) == ["no value in 1 score of gender with a threshold (one_group)"]
    aside = score(None, status="not_judged")
    put(settings, NIGHTS[0], [aside, score(0.9, **part)])
    assert why(settings) == []
    put(settings, NIGHTS[0], [aside, score(None, **part)])
    assert why(settings) == ["no value in 1 score of gender with a threshold (one_group)"]
    put(settings, NIGHTS[0], [aside])
    assert why(settings) == []


def test_a_value_that_no_number_is_low_enough_for_is_a_breach_and_judged(
    settings: Settings,
) -> None:
    put(settings, NIGHTS[0], [score(None, reason="not_on_top: F", status="breach")])
    assert why(settings) == []


def test_a_value_of_unknown_alone_says_nothing(settings: Settings) -> None:
    write(settings, [Given(NIGHTS[0], [score(0.9)], sizes={"unknown": 1000})])
    assert why(settings) == ["gender has no group but unknown: no score of it says anything"]


def test_of_a_gated_batch_only_the_gate_is_told(settings: Settings) -> None:
    every = [Given(batch, [score(0.9)]) for batch in NIGHTS[1:5]]
    write(settings, [*every, Given(NIGHTS[5], [score(None)], rows=10)])
    assess(settings, NIGHTS[1:6])
    (found,) = unjudged(settings, NIGHTS[:6])
    assert (found.batch, found.gated) == (NIGHTS[5], True)
    assert found.text.startswith("the data gate volume is closed: 10 rows, usually 1,000")


def test_numbers_that_may_not_be_told_are_not(tmp_path: Path) -> None:
    hidden = small_audit(tmp_path, privacy={"min_cell": 50})
    every = [Given(batch, [score(0.9)]) for batch in NIGHTS[1:5]]
    write(hidden, [*every, Given(NIGHTS[5], [score(None)], rows=36)])
    assess(hidden, NIGHTS[1:6])
    (found,) = unjudged(hidden, [NIGHTS[5]])
    assert found.text == "the data gate volume is closed"


def test_nothing_is_said_without_a_history(tmp_path: Path) -> None:
    assert unjudged(small_audit(tmp_path), [DAY]) == []
