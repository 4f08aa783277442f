"""The count tables of a batch, as scores are computed from them.

Rows of the log are not needed: a batch can be scored again, with other parameters, from its count
tables alone, whether they stand in its own file or in the history.

Not here: filling the tables, and formulas.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow

from metrics import (
    PREFIX_UNIT,
    UNIT,
    UNKNOWN,
    WHOLE,
    Counts,
    ItemCounts,
    ListSums,
    Measure,
    PairCounts,
    PrefixCounts,
    RankHistogram,
    parse_measure,
)
from pipeline.counts.list_stats import basis
from pipeline.errors import AuditError
from pipeline.settings.audit import Settings
from pipeline.store.batch_files import DATABASE
from schemas.columns import Row, Table, quoted
from schemas.counts import (
    GROUP_SIZES,
    ITEM_GAPS,
    KEPT_COUNTS,
    LIST_STATS,
    PAIR_STATS,
    PREFIX_STATS,
    RANK_COUNTS,
    SLICE_COUNTS,
)

Slice = tuple[str, str]
_PREFIXES = PREFIX_STATS.without("items")
"""What scores are made of: how many people a group is says what may be told of it."""


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
        self._prefixes = self._by_group(_PREFIXES)
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

    def lacking(self, attribute: str, settings: Settings) -> tuple[str, ...]:
        """Groups that the settings name, as groups or in a target, and the batch has no row of."""
        named = {*settings.groups.get(attribute, ()), *settings.targets.get(attribute, ())}
        return tuple(sorted(named - {UNKNOWN} - set(self.groups(attribute))))

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
        A group without rows in the slice is absent from it, unless item table, target or settings
        name it.
        """
        sizes, target = self._sizes.get(attribute), settings.targets.get(attribute)
        named = set({"catalogue": sizes, "target": target}.get(expected or "") or ())
        if not settings.unknown_group.in_aggregations:
            named -= {UNKNOWN}
        names = tuple(sorted({*self.groups(attribute), *named}))
        should_be = {*named, *(sizes or ()), *(target or ()), *settings.groups.get(attribute, ())}
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
            absent=frozenset()
            if expected
            else frozenset(names) - should_be - set(rows["group_value"]),
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
        rows_by_reading: dict[tuple[str, str | None], dict[str | None, Row]] = {}
        for about in (None, attribute):
            for where in dict.fromkeys(((WHOLE, WHOLE), part)):
                for row in usable.get((where, about), ()):
                    rows_by_group = rows_by_reading.setdefault((row["metric"], row["reading"]), {})
                    if where == part:
                        rows_by_group[row["group_value"]] = row
        return {
            key: _as_arrays(rows, names if _measure(key[0]).metric.per_group else (None,))
            for key, rows in rows_by_reading.items()
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
    group_rows = [rows.get(name) for name in names]
    return ListSums(
        lists=np.array([row["lists"] if row else 0 for row in group_rows], dtype=np.int64),
        value=np.array([int(row["value_sum"]) / UNIT if row else 0.0 for row in group_rows]),
        weight=np.array([int(row["weight_sum"]) / UNIT if row else 0.0 for row in group_rows]),
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


def check_counts(connection: duckdb.DuckDBPyConnection, batch: str) -> None:
    """AuditError where a batch was counted before there was all that scores are made of."""
    there = set(
        connection.execute(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE database_name = ?",
            [DATABASE],
        ).fetchall()
    )
    wanted = {(table.name, name) for table in KEPT_COUNTS for name in table.names}
    wanted -= {(PREFIX_STATS.name, name) for name in {*PREFIX_STATS.names} - {*_PREFIXES.names}}
    if not wanted <= there:
        raise AuditError(
            f"{batch}: its counts are those of an older version; run it again from its logs"
        )
