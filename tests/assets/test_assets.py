"""The Dagster code location: its graph, its runs, and what they leave behind when they fail."""

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pyarrow
import pyarrow.parquet
import pytest
import yaml
from damaged import quietly
from logs import TEN
from stores import LENIENT

import assets.counts
import pipeline.runs.steps
from assets.audit import main
from assets.definitions import definitions
from assets.due import batches_due, wants_demo
from assets.left_out import failure, left_out
from assets.log import numbers
from assets.reads import tables_read
from assets.resources import Audit
from assets.sensors import record_failures
from metrics import FAMILIES, METRICS
from pipeline.errors import SettingsError
from pipeline.history.manifest import manifest
from pipeline.log.ingest import Ingested
from pipeline.settings.load import load_settings
from pipeline.store.paths import store_of

DAY, NEXT, LAST = "2026-01-01", "2026-01-02", "2026-01-04"
RELEVANCE = 1.0, 0.0
SETTINGS: dict[str, Any] = {
    "logs": "logs/{batch}/*",
    "attributes": ["group"],
    "slices": ["device"],
    "thresholds": {
        "EXP.MinMaxRatio": {"min": 0.8},
        "AWRF(p=0.1).MaxMinDiff": {"max": 100},
        "ERBR(decay=0.75).MinMaxRatio": {"min": 0.1},
    },
    "schedule": {"start": DAY, "end": LAST, "hour": 4, "minute": 30},
    "threads": 1,
    "busy_seconds": 5,
    "evidence": LENIENT,
}

COUNTS = ("slice_counts", "rank_counts", "pair_stats", "prefix_stats", "item_stats")
HISTOGRAM = frozenset({"slice_counts", "rank_counts"})
DEPENDENCIES = {
    "ranking_log": frozenset(),
    **dict.fromkeys(COUNTS, frozenset({"ranking_log"})),
    **dict.fromkeys(("EXP", "EXPU", "EXPRU", "AWRF", "ERBE", "ERBP", "ERBR"), HISTOGRAM),
    "ARP": HISTOGRAM | {"pair_stats"},
    "NDKL": HISTOGRAM | {"prefix_stats"},
    "IAA": HISTOGRAM | {"item_stats"},
    "fairness_history": frozenset(metric.name for metric in TEN),
    "dashboard": frozenset({"fairness_history"}),
}
CHECKS = {
    ("ranking_log", "log_obeys_contract"): True,
    ("ranking_log", "no_rows_rejected"): False,
    ("EXP", "EXP_MinMaxRatio"): False,
    ("AWRF", "AWRF_p_0_1_MaxMinDiff"): False,
    ("ERBR", "ERBR_decay_0_75_MinMaxRatio"): False,
    ("ERBR", "relevance_is_binary"): False,
    ("fairness_history", "alerts"): False,
}
"""Every check, and whether it blocks."""


def write_log(
    folder: Path, batch: str, *, relevance: tuple[float, ...] = RELEVANCE, broken: bool = False
) -> None:
    """Six lists of four items; b stands below a.  ``broken``: no list starts at rank 1."""
    rows = [
        {
            "list_id": f"q{at}",
            "item_id": f"{group}{at}{place}",
            "rank": place + (2 if broken else 1),
            "relevance": relevance[place % len(relevance)],
            "click": float(place == 0),
            "group": group,
            "device": "mobile" if at % 2 else "desktop",
        }
        for at in range(6)
        for place, group in enumerate("aabb")
    ]
    path = folder / "logs" / batch / "log.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)


@pytest.fixture
def audit(tmp_path: Path) -> Callable[..., Path]:
    """Writes audit.yaml with changes to the settings above; returns its path."""

    def write(**changes: Any) -> Path:
        file = tmp_path / "audit.yaml"
        file.write_text(yaml.safe_dump({**SETTINGS, **changes}), encoding="utf-8")
        return file

    return write


