"""Delivered rows, list by list: numbered, put in order, checked and held, in one pass.

Rows come as Arrow arrays, some whole lists at a time, and are looked at a column at a time, never
one by one.  A list of which any row may break a rule is *broken* here, whatever the rule: what is
wrong with it is found elsewhere, row by row (``staged_rows``, ``rejected_rows``).  What is held of
the others obeys, and the extremes of each column prove it.

Not here: where rows come from (``parquet_batches``, ``delivered_batches``,
``placed_batches``), and which lists are accepted (``screening``).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow

from metrics.weights import BoolArray, FloatArray, IntArray
from pipeline.log.arrow_columns import (
    as_bools,
    as_codes,
    as_doubles,
    changes,
    filled,
    in_one,
    plain,
)
from pipeline.log.held_rows import HeldRows, Piece
from pipeline.log.numbering import IdNumbers
from pipeline.log.whole_lists import ListsApart
from schemas.columns import Column
from schemas.extremes import Interval, interval_of
from schemas.rules import CLICK, PREDICTED_CLICK, PROPENSITY, RANK, REFERENCE_RANK, RELEVANCE

Gaps: TypeAlias = Literal["reject", "compact", "keep"]
NUMBERS = (RELEVANCE, CLICK, REFERENCE_RANK, PROPENSITY, PREDICTED_CLICK)
"""Columns of numbers that are held beside items and places."""
_INTERVALS = {column.name: interval_of(column) for column in (RANK, *NUMBERS)}
_BORDER_ROWS = 131_072
"""Rows of lists that were cut in two which wait to be looked at together."""
_MOST_APART = 0.05
"""Share of runs that may be more of a list seen before; of fewer, the lists are looked at closely.
"""
_FEW_APART = 100
_WIDTHS = np.unique(np.rint(2 ** np.arange(0, 20.5, 0.5)).astype(np.int64))
"""Widths of the matrices in which lists of nearly one length are looked at together."""


class ListTooLong(Exception):
    """A list has more rows than any may have, and the rest of it was not read."""


@dataclass
class Extremes:
    """The least and the greatest of a column that are held, and what else may be said of it."""

    low: float = np.inf
    high: float = -np.inf
    missing: bool = False
    binary: bool = True
    """Whether every number is 0 or 1."""

    def add(self, values: FloatArray) -> None:
        """Look at some more, none of them missing."""
        if len(values):
            self.low = min(self.low, float(values.min()))
            self.high = max(self.high, float(values.max()))


@dataclass(frozen=True)
class Run:
    """What is known of some runs of rows of one list each, shape (runs,).

    ``key`` numbers their ids, -1 where there is none; ``first_file`` and ``last_file`` say which
    files rows are from; ``graded`` counts relevances other than 0 and 1; ``said`` are the texts of
    the columns that describe a request.
    """

    key: IntArray
    rows: IntArray
    broken: BoolArray
    graded: IntArray
    first_file: IntArray
    last_file: IntArray
    said: dict[str, pyarrow.Array]


class CheckedLists:
    """All lists of a delivery: give it the rows, then ask.

    ``numbers`` are the columns of numbers that rows have, ``said`` the texts that describe a
    request, ``attributes`` those that describe an item; ``zero`` are columns in which a number that
    is missing counts as 0.  ``ranked``: rows have a rank, 1 = top.
    """

    def __init__(
        self,
        rows: HeldRows,
        *,
        numbers: Sequence[Column],
        said: Sequence[str],
        attributes: Sequence[str],
        zero: Sequence[str] = (),
        ranked: bool = True,
        gaps: Gaps = "reject",
        most_rows: int | None = None,
    ) -> None:
        self.rows = rows
        self.lists, self.items = IdNumbers(), IdNumbers()
        self.values = {name: IdNumbers() for name in attributes}
        self.combinations = [IdNumbers() for _ in attributes[1:]]
        self.extremes = {column.name: Extremes() for column in (RANK, *numbers)}
        self.runs: list[Run] = []
        self.rows_seen = 0
        self._numbers, self._said = tuple(numbers), tuple(said)
        self._zero, self._gaps, self._most_rows = frozenset(zero), gaps, most_rows
        self._ranked = ranked
        self._runs = self._apart = 0

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the columns of numbers."""
        return tuple(column.name for column in self._numbers)

    @property
    def runs_seen(self) -> int:
        """Runs of rows of one list each: as many as lists, where lists stand together."""
        return self._runs

    def survey(self) -> pyarrow.Table:
        """A row for each run: ``run``, ``key``, and what ``Run`` says."""
        columns: dict[str, Any] = {"run": np.arange(self._runs)}
        if self.runs:
            key = np.concatenate([run.key for run in self.runs])
            at = pyarrow.array(np.maximum(key, 0), mask=key < 0)
            columns["key"] = self.lists.ids.take(at)
            for name in ("rows", "broken", "graded", "first_file", "last_file"):
                columns[name] = np.concatenate([getattr(run, name) for run in self.runs])
            for name in self._said:
                columns[name] = pyarrow.chunked_array([run.said[name] for run in self.runs])
        return pyarrow.table(columns)

    @property
    def are_texts(self) -> bool:
        """Whether all texts are UTF-8; DuckDB makes sure of what it reads, and Arrow does not."""
        columns = [self.lists.ids, self.items.ids, *(each.ids for each in self.values.values())]
        texts = [each for column in columns for each in column.chunks]
        texts += [each for run in self.runs for each in run.said.values()]
        try:
            for each in texts:
                each.validate(full=True)
        except pyarrow.ArrowInvalid:
            return False
        return True

    def read(self, batches: Iterable[pyarrow.RecordBatch]) -> None:
        """Look at all rows.

        A batch has the columns of the contract under their names, those of the user with a ``=``
        before them, ``file``, and ``broken`` where a row is known to break a rule.  ListsApart
        where lists do not stand together, ListTooLong where one has more than ``most_rows``.
        """
        for rows, starts in _whole_runs(batches, self._most_rows):
            self._add(rows, starts)

    def _add(self, rows: pyarrow.Table | pyarrow.RecordBatch, starts: IntArray) -> None:
        chunk = _Chunk(len(rows), starts)
        key = self._keys(rows["list_id"], chunk)
        self._look_for_differing(rows, chunk)
        if "broken" in rows.schema.names:
            chunk.flag(as_bools(in_one(rows["broken"])))
        item = self._item(in_one(rows["item_id"]), chunk)
        columns: dict[str, npt.NDArray[Any]] = {"item": item}
        graded = np.zeros(len(starts), dtype=np.int64)
        for column in self._numbers:
            values, missing = as_doubles(in_one(rows[column.name]))
            columns[column.name] = self._checked(column, values, missing, chunk)
            if column is RELEVANCE and columns[RELEVANCE.name].dtype != np.uint8:
                between = (values != 0.0) & (values != 1.0) & ~missing
                graded = np.add.reduceat(between, starts, dtype=np.int64)
        if self.values:
            columns["combination"] = self._combined(rows)
        places = self._places(rows, chunk)
        if places.order is not None:
            columns = {name: column.take(places.order) for name, column in columns.items()}
        chunk.flag_lists(_repeating(columns["item"], chunk.starts, chunk.lengths))
        if places.rank is not None:
            columns["rank"] = places.rank
        self.rows.add(Piece(self._runs, chunk.lengths, columns))
        file = in_one(rows["file"]).to_numpy(zero_copy_only=False)
        self.runs.append(
            Run(
                key=key,
                rows=chunk.lengths,
                broken=chunk.broken,
                graded=graded,
                first_file=np.minimum.reduceat(file, starts),
                last_file=np.maximum.reduceat(file, starts),
                said={
                    name: plain(in_one(rows[name])).take(pyarrow.array(starts))
                    for name in self._said
                },
            )
        )
        self._runs += len(starts)
        self.rows_seen += len(rows)

    def _keys(self, ids: Any, chunk: "_Chunk") -> IntArray:
        """Numbers of the lists of a chunk; ListsApart where too many were seen before."""
        own = plain(in_one(ids)).take(pyarrow.array(chunk.starts))
        missing = as_bools(own.is_null())
        before = self.lists.count
        found = self.lists.of(filled(own)).astype(np.int64)
        chunk.flag_lists(np.flatnonzero(missing))
        self._apart += len(found) - (self.lists.count - before) - int(missing.sum())
        if self._apart > max(_FEW_APART, _MOST_APART * (self._runs + len(found))):
            raise ListsApart
        found[missing] = -1
        return found

    def _look_for_differing(self, rows: Any, chunk: "_Chunk") -> None:
        """Break the lists whose rows do not all say the same of the request."""
        for name in self._said:
            differs = np.flatnonzero(changes(in_one(rows[name]))) + 1
            chunk.flag_rows(np.setdiff1d(differs, chunk.starts, assume_unique=True))

    def _item(self, ids: pyarrow.Array, chunk: "_Chunk") -> npt.NDArray[np.int32]:
        if ids.null_count:
            chunk.flag(as_bools(ids.is_null()))
        return self.items.of(filled(ids))

    def _checked(
        self, column: Column, values: FloatArray, missing: BoolArray, chunk: "_Chunk"
    ) -> npt.NDArray[Any]:
        """A column as it is held: a byte for each number where all are 0 or 1."""
        extremes, interval = self.extremes[column.name], _INTERVALS[column.name]
        if column.name in self._zero:
            values = np.where(missing, 0.0, values)
            missing = np.zeros(len(missing), dtype=np.bool_)
        none = int(np.count_nonzero(missing))
        if none and not column.nullable:
            chunk.flag(missing)
        ones, zeros = values == 1.0, values == 0.0
        some_ones, some_zeros = int(np.count_nonzero(ones)), int(np.count_nonzero(zeros))
        met = np.array([0.0, 1.0])[[some_zeros > 0, some_ones > 0]]
        if some_ones + some_zeros + none == len(values) and (
            not len(met) or interval.holds(met[0], met[-1])
        ):
            extremes.missing |= none > 0
            extremes.add(met)
            byte: npt.NDArray[np.uint8] = ones.view(np.uint8) | missing.view(np.uint8) << 1
            return byte
        good = ~missing & _within(values, interval)
        if column.type == "BIGINT":
            good &= np.floor(values) == values
        chunk.flag(~(good | missing))
        extremes.missing |= none > 0
        extremes.binary &= bool((ones | zeros | ~good).all())
        extremes.add(values[good])
        # A minus before a zero says nothing, but is another value to some libraries.
        return np.where(good, values, np.nan) + 0.0

    def _combined(self, rows: Any) -> npt.NDArray[Any]:
        """One number for what all attributes of a row say; see ``combination_values``."""
        found: IntArray | None = None
        for at, (name, values) in enumerate(self.values.items()):
            code = as_codes(values, in_one(rows["=" + name]))
            if found is None:
                found = code
            else:
                both = found << 31 | code
                found = self.combinations[at - 1].of(pyarrow.array(both)).astype(np.int64)
        assert found is not None
        return found.astype(np.min_scalar_type(int(found.max(initial=0))))

    def combination_values(self) -> dict[str, pyarrow.Array]:
        """The texts that each combination stands for, by attribute; some may occur in no row."""
        names = list(self.values)
        if not names:
            return {}
        one_alone = self.values[names[0]].count + 1
        count = self.combinations[-1].count if self.combinations else one_alone
        left = np.arange(count)
        codes: dict[str, IntArray] = {}
        for at in range(len(names) - 1, 0, -1):
            both = in_one(self.combinations[at - 1].ids).to_numpy()[left]
            codes[names[at]], left = both & (1 << 31) - 1, both >> 31
        codes[names[0]] = left
        found = {}
        for name in names:
            texts = in_one(self.values[name].ids)
            at = pyarrow.array(codes[name] - 1, mask=codes[name] == 0)
            found[name] = texts.take(at)
        return found

    def _places(self, rows: Any, chunk: "_Chunk") -> "_Places":
        """Rows in order of rank; lists whose ranks cannot be are broken."""
        if not self._ranked:
            return _Places(None, None)
        values, missing = as_doubles(in_one(rows["rank"]))
        good = ~missing & _within(values, _INTERVALS["rank"]) & (np.floor(values) == values)
        if not good.all():
            chunk.flag(~good)
            values = np.where(good, values, 1.0)
        rank = values.astype(np.int32)
        ordinal = chunk.ordinal
        extremes = self.extremes["rank"]
        if self._gaps == "keep":
            extremes.add(values)
        else:
            extremes.add(np.array([1.0, float(chunk.lengths.max(initial=1))]))
        if np.array_equal(rank, ordinal):
            return _Places(None, rank if self._gaps == "keep" else None)
        order = chunk.slots(rank)
        if order is not None:
            return _Places(order, ordinal if self._gaps == "keep" else None)
        place = chunk.place
        order = np.lexsort((rank, place))
        rank = rank.take(order)
        same = np.flatnonzero(rank[1:] == rank[:-1]) + 1
        chunk.flag_rows(np.setdiff1d(same, chunk.starts, assume_unique=True))
        if self._gaps == "reject":
            chunk.flag(rank != ordinal)
        return _Places(order, rank if self._gaps == "keep" else None)


