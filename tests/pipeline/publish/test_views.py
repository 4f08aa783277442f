"""The views of the copy: what they promise, by name, type, order and content."""

import json
import tempfile
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from math import isclose
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from dashboards import (
    FAULTY_LATER,
    FIRST,
    LAST,
    LIMIT,
    LIMIT_LATER,
    NEVER_RUN,
    NO_LOG,
    ONCE,
    REFUSED,
    RELEASE,
    REPLAY,
    SCORED,
    STRICTER,
    contents,
    eventful,
    replayed,
    shown,
)
from histories import rewrite
from places import GOLDEN
from readers import ask
from stores import Row, Rows, audit, deliver, random_lists, ranking, read

import pipeline.publish.copy_tables
import pipeline.publish.kept_lists
from metrics import UNIT, UNKNOWN
from metrics.weights import exposure_at
from pipeline.history.forget import forget_rows
from pipeline.history.forget_batch import forget_batch
from pipeline.history.opening import open_history
from pipeline.integrity.verify import verify
from pipeline.publish.copy import publish, publish_changes, stale
from pipeline.publish.copy_tables import Made, Watched, expected_batches, watched
from pipeline.publish.worst_lists import LISTS, RANKS, worst_lists
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.settings.sections import Schedule
from pipeline.store.paths import store_of
from schemas.monitoring import SERIES_KEY
from schemas.scores import STATUSES
from schemas.views import VIEWS, VIEWS_VERSION

