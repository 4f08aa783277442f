"""Alerts: what opens and ends them, what they say, and what people do about them."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from histories import NIGHTS, alerts_of, fill, group, put, quiet, score, small_audit
from stores import Row, in_history

from pipeline.errors import AuditError
from pipeline.monitoring.actions import standing
from pipeline.monitoring.alerts import act, alerts
from pipeline.monitoring.assess import assess
from pipeline.monitoring.episodes import Episode, before, continued, identified
from pipeline.monitoring.findings import Findings
from pipeline.monitoring.subjects import Series, Subject
from pipeline.publish.copy import publish
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of

WHOLE = Subject.about("breach", Series("all", "all", "gender", "EXP", "MinMaxRatio"))
PART = Subject.about("breach", Series("device", "mobile", "gender", "EXP", "MinMaxRatio"))
BAD = 20


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A history of 24 nights, one of them a breach."""
    found = small_audit(tmp_path_factory.mktemp("nights"))
    fill(found, 24, {BAD: 0.5})
    assess(found)
    return found


def one(settings: Settings, kind: str) -> Row:
    (row,) = (row for row in alerts(settings, every=True) if row["kind"] == kind)
    return row


# -- episodes


def night(batch: str, *found: Subject, fine: Any = (), covered: Any = ()) -> Findings:
    return Findings(batch, {*found, *covered}, {*fine}, {*covered})


def told(episodes: list[Episode]) -> list[tuple[str, str, str | None]]:
    return [(each.opened, each.last_seen, each.resolved) for each in episodes]


def test_an_episode_goes_on_until_a_batch_is_fine() -> None:
    nights = [night("1", WHOLE), night("2"), night("3", WHOLE), night("4", fine=[WHOLE]),
              night("5", fine=[WHOLE]), night("6", WHOLE)]  # fmt: skip
    assert told(continued([], nights)) == [("1", "3", "4"), ("6", "6", None)]


def test_what_is_covered_goes_on_but_does_not_begin() -> None:
    assert continued([], [night("1", WHOLE, covered=[PART])])[0].subject == WHOLE
    nights = [night("1", PART), night("2", WHOLE, covered=[PART])]
    assert told(continued([], nights)) == [("1", "2", None), ("2", "2", None)]


def test_cutting_an_episode_and_going_on_is_the_same() -> None:
    nights = [night("1", WHOLE), night("2", WHOLE), night("3", fine=[WHOLE]), night("4", WHOLE)]
    whole = identified(continued([], nights), [], set())
    for at, start in enumerate("1234"):
        again = identified(continued(before(whole, start), nights[at:]), whole, set())
        assert again == whole


def test_a_known_alert_keeps_its_name_while_its_episode_overlaps() -> None:
    (old,) = identified(continued([], [night("3", WHOLE), night("4", WHOLE)]), [], set())
    earlier = [night("2", WHOLE), night("3", WHOLE)]
    (kept,) = identified(continued([], earlier), [old], {old.alert})
    (fresh,) = identified(continued([], earlier), [old], set())
    (other,) = identified(continued([], [night("5", WHOLE)]), [old], {old.alert})
    assert kept.alert == old.alert
    assert len({old.alert, fresh.alert, other.alert}) == 3


# -- what opens and ends them


def test_a_breach_is_an_alert_for_as_long_as_it_lasts(settings: Settings) -> None:
    row = one(settings, "breach")
    said = (row["opened"], row["last_seen"], row["resolved"], row["batches"], row["state"])
    assert said == (NIGHTS[BAD], NIGHTS[BAD], NIGHTS[BAD + 1], 1, "resolved")


def test_a_slice_that_breaches_with_its_whole_batch_is_named_there(settings: Settings) -> None:
    part = {"slice": "device", "slice_value": "mobile", "rows": 600}
    put(settings, NIGHTS[24], [score(0.5), score(0.4, **part)])
    put(settings, NIGHTS[25], [score(0.9), score(0.4, **part)])
    assess(settings)
    seen = alerts(settings, batches=[NIGHTS[24]])
    assert [row["slice"] for row in seen if row["kind"] == "breach"] == ["all"]
    (text,) = (row["text"] for row in seen if row["kind"] == "breach")
    assert "Slices that contribute most: device mobile 0.400 (60% of rows)." in text
    assert "The same in device mobile." in text
    last = [row for row in alerts(settings, batches=[NIGHTS[25]]) if row["kind"] == "breach"]
    assert [(row["slice"], row["opened"]) for row in last] == [("device", NIGHTS[25])]


