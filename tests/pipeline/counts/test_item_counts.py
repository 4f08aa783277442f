"""Exposure and relevance of items, against sums of whole numbers in plain Python."""

import math
import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from metrics import UNIT, WHOLE
from metrics.weights import exposure_at
from pipeline.counts.dimensions import Dimensions
from pipeline.counts.item_counts import count_items
from pipeline.counts.sql import Counting
from pipeline.log.row_chunks import RowChunk
from pipeline.settings.load import settings_from
from pipeline.store.tables import create
from schemas.counts import BUCKET_SUMS, ITEM_GAPS, ITEM_STATS
from schemas.stored_log import LOG_ITEMS

SLICES = ("device", "market")
DEPTH = 40
EXPOSURES = [0, *(int(x) for x in np.rint(exposure_at(np.arange(1, DEPTH + 1)) * UNIT))]
SUMS = ("exposure", "relevance", "exposure_share", "relevance_share")


@dataclass(frozen=True)
class List:
    """One list: rows of item, rank and relevance (None where it is not known)."""

    bucket: int
    slices: dict[str, str]
    rows: list[tuple[str, int, float | None]]


def as_double(number: int) -> float:
    """A 128-bit number as DuckDB turns it into a double: half by half."""
    return float(number % 2**64) + float(number >> 64) * 2.0**64


def ragged(seed: int, count: int = 60, slices: tuple[str, ...] = SLICES) -> list[List]:
    """Lists of 1 to 12 rows over few items, with gaps in ranks; some lists know no relevance."""
    draw = random.Random(seed)
    grades = (None, 0.0, 0.0, 1.0, 1 / 3, 0.7, 2.0**-61, 5e-324)
    found = []
    for _ in range(count):
        size = draw.randint(1, 12)
        ranks = sorted(draw.sample(range(1, DEPTH + 1), size))
        known = draw.choice([(None,), (0.0,), grades, grades, grades])
        items = draw.sample([f"i{n}" for n in range(15)], size)
        rows = [(item, rank, draw.choice(known)) for item, rank in zip(items, ranks, strict=True)]
        said = {name: draw.choice("abc"[: len(name) - 4]) for name in slices}
        found.append(List(draw.randrange(5), said, rows))
    return found


