"""What rows are counted under: their list's slices and bucket, their cell's groups.

All are known before a row is counted, from lists and cells alone.  Nothing is counted here but what
says how large counters have to be.

Not here: counting itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow

from metrics import WHOLE
from metrics.weights import IntArray
from pipeline.counts.session_tables import GROUP_NAMES, PARTS, SLICE_VALUES
from pipeline.counts.sql import Counting, bucket_of
from pipeline.errors import AuditError
from pipeline.log.values import group_of
from pipeline.settings.labels import JOIN
from schemas.columns import internal, literal
from schemas.counts import BUCKETS

KNOWN = ("relevance", "click", "reference_rank", "propensity", "predicted_click")
"""Columns that a row may lack, of which slice_counts says how many rows have one."""


@dataclass(frozen=True)
class Groups:
    """Groups of an attribute by name, and the group of each cell, shape (cells,)."""

    names: tuple[str, ...]
    code: IntArray


@dataclass(frozen=True)
class Dimensions:
    """A batch's lists, slices and groups, by number.

    A *part* is a combination of slice values.  ``bucket``, ``part`` and ``query`` have one entry
    per list, buckets below ``buckets``; ``query`` is None where no two lists share one.  ``values``
    are slices with a value, the whole batch first; ``codes`` says which a part belongs to, shape
    (slices + 1, parts).  ``known`` counts the rows that have each of KNOWN.
    """

    rows: int
    lists: int
    deepest_rank: int
    longest: int
    known: Mapping[str, int]
    buckets: int
    bucket: IntArray
    part: IntArray
    query: IntArray | None
    values: tuple[tuple[str, str], ...]
    codes: IntArray
    cells: int
    groups: Mapping[str, Groups]

    @property
    def parts(self) -> int:
        """Combinations of slice values."""
        return int(self.codes.shape[1])

    @property
    def queries(self) -> int:
        """Queries of the batch."""
        return self.lists if self.query is None else int(self.query.max(initial=-1)) + 1


def dimensions_of(counting: Counting) -> Dimensions:
    """Look a batch over before its rows are counted.

    Leaves the session tables ``parts`` (part and its slices, under internal names),
    ``slice_values`` (code, slice, slice_value) and ``group_names`` (attribute, code, group_value).
    AuditError where the batch file has no rows in the layout that is read.
    """
    _check_layout(counting)
    extent = counting.extent()
    codes, values = _slices(counting)
    of_lists = _of_lists(counting)
    return Dimensions(
        rows=extent.rows,
        lists=len(of_lists["bucket"]),
        deepest_rank=extent.deepest,
        longest=extent.longest,
        known=extent.known,
        buckets=BUCKETS if counting.evidence else 1,
        bucket=of_lists["bucket"],
        part=of_lists["part"],
        query=of_lists.get("query"),
        values=values,
        codes=codes,
        cells=_count(counting, "log_cells"),
        groups=_groups(counting),
    )


def _check_layout(counting: Counting) -> None:
    there = counting.connection.execute(
        "SELECT 1 FROM information_schema.tables "
        "WHERE table_catalog = ? AND table_name = 'log_lists'",
        [counting.name],
    ).fetchall()
    if not there:
        raise AuditError(
            "the batch file has no rows in the layout of this version; "
            "run the batch again from its logs"
        )


def _count(counting: Counting, table: str) -> int:
    found = counting.connection.execute(f"SELECT count(*) FROM {counting.database}.{table}")
    return int(found.fetchall()[0][0])


def _slices(counting: Counting) -> tuple[IntArray, tuple[tuple[str, str], ...]]:
    """Numbers of slice values by part, and what they mean."""
    names = counting.settings.slices
    columns = "".join(f", {internal(name)}" for name in names)
    distinct = f"SELECT DISTINCT {columns[2:]} FROM {counting.database}.log_lists"
    counting.make(
        PARTS,
        f"SELECT (row_number() OVER (ORDER BY {columns[2:]}) - 1)::INTEGER AS part{columns} "
        f"FROM ({distinct})"
        if names
        else "SELECT 0::INTEGER AS part",
    )
    selects = [f"SELECT 0 AS place, {literal(WHOLE)} AS slice, {literal(WHOLE)} AS slice_value"]
    selects += [
        f"SELECT DISTINCT {place}, {literal(name)}, {internal(name)} FROM parts"
        for place, name in enumerate(names, start=1)
    ]
    counting.make(
        SLICE_VALUES,
        "SELECT (row_number() OVER (ORDER BY place, slice_value) - 1)::INTEGER AS code, slice, "
        f"slice_value FROM ({' UNION ALL '.join(selects)})",
    )
    codes = ", ".join(
        f"(SELECT code FROM slice_values WHERE slice = {literal(name)} "
        f"AND slice_value = {internal(name)})"
        for name in names
    )
    rows = counting.connection.execute(
        f"SELECT 0{codes and ', ' + codes} FROM parts ORDER BY part"
    ).fetchall()
    values = counting.connection.execute(
        "SELECT slice, slice_value FROM slice_values ORDER BY code"
    ).fetchall()
    table = np.array(rows, dtype=np.int64).reshape(-1, len(names) + 1)
    return table.T, tuple(values)


def _of_lists(counting: Counting) -> dict[str, Any]:
    """Bucket and part of each list, and its query where queries repeat."""
    log_lists = f"{counting.database}.log_lists"
    bucket = bucket_of("query_id") if counting.evidence else "0"
    columns, joins = [f"{bucket} AS bucket"], ""
    if counting.settings.slices:
        columns.append("part")
        joins += f" JOIN parts USING ({', '.join(map(internal, counting.settings.slices))})"
    if _queries_repeat(counting):
        columns.append("query")
        joins += (
            " JOIN (SELECT query_id, (row_number() OVER () - 1)::INTEGER AS query "
            f"FROM (SELECT DISTINCT query_id FROM {log_lists})) USING (query_id)"
        )
    table = counting.connection.sql(
        f"SELECT list, {', '.join(columns)} FROM {log_lists}{joins}"
    ).to_arrow_table()
    number = table["list"].to_numpy()
    arrays = {"part": np.zeros(len(number), dtype=np.int32)}
    for name in table.column_names[1:]:
        arrays[name] = np.empty(len(number), dtype=np.int32)
        arrays[name][number] = table[name].to_numpy()
    return arrays


def _queries_repeat(counting: Counting) -> bool:
    """Whether two lists have a query in common; a log without queries is quickly told."""
    for condition in (
        "count(*) FILTER (query_id <> list_id) > 0",
        "count(DISTINCT query_id) < count(*)",
    ):
        query = f"SELECT {condition} FROM {counting.database}.log_lists"
        if not counting.connection.execute(query).fetchall()[0][0]:
            return False
    return True


def _groups(counting: Counting) -> dict[str, Groups]:
    groups, rows = {}, []
    for attribute in counting.settings.attributes:
        name, group = JOIN.join(attribute), group_of(attribute, internal)
        cells = counting.connection.execute(
            f"SELECT {group} FROM {counting.database}.log_cells ORDER BY cell"
        ).fetchall()
        names = tuple(sorted({value for (value,) in cells}))
        code = {value: number for number, value in enumerate(names)}
        groups[name] = Groups(names, np.array([code[value] for (value,) in cells], dtype=np.int64))
        rows += [
            {"attribute": name, "code": number, "group_value": value}
            for value, number in code.items()
        ]
    with counting.registered("names", pyarrow.Table.from_pylist(rows, GROUP_NAMES.arrow)):
        counting.make(GROUP_NAMES, "FROM names")
    return groups
