"""The same rows are the same batch, whatever file they come in and wherever it lies."""

import csv
import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from cases import some
from stores import DAY, LENIENT

from pipeline.runs.in_memory import check_files, score, score_files
from pipeline.runs.steps import ingest_batch, measure_batch, score_batch
from pipeline.settings.audit import Settings
from pipeline.settings.load import settings_from
from pipeline.store.batch_files import info, opened
from pipeline.store.paths import store_of

Table = list[dict[str, Any]]
Write = Callable[[Path, Table, random.Random], None]

GROUPS = (
    *(
        "F",
        "M",
        "A*B",
        "A",
        "B*C",
        "C",
        "\\",
        "A\\",
        "*",
        "NULL",
        "None",
        "nan",
        "true",
        "1",
        "1.0",
    ),
    *("007", "1e5", "-0", "é", "e\u0301", " F", "F ", "f", "Ｆ", "F\u200b", "=1+1", '"', "''", ","),
    *("a\nb", "a,b", 'a"b', "x\r\ny", "日本", "😀", "unknown", "x" * 300, None, ""),
)
IDS = ("q", "7", "007", "3.0", "1e5", "a b", "a,b", 'a"b', "é", "日本", "*", "nan", "NULL", "=1")
TEXTS = ("list_id", "item_id", "query_id", "device", "gender", "region")
SAID: dict[str, Any] = {
    "logs": "logs/{batch}/**/*",
    "attributes": ["gender", ["gender", "region"]],
    "slices": ["device"],
    "metrics": ["EXP", "AWRF", "ERBR"],
    "threads": 2,
    "busy_seconds": 5,
    "evidence": LENIENT,
    "lists_span_files": True,
}
PLACES = (
    *("plain", "gender=pilot", "device=x/region=y", "list_id=7", "rank=1", "a[b]*", "it's", "%41"),
    *("day=2026-01-05", "日本 é", "a b", "item_id=__HIVE_DEFAULT_PARTITION__", "relevance=0"),
)
FOLDERS = ("", "country=de", "rank=3/relevance=1", "part=0", "gender", "=", "score=", "a=b=c")
"""Folders within that of the day; no name of them is that of a text column of the settings."""


def table_of(seed: int) -> Table:
    """A day of rankings whose texts are what a reader might take for something else."""
    chance = random.Random(seed)
    whole = chance.random() < 0.3
    groups = chance.sample(GROUPS, chance.randint(2, 7))
    regions = chance.sample(GROUPS, chance.randint(2, 4))
    devices = chance.sample(GROUPS, chance.randint(1, 3))
    scored = chance.random() < 0.3
    graded = chance.random() < 0.5
    rows = []
    for number in range(chance.randint(3, 14)):
        name = number if whole else f"{chance.choice(IDS)} {number}"
        device = chance.choice(devices)
        query = chance.choice((None, "same", f"{chance.choice(IDS)} {number % 5}"))
        for place in range(chance.randint(1, 9)):
            relevance = chance.choice((None, 0.0, 1.0, chance.random() if graded else 1.0))
            rows.append(
                {
                    "list_id": name,
                    "item_id": place if whole else f"{chance.choice(IDS)}/{place}",
                    "score" if scored else "rank": -0.1 * place if scored else place + 1,
                    "relevance": relevance,
                    "query_id": query,
                    "device": device,
                    "gender": chance.choice(groups),
                    "region": chance.choice(regions),
                    "note": chance.choice(GROUPS),
                }
            )
    chance.shuffle(rows)
    return rows


def as_csv(path: Path, rows: Table, chance: random.Random) -> None:
    packed = chance.random() < 0.2
    path = path.with_suffix(".csv.gz" if packed else ".csv")
    quoting = chance.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    with (
        gzip.open(path, "wt", encoding="utf-8", newline="")
        if packed
        else path.open("w", encoding=chance.choice(("utf-8", "utf-8-sig")), newline="")
    ) as file:
        names = list(rows[0])
        chance.shuffle(names)
        ends = chance.choice(("\n", "\r\n"))
        writer = csv.DictWriter(file, names, quoting=quoting, lineterminator=ends)
        writer.writeheader()
        writer.writerows(rows)


