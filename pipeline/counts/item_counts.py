"""Exposure and relevance of each item (IAA, Gini), in two passes over the accepted rows.

The first pass adds up the rows of an item in each slice value: the whole batch, and the values of
each slice.  The second adds up, by bucket of queries, on which side of the gap between exposure and
relevance rows of an item stand, and in which place.  All sums are of whole numbers, in limbs of 30
bits that add up in 64.  Where slice values have too many items to be counted at a time, they are
counted some at a time, in further passes.

Not here: the item table as delivered (``log.item_table``).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow

from metrics import UNIT, WHOLE
from metrics.weights import BoolArray, IntArray
from pipeline.counts.dimensions import Dimensions
from pipeline.counts.exact_sums import (
    HALF,
    HALF_BITS,
    Shares,
    double_of,
    half_names,
    halves,
    joined,
    whole_numbers,
)
from pipeline.counts.slice_counts import scaled_exposures
from pipeline.counts.sql import Counting
from pipeline.log.row_chunks import RowChunk
from schemas.columns import literal
from schemas.counts import ITEM_GAPS, ITEM_STATS
from schemas.stored_log import LOG_ITEMS

SUMS = ("exposure", "relevance", "exposure_share", "relevance_share")
"""What is added up for an item; shares are of what a list gives to all its items."""
MOST_CELLS = 8_000_000
"""Items of slice values that are counted at a time: 64 MB for each of nine counters."""
_PIECE_BITS = 15
"""Places are below 2^30 and rows below 2^33: pieces of sums so small add up in 64 bits."""
_LIMBS = 4
"""Limbs of 30 bits of a sum by bucket: 2^120 is enough for anything."""
_BY_BUCKET = ("gap", "share_gap", "exposure_ranks")


def count_items(counting: Counting, dimensions: Dimensions) -> None:
    """Fill item_stats and item_gaps, and what intervals of their metrics resample.

    Reads the rows, and the session table ``lists`` for the lists with any relevance.
    """
    ids = counting.connection.sql(
        f"SELECT item FROM {counting.database}.{LOG_ITEMS.name} ORDER BY item_id"
    ).to_arrow_table()
    by_id = ids["item"].to_numpy().astype(np.int64)
    order = np.empty(len(by_id), dtype=np.int64)
    order[by_id] = np.arange(len(by_id))
    step = max(1, MOST_CELLS // max(1, len(by_id)))
    for first in range(0, len(dimensions.values), step):
        values = range(first, min(first + step, len(dimensions.values)))
        _count_values(counting, dimensions, _Rows(counting, dimensions, values), order)
    if counting.evidence:
        exposures = counting.by_slice("lists", "bucket, exposure")
        counting.fill_buckets(
            exposures, ("slice", "slice_value"), {"exposure": f"sum(exposure) / {UNIT}"}
        )


@dataclass(frozen=True)
class _Numbers:
    """Rows of a chunk with the four numbers that are added up, each in its two halves.

    ``known`` are the rows whose relevance is above 0: of the others both numbers of it are 0.
    """

    item: IntArray
    exposure: tuple[IntArray, IntArray]
    exposure_share: tuple[IntArray, IntArray]
    known: IntArray
    relevance: tuple[IntArray, IntArray]
    relevance_share: tuple[IntArray, IntArray]


class _Rows:
    """The rows of a batch, as they count for some slice values."""

    def __init__(self, counting: Counting, dimensions: Dimensions, values: range) -> None:
        self.dimensions, self.values = dimensions, values
        self._counting = counting
        self._exposures = scaled_exposures(dimensions.deepest_rank)
        self._halves = halves(self._exposures)
        self._columns = ["item", "rank", *(["relevance"] if dimensions.known["relevance"] else [])]

    def __iter__(self) -> Iterator[tuple[RowChunk, _Numbers]]:
        for chunk in self._counting.chunks(self._columns):
            yield chunk, self._numbers(chunk)

    def of_lists(self, chunk: RowChunk) -> Iterator[IntArray]:
        """For each slice, the value of each list, -1 where it is none of those that are counted."""
        part = self.dimensions.part[chunk.lists]
        for codes in self.dimensions.codes:
            if codes.max() >= self.values.start and codes.min() < self.values.stop:
                code = codes[part] - self.values.start
                yield np.where((code >= 0) & (code < len(self.values)), code, -1)

    def _numbers(self, chunk: RowChunk) -> _Numbers:
        rank = chunk.ints["rank"]
        exposure = [half.take(rank) for half in self._halves]
        nothing = np.empty(0, dtype=np.int64)
        known, relevance, relevance_share = nothing, (nothing, nothing), (nothing, nothing)
        no_share = np.zeros(len(rank), dtype=np.int64)
        exposure_share = (no_share, no_share)
        if self.dimensions.known["relevance"]:
            values = chunk.floats["relevance"]
            shares = Shares.of(values, complete=False)
            of_list = double_of(*shares.per_list(chunk.starts))
            known = np.flatnonzero(values > 0.0)
            whole = whole_numbers(values[known], UNIT)
            unit = np.where(of_list > 0.0, of_list / float(UNIT), np.inf)
            own = np.repeat(unit, chunk.lengths)[known]
            relevance = halves(whole)
            relevance_share = halves(np.rint(whole / own).astype(np.int64))
            exposure_share = halves(self._exposure_shares(chunk, rank, of_list > 0.0))
        return _Numbers(
            chunk.ints["item"].astype(np.int64, copy=False),
            (exposure[0], exposure[1]),
            exposure_share,
            known,
            relevance,
            relevance_share,
        )

    def _exposure_shares(self, chunk: RowChunk, rank: IntArray, counted: BoolArray) -> IntArray:
        """What part of its list's exposure each row has, 0 in lists that are not ``counted``."""
        sums = [np.add.reduceat(half.take(rank), chunk.starts) for half in self._halves]
        unit = np.where(counted, double_of(*sums) / float(UNIT), np.inf)
        doubles = self._exposures.astype(np.float64)
        shares = np.rint(doubles.take(rank) / np.repeat(unit, chunk.lengths))
        found: IntArray = shares.astype(np.int64)
        return found