@pytest.fixture
def instance() -> Any:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def run(
    file: Path,
    instance: dg.DagsterInstance,
    first: str,
    last: str | None = None,
    *,
    only: Sequence[str] = (),
) -> dg.ExecuteInProcessResult:
    tags = {
        "dagster/asset_partition_range_start": first,
        "dagster/asset_partition_range_end": last or first,
    }
    return (
        definitions(file)
        .resolve_job_def("audit")
        .execute_in_process(
            instance=instance,
            partition_key=None if last else first,
            tags=tags if last else None,
            asset_selection=[dg.AssetKey(name) for name in only] if only else None,
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
    )


def metadata(result: dg.ExecuteInProcessResult) -> dict[tuple[str, str], dict[str, Any]]:
    """What was said about each asset and batch."""
    return {
        (event.asset_key.to_user_string(), event.partition): {
            name: value.value for name, value in event.materialization.metadata.items()
        }
        for event in result.all_events
        if event.is_step_materialization and event.asset_key and event.partition
    }


def verdicts(result: dg.ExecuteInProcessResult) -> dict[tuple[str, str], dg.AssetCheckEvaluation]:
    """Results of checks, by check and batch."""
    return {
        (each.check_name, str(each.partition)): each
        for each in result.get_asset_check_evaluations()
    }


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.sql(query).fetchall()


def statuses(file: Path) -> dict[str, str]:
    return {batch: row.status for batch, row in manifest(load_settings(file)).items()}


def failures(result: dg.ExecuteInProcessResult) -> list[str]:
    events = (event.step_failure_data for event in result.all_events if event.is_step_failure)
    return [
        str(data.user_failure_data.description if data.user_failure_data else data.error)
        for data in events
    ]


# -- the graph


def test_definitions_are_as_drawn(audit: Callable[..., Path]) -> None:
    found = definitions(audit()).get_repository_def()
    graph = found.asset_graph
    assert {
        key.to_user_string(): {parent.to_user_string() for parent in graph.get(key).parent_keys}
        for key in graph.get_all_asset_keys()
    } == DEPENDENCIES
    assert {
        (key.asset_key.to_user_string(), key.name): graph.get(key).blocking
        for key in graph.asset_check_keys
    } == CHECKS
    assert {job.name for job in found.get_all_jobs()} - {"__ASSET_JOB"} == {"audit", "verify"}
    assert {
        (schedule.name, schedule.cron_schedule, schedule.job_name)
        for schedule in found.schedule_defs
    } == {("nightly", "30 4 * * *", "audit"), ("weekly", "30 10 * * 0", "verify")}
    assert [sensor.name for sensor in found.sensor_defs] == ["record_failures"]


def test_every_asset_is_partitioned_described_and_runs_ranges_at_once(
    audit: Callable[..., Path],
) -> None:
    graph = definitions(audit()).get_repository_def().asset_graph
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.partitions_def is not None
        assert node.partitions_def.get_partition_keys() == [DAY, NEXT, "2026-01-03", LAST]
        assert node.backfill_policy == dg.BackfillPolicy.single_run()
        assert "ne row" in (node.description or ""), key
        assert node.kinds == {"duckdb", "table"}
        assert node.code_version
        if key.path[-1] != "dashboard":
            columns = node.metadata["dagster/column_schema"].columns
            assert all(column.description for column in columns)


def test_only_metrics_of_the_settings_are_assets(audit: Callable[..., Path]) -> None:
    file = audit(metrics=["EXP", "EXP@2", "NDKL"], thresholds={"EXP@2.MinMaxRatio": {"min": 0.5}})
    graph = definitions(file).get_repository_def().asset_graph
    keys = {key.to_user_string() for key in graph.get_all_asset_keys()}
    assert keys & {metric.name for metric in TEN} == {"EXP", "NDKL"}
    assert {key.name for key in graph.asset_check_keys} >= {"EXP_2_MinMaxRatio"}
    assert "relevance_is_binary" not in {key.name for key in graph.asset_check_keys}


def test_every_fairness_metric_reads_the_histogram() -> None:
    for metric in TEN:
        assert {table.name for table in tables_read([metric.usual])} >= {"rank_counts"}


def test_a_metric_that_looks_at_lists_reads_what_lists_add_up_to() -> None:
    by_lists = [metric for metric in METRICS if metric.usual.uses_lists]
    assert by_lists
    for metric in by_lists:
        assert "list_stats" in {table.name for table in tables_read([metric.usual])}, metric.name


def test_each_other_family_is_one_asset(audit: Callable[..., Path]) -> None:
    file = audit(
        metrics=["EXP", "nDCG@5", "RR", "TPR@3"],
        thresholds={"nDCG@5": {"min": 0.1}, "TPR@3.MinMaxRatio": {"min": 0.5}},
    )
    graph = definitions(file).get_repository_def().asset_graph
    keys = {key.to_user_string() for key in graph.get_all_asset_keys()}
    assert keys & {*(metric.name for metric in METRICS), *(each.name for each in FAMILIES)} == {
        "EXP", "quality", "top_k"
    }  # fmt: skip
    checks = {(key.asset_key.to_user_string(), key.name) for key in graph.asset_check_keys}
    assert {("quality", "nDCG_5"), ("top_k", "TPR_3_MinMaxRatio")} <= checks


def test_late_results_are_noticed_unless_the_period_is_closed(audit: Callable[..., Path]) -> None:
    def policy(file: Path) -> Any:
        graph = definitions(file).get_repository_def().asset_graph
        return graph.get(dg.AssetKey("fairness_history")).freshness_policy_or_from_metadata

    assert policy(audit()) is None
    found = policy(audit(schedule={"start": DAY, "hour": 3, "deadline_hours": 30}))
    # The last result came at 3; the next day's may take until 6 on the day after that.
    assert found.fail_window.to_timedelta().total_seconds() == (24 + 30 - 3) * 3600


def test_settings_that_are_wrong_say_so(audit: Callable[..., Path]) -> None:
    with pytest.raises(SettingsError, match="did you mean schedule"):
        definitions(audit(shedule={}))


def test_nightly_run_is_about_the_day_that_ended(audit: Callable[..., Path]) -> None:
    schedule = definitions(audit(schedule={"start": DAY})).resolve_schedule_def("nightly")
    night = datetime(2026, 3, 5, 3, 0, tzinfo=UTC)
    tick = schedule.evaluate_tick(dg.build_schedule_context(scheduled_execution_time=night))
    assert [request.partition_key for request in tick.run_requests or []] == ["2026-03-04"]


# -- runs


@pytest.mark.slow
def test_the_weekly_look_fails_where_anything_is_wrong(
    audit: Callable[..., Path], instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    write_log(tmp_path, DAY)
    file = audit()
    assert run(file, instance, DAY).success
    job = definitions(file).resolve_job_def("verify")
    assert job.execute_in_process(instance=instance).success
    store = store_of(load_settings(file))
    quietly(store.history, "UPDATE group_history SET n = n + 1")
    ended = job.execute_in_process(instance=instance, raise_on_error=False)
    assert not ended.success
    (failure,) = [event for event in ended.all_events if event.is_step_failure]
    assert "things are wrong in the store" in str(failure.step_failure_data.error)
    night = run(file, instance, DAY)
    assert not night.success


@pytest.mark.slow
def test_one_batch_from_log_to_dashboard(
    audit: Callable[..., Path], instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    write_log(tmp_path, DAY)
    result = run(audit(), instance, DAY)
    assert result.success
    said = metadata(result)
    assert {asset for asset, _ in said} == set(DEPENDENCIES)
    assert said["ranking_log", DAY]["dagster/row_count"] == 24
    assert said["ranking_log", DAY]["lists"] == 6
    stored = rows(
        tmp_path / "store/dashboard.duckdb",
        "SELECT attribute, label, value, metric, aggregation FROM v_history WHERE slice = 'all'",
    )
    assert stored
    for attribute, label, value, metric, aggregation in stored:
        name = f"{attribute} {label}" if attribute else label
        plotted = value if aggregation in (None, "MinMaxRatio", "MaxMinDiff") else None
        assert said[metric.split("(")[0], DAY].get(name) == plotted, label
    (total,) = rows(tmp_path / "store/history.duckdb", "SELECT count(*) FROM fairness_history")[0]
    assert said["fairness_history", DAY]["dagster/row_count"] == total
    assert said["fairness_history", DAY]["revision"] == 1

    found = verdicts(result)
    assert {name for name, _ in found} == {name for _, name in CHECKS}
    unfair = found["EXP_MinMaxRatio", DAY]
    assert (unfair.passed, unfair.severity) == (False, dg.AssetCheckSeverity.WARN)
    # Six lists alike: exposure of b over a is (1/log2 4 + 1/log2 5) / (1/log2 2 + 1/log2 3).
    table = unfair.metadata["breaching"]
    assert isinstance(table, dg.TableMetadataValue)
    worst = table.records[0].data
    assert (worst["attribute"], worst["worst_group"]) == ("group", "b")
    assert worst["value"] == pytest.approx((1 / 2 + 0.43067655807339306) / (1 + 0.6309297535714575))
    assert unfair.metadata["breaches"].value == 3
    assert found["AWRF_p_0_1_MaxMinDiff", DAY].passed
    assert found["relevance_is_binary", DAY].passed
    assert found["log_obeys_contract", DAY].passed


@pytest.mark.slow
def test_graded_relevance_is_told_and_not_a_pass(
    audit: Callable[..., Path], instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    write_log(tmp_path, DAY, relevance=(0.5, 1.0))
    result = run(audit(), instance, DAY)
    assert result.success
    found = verdicts(result)
    assert not found["relevance_is_binary", DAY].passed
    assert found["relevance_is_binary", DAY].metadata["graded_rows"].value == 12
    undefined = found["ERBR_decay_0_75_MinMaxRatio", DAY]
    assert not undefined.passed
    assert "relevance_not_binary" in (undefined.description or "")
    assert not any("ERBR" in name for name in metadata(result)["ERBR", DAY])


def _without_groups(folder: Path, share: float, written: str = "{}.0") -> None:
    """An item table of which so many items of the log's are, and logs that do not say groups."""
    path = folder / "logs" / DAY / "log.parquet"
    log = pyarrow.parquet.read_table(path)
    ids = log["item_id"].to_pylist()
    said = [each if at < share * len(ids) else written.format(each) for at, each in enumerate(ids)]
    pyarrow.parquet.write_table(
        pyarrow.table({"item_id": said, "group": log["group"]}), folder / "items.parquet"
    )
    pyarrow.parquet.write_table(log.drop_columns(["group"]), path)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "passes"), [(0.0, False), (0.4, False), (0.7, True)])
def test_no_check_passes_where_few_rows_join(
    audit: Callable[..., Path],
    instance: dg.DagsterInstance,
    tmp_path: Path,
    share: float,
    passes: bool,
) -> None:
    write_log(tmp_path, DAY)
    _without_groups(tmp_path, share)
    limits = {"EXP.MinMaxRatio": {"min": 0.0001}}
    file = audit(items="items.parquet", thresholds=limits)
    result = run(file, instance, DAY)
    assert result.success
    found = verdicts(result)
    checks = ("items_join", "EXP_MinMaxRatio", "alerts")
    assert {found[name, DAY].passed for name in checks} == {passes}
    if not passes:
        join, fair = (str(found[name, DAY].description) for name in checks[:2])
        assert "name an item that the item table does not hold" in join
        assert fair.startswith("Not judged: the data gate joined is closed: ")
        assert "3.0 for 3" in join
        assert found["items_join", DAY].metadata["rows_joined"].value == ceil(24 * share)
    # A metric by itself is no more than that either.
    alone = verdicts(run(file, instance, DAY, only=["EXP"]))
    assert alone["EXP_MinMaxRatio", DAY].passed == passes


@pytest.mark.slow
def test_a_check_that_was_done_before_the_gate_is_told_again(
    audit: Callable[..., Path], instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    """Gates that compare batches are tested after the merge; what the check says last counts."""
    file = audit(thresholds={"EXP.MinMaxRatio": {"min": 0.0001}}, gate={"least": 1, "window": 1})
    write_log(tmp_path, DAY)
    assert verdicts(run(file, instance, DAY))["EXP_MinMaxRatio", DAY].passed
    write_log(tmp_path, NEXT)
    log = tmp_path / "logs" / NEXT / "log.parquet"
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(log).slice(0, 8), log)
    found = verdicts(run(file, instance, NEXT))
    assert not found["EXP_MinMaxRatio", NEXT].passed
    said = str(found["EXP_MinMaxRatio", NEXT].description)
    assert said.startswith("Not judged: the data gate volume is closed: ")
    assert "By itself: 3 of 3 are at least" in said
    key = dg.AssetCheckKey(dg.AssetKey("EXP"), "EXP_MinMaxRatio")
    (record, *_) = instance.event_log_storage.get_asset_check_execution_history(key, limit=1)
    assert record.status.value == "FAILED"
    # Alone, it knows what the history knows.
    job = definitions(file).resolve_implicit_global_asset_job_def()
    again = job.get_subset(asset_check_selection={key}).execute_in_process(
        instance=instance, partition_key=NEXT
    )
    assert not verdicts(again)["EXP_MinMaxRatio", NEXT].passed


@pytest.mark.slow
def test_a_range_finishes_the_days_it_can(
    audit: Callable[..., Path], instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    write_log(tmp_path, DAY)
    write_log(tmp_path, "2026-01-03", broken=True)
    write_log(tmp_path, LAST)
    file = audit()
    result = run(file, instance, DAY, LAST)
    assert not result.success
    (message,) = failures(result)
    assert "2 of 4 batches could not be done" in message
    assert f"no data: {NEXT}" in message
    assert "refused: 2026-01-03" in message
    assert statuses(file) == {
        DAY: "done",
        NEXT: "no_data",
        "2026-01-03": "refused",
        LAST: "done",
    }
    published = rows(tmp_path / "store/dashboard.duckdb", "SELECT DISTINCT batch FROM v_history")
    assert {batch for (batch,) in published} == {DAY, LAST}

    said = metadata(result)
    for asset in ("fairness_history", "dashboard"):
        assert {batch for name, batch in said if name == asset} == {DAY, LAST}
    assert said["EXP", NEXT] == {"status": "no_data"}
    assert said["EXP", DAY]["group EXP.MinMaxRatio"] == said["EXP", LAST]["group EXP.MinMaxRatio"]
    found = verdicts(result)
    assert {batch for name, batch in found if name == "EXP_MinMaxRatio"} == {DAY, LAST}
    refused = found["log_obeys_contract", "2026-01-03"]
    assert (refused.passed, refused.severity) == (False, dg.AssetCheckSeverity.ERROR)
    rules = refused.metadata["rules"]
    assert isinstance(rules, dg.TableMetadataValue)
    assert [(each.data["rule"], each.data["lists"]) for each in rules.records] == [("rank_gap", 6)]


@pytest.mark.slow
def test_a_range_without_trouble_is_a_success(
    audit: Callable[..., Path], instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    write_log(tmp_path, DAY)
    write_log(tmp_path, NEXT)
    result = run(audit(), instance, DAY, NEXT)
    assert result.success
    said = metadata(result)
    assert {batch for asset, batch in said if asset == "dashboard"} == {DAY, NEXT}
    # Pictures of a month are kept once a run, with its newest batch.
    pictured = {name for name, numbers in said.items() if "last_month" in numbers}
    assert pictured == {(name, NEXT) for name in (*(each.name for each in TEN), "dashboard")}


@pytest.mark.slow
def test_a_refused_night_fails_and_leaves_the_last_good_result(
    audit: Callable[..., Path], instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    file = audit()
    write_log(tmp_path, DAY)
    assert run(file, instance, DAY).success
    history, scores = (
        tmp_path / "store/history.duckdb",
        "SELECT * FROM fairness_history ORDER BY ALL",
    )
    before = rows(history, scores)

    write_log(tmp_path, DAY, broken=True)
    result = run(file, instance, DAY)
    assert not result.success
    assert "rank_gap" in failures(result)[0]
    assert not metadata(result), "nothing downstream may run"
    check = verdicts(result)["log_obeys_contract", DAY]
    assert (check.passed, check.blocking) == (False, True)
    assert statuses(file) == {DAY: "refused"}
    assert rows(history, scores) == before

    (tmp_path / "logs" / DAY / "log.parquet").unlink()
    gone = run(file, instance, DAY)
    assert not gone.success
    assert "no files" in failures(gone)[0]
    assert rows(history, scores) == before


@pytest.mark.slow
def test_a_check_is_about_the_newest_materialisation_of_its_batch(
    audit: Callable[..., Path], instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    write_log(tmp_path, DAY)
    write_log(tmp_path, NEXT)
    file = audit()
    for first, last in ((DAY, NEXT), (DAY, None)):
        result = run(file, instance, first, last)
        for check in verdicts(result).values():
            wanted = dg.AssetRecordsFilter(check.asset_key, asset_partitions=[str(check.partition)])
            newest = instance.fetch_materializations(wanted, limit=1).records[0]
            assert check.target_materialization_data is not None
            assert check.target_materialization_data.storage_id == newest.storage_id
            assert newest.run_id == result.run_id


@pytest.mark.slow
def test_one_check_alone(
    audit: Callable[..., Path], instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    file = audit()
    write_log(tmp_path, DAY)
    assert run(file, instance, DAY).success
    key = dg.AssetCheckKey(dg.AssetKey("EXP"), "EXP_MinMaxRatio")
    job = definitions(file).resolve_implicit_global_asset_job_def()
    result = job.get_subset(asset_check_selection={key}).execute_in_process(
        instance=instance, partition_key=DAY
    )
    assert list(verdicts(result)) == [("EXP_MinMaxRatio", DAY)]
    assert not metadata(result)


@pytest.mark.slow
def test_one_metric_alone(
    audit: Callable[..., Path], instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    file = audit()
    write_log(tmp_path, DAY)
    assert run(file, instance, DAY).success
    result = run(file, instance, DAY, only=["EXP"])
    assert result.success
    assert {asset for asset, _ in metadata(result)} == {"EXP"}
    held = rows(tmp_path / f"store/batches/{DAY}.duckdb", "SELECT metric FROM fairness_history")
    assert len({metric for (metric,) in held}) == len(TEN)


@pytest.mark.slow
def test_the_steps_one_by_one(
    audit: Callable[..., Path], instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    file = audit()
    write_log(tmp_path, DAY)
    early = run(file, instance, DAY, only=["fairness_history"])
    assert "nothing is stored yet" in failures(early)[0]
    assert not run(file, instance, DAY, only=["EXP"]).success
    for only in (["ranking_log"], COUNTS, [each.name for each in TEN], ["fairness_history"]):
        assert run(file, instance, DAY, only=only).success, only
    assert statuses(file) == {DAY: "done"}
    assert run(file, instance, DAY, only=["dashboard"]).success
    assert (tmp_path / "store/dashboard.duckdb").exists()


# -- failures


def boom(*_: Any) -> dict[str, int]:
    raise ZeroDivisionError("boom")


def tell_sensor(file: Path, instance: dg.DagsterInstance, result: Any) -> None:
    event = next(each for each in reversed(result.all_events) if each.is_failure)
    failed = instance.get_run_by_id(result.run_id)
    assert failed is not None
    with dg.build_run_status_sensor_context(
        sensor_name="record_failures",
        dagster_event=event,
        dagster_instance=instance,
        dagster_run=failed,
        resources={"audit": Audit(settings_file=str(file))},
    ) as context:
        record_failures(context.for_run_failure())


@pytest.mark.slow
def test_a_crash_is_recorded_once_by_the_sensor(
    audit: Callable[..., Path],
    instance: dg.DagsterInstance,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = audit()
    write_log(tmp_path, DAY)
    monkeypatch.setattr(assets.counts, "measure_batch", boom)
    result = run(file, instance, DAY, NEXT)
    assert not result.success
    assert not list((tmp_path / "store/batches").iterdir()), "a run that fails replaces nothing"
    assert statuses(file) == {NEXT: "no_data"}
    tell_sensor(file, instance, result)
    found = manifest(load_settings(file))
    assert {batch: row.status for batch, row in found.items()} == {
        DAY: "failed",
        NEXT: "no_data",
    }
    assert "boom" in str(found[DAY].message)

    monkeypatch.undo()
    assert run(file, instance, DAY).success
    assert statuses(file)[DAY] == "done"


@pytest.mark.slow
def test_the_sensor_keeps_what_a_run_recorded(
    audit: Callable[..., Path], instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    file = audit()
    write_log(tmp_path, DAY)
    write_log(tmp_path, NEXT, broken=True)
    result = run(file, instance, DAY, NEXT)
    tell_sensor(file, instance, result)
    assert statuses(file) == {DAY: "done", NEXT: "refused"}


@pytest.mark.slow
def test_a_batch_that_fails_later_is_tried_again_by_a_re_execution(
    audit: Callable[..., Path], instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    file = audit()
    settings = load_settings(file)
    write_log(tmp_path, DAY)
    write_log(tmp_path, NEXT, broken=True)
    run_of = run(file, instance, DAY, NEXT).dagster_run
    first = run_of.run_id
    again = dg.DagsterRun("audit", run_id="again", root_run_id=first, parent_run_id=first)
    assert set(left_out(settings, again, [DAY, NEXT])) == {NEXT}
    note = next((store_of(settings).root / "staged").glob("*.left-out"))
    note.write_text(note.read_text().replace('"refused"', '"failed"'))
    assert not left_out(settings, again, [DAY, NEXT])
    assert set(left_out(settings, run_of, [DAY, NEXT])) == {NEXT}


def test_long_failures_are_cut() -> None:
    from assets.left_out import LeftOut

    gone = {str(n): LeftOut(str(n), "no_data", "no files", "run") for n in range(50)}
    text = failure(gone, 60).description or ""
    assert "and 30 more" in text
    assert "The others are done" in text


# -- headless


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.slow
def test_headless_audit(
    audit: Callable[..., Path], tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = audit()
    write_log(tmp_path, DAY)
    write_log(tmp_path, "2026-01-03", broken=True)
    assert main(["--config", str(file)]) == 3
    said = capsys.readouterr().out
    assert "no files" in said
    assert "rank_gap" in said
    assert statuses(file) == {
        DAY: "done",
        NEXT: "no_data",
        "2026-01-03": "refused",
        LAST: "no_data",
    }
    assert (home / "dagster.yaml").exists()

    write_log(tmp_path, "2026-01-03")
    assert main(["--config", str(file), "--quiet"]) == 0
    assert statuses(file)["2026-01-03"] == "done"
    script = (
        "import sys; from assets.audit import main; code = main(sys.argv[1:]); "
        "sys.exit(99 if 'dagster' in sys.modules else code)"
    )
    idle = subprocess.run(
        [sys.executable, "-c", script, "--config", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (idle.returncode, idle.stderr) == (0, "")
    assert "Nothing to do" in idle.stdout


def test_only_the_demo_gets_logs_of_its_own(audit: Callable[..., Path], tmp_path: Path) -> None:
    demo = {"items": "items.parquet", "attributes": ["gender"], "thresholds": {}}
    assert wants_demo(load_settings(audit(**demo)))
    assert not wants_demo(load_settings(audit(**demo, columns={"rank": "position"})))
    assert not wants_demo(load_settings(audit(**{**demo, "attributes": ["race"]})))
    write_log(tmp_path, NEXT)
    assert not wants_demo(load_settings(audit(**demo)))


def test_an_open_period_ends_with_its_logs(audit: Callable[..., Path], tmp_path: Path) -> None:
    settings = load_settings(audit(schedule={"start": DAY}))
    assert batches_due(settings) == []
    write_log(tmp_path, "2026-01-03")
    assert batches_due(settings) == [DAY, NEXT, "2026-01-03"]


def test_headless_audit_reports_wrong_settings(
    audit: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", str(audit(attributes=[]))]) == 2
    assert "attributes" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_keeps_finished_batches(
    audit: Callable[..., Path],
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = audit(schedule={"start": DAY, "end": NEXT})
    write_log(tmp_path, DAY)
    write_log(tmp_path, NEXT)
    measure = pipeline.runs.steps.measure_batch

    def interrupted(settings: Any, batch: str, work: str) -> dict[str, int]:
        if batch == NEXT:
            signal.raise_signal(signal.SIGINT)
        return measure(settings, batch, work)

    monkeypatch.setattr(assets.counts, "measure_batch", interrupted)
    assert main(["--config", str(file), "--quiet"]) == 130
    assert "Interrupted" in capsys.readouterr().err
    assert statuses(file) == {DAY: "done"}
    assert not list((tmp_path / "store/staged").glob("*.duckdb"))

    monkeypatch.setattr(assets.counts, "measure_batch", measure)
    assert main(["--config", str(file), "--quiet"]) == 0
    assert statuses(file) == {DAY: "done", NEXT: "done"}


def test_remarks_on_what_was_delivered_are_metadata() -> None:
    found = Ingested(4, 4, 1, 0, 0, {"gender": 0})
    assert "notes" not in numbers(found)
    assert numbers(replace(found, notes=("one", "another")))["notes"] == "one\nanother"