@dataclass(frozen=True)
class _Places:
    """Rows in order of rank.

    ``order`` puts them there, None where they are; ``rank`` is theirs then, None for 1, 2, 3 ...
    """

    order: IntArray | None
    rank: npt.NDArray[np.int32] | None


@dataclass
class _Chunk:
    """Whole lists of some rows, and which of them are broken."""

    rows: int
    starts: IntArray
    lengths: IntArray = field(init=False)
    broken: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self.lengths = np.diff(self.starts, append=self.rows)
        self.broken = np.zeros(len(self.starts), dtype=np.bool_)

    @property
    def place(self) -> npt.NDArray[np.int32]:
        """The list of each row, by its place in the chunk."""
        return np.repeat(np.arange(len(self.starts), dtype=np.int32), self.lengths)

    @property
    def ordinal(self) -> npt.NDArray[np.int32]:
        """1, 2, 3 ... within each list."""
        return places_of(self.starts, self.lengths)

    def slots(self, rank: npt.NDArray[np.int32]) -> IntArray | None:
        """The order of rows by rank, None where ranks are not 1..n, each once."""
        most = np.repeat(self.lengths, self.lengths)
        if (rank < 1).any() or (rank > most).any():
            return None
        order = np.full(self.rows, -1, dtype=np.int64)
        order[np.repeat(self.starts - 1, self.lengths) + rank] = np.arange(self.rows)
        return None if (order < 0).any() else order

    def flag(self, rows: BoolArray) -> None:
        """Break the lists of rows for which it is true."""
        if rows.any():
            self.flag_rows(np.flatnonzero(rows))

    def flag_rows(self, rows: IntArray) -> None:
        """Break the lists of some rows, by their places."""
        self.broken[np.searchsorted(self.starts, rows, side="right") - 1] = True

    def flag_lists(self, lists: IntArray) -> None:
        """Break some lists, by their places."""
        self.broken[lists] = True