def _count_values(counting: Counting, dimensions: Dimensions, rows: _Rows, order: IntArray) -> None:
    """Count the items of some slice values; ``order`` is the place of an item by its id."""
    items, size = len(order), len(order) * len(rows.values)
    sums = {name: np.zeros(size, dtype=np.int64) for name in ("rows", *_limbs())}
    for chunk, numbers in rows:
        for code in rows.of_lists(chunk):
            key, here = _keys(chunk, code, numbers.item, items)
            np.add.at(sums["rows"], key, 1)
            _add(sums, "exposure", key, numbers.exposure, here)
            if len(numbers.known):
                _add(sums, "exposure_share", key, numbers.exposure_share, here)
                known_key, known_here = _known(chunk, code, numbers, items)
                _add(sums, "relevance", known_key, numbers.relevance, known_here)
                _add(sums, "relevance_share", known_key, numbers.relevance_share, known_here)
    for name in SUMS:
        _carry(*(sums[half] for half in half_names(name)))
    place = np.zeros(size, dtype=np.int64)
    shared = _lists_with_relevance(counting)
    gaps = []
    stats = []
    for at in range(len(rows.values)):
        own = {name: each[at * items : (at + 1) * items] for name, each in sums.items()}
        there = np.flatnonzero(own["rows"])
        own = {name: each[there] for name, each in own.items()}
        ranked = np.lexsort((order[there], own["exposure_low"], own["exposure_high"]))
        places = np.empty(len(there), dtype=np.int64)
        places[ranked] = np.arange(1, len(there) + 1)
        place[at * items + there] = places
        slice_name, value = dimensions.values[rows.values[at]]
        gaps.append(
            {
                "slice": slice_name,
                "slice_value": value,
                "items": len(there),
                "gap_sum": _absolute(own, "exposure", "relevance"),
                "share_lists": shared[slice_name, value],
                "share_gap_sum": _absolute(own, "exposure_share", "relevance_share"),
                "exposure_sum": _total(own, "exposure"),
                "exposure_rank_sum": _times(own, "exposure", places),
            }
        )
        if counting.evidence:
            by_id = np.argsort(order[there])
            stats.append(
                {"code": np.full(len(there), rows.values[at]), "item": there[by_id]}
                | {name: each[by_id] for name, each in own.items()}
            )
    with counting.registered("gaps", pyarrow.Table.from_pylist(gaps, ITEM_GAPS.arrow)):
        counting.fill(ITEM_GAPS, "SELECT * FROM gaps")
    if counting.evidence:
        _fill_stats(counting, stats)
        _fill_buckets(counting, rows, place, sums, items)


