"""From stored counts to scores.

Rows of the log are not needed: a batch can be scored again, with other parameters, from its count
tables alone, whether they stand in its own file or in the history.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pandera.errors
import pyarrow

from metrics import (
    PREFIX_UNIT,
    UNIT,
    UNKNOWN,
    WHOLE,
    Counts,
    Evaluation,
    ItemCounts,
    ListSums,
    Measure,
    PairCounts,
    PrefixCounts,
    RankHistogram,
    evaluate,
    parse_measure,
)
from pipeline.errors import AuditError
from pipeline.list_measures import basis
from pipeline.settings import Settings
from pipeline.verdicts import status_of
from schemas.columns import Table, quoted
from schemas.tables import (
    FAIRNESS_HISTORY,
    GROUP_HISTORY,
    GROUP_SIZES,
    ITEM_GAPS,
    LIST_STATS,
    PAIR_STATS,
    PREFIX_STATS,
    RANK_COUNTS,
    SCORE_SCHEMA,
    SLICE_COUNTS,
)

Slice = tuple[str, str]
Row = dict[str, Any]


@dataclass(frozen=True)
class RunStamp:
    """What every stored row says about its origin."""

    run_id: str
    code_version: str
    config_hash: str
    input_hash: str
    computed_at: datetime


@dataclass(frozen=True)
class Holding:
    """How much of a slice holds a group."""

    lists: int
    queries: int


class StoredCounts:
    """The count tables of one batch, in an attached database.

    ``batch`` selects one batch of the history; a batch file holds only its own.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, database: str, batch: str | None = None
    ) -> None:
        self._connection = connection
        self._database = database
        self._batch = batch
        self._sizes: dict[str, dict[str, int]] = {}
        for row in self._read(GROUP_SIZES):
            self._sizes.setdefault(row["attribute"], {})[row["group_value"]] = row["items"]
        self.slices = {_slice(row): row for row in self._read(SLICE_COUNTS)}
        self._gaps = {_slice(row): row for row in self._read(ITEM_GAPS)}
        self._pairs = self._by_group(PAIR_STATS)
        self._prefixes = self._by_group(PREFIX_STATS)
        self._usable: dict[tuple[Slice, str | None], list[Row]] | None = None
        self._list_rows: dict[tuple[Slice, str | None], list[Row]] = {}
        for row in self._read(LIST_STATS):
            self._list_rows.setdefault((_slice(row), row["attribute"]), []).append(row)
        self._histograms = self._read_histograms()
        self._binary = self._is_binary()
        if not self.slices:
            raise AuditError("no counts are stored for the batch; run it from its logs first")

    def _select(self, table: Table, columns: str) -> pyarrow.Table:
        where, values = ("", []) if self._batch is None else ("WHERE batch = ?", [self._batch])
        order = ", ".join(map(quoted, table.key))
        return self._connection.sql(
            f"SELECT {columns} FROM {quoted(self._database)}.{table.name} {where} ORDER BY {order}",
            params=values,
        ).to_arrow_table()

    def _read(self, table: Table) -> list[Row]:
        return list(self._select(table, table.column_list).to_pylist())

    def _by_group(self, table: Table) -> dict[Slice, dict[tuple[str, str], Row]]:
        found: dict[Slice, dict[tuple[str, str], Row]] = {}
        for row in self._read(table):
            found.setdefault(_slice(row), {})[row["attribute"], row["group_value"]] = row
        return found

    def _read_histograms(self) -> dict[tuple[str, str, str], pd.DataFrame]:
        # The unit is a power of two, so dividing by it is exact.
        columns = ", ".join(
            f"{quoted(column.name)}::DOUBLE / {float(UNIT)!r} AS {quoted(column.name)}"
            if column.type == "HUGEINT"
            else quoted(column.name)
            for column in RANK_COUNTS.columns
        )
        frame = self._select(RANK_COUNTS, columns).to_pandas()
        keys = ["slice", "slice_value", "attribute"]
        return {(str(a), str(b), str(c)): rows for (a, b, c), rows in frame.groupby(keys)}

    def _is_binary(self) -> bool:
        """Whether every relevance of the batch is 0 or 1."""
        return all(not rows["graded"].any() for rows in self._histograms.values())

    def groups(self, attribute: str) -> tuple[str, ...]:
        """Groups of ``attribute`` in the batch, in name order."""
        return tuple(sorted(self._histograms[WHOLE, WHOLE, attribute]["group_value"].unique()))

    def counts(
        self,
        part: Slice,
        attribute: str,
        *,
        expected: str | None = None,
        settings: Settings,
    ) -> Counts:
        """Counts of one slice and attribute.

        ``expected`` adds groups that never appeared: those of the ``catalogue`` or the ``target``.
        """
        sizes, target = self._sizes.get(attribute), settings.targets.get(attribute)
        named = set({"catalogue": sizes, "target": target}.get(expected or "") or ())
        if not settings.unknown_group.in_aggregations:
            named -= {UNKNOWN}
        names = tuple(sorted({*self.groups(attribute), *named}))
        rows = self._histograms.get((*part, attribute))
        if rows is None:
            rows = self._histograms[WHOLE, WHOLE, attribute].iloc[:0]
        pairs, prefixes = self._pairs.get(part, {}), self._prefixes.get(part, {})

        def summed(
            table: dict[tuple[str, str], Row], column: str, unit: int
        ) -> np.ndarray[Any, np.dtype[np.float64]]:
            found = (table.get((attribute, name)) for name in names)
            return np.array([int(row[column]) / unit if row else 0.0 for row in found])

        return Counts(
            lists=self.slices[part]["lists"],
            groups=names,
            ranks=_histogram(rows, names),
            binary=self._binary,
            pairs=PairCounts(
                summed(pairs, "lists", 1).astype(np.int64), summed(pairs, "share_sum", UNIT)
            ),
            prefixes=PrefixCounts(
                *(
                    summed(prefixes, column, PREFIX_UNIT)
                    for column in ("entropy_sum", "share_sum", "own_sum")
                )
            ),
            items=self._items(part),
            catalogue=sizes,
            target=target,
            unknown_counts=settings.unknown_group.in_aggregations,
            known_rows=self._known_rows(part),
            list_sums=self._list_sums(part, attribute, names, settings),
        )

    def _known_rows(self, part: Slice) -> dict[str, int]:
        row = self.slices[part]
        known = {name: row[name] or 0 for name in row if name.endswith("_known")}
        return {"rows": row["rows"], **{n.removesuffix("_known"): v for n, v in known.items()}}

    def _list_sums(
        self, part: Slice, attribute: str, names: Sequence[str], settings: Settings
    ) -> dict[tuple[str, str | None], ListSums]:
        """Sums over lists of the slice, made under the settings as they are.

        What was counted at all has a row for the whole batch, if only to say that no list has a
        value; a slice without rows then has sums of nothing.
        """
        usable = self._usable_rows(settings)
        found: dict[tuple[str, str | None], dict[str | None, Row]] = {}
        for about in (None, attribute):
            for where in dict.fromkeys(((WHOLE, WHOLE), part)):
                for row in usable.get((where, about), ()):
                    here = found.setdefault((row["metric"], row["reading"]), {})
                    if where == part:
                        here[row["group_value"]] = row
        return {
            key: _as_arrays(rows, names if _measure(key[0]).metric.per_group else (None,))
            for key, rows in found.items()
        }

    def _usable_rows(self, settings: Settings) -> dict[tuple[Slice, str | None], list[Row]]:
        """Rows of list_stats made under the settings as they are, sorted out once."""
        if self._usable is None:
            wanted = cache(lambda label, about: basis(settings, _measure(label), about))
            self._usable = {
                (part, about): [row for row in rows if row["basis"] == wanted(row["metric"], about)]
                for (part, about), rows in self._list_rows.items()
            }
        return self._usable

    def _items(self, part: Slice) -> ItemCounts | None:
        row = self._gaps.get(part)
        if row is None:
            return None
        return ItemCounts(
            gap=int(row["gap_sum"]) / UNIT,
            share_gap=int(row["share_gap_sum"]) / UNIT,
            share_lists=row["share_lists"],
            exposure=int(row["exposure_sum"]) / UNIT,
            exposure_ranks=int(row["exposure_rank_sum"]) / UNIT,
            items=row["items"],
        )

    def holding(self, part: Slice, attribute: str, group: str) -> Holding:
        """Lists and queries of the slice that hold the group."""
        row = self._prefixes.get(part, {}).get((attribute, group))
        return Holding(row["lists"], row["queries"]) if row else Holding(0, 0)


