"""Values of the groups that followed scores fold into one number.

Not here: the scores themselves (``inputs``), and groups against each other
(``trends.comparisons``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
from numpy.typing import NDArray

from metrics import UNKNOWN, Aggregation
from pipeline.monitoring.subjects import Series
from pipeline.settings.audit import Settings
from pipeline.settings.choices import followed_scores

_KEY = ("slice", "slice_value", "attribute", "metric")


@dataclass(frozen=True)
class GroupValues:
    """Values of ``groups`` in consecutive batches, shape (batches, groups), NaN for none.

    ``is_ratio`` says whether a score compares them by ratios, or by differences.
    """

    groups: tuple[str, ...]
    values: NDArray[np.float64]
    is_ratio: bool


def read_compared(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    batches: Sequence[str],
    series: Sequence[Series],
) -> dict[int, GroupValues]:
    """The groups of ``batches`` that scores compare, by the place of the score in ``series``.

    Only of scores whose batches have at least two groups with a value.
    """
    from pipeline.scores.evidence.comparisons import OF_RATIOS

    ratio_of = {
        label: score.aggregation.name in OF_RATIOS
        for label, score in followed_scores(settings).items()
        if isinstance(score.aggregation, Aggregation)
    }
    cells = connection.execute(
        f"SELECT {', '.join(_KEY)}, group_value, "
        "list(list_position(?, batch) - 1 ORDER BY batch), list(value ORDER BY batch) "
        "FROM history.group_history WHERE list_contains(?, batch) AND list_contains(?, metric) "
        "AND value IS NOT NULL AND (group_value <> ? OR ?) GROUP BY ALL ORDER BY ALL",
        [
            list(batches),
            list(batches),
            sorted({each.metric for each in series if each.label in ratio_of}),
            UNKNOWN,
            settings.unknown_group.in_aggregations,
        ],
    ).fetchall()
    held: dict[Series, dict[str, tuple[list[int], list[float]]]] = {}
    for part, value, attribute, metric, group, rows, values in cells:
        key = Series(part, value, attribute, metric, None)
        held.setdefault(key, {})[group] = rows, values
    found = {}
    for place, each in enumerate(series):
        groups = held.get(each.values, {})
        if each.label in ratio_of and len(groups) > 1:
            table = np.full((len(batches), len(groups)), np.nan)
            for at, (rows, values) in enumerate(groups.values()):
                table[rows, at] = values
            found[place] = GroupValues(tuple(groups), table, ratio_of[each.label])
    return found
