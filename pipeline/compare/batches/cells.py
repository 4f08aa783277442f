"""Counts of the cells that a batch falls into: values of a slice column, or queries.

Not here: batches put together from them (``counterfactuals``).
"""

from dataclasses import dataclass, replace

import duckdb
import numpy as np
import pyarrow

from metrics import UNIT, WHOLE, Counts, Measure, RankHistogram
from pipeline.compare.batches.partition import Cells
from pipeline.compare.batches.requests import FILES, both_files, keeps_rows, without_rows
from pipeline.counts.rank_counts import histogram_sums
from pipeline.counts.stored_counts import StoredCounts
from pipeline.errors import AuditError, NoData
from pipeline.history.manifest import Manifest
from pipeline.history.opening import HISTORY_DATABASE, open_history
from pipeline.history.proof import check_batch_file
from pipeline.log.values import group_of
from pipeline.log.whole_lists import run_starts
from pipeline.privacy.small_cells import Hidden
from pipeline.privacy.suppression import Shown
from pipeline.settings.audit import Settings
from pipeline.settings.labels import JOIN
from pipeline.store.batch_files import DATABASE, opened
from pipeline.store.paths import store_of
from pipeline.store.sessions import first_line

MOST_QUERIES = 2000
"""Queries that are cells of their own, those with most lists; others share 256 cells.

More cells name more queries, and take more memory and time for each score."""

_LISTS = "SELECT query_id, count(DISTINCT list_id) AS lists FROM {}.ranking_log GROUP BY query_id"


@dataclass(frozen=True)
class Stored:
    """The counts of one batch of the store, and what of them may not be told."""

    batch: str
    counts: StoredCounts
    hidden: Hidden

    def whole(self, settings: Settings, measure: Measure, attribute: str) -> Counts:
        """Counts of the whole batch."""
        return self.part((WHOLE, WHOLE), settings, measure, attribute)

    def part(
        self, part: tuple[str, str], settings: Settings, measure: Measure, attribute: str
    ) -> Counts:
        """Counts of a slice."""
        return self.counts.counts(part, attribute, expected=measure.expects, settings=settings)


def stored(settings: Settings, batch: str, manifest_rows: Manifest) -> Stored:
    """The counts of a batch, from its own file, or from the history where that is gone.

    NoData where the store has none; AuditError where they were made under other settings.
    """
    row = manifest_rows.get(batch)
    path = store_of(settings).batch(batch)
    if row is None or not row.revision:
        raise NoData(f"{batch}: nothing is stored of this batch; run it first")
    if row.rows_hash != settings.rows_hash:
        raise AuditError(
            f"{batch}: its rows were counted under other settings (columns, ranks, attributes, "
            "slices, values, rejects, relevant_from or what is missing); run it again from its "
            "logs"
        )
    try:
        if path.exists():
            check_batch_file(store_of(settings), batch)
            with opened(settings, path, read_only=True) as connection:
                counts = StoredCounts(connection, DATABASE)
                return Stored(batch, counts, Shown(connection, settings, DATABASE).hidden(batch))
        with open_history(settings, read_only=True) as connection:
            shown = Shown(connection, settings, batches=[batch])
            counts = StoredCounts(connection, HISTORY_DATABASE, batch)
            return Stored(batch, counts, shown.hidden(batch))
    except duckdb.Error as error:
        raise AuditError(
            f"{batch}: its counts cannot be read ({first_line(error)}); run the batch again"
        ) from None


def slice_cells(
    settings: Settings, measure: Measure, attribute: str, column: str, a: Stored, b: Stored
) -> Cells:
    """The values of a slice column, and the counts of each in two batches."""
    values = {
        value: None
        for side in (a, b)
        for name, value in sorted(side.counts.slices)
        if name == column
    }

    def of(side: Stored, value: str) -> Counts | None:
        if (column, value) not in side.counts.slices:
            return None
        return side.part((column, value), settings, measure, attribute)

    return {value: (of(a, value), of(b, value)) for value in sorted(values)}


