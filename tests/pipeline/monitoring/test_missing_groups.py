"""A group that batches usually have, and that one has no row of: found, told, and never ok."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from damaged import change, of_before
from histories import (
    NIGHTS,
    Given,
    alerts_of,
    assessments,
    group,
    quiet,
    score,
    small_audit,
    write,
)
from stores import in_history

from pipeline.history.opening import open_history
from pipeline.history.proof import status_problems
from pipeline.monitoring.alerts import act, alerts, mark
from pipeline.monitoring.assess import assess, differing_tables, due
from pipeline.monitoring.findings import Findings, cover
from pipeline.monitoring.followed_scores import Exclusions
from pipeline.monitoring.gates import Releases
from pipeline.monitoring.inputs import Presence
from pipeline.monitoring.missing_groups import missing_findings, serving, without_renamed
from pipeline.monitoring.subjects import Series, Subject
from pipeline.publish.copy import publish
from pipeline.settings.audit import Settings
from pipeline.settings.sections import Trends
from pipeline.store.paths import store_of

DEFAULTS = Trends()
NO_RELEASE = Releases(())
USUAL = 40
"""Queries of a group of which there is enough."""


def missing(attribute: str, group: str) -> Subject:
    return Subject.about("missing", Series("all", "all", attribute, group, None))


X = missing("gender", "X")


# -- the rule, on counts


def presence(queries: Mapping[tuple[str, str], Sequence[int | None]]) -> Presence:
    """Groups with as many queries, night by night; None where the attribute is not told."""
    cells = np.array([*queries.values()], dtype=object).T
    told = np.not_equal(cells, None)
    counted = np.where(told, cells, 0).astype(np.int64)
    batches = tuple(f"n{at:03}" for at in range(len(cells)))
    return Presence(batches, tuple(queries), counted, 3 * counted, told)


def found(
    *queries: int | None, gated: Sequence[str] = (), excluded: Exclusions = (),
    releases: Releases = NO_RELEASE, settings: Trends = DEFAULTS,
) -> Findings:  # fmt: skip
    """What is found of a group in the last of some nights."""
    held = presence({("gender", "X"): queries})
    into = Findings(held.batches[-1])
    serves = serving(held, gated, excluded)
    missing_findings(into, held, len(queries) - 1, serves, releases, settings)
    return into


def test_a_group_that_vanishes_is_missing() -> None:
    into = found(*[USUAL] * 20, 0)
    assert into.found == {X}
    assert into.fine == set()
    usual = into.missing[X]
    said = (usual.last, usual.queries, usual.rows, usual.held, usual.baseline)
    assert said == ("n019", USUAL, 3 * USUAL, 20, 20)


def test_a_group_that_the_settings_count_as_another_by_now_is_not_missing() -> None:
    gone = [USUAL] * 20 + [0]
    held = presence({("gender", "Female"): gone, ("age*gender", "old*Female"): gone,
                     ("region", "Female"): gone})  # fmt: skip
    into = Findings(held.batches[-1])
    now = without_renamed(held, {"gender": {"Female": "F"}})
    serves = serving(now, (), ())
    missing_findings(into, now, len(gone) - 1, serves, NO_RELEASE, DEFAULTS)
    assert into.found == {missing("region", "Female")}


def test_a_group_that_is_there_is_fine_however_small() -> None:
    into = found(*[USUAL] * 20, 1)
    assert (into.found, into.fine) == (set(), {X})


def test_it_stays_missing_for_as_long_as_it_is_away() -> None:
    for away in (1, 14, 15, 60, 98):
        assert found(*[USUAL] * 80, *[0] * away).missing[X].last == "n079"
    # Twice the window back, there is too little left to say that it is usual.
    late = found(*[USUAL] * 80, *[0] * 100)
    assert (late.found, late.fine) == (set(), set())
    assert found(*[USUAL] * 80, *[0] * 113).fine == {X}


@pytest.mark.parametrize(
    ("before", "is_missing"),
    [
        ([USUAL] * 13, False),
        ([USUAL] * 14, True),
        # In twenty queries or more, and in fewer.
        ([20] * 14, True),
        ([19] * 28, False),
        # Gone once, or small for a while, it is still usual; gone twice, it comes and goes.
        ([*[USUAL] * 20, 0, *[USUAL] * 5], True),
        ([*[USUAL] * 20, 0, 0, 0, *[USUAL] * 20], True),
        ([*[USUAL] * 20, 0, *[USUAL] * 5, 0, *[USUAL] * 5], False),
        ([*[USUAL] * 20, 20, 4, 1], True),
        # Every Sunday, every weekend.
        (([USUAL] * 6 + [0]) * 2, False),
        (([USUAL] * 5 + [0, 0]) * 8, False),
        # Small for a fifth of the nights, and for more.
        ([*[USUAL] * 20, *[5] * 5], True),
        ([*[USUAL] * 20, *[5] * 6], False),
        # New, and never there.
        ([*[0] * 3, *[USUAL] * 14], True),
        ([*[0] * 40, *[USUAL] * 14], False),
        ([0] * 28, False),
    ],
)
def test_what_is_usual(before: list[int], is_missing: bool) -> None:
    assert (X in found(*before, 0).found) == is_missing


def test_batches_that_do_not_serve_say_nothing() -> None:
    nights = [*[USUAL] * 16, 0, 0, USUAL, 0, USUAL, 0]
    assert X not in found(*nights).found
    assert X in found(*nights, gated=["n019"]).found
    assert X in found(*nights, excluded=[("gender", "n019")]).found
    assert X not in found(*nights, excluded=[("age", "n019"), (None, "n019")]).found
    assert X not in found(*[USUAL] * 14, 0, gated=["n003"]).found
    # Nor does one that did not know the attribute, and is one that does not know it any more.
    assert X not in found(None, *[USUAL] * 13, 0).found
    assert X in found(None, *[USUAL] * 14, 0).found
    gone = found(*[USUAL] * 20, None)
    assert (gone.found, gone.fine) == (set(), set())


def test_what_somebody_marks_begins_anew() -> None:
    nights = [*[USUAL] * 20, *[0] * 15]
    assert X in found(*nights, releases=Releases(("n010", "n020"))).found
    since = Releases(("n020",), ("n020",))
    assert found(*nights[:-1], releases=since) == Findings("n033")
    assert found(*nights, releases=since).fine == {X}


def test_other_findings_of_the_attribute_are_not_fine() -> None:
    held = presence({("gender", "X"): [*[USUAL] * 14, 0]})
    parts = [("all", "all", "gender"), ("device", "tv", "gender"), ("all", "all", "age*gender"),
             ("all", "all", "age"), ("all", "all", None)]  # fmt: skip
    into = Findings("n014")
    into.fine = {Subject.about("breach", Series(*part, "EXP", "MinMaxRatio")) for part in parts}
    gate = Subject.about("gate", Series("all", "all", "gender", "group_mix", None))
    into.fine.add(gate)
    missing_findings(into, held, 14, serving(held, (), ()), NO_RELEASE, DEFAULTS)
    assert {each.part.attribute for each in into.fine if each != gate} == {"age", None}
    assert gate in into.fine


def test_a_missing_group_tells_of_its_intersections() -> None:
    pieces = [missing("gender*age", "X*old"), missing("gender*age", "F*old")]
    old = [missing("age", "old")]
    for whole, covered in (([X], pieces[:1]), (old, pieces), ([], [])):
        into = Findings("1", {*whole, *pieces, missing("size", "X")})
        into.missing = dict.fromkeys(into.found)  # type: ignore[arg-type]
        cover(into)
        assert into.covered == {*covered}


def alarms(counts: np.ndarray[Any, Any]) -> int:
    """How many findings there are in counts of queries, shape (nights, groups)."""
    held = presence({("gender", str(at)): list(column) for at, column in enumerate(counts.T)})
    serves = serving(held, (), ())
    total = 0
    for row in range(len(counts)):
        into = Findings(held.batches[row])
        missing_findings(into, held, row, serves, NO_RELEASE, DEFAULTS)
        total += len(into.found)
    return total


@pytest.mark.parametrize("together", [1, 3])
def test_small_groups_that_come_and_go_are_not_missing(together: int) -> None:
    """Queries come by chance at steady rates: each by itself, or some at a time."""
    rates = np.linspace(0.05, 60, 300)
    drawn = np.random.default_rng(1).poisson(rates / together, (120, len(rates)))
    assert alarms(together * drawn) == 0


def test_groups_that_are_off_at_random_are_seldom_missing() -> None:
    """Whoever is gone on one night in three is soon known to come and go."""
    there = np.random.default_rng(2).random((120, 100)) > 1 / 3
    assert alarms(40 * there) < 0.001 * there.size


# -- in a history

GONE = 12
BACK = 15
SIZES = {"F": 450, "M": 420, "X": 130}
LACKING = ("insufficient", "missing_group: X")


def nights(sizes: Mapping[int, dict[str, int]], count: int = 18, **said: Any) -> Iterator[Given]:
    """Nights with a judged score of gender in the whole batch and in a slice, and one of age."""
    device = {"slice": "device", "slice_value": "tv", "rows": 500}
    for at in range(count):
        scores = [score(quiet(at)), score(quiet(at + 9), **device), score(0.9, attribute="age")]
        scores.append(score(0.9, metric="ARP", status="not_judged"))
        here = sizes.get(at, SIZES)
        yield Given(NIGHTS[at], scores, sizes=here, rows=sum(here.values()), **said)


WITHOUT = {"F": 520, "M": 480}
AWAY = dict.fromkeys(range(GONE, BACK), WITHOUT)


def history(folder: Path, sizes: Mapping[int, dict[str, int]], count: int = 18) -> Settings:
    settings = small_audit(folder)
    write(settings, list(nights(sizes, count)))
    assess(settings)
    return settings


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Eighteen nights: X is away on three of them."""
    return history(tmp_path_factory.mktemp("nights"), AWAY)


