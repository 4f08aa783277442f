"""The copy that dashboards read: the history with documented views, swapped in atomically."""

import os
from dataclasses import dataclass
from pathlib import Path

from pipeline.history import HISTORY_DATABASE, open_history
from pipeline.settings import Settings
from pipeline.store import Tell, attach, describe, remove_database, replace_file, store_of
from schemas.columns import literal
from schemas.tables import HISTORY_TABLES, LABEL

_PUBLISHED = "published"


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

    Readers that hold the old copy open keep it; whoever opens next meets the new one.
    """
    store = store_of(settings)
    new = store.root / f"dashboard.{os.getpid()}.new.duckdb"
    remove_database(new)
    try:
        with open_history(settings, waiting=waiting) as connection:
            attach(connection, new, _PUBLISHED)
            connection.execute(f"COPY FROM DATABASE {HISTORY_DATABASE} TO {_PUBLISHED}")
            describe(connection, _PUBLISHED, *HISTORY_TABLES)
            connection.execute(f"USE {_PUBLISHED}")
            for view in VIEWS:
                connection.execute(f"CREATE VIEW {view.name} AS {view.query}")
                connection.execute(f"COMMENT ON VIEW {view.name} IS {literal(view.text)}")
            connection.execute(f"CHECKPOINT {_PUBLISHED}")
            connection.execute("USE memory")
            connection.execute(f"DETACH {_PUBLISHED}")
        replace_file(new, store.dashboard)
    finally:
        remove_database(new)
    return store.dashboard
