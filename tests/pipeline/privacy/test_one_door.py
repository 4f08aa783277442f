"""Whatever leaves the store or reads files tells nothing about few, and quotes nothing of a row."""

import json
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest
from command import evenrank
from dagster._serdes import serialize_value
from secret_few import DAYS, K, log, named, write
from stores import audit, deliver, lists, ranking, without, write_csv

from assets.definitions import definitions
from assets.log_checks import log_results
from pipeline.log.ingest import Ingested
from pipeline.runs.batches import run_batch
from pipeline.settings.load import load_settings
from pipeline.store.paths import store_of

DAY, NEXT = DAYS


def materialized(file: Path) -> list[str]:
    """Everything that Dagster keeps of a run over all days, event by event."""
    with dg.DagsterInstance.ephemeral() as instance:
        result = (
            definitions(file)
            .resolve_job_def("audit")
            .execute_in_process(
                instance=instance,
                tags={
                    "dagster/asset_partition_range_start": DAY,
                    "dagster/asset_partition_range_end": NEXT,
                },
                raise_on_error=False,
                run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
            )
        )
        assert result.success
        return [serialize_value(entry) for entry in instance.all_logs(result.run_id)]


@pytest.mark.slow
def test_dagster_keeps_nothing_about_few(tmp_path: Path) -> None:
    events = materialized(write(tmp_path / "few"))
    assert [event for event in events if named(event)] == []
    # Of the block that hides the one person on phones no number is told either.
    said = "\n".join(events)
    assert "suppressed" in said
    assert "privacy.min_cell" in said
    # It is not that nothing is told.
    plain = "\n".join(materialized(write(tmp_path / "plain", privacy={"show_values": True})))
    assert named(plain) == ["zebra", "kiosk", "4917012345678"]


@pytest.fixture(name="file", scope="module")
def _file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("few")
    return write(folder, notify={"command": ["tee", "-a", str(folder / "notices")]})


@pytest.mark.slow
def test_runs_say_nothing_about_few(file: Path) -> None:
    summary = file.parent / "summary.json"
    words = ("run", "--batch", DAY, "--batch", NEXT, "--config", file, "--summary", summary)
    for form in ((), ("--json",), ("--log",)):
        ended = evenrank(*words, "--force", *form, "--fail-on", "breach")
        assert ended.exit_code == 5
        assert named(ended.output) == []
        assert named(summary.read_text("utf-8")) == []
    document = json.loads(summary.read_text("utf-8"))
    assert {each["result_hash"] for each in document["batches"]} == {None}
    one = evenrank("run", "--batch", NEXT, "--config", file, "--force", "--json")
    said = json.loads(one.stdout.splitlines()[-1])
    assert (said["result_hash"], said["scores"], said["lists"]) == (None, None, 95)
    assert named(one.output) == []
    settings = load_settings(file)
    with duckdb.connect(str(store_of(settings).history)) as connection:
        stored = connection.sql("FROM fairness_history WHERE status = 'breach'").fetchall()
        assert any("zebra" in str(row) or "phone" in str(row) for row in stored)
    for command in ("alerts", "history"):
        shown = evenrank(command, *(["--all"] if command == "alerts" else []), "--config", file)
        assert shown.exit_code == 0
        assert named(shown.output) == []
    notices = file.parent / "notices"
    assert not notices.exists() or named(notices.read_text("utf-8")) == []


@pytest.mark.slow
def test_a_breach_that_is_not_told_fails_a_run_and_a_check(tmp_path: Path) -> None:
    """Of gender nothing breaches but on phones, where the women are one person."""
    rows = lists(
        *(ranking(f"p{n}", "MMF", device="phone", region="x") for n in range(20)),
        *(ranking(f"d{n}", "FMF"[n % 2 :][:2], device="desk", region="x") for n in range(20)),
        *(ranking(f"t{n}", "FMF"[n % 2 :][:2], device="tablet", region="x") for n in range(30)),
    )
    rows = [
        row | {"item_id": "Ada"} if (row["gender"], row["device"]) == ("F", "phone") else row
        for row in rows
    ]
    limit = {"min": 0.9, "slices": ["device"], "attributes": ["gender"]}
    file = write(tmp_path, thresholds={"EXP.MinMaxRatio": limit}, slices=["device"])
    for day in DAYS:
        deliver(tmp_path, rows, batch=day)
    words = ("run", "--batch", DAY, "--config", file, "--force", "--fail-on", "breach")
    ended = evenrank(*words)
    assert ended.exit_code == 5
    assert "a breach about too few to be told" in ended.output
    assert named(ended.output) == []
    assert "Beyond" not in ended.output
    said = json.loads(evenrank(*words, "--json").stdout.splitlines()[-1])
    assert said["breaches"] == 0
    (check,) = {
        event
        for event in materialized(file)
        if '"EXP_MinMaxRatio"' in event and "did not pass" in event and DAY in event
    } or {""}
    assert "judged and not told" in check


