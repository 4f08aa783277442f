"""The rank histogram: rank_counts, and bucket_counts that intervals resample.

Rows are counted by bucket, part, rank and cell: in a table of counters where that fits in memory,
by a statement where it does not.  Both leave the session tables ``histogram`` and ``rank_sums``.
Nothing here looks at a list as a whole.

Not here: position weights, which scores apply afterwards.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow

from metrics import UNIT
from metrics.weights import IntArray
from pipeline.counts.dimensions import Dimensions
from pipeline.counts.exact_sums import (
    Shares,
    count_graded,
    count_known,
    count_relevant,
    half_names,
    is_relevant,
    joined,
    scaled,
)
from pipeline.counts.session_tables import HISTOGRAM, RANK_SUMS
from pipeline.counts.sql import Counting, attribute_structs
from pipeline.log.row_chunks import RowChunk
from pipeline.settings.audit import Settings
from schemas.columns import internal
from schemas.counts import RANK_COUNTS, bucket_counts

MOST_CELLS = 8_000_000
"""Counters of one kind that are held: 64 MB for each of nine kinds; most take none before they are
used."""
CELLS_PER_ROW = 4
"""Counters for each row beyond which a statement is faster: it makes only those it needs."""
_COUNTS = ("rows", "judged", "graded", "relevant", "click_known")
_HALVES = (*half_names("relevance"), *half_names("click"))
_SQL_OF = {
    "rank": "rank + 1 AS rank",
    "relevance_sum": f"{joined('relevance')} AS relevance_sum",
    "click_sum": f"{joined('click')} AS click_sum",
}
"""What columns are made of that counters hold in another form."""


def histogram_sums(settings: Settings) -> str:
    """SQL of what the rank histogram counts of rows of the log, in the columns of rank_counts."""
    sums = {
        "rows": "count(*)",
        "judged": count_known("relevance"),
        "graded": count_graded("relevance"),
        "relevant": count_relevant("relevance", settings.relevant_from),
        "relevance_sum": f"coalesce(sum({scaled('relevance', UNIT)}), 0)",
        "click_known": count_known("click"),
        "click_sum": f"coalesce(sum({scaled('click', UNIT)}), 0)",
    }
    return ", ".join(f"{sql} AS {name}" for name, sql in sums.items())


class Histogram:
    """Counters by bucket, part, rank and cell."""

    def __init__(self, dimensions: Dimensions, relevant_from: float) -> None:
        self._dimensions, self._relevant_from = dimensions, relevant_from
        # Ranks before cells, so that the rows of a list meet neighbouring counters one by one.
        self._shape = (
            dimensions.buckets,
            dimensions.parts,
            dimensions.deepest_rank,
            dimensions.cells,
        )
        self._base = dimensions.bucket.astype(np.int64) * dimensions.parts + dimensions.part
        self._counts = {
            name: np.zeros(self.cells(dimensions), dtype=np.int64) for name in (*_COUNTS, *_HALVES)
        }

    @staticmethod
    def cells(dimensions: Dimensions) -> int:
        """Counters of one kind that a batch needs."""
        return dimensions.buckets * dimensions.parts * dimensions.cells * dimensions.deepest_rank

    def add(self, chunk: RowChunk, relevance: Shares | None, click: Shares | None) -> None:
        """Count the rows of a chunk; None for a column that no row has."""
        counts, cells = self._counts, self._dimensions.cells
        base = self._base[chunk.lists] * self._dimensions.deepest_rank - 1
        key = np.repeat(base * cells, chunk.lengths)
        key += np.multiply(chunk.ints["rank"], cells, dtype=np.int64)
        key += chunk.ints["cell"]
        np.add.at(counts["rows"], key, 1)
        if relevance is not None:
            if relevance.known is not None:
                np.add.at(counts["judged"], key[relevance.known], 1)
            if relevance.graded is not None:
                np.add.at(counts["graded"], key[relevance.graded], 1)
            relevant = is_relevant(relevance.values, self._relevant_from)
            np.add.at(counts["relevant"], key[relevant], 1)
            relevance.add_to(counts["relevance_high"], counts["relevance_low"], key)
        if click is not None:
            if click.known is not None:
                np.add.at(counts["click_known"], key[click.known], 1)
            click.add_to(counts["click_high"], counts["click_low"], key)

    @contextmanager
    def tables(self, counting: Counting) -> Iterator[None]:
        """For the time being, ``histogram`` and ``rank_sums`` of the session."""
        counts = {name: each.reshape(self._shape) for name, each in self._counts.items()}
        for name, column in (("judged", "relevance"), ("click_known", "click")):
            if self._dimensions.known[column] == self._dimensions.rows:
                counts[name] = counts["rows"]
        whole = {name: each.sum(axis=0) for name, each in counts.items()}
        buckets = _filled(counts, ("bucket", "part", "rank", "cell"))
        ranks = _filled(whole, ("part", "rank", "cell"))
        views = {HISTOGRAM: "bucket_counters", RANK_SUMS: "rank_counters"}
        with (
            counting.registered(views[HISTOGRAM], buckets),
            counting.registered(views[RANK_SUMS], ranks),
        ):
            for table, counters in views.items():
                names = ", ".join(_SQL_OF.get(name, name) for name in table.names)
                counting.make(table, f"SELECT {names} FROM {counters}", "VIEW")
            yield
            for table in views:
                counting.connection.execute(f"DROP VIEW {table.name}")


def _filled(counts: dict[str, IntArray], axes: tuple[str, ...]) -> pyarrow.Table:
    """Counters of some rows, in order, and where they stand."""
    here = np.flatnonzero(counts["rows"])
    where = np.unravel_index(here, counts["rows"].shape)
    columns = {name: at.astype(np.int32) for name, at in zip(axes, where, strict=True)}
    return pyarrow.table(columns | {name: each.ravel()[here] for name, each in counts.items()})


@contextmanager
def tables_by_sql(counting: Counting) -> Iterator[None]:
    """The same two tables, from the rows and the session table ``lists``.

    Counters of cells that occur, added up chunk by chunk, would take half the CPU time, but some
    100 bytes each, and a wide batch has nearly as many cells as rows.  A statement spills.
    """
    counting.need_rows()
    counting.make(
        HISTOGRAM,
        f"SELECT bucket, part, rank, cell, {histogram_sums(counting.settings)} "
        f"FROM {counting.database}.log_rows "
        "JOIN (SELECT list, bucket, list_part AS part FROM lists) USING (list) "
        "GROUP BY ALL ORDER BY bucket, part, rank, cell",
    )
    sums = ", ".join(
        f"sum({column.name})::{column.type} AS {column.name}"
        for column in RANK_SUMS.columns
        if column.name not in RANK_SUMS.key
    )
    counting.make(
        RANK_SUMS,
        f"SELECT part, rank, cell, {sums} FROM histogram GROUP BY part, rank, cell",
    )
    yield
    for name in ("histogram", "rank_sums"):
        counting.connection.execute(f"DROP TABLE {name}")


def histogram_fits(dimensions: Dimensions) -> bool:
    """Whether the counters of a batch fit in memory, and are worth it."""
    return Histogram.cells(dimensions) <= min(MOST_CELLS, CELLS_PER_ROW * dimensions.rows)


def fill_rank_counts(counting: Counting) -> None:
    """The rank histogram of buckets, and of slices, attributes and groups."""
    cells = "".join(f", log_cells.{internal(n)}" for n in counting.settings.attribute_columns)
    parts = counting.lists_slices("parts")
    table = bucket_counts(counting.settings.slices, counting.settings.attribute_columns)
    log_cells = f"JOIN {counting.database}.log_cells USING (cell)"
    counting.connection.execute(f"DROP TABLE IF EXISTS {counting.database}.{table.name}")
    counting.connection.execute(table.create(counting.name))
    counting.fill(
        table,
        f"SELECT histogram.* EXCLUDE (part, cell){parts}{cells} FROM histogram "
        f"JOIN parts USING (part) {log_cells}",
        ordered=True,
    )
    sums = ", ".join(
        f"sum({name})::{column.type} AS {name}"
        for name, column in zip(RANK_COUNTS.names, RANK_COUNTS.columns, strict=True)
        if name not in RANK_COUNTS.key
    )
    whole = f"SELECT rank_sums.*{parts}{cells} FROM rank_sums JOIN parts USING (part) {log_cells}"
    grouped = f"SELECT *, unnest({attribute_structs(counting.settings)}) AS g FROM ({whole})"
    counting.fill(
        RANK_COUNTS,
        f"SELECT slice, slice_value, g.attribute AS attribute, g.group_value AS group_value, "
        f"rank, {sums} FROM ({counting.by_slice(f'({grouped})', '*')}) GROUP BY ALL",
    )