@cache
def _measure(label: str) -> Measure:
    return parse_measure(label)


def _as_arrays(rows: dict[str | None, Row], names: Sequence[str | None]) -> ListSums:
    found = [rows.get(name) for name in names]
    return ListSums(
        lists=np.array([row["lists"] if row else 0 for row in found], dtype=np.int64),
        value=np.array([int(row["value_sum"]) / UNIT if row else 0.0 for row in found]),
        weight=np.array([int(row["weight_sum"]) / UNIT if row else 0.0 for row in found]),
    )


def _slice(row: Row) -> Slice:
    return row["slice"], row["slice_value"]


def _histogram(rows: pd.DataFrame, names: tuple[str, ...]) -> RankHistogram:
    at = {name: index for index, name in enumerate(names)}
    return RankHistogram(
        group=np.array([at[name] for name in rows["group_value"]], dtype=np.int64),
        rank=rows["rank"].to_numpy(dtype=np.int64),
        rows=rows["rows"].to_numpy(dtype=np.int64),
        judged=rows["judged"].to_numpy(dtype=np.int64),
        relevant=rows["relevant"].to_numpy(dtype=np.int64),
        relevance=rows["relevance_sum"].to_numpy(dtype=np.float64),
        click_known=rows["click_known"].to_numpy(dtype=np.int64),
        click=rows["click_sum"].to_numpy(dtype=np.float64),
    )


