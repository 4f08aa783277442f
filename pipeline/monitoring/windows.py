"""Scores of the last days together, from the counts that the files of their batches hold.

What a small group is shown in one night proves nothing, and in a month it does.  A window is made
when its batch is merged, and again when one of its days is something else.

Not here: how counts are added up (``pipeline.counts.summed``), and what is found of windows
(``findings``).
"""

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, timedelta

import duckdb
import pyarrow

from pipeline.counts.summed import add_up, raise_queries, tables_of
from pipeline.errors import AuditError
from pipeline.monitoring.subjects import Series
from pipeline.scores.rows import validated
from pipeline.scores.verdicts import JUDGED, Cause
from pipeline.settings.audit import Settings, hash_of
from pipeline.store.paths import store_of
from pipeline.store.sessions import attach, attach_memory
from pipeline.store.tables import now
from pipeline.version import code_version
from schemas.columns import Row
from schemas.history import BATCHES
from schemas.scores import WINDOW_SCHEMA, WINDOW_SCORES

ENOUGH = 0.5
"""Share of a window's days that must be used for a verdict: a month of three days is no month."""
_SUM = "window_sum"
_TOLD_EVERY = 20
"""Batches after which it is said how far the work is: a minute, for large ones."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Windows:
    """Scores of windows that end with batches from a certain one on.

    ``rows`` of window_scores are those that belong in the place of what is stored of the batches
    ``changed``; ``judged`` are rows with a threshold, by batch, shortest window first.
    """

    rows: Sequence[Row] = ()
    changed: frozenset[str] = frozenset()
    judged: Mapping[str, Mapping[Series, Sequence[Row]]] = field(default_factory=dict)

    @property
    def table(self) -> pyarrow.Table:
        """The rows as the history takes them."""
        return validated(WINDOW_SCORES, WINDOW_SCHEMA, self.rows)


@dataclass(frozen=True)
class Window:
    """The ``days`` up to a ``batch``: those that were ``used``, and how many were not, and why."""

    batch: str
    days: int
    used: tuple[str, ...]
    missing: int
    gated: int
    other: int
    digest: str

    @property
    def first(self) -> str:
        """Its first day."""
        return _days_up_to(self.batch, self.days)[0]


def windows_of(
    batch: str, sizes: Iterable[int], manifest: Mapping[str, Row], gated: Collection[str]
) -> list[Window]:
    """The windows of so many days that end with a batch; none where its key is no day.

    ``manifest`` has the rows of the batches with scores.
    """
    found = []
    for size in sorted(set(sizes)):
        days = _days_up_to(batch, size)
        if not days:
            return []
        there = [day for day in days if day in manifest]
        kept = [day for day in there if day not in gated]
        now = manifest[batch]
        used = [day for day in kept if manifest[day]["rows_hash"] == now["rows_hash"]]
        made_of = [[day, *(manifest[day][name] for name in _MADE_OF)] for day in used]
        without = size - len(there), len(there) - len(kept), len(kept) - len(used)
        digest = hash_of([size, now["config_hash"], made_of, without])
        found.append(Window(batch, size, tuple(used), *without, digest))
    return found


_MADE_OF = ("input_hash", "rows_hash", "code_version")


def _days_up_to(batch: str, size: int) -> list[str]:
    try:
        last = date.fromisoformat(batch)
    except ValueError:
        return []
    if last.isoformat() != batch:
        return []
    return [(last - timedelta(days=ago)).isoformat() for ago in reversed(range(size))]


def look_at_windows(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    every: Sequence[str],
    start: str,
    gated: Collection[str],
    asked: Collection[str],
) -> Windows:
    """Windows that end with a batch from ``start`` on, those that are up to date as they stand.

    Those that the settings ask for are made of the batches ``asked`` for; others are made again as
    they were.  Where a batch was scored under other settings than these, what cannot be made again
    goes.
    """
    stored = _stored(connection, start)
    if not stored and not settings.windows:
        return Windows()
    manifest = _manifest(connection)
    due: dict[str, list[Window]] = {}
    for batch in every:
        if batch < start or (batch not in stored and batch not in asked):
            continue
        had = stored.get(batch, {})
        windows = windows_of(batch, settings.windows if batch in asked else had, manifest, gated)
        if had != {each.days: each.digest for each in windows}:
            due[batch] = windows
    rows: list[Row] = []
    changed = set()
    for at, (batch, windows) in enumerate(due.items()):
        if at and at % _TOLD_EVERY == 0:
            _LOG.info("windows of %d of %d batches are made", at, len(due))
        had = stored.get(batch, {})
        is_current = manifest[batch]["config_hash"] == settings.config_hash
        made = [row for each in windows if is_current for row in _rows(connection, settings, each)]
        # Of a window without any file there are no rows, however often it is made.
        if had != {row["days"]: row["days_hash"] for row in made}:
            changed.add(batch)
            rows += made
    judged = _judged(connection, start, changed, rows)
    return Windows(rows, frozenset(changed), judged)


def _stored(connection: duckdb.DuckDBPyConnection, start: str) -> dict[str, dict[int, str]]:
    """Digests of stored windows by batch and days."""
    found: dict[str, dict[int, str]] = {}
    for batch, days, digest in connection.execute(
        "SELECT DISTINCT batch, days, days_hash FROM history.window_scores WHERE batch >= ?",
        [start],
    ).fetchall():
        found.setdefault(batch, {})[days] = digest
    return found


def _manifest(connection: duckdb.DuckDBPyConnection) -> dict[str, Row]:
    rows = connection.sql(
        f"SELECT batch, config_hash, {', '.join(_MADE_OF)} FROM history.{BATCHES.name} "
        "WHERE revision > 0"
    ).to_arrow_table()
    return {row["batch"]: row for row in rows.to_pylist()}


def _judged(
    connection: duckdb.DuckDBPyConnection, start: str, changed: Collection[str], rows: Sequence[Row]
) -> dict[str, dict[Series, list[Row]]]:
    standing = connection.sql(
        "FROM history.window_scores WHERE batch >= ? AND status <> 'not_judged' "
        "AND NOT list_contains(?, batch)",
        params=[start, sorted(changed)],
    ).to_arrow_table()
    found: dict[str, dict[Series, list[Row]]] = {}
    here = [row for row in rows if row["status"] != "not_judged"]
    for row in sorted([*standing.to_pylist(), *here], key=lambda each: int(each["days"])):
        found.setdefault(row["batch"], {}).setdefault(Series.of(row), []).append(row)
    return found


def _rows(
    connection: duckdb.DuckDBPyConnection, settings: Settings, window: Window
) -> Iterator[Row]:
    """Rows of window_scores of one window; none where no day's file can be read."""
    from pipeline.counts.stored_counts import StoredCounts
    from pipeline.scores.evidence.doubt import Evidence
    from pipeline.scores.scoring import RunStamp, rows_of, scored

    with _attached(connection, settings, window.used) as names:
        if not names:
            return
        attach_memory(connection, _SUM)
        try:
            add_up(connection, names, _SUM, settings)
            evidence = Evidence(connection, _SUM, settings, settings.measures)
            raise_queries(connection, _SUM, evidence.occupied())
            counts = StoredCounts(connection, _SUM)
            stamp = RunStamp("", code_version(), settings.config_hash, "", now())
            found = scored(counts, settings, settings.measures)
            scores, _ = rows_of(found, counts, settings, window.batch, stamp, evidence)
        finally:
            connection.execute(f"DETACH {_SUM}")
    enough = len(names) >= ENOUGH * window.days
    about = {
        "days": window.days,
        "first_day": window.first,
        "days_used": len(names),
        "days_missing": window.missing,
        "days_gated": window.gated,
        "days_other": window.other + len(window.used) - len(names),
        "days_hash": window.digest,
    }
    few = {"status": "insufficient", "status_reason": Cause.FEW_DAYS.value, "assured": None}
    for score in scores:
        is_few = not enough and score["status"] in JUDGED
        row = {**score, **about, **(few if is_few else {})}
        yield {name: row.get(name) for name in WINDOW_SCORES.names}


@contextmanager
def _attached(
    connection: duckdb.DuckDBPyConnection, settings: Settings, batches: Sequence[str]
) -> Iterator[list[str]]:
    """Names of the attached files of batches, in their order, of those that can be added up."""
    store = store_of(settings)
    wanted = {table.name for table in tables_of(settings)}
    names = []
    with ExitStack() as open_files:
        for at, batch in enumerate(batches):
            path, name = store.batch(batch), f"day_{at}"
            # What is wrong with a file, `evenrank verify` says.
            with suppress(AuditError, duckdb.Error):
                if not path.exists():
                    continue
                attach(connection, path, name, read_only=True)
                open_files.callback(connection.execute, f"DETACH {name}")
                there = connection.execute(
                    "SELECT table_name FROM duckdb_tables() WHERE database_name = ?", [name]
                ).fetchall()
                if wanted <= {table for (table,) in there}:
                    names.append(name)
        yield names
