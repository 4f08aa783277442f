"""People are the items: a number about few of them is not told, however many lists show them."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
from damaged import of_before, vouched_for
from stores import Rows, audit, deliver, in_history, lists, ranking, read

from pipeline.history.opening import open_history
from pipeline.privacy.suppression import Shown
from pipeline.publish.copy import publish
from pipeline.runs.batches import run_batch
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of

DAY, NEXT = "2026-01-05", "2026-01-06"
K = 5


def one_person(rows: Rows, gender: str, device: str) -> Rows:
    """The same log, in which all of a group on a device are one person."""
    return [
        row | {"item_id": "Ada"} if (row["gender"], row["device"]) == (gender, device) else row
        for row in rows
    ]


def often(count: int = 100) -> Rows:
    """Phones: one woman in each of many lists; desks: many women, tablets more of them."""
    rows = lists(
        *(ranking(f"p{n}", "FMM", device="phone") for n in range(count)),
        *(ranking(f"d{n}", "FMM", device="desk") for n in range(20)),
        *(ranking(f"t{n}", "FMM", device="tablet") for n in range(30)),
    )
    return one_person(rows, "F", "phone")


def shop(folder: Path, rows: Rows, *, k: int = K, batch: str = DAY, **said: Any) -> Settings:
    """A batch of some rows, run and published."""
    deliver(folder, rows, batch=batch)
    given = {"metrics": ["EXP", "nDCG"], "slices": ["device"], "privacy": {"min_cell": k}}
    settings = audit(folder, **{**given, **said})
    assert run_batch(settings, batch).status == "done"
    publish(settings)
    return settings


def cells(settings: Settings) -> set[tuple[str, str]]:
    """Slice values and groups of which numbers are published."""
    rows = read(
        store_of(settings).dashboard, "SELECT DISTINCT slice_value, group_value FROM v_groups"
    )
    return {(row["slice_value"], row["group_value"]) for row in rows}


def test_one_person_in_a_hundred_lists_is_not_published(tmp_path: Path) -> None:
    settings = shop(tmp_path, often())
    stored = in_history(
        settings,
        "SELECT queries, items FROM prefix_stats WHERE slice_value = 'phone' AND group_value = 'F'",
    )
    assert stored == [{"queries": 100, "items": 1}]
    # Desks are the fewest that hide her.
    assert cells(settings) == {(part, group) for part in ("all", "tablet") for group in "FM"}


def test_a_slice_of_few_people_is_left_out_with_one_that_hides_it(tmp_path: Path) -> None:
    rows = [
        row | {"item_id": f"i{row['rank']}"} if row["device"] == "phone" else row for row in often()
    ]
    settings = shop(tmp_path, rows)
    found = read(store_of(settings).dashboard, "SELECT DISTINCT slice_value FROM v_history")
    assert {row["slice_value"] for row in found} == {"all", "tablet"}


def test_a_batch_of_few_people_is_left_out(tmp_path: Path) -> None:
    settings = shop(
        tmp_path, lists(*(ranking(f"p{n}", "FMMF", device="phone") for n in range(40))), k=0
    )
    few = [row | {"item_id": f"i{row['rank']}"} for row in often() if row["device"] == "desk"]
    settings = shop(tmp_path, few, batch=NEXT)
    found = read(store_of(settings).dashboard, "SELECT batch, lists FROM v_batches")
    assert {row["batch"]: row["lists"] for row in found} == {DAY: 40, NEXT: None}
    assert {
        row["batch"] for row in read(store_of(settings).dashboard, "SELECT batch FROM v_history")
    } == {DAY}


def uncounted(settings: Settings) -> None:
    """Make the store one of before items of groups were counted."""
    for path in (store_of(settings).history, store_of(settings).batch(DAY)):
        with duckdb.connect(str(path)) as connection:
            connection.execute("ALTER TABLE prefix_stats DROP COLUMN items")
    vouched_for(store_of(settings), DAY)
    of_before(store_of(settings))


def plenty() -> Rows:
    return [row for row in often() if row["device"] != "phone"]


@pytest.mark.slow
def test_of_a_store_of_before_no_group_is_told_until_items_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = shop(tmp_path, plenty())
    everything = {(part, group) for part in ("all", "desk", "tablet") for group in "FM"}
    assert cells(settings) == everything
    uncounted(settings)
    with open_history(settings, read_only=True) as connection:
        assert Shown(connection, settings).hidden(DAY).torn == {"gender"}
    with caplog.at_level("INFO", "pipeline"):
        publish(settings)
    assert "items" in caplog.text
    assert "--from-counts" in caplog.text
    assert cells(settings) == set()
    # What is about no group was always counted by its items.
    scores = read(store_of(settings).dashboard, "SELECT DISTINCT slice_value FROM v_history")
    assert {row["slice_value"] for row in scores} == {"all", "desk", "tablet"}
    assert run_batch(settings, DAY, from_counts=True, force=True).status == "done"
    caplog.clear()
    publish(settings)
    assert cells(settings) == everything
    assert "items" not in caplog.text


@pytest.mark.slow
def test_items_that_cannot_be_counted_any_more_stay_uncounted(tmp_path: Path) -> None:
    settings = shop(tmp_path, plenty())
    uncounted(settings)
    with duckdb.connect(str(store_of(settings).batch(DAY))) as connection:
        connection.execute("DELETE FROM log_entries")
    vouched_for(store_of(settings), DAY)
    assert run_batch(settings, DAY, from_counts=True, force=True).status == "done"
    publish(settings)
    assert cells(settings) == set()
