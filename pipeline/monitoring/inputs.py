"""What an assessment looks at, read from the history once.

Not here: what earlier assessments left there (``previous``).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property

import duckdb
import numpy as np
import pyarrow
from numpy.typing import NDArray

from metrics import UNKNOWN, WHOLE
from pipeline.monitoring.compared_groups import GroupValues, read_compared
from pipeline.monitoring.gates import TEXT_OF_DIFFERENCE
from pipeline.monitoring.subjects import Part, Series
from pipeline.settings.audit import Settings
from pipeline.settings.choices import followed_scores
from pipeline.trends import Facts
from schemas.columns import Row
from schemas.monitoring import SERIES_KEY
from schemas.scores import LABEL

Groups = Mapping[tuple[Series, str], Row]
"""Values of groups, by series (without aggregation) and group."""
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
_OF_GROUPS = (
    *("value", "lower", "upper", "compared_with", "difference_lower", "difference_upper", "n"),
    *("queries", "effective_queries", "lists", "relevant"),
)
"""What texts of alerts may say of a group, and what its verdict rests on."""
SERIES_ORDER = (
    f"slice <> '{WHOLE}', slice, slice_value, attribute NULLS FIRST, metric, "
    "aggregation NULLS FIRST"
)


@dataclass(frozen=True)
class Matrix:
    """Followed scores of consecutive batches.

    ``values`` has the shape (batches, series), NaN where there is none; ``worst`` holds the group
    that is worst off, as an index into ``groups``, -1 where there is none.  ``unfair`` is 1 for
    series that are unfair when high and -1 for the others; ``parent`` the column of the same score
    of the whole batch, -1 for none.  ``compared`` are the values of the groups that a series folds,
    by column; the others have none.
    """

    batches: tuple[str, ...]
    series: tuple[Series, ...]
    values: Floats
    worst: Integers
    groups: tuple[str, ...]
    unfair: Integers
    compared: Mapping[int, GroupValues] = field(default_factory=dict)

    @property
    def is_whole(self) -> NDArray[np.bool_]:
        """Which series are about whole batches."""
        return np.array([each.part.is_whole for each in self.series], dtype=np.bool_)

    @property
    def parent(self) -> Integers:
        """For each series of a slice, the column of its whole batch."""
        at = {each: index for index, each in enumerate(self.series)}
        return np.array(
            [-1 if each.part.is_whole else at.get(each.whole, -1) for each in self.series],
            dtype=np.int64,
        )

    @cached_property
    def parts(self) -> dict[Part, Integers]:
        """The columns of each attribute of each slice."""
        found: dict[Part, list[int]] = {}
        for column, series in enumerate(self.series):
            found.setdefault(series.part, []).append(column)
        return {part: np.array(columns) for part, columns in found.items()}

    @property
    def weekdays(self) -> Integers:
        """Day of the week of each batch, 0 for Mondays; -1 where its key is no date."""
        return np.array([_weekday(batch) for batch in self.batches], dtype=np.int64)


def _weekday(batch: str) -> int:
    try:
        return date.fromisoformat(batch).weekday()
    except ValueError:
        return -1


def read_matrix(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    batches: Sequence[str],
    *,
    whole_only: bool = False,
) -> Matrix:
    """Followed scores of ``batches``, which are in key order; or whole batches only, no groups."""
    scores = followed_scores(settings)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE followed AS SELECT batch, value, worst_group, "
        f"{', '.join(SERIES_KEY)}, dense_rank() OVER (ORDER BY {SERIES_ORDER}) - 1 AS place "
        "FROM history.fairness_history "
        f"WHERE list_contains(?, batch) AND list_contains(?, {LABEL}) AND (slice = ? OR NOT ?)",
        [list(batches), list(scores), WHOLE, whole_only],
    )
    series = tuple(
        Series(*row)
        for row in connection.execute(
            f"SELECT DISTINCT ON (place) {', '.join(SERIES_KEY)} FROM followed ORDER BY place"
        ).fetchall()
    )
    cells = connection.sql("SELECT batch, place, value, worst_group FROM followed").to_arrow_table()
    connection.execute("DROP TABLE followed")
    row_of = {batch: index for index, batch in enumerate(batches)}
    rows = _coded(cells["batch"], row_of)
    columns = cells["place"].to_numpy().astype(np.int64)
    shape = (len(batches), len(series))
    values = np.full(shape, np.nan)
    values[rows, columns] = cells["value"].to_numpy().astype(np.float64)
    groups = tuple(sorted(set(cells["worst_group"].unique().to_pylist()) - {None}))
    worst = np.full(shape, -1, dtype=np.int64)
    worst[rows, columns] = _coded(
        cells["worst_group"], {group: at for at, group in enumerate(groups)}
    )
    unfair = np.array(
        [1 if scores[each.label].alarm == "high" else -1 for each in series], dtype=np.int64
    )
    compared = {} if whole_only else read_compared(connection, settings, batches, series)
    return Matrix(tuple(batches), series, values, worst, groups, unfair, compared)


def _coded(column: pyarrow.ChunkedArray, codes: Mapping[str, int]) -> Integers:
    """``codes`` of the texts of a column, -1 for what has none."""
    encoded = column.combine_chunks().dictionary_encode()
    table = [codes.get(text, -1) for text in encoded.dictionary.to_pylist()]
    indices = encoded.indices.fill_null(len(table)).to_numpy(zero_copy_only=False)
    found: Integers = np.array([*table, -1], dtype=np.int64)[indices]
    return found


def read_facts(connection: duckdb.DuckDBPyConnection, batches: Sequence[str]) -> dict[str, Facts]:
    """What gates look at, for those of ``batches`` whose counts are kept."""
    groups: dict[str, dict[str, dict[str, int]]] = {}
    for batch, attribute, group, rows in connection.execute(
        "SELECT batch, attribute, group_value, sum(rows)::BIGINT FROM history.rank_counts "
        "WHERE slice = ? AND list_contains(?, batch) GROUP BY ALL ORDER BY ALL",
        [WHOLE, list(batches)],
    ).fetchall():
        groups.setdefault(batch, {}).setdefault(attribute, {})[group] = rows
    # A history that was not written to since an upgrade lacks what is new.
    counted = "rows_joined" in connection.sql("FROM history.batches LIMIT 0").columns
    joined = "rows_joined, ids_differ_in" if counted else "NULL, NULL"
    found = {}
    for batch, rows, lists, relevance, click, joined_rows, differ in connection.execute(
        "SELECT batch, slice_counts.rows, slice_counts.lists, coalesce(relevance_known, 0), "
        f"coalesce(click_known, 0), {joined} "
        "FROM history.slice_counts LEFT JOIN history.batches USING (batch) "
        "WHERE slice = ? AND list_contains(?, batch)",
        [WHOLE, list(batches)],
    ).fetchall():
        here = groups.get(batch, {})
        found[batch] = Facts(
            rows=rows,
            lists=lists,
            relevance_known=relevance,
            click_known=click,
            unknown={
                attribute: counts.get(UNKNOWN, 0) / max(sum(counts.values()), 1)
                for attribute, counts in here.items()
            },
            groups={
                attribute: {name: n for name, n in counts.items() if name != UNKNOWN}
                for attribute, counts in here.items()
            },
            joined=joined_rows,
            ids_differ=TEXT_OF_DIFFERENCE.get(differ),
        )
    return found


@dataclass(frozen=True)
class Presence:
    """What consecutive batches hold of each group; arrays of shape (batches, groups).

    ``groups`` are pairs of attribute and group, rows without a group left out.  ``queries`` and
    ``rows`` are counts of whole batches, ``told`` is whether the batch knows the attribute at all.
    """

    batches: tuple[str, ...]
    groups: tuple[tuple[str, str], ...]
    queries: Integers
    rows: Integers
    told: NDArray[np.bool_]


def read_presence(
    connection: duckdb.DuckDBPyConnection,
    batches: Sequence[str],
    named: Collection[tuple[str, str]] = (),
) -> Presence:
    """What ``batches``, which are in key order, hold of the groups of any, and of those ``named``.

    Where queries were not counted, lists stand for them; where neither was, there are none.
    """
    # A history that was not written to since an upgrade lacks what is new.
    counted = "queries" in connection.sql("FROM history.prefix_stats LIMIT 0").columns
    held = "any_value(held.queries), any_value(held.lists)" if counted else "any_value(held.lists)"
    cells = connection.execute(
        "SELECT batch, attribute, group_value, sum(rank_counts.rows)::BIGINT, "
        f"coalesce({held}, 0)::BIGINT "
        "FROM history.rank_counts LEFT JOIN history.prefix_stats AS held "
        "USING (batch, slice, slice_value, attribute, group_value) "
        "WHERE slice = ? AND list_contains(?, batch) GROUP BY ALL",
        [WHOLE, list(batches)],
    ).fetchall()
    found = {(attribute, group) for _, attribute, group, *_ in cells if group != UNKNOWN}
    groups = tuple(sorted(found | {*named}))
    row_of = {batch: row for row, batch in enumerate(batches)}
    column_of = {group: column for column, group in enumerate(groups)}
    about: dict[str, list[int]] = {}
    for column, (attribute, _) in enumerate(groups):
        about.setdefault(attribute, []).append(column)
    shape = (len(batches), len(groups))
    queries, rows = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    told = np.zeros(shape, dtype=np.bool_)
    for batch, attribute, group, size, with_it in cells:
        row = row_of[batch]
        told[row, about.get(attribute, [])] = True
        if group != UNKNOWN:
            column = column_of[attribute, group]
            queries[row, column], rows[row, column] = with_it, size
    return Presence(tuple(batches), groups, queries, rows, told)


def read_attributes(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Attributes of all scores, intersections among them, by name."""
    rows = connection.execute(
        "SELECT DISTINCT attribute FROM history.fairness_history WHERE attribute IS NOT NULL "
        "ORDER BY ALL"
    ).fetchall()
    return [attribute for (attribute,) in rows]


