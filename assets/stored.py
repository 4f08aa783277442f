"""What the file of a batch says, read back for checks and metadata.

Not here: the history and its copy.
"""

from dataclasses import dataclass
from typing import Any

from metrics import UNKNOWN, WHOLE
from pipeline.errors import NoData
from pipeline.settings.audit import Settings
from pipeline.store.batch_files import DATABASE, info, opened
from pipeline.store.paths import store_of
from schemas.columns import Row
from schemas.scores import FAIRNESS_HISTORY


@dataclass(frozen=True)
class Stored:
    """``scores`` are rows of fairness_history, whole batch first; ``info`` says how they came.

    ``groupless`` are attributes of which the whole batch has no group but ``unknown``.
    """

    scores: list[Row]
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
        rows = connection.sql(
            f"SELECT {FAIRNESS_HISTORY.column_list} FROM {DATABASE}.{FAIRNESS_HISTORY.name} "
            "ORDER BY slice <> 'all', slice, slice_value, attribute, metric, aggregation"
        )
        groupless = connection.execute(
            f"SELECT attribute FROM {DATABASE}.rank_counts WHERE slice = ? "
            "GROUP BY attribute HAVING bool_and(group_value = ?)",
            [WHOLE, UNKNOWN],
        ).fetchall()
        return Stored(
            rows.to_arrow_table().to_pylist(),
            info(connection),
            frozenset(attribute for (attribute,) in groupless),
        )
