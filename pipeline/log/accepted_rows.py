"""Accepted rows, written as whole numbers: lists, items, combinations of attribute values, rows.

Texts are looked at once each, in SQL, however many rows they stand in; rows are arrays throughout.

Not here: which rows are accepted (``screening``, ``rejected_rows``), and what the tables are
(``schemas.stored_log``).
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow

from metrics import UNKNOWN
from metrics.weights import BoolArray, FloatArray, IntArray
from pipeline.log.arrow_columns import decoded
from pipeline.log.checked_lists import NUMBERS, CheckedLists, places_of
from pipeline.log.counted_as import count_rows, group_meant
from pipeline.log.held_rows import Piece
from pipeline.log.joined_items import count_joined
from pipeline.log.reading import Reading
from pipeline.log.row_chunks import Extent, RowChunk
from pipeline.log.values import tidy, unless_blank
from pipeline.log.whole_lists import CHUNK_ROWS
from pipeline.privacy.hashed_ids import is_hashed, stored_id
from schemas.columns import Table, internal, literal, quoted
from schemas.rules import ITEM_ID, LIST_ID, MODEL_VERSION, POSITION, QUERY_ID, RANK
from schemas.stored_log import LOG_ITEMS, log_cells, log_lists


@dataclass(frozen=True)
class Accepted:
    """Rows of the lists that are let in.

    ``lists`` is SQL of their runs, in the columns of the survey.  ``numbers`` is the list of each
    run, -1 where it is not let in, shape (runs,); so are ``items`` and ``cells``, by what is held.
    """

    checked: CheckedLists
    lists: str
    numbers: IntArray
    items: IntArray
    item_class: IntArray
    cells: IntArray
    classes: int = 1

    def pieces(self) -> Iterator[tuple[Piece, IntArray]]:
        """What is held of these lists, and the number of each of them."""
        for held in self.checked.rows:
            piece = held
            number = self.numbers[piece.first : piece.first + len(piece.lengths)]
            here = number >= 0
            if not here.all():
                rows = np.repeat(here, piece.lengths)
                columns = {name: column[rows] for name, column in piece.columns.items()}
                piece = Piece(piece.first, piece.lengths[here], columns)
                number = number[here]
            if len(number):
                yield piece, number

    def missing(self, name: str, values: FloatArray) -> BoolArray | None:
        """Which numbers of a column are missing; None where every row says one."""
        return np.isnan(values) if self.checked.extremes[name].missing else None

    def known(self, piece: Piece, name: str) -> int:
        """How many rows of a piece say a number."""
        missing = self.missing(name, decoded(piece.columns[name]))
        return piece.rows - (0 if missing is None else int(np.count_nonzero(missing)))

    def kinds(self, piece: Piece) -> IntArray:
        """What each row of a piece says of its item: the logged attributes, then the others."""
        own = piece.columns.get("combination")
        of_item = self.item_class.take(piece.columns["item"]) if self.classes > 1 else None
        if own is None:
            return np.zeros(piece.rows, dtype=np.int64) if of_item is None else of_item
        return own if of_item is None else own * np.int64(self.classes) + of_item


def store(reading: Reading, checked: CheckedLists, lists: str, supplied: Sequence[str]) -> Accepted:
    """Add some lists to the tables of the stored log, all but their rows.

    ``lists`` is SQL of runs of ``checked`` in the columns of the survey; ``supplied`` are
    attributes that come from the item table.
    """
    nothing = np.empty(0, dtype=np.int64)
    numbers = _number_lists(reading, checked, lists)
    accepted = Accepted(checked, lists, numbers, nothing, nothing, nothing)
    accepted = _number_items(reading, accepted, supplied)
    accepted = _number_cells(reading, accepted, supplied)
    return accepted


def _following(reading: Reading, table: str) -> str:
    """SQL of numbers that go on from those in ``table``, to be followed by a window."""
    ((there,),) = reading.rows(f"SELECT count(*) FROM {reading.database}.{table}")
    return f"{there} - 1 + row_number() OVER"


def _numbered(reading: Reading, query: str, size: int) -> IntArray:
    """An array of the second column of a query by the first; -1 where it has no row."""
    found = reading.connection.sql(query).to_arrow_table()
    numbers = np.full(size, -1, dtype=np.int64)
    numbers[found.column(0).to_numpy()] = found.column(1).to_numpy()
    return numbers


def _number_lists(reading: Reading, checked: CheckedLists, lists: str) -> IntArray:
    table = log_lists(reading.settings.slices)
    reading.run(
        "CREATE OR REPLACE TEMP TABLE list_numbers AS SELECT "
        f"({_following(reading, table.name)} (ORDER BY run))::INTEGER AS list, * FROM {lists}"
    )
    own = "CAST(key AS VARCHAR)"
    kept = stored_id(reading.settings, LIST_ID.name, own)
    values = {LIST_ID.name: kept, QUERY_ID.name: _stored_query(reading, own)}
    if MODEL_VERSION.name in reading.logged:
        values[MODEL_VERSION.name] = unless_blank(MODEL_VERSION.name)
    for name in reading.settings.slices:
        values["=" + name] = tidy(internal(name))
    values["list_rows"] = "rows"
    said = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in values.items())
    reading.run(
        f"INSERT INTO {reading.database}.{table.name} BY NAME "
        f"SELECT list, {said} FROM list_numbers ORDER BY list"
    )
    return _numbered(reading, "SELECT run, list FROM list_numbers", checked.runs_seen)


def _stored_query(reading: Reading, own: str) -> str:
    """SQL of the query of a list: the list itself, whose id is ``own``, where none is logged."""
    settings = reading.settings
    query = "NULL"
    if QUERY_ID.name in reading.logged:
        query = unless_blank(QUERY_ID.name)
    if is_hashed(settings, QUERY_ID.name):
        return stored_id(settings, QUERY_ID.name, f"coalesce({query}, {own})")
    return f"coalesce({query}, {stored_id(settings, LIST_ID.name, own)})"


def _number_items(reading: Reading, accepted: Accepted, supplied: Sequence[str]) -> Accepted:
    """Session table ``item_numbers``: items as they were held, their numbers and attributes."""
    log = f"{reading.database}.{LOG_ITEMS.name}"
    count = accepted.checked.items.count
    item_rows = np.zeros(count, dtype=np.int64)
    for piece, _ in accepted.pieces():
        item_rows += np.bincount(piece.columns["item"], minlength=count)
    there = np.flatnonzero(item_rows)
    held = pyarrow.table(
        {
            "held": there,
            "key": accepted.checked.items.ids.take(pyarrow.array(there)),
            "item_rows": item_rows[there],
        }
    )
    kept = stored_id(reading.settings, ITEM_ID.name, "CAST(key AS VARCHAR)")
    with reading.registered("items_held", held):
        reading.run(
            "CREATE OR REPLACE TEMP TABLE item_keys AS "
            f"SELECT held, key, item_rows, {kept} AS item_id FROM items_held"
        )
    reading.run(
        f"INSERT INTO {log} SELECT ({_following(reading, LOG_ITEMS.name)} ())::INTEGER, item_id "
        f"FROM item_keys ANTI JOIN {log} USING (item_id)"
    )
    values = "".join(
        f", coalesce(known.{internal(name)}, {literal(UNKNOWN)}) AS {internal(name)}"
        for name in supplied
    )
    # The item table has its ids as they were delivered.
    join = "LEFT JOIN item_table AS known ON known.item_id = CAST(key AS VARCHAR)"
    joined = ", known.item_id IS NOT NULL AS joined"
    columns = ", ".join(map(internal, supplied))
    classes = (
        f", (dense_rank() OVER (ORDER BY {columns}) - 1)::INTEGER AS class" if supplied else ""
    )
    if not supplied:
        join = joined = ""
    reading.run(
        f"CREATE OR REPLACE TEMP TABLE item_numbers AS SELECT *{classes} FROM "
        f"(SELECT held, key, item, item_rows{joined}{values} "
        f"FROM item_keys JOIN {log} AS log USING (item_id) {join})"
    )
    items = _numbered(reading, "SELECT held, item FROM item_numbers", count)
    if not supplied:
        return replace(accepted, items=items)
    count_joined(reading)
    of_item = _numbered(reading, "SELECT held, class FROM item_numbers", count)
    return replace(
        accepted, items=items, item_class=of_item, classes=int(of_item.max(initial=0)) + 1
    )


def _number_cells(reading: Reading, accepted: Accepted, supplied: Sequence[str]) -> Accepted:
    """``accepted`` with the cell of each kind of row.

    Values that differ in how they are written only are one, and so are those that the settings
    count as one.
    """
    names = reading.settings.attribute_columns
    table = log_cells(names)
    log = f"{reading.database}.{table.name}"
    if not names:
        reading.run(f"INSERT INTO {log} SELECT 0 WHERE NOT EXISTS (FROM {log})")
        return replace(accepted, cells=np.zeros(1, dtype=np.int64))
    kinds = _kinds(reading, accepted, supplied)
    meant = ", ".join(
        f"{group_meant(reading, name, tidy(internal(name)))} AS {quoted('group ' + name)}"
        for name in names
    )
    with reading.registered("kinds_held", kinds):
        reading.run(
            f"CREATE OR REPLACE TEMP TABLE cell_values AS SELECT *, {meant} FROM kinds_held"
        )
        count_rows(reading, "kinds_held", names)
    new = ", ".join(f"{quoted('group ' + name)} AS {internal(name)}" for name in names)
    columns = ", ".join(map(internal, names))
    reading.run(
        f"INSERT INTO {log} BY NAME SELECT "
        f"({_following(reading, table.name)} (ORDER BY {columns}))::INTEGER AS cell, * "
        f"FROM (SELECT DISTINCT {new} FROM cell_values) ANTI JOIN {log} USING ({columns})"
    )
    on = " AND ".join(f"found.{quoted('group ' + name)} = log.{internal(name)}" for name in names)
    size = int(kinds["kind"].to_numpy().max(initial=0)) + 1
    cells = _numbered(
        reading, f"SELECT kind, cell FROM cell_values AS found JOIN {log} AS log ON {on}", size
    )
    reading.run(
        "INSERT INTO cell_rows SELECT log.cell, found.times FROM cell_values AS found "
        f"JOIN {log} AS log ON {on}"
    )
    return replace(accepted, cells=cells)


def _kinds(reading: Reading, accepted: Accepted, supplied: Sequence[str]) -> pyarrow.Table:
    """What rows say of their items, each once: ``kind``, ``times``, and texts by attribute."""
    counts = np.zeros(0, dtype=np.int64)
    for piece, _ in accepted.pieces():
        found = np.bincount(accepted.kinds(piece), minlength=len(counts))
        found[: len(counts)] += counts
        counts = found
    kind = np.flatnonzero(counts)
    own, of_item = np.divmod(kind, accepted.classes)
    columns: dict[str, Any] = {"kind": kind, "times": counts[kind]}
    for name, texts in accepted.checked.combination_values().items():
        columns["=" + name] = texts.take(pyarrow.array(own))
    if supplied:
        said = ", ".join(map(internal, supplied))
        known = reading.connection.sql(
            f"SELECT DISTINCT class, {said} FROM item_numbers ORDER BY class"
        ).to_arrow_table()
        for name in supplied:
            columns["=" + name] = known["=" + name].take(pyarrow.array(of_item))
    return pyarrow.table(columns)


class AcceptedLog:
    """All rows of a batch that were let in, in hand: to be counted, and to be stored."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._parts: list[Accepted] = []
        self._stored = False

    def add(self, part: Accepted) -> None:
        """Add some lists that no part before holds."""
        self._parts.append(part)

    def chunks(self, columns: Sequence[str], chunk_rows: int = CHUNK_ROWS) -> Iterator[RowChunk]:
        """Whole lists, each with ``columns`` of log_rows, about ``chunk_rows`` rows at a time."""
        floats = {column.name for column in NUMBERS} & {*columns}
        for part in self._parts:
            for held in part.pieces():
                for piece, number in _cut(*held, chunk_rows):
                    found = _columns(part, piece, number, {"position", *columns})
                    yield RowChunk(
                        number,
                        np.cumsum(piece.lengths) - piece.lengths,
                        piece.lengths,
                        {name: each for name, each in found.items() if name not in floats},
                        {name: found.get(name, _nothing(piece.rows)) for name in floats},
                    )

    def extent(self) -> Extent:
        """How many rows there are, how deep, and how many say each number."""
        known = dict.fromkeys((column.name for column in NUMBERS), 0)
        rows = deepest = longest = 0
        for part in self._parts:
            for piece, _ in part.pieces():
                rows += piece.rows
                longest = max(longest, int(piece.lengths.max()))
                deepest = max(deepest, int(piece.columns.get("rank", piece.lengths).max()))
                for name in part.checked.numbers:
                    known[name] += part.known(piece, name)
        return Extent(rows, deepest, longest, known)

    def store(self) -> None:
        """Write the rows to the batch file, for statements; once is enough."""
        if self._stored:
            return
        self._stored = True
        reading = self._reading
        for part in self._parts:
            with reading.registered("rows_held", _reader(part, reading.entries)):
                reading.run(
                    f"INSERT INTO {reading.database}.{reading.entries.name} BY NAME "
                    "SELECT * FROM rows_held"
                )


