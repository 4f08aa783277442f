"""How far groups are from the one that is worst off: by their own queries."""

from pathlib import Path

import numpy as np
import pytest
from fair_logs import biased, random_log, rows_of
from stores import DAY, audit, deliver, in_history

from pipeline.runs.batches import run_batch


@pytest.mark.slow
@pytest.mark.parametrize("pull", [0.0, 0.6])
def test_differences_are_of_the_worst_group_and_narrower_than_its_own(
    tmp_path: Path, pull: float
) -> None:
    settings = audit(
        tmp_path,
        metrics=["EXP", "ARP"],
        attributes=["group"],
        slices=[],
        evidence={"resamples": 500, "noise_draws": 0},
    )
    log = random_log(1, 200, {"A": 0.4, "B": 0.3, "C": 0.3})
    deliver(tmp_path, rows_of(biased(log, pull, 2)))
    run_batch(settings, DAY)
    rows = in_history(settings, "FROM group_history WHERE group_value <> 'unknown'")
    worst = {
        row["metric"]: row["worst_group"]
        for row in in_history(settings, "FROM fairness_history WHERE aggregation = 'MinMaxRatio'")
    }
    values = {(row["metric"], row["group_value"]): row["value"] for row in rows}
    for row in rows:
        metric, name = row["metric"], row["group_value"]
        ends = row["difference_lower"], row["difference_upper"]
        if name == worst[metric]:
            assert (row["compared_with"], *ends) == (None, None, None)
            continue
        assert row["compared_with"] == worst[metric]
        difference = values[metric, name] - values[metric, worst[metric]]
        assert np.mean(ends) == pytest.approx(difference, abs=1e-12)
        if pull and name == "A":
            # All of its advantage is certain, whichever way the metric counts.
            assert ends[0] * ends[1] > 0
