"""Rows read list by list: whatever way they come and wherever they are cut, the same is let in."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandera.errors
import pandera.pandas as pa
import pyarrow
import pyarrow.parquet
import pytest
from cases import some
from stores import DAY, audit, in_batch

from pipeline.log import held_rows
from pipeline.log.ingest import Ingested
from pipeline.runs.steps import Attempted, ingest_batch
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from schemas.columns import Column
from schemas.extremes import interval_of
from schemas.rules import BINARY, LOGGED, list_rules, ranking_log

LENIENT = {"max_rejected_share": 1.0, "max_stored_rows": 1000}
SAID = [
    {},
    {"rejects": {**LENIENT, "policy": "drop_row"}},
    {"ranks": {"gaps": "keep"}},
    {"ranks": {"gaps": "compact"}},
    {"missing_relevance": "zero", "ranks": {"start": 0}},
]
NAMES = ["plain", "drop row", "keep gaps", "close gaps", "from zero"]
NASTY = [float("nan"), float("inf"), -1.0, -0.0, 1.0000001, 1e300, 0.5, None]


def delivery(seed: int, first: int, lists: int = 60, *, tame: bool = False) -> pyarrow.Table:
    """Lists of 1 to 40 rows, about a third of them odd; ids of several lengths, nulls, NaN.

    ``tame``: nothing that JSON cannot say.
    """
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for number in range(lists):
        length = rng.choice([1, 2, 3, 7, 7, 7, 40])
        name = f"list {number}" if rng.random() < 0.9 else f"a list with a long name, {number}"
        items = rng.sample(range(60), length)
        here = [
            {
                "list_id": name,
                "item_id": f"item {item}" if item % 7 else "i" * (item + 1),
                "rank": float(rank),
                "relevance": rng.choice([0.0, 1.0, None] if number % 3 else [0.0, 0.25, 1.0]),
                "click": float(rng.random() < 0.2),
                "query_id": f"q{number // 2}",
                "device": rng.choice(["app", "web", "", None]) if number % 9 == 0 else "app",
                "gender": rng.choice(["F", "M", " F", "", None, "diverse \u6771"]),
                "city": rng.choice("XYZ"),
            }
            for rank, item in enumerate(items, start=first)
        ]
        if rng.random() < 0.3:
            row = rng.choice(here)
            column = rng.choice(["rank", "relevance", "click", "item_id", "list_id", "query_id"])
            numbers = [*NASTY, 2.0, float(first), length + 2.0]
            texts = [None, " ", "", "a\tb", "item 1", "item 1\0", "list 1", "\u00a0"]
            is_number = column in ("rank", "relevance", "click")
            value = rng.choice(numbers if is_number else texts)
            row[column] = 0.75 if tame and is_number and value not in (2.0, first) else value
        rng.shuffle(here)
        rows += here
    kinds = dict.fromkeys(("rank", "relevance", "click"), pyarrow.float64())
    names = list(rows[0])
    schema = pyarrow.schema([(name, kinds.get(name, pyarrow.string())) for name in names])
    return pyarrow.Table.from_pylist(rows, schema)


def settings_of(folder: Path, said: dict[str, Any]) -> Settings:
    attributes = ["gender", "city", ["gender", "city"]]
    given = {"slices": ["device"], "attributes": attributes, "rejects": LENIENT, **said}
    return audit(folder, **given)


def first_rank(said: dict[str, Any]) -> int:
    return int(said.get("ranks", {}).get("start", 1))


def deliver(folder: Path, table: pyarrow.Table, suffix: str, files: int = 1) -> None:
    target = folder / "logs" / DAY
    target.mkdir(parents=True)
    size = -(-len(table) // files)
    for at in range(files):
        part = table.slice(at * size, size)
        if suffix == "parquet":
            pyarrow.parquet.write_table(part, target / f"{at}.parquet", row_group_size=97)
        elif suffix == "plain.parquet":
            pyarrow.parquet.write_table(part, target / f"{at}.parquet", use_dictionary=False)
        else:
            frame = part.to_pandas(types_mapper=pd.ArrowDtype)
            frame.to_json(target / f"{at}.jsonl", orient="records", lines=True)


def let_in(settings: Settings) -> tuple[Ingested, list[Any], list[Any]]:
    found = ingest_batch(settings, DAY, "run")
    store = store_of(settings)
    store.staged(DAY, "run").rename(store.batch(DAY))
    log = in_batch(settings, "FROM ranking_log ORDER BY ALL")
    broken = in_batch(
        settings,
        'SELECT list_id, item_id, rule, "column" FROM rejected_rows ORDER BY ALL',
    )
    return found, log, broken


def cut(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Read so many rows at a time, and hold none of them in memory."""
    for module in ("parquet_batches", "delivered_batches", "placed_batches"):
        monkeypatch.setattr(f"pipeline.log.{module}.BATCH_ROWS", rows)
    monkeypatch.setattr("pipeline.log.checked_lists._BORDER_ROWS", 3 * rows)
    monkeypatch.setattr("pipeline.log.numbering._FIRST_BITS", 4)
    monkeypatch.setattr(held_rows, "MOST_BYTES", 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(8), few=2))
