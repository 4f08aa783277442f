"""Rows of each bucket by the length of their list, against a counter in plain Python."""

import random
from collections import Counter
from pathlib import Path

import pytest
from logs import DAY, Row, audit, write
from slow_resampling import bucket_of

from pipeline.counts import mix_counts
from pipeline.runs.steps import ingest_batch, measure_batch
from pipeline.store.batch_files import opened
from pipeline.store.paths import store_of


def ragged(seed: int) -> list[Row]:
    """Lists of 1 to 9 rows; queries have several."""
    draw = random.Random(seed)
    rows = []
    for number in range(120):
        said = {"list_id": f"l{number}", "query_id": f"q{number % 40}", "device": draw.choice("ab")}
        for rank, item in enumerate(draw.sample(range(50), draw.randint(1, 9)), start=1):
            groups = {"group": draw.choice("fmn"), "other": draw.choice("pq")}
            rows.append({**said, "item_id": f"i{item}", "rank": rank, **groups})
    return rows


@pytest.mark.parametrize("held", [50_000, 1])
def test_rows_are_counted_by_bucket_slice_groups_and_length(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, held: int
) -> None:
    """However many wait to be added up."""
    monkeypatch.setattr(mix_counts, "_HELD_LISTS", held)
    rows = ragged(3)
    log = write(rows, tmp_path / "logs" / DAY / "log.parquet")
    said = {"attributes": ["group", "other"], "slices": ["device"]}
    settings = audit(tmp_path, logs=[f"logs/{{batch}}/{log.name}"], **said)
    ingest_batch(settings, DAY, "run")
    measure_batch(settings, DAY, "run")
    with opened(settings, store_of(settings).staged(DAY, "run"), read_only=True) as connection:
        found = connection.sql("FROM batch.bucket_lengths").fetchall()

    length = Counter(row["list_id"] for row in rows)
    expected = Counter(
        (
            bucket_of(row["query_id"]),
            row["device"],
            row["group"],
            row["other"],
            length[row["list_id"]],
        )
        for row in rows
    )
    assert found == [(*key, count) for key, count in sorted(expected.items())]
