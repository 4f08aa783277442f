"""Assessments: a function of what the history holds, whatever the order and number of times."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cases import everything, number
from histories import (
    NIGHTS,
    alerts_of,
    assessments,
    gap,
    group,
    put,
    quiet,
    score,
    small_audit,
)
from stores import DAY, audit, deliver, in_history, random_lists

from pipeline.errors import SettingsError
from pipeline.history.manifest import manifest
from pipeline.history.merging import merge
from pipeline.monitoring.assess import Assessed, assess, due
from pipeline.runs.batches import backfill, run_batch
from pipeline.runs.finish import Finished
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of

FEW = NIGHTS[:16]
LOW = FEW[9]
"""The night on which the score breaches."""
SMALL = FEW[12]
"""The night with a tenth of the rows."""


def night(settings: Settings, batch: str, value: float | None = None, **more: Any) -> None:
    """A whole batch and one slice of it."""
    at = NIGHTS.index(batch)
    value = (0.5 if batch == LOW else quiet(at)) if value is None else value
    part = {"slice": "device", "slice_value": "mobile", "rows": 600}
    rows = 100 if batch == SMALL else 1000
    scores = [score(value), score(quiet(at + 100), **part)]
    groups = [group("F", value), group("M", 1.0)]
    put(settings, batch, scores, groups, **{"rows": rows, **more})


def filled(folder: Path, batches: Sequence[str] = FEW, **said: Any) -> Settings:
    settings = small_audit(folder, **said)
    for batch in batches:
        night(settings, batch)
    return settings


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """An assessed history of sixteen nights."""
    found = filled(tmp_path_factory.mktemp("nights"))
    assess(found)
    return found


def verdicts(settings: Settings, batch: str) -> set[tuple[str, str | None]]:
    rows = in_history(
        settings, "SELECT status, status_reason FROM fairness_history WHERE batch = ?", [batch]
    )
    return {(row["status"], row["status_reason"]) for row in rows}


def of_kind(settings: Settings, kind: str) -> list[Any]:
    return [row for row in alerts_of(settings) if row[0] == kind]


# -- a function of the history


SOME = FEW if everything() else FEW[5:12]


@pytest.fixture(scope="module")
def at_once(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Some nights, assessed in one go."""
    found = filled(tmp_path_factory.mktemp("at once"), SOME)
    assess(found)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(number(3, few=1)))
def test_the_order_of_merging_does_not_matter(at_once: Settings, tmp_path: Path, seed: int) -> None:
    shuffled = random.Random(seed).sample(SOME, len(SOME))
    other = small_audit(tmp_path / "other")
    for batch in shuffled:
        night(other, batch)
        assess(other, [batch])
    assert assessments(other) == assessments(at_once)


@pytest.mark.slow
def test_night_by_night_is_all_at_once(at_once: Settings, tmp_path: Path) -> None:
    other = small_audit(tmp_path / "other")
    for batch in SOME:
        night(other, batch)
        assert assess(other, [batch]).later == ()
    assert assessments(other) == assessments(at_once)


@pytest.mark.slow
def test_assessing_again_writes_nothing(settings: Settings) -> None:
    path = store_of(settings).history
    before, stamp = assessments(settings), path.stat().st_mtime_ns
    assert not due(settings)
    assert assess(settings) == Assessed()
    found = assess(settings, FEW)
    assert (found.changed, found.later, found.opened) == (False, (), ())
    assert assessments(settings) == before
    assert path.stat().st_mtime_ns == stamp


@pytest.mark.slow
def test_the_same_values_again_change_nothing(settings: Settings) -> None:
    before = assessments(settings)
    night(settings, FEW[7])
    assert due(settings)
    found = assess(settings, [FEW[7]])
    assert (found.changed, found.later) == (False, ())
    assert assessments(settings) == before
    assert not due(settings)


def test_other_values_change_later_batches_alone(settings: Settings) -> None:
    before = {row["batch"]: row for row in in_history(settings, "FROM trends WHERE slice = 'all'")}
    night(settings, FEW[6], 0.95)
    found = assess(settings, [FEW[6]])
    after = {row["batch"]: row for row in in_history(settings, "FROM trends WHERE slice = 'all'")}
    differ = {batch for batch in FEW if before.get(batch) != after.get(batch)}
    assert min(differ) == FEW[6]
    assert set(found.later) == differ - {FEW[6]}


@pytest.mark.slow
def test_no_baseline_reaches_further_than_its_window(tmp_path: Path) -> None:
    batches = NIGHTS[:40]
    settings = filled(tmp_path, batches, gate={"least": 30, "window": 30})
    assess(settings)
    night(settings, batches[5], 0.95)
    later = assess(settings, [batches[5]]).later
    assert later
    # Residuals look back one window from what is held back, and charts at as many residuals.
    assert max(later) <= batches[5 + 2 * (8 + 2)]


def test_an_interrupted_run_is_made_up_for(settings: Settings) -> None:
    night(settings, NIGHTS[16])
    assert due(settings)
    assert assess(settings).changed
    found = in_history(settings, "SELECT 1 FROM trends WHERE batch = ?", [NIGHTS[16]])
    assert len(found) == 2


def test_scores_that_cannot_be_followed(tmp_path: Path) -> None:
    scores = ["EXP.LTwo", "ARP.MinMaxRatio", "EXPE", "EXP", "EXP.MinMaxRatio", "EXP.MinMaxRatio"]
    with pytest.raises(SettingsError) as error:
        small_audit(tmp_path, trends={"scores": scores})
    text = str(error.value)
    assert "EXP.LTwo has no unfair side" in text
    assert "ARP is not computed" in text
    assert "EXPE" in text
    assert "say which, as in EXP." in text
    assert "EXP.MinMaxRatio stands twice" in text
    assert text.count("trends: scores: ") == 5


