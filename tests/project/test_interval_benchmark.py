"""The short way that simulations of intervals take is that of a batch."""

import importlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from logs import Rows, scored_file
from places import ROOT
from slow_resampling import bucket_of


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("intervals")


def rows_of(log: Any) -> Rows:
    """The lists of a simulation as rows of a log."""
    return [
        {
            "list_id": f"l{number}",
            "query_id": f"q{log.query[number]}",
            "item_id": f"{number}.{at}",
            "rank": at + 1,
            "relevance": float(log.relevance[number, at]),
            "group": log.names[group],
        }
        for number, groups in enumerate(log.group)
        for at, group in enumerate(groups)
        if group >= 0
    ]


def test_simulations_take_the_way_of_a_batch(script: ModuleType) -> None:
    verdicts = importlib.import_module("interval_verdicts")
    log = script.served(np.random.default_rng(4), 40, (0.0, -0.5, 0.2)).again(2)
    found = scored_file(
        rows_of(log),
        metrics=script.LABELS,
        thresholds={"EXP.MinMaxRatio": {"min": verdicts.THRESHOLD}},
        evidence={},
    )
    bucket = np.array([bucket_of(f"q{query}") for query in log.query])
    for each in script.measured(log, script.MEASURES, bucket):
        label = each.evaluation.measure.label
        for score, ends in zip(each.evaluation.scores, each.scores, strict=True):
            row = found.score(score.name.label)
            stored = (row["value"], row["lower"], row["upper"])
            assert stored == pytest.approx((score.value, *ends), rel=1e-9), score.name.label
        for name, ends in zip(each.evaluation.groups, each.groups, strict=True):
            row = found.groups["all", "all", "group", label][name]
            assert (row["lower"], row["upper"]) == pytest.approx(ends, rel=1e-9), (label, name)
    row = found.score("EXP.MinMaxRatio")
    score, verdict = verdicts.judged(log, bucket)
    assert score.value == pytest.approx(row["value"], rel=1e-9)
    assert (verdict.status, verdict.reason) == (row["status"], row["status_reason"])
