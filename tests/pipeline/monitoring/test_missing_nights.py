"""Nights without scores: what is news of them, to whom, and until when."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from histories import NIGHTS, Given, assessments, gap, quiet, rewrite, score, small_audit, write

from pipeline.history.forget_batch import forget_batch
from pipeline.monitoring.alerts import alerts
from pipeline.monitoring.assess import assess, due
from pipeline.settings.audit import Settings

SENDING = {"notify": {"command": ["true"]}}


def nights(settings: Settings, *which: int) -> None:
    write(settings, [Given(NIGHTS[at], [score(quiet(at))]) for at in which])


def told(settings: Settings) -> list[tuple[Any, ...]]:
    """Alerts about nights: when they opened, were last seen and over."""
    found = [row for row in alerts(settings, every=True) if row["kind"] == "night"]
    columns = ("opened", "last_seen", "resolved", "batches")
    return sorted(tuple(row[name] for name in columns) for row in found)


def attempted(settings: Settings, at: int, status: str = "no_data", *, after: int = 1) -> None:
    """An attempt that gave no scores, so many days after the day began."""
    gap(settings, NIGHTS[at], status)
    when = datetime.fromisoformat(NIGHTS[at + after])
    rewrite(settings, f"UPDATE batches SET finished_at = '{when}' WHERE batch = '{NIGHTS[at]}'")


def test_days_that_nobody_ran_are_one_alert(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    nights(settings, 0, 1, 2, 5, 6)
    assess(settings)
    assert told(settings) == [(NIGHTS[3], NIGHTS[4], NIGHTS[5], 2)]
    (row,) = (row for row in alerts(settings, every=True) if row["kind"] == "night")
    assert row["text"].split("\n")[0] == (
        f"{NIGHTS[3]} to {NIGHTS[4]}: there were no scores, so that nobody knows whether it was "
        "fair."
    )
    assert not due(settings)


@pytest.mark.parametrize("status", ["no_data", "refused", "failed"])
def test_the_newest_night_without_scores_waits_for_somebody(tmp_path: Path, status: str) -> None:
    settings = small_audit(tmp_path, **SENDING)
    nights(settings, 0, 1)
    assess(settings)
    attempted(settings, 2, status)
    assert due(settings)
    assess(settings, notify="newest", attempted=[NIGHTS[2]])
    assert told(settings) == [(NIGHTS[2], NIGHTS[2], None, 1)]
    (row,) = alerts(settings)
    assert not row["silent"]
    assert row["text"].startswith(f"{NIGHTS[2]} has no scores: ")
    nights(settings, 3)
    assess(settings, [NIGHTS[3]])
    assert told(settings) == [(NIGHTS[2], NIGHTS[2], NIGHTS[3], 1)]


def test_a_night_that_nobody_ran_is_sent_by_the_next(tmp_path: Path) -> None:
    settings = small_audit(tmp_path, **SENDING)
    nights(settings, 0, 1)
    assess(settings)
    nights(settings, 3)
    assess(settings, [NIGHTS[3]], notify="newest")
    (row,) = (row for row in alerts(settings, every=True) if row["kind"] == "night")
    assert (row["state"], row["silent"]) == ("resolved", False)


def test_a_night_that_is_run_after_all_was_never_missing(tmp_path: Path) -> None:
    one, other = (small_audit(tmp_path / name) for name in ("one", "other"))
    nights(one, 0, 1, 3)
    assess(one)
    assert told(one)
    nights(one, 2)
    assess(one, [NIGHTS[2]])
    nights(other, 0, 1, 2, 3)
    assess(other)
    assert told(one) == []
    assert assessments(one) == assessments(other)


def test_a_batch_that_is_forgotten_is_missing_then(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    nights(settings, 0, 1, 2)
    assess(settings)
    forget_batch(settings, NIGHTS[1], "by mistake")
    assert due(settings)
    assess(settings)
    assert told(settings) == [(NIGHTS[1], NIGHTS[1], NIGHTS[2], 1)]
    forget_batch(settings, NIGHTS[2], "by mistake")
    assess(settings)
    assert told(settings) == []


def test_a_day_that_was_tried_too_early_is_not_missing(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    nights(settings, 0, 1)
    attempted(settings, 2, after=0)
    assess(settings)
    assert told(settings) == []


def test_days_outside_the_schedule_are_not_missing(tmp_path: Path) -> None:
    settings = small_audit(tmp_path, schedule={"end": NIGHTS[2]})
    nights(settings, 0, 1, 2, 6)
    assess(settings)
    assert told(settings) == []


def test_batches_that_come_once_a_week_miss_nothing_after_the_first(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    nights(settings, *range(0, 56, 7))
    assess(settings)
    assert [opened for opened, *_ in told(settings)] == [NIGHTS[1]]


def test_a_change_of_the_schedule_is_seen(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    nights(settings, 0, 1, 4)
    assess(settings)
    assert told(settings)
    other = small_audit(tmp_path, schedule={"end": NIGHTS[1]})
    assert due(other)
    assess(other)
    assert told(other) == []
    assert not due(other)


def test_named_batches_miss_what_was_tried_alone(tmp_path: Path) -> None:
    settings = small_audit(tmp_path, schedule={"batches": "names"})
    write(settings, [Given(name, [score(0.9)]) for name in ("a", "c")])
    gap(settings, "b", "refused")
    assess(settings)
    assert told(settings) == [("b", "b", "c", 1)]
