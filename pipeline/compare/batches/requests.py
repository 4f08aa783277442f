"""Which requests two batches had, and the cells of them that answer.

Not here: by which rule (``request_cells``), and the split itself (``decomposition``).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow

from metrics import Counts, ScoreName
from pipeline.compare.batches.bucketed import Bucketed, of_joint_slices, of_requests
from pipeline.compare.batches.counterfactuals import Layout
from pipeline.compare.batches.partition import Partition
from pipeline.compare.batches.request_cells import Cut, Requests, by_query, by_slices
from pipeline.errors import NoData
from pipeline.settings.audit import Settings
from pipeline.store.paths import store_of
from pipeline.store.sessions import attach, working
from schemas.columns import internal, quoted

QUERY = "query"
"""What ``by`` calls queries."""
FILES = ("a", "b")
"""How the files of two batches are called in a session."""


@contextmanager
def both_files(settings: Settings, batches: Sequence[str]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A session with the files of two batches; NoData where one of them is not there."""
    paths = [store_of(settings).batch(batch) for batch in batches]
    missing = [each for each, path in zip(batches, paths, strict=True) if not path.exists()]
    if missing:
        raise without_rows(missing)
    with working(settings, [path.parent for path in paths]) as connection:
        for name, path in zip(FILES, paths, strict=True):
            attach(connection, path, name, read_only=True, patience=settings.busy_seconds)
        yield connection


def without_rows(batches: Sequence[str]) -> NoData:
    """What is wrong with batches that have no rows any more."""
    return NoData(f"{' and '.join(batches)} keeps no rows; split by a slice column instead")


def keeps_rows(connection: duckdb.DuckDBPyConnection, database: str) -> bool:
    """Whether the file of a batch still has rows."""
    tables = connection.execute(
        "SELECT count(*) FROM duckdb_tables() "
        "WHERE database_name = ? AND table_name = 'log_entries'",
        [database],
    ).fetchall()
    if tables == [(0,)]:
        return False
    return bool(connection.execute(f"SELECT 1 FROM {database}.log_entries LIMIT 1").fetchall())


@dataclass(frozen=True)
class Finest:
    """The cells that answer: by what, and the rows of both batches."""

    by: tuple[str, ...]
    cut: Partition
    sides: tuple[Bucketed, Bucketed]
    shared: tuple[float, float]


def finest(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    name: ScoreName,
    attribute: Sequence[str],
    whole: tuple[Counts, Counts],
    columns: Sequence[str],
    *,
    with_queries: bool,
) -> Finest | None:
    """Cells by query and slice ``columns``, or by these together; None where neither will do."""
    layout = Layout.of(name.measure, whole)
    if with_queries and all(keeps_rows(connection, each) for each in FILES):
        requests, values = _read(connection, columns, _of_rows(columns), ("query_id", *columns))
        cut = by_query(requests)
        if cut.is_enough:
            loaded = [
                of_requests(connection, file, settings, layout, attribute, values, cut.cell)
                for file in FILES
            ]
            return _finest(settings, (QUERY, *columns), name, layout, loaded, cut, whole)
    # By one column, its own split answers.
    if len(columns) < 2:
        return None
    requests, values = _read(connection, columns, _of_lengths(columns), columns)
    cut = by_slices(requests)
    if not cut.is_enough:
        return None
    loaded = [
        of_joint_slices(connection, file, settings, layout, attribute, values, cut.cell)
        for file in FILES
    ]
    return _finest(settings, tuple(columns), name, layout, loaded, cut, whole)


def _finest(
    settings: Settings,
    by: tuple[str, ...],
    name: ScoreName,
    layout: Layout,
    loaded: Sequence[Bucketed],
    cut: Cut,
    whole: tuple[Counts, Counts],
) -> Finest:
    a, b = loaded
    rows = a.by_cell(cut.count), b.by_cell(cut.count)
    names = [str(at) for at in range(cut.count)]
    good = settings.top_of_list == "good"
    return Finest(
        by, Partition(name, layout, names, rows, whole, top_is_good=good), (a, b), cut.shared
    )


def _of_rows(columns: Sequence[str]) -> str:
    named = "".join(f", {quoted(each)} AS {internal(each)}" for each in columns)
    return (
        f"SELECT query_id AS {internal('query_id')}{named}, count(DISTINCT list_id) AS lists "
        "FROM {}.ranking_log GROUP BY ALL"
    )


def _of_lengths(columns: Sequence[str]) -> str:
    named = ", ".join(map(internal, columns))
    return f"SELECT {named}, sum(rows / length) AS lists FROM {{}}.bucket_lengths GROUP BY ALL"


def _read(
    connection: duckdb.DuckDBPyConnection, columns: Sequence[str], lists: str, key: Sequence[str]
) -> tuple[Requests, dict[str, list[str]]]:
    """The kinds of requests of both batches, and their values by column of ``key``."""
    a, b = (lists.format(each) for each in FILES)
    found = connection.sql(
        "SELECT * EXCLUDE (lists, side), sum(lists) FILTER (side = 0)::DOUBLE AS a, "
        "sum(lists) FILTER (side = 1)::DOUBLE AS b FROM "
        f"(SELECT *, 0 AS side FROM ({a}) UNION ALL SELECT *, 1 AS side FROM ({b})) "
        "GROUP BY ALL ORDER BY ALL"
    ).to_arrow_table()
    counted = [np.nan_to_num(found[name].to_numpy()) for name in FILES]
    slices = [_codes(found["=" + name]) for name in columns]
    requests = Requests(
        np.stack(slices, axis=1) if slices else np.zeros((len(found), 0), dtype=np.int64),
        np.stack(counted),
    )
    return requests, {name: found["=" + name].to_pylist() for name in key}


def _codes(values: pyarrow.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    whole = values.combine_chunks()
    encoded = whole.dictionary_encode()
    return np.asarray(encoded.indices.to_numpy(), dtype=np.int64)