def statuses(settings: Settings, batch: str) -> dict[Any, tuple[str, str | None]]:
    rows = in_history(settings, "FROM fairness_history WHERE batch = ?", [batch])
    return {
        (row["slice"], row["attribute"], row["metric"]): (row["status"], row["status_reason"])
        for row in rows
    }


def missing_alerts(settings: Settings) -> list[Any]:
    return [row[1:] for row in alerts_of(settings) if row[0] == "missing"]


def test_one_alert_for_as_long_as_the_group_is_away(whole: Settings) -> None:
    assert alerts_of(whole) == [("missing", NIGHTS[GONE], NIGHTS[BACK - 1], NIGHTS[BACK])]
    (row,) = alerts(whole, batches=[NIGHTS[GONE + 1]])
    assert (row["attribute"], row["metric"], row["batches"]) == ("gender", "X", 3)
    assert row["text"].split("\n") == [
        "Group X of gender is missing: no row in the whole batch, usually 130 rows in 21 queries.",
        f"Last there in {NIGHTS[GONE - 1]}; in 8 of the 8 batches up to that one, at least 20 "
        "queries held it.",
        "So no score of gender is ok: it would say nothing of X.",
        "Look at what is delivered: the rows of X in the logs, and the values of gender in the "
        "item table or the logs.",
        "If there is no X from now on, mark a release with the first batch without it.",
        f"Seen since {NIGHTS[GONE]}.",
    ]


