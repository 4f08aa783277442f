"""How accepted rows are stored: the short way of clean lists gives what the long one does."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from cases import some
from hypothesis import given
from hypothesis import strategies as st
from stores import DAY, Rows, audit, deliver, in_batch

import pipeline.log.ingest
import pipeline.log.screening
from pipeline.errors import DataRefused
from pipeline.log.checked_lists import CheckedLists
from pipeline.log.ingest import Ingested
from pipeline.log.reading import Reading
from pipeline.log.whole_lists import ListsApart, _whole
from pipeline.runs.steps import ingest_batch
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of

LENIENT = {"max_rejected_share": 0.99, "max_stored_rows": 1000}
LETTERS = "abcdefghij"


def messy(seed: int, lists: int = 40) -> Rows:
    """Lists of 1 to 9 rows, about half of them with something wrong or odd."""
    rng = random.Random(seed)
    rows: Rows = []
    for number in range(lists):
        length = rng.randint(1, 9)
        here = [
            {
                "list_id": f"list {number:03}",
                "item_id": item,
                "rank": rank,
                "relevance": rng.choice([0, 0.0, 1, 0.5, None]),
                "click": rng.choice([0, 1]),
                "query_id": f"q{number // 2}",
                "model_version": "m1",
                "device": "app",
                "gender": rng.choice(["F", "M", " F", "", None]),
            }
            for rank, item in enumerate(rng.sample(LETTERS, length), start=1)
        ]
        if rng.random() < 0.5:
            _spoil(here, rng)
        rows += here
    return rows


def _spoil(here: Rows, rng: random.Random) -> None:
    """One of the things that go wrong, in one row of a list."""
    row = rng.choice(here)
    column, value = rng.choice(
        [
            ("rank", 0), ("rank", len(here) + 2), ("rank", 1), ("rank", "1.5"), ("rank", None),
            ("rank", 2_000_000), ("item_id", here[0]["item_id"]), ("item_id", "  "),
            ("item_id", None), ("item_id", " a"), ("relevance", 1.2), ("relevance", "NaN"),
            ("relevance", "x"), ("click", -1), ("list_id", None), ("list_id", " "),
            ("query_id", "other"), ("query_id", ""), ("model_version", ""),
            ("device", "web"), ("device", " app"), ("device", ""),
        ]
    )  # fmt: skip
    row[column] = value


def log_of(settings: Settings) -> list[tuple[Any, ...]]:
    rows = in_batch(settings, "FROM ranking_log ORDER BY list_id, position, item_id")
    return [tuple(row.values()) for row in rows]


def ingested(settings: Settings) -> Ingested:
    found = ingest_batch(settings, DAY, "run")
    store = store_of(settings)
    store.staged(DAY, "run").rename(store.batch(DAY))
    return found


Survey: TypeAlias = Callable[[Reading, CheckedLists], None]


def all_suspect(survey: Survey) -> Survey:
    """A survey that trusts no list."""

    def suspicious(reading: Reading, checked: CheckedLists) -> None:
        survey(reading, checked)
        reading.run("DELETE FROM suspects")
        reading.run("INSERT INTO suspects SELECT DISTINCT key FROM survey")

    return suspicious


@pytest.mark.slow
@pytest.mark.parametrize("seed", some(range(6), few=1))
@pytest.mark.parametrize(
    "said",
    [
        {},
        {"rejects": {**LENIENT, "policy": "drop_row"}},
        {"ranks": {"gaps": "keep"}},
        {"ranks": {"gaps": "compact"}},
        {"missing_relevance": "zero", "ranks": {"start": 0}},
    ],
    ids=["plain", "drop row", "keep gaps", "close gaps", "from zero"],
)
def test_the_short_way_and_the_long_way_store_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, said: dict[str, Any]
) -> None:
    given = {"slices": ["device"], "rejects": LENIENT, **said}
    rows = messy(seed)
    if seed % 2:
        random.Random(seed).shuffle(rows)
    if "start" in said.get("ranks", {}):
        ranks = (row["rank"] for row in rows)
        rows = [
            {**row, "rank": rank - 1 if isinstance(rank, int) else rank}
            for row, rank in zip(rows, ranks, strict=True)
        ]
    found = {}
    for way in ("short", "long"):
        settings = audit(tmp_path / way, **given)
        deliver(tmp_path / way, rows)
        with monkeypatch.context() as patched:
            if way == "long":
                patched.setattr(
                    pipeline.log.ingest, "survey", all_suspect(pipeline.log.screening.survey)
                )
            result = ingested(settings)
        broken = in_batch(settings, "FROM rejected_rows ORDER BY ALL")
        found[way] = result, log_of(settings), broken
    assert found["short"] == found["long"]
    assert 0 < found["short"][0].rows_rejected < found["short"][0].rows_read


def test_ids_are_said_once_and_numbered_without_holes(tmp_path: Path) -> None:
    settings = audit(tmp_path, rejects=LENIENT)
    deliver(tmp_path, messy(3))
    ingested(settings)
    used = in_batch(
        settings,
        "SELECT (SELECT count(DISTINCT list) FROM log_entries) AS lists, "
        "(SELECT count(DISTINCT item) FROM log_entries) AS items, "
        "(SELECT count(DISTINCT cell) FROM log_entries) AS cells",
    )[0]
    for kind, table in (("list", "lists"), ("item", "items"), ("cell", "cells")):
        numbers = [row[kind] for row in in_batch(settings, f"SELECT {kind} FROM log_{table}")]
        assert numbers == list(range(used[table])), kind
    rows = in_batch(settings, "SELECT list, count(*) AS rows FROM log_entries GROUP BY list")
    said = in_batch(settings, "SELECT list, list_rows AS rows FROM log_lists")
    assert sorted(map(str, rows)) == sorted(map(str, said))


def test_what_is_not_logged_is_not_stored_but_can_be_read(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    deliver(tmp_path, [{"list_id": "l", "item_id": "i", "rank": 1, "gender": "F"}])
    ingested(settings)
    (row,) = in_batch(settings, "FROM log_entries")
    assert set(row) == {"list", "item", "rank", "cell"}
    (row,) = in_batch(settings, "FROM ranking_log")
    assert row["position"] == 1
    assert row["relevance"] is None
    assert row["query_id"] == "l"


def test_the_log_reads_the_same_when_its_file_is_opened_alone(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    deliver(tmp_path, messy(1)[:3])
    ingested(settings)
    with duckdb.connect(str(store_of(settings).batch(DAY)), read_only=True) as connection:
        found = connection.execute("FROM ranking_log ORDER BY list_id, position, item_id")
        assert found.fetchall() == log_of(settings)


def parquet(path: Path, **columns: pyarrow.Array) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def test_ids_that_are_numbers_in_one_file_and_text_in_another(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    folder = tmp_path / "logs" / DAY
    for name, kind in (("a", pyarrow.int64()), ("b", pyarrow.string())):
        at = [1, 1] if name == "a" else [2, 2]
        parquet(
            folder / f"{name}.parquet",
            list_id=pyarrow.array(at).cast(kind),
            item_id=pyarrow.array([7, 8]).cast(kind),
            rank=pyarrow.array([1, 2]),
            gender=pyarrow.array(["F", "M"]),
        )
    ingested(settings)
    assert [row[:3] for row in log_of(settings)] == [
        ("1", "7", 1), ("1", "8", 2), ("2", "7", 1), ("2", "8", 2)
    ]  # fmt: skip


def test_a_list_may_go_on_in_the_next_file(tmp_path: Path) -> None:
    rows = [
        {"list_id": f"l{at // 4}", "item_id": f"i{at}", "rank": at % 4 + 1, "gender": "F"}
        for at in range(8)
    ]
    stored = {}
    for name, cut in (("one", 8), ("two", 2)):
        settings = audit(tmp_path / name)
        deliver(tmp_path / name, rows[:cut], name="a.csv")
        if rows[cut:]:
            deliver(tmp_path / name, rows[cut:], name="b.csv")
        ingested(settings)
        stored[name] = log_of(settings)
    assert stored["one"] == stored["two"]
    assert len(stored["one"]) == 8


def test_rows_of_many_files_are_found_where_they_stand(tmp_path: Path) -> None:
    settings = audit(tmp_path, rejects=LENIENT)
    folder = tmp_path / "logs" / DAY
    for at in range(6):
        # Two shapes of files take turns, and one has columns that its reader would add.
        extra = {"file_index": [7, 7], "file_row_number": [9, 9]} if at == 3 else {}
        parquet(
            folder / f"{at}.parquet",
            list_id=pyarrow.array([f"l{at}"] * 2),
            item_id=pyarrow.array(["a", "b"]),
            rank=pyarrow.array([1, 2], pyarrow.int64() if at % 2 else pyarrow.int32()),
            relevance=pyarrow.array([1.0, 5.0 if at in (2, 3, 4) else 0.0]),
            gender=pyarrow.array(["F", "M"]),
            **{name: pyarrow.array(values) for name, values in extra.items()},
        )
    found = ingested(settings)
    rows = in_batch(settings, "SELECT file, row, list_id FROM rejected_rows ORDER BY file")
    assert [tuple(row.values()) for row in rows] == [
        (f"logs/{DAY}/{at}.parquet", 2, f"l{at}") for at in (2, 3, 4)
    ]
    assert found.lists == 3


@pytest.mark.slow
def test_a_file_that_breaks_off_is_named_among_others(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    folder = tmp_path / "logs" / DAY
    rows = 200_000
    for name in ("good", "torn"):
        numbers = np.random.default_rng(1).permutation(rows)
        parquet(
            folder / f"{name}.parquet",
            list_id=pyarrow.array([name] * rows),
            item_id=pyarrow.array([f"{name}{at}" for at in numbers]),
            rank=pyarrow.array(np.arange(1, rows + 1)),
            gender=pyarrow.array(["F"] * rows),
        )
    torn = folder / "torn.parquet"
    content = bytearray(torn.read_bytes())
    content[len(content) // 4 : len(content) // 2] = bytes(len(content) // 4)
    torn.write_bytes(content)
    with pytest.raises(Exception, match=r"torn\.parquet: cannot be read") as raised:
        ingest_batch(settings, DAY, "run")
    assert isinstance(raised.value.__cause__, DataRefused)


def one_list(path: Path, **changed: pyarrow.Array) -> None:
    """A Parquet file of one good list of four rows, with some columns replaced or added."""
    columns = {
        "list_id": pyarrow.array(["l"] * 4),
        "item_id": pyarrow.array(["a", "b", "c", "d"]),
        "rank": pyarrow.array([1, 2, 3, 4]),
        "gender": pyarrow.array(["F", "M", "F", "M"]),
    }
    parquet(path, **(columns | changed))


@pytest.mark.parametrize(
    ("column", "values", "rule"),
    some(
        [
            ("rank", [1.0, 2.0, 3.0, float("nan")], "rank_not_whole"),
            ("reference_rank", [1.0, float("nan"), 3.0, 4.0], "reference_rank_not_whole"),
            ("relevance", [1.0, float("nan"), 0.0, 0.0], "relevance_range"),
            ("click", [1.0, 0.0, 0.0, float("-inf")], "click_range"),
            ("propensity", [1.0, float("nan"), 0.5, 0.5], "propensity_high"),
            ("propensity", [1.0, float("-inf"), 0.5, 0.5], "propensity_low"),
        ],
        few=3,
    ),
)
@pytest.mark.parametrize("gaps", some(["reject", "keep", "compact"], few=2))
def test_what_is_not_finite_is_found_whatever_statistics_say(
    tmp_path: Path, column: str, values: list[float], rule: str, gaps: str
) -> None:
    settings = audit(tmp_path, rejects={"policy": "drop_row", **LENIENT}, ranks={"gaps": gaps})
    folder = tmp_path / "logs" / DAY
    one_list(folder / "a.parquet", **{column: pyarrow.array(values)})
    fine = {column: pyarrow.array([1.0, 2.0, 3.0, 4.0] if column == "rank" else [1.0] * 4)}
    one_list(folder / "b.parquet", list_id=pyarrow.array(["good"] * 4), **fine)
    ingested(settings)
    assert {row["rule"] for row in in_batch(settings, "FROM rejected_rows")} == {rule}


@pytest.mark.parametrize("blank", ["\u3000", "\u00a0 ", " ", ""])
def test_an_id_of_nothing_but_spaces_is_missing(tmp_path: Path, blank: str) -> None:
    settings = audit(tmp_path, rejects=LENIENT)
    folder = tmp_path / "logs" / DAY
    one_list(folder / "a.parquet", item_id=pyarrow.array(["a", blank, "c", "d"]))
    one_list(folder / "b.parquet", list_id=pyarrow.array(["\u3042 good"] * 4))
    found = ingested(settings)
    assert [rule.rule for rule in found.rules] == ["item_id_missing"]
    assert found.lists == 1


def test_a_number_is_quoted_as_it_stands_in_its_own_file(tmp_path: Path) -> None:
    settings = audit(tmp_path, rejects=LENIENT)
    folder = tmp_path / "logs" / DAY
    one_list(folder / "a.parquet", rank=pyarrow.array([0, 2, 3, 4]))
    other = pyarrow.array(["good"] * 4)
    one_list(folder / "b.parquet", list_id=other, rank=pyarrow.array([1.0, 2.0, 3.0, 4.0]))
    ingested(settings)
    rows = in_batch(settings, "SELECT value FROM rejected_rows WHERE rule = 'rank_low'")
    assert rows == [{"value": "0"}]


def test_text_that_is_no_text_is_refused_by_name(tmp_path: Path) -> None:
    settings = audit(tmp_path)
    broken = pyarrow.array([b"F", b"caf\xe9", b"F", b"M"], pyarrow.binary())
    as_text = pyarrow.StringArray.from_buffers(4, *broken.buffers()[1:])
    one_list(tmp_path / "logs" / DAY / "bad.parquet", gender=as_text)
    with pytest.raises(Exception, match=r"bad\.parquet: cannot be read") as raised:
        ingest_batch(settings, DAY, "run")
    assert isinstance(raised.value.__cause__, DataRefused)


def test_columns_of_a_text_file_may_be_called_anything(tmp_path: Path) -> None:
    settings = audit(tmp_path, attributes=["=row", "=file", "file"])
    names = {"=row": "x", "=file": "y", "file": "z", "text0": "t"}
    rows = [{"list_id": "l", "item_id": f"i{at}", "rank": at, **names} for at in (1, 2)]
    deliver(tmp_path, rows)
    ingested(settings)
    stored = in_batch(settings, 'SELECT "=row", "=file", file FROM ranking_log')
    assert [tuple(row.values()) for row in stored] == [("x", "y", "z")] * 2


@pytest.mark.parametrize("moved", [25, 0], ids=["other lists", "the same rows"])
def test_a_file_that_changes_while_it_is_read_is_not_let_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    settings = audit(tmp_path)
    path = tmp_path / "logs" / DAY / "part.parquet"

    def write(first: int) -> None:
        lists = np.repeat(np.arange(first, first + 50), 4)
        parquet(
            path,
            list_id=pyarrow.array(lists),
            item_id=pyarrow.array(np.tile(np.arange(4), 50)),
            rank=pyarrow.array(np.tile(np.arange(1, 5), 50)),
            gender=pyarrow.array(["F", "M"] * 100),
        )

    def replaced(reading: Reading, checked: CheckedLists) -> None:
        pipeline.log.screening.survey(reading, checked)
        path.unlink()
        write(moved)

    write(0)
    monkeypatch.setattr(pipeline.log.ingest, "survey", replaced)
    with pytest.raises(Exception, match="changed while") as raised:
        ingest_batch(settings, DAY, "run")
    assert "run the batch again" in str(raised.value)
    assert not store_of(settings).batch(DAY).exists()


def test_rows_that_do_not_stand_together_are_sorted(tmp_path: Path) -> None:
    rows = [
        {"list_id": f"l{at:03}", "item_id": f"i{rank}", "rank": rank, "gender": "F"}
        for rank in range(1, 4)
        for at in range(200)
    ]
    settings = audit(tmp_path)
    deliver(tmp_path, rows)
    ingested(settings)
    stored = in_batch(settings, "SELECT list FROM log_entries")
    numbers = [row["list"] for row in stored]
    assert numbers == [number for number in range(200) for _ in range(3)]


# -- whole lists from pieces


def pieces(numbers: list[int], sizes: Iterable[int]) -> Iterator[pyarrow.RecordBatch]:
    start = 0
    for size in sizes:
        here = numbers[start : start + size]
        if here:
            rows = list(range(start, start + len(here)))
            yield pyarrow.RecordBatch.from_pydict({"list": here, "row": rows})
        start += size


@given(
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=30),
    seed=st.integers(0, 1000),
    chunk=st.integers(1, 20),
)
def test_whole_lists_whatever_the_order_of_pieces(
    lengths: list[int], seed: int, chunk: int
) -> None:
    rng = random.Random(seed)
    rows = [number for number, length in enumerate(lengths) for _ in range(length)]
    cuts = sorted(rng.sample(range(len(rows) + 1), min(3, len(rows))))
    blocks = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    rng.shuffle(blocks)
    numbers = [number for block in blocks for number in block]
    reader = pieces(numbers, [rng.randint(1, 9) for _ in numbers])
    seen: list[int] = []
    for table in _whole(reader, np.array(lengths), chunk):
        here = table["list"].to_pylist()
        assert Counter(here) == {number: lengths[number] for number in set(here)}
        # Rows of a list stand together, in the order in which they were stored.
        assert len([a for a, b in pairwise(here) if a != b]) == len(set(here)) - 1
        frame = pd.DataFrame(table.to_pydict())
        assert (frame.groupby("list")["row"].diff().dropna() > 0).all()
        seen += table["row"].to_pylist()
    assert sorted(seen) == list(range(len(rows)))


def test_lists_that_lie_too_far_apart_are_no_whole_lists() -> None:
    numbers = list(range(1000)) * 2
    with pytest.raises(ListsApart):
        list(_whole(pieces(numbers, [10] * 200), np.full(1000, 2), 10))
    with pytest.raises(ListsApart):
        list(_whole(pieces([0, 1], [2]), np.array([1, 2]), 10))