@pytest.mark.parametrize("said", SAID, ids=NAMES)
def test_the_way_and_the_cut_do_not_matter(tmp_path: Path, seed: int, said: dict[str, Any]) -> None:
    table = delivery(seed, first_rank(said))
    tame = delivery(seed, first_rank(said), tame=True)
    order = np.random.default_rng(seed).permutation(len(table))
    found = {}
    for name, rows, suffix, files, here in (
        ("whole", None, "parquet", 1, table),
        ("by one", 1, "parquet", 1, table),
        ("by seven", 7, "plain.parquet", 3, table),
        ("tame", None, "parquet", 1, tame),
        ("lines", None, "jsonl", 1, tame),
        ("apart", 50, "parquet", 1, table.take(pyarrow.array(order))),
    ):
        settings = settings_of(tmp_path / name, {**said, "lists_span_files": True})
        deliver(settings.folder, here, suffix, files)
        with pytest.MonkeyPatch.context() as patched:
            if rows:
                cut(patched, rows)
            found[name] = let_in(settings)
    for name, (own, rows_of, offenders) in found.items():
        told, log, broken = found["tame" if name in ("tame", "lines") else "whole"]
        assert 0 < told.rows_rejected < told.rows_read
        assert rows_of == log, name
        counts = (own.rows_accepted, own.lists, own.graded_rows, own.unknown_rows)
        assert counts == (told.rows_accepted, told.lists, told.graded_rows, told.unknown_rows)
        # Of two rows that differ, the one that stands first decides which of them offends.
        assert name == "apart" or offenders == broken, name


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(20, 40), few=3))
@pytest.mark.parametrize("said", SAID, ids=NAMES)
def test_no_row_gets_through_that_the_schemas_refuse(
    tmp_path: Path, seed: int, said: dict[str, Any]
) -> None:
    """Every row that is stored, looked at one by one, by the schemas that extremes stand for."""
    settings = settings_of(tmp_path, said)
    deliver(tmp_path, delivery(seed, first_rank(said)), "parquet")
    told, log, _ = let_in(settings)
    table = ranking_log(settings.slices, settings.attribute_columns)
    frame = pyarrow.Table.from_pylist(log, table.arrow).to_pandas(types_mapper=pd.ArrowDtype)
    table.schema.validate(frame, lazy=True)
    gaps = settings.ranks.gaps != "reject" or settings.rejects.policy == "drop_row"
    rules = list_rules(settings.slices, gaps_allowed=gaps)
    pa.DataFrameSchema(checks=[rule.check for rule in rules]).validate(frame, lazy=True)
    graded = ~frame["relevance"].dropna().isin([0.0, 1.0])
    assert told.graded_rows == int(graded.sum())
    assert not np.signbit(frame["relevance"].dropna().to_numpy(float)).any()


def test_the_row_schemas_can_refuse(tmp_path: Path) -> None:
    """What the test above relies on: one bad row among many good ones is seen."""
    table = ranking_log((), ("gender",))
    row: dict[str, Any] = dict.fromkeys(table.names)
    row |= {"list_id": "l", "item_id": "i", "rank": 1, "position": 1, "query_id": "q"}
    row |= {"gender": "F", "relevance": 1.5}
    frame = pyarrow.Table.from_pylist([row], table.arrow).to_pandas(types_mapper=pd.ArrowDtype)
    with pytest.raises(pandera.errors.SchemaErrors, match="relevance"):
        table.schema.validate(frame, lazy=True)


def test_a_check_that_is_no_interval_is_refused() -> None:
    odd = pa.Check(lambda values: values > 0, name="odd")
    for column in (BINARY, Column("number", "DOUBLE", "a number", checks=(odd,))):
        with pytest.raises(TypeError, match="is no interval"):
            interval_of(column)


def test_intervals_are_what_the_checks_say() -> None:
    """At both ends, just within and just without: as pandera itself decides."""
    for column in LOGGED:
        if column.type == "VARCHAR":
            continue
        interval = interval_of(column)
        schema = pa.DataFrameSchema({column.name: pa.Column(float, checks=list(column.checks))})
        for end in {interval.low, interval.high}:
            for value in (np.nextafter(end, -np.inf), end, np.nextafter(end, np.inf)):
                try:
                    schema.validate(pd.DataFrame({column.name: [value]}))
                    passes = True
                except pandera.errors.SchemaError:
                    passes = False
                assert interval.holds(value, value) == passes, (column.name, value)
        assert not interval.holds(np.nan, np.nan)


def test_files_that_grow_while_they_are_read_are_not_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(tmp_path, {})
    deliver(tmp_path, delivery(1, 1), "parquet")
    monkeypatch.setattr(
        "pipeline.log.ingest.parquet_batches",
        lambda *_: (batch for batch in delivery_batches(delivery(1, 1))),
    )
    with pytest.raises(Exception, match="changed while they were read") as raised:
        ingest_batch(settings, DAY, "run")
    assert not isinstance(raised.value, Attempted)


def delivery_batches(table: pyarrow.Table) -> Any:
    """All rows but the last, as they would come from the file."""
    names = {"device": "=device", "gender": "=gender", "city": "=city"}
    rows = table.slice(0, len(table) - 1)
    rows = rows.rename_columns([names.get(name, name) for name in table.column_names])
    file = pyarrow.array(np.zeros(len(rows), dtype=np.int32))
    yield from rows.append_column("file", file).combine_chunks().to_batches()
