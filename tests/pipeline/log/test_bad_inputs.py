"""Every kind of bad delivery, on its three ways in: the function, the asset and the command.

A day of good lists is audited first; then something else is delivered in its place.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from bad_inputs import CASES, GOOD, SECRETS, SETTINGS, Case, as_csv
from cases import some
from command import evenrank
from stores import in_history, without

from assets.definitions import definitions
from assets.log_checks import CONTRACT
from pipeline.history.manifest import manifest
from pipeline.runs.batches import run_batch
from pipeline.runs.steps import Attempted, ingest_batch
from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings
from pipeline.store.checkpoints import remove_database
from pipeline.store.paths import store_of

FIRST = date(2026, 1, 1)
DAY = FIRST.isoformat()
REFUSED = [case for case in CASES if case.status != "done"]
EVERY = 9
"""One in so many of the days that Dagster refuses had a good result before."""


def name_of(case: Case) -> str:
    return f"{case.row} {case.name}" if case.row else case.name


def each_of(cases: Sequence[Case], few: int) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", some(cases, few=few), ids=name_of)


def scores(settings: Settings, day: str = DAY) -> list[dict[str, Any]]:
    return without(in_history(settings, "FROM fairness_history WHERE batch = ?", [day]))


def assert_nothing_is_quoted(said: str) -> None:
    for secret in SECRETS:
        assert secret not in said


def start(folder: Path, *, days: int) -> Settings:
    """An audit of so many days, each with a folder of good lists."""
    end = FIRST + timedelta(days=days - 1)
    said = {**SETTINGS, "schedule": {"start": DAY, "end": end.isoformat()}}
    (folder / "audit.yaml").write_text(yaml.safe_dump(said))
    for at in range(days):
        day = folder / "logs" / (FIRST + timedelta(days=at)).isoformat()
        day.mkdir(parents=True)
        (day / "part.csv").write_bytes(as_csv(GOOD))
    return load_settings(folder / "audit.yaml")


def spoil(settings: Settings, case: Case, day: str = DAY) -> Path:
    """Deliver a case in the place of what the day holds."""
    folder = settings.folder / "logs" / day
    shutil.rmtree(folder)
    folder.mkdir()
    case.make(folder)
    return folder


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Settings, list[dict[str, Any]]]:
    """An audit whose only day is done, and the scores of the day."""
    settings = start(tmp_path_factory.mktemp("audit"), days=1)
    assert run_batch(settings, DAY).status == "done"
    return settings, scores(settings)


@each_of(CASES, few=25)
def test_function(good: tuple[Settings, list[dict[str, Any]]], case: Case) -> None:
    settings, before = good
    spoil(settings, case)
    staged = store_of(settings).staged(DAY, "function")
    if case.status == "done":
        found = ingest_batch(settings, DAY, "function")
        remove_database(staged)
        assert {rule.rule for rule in found.rules} == case.rules
        assert found.rows_accepted == len(GOOD) or not case.same
        assert_nothing_is_quoted(repr(found))
    else:
        with pytest.raises(Attempted) as caught:
            ingest_batch(settings, DAY, "function")
        failed = caught.value
        assert (failed.row["status"], failed.cause.exit_code) == (case.status, case.exit_code)
        for words in case.said:
            assert words in str(failed.cause)
        assert_nothing_is_quoted(str(failed.cause))
        assert not staged.exists()
    assert scores(settings) == before


@each_of(CASES, few=20)
def test_command_that_checks(good: tuple[Settings, list[dict[str, Any]]], case: Case) -> None:
    """The command is given files: which files of a day are read is not its business."""
    settings, _ = good
    folder = spoil(settings, case)
    files = sorted(path for path in folder.iterdir() if path.suffix != ".sha256")
    result = evenrank("check", *(files or [folder]), "--config", settings.folder / "audit.yaml")
    if not files or not all(path.is_file() and path.name.isascii() for path in files):
        assert result.exit_code == 2
    elif case.of_a_day:
        assert result.exit_code in (0, 3)
    else:
        assert result.exit_code == (3 if case.rules else case.exit_code)
        for words in case.said:
            assert words in result.output
    assert_nothing_is_quoted(result.output)


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
@each_of(REFUSED[::3], few=3)
def test_command_that_runs(good: tuple[Settings, list[dict[str, Any]]], case: Case) -> None:
    settings, before = good
    spoil(settings, case)
    config = settings.folder / "audit.yaml"
    result = evenrank("run", "--batch", DAY, "--config", config, "--no-notify", "--json")
    assert result.exit_code == case.exit_code
    for words in case.said:
        assert words in result.stderr
    assert_nothing_is_quoted(result.output)
    assert "The batch keeps its last good result, revision 1." in result.stderr
    assert scores(settings) == before
    row = manifest(settings)[DAY]
    assert row.revision == 1
    # A batch that has scores and merely lost its rows keeps what is said of it.
    assert row.status == "refused" or case.status == "no_data"
    assert_nothing_is_quoted(str(row.message))


# -- all of them as one run of Dagster


@dataclass(frozen=True)
class Ran:
    """What became of one run over a day per case, and what some of the days held before."""

    settings: Settings
    result: dg.ExecuteInProcessResult
    days: dict[str, Case]
    before: dict[str, list[dict[str, Any]]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    cases = [*REFUSED, *[case for case in CASES if case.rules][:2]]
    settings = start(tmp_path_factory.mktemp("dagster"), days=len(cases))
    days = {(FIRST + timedelta(days=at)).isoformat(): case for at, case in enumerate(cases)}
    before = {}
    for day in list(days)[::EVERY]:
        assert run_batch(settings, day).status == "done"
        before[day] = scores(settings, day)
    for day, case in days.items():
        spoil(settings, case, day)
    job = definitions(settings.folder / "audit.yaml").resolve_job_def("audit")
    tags = {
        "dagster/asset_partition_range_start": DAY,
        "dagster/asset_partition_range_end": list(days)[-1],
    }
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(
            instance=instance,
            tags=tags,
            raise_on_error=False,
            run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        )
        yield Ran(settings, result, days, before)


@pytest.mark.slow
def test_assets(ran: Ran) -> None:
    known = manifest(ran.settings)
    assert {day: known[day].status for day in ran.days} == {
        day: case.status for day, case in ran.days.items()
    }
    assert len(ran.before) > 5
    for day, was in ran.before.items():
        assert scores(ran.settings, day) == was


@pytest.mark.slow
def test_checks_of_assets(ran: Ran) -> None:
    found = {
        str(each.partition): each
        for each in ran.result.get_asset_check_evaluations()
        if each.check_name == CONTRACT
    }
    assert set(found) == set(ran.days)
    for day, case in ran.days.items():
        assert found[day].passed == (case.status == "done")
        for words in case.said:
            assert words in str(found[day].description)


@pytest.mark.slow
def test_nothing_that_dagster_keeps_quotes_a_row(ran: Ran) -> None:
    events = [repr(event) for event in ran.result.all_events]
    assert any("is there a header" in event for event in events)
    assert_nothing_is_quoted("".join(events))