def test_no_score_of_the_attribute_is_ok_meanwhile(whole: Settings) -> None:
    fine = ("ok", None)
    for at in range(18):
        here = statuses(whole, NIGHTS[at])
        of_gender = LACKING if at in AWAY else fine
        assert here["all", "gender", "EXP"] == here["device", "gender", "EXP"] == of_gender
        assert here["all", "age", "EXP"] == fine
        assert here["all", "gender", "ARP"] == ("not_judged", None)
    own = in_history(whole, "SELECT DISTINCT verdict, verdict_reason FROM fairness_history")
    assert {tuple(row.values()) for row in own} == {fine, ("not_judged", None)}
    with open_history(whole, read_only=True) as connection:
        assert status_problems(connection) == []


def rewritten(settings: Settings, sizes: Mapping[int, dict[str, int]], *which: int) -> None:
    """Give some nights other sizes of groups, and assess what that changes."""
    every = list(nights(sizes))
    write(settings, [every[at] for at in which])
    assess(settings, [NIGHTS[at] for at in which])


def test_a_past_batch_that_is_run_again_takes_the_finding_back(settings: Settings) -> None:
    rewritten(settings, {}, GONE)
    assert missing_alerts(settings) == [(NIGHTS[GONE + 1], NIGHTS[BACK - 1], NIGHTS[BACK])]
    assert statuses(settings, NIGHTS[GONE])["all", "gender", "EXP"] == ("ok", None)
    rewritten(settings, {}, *AWAY)
    assert alerts_of(settings) == []
    assert set(statuses(settings, NIGHTS[BACK - 1]).values()) == {
        ("ok", None),
        ("not_judged", None),
    }


def test_a_batch_that_a_gate_keeps_out_says_nothing_of_its_groups(settings: Settings) -> None:
    few = {"F": 52, "M": 48}
    rewritten(settings, {**AWAY, GONE: few, GONE + 2: few}, GONE, GONE + 2)
    assert missing_alerts(settings) == [(NIGHTS[GONE + 1], NIGHTS[GONE + 1], NIGHTS[BACK])]
    gated = statuses(settings, NIGHTS[GONE])["all", "gender", "EXP"]
    assert gated == ("gated", "gate_volume")


def test_a_breach_stays_a_breach_and_is_not_over(settings: Settings) -> None:
    said = list(nights(AWAY))
    device = {"slice": "device", "slice_value": "tv", "rows": 500}
    for at in (GONE - 1, GONE):
        said[at] = Given(NIGHTS[at], [score(0.5), score(0.9, **device)], sizes=said[at].sizes)
    write(settings, said[GONE - 1 : GONE + 1])
    assess(settings)
    here = statuses(settings, NIGHTS[GONE])
    assert here["all", "gender", "EXP"] == ("breach", None)
    assert here["device", "gender", "EXP"] == LACKING
    breaches = [row[1:] for row in alerts_of(settings) if row[0] == "breach"]
    assert breaches == [(NIGHTS[GONE - 1], NIGHTS[GONE], NIGHTS[BACK])]


