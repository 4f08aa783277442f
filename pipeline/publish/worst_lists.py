"""The lists of the newest batch in which a group lacks most exposure, entry by entry.

Not here: scores of single lists, and the table that these go to (``schemas.copy``).
"""

import logging

import duckdb
import pyarrow

from metrics import UNIT, UNKNOWN
from metrics.weights import exposure_at
from pipeline.counts.exact_sums import whole_numbers
from pipeline.errors import AuditError, StoreDamaged
from pipeline.history.proof import check_batch_file
from pipeline.log.values import group_of
from pipeline.settings.audit import Settings
from pipeline.settings.labels import JOIN
from pipeline.store.batch_files import DATABASE, info, opened
from pipeline.store.paths import store_of
from schemas.columns import internal, literal
from schemas.copy import WORST_LISTS

_LOG = logging.getLogger(__name__)
LISTS = 10
"""Lists per attribute: as many as people look at one by one."""
RANKS = 50
"""Ranks of each that are told: further down is hardly any exposure to lose."""


def worst_lists(
    connection: duckdb.DuckDBPyConnection, settings: Settings, *, noting: bool = True
) -> pyarrow.Table:
    """Rows of the table worst_lists, for the newest scored batch of the attached history.

    Per attribute the ``LISTS`` lists with the largest shortfall of a group, ties by list id, and
    of each the first ``RANKS`` ranks.  None where ``privacy.min_cell`` is set, where rows are no
    longer kept or not those of the scores, and where the file of the batch cannot be read or was
    changed, which is warned of: publishing goes on.
    """
    empty = WORST_LISTS.arrow.empty_table()
    newest = connection.execute(
        "SELECT batch, input_hash FROM history.fairness_history ORDER BY batch DESC LIMIT 1"
    ).fetchall()
    if settings.privacy.min_cell or not newest:
        return empty
    ((batch, digest),) = newest
    path = store_of(settings).batch(batch)
    if not path.exists():
        return empty
    try:
        check_batch_file(store_of(settings), batch, noting=noting)
    except (StoreDamaged, OSError) as error:
        _LOG.warning("the worst lists are left out: %s", error)
        return empty
    try:
        # In a session of its own: a file that is damaged may end it.
        with opened(settings, path, read_only=True) as rows:
            if info(rows)["input_hash"] != digest or not _has_rows(rows):
                return empty
            return _found(rows, settings, batch)
    except (AuditError, duckdb.Error):
        return empty


def _has_rows(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the file keeps rows, as this version stores them."""
    names = [
        name
        for (name,) in connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = ?", [DATABASE]
        ).fetchall()
    ]
    return {"log_entries", "log_lists", "log_items", "log_cells"} <= set(names)


def _found(connection: duckdb.DuckDBPyConnection, settings: Settings, batch: str) -> pyarrow.Table:
    there = set(connection.sql(f"FROM {DATABASE}.log_cells LIMIT 0").columns)
    attributes = [
        attribute
        for attribute in settings.attributes
        if {"=" + name for name in attribute} <= there
    ]
    if not attributes:
        return WORST_LISTS.arrow.empty_table()
    _weigh(connection)
    cells = " UNION ALL ".join(
        f"SELECT cell, {literal(JOIN.join(attribute))} AS attribute, "
        f"{group_of(attribute, internal)} AS g FROM {DATABASE}.log_cells"
        for attribute in attributes
    )
    found = connection.sql(_query(cells, settings), params=[batch])
    return found.to_arrow_table().cast(WORST_LISTS.arrow)


def _weigh(connection: duckdb.DuckDBPyConnection) -> None:
    """``list_exposures``: rows and exposure of each combination of attributes in each list."""
    seen = connection.sql(f"SELECT DISTINCT rank::BIGINT AS rank FROM {DATABASE}.log_entries")
    ranks = seen.to_arrow_table()["rank"].to_numpy()
    weights = pyarrow.table({"rank": ranks, "exposure": whole_numbers(exposure_at(ranks), UNIT)})
    connection.register("weights", weights)
    connection.execute("CREATE TEMP TABLE exposures AS FROM weights")
    connection.unregister("weights")
    connection.execute(
        "CREATE TEMP TABLE list_exposures AS SELECT list, cell, count(*)::HUGEINT AS rows, "
        f"sum(exposure)::HUGEINT AS exposure FROM {DATABASE}.log_entries "
        "JOIN exposures USING (rank) GROUP BY list, cell"
    )


def _query(cells: str, settings: Settings) -> str:
    """SQL of the worst lists; ``cells`` has the group of each cell, and it binds the batch."""
    compared = "true" if settings.unknown_group.in_aggregations else f"g <> {literal(UNKNOWN)}"
    sign = "-" if settings.top_of_list == "bad" else ""
    return f"""
        WITH cells AS ({cells}),
        sums AS (
            SELECT attribute, list, g, sum(rows)::HUGEINT AS rows,
                sum(exposure)::HUGEINT AS exposure
            FROM list_exposures JOIN cells USING (cell) GROUP BY attribute, list, g
        ),
        totals AS (
            SELECT list, sum(rows)::HUGEINT AS length, sum(exposure)::HUGEINT AS whole
            FROM list_exposures GROUP BY list
        ),
        -- Whole numbers: what a group lacks, times the length of its list.
        lacking AS (
            SELECT attribute, list, length, g,
                {sign}(rows * whole - length * exposure) AS lacks
            FROM sums JOIN totals USING (list)
        ),
        losing AS (
            SELECT attribute, list, length, max(lacks) AS most,
                max(lacks)::DOUBLE / length::DOUBLE / {float(UNIT)!r} AS shortfall
            FROM lacking WHERE {compared} AND lacks > 0 GROUP BY attribute, list, length
        ),
        worst AS (
            SELECT *, row_number() OVER (
                PARTITION BY attribute ORDER BY shortfall DESC, list_id
            ) AS place
            FROM losing JOIN {DATABASE}.log_lists USING (list) QUALIFY place <= {LISTS}
        ),
        losers AS (
            SELECT attribute, list, min(g) AS losing_group
            FROM lacking JOIN worst USING (attribute, list)
            WHERE {compared} AND lacks = most GROUP BY attribute, list
        )
        SELECT ? AS batch, attribute, place, list_id, losing_group, shortfall,
            length::BIGINT AS length, rank::BIGINT AS rank, item_id, g AS group_value,
            relevance, click
        FROM worst JOIN losers USING (attribute, list)
        JOIN {DATABASE}.log_rows USING (list) JOIN {DATABASE}.log_items USING (item)
        JOIN cells USING (cell, attribute)
        WHERE rank <= {RANKS} ORDER BY attribute, place, rank, item_id"""