BEFORE = GOLDEN / "views.json"
TIMES = ("batch_start", "batch_end", "day")
DAYS = [f"2026-01-{day:02}" for day in range(1, 13)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The eventful audit, to be read."""
    return eventful(tmp_path_factory.mktemp("views"))


def series(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in SERIES_KEY)


# -- the contract


def test_views_are_as_declared(whole: Settings) -> None:
    dashboard = store_of(whole).dashboard
    for view in VIEWS:
        described = read(dashboard, f"DESCRIBE {view.name}")
        assert [(row["column_name"], row["column_type"]) for row in described] == [
            (column.name, column.type) for column in view.columns
        ], view.name


def test_rows_are_as_declared(whole: Settings) -> None:
    """No null where none is declared, and keys that are unique."""
    for view in VIEWS:
        rows = shown(whole, view.name)
        # A change of level takes more batches than there are here, what a release changed
        # resamples, and nobody asks for windows.
        here = view.name not in ("v_change_points", "v_release_changes", "v_windows")
        assert bool(rows) == here, view.name
        for column in view.columns:
            if not column.nullable:
                assert None not in [row[column.name] for row in rows], (view.name, column.name)
        keys = [tuple(row[name] for name in view.key) for row in rows]
        assert len(set(keys)) == len(keys), view.name


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return bool(one == other)


def test_contents_are_those_of_before(whole: Settings) -> None:
    """This file, run as a script with ``tests/helpers`` on the path, writes what is expected anew.

    Do so after a change that is meant.
    """
    golden = json.loads(BEFORE.read_text("utf-8"))
    found = json.loads(json.dumps(contents(whole)))
    assert list(found) == list(golden)
    for name, view in golden.items():
        assert found[name]["columns"] == view["columns"]
        assert len(found[name]["rows"]) == len(view["rows"]), name
        for row, before in zip(found[name]["rows"], view["rows"], strict=True):
            differing = {
                column: (value, was)
                for column, value, was in zip(view["columns"], row, before, strict=True)
                if not same(value, was)
            }
            assert not differing, (name, row)


# -- scores and their batches


def test_the_latest_and_the_breaches_are_of_the_history(whole: Settings) -> None:
    history = shown(whole, "v_history")
    latest, breaches = shown(whole, "v_latest"), shown(whole, "v_breaches")
    assert latest == [row for row in history if row["batch"] == REPLAY]
    assert [row for row in history if row["status"] == "breach"] == breaches
    assert breaches


def test_limits_are_those_of_then(whole: Settings) -> None:
    for row in shown(whole, "v_history"):
        held = row["label"] == "EXP.MinMaxRatio" and row["slice"] == "all"
        limit = LIMIT if row["batch"] < STRICTER else LIMIT_LATER
        assert row["threshold_min"] == (limit if held else None)
        assert row["threshold_max"] is None
        assert (row["verdict"] == "not_judged") == (not held)


def test_limits_of_settings_that_were_not_kept_are_not_known(settings: Settings) -> None:
    rewrite(
        settings,
        f"UPDATE batches SET settings = NULL WHERE batch < '{STRICTER}'",
        f"UPDATE batches SET settings = '[]' WHERE batch >= '{STRICTER}'",
    )
    publish(settings)
    rows = shown(settings, "v_history")
    assert {row["threshold_min"] for row in rows} == {None}


def test_margins_reach_from_the_value_to_its_limit(whole: Settings) -> None:
    rows = shown(whole, "v_history")
    judged = [row for row in rows if row["threshold_min"] is not None]
    assert judged
    for row in judged:
        assert row["margin"] == row["judged_value"] - row["threshold_min"]
        assert (row["direction"], row["fairest"]) == ("low", 1.0)
        if row["status"] == "breach":
            assert row["margin"] < 0
    assert {row["margin"] for row in rows if row["threshold_min"] is None} == {None}
    known = {row["label"]: row for row in shown(whole, "v_metrics")}
    for row in rows:
        said = known[row["label"]]
        assert (row["direction"], row["fairest"]) == (said["direction"], said["fairest"])


def test_a_limit_from_above_has_a_margin_too(settings: Settings) -> None:
    rewrite(
        settings,
        "UPDATE batches SET settings = replace(settings, '\"EXP.MinMaxRatio\": {', "
        '\'"IAA": {"max": 0.1}, "EXP.MinMaxRatio": {\')',
    )
    publish(settings)
    rows = [row for row in shown(settings, "v_history") if row["label"] == "IAA"]
    assert {row["threshold_max"] for row in rows} == {0.1}
    for row in rows:
        assert row["margin"] == (None if row["value"] is None else 0.1 - row["value"])


def test_times_of_batches_are_those_of_their_days(whole: Settings) -> None:
    views = ("v_history", "v_trend", "v_batches", "v_coverage", "v_groups", "v_usual")
    for view in (*views, "v_conclusions"):
        for row in shown(whole, view):
            times = (row["batch_start"], row["batch_end"], row["day"])
            if row["batch"] == REPLAY:
                assert times == (None, None, None)
                continue
            day = date.fromisoformat(row["batch"])
            start = datetime(day.year, day.month, day.day)
            assert times == (start, start + timedelta(days=1), day)


def test_a_release_holds_from_its_batch_on(whole: Settings) -> None:
    for row in shown(whole, "v_trend"):
        assert row["release"] == ("model v2" if row["batch"] >= RELEASE else None)
        assert row["release_starts"] == (row["batch"] == RELEASE)


def test_batches_count_their_scores(whole: Settings) -> None:
    history = shown(whole, "v_history")
    for row in shown(whole, "v_batches"):
        statuses = [each["status"] for each in history if each["batch"] == row["batch"]]
        assert row["scores"] == len(statuses)
        for name in STATUSES:
            assert row[name] == statuses.count(name)


# -- days, and gaps where one is missing


def test_coverage_is_what_is_expected_and_what_is_there(whole: Settings) -> None:
    rows = {row["batch"]: row for row in shown(whole, "v_coverage")}
    present = {row["batch"] for row in shown(whole, "v_batches")}
    assert list(rows) == [*DAYS, REPLAY]
    assert {batch for batch, row in rows.items() if row["expected"]} == set(DAYS)
    missing = {batch for batch, row in rows.items() if row["state"] == "missing"}
    assert missing == set(DAYS) - present == set(NEVER_RUN)
    assert (rows[NO_LOG]["state"], rows[REFUSED]["state"]) == ("no_data", "refused")
    # Its scores are those of the attempt before.
    assert (rows[FAULTY_LATER]["state"], rows[FAULTY_LATER]["scored"]) == ("refused", True)
    assert {batch for batch, row in rows.items() if row["scored"]} == {*SCORED, REPLAY}
    assert rows[FIRST]["due_at"] == datetime(2026, 1, 2, 6)
    assert rows[REPLAY]["due_at"] is None


def test_trends_have_every_batch_once(whole: Settings) -> None:
    coverage = {row["batch"]: row for row in shown(whole, "v_coverage")}
    history = {(row["batch"], series(row)): row for row in shown(whole, "v_history")}
    found: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for row in shown(whole, "v_trend"):
        found[series(row)].append(row)
    assert set(found) == {name for _, name in history}
    for name, rows in found.items():
        first = min(batch for batch, other in history if other == name)
        assert sorted(row["batch"] for row in rows) == [b for b in coverage if b >= first]
        for row in rows:
            score = history.get((row["batch"], name))
            if score:
                assert row["state"] == "done"
                assert (
                    row.items()
                    >= {key: value for key, value in score.items() if key in row}.items()
                )
                continue
            day = coverage[row["batch"]]
            assert row["state"] == ("absent" if day["scored"] else day["state"])
            told = {key for key, value in row.items() if value is not None}
            of_batch = {"batch", "state", "release", "release_starts", *TIMES}
            assert told <= {*SERIES_KEY, "label", "direction", "fairest"} | of_batch


def test_a_slice_that_is_gone_is_absent(whole: Settings) -> None:
    rows = [row for row in shown(whole, "v_trend") if row["slice_value"] == "watch"]
    states = {row["batch"]: row["state"] for row in rows if row["label"] == "EXP.MinMaxRatio"}
    gone = {day: "absent" for day in (*SCORED, REPLAY) if day > ONCE}
    others = dict.fromkeys(NEVER_RUN, "missing") | {NO_LOG: "no_data", REFUSED: "refused"}
    assert states == {ONCE: "done"} | gone | others


def test_trends_carry_what_was_expected(whole: Settings) -> None:
    followed = {(row["batch"], series(row)): row for row in shown(whole, "v_trends")}
    for row in shown(whole, "v_trend"):
        said = followed.get((row["batch"], series(row)), {})
        for name in ("center", "spread", "baseline", "residual", "ewma", "p_adjusted", "shift"):
            assert row[name] == said.get(name)


def test_changes_are_the_largest_first(whole: Settings) -> None:
    rows = shown(whole, "v_changes")
    history = {(row["batch"], series(row)): row for row in shown(whole, "v_history")}
    keys = [(row["batch"], abs(row["residual"])) for row in rows]
    assert all(one >= other for one, other in pairwise(keys))
    for row in rows:
        assert row["change"] == row["value"] - row["center"]
        assert row["worse"] == (row["residual"] > 0)
        before = [
            (batch, score["value"])
            for (batch, name), score in history.items()
            if name == series(row) and batch < row["batch"] and score["value"] is not None
        ]
        assert row["previous"] == max(before)[1]
        score = history[row["batch"], series(row)]
        assert (row["status"], row["worst_group"]) == (score["status"], score["worst_group"])


@pytest.mark.slow
def test_a_day_that_is_not_due_is_not_missing(tmp_path: Path) -> None:
    today = datetime.now(UTC).date()
    days = [(today + timedelta(days=at)).isoformat() for at in (-2, -1, 0, 1)]
    schedule = {"start": days[0], "deadline_hours": 24 * 30}
    settings = audit(tmp_path, metrics=["EXP"], schedule=schedule)
    deliver(tmp_path, ranking("a", "FM"), batch=days[1])
    run_batch(settings, days[1])
    publish(settings)
    ((row,),) = [shown(settings, "v_coverage")]
    assert (row["batch"], row["expected"], row["state"]) == (days[1], True, "done")
    settings = audit(tmp_path, metrics=["EXP"], schedule=schedule | {"deadline_hours": 1})
    publish_changes(settings)
    states = {row["batch"]: row["state"] for row in shown(settings, "v_coverage")}
    assert states[days[0]] == "missing"
    assert days[3] not in states
    (about,) = shown(settings, "v_about")
    due = datetime.fromisoformat(days[1]) + timedelta(days=1, hours=1)
    assert about["next_due_at"] in {due + timedelta(days=at) for at in range(3)}
    assert about["next_due_at"] > about["published_at"]


def test_a_day_is_due_after_its_end_in_its_own_time_zone() -> None:
    schedule = Schedule(
        start=date(2026, 3, 28), end=date(2026, 3, 30), timezone="Europe/Berlin", deadline_hours=30
    )
    found = expected_batches(schedule, Made(datetime(2026, 1, 1), ""))
    # Clocks go forward in the night before the 29th: the day has 23 hours.
    assert [row["due_at"] for row in found] == [
        datetime(2026, 3, 30, 5),
        datetime(2026, 3, 31, 4),
        datetime(2026, 4, 1, 4),
    ]


def test_days_go_on_where_the_schedule_has_no_end() -> None:
    found = expected_batches(Schedule(start=date(2026, 1, 1)), Made(datetime(2026, 1, 2), ""))
    assert (found[0]["batch"], found[-1]["batch"]) == ("2026-01-01", "2027-02-06")
    assert len(found) == 402


def test_logs_of_the_past_promise_nothing_of_the_days_until_they_are_audited() -> None:
    made = Made(datetime(2026, 11, 23), "")
    march = Watched("2026-03-02", datetime(2026, 11, 20, 12))

    def batches(schedule: Schedule) -> list[str]:
        return [row["batch"] for row in expected_batches(schedule, made, march)]

    # 19 November is due at 06:00 on the 20th, before anybody waited for it.
    first, second, third, *_ = batches(Schedule(start=date(2026, 3, 1)))
    assert (first, second, third) == ("2026-03-01", "2026-03-02", "2026-11-20")
    told = Schedule(start=date(2026, 3, 1), end=date(2026, 3, 5))
    assert batches(told) == [f"2026-03-0{day}" for day in range(1, 6)]


def test_since_when_a_history_is_watched_outlives_its_first_scores(tmp_path: Path) -> None:
    settings = audit(tmp_path, metrics=["EXP"], schedule={"start": "2026-01-01"})
    deliver(tmp_path, random_lists(1), batch="2026-01-01")
    run_batch(settings, "2026-01-01")
    with open_history(settings, read_only=True) as connection:
        begun = watched(connection)
    deliver(tmp_path, random_lists(2), batch="2026-01-01")
    run_batch(settings, "2026-01-01")
    with open_history(settings, read_only=True) as connection:
        assert watched(connection) == begun
    publish(settings)
    states = [row["state"] for row in shown(settings, "v_coverage")]
    assert states == ["done"]


# -- the worst lists


def delivered(batch: str) -> Rows:
    """The rows that the eventful audit accepted of a batch."""
    if batch == REPLAY:
        return replayed()
    watches = ranking("w", "FFMM", device="watch") if batch == ONCE else []
    return [*random_lists(SCORED.index(batch) + 1, 8), *watches]


def brute_worst_lists(rows: Rows) -> Rows:
    """The table worst_lists, from rows as delivered, list by list."""
    lists: dict[str, Rows] = defaultdict(list)
    for row in rows:
        lists[row["list_id"]].append({**row, "gender": row["gender"] or UNKNOWN})
    losing = []
    for name, each in lists.items():
        weights = [int(np.rint(exposure_at(np.array([r["rank"]]))[0] * float(UNIT))) for r in each]
        groups = [row["gender"] for row in each]
        lacks = {
            group: groups.count(group) * sum(weights)
            - len(each) * sum(w for w, other in zip(weights, groups, strict=True) if other == group)
            for group in sorted(set(groups) - {UNKNOWN})
        }
        loser = max(lacks, key=lambda group: lacks[group], default=None)
        if loser is not None and lacks[loser] > 0:
            losing.append((-lacks[loser] / len(each) / UNIT, name, loser))
    return [
        {"place": place, "list_id": name, "losing_group": loser, "shortfall": -short}
        | {"length": len(lists[name]), "rank": row["rank"], "item_id": row["item_id"]}
        | {"group_value": row["gender"], "relevance": row["relevance"], "click": row["click"]}
        for place, (short, name, loser) in enumerate(sorted(losing)[:LISTS], 1)
        for row in lists[name]
        if row["rank"] <= RANKS
    ]


def test_worst_lists_are_those_of_brute_force(whole: Settings) -> None:
    """Of every scored batch, the newest first."""
    found = shown(whole, "v_lists")
    assert list(dict.fromkeys(row["batch"] for row in found)) == [REPLAY, *reversed(SCORED)]
    for batch in (REPLAY, *SCORED):
        rows = [row for row in found if row["batch"] == batch]
        wanted = brute_worst_lists(delivered(batch))
        devices = {row["list_id"]: row["device"] for row in delivered(batch)}
        for row, other in zip(rows, wanted, strict=True):
            assert row.items() >= (other | {"shortfall": row["shortfall"]}).items()
            assert isclose(row["shortfall"], other["shortfall"], rel_tol=1e-12)
            assert (row["attribute"], row["query_id"]) == ("gender", row["list_id"])
            assert json.loads(row["slices"]) == {"device": devices[row["list_id"]]}
    newest = [row for row in found if row["batch"] == REPLAY]
    assert newest[-1]["place"] == LISTS
    # The long one is the worst.
    assert [row["rank"] for row in newest if row["list_id"] == "long"] == list(range(1, RANKS + 1))


@pytest.mark.slow
def test_where_the_top_is_bad_the_other_group_loses(tmp_path: Path) -> None:
    losers = {}
    for top in ("good", "bad"):
        settings = audit(tmp_path / top, metrics=["EXP"], top_of_list=top)
        deliver(tmp_path / top, ranking("a", "FMM"))
        run_batch(settings, "2026-01-05")
        publish(settings)
        (row, *_) = shown(settings, "v_lists")
        losers[row["losing_group"]] = row["shortfall"]
    assert losers == {"M": pytest.approx(losers["F"]), "F": pytest.approx(losers["M"])}
    assert losers["M"] > 0


@pytest.mark.slow
def test_intersections_have_worst_lists(tmp_path: Path) -> None:
    settings = audit(tmp_path, attributes=["gender", "age", ["gender", "age"]], metrics=["EXP"])
    deliver(tmp_path, ranking("a", "FMFM", age=["old", "old", "new", None]))
    run_batch(settings, "2026-01-05")
    publish(settings)
    rows = shown(settings, "v_lists")
    assert {row["attribute"] for row in rows} == {"gender", "age", "gender*age"}
    both = [row["group_value"] for row in rows if row["attribute"] == "gender*age"]
    assert both == ["F*old", "M*old", "F*new", UNKNOWN]


def test_nothing_is_told_of_single_lists_where_small_cells_are_hidden(settings: Settings) -> None:
    private = settings.privacy.model_copy(update={"min_cell": 2})
    publish(settings.model_copy(update={"privacy": private}))
    assert shown(settings, "v_lists") == []
    assert shown(settings, "v_latest")


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["gone", "garbage", "torn", "other rows"])
def test_without_the_rows_a_copy_has_no_lists(settings: Settings, harm: str) -> None:
    path = store_of(settings).batch(REPLAY)
    if harm == "gone":
        path.unlink()
    elif harm == "garbage":
        path.write_bytes(b"none" * 9000)
    elif harm == "torn":
        # Its headers stay: it can be opened, and not be read.
        path.write_bytes(path.read_bytes()[:12288].ljust(path.stat().st_size, b"\xff"))
    else:
        with duckdb.connect(str(path)) as file:
            file.execute("UPDATE batch_info SET input_hash = 'another'")
    before = shown(settings, "v_lists")
    problems = [line for line in verify(settings).problems if "dashboard" in line]
    assert problems == []
    publish(settings)
    assert shown(settings, "v_lists") == [row for row in before if row["batch"] != REPLAY]
    assert {row["batch"] for row in shown(settings, "v_latest")} == {REPLAY}


@pytest.mark.slow
def test_lists_go_with_the_rows_of_their_batch(settings: Settings) -> None:
    private = settings.privacy.model_copy(update={"keep_rows_days": 1})
    rewrite(settings, f"UPDATE batches SET finished_at = '2026-01-20' WHERE batch = '{REPLAY}'")
    assert REPLAY in forget_rows(settings.model_copy(update={"privacy": private}))
    publish_changes(settings)
    assert {row["batch"] for row in shown(settings, "v_lists")}.isdisjoint({REPLAY})


def test_a_forgotten_batch_has_no_lists(settings: Settings) -> None:
    forget_batch(settings, SCORED[0], "a test")
    publish_changes(settings)
    assert {row["batch"] for row in shown(settings, "v_lists")} == {*SCORED[1:], REPLAY}


def searched(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The batches whose files publishing searches for lists."""
    found = []

    def noted(settings: Settings, batch: str, input_hash: str) -> Any:
        found.append(batch)
        return worst_lists(settings, batch, input_hash)

    with monkeypatch.context() as patch:
        patch.setattr(pipeline.publish.kept_lists, "worst_lists", noted)
        publish(settings)
    return found


@pytest.mark.slow
def test_lists_are_found_once(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    every = [REPLAY, *reversed(SCORED)]
    lists = shown(settings, "v_lists")
    # The copy is a file that nobody noted.
    assert searched(settings, monkeypatch) == every
    assert searched(settings, monkeypatch) == []
    assert shown(settings, "v_lists") == lists
    deliver(settings.folder, random_lists(21, 8), batch=ONCE)
    run_batch(settings, ONCE)
    assert searched(settings, monkeypatch) == [ONCE]
    # Other settings, other lists.
    other = settings.model_copy(update={"top_of_list": "bad"})
    assert stale(other)
    assert searched(other, monkeypatch) == every
    # A copy that somebody wrote to is not relied on, nor one that has no lists.
    with duckdb.connect(str(store_of(settings).dashboard)) as copy:
        copy.execute("UPDATE worst_lists SET losing_group = 'F'")
    assert searched(settings, monkeypatch) == every
    store_of(settings).dashboard.unlink()
    assert searched(settings, monkeypatch) == every


@pytest.mark.slow
def test_lists_that_were_taken_over_are_those_that_would_be_found(settings: Settings) -> None:
    deliver(settings.folder, random_lists(21, 8), batch=ONCE)
    run_batch(settings, ONCE)
    publish(settings)
    tables = ("worst_lists", "listed_batches")
    taken_over = [read(store_of(settings).dashboard, f"FROM {name}") for name in tables]
    store_of(settings).dashboard.unlink()
    publish(settings)
    found = [read(store_of(settings).dashboard, f"FROM {name}") for name in tables]
    assert found == taken_over
    assert verify(settings).problems == []


def test_so_many_batches_have_lists(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline.publish.kept_lists, "BATCHES", 3)
    publish(settings)
    assert {row["batch"] for row in shown(settings, "v_lists")} == {REPLAY, *SCORED[-2:]}


# -- when a copy is renewed


@pytest.mark.slow
def test_a_copy_is_renewed_when_days_or_views_change(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    dashboard = store_of(settings).dashboard
    # The store is a copy, and so is its dashboard copy.
    publish_changes(settings)
    before = dashboard.stat().st_ino
    publish_changes(settings)
    assert dashboard.stat().st_ino == before
    for changed in ({"end": date(2026, 1, 20)}, {"deadline_hours": 31}, {"timezone": "Asia/Tokyo"}):
        schedule = settings.schedule.model_copy(update=changed)
        assert stale(settings.model_copy(update={"schedule": schedule}))
    # Nothing in the copy depends on the hour of the run.
    schedule = settings.schedule.model_copy(update={"hour": 5})
    assert not stale(settings.model_copy(update={"schedule": schedule}))
    monkeypatch.setattr(pipeline.publish.copy_tables, "VIEWS_VERSION", VIEWS_VERSION + 1)
    assert stale(settings)
    publish_changes(settings)
    assert dashboard.stat().st_ino != before
    assert shown(settings, "v_about")[0]["views_version"] == VIEWS_VERSION + 1


def test_the_copy_says_what_it_is(whole: Settings) -> None:
    (about,) = shown(whole, "v_about")
    assert about["views_version"] == VIEWS_VERSION
    assert (about["newest_batch"], about["schedule_end"]) == (REPLAY, LAST)
    ((head,),) = [read(store_of(whole).history, "FROM ledger_head")]
    assert about["generation"] == head["hash"]
    assert abs(datetime.now(UTC).replace(tzinfo=None) - about["published_at"]) < timedelta(hours=1)


# -- older readers

_ASK = """
import json, sys, duckdb
with duckdb.connect(sys.argv[1], read_only=True) as copy:
    names = [row[0] for row in copy.execute(
        "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL").fetchall()]
    found = {name: len(copy.execute(f"FROM {name}").fetchall()) for name in names}
    said = copy.execute("SELECT count(*) FROM duckdb_columns() WHERE comment IS NOT NULL "
                        "AND table_name = 'v_trend'").fetchall()[0][0]
print(json.dumps([duckdb.__version__, found, said]))
"""


def test_older_versions_read_the_copy(whole: Settings) -> None:
    version, rows, said = ask(_ASK, store_of(whole).dashboard)
    assert version.startswith("1.4.")
    assert rows == {view.name: len(shown(whole, view.name)) for view in VIEWS}
    assert said == len(next(view for view in VIEWS if view.name == "v_trend").columns)


def _rewrite() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = contents(eventful(Path(folder)))
    parts = []
    for name, view in found.items():
        rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in view["rows"])
        columns = json.dumps(view["columns"])
        parts.append(f'"{name}": {{"columns": {columns}, "rows": [\n{rows}\n]}}')
    BEFORE.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    _rewrite()
