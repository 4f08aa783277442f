"""What the file of a batch says, read back for checks and metadata: all of it, and what is told.

Not here: the history and its copy.
"""

from dataclasses import dataclass
from typing import Any

import duckdb

from metrics import UNKNOWN, WHOLE
from pipeline.errors import NoData
from pipeline.privacy.small_cells import ALL
from pipeline.privacy.suppression import Shown
from pipeline.settings.audit import Settings
from pipeline.store.batch_files import DATABASE, info, opened
from pipeline.store.paths import store_of
from schemas.columns import Row
from schemas.scores import FAIRNESS_HISTORY


@dataclass(frozen=True)
class Stored:
    """``scores`` are rows of fairness_history, whole batch first; ``info`` says how they came.

    ``told`` are the scores as others may see them; ``few``: nothing is told of the batch at all.
    ``groupless`` are attributes of which the whole batch has no group but ``unknown``.
    """

    scores: list[Row]
    told: list[Row]
    few: bool
    info: dict[str, Any]
    groupless: frozenset[str] = frozenset()


def stored(settings: Settings, batch: str, work: str) -> Stored:
    """What a run computed for a batch so far, or what the batch had before; NoData if nothing."""
    path = store_of(settings).current(batch, work)
    if not path.exists():
        raise NoData(f"{batch}: nothing is stored yet; run the batch from its logs first")
    with opened(settings, path, read_only=True) as connection:
        there = connection.execute(
            "SELECT count(*) FROM duckdb_tables() WHERE database_name = ? AND table_name = ?",
            [DATABASE, FAIRNESS_HISTORY.name],
        ).fetchall()
        if there == [(0,)]:
            raise NoData(f"{batch}: no score is stored yet; compute its metrics first")
        groupless = connection.execute(
            f"SELECT attribute FROM {DATABASE}.rank_counts WHERE slice = ? "
            "GROUP BY attribute HAVING bool_and(group_value = ?)",
            [WHOLE, UNKNOWN],
        ).fetchall()
        shown = Shown(connection, settings, DATABASE)
        return Stored(
            _scores(connection, f"{DATABASE}.{FAIRNESS_HISTORY.name}"),
            _scores(connection, shown.table(FAIRNESS_HISTORY)),
            ALL in shown.hidden(batch).places,
            info(connection),
            frozenset(attribute for (attribute,) in groupless),
        )


def _scores(connection: duckdb.DuckDBPyConnection, source: str) -> list[Row]:
    rows = connection.sql(
        f"SELECT {FAIRNESS_HISTORY.column_list} FROM {source} "
        "ORDER BY slice <> 'all', slice, slice_value, attribute, metric, aggregation"
    )
    return list(rows.to_arrow_table().to_pylist())
