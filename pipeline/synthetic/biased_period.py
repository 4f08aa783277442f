"""Rankings with a known amount of bias, as the tables of a day or as the files of a period.

Not here: how a ranking is drawn (``biased_orders``), which rows a day has (``biased_days``).
"""

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pyarrow

from pipeline.synthetic.biased import BiasedRankings
from pipeline.synthetic.biased_checks import problems_of_period
from pipeline.synthetic.biased_days import BiasedDay
from pipeline.synthetic.biased_request import BiasedIncidents
from pipeline.synthetic.files import (
    CannotGenerate,
    DayFiles,
    WrittenLogs,
    calendar_of,
    faulty_lists,
    least_problems,
    refuse_strangers,
    write_logs,
)

_SOME_DAY = date(2026, 1, 1)


def biased_tables(
    rankings: BiasedRankings,
    lists: int,
    *,
    day: date = _SOME_DAY,
    chunk_lists: int | None = None,
    with_groups: bool = True,
) -> Iterator[pyarrow.Table]:
    """The log of one day, ``chunk_lists`` whole lists at a time; only these are in memory.

    ``with_groups`` adds the group of each item as a last column.  How many lists a table has
    does not show in the rows, and fewer lists are the first of more.
    """
    if problems := least_problems(lists, chunk_lists):
        raise CannotGenerate(problems)
    log = BiasedDay(rankings, day)
    for first, end in log.chunks(0, lists, chunk_lists):
        table, item = log.next_lists(first, end)
        if with_groups:
            table = table.append_column(rankings.attribute, rankings.groups_of(item))
        yield table


def biased_table(rankings: BiasedRankings, lists: int, *, day: date = _SOME_DAY) -> pyarrow.Table:
    """The log of one day with the group of each item, whole: for notebooks and tests."""
    return pyarrow.concat_tables(biased_tables(rankings, lists, day=day))


def generate_biased(
    out: Path,
    rankings: BiasedRankings,
    *,
    start: date,
    days: int,
    lists: int,
    incidents: BiasedIncidents | None = None,
    progress: Callable[[str], None] | None = None,
    chunk_lists: int | None = None,
) -> WrittenLogs:
    """Write ``out/items.parquet`` and ``out/logs/<day>/part-<n>.parquet``, ``lists`` lists a day.

    The group of an item stands in the item table.  ``progress`` is told a line for each day.
    Memory does not grow with days or lists.  Files of an earlier call, of this generator or of the
    marketplace, are replaced, and removed from these days' folders where this one has no use for
    them; a file that was not generated is never touched: it makes the call fail before anything
    is written.

    Raises CannotGenerate, or ValueError when there are strange files in ``out``.
    """
    # A datetime is a date too, but prints with its time.
    start = date(start.year, start.month, start.day)
    incidents = incidents or BiasedIncidents()
    if problems := problems_of_period(start, days, lists, incidents, rankings.slices, chunk_lists):
        raise CannotGenerate(problems)
    calendar = calendar_of(start, days)
    refuse_strangers(out, calendar)

    def log_of(day: date) -> DayFiles:
        if day in incidents.missing:
            return DayFiles(day, None)
        broken = day in incidents.broken
        faulty = faulty_lists(lists) if broken else None
        note = "some wrong rows" if broken else ""
        if day in incidents.unfair:
            where = " and ".join(f"{name} {value}" for name, value in incidents.only.items())
            note = f"phi {incidents.unfair[day]:g}" + (where and f" in {where}")
        phi = incidents.unfair.get(day)
        log = BiasedDay(rankings, day, unfair_phi=phi, only=incidents.only, faulty=faulty)
        return DayFiles(day, log.parts(lists, chunk_lists), note)

    return write_logs(
        out,
        rankings.item_table(),
        map(log_of, calendar),
        lists=lists,
        schema=rankings.schema,
        progress=progress,
    )