def as_json(path: Path, rows: Table, chance: random.Random) -> None:
    """Without keys of which nothing is said, or with null."""
    left_out = chance.random() < 0.5
    lines = [
        json.dumps(
            {name: value for name, value in row.items() if value is not None or not left_out},
            ensure_ascii=chance.random() < 0.5,
        )
        for row in rows
    ]
    # A key that no row has would be a column that the file lacks.
    lines[0] = json.dumps(rows[0])
    path.with_suffix(".jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def as_parquet(path: Path, rows: Table, chance: random.Random) -> None:
    """Texts as they are, as bytes or from a dictionary; whole numbers as such."""
    table = pyarrow.Table.from_pylist(rows)
    for at, name in enumerate(table.column_names):
        column = table[name]
        if pyarrow.types.is_null(column.type):
            column = column.cast(pyarrow.string())
        if pyarrow.types.is_string(column.type) and (kind := chance.random()) < 0.5:
            column = column.cast(pyarrow.binary()) if kind < 0.25 else column.dictionary_encode()
        table = table.set_column(at, name, column)
    pyarrow.parquet.write_table(
        table, path.with_suffix(".parquet"), row_group_size=chance.choice((3, 1000))
    )


WRITERS: tuple[Write, ...] = (as_csv, as_json, as_parquet)


def delivered(
    root: Path, rows: Table, write: Write, chance: random.Random
) -> tuple[Settings, list[Path]]:
    """Settings of an audit of ``rows`` in one to three files, below folders of any name."""
    day = root / "logs" / DAY / chance.choice(FOLDERS)
    day.mkdir(parents=True)
    count = chance.randint(1, 3)
    for part in range(count):
        mine = rows[part::count]
        if mine:
            write(day / f"part={part}", mine, chance)
    return settings_from(SAID, folder=root), sorted(day.iterdir())


def result_of(settings: Settings) -> tuple[str, int]:
    """The digest of all scores of the day, and its rows."""
    ingested = ingest_batch(settings, DAY, "run")
    measure_batch(settings, DAY, "run")
    score_batch(settings, DAY, "run")
    store = store_of(settings)
    store.staged(DAY, "run").rename(store.batch(DAY))
    with opened(settings, store.batch(DAY), read_only=True) as connection:
        return info(connection)["result_hash"], ingested.rows_accepted


@pytest.mark.parametrize("seed", some(range(200), few=8))
def test_one_result_from_every_format_and_place(tmp_path: Path, seed: int) -> None:
    rows = table_of(seed)
    chance = random.Random(seed)
    results = {}
    for at, write in enumerate(WRITERS):
        place = chance.choice(PLACES)
        settings, paths = delivered(tmp_path / str(at) / place, rows, write, chance)
        results[write.__name__, place] = result_of(settings)
        assert results[write.__name__, place][1] == len(rows)
        assert check_files(settings, paths, None).rows_accepted == len(rows)
    assert len(set(results.values())) == 1, results


@pytest.mark.parametrize("seed", some(range(40), few=3))
def test_one_result_without_a_store_too(tmp_path: Path, seed: int) -> None:
    rows = table_of(seed)
    chance = random.Random(seed)
    found = []
    for at, write in enumerate(WRITERS):
        settings, paths = delivered(tmp_path / str(at) / "gender=x", rows, write, chance)
        scored = score_files(settings, paths, None)
        found.append([{**row, "input_hash": None} for row in (*scored.scores, *scored.groups)])
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 10
    more = {name: SAID[name] for name in ("evidence", "lists_span_files")}
    frame = score(
        pyarrow.Table.from_pylist(rows),
        SAID["attributes"],
        slices=SAID["slices"],
        metrics=SAID["metrics"],
        settings=more,
    )
    assert sorted(frame["value"].dropna()) == pytest.approx(
        sorted(
            row["value"] for row in found[0] if "aggregation" in row and row["value"] is not None
        )
    )
