"""Views of the history as a whole: releases beside each other, and whether all is fresh."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from dashboards import shown
from histories import NIGHTS, Given, fill, group, quiet, rewrite, score, small_audit, write
from stores import Row

from pipeline.monitoring.assess import assess
from pipeline.publish.copy import publish

# -- releases


def marked(batch: str, text: str) -> str:
    return (
        f"INSERT INTO markers BY NAME SELECT '{batch}' AS batch, '{text}' AS text, "
        "'mark' AS source, TIMESTAMP '2026-01-01' AS created_at"
    )


def test_releases_stand_beside_each_other(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    values = [quiet(at) if at < 8 else quiet(at, 0.7) if at < 14 else 0.95 for at in range(18)]
    fill(settings, 18, dict(enumerate(values)))
    rewrite(settings, marked(NIGHTS[8], "v2"), marked(NIGHTS[14], "v2"), marked("2027-01-01", "v3"))
    publish(settings)
    last, middle, first = shown(settings, "v_release_scores")
    parts = [values[:8], values[8:14], values[14:]]
    for row, part, begins, before in (
        (first, parts[0], None, None),
        (middle, parts[1], NIGHTS[8], parts[0]),
        (last, parts[2], NIGHTS[14], parts[1]),
    ):
        at = values.index(part[0])
        assert (row["label"], row["batches"]) == ("EXP.MinMaxRatio", len(part))
        assert (row["release_batch"], row["release"]) == (begins, begins and "v2")
        assert (row["first_batch"], row["last_batch"]) == (NIGHTS[at], NIGHTS[at + len(part) - 1])
        assert row["value"] == pytest.approx(median(part), rel=1e-12)
        assert (row["worst_value"], row["worst_batch"]) == (
            min(part),
            NIGHTS[at + part.index(min(part))],
        )
        beyond = sum(value < 0.8 for value in part)
        assert (row["breaches"], row["ok_share"]) == (beyond, 1 - beyond / len(part))
        assert row["previous_value"] == (before and pytest.approx(median(before), rel=1e-12))
        assert row["worse"] == (before and median(part) < median(before))
        if before:
            difference = median(part) - median(before)
            assert row["difference"] == pytest.approx(difference, rel=1e-9)


# -- alerts


def test_an_alert_has_its_worst_and_its_latest_reading_and_the_limit_of_now(tmp_path: Path) -> None:
    settings = small_audit(tmp_path)
    low = {9: 0.6, 10: 0.5, 11: 0.7}
    batches = [
        Given(
            NIGHTS[at],
            [score(low.get(at, quiet(at)), lower=low.get(at, quiet(at)) - 0.01, upper=0.99)],
            [group("F", low.get(at, quiet(at))), group("M", 1.0)],
        )
        for at in range(12)
    ]
    write(settings, batches)
    rewrite(settings, f"UPDATE batches SET settings = '{settings.deciding}'")
    assess(settings)
    publish(settings)
    (row,) = [row for row in shown(settings, "v_alerts") if row["kind"] == "breach"]
    assert (row["label"], row["plain"]) == ("EXP.MinMaxRatio", "exposure ratio")
    assert (row["worst_value"], row["worst_batch"]) == (0.5, NIGHTS[10])
    assert (row["latest_value"], row["latest_batch"]) == (0.7, NIGHTS[11])
    assert (row["threshold_min"], row["threshold_max"], row["direction"]) == (0.8, None, "low")


# -- whether all is fresh

TODAY = datetime.now(UTC).date()


def fresh(folder: Path, keys: Sequence[str], **schedule: Any) -> Row:
    """The row of v_freshness where these batches have scores."""
    said = {"start": ago(9), "timezone": "UTC", "deadline_hours": 30, **schedule}
    settings = small_audit(folder, schedule=said, thresholds={})
    write(settings, [Given(batch, [score(0.9)]) for batch in keys])
    publish(settings)
    (row,) = shown(settings, "v_freshness")
    (about,) = shown(settings, "v_about")
    assert about["newest_end"] == row["newest_end"]
    return row


def ago(days: int) -> str:
    return (TODAY - timedelta(days=days)).isoformat()


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day)


def test_days_that_came_are_fresh(tmp_path: Path) -> None:
    """Yesterday is due tomorrow at six, so that the day before yesterday is enough."""
    row = fresh(tmp_path, [ago(days) for days in range(9, 1, -1)])
    assert (row["state"], row["late"], row["late_since"]) == ("fresh", 0, None)
    assert (row["newest_batch"], row["newest_end"]) == (ago(2), midnight(TODAY) - timedelta(days=1))
    assert 24 <= row["hours_since"] <= 49


def test_a_store_that_nobody_fed_is_overdue(tmp_path: Path) -> None:
    row = fresh(tmp_path, [ago(9), ago(8), ago(6)])
    assert row["state"] == "overdue"
    # Gaps before the newest day are no matter of freshness; of the last two days none is due.
    assert row["late"] in (3, 4)
    assert row["late_since"] == midnight(TODAY) - timedelta(days=4) + timedelta(hours=30)


def test_a_forgotten_end_is_not_fresh(tmp_path: Path) -> None:
    row = fresh(tmp_path / "ended", [ago(9), ago(8)], end=ago(8))
    assert (row["state"], row["late"], row["schedule_end"]) == ("ended", 0, ago(8))
    # Days go on, whatever the end says, until they stop.
    assert fresh(tmp_path / "on", [ago(9), ago(8), ago(2)], end=ago(8))["state"] == "fresh"
    stopped = fresh(tmp_path / "stopped", [ago(9), ago(8), ago(5)], end=ago(8))
    assert stopped["state"] == "overdue"


def test_what_is_no_day_has_no_schedule(tmp_path: Path) -> None:
    row = fresh(tmp_path / "names", ["model-a", "model-b"], batches="names")
    assert (row["state"], row["newest_batch"], row["hours_since"]) == ("unscheduled", None, None)
    later = (TODAY + timedelta(days=30)).isoformat()
    assert fresh(tmp_path / "later", [ago(9)], start=later)["state"] == "unscheduled"
    hour = datetime.now(UTC) - timedelta(hours=2)
    row = fresh(tmp_path / "hours", [f"{hour:%Y-%m-%dT%H}"], start=f"{hour:%Y-%m-%d}")
    assert (row["state"], row["late"]) == ("fresh", 0)
