"""Rankings with a known amount of bias, as files: a period of days, and what is wrong with it.

Not here: how a ranking is drawn (``biased_orders``).
"""

from collections.abc import Callable
from datetime import date
from pathlib import Path

from pipeline.synthetic.biased import BiasedIncidents, BiasedRankings
from pipeline.synthetic.biased_checks import problems_of_period
from pipeline.synthetic.biased_days import BiasedDay
from pipeline.synthetic.files import (
    CannotGenerate,
    DayFiles,
    WrittenLogs,
    calendar_of,
    faulty_lists,
    refuse_strangers,
    write_logs,
)


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
