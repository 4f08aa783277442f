"""The copy that dashboards read: the history with documented views, swapped in atomically."""

import os
from dataclasses import dataclass
from pathlib import Path

import duckdb

from pipeline.errors import AuditError
from pipeline.history import HISTORY_DATABASE, open_history
from pipeline.privacy.shown import Shown
from pipeline.sealing import has_history, read_head
from pipeline.settings import Settings
from pipeline.store import (
    Tell,
    attach,
    describe,
    remove_database,
    replace_file,
    store_of,
    transaction,
)
from schemas.columns import literal
from schemas.tables import HISTORY_TABLES, LABEL

_PUBLISHED = "published"
_UNFINISHED = ".new.duckdb"


@dataclass(frozen=True)
class View:
    """A view of the published copy: what one row is, and its query."""

    name: str
    text: str
    query: str


VIEWS: tuple[View, ...] = (
    View(
        "v_history",
        "Every current score; label is metric and aggregation as printed, release what was "
        "marked last.",
        f"SELECT fairness_history.*, {LABEL} AS label, releases.text AS release "
        "FROM fairness_history ASOF LEFT JOIN "
        "(SELECT batch, string_agg(text, '; ' ORDER BY source, text) AS text FROM markers "
        "GROUP BY batch) AS releases ON fairness_history.batch >= releases.batch",
    ),
    View("v_groups", "The value of every group behind the scores.", "FROM group_history"),
    View("v_batches", "The last attempt at each batch.", "FROM batches"),
    View(
        "v_latest",
        "Scores of the newest batch that has any.",
        "FROM v_history WHERE batch = (SELECT max(batch) FROM fairness_history)",
    ),
    View("v_breaches", "Scores beyond their threshold.", "FROM v_history WHERE status = 'breach'"),
    View(
        "v_alerts",
        "Every alert, open ones first and of these the newest; label is the score, or the gate.",
        f"SELECT *, {LABEL} AS label FROM alerts "
        "ORDER BY state <> 'open', opened DESC, slice <> 'all', alert",
    ),
    View(
        "v_trends",
        "Every followed score against the batches before it; label is the score.",
        f"SELECT *, {LABEL} AS label FROM trends",
    ),
    View("v_gates", "What every gate says about every batch.", "FROM gates"),
    View("v_markers", "Releases, the newest first.", "FROM markers ORDER BY batch DESC, source"),
    View(
        "v_change_points",
        "Changes of level of scores of whole batches; label is the score.",
        f"SELECT *, {LABEL} AS label FROM change_points",
    ),
)


def publish(settings: Settings, waiting: Tell | None = None) -> Path:
    """Replace the dashboard copy by the history as it stands; returns its path.

    Readers that hold the old copy open keep it; whoever opens next meets the new one.  The history
    is held meanwhile, so that no older copy takes the place of a newer one.
    """
    store = store_of(settings)
    new = store.root / f"dashboard.{os.getpid()}{_UNFINISHED}"
    with open_history(settings, waiting=waiting) as connection:
        # Nobody else is at it now, so these are of processes that were killed.
        for path in store.root.glob(f"dashboard.*{_UNFINISHED}*"):
            path.unlink()
        try:
            write_copy(connection, new, settings)
            replace_file(new, store.dashboard)
        finally:
            remove_database(new)
    return store.dashboard


def publish_changes(settings: Settings, waiting: Tell | None = None) -> None:
    """Publish, unless the copy is that of the history as it stands."""
    if stale(settings):
        publish(settings, waiting)


def stale(settings: Settings) -> bool:
    """Whether the dashboard copy is missing, unreadable or not of the history as it stands."""
    store = store_of(settings)
    if not has_history(store):
        return False
    with open_history(settings, read_only=True) as connection:
        head = read_head(connection)
        try:
            attach(connection, store.dashboard, _PUBLISHED, read_only=True)
            return head is None or head != read_head(connection, _PUBLISHED)
        except (AuditError, duckdb.Error):
            return True


def write_copy(connection: duckdb.DuckDBPyConnection, path: Path, settings: Settings) -> None:
    """Write the attached history to ``path``, a new file, with documented views.

    Where ``privacy.min_cell`` asks for it, without what is about too few, and tables that tell it.
    """
    attach(connection, path, _PUBLISHED)
    shown = Shown(connection, settings)
    tables = [table for table in HISTORY_TABLES if shown.tells(table)]
    if shown.hides:
        for table in tables:
            connection.execute(
                f"CREATE TABLE {_PUBLISHED}.{table.name} AS FROM {shown.table(table)}"
            )
    else:
        connection.execute(f"COPY FROM DATABASE {HISTORY_DATABASE} TO {_PUBLISHED}")
    connection.execute(f"USE {_PUBLISHED}")
    # One commit: each is written to the disk twice, and waited for.
    with transaction(connection):
        describe(connection, _PUBLISHED, *tables)
        for view in VIEWS:
            connection.execute(f"CREATE VIEW {view.name} AS {view.query}")
            connection.execute(f"COMMENT ON VIEW {view.name} IS {literal(view.text)}")
    connection.execute(f"CHECKPOINT {_PUBLISHED}")
    connection.execute("USE memory")
    connection.execute(f"DETACH {_PUBLISHED}")
