"""The copy that dashboards read: the history with documented views, swapped in atomically.

Not here: tables that only the copy has (``copy_tables``), and the views (``schemas.views``).
"""

import logging
import os
from pathlib import Path

import duckdb
import pyarrow

from pipeline.errors import AuditError
from pipeline.formatting.numbers import counted
from pipeline.history.commits import has_history, read_head
from pipeline.history.opening import HISTORY_DATABASE, open_history
from pipeline.privacy.suppression import Shown
from pipeline.publish.batch_times import batch_times
from pipeline.publish.conclusions.conclude import conclusions
from pipeline.publish.copy_tables import (
    Made,
    about,
    expected_batches,
    made_now,
    made_of,
    thresholds,
    watched,
)
from pipeline.publish.kept_lists import kept_lists
from pipeline.publish.score_catalogue import score_catalogue
from pipeline.settings.audit import Settings
from pipeline.store.checkpoints import remove_database
from pipeline.store.files import replace_file
from pipeline.store.paths import store_of
from pipeline.store.seen import is_seen, note
from pipeline.store.sessions import attach
from pipeline.store.tables import create, describe, transaction
from schemas.columns import Table
from schemas.copy import (
    ABOUT,
    BATCH_TIMES,
    CONCLUSIONS,
    COPY_TABLES,
    EXPECTED_BATCHES,
    LISTED_BATCHES,
    SCORE_CATALOGUE,
    THRESHOLDS,
    WORST_LISTS,
)
from schemas.history import BATCHES, HISTORY_TABLES
from schemas.monitoring import MARKERS
from schemas.views import VIEWS

_LOG = logging.getLogger(__name__)
_PUBLISHED = "published"
_NAMED = 4  # batches that a warning names
_UNFINISHED = ".new.duckdb"


def publish(settings: Settings) -> Path:
    """Replace the dashboard copy by the history as it stands; returns its path.

    Readers that hold the old copy open keep it; whoever opens next meets the new one.  The history
    is held meanwhile, so that no older copy takes the place of a newer one.
    """
    store = store_of(settings)
    new = store.root / f"dashboard.{os.getpid()}{_UNFINISHED}"
    with open_history(settings) as connection:
        # Nobody else is at it now, so these are of processes that were killed.
        for path in store.root.glob(f"dashboard.*{_UNFINISHED}*"):
            path.unlink()
        try:
            before = store.dashboard if is_seen(store, store.dashboard) else None
            write_copy(connection, new, settings, made_now(), before=before)
            replace_file(new, store.dashboard)
            note(store, store.dashboard)
        finally:
            remove_database(new)
    return store.dashboard


def publish_changes(settings: Settings) -> None:
    """Publish, unless the copy is that of the history and the schedule as they stand."""
    if stale(settings):
        publish(settings)


def stale(settings: Settings) -> bool:
    """Whether the dashboard copy is missing, not what was published, or of another history.

    Or of another schedule, or with other labels.
    """
    store = store_of(settings)
    if not has_history(store):
        return False
    if not is_seen(store, store.dashboard):
        return True
    with open_history(settings, read_only=True) as connection:
        head = read_head(connection)
        try:
            attach(connection, store.dashboard, _PUBLISHED, read_only=True)
            if head is None or head != read_head(connection, _PUBLISHED):
                return True
            return made_of(connection, _PUBLISHED, settings) is None
        except (AuditError, duckdb.Error):
            return True


def write_copy(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    settings: Settings,
    made: Made,
    *,
    before: Path | None = None,
    noting: bool = True,
) -> None:
    """Write the attached history to ``path``, a new file, with documented views.

    Where ``privacy.min_cell`` asks for it, without what is about too few, and tables that tell it.
    Equal histories give equal copies, but for what ``made`` says of the copy.  ``before``: a copy
    that is known to be right, of which worst lists may be taken over.  ``noting``: that a batch
    file was looked at is noted in the store.
    """
    kept = kept_lists(connection, settings, before=before, noting=noting)
    attach(connection, path, _PUBLISHED)
    shown = Shown(connection, settings)
    if uncounted := shown.uncounted:
        _LOG.warning(
            "%s: nothing is told of groups, whose items were never counted (privacy.min_cell); "
            "`evenrank run --from-counts` counts them where rows are kept, a run from the logs "
            "anywhere: %s%s",
            counted(len(uncounted), "batch"),
            ", ".join(uncounted[:_NAMED]),
            ", ..." if len(uncounted) > _NAMED else "",
        )
    tables = [table for table in HISTORY_TABLES if shown.tells(table)]
    if shown.hides:
        for table in tables:
            connection.execute(
                f"CREATE TABLE {_PUBLISHED}.{table.name} AS FROM {shown.table(table)}"
            )
    else:
        connection.execute(f"COPY FROM DATABASE {HISTORY_DATABASE} TO {_PUBLISHED}")
    expected = expected_batches(settings.schedule, made, watched(connection))
    named = connection.execute(
        f"SELECT batch FROM {HISTORY_DATABASE}.{BATCHES.name} "
        f"UNION SELECT batch FROM {HISTORY_DATABASE}.{MARKERS.name}"
    ).fetchall()
    keys = [batch for (batch,) in named] + [row["batch"] for row in expected]
    more = {
        EXPECTED_BATCHES: expected,
        BATCH_TIMES: batch_times(keys, settings.schedule.timezone),
        THRESHOLDS: thresholds(connection),
        SCORE_CATALOGUE: score_catalogue(connection, settings),
        ABOUT: [about(settings, made)],
    }
    connection.execute(f"USE {_PUBLISHED}")
    # One commit: each is written to the disk twice, and waited for.
    with transaction(connection):
        create(connection, _PUBLISHED, *COPY_TABLES)
        _insert(connection, LISTED_BATCHES, kept.batches)
        _insert(connection, WORST_LISTS, kept.lists)
        for table, rows in more.items():
            _insert(connection, table, pyarrow.Table.from_pylist(rows, schema=table.arrow))
        create(connection, _PUBLISHED, *VIEWS)
        rows = conclusions(connection, settings)
        _insert(connection, CONCLUSIONS, pyarrow.Table.from_pylist(rows, schema=CONCLUSIONS.arrow))
        describe(connection, _PUBLISHED, *tables, *COPY_TABLES, *VIEWS)
    connection.execute(f"CHECKPOINT {_PUBLISHED}")
    connection.execute("USE memory")
    connection.execute(f"DETACH {_PUBLISHED}")


def _insert(connection: duckdb.DuckDBPyConnection, table: Table, rows: pyarrow.Table) -> None:
    connection.register("new_rows", rows)
    connection.execute(f"INSERT INTO {_PUBLISHED}.{table.name} BY NAME FROM new_rows")
    connection.unregister("new_rows")