def _reader(part: Accepted, entries: Table) -> pyarrow.RecordBatchReader:
    """All rows of a part, in the columns of log_entries."""

    def batches() -> Iterator[pyarrow.RecordBatch]:
        for piece, number in part.pieces():
            columns = _columns(part, piece, number, {*entries.names})
            arrays = []
            for column in entries.columns:
                values, missing = columns[column.name], None
                if column.name in part.checked.numbers:
                    missing = (
                        np.isnan(values) if part.checked.extremes[column.name].missing else None
                    )
                    values = values if missing is None else np.where(missing, 0.0, values)
                kind = column.arrow.to_pandas_dtype()
                arrays.append(pyarrow.array(values.astype(kind, copy=False), mask=missing))
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=entries.arrow)

    return pyarrow.RecordBatchReader.from_batches(entries.arrow, batches())


def _columns(
    part: Accepted, piece: Piece, number: IntArray, names: Set[str]
) -> dict[str, npt.NDArray[Any]]:
    """Those columns of log_rows that the log has of ``names``; missing numbers are NaN."""
    starts = np.cumsum(piece.lengths) - piece.lengths
    place = places_of(starts, piece.lengths)
    columns: dict[str, npt.NDArray[Any]] = {
        RANK.name: piece.columns.get("rank", place),
        POSITION.name: place,
    }
    if "list" in names:
        columns["list"] = np.repeat(number, piece.lengths)
    if "item" in names:
        columns["item"] = part.items.take(piece.columns["item"])
    if "cell" in names:
        columns["cell"] = part.cells.take(part.kinds(piece))
    for name in part.checked.numbers:
        if name in names:
            columns[name] = decoded(piece.columns[name])
    return columns


def _cut(piece: Piece, number: IntArray, rows: int) -> Iterator[tuple[Piece, IntArray]]:
    """The lists of a piece, about ``rows`` rows at a time."""
    if piece.rows <= 2 * rows:
        yield piece, number
        return
    ends = np.cumsum(piece.lengths)
    cuts = np.unique(np.searchsorted(ends, np.arange(rows, int(ends[-1]), rows)) + 1)
    for start, stop in pairwise([0, *cuts[cuts < len(ends)].tolist(), len(ends)]):
        here = slice(int(ends[start] - piece.lengths[start]), int(ends[stop - 1]))
        columns = {name: column[here] for name, column in piece.columns.items()}
        yield Piece(piece.first, piece.lengths[start:stop], columns), number[start:stop]


def _nothing(rows: int) -> npt.NDArray[np.float64]:
    return np.full(rows, np.nan)