def test_a_shift_is_news_though_no_threshold_is_passed(tmp_path: Path) -> None:
    settings = small_audit(tmp_path, thresholds={})
    fill(settings, 24, {at: quiet(at, 0.82) for at in range(20, 24)})
    assess(settings)
    row = one(settings, "shift")
    assert (row["state"], row["opened"]) == ("open", NIGHTS[20])
    (then,) = (row for row in alerts(settings, batches=[NIGHTS[20]]) if row["kind"] == "shift")
    assert ", usually 90%" in then["text"]
    assert "Worst off: F" in then["text"]


def test_the_better_side_is_no_shift(tmp_path: Path) -> None:
    settings = small_audit(tmp_path, thresholds={})
    fill(settings, 24, {at: quiet(at, 0.99) for at in range(20, 24)})
    assess(settings)
    assert alerts_of(settings) == [("improvement", NIGHTS[20], NIGHTS[23], None)]


@pytest.mark.slow
def test_another_group_losing_is_an_alert(tmp_path: Path) -> None:
    settings = small_audit(tmp_path, thresholds={})
    fill(settings, 12)
    flipped = score(quiet(12), worst_group="M", best_group="F")
    put(settings, NIGHTS[12], [flipped], [group("M", 0.8), group("F", 0.9)])
    put(settings, NIGHTS[13], [flipped], [group("M", 0.85, 0.1), group("F", 0.9, 0.1)])
    assess(settings)
    row = one(settings, "flip")
    assert (row["opened"], row["last_seen"], row["state"]) == (NIGHTS[12], NIGHTS[12], "open")
    assert row["text"].startswith("M got 90% of the exposure per item that F got; usually F got")
    put(settings, NIGHTS[14], [score(0.9)])
    assess(settings)
    assert one(settings, "flip")["resolved"] == NIGHTS[14]


def test_overlapping_intervals_are_no_flip(tmp_path: Path) -> None:
    settings = small_audit(tmp_path, thresholds={})
    fill(settings, 12)
    flipped = score(quiet(12), worst_group="M", best_group="F")
    put(settings, NIGHTS[12], [flipped], [group("M", 0.88, 0.02), group("F", 0.9, 0.02)])
    assess(settings)
    # The gap closed all the same.
    assert [kind for kind, *_ in alerts_of(settings)] == ["improvement"]


# -- what they say


def test_a_text_says_what_is_needed(settings: Settings) -> None:
    row = score(0.5, lower=0.45, upper=0.55)
    for batch in NIGHTS[24:26]:
        put(settings, batch, [row], [group("F", 0.2), group("M", 0.4)])
    assess(settings)
    (text,) = (row["text"] for row in alerts(settings) if row["kind"] == "breach")
    assert text.split("\n") == [
        "F got 50% of the exposure per item that M got; the limit is 80%.",
        "Exposure ratio of gender, all requests: 0.500 [0.450, 0.550], limit 0.8 "
        "(EXP.MinMaxRatio).",
        "From 90 queries, 100 lists, 1,000 rows.",
        "With it, 1 of 1 followed scores of gender shifted.",
        f"Seen since {NIGHTS[24]}.",
        "Worst off: F 0.200 [0.190, 0.210] (500 rows); "
        "best off: M 0.400 [0.390, 0.410] (500 rows).",
    ]


JUDGED = {
    **{"judged_value": 0.5, "judged_lower": 0.45, "judged_upper": 0.55},
    **{"judged_worst_group": "F", "judged_best_group": "M", "judged_groups": '["F", "M"]'},
}


def lines_of_the_breach(settings: Settings) -> list[str]:
    (text,) = (row["text"] for row in alerts(settings, every=True) if row["kind"] == "breach")
    return str(text).split("\n")


