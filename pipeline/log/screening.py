"""Which lists have to be looked at closely: the survey of all, and those that are suspect.

Nearly all lists of nearly all logs obey every rule, and proving that is much cheaper than saying
what is wrong.  A list is *suspect* if it may break a rule; every list that breaks one is suspect.

Not here: looking at rows (``checked_lists``), and what is wrong with a suspect list
(``staged_rows``, ``rejected_rows``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow

from metrics.weights import BoolArray
from pipeline.errors import DataRefused
from pipeline.formatting.numbers import counted
from pipeline.log.checked_lists import CheckedLists
from pipeline.log.reading import Reading, key_of
from pipeline.log.sources import Source
from pipeline.log.staged_rows import is_blank, is_text
from pipeline.log.values import has_control
from schemas.offenders import passes
from schemas.rules import BINARY, ITEM_ID, LIST_ID, RANK

SURVEY = "survey"
"""Session table: a row per run of rows of one list."""
SUSPECTS = "suspects"
"""Session table: keys of the lists that are looked at closely."""
NOT_BINARY = f"NOT ({' AND '.join(passes(check, '{0}') for check in BINARY.checks)})"
"""SQL of a relevance that is known and neither 0 nor 1."""
CLEAN = f"(FROM {SURVEY} ANTI JOIN {SUSPECTS} USING (key) WHERE key IS NOT NULL)"
"""SQL of the rows of the survey whose lists are not suspect."""


@dataclass(frozen=True)
class Surveyed:
    """What the survey found of the lists that are not suspect."""

    lists: int
    rows: int
    graded_rows: int
    suspects: int


def survey(reading: Reading, checked: CheckedLists) -> None:
    """Fill the survey and the suspects."""
    found = checked.survey()
    broken = found["broken"].to_numpy() | _runs_of_odd_items(reading, checked)
    at = found.schema.get_field_index("broken")
    with reading.registered("runs", found.set_column(at, "broken", pyarrow.array(broken))):
        reading.run(f"CREATE OR REPLACE TEMP TABLE {SURVEY} AS FROM runs")
    odd = "false"
    if is_text(reading, LIST_ID):
        odd = f"{has_control('key')} OR {is_blank('key')}"
    reading.run(
        f"CREATE OR REPLACE TEMP TABLE {SUSPECTS} AS SELECT key FROM {SURVEY} GROUP BY key "
        f"HAVING key IS NULL OR count(*) > 1 OR bool_or(broken) OR {odd}"
    )


def _runs_of_odd_items(reading: Reading, checked: CheckedLists) -> BoolArray:
    """Which runs hold an item that is called what nobody can see, or nothing."""
    broken = np.zeros(checked.runs_seen, dtype=np.bool_)
    if not is_text(reading, ITEM_ID):
        return broken
    ids = checked.items.ids
    with reading.registered("items_held", pyarrow.table({"held": np.arange(len(ids)), "key": ids})):
        found = reading.connection.sql(
            f"SELECT held FROM items_held WHERE {has_control('key')} OR {is_blank('key')}"
        ).to_arrow_table()
    if not len(found):
        return broken
    odd = np.zeros(checked.items.count, dtype=np.bool_)
    odd[found["held"].to_numpy()] = True
    for piece in checked.rows:
        starts = np.cumsum(piece.lengths) - piece.lengths
        rows = np.flatnonzero(odd.take(piece.columns["item"]))
        broken[piece.first + np.searchsorted(starts, rows, side="right") - 1] = True
    return broken


_SPANNING = (
    f"(SELECT CAST(key AS VARCHAR) AS key FROM {SURVEY} WHERE key IS NOT NULL GROUP BY ALL "
    "HAVING min(first_file) < max(last_file))"
)
"""SQL of the lists that rows of several files belong to."""
_COUNTED = "regexp_matches(key, '[0-9]') AND NOT regexp_matches(key, '[0-9]{10}')"
"""SQL of what a list is called that somebody counted; longer numbers are drawn, or moments."""


def spanning(reading: Reading, sources: Sequence[Source]) -> str | None:
    """A remark on lists that rows of several files belong to, None without any.

    DataRefused where they may be several lists of one number: nothing tells them apart where ranks
    are not logged, and more of them have rows in several files than a cut between two files makes.
    """
    if reading.settings.lists_span_files or len(sources) < 2:
        return None
    ((lists, numbered, forms),) = reading.rows(
        f"SELECT count(*), count(*) FILTER ({_COUNTED}), "
        "count(DISTINCT regexp_replace(key, '[0-9]+', '', 'g')) "
        f"FILTER ({_COUNTED}) FROM {_SPANNING}"
    )
    if not lists:
        return None
    said = f"{counted(lists, 'list')} {'has' if lists == 1 else 'have'} rows in several files"
    # Names that differ in their numbers alone: each file may have begun them anew.
    begun_anew = numbered >= len(sources) and 2 * forms <= numbered
    if RANK.name not in reading.logged and begun_anew:
        raise DataRefused(
            f"{said}, and no ranks tell whether each is one list or the numbering begins anew in "
            "every file.\n  Make list_id unique over the files, log ranks, or, if each is one "
            "list, write `lists_span_files: true` in the settings."
        )
    return (
        f"{said}; if each is one list, `lists_span_files: true` in the settings says so, and this "
        "remark goes"
    )


def are_long(reading: Reading) -> bool:
    """Whether a list has more rows than any may have."""
    return bool(
        reading.rows(
            f"SELECT 1 FROM {SURVEY} WHERE key IS NOT NULL GROUP BY key "
            f"HAVING sum(rows) > {reading.settings.limits.list_rows} LIMIT 1"
        )
    )


def refuse_long(reading: Reading) -> None:
    """DataRefused where lists have more rows than any may have."""
    most = reading.settings.limits.list_rows
    key = key_of(LIST_ID)
    ((lists, longest),) = reading.rows(
        "SELECT count(*), coalesce(max(rows), 0)::BIGINT FROM ("
        f"SELECT count(*) AS rows FROM delivered WHERE {key} IS NOT NULL GROUP BY {key}) "
        f"WHERE rows > {most}"
    )
    if lists:
        raise DataRefused(
            f"{counted(lists, 'list')} of more than {counted(most, 'row')}, the longest of "
            f"{longest:,} (limits.list_rows in the settings)"
        )


def surveyed(reading: Reading) -> Surveyed:
    """Sums over the survey."""
    ((lists, rows, graded),) = reading.rows(
        f"SELECT count(*), coalesce(sum(rows), 0), coalesce(sum(graded), 0) FROM {CLEAN}"
    )
    ((suspects,),) = reading.rows(f"SELECT count(*) FROM {SUSPECTS}")
    return Surveyed(lists, rows, graded, suspects)