def _limbs() -> list[str]:
    return [half for name in SUMS for half in half_names(name)]


def _keys(
    chunk: RowChunk, code: IntArray, item: IntArray, items: int
) -> tuple[IntArray, BoolArray | None]:
    """Where rows count, and which of them do; None for all."""
    counted = code >= 0
    if len(code) and not code.any():
        return item, None
    key = item + np.repeat(code * items, chunk.lengths)
    if counted.all():
        return key, None
    here = np.repeat(counted, chunk.lengths)
    return key[here], here


def _known(
    chunk: RowChunk, code: IntArray, numbers: _Numbers, items: int
) -> tuple[IntArray, BoolArray | None]:
    """The same of the rows with relevance."""
    own = code.take(chunk.place.take(numbers.known))
    key = own * items + numbers.item.take(numbers.known)
    here = own >= 0
    return (key, None) if here.all() else (key[here], here)


def _add(
    sums: dict[str, IntArray],
    name: str,
    key: IntArray,
    both: tuple[IntArray, IntArray],
    here: BoolArray | None,
) -> None:
    for half, numbers in zip(half_names(name), both, strict=True):
        np.add.at(sums[half], key, numbers if here is None else numbers[here])


def _carry(high: IntArray, low: IntArray) -> None:
    """Bring the low half below 2^30, what is above it into the high one."""
    high += low >> HALF_BITS
    low &= HALF - 1


def _difference(own: dict[str, IntArray], one: str, other: str) -> tuple[IntArray, IntArray]:
    """One sum less another; the high half has the sign."""
    high, low = (
        own[mine] - own[its] for mine, its in zip(half_names(one), half_names(other), strict=True)
    )
    _carry(high, low)
    return high, low


def _sign(high: IntArray, low: IntArray) -> IntArray:
    found: IntArray = np.where(high < 0, -1, ((high > 0) | (low > 0)).astype(np.int64))
    return found


def _absolute(own: dict[str, IntArray], one: str, other: str) -> int:
    """The sum of the absolute differences of two sums."""
    high, low = _difference(own, one, other)
    sign = _sign(high, low)
    return (int((sign * high).sum()) << HALF_BITS) + int((sign * low).sum())


def _total(own: dict[str, IntArray], name: str) -> int:
    high, low = (int(own[half].sum()) for half in half_names(name))
    return (high << HALF_BITS) + low


def _times(own: dict[str, IntArray], name: str, factor: IntArray) -> int:
    """The sum of products of a sum and a place, piece by piece."""
    total = 0
    for half, above in zip(half_names(name), (HALF_BITS, 0), strict=True):
        left, shift = own[half], above
        while left.any():
            total += int(((left & (1 << _PIECE_BITS) - 1) * factor).sum()) << shift
            left, shift = left >> _PIECE_BITS, shift + _PIECE_BITS
    return total


def _lists_with_relevance(counting: Counting) -> dict[tuple[str, str], int]:
    """How many lists of each slice value have any relevance."""
    rows = counting.connection.execute(
        "SELECT slice, slice_value, count(*) FILTER (relevance > 0) "
        f"FROM ({counting.by_slice('lists', 'relevance')}) GROUP BY ALL"
    ).fetchall()
    return {(name, value): lists for name, value, lists in rows}