def read_verdicts(
    connection: duckdb.DuckDBPyConnection, batches: Sequence[str]
) -> dict[str, list[tuple[Series, str]]]:
    """Series of each batch that are definitely ok or a breach by themselves.

    ``composition`` is neither: the value is still beyond the threshold, so that nothing is over,
    but the order of the lists is not shown to be what is unfair, so that nothing is found.
    """
    found: dict[str, list[tuple[Series, str]]] = {}
    for batch, verdict, *key in connection.execute(
        f"SELECT batch, verdict, {', '.join(SERIES_KEY)} FROM history.fairness_history "
        "WHERE list_contains(?, batch) AND verdict IN ('ok', 'breach') ORDER BY ALL",
        [list(batches)],
    ).fetchall():
        found.setdefault(batch, []).append((Series(*key), verdict))
    return found


def read_groups(
    connection: duckdb.DuckDBPyConnection, batch: str, metrics: Sequence[str]
) -> Groups:
    """Values of the groups of a batch, by series (without aggregation) and group."""
    rows = connection.execute(
        "SELECT slice, slice_value, attribute, metric, NULL, group_value, "
        f"{', '.join(_OF_GROUPS)} "
        "FROM history.group_history WHERE batch = ? AND list_contains(?, metric) "
        "ORDER BY ALL",
        [batch, list(metrics)],
    )
    return {
        (Series(*row[:5]), row[5]): dict(zip(_OF_GROUPS, row[6:], strict=True))
        for row in rows.fetchall()
    }


def read_scores(
    connection: duckdb.DuckDBPyConnection,
    batch: str,
    labels: Sequence[str],
    columns: Sequence[str] = ("*",),
) -> dict[Series, Row]:
    """Rows of fairness_history of a batch, by series: its key and ``columns``, by default all."""
    named = ", ".join(columns if "*" in columns else (*SERIES_KEY, *columns))
    rows = connection.sql(
        f"SELECT {named} FROM history.fairness_history "
        f"WHERE batch = ? AND list_contains(?, {LABEL})",
        params=[batch, list(labels)],
    ).to_arrow_table()
    return {Series.of(row): row for row in rows.to_pylist()}
