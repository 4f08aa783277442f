"""A past batch scored again, with other parameters, from its counts alone."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from damaged import vouched_for
from logs import (
    DAY,
    LENIENT,
    Found,
    Rows,
    audit,
    batch_file,
    deliver,
    every_measure,
    found,
    same,
    stored,
    write,
)

from metrics import UNIT
from pipeline.counts.stored_counts import StoredCounts
from pipeline.errors import AuditError
from pipeline.history.manifest import manifest
from pipeline.history.opening import open_history
from pipeline.runs.batches import run_batch
from pipeline.scores.scoring import RunStamp, rows_of, scored
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.store.tables import now
from schemas.counts import BUCKETS, ITEM_STATS

FIRST = [measure.label for measure in every_measure(p=0.1, decay=0.75, k=5)]
OTHER = [measure.label for measure in every_measure(p=0.45, decay=0.01, k=3)]


def rows(seed: int = 3) -> Rows:
    """Ragged lists with gaps, groups missing, relevance of all sizes and an item seen often."""
    chance = Random(seed)
    people = [(f"i{at}", chance.choice("abc."), chance.choice("xy.")) for at in range(30)]
    made: Rows = []
    for number in range(25):
        rank = 0
        device = chance.choice(["app", "web"])
        for item, group, town in chance.sample(people, chance.randint(1, 20)):
            rank += chance.choice([1, 1, 3])
            made.append(
                {
                    "list_id": f"l{number}",
                    "item_id": item,
                    "rank": rank,
                    "relevance": chance.choice([0.0, 1.0]),
                    "click": chance.random(),
                    "group": None if group == "." else group,
                    "town": None if town == "." else town,
                    "device": device,
                }
            )
    return made


def settings(folder: Path, labels: list[str], **more: Any) -> Settings:
    return audit(
        folder,
        **{
            "attributes": ["group", "town", ["group", "town"]],
            "slices": ["device"],
            "ranks": {"gaps": "keep"},
            "items": "items/{batch}.csv",
            "metrics": labels,
            "targets": {"group": {"a": 0.5, "z": 0.5}},
            "evidence": {**LENIENT, "resamples": 50, "noise_draws": 200},
            **more,
        },
    )


def deliver_day(here: Settings, batch: str = DAY, seed: int = 3) -> Path:
    """The log of a batch, and its item table: what was shown and more, another each day."""
    log = rows(seed)
    shown = {row["item_id"]: row for row in log}.values()
    items = [{name: row[name] for name in ("item_id", "group", "town")} for row in shown]
    extra = [{"item_id": f"e{at}", "group": "d", "town": "x"} for at in range(seed)]
    write(items + extra, here.folder / "items" / f"{batch}.csv")
    return deliver(here, log, batch)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What a run from the logs gives with the other parameters."""
    here = settings(tmp_path_factory.mktemp("fresh"), OTHER)
    deliver_day(here)
    assert run_batch(here, DAY).status == "done"
    result = stored(here)
    assert result.values("EXP(denominator=catalogue)@3")["d"] == 0.0
    return result


def delivered_and_emptied(folder: Path) -> Settings:
    """A batch that was run, and of which only counts are left."""
    here = settings(folder, FIRST)
    path = deliver_day(here)
    assert run_batch(here, DAY).status == "done"
    path.unlink()
    with batch_file(here, read_only=False) as connection:
        # The tables with a row per impression or per item: all that says what single people saw.
        for view in ("ranking_log", "log_rows"):
            connection.execute(f"DROP VIEW batch.{view}")
        shown = ("log_entries", "log_lists", "log_items")
        for table in (*shown, "rejected_rows", ITEM_STATS.name):
            connection.execute(f"DROP TABLE batch.{table}")
    vouched_for(store_of(here), DAY)
    return here


