"""Incidents that become others: another group loses, or a score gets clearly worse."""

from pathlib import Path
from typing import Any

import pytest
from histories import (
    NIGHTS,
    Given,
    Row,
    assessments,
    group,
    quiet,
    score,
    small_audit,
    write,
)
from stores import in_history

from pipeline.monitoring.alerts import act, alerts, mark
from pipeline.monitoring.assess import assess
from pipeline.monitoring.readings import (
    RECENT,
    Reading,
    is_clearly_worse,
    is_reversal,
    worst_of,
)
from pipeline.settings.audit import Settings

TURN = 25
SENDING = {"notify": {"command": ["true"]}}


def night(batch: str, value: float, loser: str = "F", spread: float = 0.02, **said: Any) -> Given:
    """A night of two groups, of which ``loser`` has ``value`` times what the other one has."""
    best = "M" if loser == "F" else "F"
    row = score(
        value,
        **{
            "lower": value - spread,
            "upper": value + spread,
            "worst_group": loser,
            "best_group": best,
            **said,
        },
    )
    apart = {
        "compared_with": loser,
        "difference_lower": 1.0 - value - spread,
        "difference_upper": 1.0 - value + spread,
    }
    # Their own intervals touch: what tells is the interval of the difference.
    return Given(batch, [row], [group(loser, value, 0.5), group(best, 1.0, 0.5, **apart)])


def reversed_nights(before: float = 0.73, after: float = 0.49, count: int = 30) -> list[Given]:
    """F loses for ``TURN`` nights, and M from then on."""
    return [
        night(batch, before + quiet(at, 0.0), "F")
        if at < TURN
        else night(batch, after + quiet(at, 0.0), "M")
        for at, batch in enumerate(NIGHTS[:count])
    ]


def told(settings: Settings, *kinds: str) -> list[Row]:
    """Alerts of some kinds, the earliest first."""
    found = [row for row in alerts(settings, every=True) if not kinds or row["kind"] in kinds]
    return sorted(found, key=lambda row: (row["opened"], row["slice"]))


def each_night(settings: Settings, nights: list[Given]) -> dict[str, tuple[str, ...]]:
    """Write and assess night by night, as a scheduler does; which alerts open in each."""
    opened = {}
    for given in nights:
        write(settings, [given])
        opened[given.batch] = assess(settings, [given.batch], notify="newest").opened
    return opened


@pytest.mark.slow
@pytest.mark.parametrize("marked", [False, True])
def test_a_reversal_is_an_alert_of_its_own(tmp_path: Path, marked: bool) -> None:
    settings = small_audit(tmp_path, **SENDING)
    nights = reversed_nights()
    opened = each_night(settings, nights[:TURN])
    if marked:
        mark(settings, NIGHTS[TURN], "model v7")
    opened |= each_night(settings, nights[TURN:])
    first, second = told(settings, "breach")
    assert (first["state"], first["resolved"]) == ("resolved", NIGHTS[TURN])
    assert (second["opened"], second["state"]) == (NIGHTS[TURN], "open")
    assert (second["supersedes"], second["former_loser"]) == (first["alert"], "F")
    assert (first["worst_loser"], second["worst_loser"]) == ("F", "M")
    assert second["worst_value"] < 0.5 < first["worst_value"]
    # It is sent, and nothing else is that night.
    assert opened[NIGHTS[TURN]] == (second["alert"],)
    assert not second["silent"]
    text = second["text"].split("\n")
    assert text[0].startswith("M got ")
    until = "until then, it was F who got least."
    assert f"In place of alert {first['alert']}: {until}" in text
    assert f"In {NIGHTS[TURN]} M was worst off instead: alert {second['alert']}." in first["text"]
    assert not any(opened[batch] for batch in NIGHTS[TURN + 1 : 30])


@pytest.mark.slow
def test_who_knows_of_the_former_loser_is_told_of_the_new_one(tmp_path: Path) -> None:
    settings = small_audit(tmp_path, **SENDING)
    nights = reversed_nights()
    each_night(settings, nights[:5])
    (first,) = told(settings, "breach")
    act(settings, [first["alert"]], "ack", who="somebody")
    each_night(settings, nights[5:])
    second = told(settings, "breach")[-1]
    assert (second["opened"], second["acknowledged_at"], second["silent"]) == (
        NIGHTS[TURN],
        None,
        False,
    )


