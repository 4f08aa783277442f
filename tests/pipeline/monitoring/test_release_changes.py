"""What a release changed for each group: in the table, and as an alert."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fair_logs import biased, random_log, rows_of
from stores import Row, audit, deliver, in_history

from pipeline.monitoring.alerts import alerts, mark
from pipeline.runs.batches import run_batch
from pipeline.scores.evidence.two_batches import GroupsOf, changes
from pipeline.settings.audit import Settings

BEFORE, AFTER, LATER = "2026-01-05", "2026-01-06", "2026-01-07"


def pulled(seed: int, pull: float, batch: str, folder: Path, lists: int = 150) -> None:
    """Lists in which women stand higher (``pull`` above 0) or lower than by chance."""
    log = random_log(seed, lists, {"F": 0.5, "M": 0.5})
    deliver(folder, rows_of(biased(log, pull, seed)), batch=batch)


def measured(folder: Path, **said: Any) -> Settings:
    return audit(
        folder,
        **{
            "metrics": ["EXP"],
            "attributes": ["group"],
            "slices": [],
            "thresholds": {},
            "evidence": {"resamples": 400, "noise_draws": 0},
            "notify": {"command": ["true"]},
            **said,
        },
    )


def changed(settings: Settings) -> list[Row]:
    return in_history(settings, "FROM release_changes ORDER BY ALL")


@pytest.mark.slow
def test_a_release_says_what_it_changed(tmp_path: Path) -> None:
    settings = measured(tmp_path)
    for seed, (batch, pull) in enumerate(((BEFORE, -0.8), (AFTER, 0.8), (LATER, 0.8))):
        pulled(seed, pull, batch, tmp_path)
        if batch == AFTER:
            mark(settings, AFTER, "model v7")
        run_batch(settings, batch, notify=True)
    rows = {row["group_value"]: row for row in changed(settings)}
    assert {*rows} == {"F", "M"}
    values = {
        (row["batch"], row["group_value"]): row["value"]
        for row in in_history(settings, "FROM group_history")
    }
    for name, other in (("F", "M"), ("M", "F")):
        row = rows[name]
        for batch, when in ((BEFORE, "before"), (AFTER, "after")):
            assert row[f"value_{when}"] == pytest.approx(values[batch, name], rel=1e-12)
            ratio = values[batch, name] / values[batch, other]
            assert row[f"against_{when}"] == pytest.approx(ratio, rel=1e-12)
        assert row["lower"] < row["change"] < row["upper"]
        assert row["changed"]
    assert rows["M"]["change"] < 0 < rows["F"]["change"]
    (alert,) = (row for row in alerts(settings, every=True) if row["kind"] == "release")
    assert (alert["opened"], alert["attribute"], alert["silent"]) == (AFTER, "group", False)
    assert alert["text"].startswith(
        f"The release of {AFTER} changed group beyond chance: EXP of M was "
    )


@pytest.mark.slow
def test_a_release_that_changed_nothing_opens_nothing(tmp_path: Path) -> None:
    settings = measured(tmp_path)
    for seed, batch in enumerate((BEFORE, AFTER)):
        pulled(seed, 0.0, batch, tmp_path)
        if batch == AFTER:
            mark(settings, AFTER, "model v7")
        run_batch(settings, batch, notify=True)
    assert [row["changed"] for row in changed(settings)] == [False, False]
    assert not alerts(settings, every=True)


# -- the statistics


def drawn(rng: np.random.Generator, value: list[float], noise: np.ndarray) -> GroupsOf:
    names = tuple("ABC"[: len(value)])
    numbers = np.array(value)
    return GroupsOf(names, numbers, numbers + noise, np.full(len(value), 200.0))


def test_what_moves_both_batches_is_no_noise_of_the_change() -> None:
    rng = np.random.default_rng(3)
    common, own = rng.normal(0, 0.1, (500, 2)), rng.normal(0, 0.001, (2, 500, 2))
    before = drawn(rng, [1.0, 1.0], common + own[0])
    after = drawn(rng, [0.98, 1.0], common + own[1])
    apart = drawn(rng, [0.98, 1.0], rng.normal(0, 0.1, (500, 2)))
    for is_ratio in (True, False):
        (one, _), (loose, _) = (
            list(changes(before, each, 0.95, is_ratio=is_ratio)) for each in (after, apart)
        )
        assert one.is_certain
        assert one.change < 0
        assert not loose.is_certain


def test_two_groups_mirror_each_other_by_differences() -> None:
    rng = np.random.default_rng(4)
    before, after = (drawn(rng, v, rng.normal(0, 0.1, (300, 2))) for v in ([1.0, 2.0], [1.5, 1.7]))
    first, second = changes(before, after, 0.95, is_ratio=False)
    assert first.change == pytest.approx(-second.change)
    assert (first.lower, first.upper) == pytest.approx((-second.upper, -second.lower))


def test_each_of_three_groups_stands_against_the_mean_of_the_others() -> None:
    rng = np.random.default_rng(5)
    before = drawn(rng, [1.0, 2.0, 4.0], np.zeros((50, 3)))
    after = drawn(rng, [2.0, 2.0, 4.0], np.zeros((50, 3)))
    found = {each.group: each for each in changes(before, after, 0.95, is_ratio=True)}
    assert found["A"].against_before == pytest.approx(1 / 3)
    assert found["A"].against_after == pytest.approx(2 / 3)
    assert found["C"].change == pytest.approx(4 / 2 - 4 / 1.5)


def test_groups_that_only_one_batch_has_are_left_out() -> None:
    rng = np.random.default_rng(6)
    before, after = drawn(rng, [1.0, 2.0], np.zeros((9, 2))), drawn(rng, [1.0], np.zeros((9, 1)))
    assert not list(changes(before, after, 0.95, is_ratio=True))