def places_of(starts: IntArray, lengths: IntArray) -> npt.NDArray[np.int32]:
    """1, 2, 3 ... within each list, shape (rows,)."""
    rows = int(lengths.sum())
    found = np.arange(1, rows + 1, dtype=np.int32)
    found -= np.repeat(starts.astype(np.int32), lengths)
    return found


def _within(values: FloatArray, interval: Interval) -> BoolArray:
    above = values > interval.low if interval.open_low else values >= interval.low
    below = values < interval.high if interval.open_high else values <= interval.high
    found: BoolArray = above & below
    return found


def _whole_runs(
    batches: Iterable[pyarrow.RecordBatch], most_rows: int | None
) -> Iterator[tuple[pyarrow.Table | pyarrow.RecordBatch, IntArray]]:
    """Rows as whole runs of one list each, and where each run begins.

    Lists that a batch cuts in two come later, together.
    """
    cut: list[pyarrow.Table] = []
    waiting: list[pyarrow.Table] = []
    for each in batches:
        batch = each
        if not len(batch):
            continue
        turns = np.flatnonzero(changes(batch["list_id"])) + 1
        if waiting:
            goes_on = waiting[-1]["list_id"][-1].as_py() == batch["list_id"][0].as_py()
            if goes_on:
                end = int(turns[0]) if len(turns) else len(batch)
                waiting.append(_copied(batch.slice(0, end)))
                if most_rows is not None and sum(map(len, waiting)) > most_rows:
                    raise ListTooLong
                batch, turns = batch.slice(end), turns[1:] - end
                if not len(batch):
                    continue
            cut += waiting
            waiting = []
        last = int(turns[-1]) if len(turns) else 0
        waiting = [_copied(batch.slice(last))]
        if last:
            yield batch.slice(0, last), np.concatenate([[0], turns[:-1]])
        if sum(map(len, cut)) >= _BORDER_ROWS:
            yield _joined(cut)
            cut = []
    cut += waiting
    if cut:
        yield _joined(cut)


