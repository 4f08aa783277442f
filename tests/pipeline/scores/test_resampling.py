"""Resamples by algebra on bucket sums, against resamples made of rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cases import some
from logs import Rows, every_measure
from slow_resampling import (
    TARGET,
    Batch,
    bucket_of,
    counted,
    defined,
    item_table,
    linear_gap,
    linear_gini,
    random_log,
    scored_again,
    weights_of,
)

from metrics import METRICS, PREFIX_UNIT, UNIT, asked, parse_measure
from metrics.asked import total_of
from pipeline.scores.evidence.randomness import poisson_weights
from schemas.counts import BUCKETS

MEASURES = list(every_measure(p=0.3, decay=0.9, k=3, metrics=METRICS))
LABELS = [measure.label for measure in MEASURES]
LINEAR = ("IAA", "Gini")
"""Metrics whose resamples are those of a linear form: see their own tests."""
SEED, RESAMPLES = 7, 40
LOGS = {
    "graded": {"seed": 1, "binary": False},
    "binary": {"seed": 2, "binary": True},
    "holes": {"seed": 3, "binary": False, "holes": True},
}


@pytest.fixture(scope="module", params=some(list(LOGS), few=2))
def batch(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Batch, Rows]]:
    rows = random_log(**LOGS[request.param])
    with counted(
        tmp_path_factory.mktemp(request.param),
        rows,
        items=item_table(),
        metrics=LABELS,
        slices=["device"],
        targets={"group": TARGET},
        threads=1,
        evidence={"resamples": RESAMPLES, "seed": SEED, "noise_draws": 0},
    ) as made:
        # Scoring a resample again asks for no evidence about it.
        quiet = made.settings.model_copy(
            update={
                "evidence": made.settings.evidence.model_copy(update={"resamples": 0}),
            }
        )
        yield Batch(made.connection, quiet, made.scores, made.resampling), rows


def near(value: Any) -> Any:
    return pytest.approx(value, rel=1e-9, abs=1e-9)


@pytest.mark.slow
def test_every_score_is_that_of_the_rows_drawn(batch: tuple[Batch, Rows]) -> None:
    made, rows = batch
    weights = poisson_weights(SEED, RESAMPLES, BUCKETS)
    resampled = list(made.resampled())
    checked: set[str] = set()
    for at in (0, 17):
        slow = scored_again(made.settings, rows, weights[at])
        for each, fast in resampled:
            label, key = each.evaluation.measure.label, (*each.part, each.attribute)
            if label.startswith(LINEAR):
                if fast.scores[0] is not None:
                    # The real one is the highest over all signs, and all orders, of the items.
                    assert fast.scores[0][at] <= slow.scores[(*key, label)]["value"] + 1e-9
                continue
            groups = slow.groups.get((*key, label), {})  # type: ignore[arg-type]
            values = each.evaluation.values
            for place, name in enumerate(each.evaluation.groups if values is not None else ()):
                if values is not None and values.reasons[place] is None:
                    assert fast.groups is not None
                    said = groups[name]["value"] if name in groups else None
                    if said is None:
                        assert not np.isfinite(fast.groups[at, place]), (key, label, name)
                    else:
                        assert fast.groups[at, place] == near(said), (key, label, name)
            comparable = defined(each.evaluation, groups)
            for score, numbers in zip(each.evaluation.scores, fast.scores, strict=True):
                if score.value is None:
                    assert numbers is None
                    continue
                assert numbers is not None
                assert numbers.shape == (RESAMPLES,)
                row = slow.scores[(*key, score.name.label)]
                if row["value"] is not None and comparable:
                    assert numbers[at] == near(row["value"]), (key, score.name.label)
                    checked.add(label)
                elif row["value"] is None:
                    assert not np.isfinite(numbers[at]), (key, score.name.label)
    assert len(checked) > 60, sorted(checked)


def test_items_keep_their_side_and_their_place(batch: tuple[Batch, Rows]) -> None:
    made, rows = batch
    weights = poisson_weights(SEED, RESAMPLES, BUCKETS)
    slow = {"IAA": linear_gap, "Gini": linear_gini}
    for each, fast in made.resampled():
        label = each.evaluation.measure.label
        if label not in slow or each.evaluation.scores[0].value is None:
            continue
        here = [row for row in rows if each.part[0] == "all" or row["device"] == each.part[1]]
        for at in range(5):
            expected = slow[label](here, weights_of(rows, weights[at]))
            assert fast.scores[0] is not None
            assert fast.scores[0][at] == near(expected), (each.part, label)


def test_the_batch_itself_is_the_resample_in_which_all_count_once(
    batch: tuple[Batch, Rows], monkeypatch: pytest.MonkeyPatch
) -> None:
    once = np.ones((1, BUCKETS))
    monkeypatch.setattr("pipeline.scores.evidence.resampling.poisson_weights", lambda *_: once)
    made, _ = batch
    for each, fast in made.resampled():
        for score, numbers in zip(each.evaluation.scores, fast.scores, strict=True):
            if numbers is not None:
                assert numbers[0] == near(score.value), (each.part, score.name.label)


COUNTED = {
    "lists": ("slice_counts", "lists", 1),
    "pair_lists": ("pair_stats", "lists", 1),
    "pair_share": ("pair_stats", "share_sum", UNIT),
    "entropy": ("prefix_stats", "entropy_sum", PREFIX_UNIT),
    "share": ("prefix_stats", "share_sum", PREFIX_UNIT),
    "own": ("prefix_stats", "own_sum", PREFIX_UNIT),
    "gap": ("item_gaps", "gap_sum", UNIT),
    "share_gap": ("item_gaps", "share_gap_sum", UNIT),
    "share_lists": ("item_gaps", "share_lists", 1),
    "exposure": ("item_gaps", "exposure_sum", UNIT),
    "exposure_ranks": ("item_gaps", "exposure_rank_sum", UNIT),
    "value": ("list_stats", "value_sum", UNIT),
    "weight": ("list_stats", "weight_sum", UNIT),
}
"""Statistics of bucket_sums: the table and column they add up to, and its unit."""
KEY = ("slice", "slice_value", "attribute", "metric", "reading", "group_value")


def test_buckets_add_up_to_the_counts(batch: tuple[Batch, Rows]) -> None:
    made, _ = batch
    rows = made.connection.sql("FROM batch.bucket_sums").to_arrow_table().to_pylist()
    assert {row["statistic"] for row in rows} == set(COUNTED)
    totals: dict[Any, float] = {}
    for statistic, (name, column, unit) in COUNTED.items():
        for row in made.connection.sql(f"FROM batch.{name}").to_arrow_table().to_pylist():
            key = (*(row.get(part) for part in KEY), statistic)
            totals[key] = int(row[column]) / unit
    for row in rows:
        assert row["buckets"] == sorted(set(row["buckets"]))
        total = totals.pop((*(row[part] for part in KEY), row["statistic"]))
        exact = COUNTED[row["statistic"]][2] == 1
        assert sum(row["sums"]) == (total if exact else near(total)), row
    # A sum that no bucket has is one of nothing.
    assert not any(totals.values()), totals


def test_rank_counts_are_those_of_the_buckets(batch: tuple[Batch, Rows]) -> None:
    made, _ = batch
    columns = ("rows", "judged", "graded", "relevant", "relevance_sum", "click_known", "click_sum")
    sums = ", ".join(f"sum({name})::VARCHAR" for name in columns)
    unknown = "coalesce(\"=group\", 'unknown')"
    for slices in ("'all', 'all'", "'device', \"=device\""):
        cells = made.connection.sql(
            f"SELECT {slices}, 'group', {unknown}, rank, {sums} FROM batch.bucket_counts "
            "GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        where = f"slice = {slices.split(',')[0]}"
        stored = made.connection.sql(
            f"SELECT slice, slice_value, attribute, group_value, rank, {sums} "
            f"FROM batch.rank_counts WHERE {where} GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        assert cells == stored


def test_buckets_are_those_of_the_digest(batch: tuple[Batch, Rows]) -> None:
    made, rows = batch
    found = made.connection.sql("SELECT DISTINCT bucket FROM batch.bucket_counts").fetchall()
    assert {bucket for (bucket,) in found} == {bucket_of(row["query_id"]) for row in rows}


def test_what_is_asked_of_counts_is_found_whatever_the_depth() -> None:
    """Position weights have the same bits in arrays of any length: they name the sums."""
    for depth in range(1, 70):
        ranks = np.arange(1, depth + 1)
        for label in ("EXP", "AWRF(p=0.37)@5", "ERBE(decay=0.83)", "ERBP(decay=0.01)@10"):
            measure = parse_measure(label)
            totals = asked(measure, depth).totals
            seen: list[Any] = []

            class Watching:
                """Counts with one row per rank."""

                def __init__(self, ranks: Any, seen: list[Any]) -> None:
                    self.ranks, self.seen = self, seen
                    self.rank, self.groups, self.catalogue = ranks, ("a",), None
                    self.lists = 1

                def total(self, column: str, weight: Any = None) -> Any:
                    self.seen.append(total_of(column, weight))
                    return np.ones(1)

            measure.metric.value.of(Watching(ranks, seen), measure.given)  # type: ignore[union-attr]
            assert set(seen) <= set(totals), (depth, label)
