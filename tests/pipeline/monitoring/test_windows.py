"""Scores of several days together: right numbers, found of them, and what is told."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from fair_logs import biased, random_log, rows_of
from stores import LENIENT, Row, Rows, audit, deliver, in_history

from metrics import FAMILIES
from metrics.labels import parse_measures
from pipeline.history.forget_batch import forget_batch
from pipeline.integrity.verify import verify
from pipeline.monitoring.alerts import alerts, mark
from pipeline.monitoring.assess import assess
from pipeline.monitoring.findings import Findings, window_findings
from pipeline.monitoring.subjects import Series, Subject
from pipeline.monitoring.windows import windows_of
from pipeline.publish.copy import publish
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings

DAYS = ("2026-01-05", "2026-01-06", "2026-01-07")
NEXT = "2026-01-08"
KEY = ("slice", "slice_value", "attribute", "metric", "aggregation")
ALL = [measure.label for family in FAMILIES for measure in parse_measures(family.name, 5)]
NOT_COUNTED = {"IAA", "Gini", "EEL", "EED", "EER"}
"""What sums over days do not give: items and queries are the same ones on several of them."""


def night(seed: int, *, pull: float = 0.0, lists: int = 40, share: float = 0.5) -> Rows:
    """Lists of the queries of every night; women stand lower where ``pull`` is below 0."""
    log = biased(random_log(seed, lists, {"F": share, "M": 1 - share}), pull, seed)
    return [
        {
            **row,
            "list_id": f"{seed} {row['list_id']}",
            "query_id": row["list_id"],
            "click": (row["rank"] + seed) % 2,
            "device": ("mobile", "desktop")[len(row["list_id"]) % 2],
        }
        for row in rows_of(log)
    ]


def settings_of(folder: Path, **said: Any) -> Settings:
    return audit(
        folder,
        **{
            "attributes": ["group"],
            "metrics": ["EXP"],
            "windows": [3],
            "evidence": {**LENIENT, "resamples": 200},
            "thresholds": {"EXP.MinMaxRatio": {"min": 0.9}},
            **said,
        },
    )


def run(settings: Settings, nights: Sequence[tuple[str, Rows]]) -> None:
    for batch, rows in nights:
        deliver(settings.folder, rows, batch=batch)
        run_batch(settings, batch)


def windows(settings: Settings, batch: str | None = None) -> list[Row]:
    where = "" if batch is None else f"WHERE batch = '{batch}'"
    return in_history(settings, f"FROM window_scores {where} ORDER BY ALL")


def told(settings: Settings) -> list[tuple[str, str, str, str | None]]:
    return [
        (row["kind"], row["slice"], row["opened"], row["resolved"])
        for row in sorted(alerts(settings, every=True), key=lambda row: row["opened"])
    ]


@pytest.mark.slow
def test_a_window_is_one_batch_of_all_its_days(tmp_path: Path) -> None:
    """By every metric there is; queries are the same every day, so that no more are counted."""
    logs = [night(seed, pull=-0.5) for seed in range(3)]
    said = {"metrics": ALL, "slices": ["device"]}
    apart = settings_of(tmp_path / "apart", **said)
    run(apart, [*zip(DAYS, logs, strict=True)])
    together = settings_of(tmp_path / "together", **said, windows=[])
    run(together, [(DAYS[-1], [*itertools.chain(*logs)])])
    expected = {
        tuple(row[name] for name in KEY): row
        for row in in_history(together, "FROM fairness_history")
    }
    found = {tuple(row[name] for name in KEY): row for row in windows(apart, DAYS[-1])}
    assert found.keys() == expected.keys()
    assert {key[3].split("(")[0] for key, row in found.items() if row["reason"]} >= NOT_COUNTED
    for key, row in found.items():
        same = expected[key]
        if key[3].split("(")[0] in NOT_COUNTED:
            assert (row["value"], row["reason"]) == (None, "not_counted")
            continue
        assert (row["reason"], row["status"]) == (same["reason"], same["status"]), key
        assert (row["lists"], row["rows"]) == (same["lists"], same["rows"])
        for name in ("value", "lower", "upper", "against_chance", "judged_value"):
            wanted = same[name]
            assert row[name] == (None if wanted is None else pytest.approx(wanted, abs=1e-12)), key
        assert row["queries"] == same["queries"]
        assert (row["days_used"], row["days_missing"]) == (3, 0)


SMALL = {"resamples": 200, "noise_draws": 0, "min_queries": 20, "min_appearances": 40}
"""What nights of the small group lack, and several of them have."""


def small_nights(count: int, pull: float = -4.0, first: int = 1) -> list[tuple[str, Rows]]:
    """Nights of 40 lists with a group of 6 %, far down by default."""
    return [
        (f"2026-01-{first + at:02}", night(first + at, pull=pull, share=0.06))
        for at in range(count)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("days", [[], [7]])
def test_what_no_night_shows_a_window_does(tmp_path: Path, days: list[int]) -> None:
    settings = settings_of(tmp_path, windows=days, evidence={**LENIENT, **SMALL})
    run(settings, small_nights(7))
    nights = in_history(settings, "FROM fairness_history WHERE status <> 'not_judged'")
    assert {row["status"] for row in nights} == {"insufficient"}
    opened = [row for row in alerts(settings) if row["kind"] != "shift"]
    if not days:
        assert opened == []
        return
    (alert,) = opened
    assert (alert["kind"], alert["reading_of"]) == ("window", "EXP.MinMaxRatio")
    assert alert["opened"] == "2026-01-04", "half of the days"
    head, small, size, *_ = alert["text"].splitlines()
    assert head.startswith("Over the 7 days up to 2026-01-07: F got ")
    assert head.endswith("; the limit is 90%.")
    assert small.startswith("Exposure ratio of group, all requests: 0.")
    assert size.startswith("From 280 lists, ")
    first = in_history(settings, f"FROM alert_batches WHERE batch = '{alert['opened']}'")
    assert "Of 7 days, 4 are in it: 3 without scores." in first[0]["text"]
    assert "No batch of these days is a breach by itself." in first[0]["text"]
    few = [row for row in windows(settings, "2026-01-03") if row["status"] != "not_judged"]
    assert {(row["status"], row["status_reason"]) for row in few} == {
        ("insufficient", "too_few_days")
    }
    assert not [each for each in verify(settings).unfinished if "window_scores" in each]
    run(settings, small_nights(7, pull=0.0, first=8))
    (ended,) = (row for row in alerts(settings, every=True) if row["kind"] == "window")
    assert (ended["state"], ended["resolved"] > "2026-01-08") == ("resolved", True)
    assert "was 0." in ended["text"]
    assert "(the days up to 2026-01-" in ended["text"]


def test_a_breach_of_a_night_is_not_told_again(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    run(settings, [(day, night(at, pull=-2.0)) for at, day in enumerate(DAYS)])
    run(settings, [(NEXT, night(3, pull=2.0))])
    assert {row["status"] for row in windows(settings, DAYS[-1]) if row["aggregation"]} >= {
        "breach"
    }
    assert {kind for kind, *_ in told(settings)}.isdisjoint({"window"})


@pytest.fixture
def three(tmp_path: Path) -> Settings:
    """Three days of which each window is a breach."""
    settings = settings_of(tmp_path)
    run(settings, [(day, night(at, pull=-2.0)) for at, day in enumerate(DAYS)])
    return settings


@pytest.mark.slow
def test_what_is_not_in_a_window_is_counted(three: Settings) -> None:
    """Days without scores, and days that were counted under other settings."""
    run(three, [("2026-01-09", night(9))])
    (said,) = {
        (row["first_day"], row["days_used"], row["days_missing"], row["days_other"])
        for row in windows(three, "2026-01-09")
    }
    assert said == ("2026-01-07", 2, 1, 0)
    other = three.model_copy(update={"relevant_from": 0.7})
    run(other, [("2026-01-08", night(8))])
    (said,) = {
        (row["days_used"], row["days_missing"], row["days_other"])
        for row in windows(other, "2026-01-08")
    }
    assert said == (1, 0, 2)


def test_a_window_over_a_release_says_so(three: Settings) -> None:
    mark(three, DAYS[1], "model v7")
    (release,) = windows_told(three, DAYS[-1])
    assert release == DAYS[1]
    mark(three, DAYS[0], "model v6")
    assert windows_told(three, DAYS[-1]) == {DAYS[1]}, "the window begins with that one"


def windows_told(settings: Settings, batch: str) -> set[str]:
    publish(settings)
    path = settings.folder / "store" / "dashboard.duckdb"
    with duckdb.connect(str(path), read_only=True) as connection:
        rows = connection.execute(
            "SELECT DISTINCT releases FROM v_windows WHERE batch = ?", [batch]
        ).fetchall()
    return {releases for (releases,) in rows}


@pytest.mark.slow
def test_the_order_of_merging_does_not_matter(three: Settings, tmp_path: Path) -> None:
    other = settings_of(tmp_path / "other")
    nights = [(day, night(at, pull=-2.0)) for at, day in enumerate(DAYS)]
    run(other, [nights[2], nights[0], nights[1]])
    assert windows(other) == windows(three)
    before = windows(three)
    assert assess(three, DAYS).changed is False
    assert windows(three) == before


@pytest.mark.slow
def test_a_day_that_is_something_else_makes_later_windows_anew(three: Settings) -> None:
    before = windows(three)
    run(three, [(DAYS[1], night(1, pull=2.0))])
    changed = {row["batch"] for row in windows(three) if row not in before}
    assert changed == {*DAYS[1:]}
    assert forget_batch(three, DAYS[1], "twice").rows
    assess(three)
    assert {row["batch"]: row["days_used"] for row in windows(three)} == {DAYS[0]: 1, DAYS[2]: 2}
    assert verify(three).problems == []


def test_windows_begin_with_the_batches_that_are_run_under_them(tmp_path: Path) -> None:
    """To be asked for them costs nobody the whole history."""
    without = settings_of(tmp_path, windows=[])
    run(without, [(day, night(at)) for at, day in enumerate(DAYS)])
    assert windows(without) == []
    asked = settings_of(tmp_path)
    assert not [each for each in verify(asked).unfinished if "window_scores" in each]
    run(asked, [(NEXT, night(4))])
    assert {(row["batch"], row["days_used"]) for row in windows(asked)} == {(NEXT, 3)}
    # What was made is history.
    run(without, [(DAYS[0], night(5))])
    assert {(row["batch"], row["days_used"]) for row in windows(without)} == {(NEXT, 3)}
    run(without, [(NEXT, night(6))])
    assert windows(without) == []


@pytest.mark.slow
def test_nothing_is_told_of_what_a_day_leaves_out(tmp_path: Path) -> None:
    """Of a slice of two people on the second day, no window with that day tells."""
    settings = settings_of(tmp_path, slices=["device"], privacy={"min_cell": 5})
    nights = [(day, night(at, pull=-2.0)) for at, day in enumerate((*DAYS, NEXT, "2026-01-09"))]
    few = [row for row in nights[1][1] if row["device"] == "mobile"][:2]
    nights[1] = (DAYS[1], [row for row in nights[1][1] if row["device"] != "mobile"] + few)
    run(settings, nights)
    stored = {(row["batch"], row["slice_value"]) for row in windows(settings)}
    publish(settings)
    with duckdb.connect(str(tmp_path / "store" / "dashboard.duckdb"), read_only=True) as shown:
        rows = shown.execute("SELECT DISTINCT batch, slice_value FROM v_windows").fetchall()
    assert (NEXT, "mobile") in stored
    told_of = {batch for batch, value in rows if value == "mobile"}
    assert told_of == {DAYS[0], "2026-01-09"}
    assert {batch for batch, value in rows if value == "all"} == {batch for batch, _ in nights}


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (("ok", "ok"), "fine"),
        (("ok", "insufficient"), ""),
        (("ok", "undefined"), ""),
        (("insufficient", "breach"), "found"),
        (("ok", "breach"), "found"),
    ],
)
def test_a_window_that_cannot_be_told_ends_nothing(
    statuses: tuple[str, str], expected: str
) -> None:
    series = Series("all", "all", "group", "EXP", "MinMaxRatio")
    rows = [{"status": each, "first_day": DAYS[0]} for each in statuses]
    into = Findings(NEXT)
    window_findings(into, {series: rows}, lambda first, last: (), ())
    subject = Subject.about("window", series)
    assert [name for name in ("found", "fine") if subject in getattr(into, name)] == (
        [expected] if expected else []
    )


def test_only_days_have_windows() -> None:
    row = dict.fromkeys(("rows_hash", "config_hash", "input_hash", "code_version"), "x")
    assert windows_of("2026-01-05T07", [2], {"2026-01-05T07": row}, ()) == []
    assert windows_of("spring", [2], {"spring": row}, ()) == []
    short, long = windows_of("2026-03-01", [30, 2], {"2026-03-01": row}, ())
    assert (short.first, long.first) == ("2026-02-28", "2026-01-31")
    assert (short.missing, short.other, short.used) == (1, 0, ("2026-03-01",))
    days = dict.fromkeys(("2026-02-27", "2026-02-28", "2026-03-01"), row)
    days["2026-02-27"] = row | {"rows_hash": "another key"}
    (three,) = windows_of("2026-03-01", [3], days, {"2026-02-28"})
    assert (three.missing, three.gated, three.other) == (0, 1, 1)
    assert three.used == ("2026-03-01",)
