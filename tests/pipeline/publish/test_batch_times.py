"""When the days and hours are that batches are named after."""

from datetime import date, datetime

from pipeline.publish.batch_times import batch_times


def times(batch: str, timezone: str = "Europe/Berlin") -> tuple[datetime, datetime]:
    (row,) = batch_times([batch], timezone)
    assert row["batch"] == batch
    return row["batch_start"], row["batch_end"]


def test_days_are_those_of_the_time_zone() -> None:
    assert times("2026-01-05", "UTC") == (datetime(2026, 1, 5), datetime(2026, 1, 6))
    assert times("2026-01-05") == (datetime(2026, 1, 4, 23), datetime(2026, 1, 5, 23))
    # Clocks go forward, and back.
    assert times("2026-03-29") == (datetime(2026, 3, 28, 23), datetime(2026, 3, 29, 22))
    assert times("2026-10-25") == (datetime(2026, 10, 24, 22), datetime(2026, 10, 25, 23))


def test_hours_are_those_of_the_clock_on_the_wall() -> None:
    assert times("2026-01-05T00") == (datetime(2026, 1, 4, 23), datetime(2026, 1, 5))
    assert times("2026-01-05T23") == (datetime(2026, 1, 5, 22), datetime(2026, 1, 5, 23))
    # There is no such hour, and one that comes twice is one batch.
    assert times("2026-03-29T02") == (datetime(2026, 3, 29, 1), datetime(2026, 3, 29, 1))
    assert times("2026-10-25T02") == (datetime(2026, 10, 25), datetime(2026, 10, 25, 2))


def test_only_days_have_a_date() -> None:
    rows = batch_times(["2026-01-05T07", "2026-01-05"], "UTC")
    assert [(row["batch"], row["day"]) for row in rows] == [
        ("2026-01-05", date(2026, 1, 5)),
        ("2026-01-05T07", None),
    ]


def test_other_names_have_no_time() -> None:
    names = ["model-b", "2026-02-30", "2026-01-05T24", "2026-01", "20260105", "1500-01-01", "r1"]
    assert batch_times(names, "UTC") == []
    assert batch_times(["2200-12-31", "1970-01-01"], "Pacific/Kiritimati")