def expected(lists: list[List]) -> tuple[Any, Any, Any]:
    """Rows of item_stats, of item_gaps and of bucket_sums, as dictionaries by their key."""
    items: dict[Any, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    shared: dict[Any, int] = defaultdict(int)
    rows = []
    for each in lists:
        exposure = sum(EXPOSURES[rank] for _, rank, _ in each.rows)
        scaled = [round((known or 0.0) * UNIT) for *_, known in each.rows]
        relevance = sum(scaled)
        cuts = [(WHOLE, WHOLE), *each.slices.items()]
        for cut in cuts:
            shared[cut] += relevance > 0
        for (item, rank, _), own in zip(each.rows, scaled, strict=True):
            shares = (0, 0)
            if relevance:
                shares = (
                    round(float(EXPOSURES[rank]) / as_double(exposure) * UNIT),
                    round(float(own) / as_double(relevance) * UNIT),
                )
            numbers = dict(zip(SUMS, (EXPOSURES[rank], own, *shares), strict=True))
            for cut in cuts:
                rows.append((cut, each.bucket, item, numbers))
                held = items[(*cut, item)]
                held["rows"] += 1
                for name, number in numbers.items():
                    held[name + "_sum"] += number

    gaps, places = {}, {}
    for cut, share_lists in shared.items():
        own_items = {key[2]: held for key, held in items.items() if key[:2] == cut}
        order = sorted(own_items, key=lambda item: (own_items[item]["exposure_sum"], item))
        places |= {(*cut, item): place for place, item in enumerate(order, start=1)}
        gaps[cut] = {
            "items": len(order),
            "gap_sum": sum(abs(gap(held)) for held in own_items.values()),
            "share_lists": share_lists,
            "share_gap_sum": sum(abs(gap(held, "_share")) for held in own_items.values()),
            "exposure_sum": sum(held["exposure_sum"] for held in own_items.values()),
            "exposure_rank_sum": sum(
                own_items[item]["exposure_sum"] * places[*cut, item] for item in order
            ),
        }
    sums: dict[Any, int] = defaultdict(int)
    for cut, bucket, item, numbers in rows:
        held = items[(*cut, item)]
        added = {
            "gap": sign(gap(held)) * (numbers["exposure"] - numbers["relevance"]),
            "share_gap": sign(gap(held, "_share"))
            * (numbers["exposure_share"] - numbers["relevance_share"]),
            "exposure": numbers["exposure"],
            "exposure_ranks": numbers["exposure"] * places[*cut, item],
        }
        for name, number in added.items():
            sums[(*cut, name, bucket)] += number
    return items, gaps, {key: number / UNIT for key, number in sums.items()}


def gap(held: dict[str, int], kind: str = "") -> int:
    """Exposure less relevance of an item, or of its shares."""
    return held[f"exposure{kind}_sum"] - held[f"relevance{kind}_sum"]


def sign(number: int) -> int:
    """-1, 0 or 1."""
    return (number > 0) - (number < 0)


def chunk_of(lists: list[List], numbers: dict[str, int], first: int) -> RowChunk:
    """Some lists as counting gets them; ``first`` is the number of the first."""
    lengths = np.array([len(each.rows) for each in lists])
    rows = [row for each in lists for row in each.rows]
    ranks = np.array([rank for _, rank, _ in rows], dtype=np.int32)
    values = np.array([np.nan if value is None else value for *_, value in rows])
    items = np.array([numbers[item] for item, *_ in rows], dtype=np.int32)
    starts = np.cumsum(lengths) - lengths
    ints: dict[str, Any] = {"rank": ranks, "item": items}
    return RowChunk(first + np.arange(len(lists)), starts, lengths, ints, {"relevance": values})


def counted(lists: list[List], *, seed: int = 0, at_a_time: int = 10**9) -> tuple[Any, Any, Any]:
    """What count_items makes of ``lists``; ``seed`` decides how all is numbered and ordered.

    Items of slice values are counted ``at_a_time``, about.
    """
    draw = random.Random(seed)
    slices = tuple(lists[0].slices)
    settings = settings_from({"attributes": ["group"], "slices": list(slices)}, folder=Path())
    lists = draw.sample(lists, len(lists))
    names = sorted({item for each in lists for item, *_ in each.rows})
    numbers = {name: at for at, name in enumerate(draw.sample(names, len(names)))}
    parts = sorted({tuple(each.slices.values()) for each in lists})
    values = [(WHOLE, WHOLE)]
    for at, name in enumerate(slices):
        values += [(name, value) for value in sorted({part[at] for part in parts})]
    codes = [
        [0, *(values.index(pair) for pair in zip(slices, part, strict=True))] for part in parts
    ]
    known = sum(value is not None for each in lists for *_, value in each.rows)
    dimensions = Dimensions(
        rows=sum(len(each.rows) for each in lists),
        lists=len(lists),
        deepest_rank=DEPTH,
        longest=12,
        known={"relevance": known},
        buckets=5,
        bucket=np.array([each.bucket for each in lists]),
        part=np.array([parts.index(tuple(each.slices.values())) for each in lists]),
        query=None,
        values=tuple(values),
        codes=np.array(codes).T,
        cells=1,
        groups={},
    )
    totals = []
    for at, each in enumerate(lists):
        internal = {"=" + name: value for name, value in each.slices.items()}
        exposure = sum(EXPOSURES[rank] for _, rank, _ in each.rows)
        scaled = [round(value * UNIT) for *_, value in each.rows if value is not None]
        relevance = sum(scaled) if scaled else None
        totals.append((at, each.bucket, exposure, relevance, *internal.values()))
    size = draw.randint(1, len(lists))

    def chunks(*_: Any) -> Iterator[RowChunk]:
        for first in range(0, len(lists), size):
            yield chunk_of(lists[first : first + size], numbers, first)

    with duckdb.connect() as connection, pytest.MonkeyPatch.context() as patched:
        connection.execute("ATTACH ':memory:' AS batch")
        create(connection, "batch", LOG_ITEMS, ITEM_STATS, ITEM_GAPS, BUCKET_SUMS)
        connection.executemany(
            "INSERT INTO batch.log_items VALUES (?, ?)", [[n, name] for name, n in numbers.items()]
        )
        keys = "".join(f', "={name}" VARCHAR' for name in slices)
        connection.execute(
            "CREATE TEMP TABLE lists (list INTEGER, bucket INTEGER, "
            f"exposure HUGEINT, relevance HUGEINT{keys})"
        )
        marks = ", ".join("?" for _ in totals[0])
        connection.executemany(f"INSERT INTO lists VALUES ({marks})", totals)
        connection.execute(
            "CREATE TEMP TABLE slice_values (code INTEGER, slice VARCHAR, slice_value VARCHAR)"
        )
        connection.executemany(
            "INSERT INTO slice_values VALUES (?, ?, ?)",
            [[code, *pair] for code, pair in enumerate(values)],
        )
        patched.setattr(Counting, "chunks", chunks)
        patched.setattr("pipeline.counts.item_counts.MOST_CELLS", at_a_time)
        count_items(Counting(connection, settings, "batch"), dimensions)

        def rows_of(table: str, key: int) -> dict[Any, dict[str, Any]]:
            found = connection.execute(f"FROM batch.{table}")
            columns = [column[0] for column in found.description or ()]
            return {
                row[:key]: dict(zip(columns[key:], row[key:], strict=True))
                for row in found.fetchall()
            }

        sums = connection.execute(
            "SELECT slice, slice_value, statistic, unnest(buckets), unnest(sums) "
            "FROM batch.bucket_sums"
        ).fetchall()
        return rows_of("item_stats", 3), rows_of("item_gaps", 2), {row[:4]: row[4] for row in sums}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("slices", [(), SLICES[:1], SLICES])
def test_sums_are_those_of_python(seed: int, slices: tuple[str, ...]) -> None:
    """Every integer; and the double that each bucket's integer becomes, to its last bit or two."""
    lists = ragged(seed, slices=slices)

    items, gaps, sums = counted(lists)

    wanted_items, wanted_gaps, wanted_sums = expected(lists)
    assert items == wanted_items
    assert gaps == wanted_gaps
    assert sums == pytest.approx(wanted_sums, rel=4e-16, abs=0)


@pytest.mark.parametrize(("seed", "at_a_time"), [(1, 10**9), (2, 40), (3, 1)])
def test_numbers_and_order_of_rows_do_not_matter(seed: int, at_a_time: int) -> None:
    """However items and lists are numbered, cut and counted, the sums are the same."""
    lists = ragged(7)

    assert counted(lists, seed=seed, at_a_time=at_a_time) == counted(lists)


def test_buckets_add_up_to_the_gaps() -> None:
    """What intervals resample is what the score is made of, rows of unknown relevance included."""
    lists = ragged(5)

    _, gaps, sums = counted(lists)

    statistics = {
        "gap": "gap_sum",
        "share_gap": "share_gap_sum",
        "exposure": "exposure_sum",
        "exposure_ranks": "exposure_rank_sum",
    }
    for cut, held in gaps.items():
        for statistic, name in statistics.items():
            added = math.fsum(
                sums[*cut, statistic, b] for b in range(5) if (*cut, statistic, b) in sums
            )
            assert added == pytest.approx(held[name] / UNIT, rel=1e-12), (cut, statistic)


def test_equally_exposed_items_stand_by_their_ids() -> None:
    """Places, and so bucket sums, do not depend on how items were numbered."""
    lists = [List(0, {}, [("b", 1, None)]), List(1, {}, [("a", 1, None)])]

    *_, sums = counted(lists)

    assert sums[WHOLE, WHOLE, "exposure_ranks", 1] == 1.0
    assert sums[WHOLE, WHOLE, "exposure_ranks", 0] == 2.0