def _fill_stats(counting: Counting, stats: list[dict[str, IntArray]]) -> None:
    columns = {name: np.concatenate([each[name] for each in stats]) for name in stats[0]}
    sums = ", ".join(f"{joined(name)} AS {name}_sum" for name in SUMS)
    with counting.registered("items", pyarrow.table(columns)):
        counting.fill(
            ITEM_STATS,
            f"SELECT slice, slice_value, item_id, rows, {sums} FROM items "
            f"JOIN {counting.database}.{LOG_ITEMS.name} USING (item) "
            "JOIN slice_values USING (code) "
            f"ORDER BY slice <> {literal(WHOLE)}, slice, slice_value, item_id",
            ordered=True,
        )


def _fill_buckets(
    counting: Counting, rows: _Rows, place: IntArray, sums: dict[str, IntArray], items: int
) -> None:
    """Signed gaps and weighted places of rows, by bucket and slice value.

    To first order: in every resample an item stays on its side of the gap, and in its place.
    """
    buckets = rows.dimensions.buckets
    side = _sign(*_difference(sums, "exposure", "relevance"))
    share_side = _sign(*_difference(sums, "exposure_share", "relevance_share"))
    added = _BucketSums(len(rows.values) * buckets)
    for chunk, numbers in rows:
        bucket = rows.dimensions.bucket[chunk.lists]
        for code in rows.of_lists(chunk):
            key = numbers.item + np.repeat(np.maximum(code, 0) * items, chunk.lengths)
            lists = np.flatnonzero(code >= 0)
            cell = code[lists] * buckets + bucket[lists]
            known, starts = numbers.known, chunk.starts
            for name, sides, ours, theirs in (
                ("gap", side, numbers.exposure, numbers.relevance),
                ("share_gap", share_side, numbers.exposure_share, numbers.relevance_share),
            ):
                own = sides.take(key)
                for limb, half in enumerate((ours[1], ours[0])):
                    left = half.copy()
                    left[known] -= theirs[1 - limb]
                    added.add(name, limb, cell, np.add.reduceat(own * left, starts)[lists])
            places = place.take(key)
            for limb, half in enumerate((numbers.exposure[1], numbers.exposure[0])):
                for piece, bits in enumerate((half & (1 << _PIECE_BITS) - 1, half >> _PIECE_BITS)):
                    product = np.add.reduceat(bits * places, starts)[lists]
                    added.add("exposure_ranks", limb, cell, product, piece * _PIECE_BITS)
            added.seen[cell] = True
    here = np.flatnonzero(added.seen)
    value, bucket = np.divmod(here, buckets)
    table = pyarrow.table(
        {"code": value + rows.values.start, "bucket": bucket.astype(np.int32)}
        | {name: each[here] for name, each in added.limbs.items()}
    )
    of_limbs = {
        name: "+".join(f"{name}{limb}::HUGEINT * {1 << HALF_BITS * limb}" for limb in range(_LIMBS))
        for name in _BY_BUCKET
    }
    said = ", ".join(f"{sql} AS {name}" for name, sql in of_limbs.items())
    with counting.registered("item_buckets", table):
        counting.fill_buckets(
            f"SELECT slice, slice_value, bucket, {said} FROM item_buckets "
            "JOIN slice_values USING (code)",
            ("slice", "slice_value"),
            {name: f"sum({name}) / {UNIT}" for name in _BY_BUCKET},
        )


class _BucketSums:
    """Sums by slice value and bucket, in limbs that are carried over as often as any is added."""

    def __init__(self, cells: int) -> None:
        self.seen = np.zeros(cells, dtype=np.bool_)
        self.limbs = {
            f"{name}{limb}": np.zeros(cells, dtype=np.int64)
            for name in _BY_BUCKET
            for limb in range(_LIMBS)
        }

    def add(self, name: str, limb: int, cell: IntArray, numbers: IntArray, shift: int = 0) -> None:
        """Add numbers times 2^shift to a limb of the sums at ``cell``."""
        low = (numbers << shift) & HALF - 1
        np.add.at(self.limbs[f"{name}{limb}"], cell, low)
        np.add.at(self.limbs[f"{name}{limb + 1}"], cell, numbers >> HALF_BITS - shift)