def test_a_text_is_about_the_judged_groups_and_names_the_others(tmp_path: Path) -> None:
    settings = small_audit(tmp_path, evidence={"min_queries": 20})
    thin = {"worst_group": "X", "lower": 0.0, "upper": 0.3, "thin_groups": '["X"]'}
    row = score(0.1, **thin, **JUDGED, expected=0.93, p_noise=0.002)
    put(settings, NIGHTS[0], [row], [group("F", 0.2), group("M", 0.4), group("X", 0.0, queries=3)])
    assess(settings)
    head, small, size, chance, left_out, _, losers = lines_of_the_breach(settings)
    assert head == "F got 50% of the exposure per item that M got; the limit is 80%."
    assert small.endswith("0.500 [0.450, 0.550], limit 0.8 (EXP.MinMaxRatio).")
    assert size.endswith("1,000 rows.")
    assert chance == "Chance alone gives 0.930, and is as unfair with p = 0.002."
    assert left_out == "X is not judged: few queries (3)."
    assert losers.startswith("Worst off: F 0.2")


def test_a_text_says_where_whole_batch_and_slices_disagree(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    slices = [
        score(0.9, slice="device", slice_value=name, rows=500) for name in ("mobile", "desktop")
    ]
    put(settings, NIGHTS[0], [score(0.5), *slices])
    assess(settings)
    assert (
        "Slices by themselves: device 2 ok; the whole batch breaches, and no slice of device by "
        "itself (2 ok): the groups are in different ones."
    ) in lines_of_the_breach(settings)


def test_composition_neither_ends_nor_opens_an_alert(tmp_path: Path) -> None:
    """The value is still beyond its threshold, and the order is not shown to be unfair."""
    settings = small_audit(tmp_path)
    put(settings, NIGHTS[0], [score(0.5)])
    for batch in NIGHTS[1:3]:
        put(settings, batch, [score(0.5, status="composition")])
    put(settings, NIGHTS[3], [score(0.5, slice="device", slice_value="a", status="composition")])
    assess(settings)
    assert alerts_of(settings) == [("breach", NIGHTS[0], NIGHTS[0], None)]
    put(settings, NIGHTS[4], [score(0.9)])
    assess(settings)
    assert alerts_of(settings) == [("breach", NIGHTS[0], NIGHTS[0], NIGHTS[4])]


def test_a_text_wants_nothing_that_the_score_has(settings: Settings) -> None:
    """The verdict stands as it was, though a threshold of today would let the score pass."""
    loose = settings.thresholds["EXP.MinMaxRatio"].model_copy(update={"min": 0.3})
    assess(settings.model_copy(update={"thresholds": {"EXP.MinMaxRatio": loose}}), NIGHTS[:24])
    head = one(settings, "breach")["text"].split("\n")[0]
    assert head.endswith("F worst off; that was beyond its limit (EXP.MinMaxRatio).")


@pytest.mark.slow
def test_queries_of_alerts_run_on_the_copy(settings: Settings) -> None:
    odd = score(0.4, slice="device", slice_value="it's", rows=500)
    put(settings, NIGHTS[24], [score(0.9), odd], rows=100)
    put(settings, NIGHTS[25], [score(0.1, status="not_judged"), odd])
    assess(settings)
    publish(settings)
    rows = alerts(settings, every=True)
    assert {row["kind"] for row in rows} == {"breach", "shift", "gate"}
    with duckdb.connect(str(store_of(settings).dashboard), read_only=True) as connection:
        for row in rows:
            found = connection.execute(row["query"]).fetchall()
            assert row["last_seen"] in [batch for batch, *_ in found]
        assert connection.execute("SELECT count(*) FROM v_alerts").fetchall() == [(len(rows),)]
        for view in ("v_trends", "v_gates", "v_markers", "v_change_points"):
            connection.execute(f"FROM {view}").fetchall()


# -- what people do


@pytest.mark.slow
def test_an_acknowledged_incident_is_no_baseline(settings: Settings) -> None:
    def baselines() -> dict[str, int]:
        rows = in_history(settings, "SELECT batch, baseline, ewma FROM trends")
        return {row["batch"]: (row["baseline"], row["ewma"]) for row in rows}

    earlier = baselines()
    name = one(settings, "breach")["alert"]
    names, found = act(settings, [name[:6]], "ack", who="eve", note="a bad deploy")
    assert names == [name]
    assert found.later == tuple(NIGHTS[BAD + 1 : 24])
    row = one(settings, "breach")
    assert (row["acknowledged_by"], row["note"]) == ("eve", "a bad deploy")
    assert baselines()[NIGHTS[BAD]] == earlier[NIGHTS[BAD]]
    # The outlier alone spoils no spread, but charts remember it.
    assert baselines()[NIGHTS[BAD + 1]][1] < earlier[NIGHTS[BAD + 1]][1] / 3
    assert not assess(settings, NIGHTS[:24]).changed
    act(settings, [name], "undo", who="eve")
    assert baselines() == earlier
    assert one(settings, "breach")["acknowledged_at"] is None


@pytest.mark.slow
def test_acknowledgements_survive_running_again(settings: Settings) -> None:
    name = one(settings, "breach")["alert"]
    act(settings, [name], "ack", who="eve")
    put(settings, NIGHTS[BAD - 1], [score(0.4)])
    assess(settings, [NIGHTS[BAD - 1]])
    row = one(settings, "breach")
    assert (row["alert"], row["opened"], row["batches"]) == (name, NIGHTS[BAD - 1], 2)
    assert row["acknowledged_by"] == "eve"
    assert not assess(settings, NIGHTS[:24]).changed


@pytest.mark.slow
def test_an_alert_that_people_know_is_withdrawn_not_lost(settings: Settings) -> None:
    name = one(settings, "breach")["alert"]
    act(settings, [name], "ack", who="eve")
    put(settings, NIGHTS[BAD], [score(0.9)])
    assess(settings, [NIGHTS[BAD]])
    row = one(settings, "breach")
    assert (row["alert"], row["state"], row["batches"]) == (name, "withdrawn", 0)
    assert row["text"].startswith("No longer found")
    put(settings, NIGHTS[BAD], [score(0.5)])
    assess(settings, [NIGHTS[BAD]])
    row = one(settings, "breach")
    assert (row["alert"], row["state"], row["acknowledged_by"]) == (name, "resolved", "eve")


def test_an_alert_that_nobody_knows_goes_without_a_trace(settings: Settings) -> None:
    put(settings, NIGHTS[BAD], [score(0.9)])
    assess(settings, [NIGHTS[BAD]])
    assert [row for row in alerts(settings, every=True) if row["kind"] == "breach"] == []


@pytest.mark.slow
def test_a_snoozed_alert_is_back_later(settings: Settings) -> None:
    put(settings, NIGHTS[24], [score(0.5)])
    assess(settings)
    (name,) = (row["alert"] for row in alerts(settings) if row["kind"] == "breach")
    tomorrow = datetime.now() + timedelta(days=2)
    _, found = act(settings, [name], "snooze", who="eve", until=tomorrow)
    assert found.later == ()
    assert name not in {row["alert"] for row in alerts(settings)}
    act(settings, [name], "snooze", who="eve", until=datetime(2026, 1, 1))
    assert name in {row["alert"] for row in alerts(settings)}


def test_wrong_names_are_told_at_once(settings: Settings) -> None:
    with pytest.raises(AuditError) as error:
        act(settings, ["ab", "zzzzzz"], "ack", who="eve")
    assert "ab: give at least 4 characters" in str(error.value)
    assert "zzzzzz is no alert" in str(error.value)
    assert in_history(settings, "FROM alert_actions") == []


def test_actions_add_up() -> None:
    until = datetime(2026, 2, 1)
    rows: list[Row] = [
        {"alert": "a", "action": "snooze", "snoozed_until": until, "note": "later"},
        {"alert": "a", "action": "ack", "acted_at": 2, "who": "eve", "note": None},
    ]
    expected = {"acknowledged_at": 2, "acknowledged_by": "eve", "note": "later",
                "snoozed_until": until}  # fmt: skip
    assert standing(rows) == {"a": expected}
    assert standing([*rows, {"alert": "a", "action": "undo"}]) == {"a": dict.fromkeys(expected)}
