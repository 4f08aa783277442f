"""The catalogue in the copy: every score that is computed or was, in numbers and words."""

from math import inf
from pathlib import Path

import pytest
from dashboards import shown
from histories import NIGHTS, Given, score, small_audit, write

from metrics import METRICS, parse_score
from pipeline.publish.copy import publish, stale
from pipeline.settings.audit import Settings


def test_every_declared_score_is_told(tmp_path: Path) -> None:
    labels = [metric.usual.label for metric in METRICS]
    settings = small_audit(tmp_path, metrics=labels, thresholds={})
    write(settings, [Given(NIGHTS[0], [score(0.9)])])
    publish(settings)
    rows = {row["label"]: row for row in shown(settings, "v_metrics")}
    wanted = {each.label: each for metric in METRICS for each in metric.usual.scores()}
    assert rows.keys() == wanted.keys()
    for label, said in wanted.items():
        row = rows[label]
        ends = [
            -inf if row["range_low"] is None else row["range_low"],
            inf if row["range_high"] is None else row["range_high"],
        ]
        assert ends == [said.range.low, said.range.high]
        assert (row["fairest"], row["direction"]) == (said.fairest, said.alarm)
        assert (row["plain"], row["sentence"]) == (said.plain, said.said)
        assert "{value}" in row["sentence"]
        assert row["formula"]
        assert row["needs"] == (", ".join(sorted(said.measure.columns)) or None)
    assert rows["EXP.MinMaxRatio"]["formula"].startswith("min V / max V, V = ")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """An audit with one batch that computes EXP alone."""
    found = small_audit(tmp_path)
    write(found, [Given(NIGHTS[0], [score(0.9)])])
    return found


def test_scores_of_before_stay_and_unknown_ones_have_their_name(settings: Settings) -> None:

    write(
        settings,
        [
            Given(NIGHTS[0], [score(0.9), score(3.0, metric="EXPU@7", aggregation="MaxMinRatio")]),
            Given(NIGHTS[1], [score(0.9), score(0.5, metric="GONE", aggregation=None)]),
        ],
    )
    publish(settings)
    rows = {row["label"]: row for row in shown(settings, "v_metrics")}
    assert {row["metric"] for row in rows.values()} == {"EXP", "EXPU@7", "GONE"}
    older = parse_score("EXPU@7.MaxMinRatio")
    assert rows[older.label]["plain"] == older.plain
    assert {name for name, value in rows["GONE"].items() if value is not None} == {
        "label",
        "metric",
    }


def test_other_metrics_are_another_copy(settings: Settings) -> None:
    publish(settings)
    assert not stale(settings)
    assert stale(settings.model_copy(update={"metrics": ("EXP", "IAA")}))