def test_a_release_that_somebody_marks_ends_it(settings: Settings) -> None:
    rewritten(settings, dict.fromkeys(range(GONE, 18), WITHOUT), 15, 16, 17)
    assert missing_alerts(settings) == [(NIGHTS[GONE], NIGHTS[17], None)]
    mark(settings, NIGHTS[GONE + 1], "no X any more")
    assert missing_alerts(settings) == [(NIGHTS[GONE], NIGHTS[GONE], NIGHTS[17])]
    assert statuses(settings, NIGHTS[GONE + 1])["all", "gender", "EXP"] == ("ok", None)


def test_an_acknowledged_absence_is_not_usual(settings: Settings) -> None:
    rewritten(settings, AWAY | {16: WITHOUT, 17: WITHOUT}, 16, 17)
    assert [row[0] for row in missing_alerts(settings)] == [NIGHTS[GONE]]
    (name,) = (row["alert"] for row in alerts(settings, every=True) if row["kind"] == "missing")
    _, changed = act(settings, [name], "ack", who="eve")
    assert [row[0] for row in missing_alerts(settings)] == [NIGHTS[GONE], NIGHTS[16]]
    assert set(changed.later) >= {NIGHTS[16], NIGHTS[17]}
    waiting = [row["opened"] for row in alerts(settings) if row["kind"] == "missing"]
    assert waiting == [NIGHTS[16]]
    act(settings, [name], "undo", who="eve")
    assert [row[0] for row in missing_alerts(settings)] == [NIGHTS[GONE]]


def test_a_store_of_before_is_looked_at_with_what_it_has(settings: Settings) -> None:
    """Queries of groups were not counted always, and no alert was about a group."""
    of_before(store_of(settings))
    change(
        store_of(settings).history,
        "ALTER TABLE prefix_stats DROP COLUMN queries",
        "DELETE FROM alerts",
        "DELETE FROM alert_batches",
        "UPDATE fairness_history SET status = verdict, status_reason = NULL",
    )
    with open_history(settings, read_only=True) as connection:
        assert status_problems(connection) == []
        assert differing_tables(connection, settings) == [
            "alert_batches", "alerts", "fairness_history",
        ]  # fmt: skip
    assert not due(settings)
    assess(settings, [NIGHTS[0]])
    assert missing_alerts(settings) == [(NIGHTS[GONE], NIGHTS[BACK - 1], NIGHTS[BACK])]
    assert statuses(settings, NIGHTS[GONE])["all", "gender", "EXP"] == LACKING


@pytest.mark.slow
def test_night_by_night_is_all_at_once(whole: Settings, tmp_path: Path) -> None:
    other = small_audit(tmp_path / "other")
    for given in list(nights(AWAY)):
        write(other, [given])
        assert assess(other, [given.batch]).later == ()
    assert assessments(other) == assessments(whole)


@pytest.mark.slow
def test_the_query_of_an_alert_shows_the_groups(settings: Settings) -> None:
    every = list(nights(AWAY))
    there = [group(name, 1.0) for name in ("F", "M", "X")]
    write(settings, [
        Given(each.batch, each.scores, there[: len(each.sizes or {})], sizes=each.sizes)
        for each in every
    ])  # fmt: skip
    assess(settings)
    publish(settings)
    (row,) = alerts(settings, every=True)
    with duckdb.connect(str(store_of(settings).dashboard), read_only=True) as connection:
        told = {batch: (rows, groups) for batch, rows, groups in
                connection.execute(row["query"]).fetchall()}  # fmt: skip
        (label,) = connection.execute("SELECT label FROM v_alerts").fetchall()
    assert told[NIGHTS[GONE]] == (0, ["F", "M"])
    assert told[NIGHTS[BACK]] == (500, ["F", "M", "X"])
    assert label == ("X",)


def test_a_group_that_was_left_out_at_times_is_not_named(settings: Settings) -> None:
    few = settings.privacy.model_copy(update={"min_cell": 22})
    kept_back = settings.model_copy(update={"privacy": few})
    publish(kept_back)
    with duckdb.connect(str(store_of(settings).dashboard), read_only=True) as connection:
        told = connection.execute(
            "SELECT DISTINCT status_reason FROM v_history WHERE batch = ? AND attribute = 'gender'",
            [NIGHTS[GONE]],
        ).fetchall()
        assert ("missing_group",) in told
        assert LACKING[1:] not in told
        assert connection.execute("FROM v_alerts").fetchall() == []