def test_scores_to_follow_are_named_as_printed(tmp_path: Path) -> None:
    said = {"metrics": ["AWRF"], "thresholds": {}, "trends": {"scores": "AWRF.MinMaxRatio"}}
    (label,) = small_audit(tmp_path, **said).trends.scores or ()
    assert label == "AWRF(p=0.1).MinMaxRatio"


# -- gates


def test_a_gate_overrides_verdicts_and_gives_them_back(settings: Settings) -> None:
    assert verdicts(settings, SMALL) == {("gated", "gate_volume")}
    (row,) = in_history(settings, "FROM gates WHERE batch = ? AND NOT passed", [SMALL])
    assert (row["gate"], row["value"], row["usual"]) == ("volume", 100.0, 1000.0)
    assert in_history(settings, "SELECT 1 FROM trends WHERE batch = ?", [SMALL]) == []
    assert of_kind(settings, "gate") == [("gate", SMALL, SMALL, FEW[13])]
    night(settings, SMALL, rows=1000)
    found = assess(settings, [SMALL])
    assert verdicts(settings, SMALL) == {("ok", None)}
    assert of_kind(settings, "gate") == []
    assert found.gated == ()


def test_verdicts_keep_their_reason_behind_a_gate(settings: Settings) -> None:
    row = score(0.85, status="insufficient", status_reason="few_queries: F")
    put(settings, SMALL, [row], rows=100)
    assess(settings, [SMALL])
    assert verdicts(settings, SMALL) == {("gated", "gate_volume")}
    put(settings, SMALL, [row])
    assess(settings, [SMALL])
    assert verdicts(settings, SMALL) == {("insufficient", "few_queries: F")}


def test_what_is_not_judged_is_not_gated(settings: Settings) -> None:
    put(settings, SMALL, [score(0.9, status="not_judged")], rows=100)
    assess(settings, [SMALL])
    assert verdicts(settings, SMALL) == {("not_judged", None)}
    # The gate failed all the same, and whoever asks for the batch hears of it.
    assert [batch for batch, row in manifest(settings).items() if row.gated] == [SMALL]


def test_gated_batches_are_no_baseline(settings: Settings) -> None:
    def centers() -> list[Any]:
        rows = in_history(
            settings, "SELECT center FROM trends WHERE batch > ? ORDER BY ALL", [SMALL]
        )
        return [row["center"] for row in rows]

    before = centers()
    night(settings, SMALL, 0.1, rows=100)
    assert assess(settings, [SMALL]).later == ()
    assert centers() == before


# -- gaps


@pytest.mark.slow
@pytest.mark.parametrize("status", ["no_data", "refused"])
def test_a_gap_neither_opens_nor_resolves(settings: Settings, status: str) -> None:
    night(settings, NIGHTS[16], 0.5)
    gap(settings, NIGHTS[17], status)
    assess(settings, [NIGHTS[16], NIGHTS[17]])
    first = ("breach", LOW, LOW, FEW[10])
    assert of_kind(settings, "breach") == [first, ("breach", NIGHTS[16], NIGHTS[16], None)]
    night(settings, NIGHTS[18])
    assess(settings, [NIGHTS[18]])
    assert of_kind(settings, "breach") == [first, ("breach", NIGHTS[16], NIGHTS[16], NIGHTS[18])]


@pytest.mark.parametrize(
    "row",
    [
        score(None),
        score(0.82, status="insufficient"),
        score(0.5, status="not_judged"),
    ],
)
def test_what_cannot_be_told_resolves_nothing(settings: Settings, row: dict[str, Any]) -> None:
    put(settings, FEW[10], [row])
    assess(settings, [FEW[10]])
    assert of_kind(settings, "breach") == [("breach", LOW, LOW, FEW[11])]


# -- runs


@pytest.mark.slow
def test_a_run_assesses_what_it_merged(tmp_path: Path) -> None:
    settings = audit(tmp_path, metrics=["EXP"])
    deliver(tmp_path, random_lists(1))
    assert run_batch(settings, DAY).assessed
    assert not due(settings)
    stamp = store_of(settings).history.stat().st_mtime_ns
    again = run_batch(settings, DAY)
    assert (again.status, again.assessed, again.later) == ("unchanged", False, ())
    assert store_of(settings).history.stat().st_mtime_ns == stamp


@pytest.mark.slow
def test_an_earlier_batch_that_comes_late_is_a_baseline(tmp_path: Path) -> None:
    settings = audit(tmp_path, metrics=["EXP"])
    deliver(tmp_path, random_lists(1))
    run_batch(settings, DAY)
    deliver(tmp_path, random_lists(2), batch="2026-01-04")
    assert run_batch(settings, "2026-01-04").later == (DAY,)


@pytest.mark.slow
def test_a_backfill_assesses_once(tmp_path: Path) -> None:
    settings = audit(tmp_path, metrics=["EXP"])
    batches = ["2026-01-05", "2026-01-06", "2026-01-07"]
    for seed, batch in enumerate(batches):
        deliver(tmp_path, random_lists(seed), batch=batch)
    told: list[Finished] = []
    assert len(list(backfill(settings, batches, finished=told.append))) == 3
    (found,) = told
    assert found.assessed.changed
    assert found.assessed.later == ()
    assert not due(settings)


@pytest.mark.slow
def test_merging_makes_a_batch_due(tmp_path: Path) -> None:
    settings = audit(tmp_path, metrics=["EXP"])
    deliver(tmp_path, random_lists(1))
    run_batch(settings, DAY)
    merge(settings, DAY, "again", force=True)
    assert due(settings)
    assert not assess(settings, [DAY]).changed
    assert not due(settings)
