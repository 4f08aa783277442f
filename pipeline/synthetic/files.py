"""Files of synthetic logs: their layout, how they replace each other, and what is planted in them.

Here: everything generators share once they know which rows to write.  Not here: any drawing of
lists.  A generated file carries a mark in its metadata, and only files with the mark are ever
replaced or removed.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from pipeline.errors import several
from pipeline.former_name import GENERATED
from pipeline.synthetic.queries import Floats, Integers

SIGNATURE = b"evenrank.generated"
"""Key in the metadata of every file written here."""


class CannotGenerate(ValueError):
    """What was asked for cannot be met; ``problems`` holds a text for each reason."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(several("nothing was generated:", list(problems)))
        self.problems = tuple(problems)


@dataclass(frozen=True)
class WrittenLogs:
    """What was written: ``lists`` and ``rows`` are totals over ``days``, in ``files``."""

    out: Path
    items: Path
    files: tuple[Path, ...]
    days: tuple[date, ...]
    lists: int
    rows: int


@dataclass(frozen=True)
class DayFiles:
    """The log of one day before it is written: the tables of each of its files, in turn.

    ``parts`` is None where no log is delivered.  ``note`` says what is special about the day.
    """

    day: date
    parts: Iterable[Iterable[pyarrow.Table]] | None
    note: str = ""


def write_logs(
    out: Path,
    items: pyarrow.Table,
    days: Iterable[DayFiles],
    *,
    lists: int,
    schema: pyarrow.Schema,
    progress: Callable[[str], None] | None,
) -> WrittenLogs:
    """Write ``out/items.parquet`` and ``out/logs/<day>/part-<n>.parquet``, one table at a time.

    ``lists`` is the number a day; ``progress`` is told a line for each day.  Files of an earlier
    call that this one has no use for are removed from the folders of these days.
    """
    (out / "logs").mkdir(parents=True, exist_ok=True)
    item_file = out / "items.parquet"
    _write(item_file, out, items.schema, [items])
    files: list[Path] = []
    delivered: list[date] = []
    rows = 0
    for log in days:
        folder = out / "logs" / log.day.isoformat()
        written: dict[Path, int] = {}
        if log.parts is not None:
            folder.mkdir(exist_ok=True)
            delivered.append(log.day)
            for part, tables in enumerate(log.parts):
                path = folder / f"part-{part}.parquet"
                written[path] = _write(path, out, schema, tables)
        _remove_leftovers(folder, keep=written)
        files.extend(written)
        rows += sum(written.values())
        if progress is not None:
            progress(_day_line(log, lists, sum(written.values())))
    return WrittenLogs(out, item_file, tuple(files), tuple(delivered), lists * len(delivered), rows)


def _write(path: Path, out: Path, schema: pyarrow.Schema, tables: Iterable[pyarrow.Table]) -> int:
    """Write one file, a row group per table, and give it its name when it is whole."""
    # The draft lies beside the logs: a reader of the day's folder cannot meet it.
    draft = out / f".{path.parent.name}-{path.name}.draft"
    rows = 0
    try:
        marked = schema.with_metadata({SIGNATURE: b"synthetic"})
        with pyarrow.parquet.ParquetWriter(draft, marked) as writer:
            for table in tables:
                writer.write_table(table, row_group_size=max(1, len(table)))
                rows += len(table)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return rows


