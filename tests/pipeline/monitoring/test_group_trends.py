"""Trends of groups in a history: who fell behind, who caught up, one alert for one incident."""

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from histories import Given, alerts_of, group, rewrite, score, small_audit, write
from stores import in_history

from pipeline.monitoring.alerts import alerts
from pipeline.monitoring.assess import assess, due
from pipeline.settings.audit import Settings
from pipeline.settings.batch_keys import days

DAYS = days(date(2026, 1, 1), date(2026, 4, 30))
# One series alone is news on one night in twenty, as nobody wants it here.
CHARTS = {"window": 28, "least": 14, "level": 0.0001}
LISTENING = {"thresholds": {}, "trends": CHARTS}
Values = dict[str, np.ndarray]


def levels(count: int, seed: int = 1, **level: float) -> Values:
    """Values of groups on so many nights, within one percent of their levels."""
    rng = np.random.default_rng(seed)
    return {name: base * np.exp(rng.normal(0, 0.01, count)) for name, base in level.items()}


def nights(settings: Settings, values: Values, metrics: tuple[str, ...] = ("EXP",)) -> None:
    """Write nights with these groups; NaN is a group that is not there."""
    given = []
    for at, batch in enumerate(DAYS[: len(next(iter(values.values())))]):
        here = {name: each[at] for name, each in values.items() if np.isfinite(each[at])}
        worst, best = min(here, key=here.__getitem__), max(here, key=here.__getitem__)
        said = {"worst_group": worst, "best_group": best, "status": "not_judged"}
        given.append(
            Given(
                batch,
                [score(here[worst] / here[best], metric=metric, **said) for metric in metrics],
                [group(name, each, metric=metric) for name, each in here.items()
                 for metric in metrics],
            )
        )  # fmt: skip
    write(settings, given)


def followed(folder: Path, values: Values, **said: Any) -> Settings:
    settings = small_audit(folder, **LISTENING | said)
    nights(settings, values)
    assess(settings)
    return settings


def trend(settings: Settings, at: int) -> dict[str, Any]:
    (row,) = in_history(settings, "FROM trends WHERE batch = ?", [DAYS[at]])
    return row


def shift(settings: Settings) -> dict[str, Any]:
    (row,) = alerts(settings, every=True)
    return row


# -- who moved


@pytest.mark.parametrize("falls", ["F", "M"])
def test_equal_groups_of_which_one_falls_behind(tmp_path: Path, falls: str) -> None:
    values = levels(50, F=1.0, M=1.0)
    values[falls][46:] *= 0.9
    settings = followed(tmp_path, values)
    row = trend(settings, 49)
    assert (row["shift"], row["improved"], row["group_value"]) == (True, False, falls)
    assert row["residual"] > 5
    assert row["is_ratio"]
    assert row["against"] == pytest.approx(0.9, abs=0.05)
    assert row["against_center"] == pytest.approx(1.0, abs=0.02)
    assert (row["level_before"] > 0.97, row["level_now"] < 0.93) == (True, True)
    assert alerts_of(settings) == [("shift", DAYS[46], DAYS[49], None)]
    assert f"{falls} fell against the others: " in shift(settings)["text"]


def test_the_same_shift_of_a_group_that_was_behind_or_ahead(tmp_path: Path) -> None:
    for name, factor, worse in (("wider", 0.9, True), ("closer", 1.1, False)):
        values = levels(50, F=0.8, M=1.0)
        values["F"][44:] *= factor
        row = trend(followed(tmp_path / name, values), 49)
        assert (row["shift"], row["improved"]) == (worse, not worse)
        assert (row["residual"] > 0) == worse
        assert row["group_value"] == "F"


def test_several_groups_at_once_are_one_alert_about_the_one_that_moved_most(
    tmp_path: Path,
) -> None:
    values = levels(50, A=1.0, B=1.0, C=1.0, D=1.0)
    values["C"][46:] *= 0.85
    settings = followed(tmp_path, values)
    assert trend(settings, 49)["group_value"] == "C"
    assert [kind for kind, *_ in alerts_of(settings)] == ["shift"]


def test_a_difference_is_followed_where_a_score_is_one(tmp_path: Path) -> None:
    values = levels(50, F=0.5, M=0.5)
    values["F"][46:] -= 0.1
    settings = small_audit(
        tmp_path,
        thresholds={},
        trends=CHARTS | {"scores": "EXP.MaxMinDiff"},
    )
    given = [
        Given(
            batch,
            [score(abs(f - m), aggregation="MaxMinDiff", status="not_judged")],
            [group("F", f), group("M", m)],
        )
        for batch, f, m in zip(DAYS, values["F"], values["M"], strict=False)
    ]
    write(settings, given)
    assess(settings)
    row = trend(settings, 49)
    assert (row["shift"], row["group_value"], row["is_ratio"]) == (True, "F", False)
    assert row["against"] == pytest.approx(values["F"][49] - values["M"][49])
    assert "F fell against the others: -0." in shift(settings)["text"]


