"""Rows of lists that stand apart, put together: numbered as they come, then each put in its place.

All rows are held at once, as small numbers; a batch for which memory does not suffice is sorted by
DuckDB instead, which can spill (``delivered_batches``).

Not here: what is made of whole lists (``checked_lists``).
"""

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow

from metrics.weights import IntArray
from pipeline.log.arrow_columns import as_codes, as_doubles, coded, decoded, in_one
from pipeline.log.checked_lists import NUMBERS
from pipeline.log.delivered_batches import BATCH_ROWS
from pipeline.log.numbering import IdNumbers
from schemas.rules import RANK

BYTES_PER_ROW = 100
"""What a row takes while it is put in place, of a usual log: about 80 were measured."""


_KINDS = {"file": pyarrow.int32(), "broken": pyarrow.bool_()}
"""Columns of numbers that are no doubles."""


@dataclass
class _Column:
    """A column of the rows that have come: numbers, or codes of texts, 0 where there is none."""

    name: str
    ids: IdNumbers | None
    pieces: list[npt.NDArray[Any]]

    @classmethod
    def called(cls, name: str) -> "_Column":
        """A column of which no row has come yet."""
        is_number = name in _KINDS or name in {column.name for column in (RANK, *NUMBERS)}
        return cls(name, None if is_number else IdNumbers(), [])

    def add(self, array: pyarrow.Array) -> None:
        """Some more rows."""
        if self.ids is None:
            self.pieces.append(coded(*as_doubles(array)))
        else:
            codes = as_codes(self.ids, array)
            self.pieces.append(codes.astype(np.min_scalar_type(self.ids.count)))

    def together(self) -> npt.NDArray[Any]:
        """All rows; they are held no more by piece."""
        found = np.concatenate(self.pieces)
        self.pieces.clear()
        return found

    def arrow(self, values: npt.NDArray[Any]) -> pyarrow.Array:
        """Values of some rows as they came."""
        if self.ids is None:
            numbers = decoded(values)
            found = pyarrow.array(numbers, mask=np.isnan(numbers))
            return found.cast(_KINDS.get(self.name, pyarrow.float64()))
        places = pyarrow.array(values.astype(np.int32) - 1, mask=values == 0)
        return pyarrow.DictionaryArray.from_arrays(places, in_one(self.ids.ids))


def placed_batches(batches: Iterable[pyarrow.RecordBatch]) -> Generator[pyarrow.RecordBatch]:
    """The rows of ``batches``, the columns as they are, all rows of a list together.

    They are in order of rank where ranks are 1..n.  Numbers come back as doubles.
    """
    columns: dict[str, _Column] = {}
    for batch in batches:
        for name in batch.schema.names:
            columns.setdefault(name, _Column.called(name)).add(batch[name])
    if not columns:
        return
    held = {name: column.together() for name, column in columns.items()}
    order, ends = _order(held["list_id"], decoded(held["rank"]))
    first = 0
    while first < len(ends):
        start = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, start + BATCH_ROWS, side="right")))
        here = order[start : int(ends[last - 1])]
        yield pyarrow.RecordBatch.from_pydict(
            {name: columns[name].arrow(values.take(here)) for name, values in held.items()}
        )
        first = last


def _order(lists: npt.NDArray[Any], rank: npt.NDArray[np.float64]) -> tuple[IntArray, IntArray]:
    """The order of rows by list, and by rank where it can be; and where each list ends.

    A row whose rank lies outside its list, or is taken, gets any place that is left there.
    """
    of_list = lists.astype(np.int64)
    counts = np.bincount(of_list)
    ends = np.cumsum(counts)
    inside = (rank >= 1.0) & (rank <= counts.take(of_list))
    place = (ends - counts - 1).take(of_list)
    place += np.where(inside, rank, 1.0).astype(np.int64)
    order = np.full(len(of_list), -1, dtype=np.int64)
    rows = np.flatnonzero(inside)
    order[place[rows]] = rows
    free = np.flatnonzero(order < 0)
    if len(free):
        left = np.flatnonzero(~inside | (order.take(place) != np.arange(len(order))))
        order[free] = left[np.argsort(of_list[left], kind="stable")]
    return order, ends[counts > 0]