@dataclass(frozen=True)
class Scored:
    """One evaluation, with the slice and attribute it is about; attribute None for items."""

    part: Slice
    attribute: str | None
    evaluation: Evaluation
    counts: Counts


def scored(
    stored: StoredCounts, settings: Settings, measures: Iterable[Measure]
) -> Iterator[Scored]:
    """Every measure on every slice and attribute."""
    wanted = tuple(measures)
    for part in sorted(stored.slices, key=lambda each: (each[0] != WHOLE, each)):

        @cache
        def counts(attribute: str, expected: str | None, part: Slice = part) -> Counts:
            return stored.counts(part, attribute, expected=expected, settings=settings)

        for at, attribute in enumerate(settings.attribute_names):
            for measure in wanted:
                grouped = measure.metric.grouped
                if not grouped and at > 0:
                    continue
                here = counts(attribute, measure.expects)
                found = evaluate(measure, here, top_is_good=settings.top_of_list == "good")
                yield Scored(part, attribute if grouped else None, found, here)


def rows_of(
    found: Iterable[Scored], stored: StoredCounts, settings: Settings, batch: str, stamp: RunStamp
) -> tuple[list[Row], list[Row]]:
    """Rows of fairness_history and of group_history."""
    scores: list[Row] = []
    groups: list[Row] = []
    origin = asdict(stamp)
    for each in found:
        size = stored.slices[each.part]
        key = {
            "batch": batch,
            "slice": each.part[0],
            "slice_value": each.part[1],
            "attribute": each.attribute,
            "metric": each.evaluation.measure.label,
        }
        for score in each.evaluation.scores:
            aggregation = score.name.aggregation
            scores.append(
                {
                    **key,
                    "aggregation": aggregation.name if aggregation else None,
                    "value": score.value,
                    "reason": score.reason,
                    "worst_group": score.worst_group,
                    "best_group": score.best_group,
                    "lower": None,
                    "upper": None,
                    "confidence": None,
                    "seed": None,
                    "expected": None,
                    "noise_limit": None,
                    "p_noise": None,
                    "status": status_of(score, settings.thresholds, each.attribute, each.part[0]),
                    "status_reason": None,
                    "queries": size["queries"],
                    "lists": size["lists"],
                    "rows": size["rows"],
                    "lists_undefined": None if score.lists is None else size["lists"] - score.lists,
                    **origin,
                }
            )
        if each.evaluation.values is None or each.attribute is None:
            continue
        values = each.evaluation.values
        appearances, relevant = (each.counts.total(name) for name in ("rows", "relevant"))
        for at, (name, value, reason, n) in enumerate(
            zip(each.evaluation.groups, values.values, values.reasons, appearances, strict=True)
        ):
            holding = stored.holding(each.part, each.attribute, name)
            lists = each.evaluation.lists
            groups.append(
                {
                    **key,
                    "group_value": name,
                    "value": None if reason else float(value),
                    "reason": reason.value if reason else None,
                    "lower": None,
                    "upper": None,
                    "n": int(n),
                    "relevant": int(relevant[at]),
                    "queries": holding.queries,
                    "lists": holding.lists if lists is None else int(lists[at]),
                    **origin,
                }
            )
    return scores, groups


def write_scores(
    connection: duckdb.DuckDBPyConnection,
    database: str,
    scores: Sequence[Row],
    groups: Sequence[Row],
    measures: Sequence[Measure],
) -> None:
    """Validate rows and put them in the place of those of the same measures."""
    labels = [measure.label for measure in measures]
    for table, rows in ((FAIRNESS_HISTORY, scores), (GROUP_HISTORY, groups)):
        arrow = pyarrow.Table.from_pylist(list(rows), schema=table.arrow)
        schema = SCORE_SCHEMA if table is FAIRNESS_HISTORY else table.schema
        try:
            schema.validate(arrow.to_pandas(types_mapper=pd.ArrowDtype), lazy=True)
        except pandera.errors.SchemaErrors as errors:
            broken = sorted({str(each) for each in errors.failure_cases["check"]})
            raise AuditError(
                f"{table.name}: computed values break their schema ({', '.join(broken)}); "
                "nothing was stored. This is a fault of the program: please report it."
            ) from None
        connection.register("computed_rows", arrow)
        target = f"{quoted(database)}.{table.name}"
        connection.execute(f"DELETE FROM {target} WHERE list_contains(?, metric)", [labels])
        connection.execute(f"INSERT INTO {target} BY NAME FROM computed_rows")
        connection.unregister("computed_rows")