def test_a_group_that_comes_late_is_no_shift_of_the_others(tmp_path: Path) -> None:
    values = levels(60, F=1.0, M=1.0, X=0.6)
    values["X"][:35] = np.nan
    settings = followed(tmp_path, values)
    # The score itself falls from 0.98 to 0.6: all that fell is that another group is there.
    rows = in_history(settings, "FROM trends WHERE shift")
    assert {row["group_value"] for row in rows} <= {None}
    assert trend(settings, 59)["baseline"] > 0


# -- outliers


def test_an_outlier_night_is_told_and_a_later_step_is_found(tmp_path: Path) -> None:
    values = levels(70, F=0.8, M=1.0)
    values["F"][45] *= np.exp(-20 * 0.0141)
    values["F"][55:] *= np.exp(-3 * 0.0141)
    settings = followed(tmp_path, values)
    night = trend(settings, 45)
    assert (night["outlier"], night["shift"]) == (True, True)
    assert night["residual"] > 12
    assert not trend(settings, 46)["outlier"]
    found = [opened for kind, opened, *_ in alerts_of(settings) if kind == "shift"]
    assert found[0] == DAYS[45]
    assert any(DAYS[55] <= opened <= DAYS[62] for opened in found[1:])
    (text,) = (
        row["text"] for row in alerts(settings, batches=[DAYS[45]]) if row["kind"] == "shift"
    )
    assert "An outlier so far: alone, it moves no later limit." in text


# -- improvements


def test_a_clear_improvement_is_told_once_and_resolves_itself(tmp_path: Path) -> None:
    values = levels(100, F=0.7, M=1.0)
    values["F"][50:] *= 1.3
    settings = followed(tmp_path, values)
    rows = alerts(settings, every=True)
    (row,) = (row for row in rows if row["kind"] == "improvement")
    assert DAYS[50] <= row["opened"] <= DAYS[52]
    assert row["state"] == "resolved"
    assert "shift" not in {row["kind"] for row in rows}
    (text,) = (
        row["text"] for row in alerts(settings, batches=[DAYS[53]]) if row["kind"] == "improvement"
    )
    assert "F came closer to the others: 0.9" in text
    assert "standard errors towards fair" in text
    assert "0.7" in text.split("before")[0]
    told = trend(settings, 53)
    assert told["improved"]
    assert DAYS[47] <= told["since"] <= row["opened"]
    assert told["level_before"] == pytest.approx(0.7, abs=0.02)
    assert told["level_now"] == pytest.approx(0.91, abs=0.03)


def test_a_gap_that_closes_and_opens_on_the_other_side_is_worse(tmp_path: Path) -> None:
    values = levels(50, F=0.8, M=1.0)
    values["F"][44:] *= 1.7
    row = trend(followed(tmp_path, values), 49)
    assert (row["shift"], row["improved"], row["group_value"]) == (True, False, "M")


# -- nights and stores as they come


@pytest.mark.slow
def test_night_by_night_is_all_at_once_with_groups_that_come_and_go(tmp_path: Path) -> None:
    values = levels(60, F=1.0, M=0.9, X=0.8)
    values["X"][:20] = np.nan
    values["X"][23::7] = np.nan
    values["F"][50:] *= 0.9
    small = {"trends": {"window": 12, "least": 5, "level": 0.01}}
    whole = followed(tmp_path / "whole", values, **small)
    other = small_audit(tmp_path / "other", **LISTENING | small)
    for count in (25, 41, 42, 43, 55, 60):
        nights(other, {name: each[:count] for name, each in values.items()})
        assess(other)
    order = "FROM trends ORDER BY ALL"
    assert in_history(other, order) == in_history(whole, order)
    assert not assess(whole, DAYS[:60]).changed


def test_a_store_of_before_is_assessed_anew_once(tmp_path: Path) -> None:
    values = levels(30, F=0.8, M=1.0)
    settings = followed(tmp_path, values)
    before = in_history(settings, "FROM trends ORDER BY ALL")
    new = ("improved", "level_before", "level_now", "outlier", "group_value", "against")
    rewrite(
        settings,
        *(f"ALTER TABLE trends DROP COLUMN {name}" for name in new),
        "UPDATE trends SET residual = 8",
    )
    assert assess(settings, [DAYS[29]]).changed
    assert in_history(settings, f"SELECT {', '.join(before[0])} FROM trends ORDER BY ALL") == before
    assert not due(settings)