@pytest.mark.slow
def test_counts_by_hand(tmp_path: Path) -> None:
    here = audit(tmp_path, slices=["device"])
    cells = [
        ("l1", 1, "a", 1.0, 0.25), ("l1", 2, "b", 0.5, None), ("l2", 1, "a", None, 0.25),
        ("l2", 2, "b", 0.0, 1.0), ("l3", 1, "a", 1.0, 1.0),
    ]  # fmt: skip
    names = ("list_id", "rank", "group", "relevance", "click")
    log = [
        {**dict(zip(names, cell, strict=True)), "item_id": str(at), "device": "app"}
        for at, cell in enumerate(cells)
    ]
    deliver(here, log)
    run_batch(here, DAY)
    with batch_file(here) as connection:
        found = {
            part: connection.sql(
                "SELECT * EXCLUDE (slice, slice_value, attribute) FROM batch.rank_counts "
                f"WHERE slice_value = '{part}' ORDER BY group_value"
            ).to_arrow_table().to_pylist()
            for part in ("all", "app")
        }  # fmt: skip
        pairs = connection.sql(
            "SELECT group_value, lists, pairs, won, share_sum FROM batch.pair_stats "
            "WHERE slice = 'all' ORDER BY group_value"
        ).fetchall()
    assert found["app"] == found["all"] == [
        {"group_value": "a", "rank": 1, "rows": 3, "judged": 2, "graded": 0, "relevant": 2,
         "relevance_sum": 2 * UNIT, "click_known": 3, "click_sum": UNIT + UNIT // 2},
        {"group_value": "b", "rank": 2, "rows": 2, "judged": 2, "graded": 1, "relevant": 1,
         "relevance_sum": UNIT // 2, "click_known": 1, "click_sum": UNIT},
    ]  # fmt: skip
    assert pairs == [("a", 2, 2, 2, 2 * UNIT), ("b", 2, 2, 0, 0)]


@pytest.mark.slow
def test_counts_in_the_batch_file(tmp_path: Path, fresh: Found) -> None:
    before = delivered_and_emptied(tmp_path)
    first = same(stored(before))
    again = settings(tmp_path, OTHER)
    outcome = run_batch(again, DAY, from_counts=True)
    assert (outcome.status, outcome.revision) == ("done", 2)
    assert same(stored(again)) == same(fresh)
    assert same(stored(again)).keys() != first.keys()
    # And back, with nothing lost on the way.
    assert run_batch(before, DAY, from_counts=True).revision == 3
    assert same(stored(before)) == first


@pytest.mark.slow
def test_what_was_merged_is_what_was_scored(tmp_path: Path, fresh: Found) -> None:
    delivered_and_emptied(tmp_path)
    again = settings(tmp_path, OTHER)
    run_batch(again, DAY, from_counts=True)
    with open_history(again, read_only=True) as connection:
        tables = [
            connection.sql(f"FROM history.{name}").to_arrow_table().to_pylist()
            for name in ("fairness_history", "group_history", "superseded")
        ]
    scores, groups, superseded = tables
    assert same(found(scores, lambda: groups)) == same(fresh)
    assert {row["revision"] for row in (*scores, *groups)} == {2}
    assert {row["metric"] for row in superseded} == set(FIRST)
    assert {row["config_hash"] for row in scores} == {again.config_hash}
    assert {row["input_hash"] for row in scores} == {row["input_hash"] for row in superseded}
    row = manifest(again)[DAY]
    assert (row.revision, row.config_hash) == (2, again.config_hash)
    assert (row.rows_accepted, row.lists) == (len(rows()), 25)


@pytest.mark.slow
def test_counts_in_the_history(tmp_path: Path, fresh: Found) -> None:
    # Not even the batch file is needed; another batch beside it does not disturb.
    here = settings(tmp_path, FIRST)
    deliver_day(here)
    deliver_day(here, "2026-01-06", seed=4)
    for batch in (DAY, "2026-01-06"):
        assert run_batch(here, batch).status == "done"
    for path in (tmp_path / "store" / "batches").iterdir():
        path.unlink()
    again = settings(tmp_path, OTHER)
    with open_history(again, read_only=True) as connection:
        counts = StoredCounts(connection, "history", batch=DAY)
        results = scored(counts, again, again.measures)
        stamp = RunStamp("", "", "", "", now())
        # Intervals need the counts by bucket, which only batch files have room for.
        own, of_groups = rows_of(results, counts, again, DAY, stamp)
        scores = found(own, lambda: of_groups)
        assert same(scores, evidence=False) == same(fresh, evidence=False)
        with pytest.raises(AuditError, match="run it from its logs first"):
            StoredCounts(connection, "history", batch="2026-01-07")


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A batch that was run, and that no test changes."""
    here = settings(tmp_path_factory.mktemp("counted"), ["EXP"])
    deliver_day(here)
    run_batch(here, DAY)
    return here


@pytest.mark.parametrize(
    "other",
    [
        {"attributes": ["group"], "targets": {}},
        {"attributes": ["group", "town", ["town", "group"]]},
        {"slices": []},
        {"slices": ["device", "item"]},
        {"ranks": {"gaps": "compact"}},
        {"ranks": {"start": 0, "gaps": "keep"}},
        {"columns": {"group": "town"}},
        {"missing_relevance": "zero"},
        {"missing_click": "zero"},
        {"rejects": {"policy": "drop_row"}},
    ],
    ids=str,
)
def test_counts_made_otherwise_are_refused(counted: Settings, other: dict[str, Any]) -> None:
    changed = settings(counted.folder, ["EXP@2"], **other)
    refusal = rf"{DAY}: its rows were counted under other settings.*run it again from its logs"
    with pytest.raises(AuditError, match=refusal):
        run_batch(changed, DAY, from_counts=True)
    assert {row["metric"] for row in stored(counted).scores.values()} == {"EXP"}
    assert manifest(counted)[DAY].revision == 1


@pytest.mark.slow
def test_what_counts_do_not_depend_on_may_change(tmp_path: Path) -> None:
    labels = ["EXP", "NDKL(reference=target)"]
    here = settings(tmp_path, labels)
    deliver_day(here)
    run_batch(here, DAY)
    before = stored(here)
    changed = settings(
        tmp_path,
        labels,
        targets={"group": {"a": 0.1, "b": 0.9}},
        top_of_list="bad",
        unknown_group={"in_aggregations": True},
        thresholds={"EXP.MinMaxRatio": {"min": 0.999}},
        evidence={"decide_by": "point", "min_queries": 0, "min_appearances": 0},
    )
    assert run_batch(changed, DAY, from_counts=True).breaches > 0
    again = stored(changed)
    for label in ("EXP.LTwo", "NDKL(reference=target)"):
        assert again.score(label)["value"] != before.score(label)["value"]
    assert run_batch(changed, DAY, force=True).status == "done"
    fresh = stored(changed)
    assert same(fresh) == same(again)
    for key, row in fresh.scores.items():
        assert row["status"] == again.scores[key]["status"]


def test_a_batch_that_was_never_run_has_no_counts(tmp_path: Path) -> None:
    here = settings(tmp_path, ["EXP"])
    deliver_day(here)
    with pytest.raises(AuditError, match="nothing is stored yet; run the batch from its logs"):
        run_batch(here, DAY, from_counts=True)


@pytest.mark.slow
def test_what_was_counted_list_by_list_stays_and_nothing_is_made_up(tmp_path: Path) -> None:
    """Cuts of the histogram can be moved; a list cannot be looked at again once it is gone."""
    counted = ["nDCG@5", "TPR(per=list)@3", "RBO(p=0.9,reference=relevance)", "TargetAWRF@4"]
    fresh = settings(tmp_path / "fresh", [*counted, "TPR@4", "Skew@4", "Gini"])
    deliver_day(fresh)
    run_batch(fresh, DAY)
    expected = same(stored(fresh))
    here = settings(tmp_path / "here", [*counted, "TPR@3"])
    path = deliver_day(here)
    run_batch(here, DAY)
    path.unlink()
    again = settings(tmp_path / "here", [*counted, "TPR@4", "Skew@4", "Gini"])
    assert run_batch(again, DAY, from_counts=True).status == "done"
    assert same(stored(again)) == expected
    deeper = settings(tmp_path / "here", ["nDCG@6", "TPR(per=list)@4", "TPR@4"])
    assert run_batch(deeper, DAY, from_counts=True).status == "done"
    for (*_, label), row in stored(deeper).scores.items():
        lost = not label.startswith("TPR@4")
        assert (row["reason"] == "not_counted") == lost, label


@pytest.mark.slow
def test_another_target_makes_sums_over_lists_void(tmp_path: Path) -> None:
    here = settings(tmp_path, ["TargetAWRF", "NDKL(reference=target)"])
    deliver_day(here)
    run_batch(here, DAY)
    shares = {"group": {"a": 0.25, "z": 0.75}}
    other = settings(tmp_path, ["TargetAWRF", "NDKL(reference=target)"], targets=shares)
    assert run_batch(other, DAY, from_counts=True).status == "done"
    result = stored(other)
    assert result.score("TargetAWRF")["reason"] == "not_counted"
    assert result.score("NDKL(reference=target)")["value"] > 0
    run_batch(other, DAY, force=True)
    assert stored(other).score("TargetAWRF")["value"] > 0


@pytest.mark.slow
def test_what_was_not_counted_stays_due(tmp_path: Path) -> None:
    here = settings(tmp_path, ["EXP"])
    deliver_day(here)
    run_batch(here, DAY)
    wider = settings(tmp_path, ["EXP", "nDCG@5"])
    assert run_batch(wider, DAY, from_counts=True).status == "done"
    assert stored(wider).score("nDCG@5", None)["reason"] == "not_counted"
    assert run_batch(wider, DAY).status == "done"
    assert stored(wider).score("nDCG@5", None)["value"] > 0
    assert run_batch(wider, DAY).status == "unchanged"


@pytest.mark.slow
def test_sums_of_other_code_are_not_taken_for_those_of_this(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = settings(tmp_path, ["EXP", "nDCG@5"])
    deliver_day(here)
    run_batch(here, DAY)
    monkeypatch.setattr("pipeline.counts.list_stats.code_version", lambda: "0.0.0+other")
    assert run_batch(here, DAY, from_counts=True).status == "done"
    assert stored(here).score("nDCG@5", None)["reason"] == "not_counted"
    assert stored(here).score("EXP.MinMaxRatio")["value"] > 0


@pytest.mark.slow
def test_a_file_of_before_takes_what_is_said_now(tmp_path: Path) -> None:
    """It lacks columns of scores, and what random orders would give."""
    here = settings(tmp_path, ["EXP"], ranks={"gaps": "compact"})
    deliver_day(here)
    assert run_batch(here, DAY).status == "done"
    before = stored(here)
    assert before.score("EXP.MinMaxRatio")["against_chance"] is not None
    later = {"fairness_history": ("against_chance", "judged_value", "thin_groups", "assured"),
             "group_history": ("effective_queries",)}  # fmt: skip
    with batch_file(here, read_only=False) as connection:
        connection.execute("DROP TABLE batch.bucket_lengths")
        for table, columns in later.items():
            for column in columns:
                connection.execute(f"ALTER TABLE batch.{table} DROP COLUMN {column}")
    vouched_for(store_of(here), DAY)
    assert run_batch(here, DAY, from_counts=True, force=True).status == "done"
    row = stored(here).score("EXP.MinMaxRatio")
    assert row["against_chance"] is None
    for name in ("value", "lower", "upper", "status"):
        assert row[name] == before.score("EXP.MinMaxRatio")[name]


@pytest.mark.slow
def test_counts_of_four_times_as_many_buckets_give_the_same_intervals(tmp_path: Path) -> None:
    here = settings(tmp_path, FIRST)
    deliver_day(here)
    assert run_batch(here, DAY).status == "done"
    before = stored(here)
    # What was bucket b of 1024 stood in one of b, b + 1024, b + 2048 and b + 3072.
    moved = f"{{0}} + {BUCKETS} * ({{0}} % 4)"
    with batch_file(here, read_only=False) as connection:
        connection.execute(f"UPDATE batch.bucket_counts SET bucket = {moved.format('bucket')}")
        pairs = (
            "list_sort(list_transform(list_zip(buckets, sums), "
            f"lambda p: {{'b': {moved.format('p[1]')}, 's': p[2]}}))"
        )
        connection.execute(
            f"UPDATE batch.bucket_sums SET buckets = list_transform({pairs}, lambda p: p.b), "
            f"sums = list_transform({pairs}, lambda p: p.s)"
        )
    vouched_for(store_of(here), DAY)
    assert run_batch(here, DAY, from_counts=True, force=True).status == "done"
    after = stored(here)
    assert list(before.scores) == list(after.scores)
    compared = 0
    for key, row in before.scores.items():
        for end in ("lower", "upper"):
            one, other = row[end], after.scores[key][end]
            assert (one is None) == (other is None)
            if one is not None:
                assert one == pytest.approx(other, rel=1e-9, abs=1e-12)
                compared += 1
    assert compared > 100
