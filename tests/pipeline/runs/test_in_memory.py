"""Scores without a store: columns about batches and verdicts are not there."""

from typing import Any

import pandas as pd
import pytest

from pipeline.runs.in_memory import AGAINST_CHANCE, score

LOG = pd.DataFrame(
    {"list_id": n, "item_id": f"{n}{at}", "rank": at, "gender": group}
    for n in range(12)
    for at, group in enumerate("FMFM" if n % 2 else "MFFM", 1)
)
PLAIN = [
    *("slice", "slice_value", "attribute", "metric", "aggregation", "value", "reason"),
    *("worst_group", "best_group", "queries", "lists", "rows", "lists_undefined"),
]
LIMITS = {"thresholds": {"EXP.MinMaxRatio": {"min": 0.99}}}


@pytest.mark.parametrize("settings", [{}, LIMITS])
def test_without_evidence_a_score_is_a_value_and_its_groups(settings: dict[str, Any]) -> None:
    found = score(LOG, ["gender"], metrics=["EXP"], settings=settings)
    assert list(found.columns) == PLAIN
    groups = score(LOG, ["gender"], metrics=["EXP"], groups=True, settings=settings)
    assert "effective_queries" not in groups.columns


def test_with_evidence_a_score_has_an_interval_and_is_held_against_chance() -> None:
    asked = {"evidence": {"resamples": 100, "noise_draws": 0}}
    found = score(LOG, ["gender"], metrics=["EXP"], settings=asked)
    assert {*found.columns} == {
        *PLAIN, "lower", "upper", "confidence", "seed", *AGAINST_CHANCE
    }  # fmt: skip
    groups = score(LOG, ["gender"], metrics=["EXP"], groups=True, settings=asked)
    assert groups["effective_queries"].notna().all()