def _remove_leftovers(folder: Path, keep: dict[Path, int]) -> None:
    """Remove what an earlier, larger call left in the day's folder, and the folder when empty."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path not in keep and _generated(path):
            path.unlink()
    with suppress(OSError):
        folder.rmdir()


def _day_line(log: DayFiles, lists: int, rows: int) -> str:
    if log.parts is None:
        return f"{log.day}  no log"
    return f"{log.day}  {lists:,} lists  {rows:,} rows{log.note and '  ' + log.note}"


def calendar_of(start: date, days: int) -> list[date]:
    """The days from ``start`` on; none where the period cannot be, see ``calendar_problems``."""
    if calendar_problems(start, days):
        return []
    return [start + timedelta(offset) for offset in range(days)]


def calendar_problems(start: date, days: int) -> list[str]:
    """Why there is no such period."""
    if days < 1:
        return [f"days is {days}: give 1 or more"]
    if days > (date.max - start).days + 1:
        return [f"days is {days}: the last day would lie after {date.max}, give fewer"]
    return []


def least_problems(lists: int, chunk_lists: int | None) -> list[str]:
    """Why there are no so many lists, so many at a time."""
    given = {"lists": lists, "chunk_lists": 1 if chunk_lists is None else chunk_lists}
    return [f"{name} is {n}: give 1 or more" for name, n in given.items() if n < 1]


def misplaced(placed: Sequence[tuple[str, date]], calendar: Sequence[date]) -> list[str]:
    """Why incidents, given as kind and day, cannot happen on these days."""
    if not calendar:
        return []
    problems = [
        f"{name} day {day} is not one of the days {calendar[0]} to {calendar[-1]}: move it there"
        for name, day in placed
        if not calendar[0] <= day <= calendar[-1]
    ]
    if len({day for _, day in placed}) < len(placed):
        both = ", ".join(f"{name} {day}" for name, day in placed)
        problems.append(f"two incidents on one day ({both}): give each a day of its own")
    return problems


def refuse_strangers(out: Path, calendar: Sequence[date]) -> None:
    """Real logs must never be mixed with synthetic ones, let alone be replaced by them."""
    folders = [out / "logs" / day.isoformat() for day in calendar]
    for folder in (out, out / "logs", *folders):
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is a file where a folder is needed: choose another out")
    found = [path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())]
    item_file = out / "items.parquet"
    found += [item_file] if item_file.exists() else []
    strangers = [path for path in found if not _generated(path)]
    if strangers:
        shown = [str(path) for path in strangers[:5]]
        more = len(strangers) - len(shown)
        shown += [f"and {more} more"] if more else []
        raise ValueError(
            several(
                f"{out} holds files that were not generated:",
                shown,
                "Nothing was written. Choose an empty folder for out, or move these files away.",
            )
        )


def _generated(path: Path) -> bool:
    """Whether an earlier call wrote this file."""
    if not path.is_file():
        return False
    try:
        metadata = pyarrow.parquet.read_metadata(path).metadata
    except (pyarrow.ArrowException, OSError):
        return False
    return bool({SIGNATURE, GENERATED} & {*(metadata or {})})


def numbered(prefix: str, numbers: Integers, below: int) -> pyarrow.Array:
    """Ids of one width, so that they sort as their numbers do."""
    padded = pyarrow.compute.ascii_lpad(
        pyarrow.array(numbers).cast(pyarrow.string()), width=len(str(below - 1)), padding="0"
    )
    return pyarrow.compute.binary_join_element_wise(prefix, padded, "")


def faulty_lists(lists: int) -> Integers:
    """Numbers of the lists that hold wrong rows: one in a hundred, at least one, at most four."""
    few = min(4, max(1, lists // 100))
    return np.asarray((2 * np.arange(few) + 1) * lists // (2 * few))


def plant_faults(
    first: int, faulty: Integers, ends: Integers, rank: Integers, relevance: Floats, item: Integers
) -> None:
    """Plant the four faults in those of the lists numbered from ``first`` that are ``faulty``.

    ``ends`` holds where the rows of each list end, shape (lists,).  The arrays of the rows change
    in place: between them, the faulty lists get a relevance above one, a relevance that is NaN,
    no row at rank four, and the item of rank six again at rank seven.
    """
    begins = np.concatenate([[0], ends[:-1]])
    for nth in np.flatnonzero((faulty >= first) & (faulty < first + len(ends))):
        place = faulty[nth] - first
        row = slice(begins[place], ends[place])
        _break(int(nth), len(faulty), rank[row], relevance[row], item[row])


def _break(nth: int, sharing: int, rank: Integers, relevance: Floats, item: Integers) -> None:
    """Plant in one list its part of the four faults, which ``sharing`` lists hold between them."""
    last = len(rank) - 1
    mine = [fault % sharing == nth for fault in range(4)]
    if mine[0]:
        relevance[0] = 1.2
    if mine[1]:
        relevance[min(1, last)] = np.nan
    # Shorter lists get these two at their end; a list of one row can hold neither.
    if mine[2] and last:
        rank[min(3, last) :] += 1
    if mine[3] and last:
        item[min(6, last)] = item[min(6, last) - 1]