@pytest.mark.slow
def test_of_a_batch_of_too_few_no_number_leaves(tmp_path: Path) -> None:
    file = write(tmp_path)
    deliver(tmp_path, [row for row in log() if row["device"] == "kiosk"], batch=NEXT)
    for form in ((), ("--json",), ("--log",)):
        ended = evenrank("run", "--batch", NEXT, "--config", file, "--force", *form)
        assert ended.exit_code == 0
        assert "2 lists" not in ended.output
        assert "lists=" not in ended.output
        if form == ("--json",):
            said: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
            assert {said[name] for name in ("lists", "rows_read", "scores", "result_hash")} == {
                None
            }
    deliver(tmp_path, ranking("q", "FM", device="desk", region="x"), batch=DAY)
    events = "\n".join(materialized(file))
    assert "rows_read" not in events


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_score_tells_nothing_about_few(file: Path, form: tuple[str, ...]) -> None:
    logs = file.parent / "logs" / DAY / "log.csv"
    logs = logs if logs.exists() else next(logs.parent.iterdir())
    ended = evenrank("score", logs, "--config", file, *form)
    assert ended.exit_code == 0
    assert named(ended.output) == []
    assert "suppressed" in ended.output
    if form:
        document = json.loads(ended.output)
        here = [each for each in document["scores"] if each["attribute"] == "gender"]
        told = {each["slice_value"] for each in here if each["groups"]}
        assert told == {"all", "tablet"}
        assert {each["value"] for each in here if each["slice_value"] == "phone"} == {None}


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_score_and_check_of_a_file_of_few(tmp_path: Path, form: tuple[str, ...]) -> None:
    file = write(tmp_path)
    rows = ranking("q1", "FM", device="desk", region="zebra")
    path = deliver(tmp_path, rows, batch=DAY)
    logs = path if isinstance(path, Path) else next((tmp_path / "logs" / DAY).iterdir())
    for command in ("score", "check"):
        ended = evenrank(command, logs, "--config", file, *form)
        assert ended.exit_code == 0
        assert named(ended.output) == []
        if form:
            document = json.loads(ended.output)
            assert {document[name] for name in ("lists", "rows", "rejected")} == {None}
        else:
            assert "privacy.min_cell" in ended.output
            assert "2 rows" not in ended.output


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_explain_tells_nothing_about_few(file: Path, form: tuple[str, ...]) -> None:
    evenrank("run", "--batch", DAY, "--batch", NEXT, "--config", file)
    words = ("explain", "--batch", NEXT, "--config", file, "--score", "EXP.MinMaxRatio")
    ended = evenrank(*words, "--attribute", "gender", *form)
    assert ended.exit_code == 0, ended.output
    assert named(ended.output) == []
    assert "privacy.min_cell" in ended.output
    if form:
        document = json.loads(ended.output)
        parts = document["by"]["device"]["parts"]
        assert {part["cell"] for part in parts} == {"tablet", "left out"}
        for side in ("lists_before", "lists_after"):
            assert min(part[side] for part in parts) >= K
        assert "query" in document["not_split_by"]
    # Nothing is told of an attribute that has a group of few in the batch.
    refused = evenrank(*words, "--attribute", "region", *form)
    assert refused.exit_code == 4
    assert named(refused.output) == []
    assert "privacy.min_cell" in refused.output


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_compare_tells_no_single_query(file: Path, form: tuple[str, ...], tmp_path: Path) -> None:
    evenrank("run", "--batch", DAY, "--batch", NEXT, "--config", file)
    ended = evenrank("compare", DAY, NEXT, "--config", file, *form)
    assert ended.exit_code == 0, ended.output
    assert named(ended.output) == []
    assert "privacy.min_cell" in ended.output
    assert "p1" not in ended.output
    if form:
        document = json.loads(ended.output)
        assert document["queries"] == []
        # One list is only in the second: neither that nor what it is a difference of is told.
        assert document["matched"] is None
    table = tmp_path / "queries.csv"
    refused = evenrank("compare", DAY, NEXT, "--config", file, "--csv", table)
    assert refused.exit_code == 2
    assert not table.exists()


def test_of_a_batch_of_few_no_number_is_told_of_the_join(tmp_path: Path) -> None:
    settings = audit(tmp_path, items="items.csv", privacy={"min_cell": 10})
    found = Ingested(7, 7, 3, 0, 0, {}, rows_joined=2, few=True)
    for each in log_results(settings, {DAY: found}, {}, {}):
        assert not any(sign.isdigit() for sign in f"{each.description} {each.metadata}")
    deliver(tmp_path, [without([row], "gender")[0] for row in ranking("a", "FMFM")], batch=DAY)
    write_csv(tmp_path / "items.csv", [{"item_id": "other", "gender": "F"}])
    notes = run_batch(settings, DAY).notes
    assert [note for note in notes if "some rows name an item" in note]
