"""One scan of what was delivered: its lists, and which of them have to be looked at closely.

Nearly all lists of nearly all logs obey every rule, and proving that is much cheaper than saying
what is wrong.  A list is *suspect* if it may break a rule; every list that breaks one is suspect.

Not here: what is wrong with a suspect list (``staged_rows``, ``rejected_rows``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.errors import DataRefused
from pipeline.formatting.numbers import counted
from pipeline.log.reading import Reading, key_of, value_of
from pipeline.log.sources import Source
from pipeline.log.staged_rows import is_text, suspicious
from pipeline.log.values import has_control
from schemas.columns import internal
from schemas.offenders import passes
from schemas.rules import BINARY, LIST_ID, MODEL_VERSION, QUERY_ID, RANK, RELEVANCE

SURVEY = "survey"
"""Session table: a row per list and per way in which its rows describe the request."""
SUSPECTS = "suspects"
"""Session table: keys of the lists that are looked at closely."""
NOT_BINARY = f"NOT ({' AND '.join(passes(check, '{0}') for check in BINARY.checks)})"
"""SQL of a relevance that is known and neither 0 nor 1."""


@dataclass(frozen=True)
class Surveyed:
    """What the survey found of the lists that are not suspect.

    ``apart``: rows of one list stand apart in the files, so storing has to sort them.
    """

    lists: int
    rows: int
    graded_rows: int
    suspects: int
    apart: bool


def described(reading: Reading) -> list[str]:
    """SQL names, in ``delivered`` and the survey, of what a list says of its request."""
    said = [key_of(each) for each in (QUERY_ID, MODEL_VERSION) if each.name in reading.logged]
    slices = [name for name in reading.settings.slices if name in reading.logged]
    return said + [internal(name) for name in slices]


def survey(reading: Reading) -> None:
    """Scan ``delivered`` once; fill the survey and the suspects."""
    keys = [f"{key_of(LIST_ID)} AS key", *described(reading)]
    graded = NOT_BINARY.format(value_of(RELEVANCE)) if "relevance" in reading.logged else "false"
    places = "count(*)"
    if RANK.name in reading.logged:
        # Closing gaps hides that a rank stood twice, so this has to be seen here.
        rank = value_of(RANK)
        known = {"reject": f"max({rank})", "compact": f"count(DISTINCT {rank})"}
        places = known.get(reading.settings.ranks.gaps, places)
    reading.run(
        f"CREATE OR REPLACE TEMP TABLE {SURVEY} AS SELECT {', '.join(keys)}, count(*) AS rows, "
        f"min(number) AS first, max(number) AS last, {places} AS places, "
        f"count(*) FILTER ({graded}) AS graded, "
        f"coalesce(bool_or({suspicious(reading)}), false) AS broken, "
        "min(file) AS first_file, max(file) AS last_file FROM delivered GROUP BY ALL"
    )
    control = has_control("key") if is_text(reading, LIST_ID) else "false"
    # Ranks 1..n are whole numbers with the greatest n; that none stands twice is proven later.
    reading.run(
        f"CREATE OR REPLACE TEMP TABLE {SUSPECTS} AS SELECT key FROM {SURVEY} GROUP BY key "
        f"HAVING key IS NULL OR count(*) > 1 OR bool_or(broken) OR max(places) <> sum(rows) "
        f"OR {control}"
    )


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


def too_long(reading: Reading, most: int) -> tuple[int, int]:
    """How many lists have more than ``most`` rows, and the rows of the longest."""
    ((lists, longest),) = reading.rows(
        "SELECT count(*), coalesce(max(rows), 0)::BIGINT FROM ("
        f"SELECT sum(rows) AS rows FROM {SURVEY} WHERE key IS NOT NULL GROUP BY key) "
        f"WHERE rows > {most}"
    )
    return lists, longest


def suspect(reading: Reading, lists: list[str]) -> None:
    """Make more lists suspects, by their ids."""
    reading.connection.execute(
        f"INSERT INTO {SUSPECTS} SELECT key FROM {SURVEY} "
        "WHERE CAST(key AS VARCHAR) IN (SELECT unnest(?))",
        [lists],
    )


def clean() -> str:
    """SQL of the rows of the survey whose lists are not suspect."""
    return f"(FROM {SURVEY} ANTI JOIN {SUSPECTS} USING (key) WHERE key IS NOT NULL)"


def surveyed(reading: Reading) -> Surveyed:
    """Sums over the survey."""
    ((lists, rows, graded, apart),) = reading.rows(
        "SELECT count(*), coalesce(sum(rows), 0), coalesce(sum(graded), 0), "
        f"coalesce(bool_or(last - first + 1 <> rows), false) FROM {clean()}"
    )
    ((suspects,),) = reading.rows(f"SELECT count(*) FROM {SUSPECTS}")
    return Surveyed(lists, rows, graded, suspects, bool(apart))
