"""Lists: what each adds up to, and from there slice_counts and model_versions.

Here: totals of one list each, their session table ``lists``, which item_counts and group_counts
read too, and counts of lists by slice, bucket and release.  Nothing that tells ranks, items or
groups apart.

Not here: ranks and groups (``rank_counts``, ``group_counts``).
"""

from typing import Any

import numpy as np
import pyarrow

from metrics import UNIT
from metrics.weights import IntArray, exposure_at
from pipeline.counts.dimensions import KNOWN, Dimensions
from pipeline.counts.exact_sums import Shares, half_names, halves, is_known, joined, whole_numbers
from pipeline.counts.session_tables import BUCKET_LISTS, LIST_TOTALS, POSITIONS
from pipeline.counts.sql import Counting
from pipeline.log.row_chunks import RowChunk
from schemas.counts import MODEL_VERSIONS, SLICE_COUNTS

_HELD_LISTS = 250_000
"""Lists whose totals wait to be written together: some 30 MB, and few writes."""
_HALVES = (*half_names("exposure"), *half_names("relevance"))


def scaled_exposures(depth: int) -> IntArray:
    """Exposure of ranks 0..depth, scaled by UNIT; rank 0, of no row, has none."""
    exposures = np.zeros(depth + 1, dtype=np.int64)
    exposures[1:] = whole_numbers(exposure_at(np.arange(1, depth + 1)), UNIT)
    return exposures


class ListTotals:
    """Totals of lists, written to the session as they come."""

    def __init__(self, counting: Counting, dimensions: Dimensions) -> None:
        self._counting, self._dimensions = counting, dimensions
        # Column by column, whatever the memory layout: rows read one of the two.
        self._exposure = halves(scaled_exposures(dimensions.deepest_rank))
        self._to_depth = [np.cumsum(half) for half in self._exposure]
        self._held: list[dict[str, IntArray]] = []
        names = ("list", "n", "part", "bucket", *_HALVES, *(f"{name}_known" for name in KNOWN))
        columns = ", ".join(f"{name} BIGINT" for name in names)
        counting.connection.execute(f"CREATE OR REPLACE TEMP TABLE list_totals ({columns})")

    def add(self, chunk: RowChunk, relevance: Shares | None) -> None:
        """Add up the lists of a chunk."""
        dimensions, lists, starts = self._dimensions, chunk.lists, chunk.starts
        high, low = self._exposures(chunk)
        totals = {
            "list": lists,
            "n": chunk.lengths,
            "part": dimensions.part[lists],
            "bucket": dimensions.bucket[lists],
            "exposure_high": high,
            "exposure_low": low,
        }
        nothing = np.zeros(len(lists), dtype=np.int64)
        sums = (nothing, nothing) if relevance is None else relevance.per_list(starts)
        totals["relevance_high"], totals["relevance_low"] = sums
        for name in KNOWN:
            if dimensions.known[name] in (0, dimensions.rows):
                counted = nothing if dimensions.known[name] == 0 else chunk.lengths
            else:
                known = is_known(chunk.floats[name])
                counted = np.add.reduceat(known, starts, dtype=np.int64)
            totals[f"{name}_known"] = counted
        self._held.append(totals)
        if sum(len(each["list"]) for each in self._held) >= _HELD_LISTS:
            self._write()

    def _exposures(self, chunk: RowChunk) -> tuple[IntArray, IntArray]:
        rank = chunk.ints["rank"]
        if rank is chunk.ints["position"] or np.array_equal(rank, chunk.ints["position"]):
            # Ranks are 1..n, so a list's length says what they add up to.
            high, low = (sums[chunk.lengths] for sums in self._to_depth)
        else:
            high, low = (np.add.reduceat(half[rank], chunk.starts) for half in self._exposure)
        return high, low

    def _write(self) -> None:
        if not self._held:
            return
        columns: dict[str, Any] = {
            name: np.concatenate([each[name] for each in self._held]) for name in self._held[0]
        }
        self._held.clear()
        with self._counting.registered("totals", pyarrow.table(columns)):
            self._counting.connection.execute(
                "INSERT INTO list_totals BY NAME SELECT * FROM totals"
            )

    def store(self) -> None:
        """Make the session table ``lists``; sums of scaled numbers in it are exact.

        Beside its numbers a list has its query and slices, under internal names; its relevance is
        null where that of no row is known.
        """
        self._write()
        counting = self._counting
        slices = counting.lists_slices("log_lists")
        counted = "".join(f", {name}_known" for name in KNOWN)
        relevance = joined("relevance")
        counting.make(
            LIST_TOTALS,
            "SELECT list::INTEGER AS list, n, "
            "part::INTEGER AS list_part, bucket::INTEGER AS bucket, "
            f"{joined('exposure')} AS exposure, "
            f"CASE WHEN relevance_known > 0 THEN {relevance} END AS relevance, query_id"
            f"{counted}{slices} FROM list_totals JOIN {counting.database}.log_lists USING (list)",
        )
        counting.connection.execute("DROP TABLE list_totals")


def make_positions(counting: Counting, dimensions: Dimensions) -> None:
    """Make the session table ``positions``: the exposure of each place, scaled by UNIT."""
    exposures = scaled_exposures(dimensions.deepest_rank)
    columns = {"place": np.arange(len(exposures)), "exposure": exposures}
    with counting.registered("exposures", pyarrow.table(columns, schema=POSITIONS.arrow)):
        counting.make(POSITIONS, "FROM exposures")


def fill_slice_counts(counting: Counting, dimensions: Dimensions) -> None:
    """Add lists, rows and queries of each slice, and the lists of each bucket."""
    known_columns = [f"{name}_known" for name in KNOWN]
    totals = {
        "lists": "count(*)",
        "rows": "sum(n)::BIGINT",
        **{name: f"sum({name})::BIGINT" for name in known_columns},
        "share_lists": "count(*) FILTER (relevance > 0)",
    }
    sums_of_lists = ", ".join(f"{sql} AS {name}" for name, sql in totals.items())
    slices = counting.lists_slices("parts")
    # Lists are added up before they are looked at slice by slice.
    counting.make(
        BUCKET_LISTS,
        f"SELECT sums.*{slices} FROM "
        f"(SELECT list_part AS part, bucket, {sums_of_lists} FROM lists GROUP BY ALL) AS sums "
        "JOIN parts USING (part)",
    )
    sums = ", ".join(f"sum({name})::BIGINT AS {name}" for name in ("lists", "rows", *known_columns))
    distinct = "SELECT slice, slice_value, sum(lists)::BIGINT AS queries"
    source = counting.by_slice("bucket_lists", "*")
    if dimensions.query is not None:
        distinct = "SELECT slice, slice_value, count(DISTINCT query_id) AS queries"
        queries = counting.by_slice("lists", "query_id")
    else:
        queries = source
    counting.fill(
        SLICE_COUNTS,
        f"SELECT * FROM (SELECT slice, slice_value, {sums} FROM ({source}) GROUP BY ALL) "
        f"JOIN ({distinct} FROM ({queries}) GROUP BY ALL) USING (slice, slice_value)",
    )
    counting.fill_buckets(
        source,
        ("slice", "slice_value"),
        {"lists": "sum(lists)", "share_lists": "sum(share_lists)"},
    )


def fill_model_versions(counting: Counting) -> None:
    """Add the releases of the ranker, and their lists."""
    counting.fill(
        MODEL_VERSIONS,
        f"SELECT model_version, count(*) AS lists FROM {counting.database}.log_lists "
        "WHERE model_version IS NOT NULL GROUP BY model_version",
    )
