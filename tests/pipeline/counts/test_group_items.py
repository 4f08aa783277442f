"""Distinct items of each group, against sets in plain Python."""

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from count_tables import count_tables
from logs import DAY, Row, audit, write

from metrics import WHOLE
from pipeline.counts import group_items
from pipeline.counts.group_items import add_group_items
from pipeline.runs.steps import ingest_batch, measure_batch
from pipeline.store.batch_files import opened
from pipeline.store.paths import store_of

SETTINGS: dict[str, Any] = {
    "attributes": ["group", ["group", "other"]],
    "slices": ["market", "device"],
}


def changing(seed: int) -> list[Row]:
    """Lists over few items, some of which change their groups from list to list."""
    draw = random.Random(seed)
    rows = []
    for number in range(80):
        said = {"market": draw.choice("abc"), "device": draw.choice("xy")}
        for rank, item in enumerate(draw.sample(range(30), 6), start=1):
            group = draw.choice("fmn") if item % 5 == 0 else "fmn"[item % 3]
            row = {"list_id": f"l{number}", "item_id": f"i{item}", "rank": rank, **said}
            rows.append({**row, "group": group, "other": draw.choice("pq")})
    return rows


def expected(rows: list[Row]) -> dict[tuple[str, ...], int]:
    """Items by slice, value and group of two attributes, the second one joined."""
    found = defaultdict(set)
    for row in rows:
        cuts = [(WHOLE, WHOLE), *((name, row[name]) for name in SETTINGS["slices"])]
        for cut in cuts:
            found[*cut, row["group"]].add(row["item_id"])
            found[*cut, row["group"], row["other"]].add(row["item_id"])
    return {key: len(items) for key, items in found.items()}


def items_of(stats: list[Row]) -> dict[tuple[str, ...], int]:
    """The same of rows of prefix_stats, a joined group as its values."""
    return {
        (
            row["slice"],
            row["slice_value"],
            *(value for value in row["group_value"] if value.isalpha()),
        ): row["items"]
        for row in stats
    }


@pytest.mark.parametrize("flags", [200_000_000, 70, 1])
def test_items_that_change_groups_count_once_in_each(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, flags: int
) -> None:
    """However many slice values are counted at a time."""
    monkeypatch.setattr(group_items, "_MOST_SEEN", flags)
    rows = changing(1)

    stats = count_tables(tmp_path, rows, **SETTINGS)["prefix_stats"]

    assert items_of(stats) == expected(rows)


def test_a_batch_of_before_is_counted_from_its_stored_rows(tmp_path: Path) -> None:
    """And one that has the counts is left as it is."""
    rows = changing(2)
    log = write(rows, tmp_path / "logs" / DAY / "log.parquet")
    settings = audit(tmp_path, logs=[f"logs/{{batch}}/{log.name}"], **SETTINGS)
    ingest_batch(settings, DAY, "run")
    measure_batch(settings, DAY, "run")

    with opened(settings, store_of(settings).staged(DAY, "run")) as connection:
        connection.execute("ALTER TABLE batch.prefix_stats DROP COLUMN items")
        add_group_items(connection, settings, "batch")
        found = connection.sql("FROM batch.prefix_stats").to_arrow_table().to_pylist()
        connection.execute("UPDATE batch.prefix_stats SET items = 7")
        add_group_items(connection, settings, "batch")
        kept = connection.sql("SELECT DISTINCT items FROM batch.prefix_stats").fetchall()

    assert items_of(found) == expected(rows)
    assert kept == [(7,)]