def _joined(cut: Sequence[pyarrow.Table]) -> tuple[pyarrow.Table, IntArray]:
    rows = pyarrow.concat_tables(cut).combine_chunks()
    turns = np.flatnonzero(changes(in_one(rows["list_id"]))) + 1
    return rows, np.concatenate([[0], turns])


def _copied(rows: pyarrow.RecordBatch) -> pyarrow.Table:
    """Rows that keep nothing else in memory, know no dictionary, and are alike in all files."""
    all_of = pyarrow.array(np.arange(len(rows)))
    columns = {}
    for name in rows.schema.names:
        column = plain(rows[name]).take(all_of)
        if name in _INTERVALS:
            column = column.cast(pyarrow.float64(), safe=False)
        columns[name] = column
    return pyarrow.table(columns)


# -- repetitions


def _repeating(item: npt.NDArray[np.int32], starts: IntArray, lengths: IntArray) -> IntArray:
    """Places of the lists in which an item stands twice."""
    if not len(lengths):
        return np.empty(0, dtype=np.int64)
    longest = int(lengths.max())
    if len(item) == longest * len(lengths):
        table = np.sort(item.reshape(len(lengths), longest), axis=1)
        twice: IntArray = np.flatnonzero((table[:, 1:] == table[:, :-1]).any(axis=1))
        return twice
    found = []
    width = np.searchsorted(_WIDTHS, lengths)
    for size in np.unique(width).tolist():
        here = np.flatnonzero(width == size)
        column = np.arange(int(lengths[here].max()))
        # Behind the end of a list stand numbers that no item has, each once.
        at = starts[here, None] + column
        inside = column < lengths[here, None]
        table = np.where(inside, item.take(at, mode="clip"), -1 - column.astype(np.int32))
        table.sort(axis=1)
        found.append(here[(table[:, 1:] == table[:, :-1]).any(axis=1)])
    return np.concatenate(found)