def query_cells(
    settings: Settings, attribute: str, a: tuple[str, Counts], b: tuple[str, Counts]
) -> Cells:
    """The queries of two batches, each named with its counts, and the rank histograms of each.

    Queries beyond the most frequent are pooled by a hash of their name.  The cells hold no pairs,
    prefixes, items or sums over lists.  NoData where a batch keeps no rows.
    """
    with both_files(settings, (a[0], b[0])) as connection:
        batches = zip((a[0], b[0]), FILES, strict=True)
        empty = [batch for batch, file in batches if not keeps_rows(connection, file)]
        if empty:
            raise without_rows(empty)
        name_queries(connection)
        sides = [
            _cells_of(connection, settings, name, group_of(pieces_of(settings, attribute)), whole)
            for name, (_, whole) in zip(FILES, (a, b), strict=True)
        ]
    names = sorted({*sides[0], *sides[1]})
    return {name: (sides[0].get(name), sides[1].get(name)) for name in names}


def name_queries(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the table ``cells`` of the session, which says the cell of each query."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE cells AS SELECT query_id, CASE WHEN place <= ? "
        "THEN query_id ELSE 'pooled ' || left(md5(query_id), 2) END AS cell FROM "
        "(SELECT query_id, row_number() OVER (ORDER BY sum(lists) DESC, query_id) AS place FROM "
        f"({' UNION ALL '.join(_LISTS.format(file) for file in FILES)}) GROUP BY query_id)",
        [MOST_QUERIES],
    )


def shared_queries(connection: duckdb.DuckDBPyConnection) -> tuple[float, float]:
    """Shares of the lists of both batches whose query the other one has as well."""
    a, b = (f"({_LISTS.format(file)})" for file in FILES)
    found = connection.execute(
        f"SELECT sum(a.lists) FILTER (b.lists > 0) / sum(a.lists), "
        f"sum(b.lists) FILTER (a.lists > 0) / sum(b.lists) "
        f"FROM {a} AS a FULL JOIN {b} AS b USING (query_id)"
    ).fetchall()
    before, after = (float(each or 0.0) for each in found[0])
    return before, after


def pieces_of(settings: Settings, attribute: str) -> tuple[str, ...]:
    """The columns of an attribute, of which an intersection has several."""
    return next(each for each in settings.attributes if JOIN.join(each) == attribute)


def _cells_of(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    database: str,
    group: str,
    whole: Counts,
) -> dict[str, Counts]:
    """The rank histogram of each cell of one batch."""
    lists = dict(
        connection.execute(
            f"SELECT cell, count(DISTINCT list_id) FROM {database}.ranking_log "
            "JOIN cells USING (query_id) GROUP BY cell"
        ).fetchall()
    )
    histogram = connection.sql(
        f"SELECT *, relevance_sum::DOUBLE / {float(UNIT)!r} AS relevance, "
        f"click_sum::DOUBLE / {float(UNIT)!r} AS click FROM "
        f"(SELECT cell, {group} AS group_value, rank, {histogram_sums(settings)} "
        f"FROM {database}.ranking_log JOIN cells USING (query_id) GROUP BY ALL) "
        "ORDER BY cell, group_value, rank"
    ).to_arrow_table()
    names = histogram["cell"].to_numpy()
    starts = run_starts(names)
    ends = np.append(starts[1:], len(names))
    code = {name: at for at, name in enumerate(whole.groups)}
    return {
        str(names[start]): replace(
            whole,
            lists=lists[names[start]],
            ranks=_histogram(histogram.slice(start, end - start), code),
            pairs=None,
            prefixes=None,
            items=None,
            known_rows={},
            list_sums={},
        )
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    }


def _histogram(rows: pyarrow.Table, code: dict[str, int]) -> RankHistogram:
    columns = ("rank", "rows", "judged", "relevant", "relevance", "click_known", "click")
    group = np.array([code[name] for name in rows["group_value"].to_pylist()], dtype=np.int64)
    # Names are in the order of groups, but a session may sort texts by other rules.
    order = np.argsort(group, kind="stable")
    return RankHistogram(group[order], *(rows[name].to_numpy()[order] for name in columns))