@pytest.mark.slow
def test_reversals_night_by_night_are_those_at_once(tmp_path: Path) -> None:
    one, other = (small_audit(tmp_path / name) for name in ("one", "other"))
    nights = reversed_nights()
    for given in nights:
        write(one, [given])
        assess(one, [given.batch])
    write(other, nights)
    assess(other)
    assert assessments(one) == assessments(other)
    # Again from the middle, and from the first night that M lost.
    for start in (10, TURN, TURN + 2):
        assess(one, NIGHTS[start : start + 1])
        assert assessments(one) == assessments(other)


def test_a_loser_that_is_no_other_beyond_chance_is_no_reversal(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    nights = reversed_nights(after=0.73)
    for given in nights[TURN:]:
        given.groups[1]["difference_lower"] = -0.01
    write(settings, nights)
    assess(settings)
    (row,) = told(settings, "breach")
    assert (row["opened"], row["latest_loser"], row["worst_loser"]) == (NIGHTS[0], "M", "F")


def test_losers_that_take_turns_every_week_are_told_once(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    write(
        settings,
        [
            night(batch, 0.6, "M" if at % 7 in (5, 6) else "F")
            for at, batch in enumerate(NIGHTS[:42])
        ],
    )
    assess(settings)
    assert [row["former_loser"] for row in told(settings, "breach")] == [None, "F"]


@pytest.mark.slow
def test_what_gets_clearly_worse_is_told_again(tmp_path: Path) -> None:
    settings = small_audit(tmp_path, **SENDING)
    values = [0.9] * 10 + [0.7] * 6 + [0.69] * 4 + [0.5] * 5
    nights = [night(batch, value) for batch, value in zip(NIGHTS, values, strict=False)]
    opened = each_night(settings, nights)
    first, second = told(settings, "breach")
    assert (first["opened"], second["opened"]) == (NIGHTS[10], NIGHTS[20])
    assert opened[NIGHTS[20]] == (second["alert"],)
    assert not second["silent"]
    assert (second["supersedes"], second["former_loser"]) == (first["alert"], None)
    assert f"In place of alert {first['alert']}: it got clearly worse." in second["text"]
    assert first["text"].split("\n")[-1] == (
        f"In {NIGHTS[20]} it got clearly worse: alert {second['alert']}."
    )


def test_a_steady_fall_is_told_now_and_then(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    write(settings, [night(batch, 0.85 - 0.008 * at) for at, batch in enumerate(NIGHTS[:50])])
    assess(settings)
    assert 3 <= len(told(settings, "breach")) <= 10


@pytest.mark.slow
def test_an_open_shift_does_not_hide_a_larger_one(tmp_path: Path) -> None:
    settings = small_audit(tmp_path, thresholds={}, **SENDING)
    values = [quiet(at, 0.97) for at in range(20)] + [quiet(at, 0.92) for at in range(20, 23)]
    values += [quiet(at, 0.79) for at in range(23, 26)]
    nights = [
        night(batch, value, spread=0.01, status="not_judged")
        for batch, value in zip(NIGHTS, values, strict=False)
    ]
    opened = each_night(settings, nights)
    first, second = told(settings, "shift")
    assert (first["opened"], second["opened"]) == (NIGHTS[20], NIGHTS[23])
    assert opened[NIGHTS[23]] == (second["alert"],)
    assert not second["silent"]
    assert second["supersedes"] == first["alert"]


def test_an_alert_tells_its_worst_and_its_latest_reading(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    values = [0.9] * 5 + [0.75, 0.72, 0.76]
    write(settings, [night(each, value) for each, value in zip(NIGHTS, values, strict=False)])
    assess(settings)
    (row,) = told(settings, "breach")
    assert (row["reading_of"], row["worst_value"], row["worst_batch"], row["worst_loser"]) == (
        *("EXP.MinMaxRatio", 0.72, NIGHTS[6]),
        "F",
    )
    assert (row["latest_value"], row["latest_loser"]) == (0.76, "F")
    assert row["size"] == pytest.approx(0.1)
    worst = f"Worst so far in {NIGHTS[6]}: 0.720 [0.700, 0.740], F worst off."
    assert worst in row["text"].split("\n")


def test_what_is_over_is_told_in_the_past(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    values = [0.9] * 5 + [0.75, 0.72, 0.76, 0.9]
    write(settings, [night(each, value) for each, value in zip(NIGHTS, values, strict=False)])
    assess(settings)
    (row,) = told(settings, "breach")
    assert row["state"] == "resolved"
    assert row["text"].split("\n") == [
        "Exposure ratio of gender, all requests, was 0.720 [0.700, 0.740] at its worst "
        f"({NIGHTS[6]}), with F worst off; the limit was 0.8 (EXP.MinMaxRatio).",
        f"When last seen ({NIGHTS[7]}), it was 0.760 [0.740, 0.780], with F worst off.",
        f"Seen in 3 batches, {NIGHTS[5]} to {NIGHTS[7]}.",
        f"It was over in {NIGHTS[8]}.",
    ]


def test_a_slice_goes_with_a_whole_batch_that_cannot_be_told_tonight(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    part = {"slice": "device", "slice_value": "mobile", "lower": 0.4, "upper": 0.6}
    nights = [night(batch, 0.9) for batch in NIGHTS[:4]] + [night(NIGHTS[4], 0.6)]
    unsure = night(NIGHTS[5], 0.79, status="insufficient", verdict="insufficient")
    nights.append(Given(NIGHTS[5], [*unsure.scores, score(0.5, **part)], unsure.groups))
    write(settings, nights)
    assess(settings)
    assert [row["slice"] for row in told(settings, "breach")] == ["all"]


def test_each_batch_of_an_alert_has_its_reading(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    write(settings, [night(batch, 0.7) for batch in NIGHTS[:3]])
    assess(settings)
    assert in_history(settings, "SELECT DISTINCT reading_of FROM alert_batches") == [
        {"reading_of": "EXP.MinMaxRatio"}
    ]


# -- the rules


def reading(value: float | None, loser: str = "F", spread: float = 0.01) -> Reading:
    ends = (None, None) if value is None else (value - spread, value + spread)
    return Reading("EXP.MinMaxRatio", value, *ends, loser)


@pytest.mark.parametrize(
    ("first", "now", "worse"),
    [
        (0.7, 0.5, True),
        (0.7, 0.69, False),  # The intervals touch.
        (0.7, 0.677, False),  # They do not, but it is hardly further from what is wanted.
        (0.7, 0.9, False),
        (0.5, 0.4, True),
        (0.7, None, True),  # A group is shut out.
        (None, 0.1, False),
    ],
)
def test_clearly_worse(first: float | None, now: float | None, worse: bool) -> None:
    assert is_clearly_worse(reading(first), reading(now), 0.8, -1) == worse
    turned = [
        Reading("EXP.MinMaxRatio", -each.value, -each.upper, -each.lower)
        if each.value is not None and each.lower is not None and each.upper is not None
        else each
        for each in (reading(first), reading(now))
    ]
    assert is_clearly_worse(turned[0], turned[1], -0.8, 1) == worse


def test_a_reversal_waits_until_a_reversal_is_as_old() -> None:
    def certain(*_: str) -> bool:
        return True

    before = [reading(0.5, "M")] * (RECENT - 1)
    assert is_reversal(before, reading(0.5, "F"), follows=False, apart=certain)
    assert not is_reversal(before, reading(0.5, "F"), follows=True, apart=certain)
    assert is_reversal([*before, before[0]], reading(0.5, "F"), follows=True, apart=certain)
    assert not is_reversal(
        [*before, reading(0.5, "F")], reading(0.5, "F"), follows=False, apart=certain
    )
    assert not is_reversal(before, reading(0.5, "F"), follows=False, apart=lambda *_: False)


def test_no_value_is_the_worst_reading() -> None:
    readings = {"1": reading(0.4), "2": reading(None), "3": reading(0.3)}
    assert worst_of(readings, "EXP.MinMaxRatio", -1) == ("2", readings["2"])
    assert worst_of(readings, "EXP.MinMaxRatio", 0) is None
