"""Releases: a marker begins a baseline anew, whether somebody set it or the log tells of it."""

from pathlib import Path
from typing import Any

import pytest
from histories import NIGHTS, assessments, believed, fill, quiet, small_audit
from stores import audit, deliver, in_history, random_lists, read

from pipeline.errors import AuditError
from pipeline.history.merging import due_again
from pipeline.history.opening import open_history
from pipeline.monitoring.alerts import mark, markers, unmark
from pipeline.monitoring.assess import assess
from pipeline.monitoring.gates import Releases, gates_of
from pipeline.publish.copy import publish
from pipeline.runs.batches import backfill, run_batch
from pipeline.settings.audit import Settings
from pipeline.settings.sections import Gate
from pipeline.store.paths import store_of
from pipeline.trends import Facts

RELEASE = 14


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A history whose level changed for good with a release, without a marker."""
    found = small_audit(tmp_path_factory.mktemp("nights"), thresholds={})
    fill(found, 24, {at: quiet(at, 0.85) for at in range(RELEASE, 24)})
    assess(found)
    return found


def baselines(settings: Settings) -> list[int]:
    rows = in_history(settings, "SELECT baseline FROM trends ORDER BY batch")
    return [row["baseline"] for row in rows]


def kinds(settings: Settings) -> list[Any]:
    return [row["kind"] for row in in_history(settings, "FROM alerts")]


def test_a_marker_begins_the_baseline_anew(settings: Settings) -> None:
    assert kinds(settings) == ["shift"]
    before = baselines(settings)
    found = mark(settings, NIGHTS[RELEASE], "model v7")
    # From the ninth batch on, the two newest are held back.
    assert baselines(settings) == [*before[:RELEASE], 0, 1, 2, 3, 4, 5, 6, 7, 6, 7]
    assert kinds(settings) == []
    assert found.later == tuple(NIGHTS[RELEASE:24])
    gates = in_history(settings, "SELECT batch FROM gates WHERE batch >= ?", [NIGHTS[RELEASE]])
    assert min(row["batch"] for row in gates) == NIGHTS[RELEASE + 3]


def test_taking_a_marker_back_gives_everything_back(settings: Settings) -> None:
    before = assessments(settings)
    mark(settings, NIGHTS[RELEASE], "model v7")
    assert assessments(settings) != before
    unmark(settings, NIGHTS[RELEASE])
    assert assessments(settings) == before


def test_marking_twice_is_marking_once(settings: Settings) -> None:
    mark(settings, NIGHTS[RELEASE], "model v7")
    before = assessments(settings)
    assert mark(settings, NIGHTS[RELEASE], "model v7").later == ()
    assert assessments(settings) == before
    assert [row["text"] for row in markers(settings)] == ["model v7"]


def test_a_release_may_be_marked_ahead(settings: Settings) -> None:
    assert mark(settings, NIGHTS[30], "model v8").later == ()


def test_markers_stand_beside_scores(settings: Settings) -> None:
    mark(settings, NIGHTS[RELEASE], "model v7")
    mark(settings, NIGHTS[RELEASE + 2], "new index")
    publish(settings)
    rows = read(store_of(settings).dashboard, "SELECT batch, release FROM v_history ORDER BY batch")
    expected = [None] * RELEASE + ["model v7"] * 2 + ["new index"] * (24 - RELEASE - 2)
    assert [row["release"] for row in rows] == expected


@pytest.mark.parametrize(("batch", "text"), [("a b", "v7"), ("2026-01-01", " ")])
def test_what_cannot_be_marked(settings: Settings, batch: str, text: str) -> None:
    with pytest.raises(AuditError):
        mark(settings, batch, text)
    assert markers(settings) == []


def versions(settings: Settings, rows: list[tuple[str, str, int]]) -> None:
    """What batches say about the models that made their lists."""
    with open_history(settings) as connection:
        connection.execute("DELETE FROM history.model_versions")
        for row in rows:
            connection.execute(
                "INSERT INTO history.model_versions (batch, model_version, lists) VALUES (?, ?, ?)",
                list(row),
            )
        due_again(connection, "true")
        believed(connection, settings)


def test_another_leading_version_is_a_release(settings: Settings) -> None:
    new = NIGHTS[RELEASE]
    rows = [(batch, "v6" if batch < new else "v7", 90) for batch in NIGHTS[:24] if batch != new]
    # In the night of the release most lists are the new model's already, and one is nobody's.
    versions(settings, [*rows, (new, "v6", 40), (new, "v7", 50), (new, "v8", 10)])
    assess(settings)
    (row,) = markers(settings)
    assert (row["batch"], row["text"], row["source"]) == (new, "model_version v6 -> v7", "log")
    assert kinds(settings) == []
    assert not assess(settings, NIGHTS[:24]).changed
    with pytest.raises(AuditError, match="comes from the log"):
        unmark(settings, new)
    versions(settings, [])
    assess(settings)
    assert markers(settings) == []
    assert kinds(settings) == ["shift"]


@pytest.mark.slow
def test_a_logged_version_is_a_release(tmp_path: Path) -> None:
    settings = audit(tmp_path, metrics=["EXP"], trends={"window": 8, "least": 4})
    batches = NIGHTS[:8]
    for at, batch in enumerate(batches):
        version = {"model_version": "v6" if at < 5 else "v7"} if at != 3 else {}
        deliver(tmp_path, [row | version for row in random_lists(at)], batch)
    list(backfill(settings, batches))
    (row,) = markers(settings)
    assert (row["batch"], row["text"], row["source"]) == (
        NIGHTS[5],
        "model_version v6 -> v7",
        "log",
    )
    seen = in_history(
        settings, "SELECT batch, max(baseline) AS n FROM trends GROUP BY ALL ORDER BY 1"
    )
    assert [row["n"] for row in seen] == [0, 1, 2, 3, 4, 0, 1, 2]
    # The log of the sixth night is delivered again, and still of the old model.
    deliver(tmp_path, [row | {"model_version": "v6"} for row in random_lists(5)], NIGHTS[5])
    assert run_batch(settings, NIGHTS[5]).later == tuple(NIGHTS[6:8])
    assert [row["batch"] for row in markers(settings)] == [NIGHTS[6]]
    # Without the column there is no release.
    for at in (6, 7):
        deliver(tmp_path, random_lists(at), NIGHTS[at])
    list(backfill(settings, NIGHTS[6:8]))
    assert markers(settings) == []


def test_a_logged_release_opens_no_gate_on_the_data() -> None:
    same = {name: Facts(1000, 100, 1000, 1000, {"a": 0.0}, {"a": {"x": 500, "y": 500}})
            for name in NIGHTS[:10]}  # fmt: skip
    half = Facts(400, 40, 400, 400, {"a": 0.0}, {"a": {"x": 200, "y": 200}})
    facts, limits = {**same, NIGHTS[10]: half}, Gate(window=8, least=3)
    said = {
        name: gates_of(NIGHTS[:11], 10, facts, set(), releases, limits)[NIGHTS[10]]
        for name, releases in (
            ("none", Releases(())),
            ("log", Releases((NIGHTS[9],))),
            ("mark", Releases((NIGHTS[9],), (NIGHTS[9],))),
        )
    }
    failed = {
        name: [gate.gate for gate in gates if not gate.passed] for name, (gates, _) in said.items()
    }
    assert failed == {"none": ["volume"], "log": ["volume"], "mark": []}
    assert [gate.gate for gate in said["log"][0]] == ["volume", "unknown_share", "labels"]
