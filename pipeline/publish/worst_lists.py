"""The lists of a batch in which a group lacks most exposure, entry by entry.

Not here: of which batches (``kept_lists``), scores of single lists, and the table that these go to
(``schemas.copy``).
"""

import duckdb
import pyarrow

from metrics import UNIT, UNKNOWN
from metrics.weights import exposure_at
from pipeline.counts.exact_sums import whole_numbers
from pipeline.log.values import group_of
from pipeline.settings.audit import Settings, hash_of
from pipeline.settings.labels import JOIN
from pipeline.store.batch_files import DATABASE, info, opened
from pipeline.store.paths import store_of
from schemas.columns import internal, literal, quoted
from schemas.copy import WORST_LISTS
from schemas.rules import LIST_ID, QUERY_ID

LISTS = 10
"""Lists per attribute: as many as people look at one by one."""
RANKS = 50
"""Ranks of each that are told: further down is hardly any exposure to lose."""
_VERSION = 1
"""Goes up when the same rows and settings give other lists."""


def worst_lists(settings: Settings, batch: str, input_hash: str) -> pyarrow.Table | None:
    """Rows of the table worst_lists for one batch; None where its file has no rows to look at.

    Per attribute the ``LISTS`` lists with the largest shortfall of a group, ties by list id, and
    of each the first ``RANKS`` ranks.  None too where the file is of another input.  AuditError or
    duckdb.Error where it cannot be read.
    """
    # In a session of its own: a file that is damaged may end it.
    with opened(settings, store_of(settings).batch(batch), read_only=True) as rows:
        if info(rows)["input_hash"] != input_hash or not _has_rows(rows):
            return None
        return _found(rows, settings, batch)


def made_by(settings: Settings) -> str:
    """A digest of all that decides on the lists of a batch, beside its file."""
    return hash_of(
        {
            "version": _VERSION,
            "lists": LISTS,
            "ranks": RANKS,
            "columns": WORST_LISTS.names,
            "attributes": settings.attribute_names,
            "top_of_list": settings.top_of_list,
            "unknown_group": settings.unknown_group.model_dump(mode="json"),
        }
    )


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
    found = connection.sql(_query(cells, _requests(connection), settings), params=[batch])
    return found.to_arrow_table().cast(WORST_LISTS.arrow)


def _requests(connection: duckdb.DuckDBPyConnection) -> str:
    """SQL of what every list was asked for: its query, and its slices as a JSON object."""
    there = connection.sql(f"FROM {DATABASE}.log_lists LIMIT 0").columns
    slices = ", ".join(
        f"{literal(name[1:])}, {quoted(name)}" for name in there if name.startswith("=")
    )
    query = QUERY_ID.name if QUERY_ID.name in there else LIST_ID.name
    return (
        f"SELECT list, {query} AS query_id, json_object({slices})::VARCHAR AS slices "
        f"FROM {DATABASE}.log_lists"
    )


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


def _query(cells: str, requests: str, settings: Settings) -> str:
    """SQL of the worst lists; ``cells`` has the group of each cell, and it binds the batch."""
    compared = "true" if settings.unknown_group.in_aggregations else f"g <> {literal(UNKNOWN)}"
    sign = "-" if settings.top_of_list == "bad" else ""
    return f"""
        WITH cells AS ({cells}), requests AS ({requests}),
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
            relevance, click, requests.query_id, slices
        FROM worst JOIN losers USING (attribute, list)
        JOIN {DATABASE}.log_rows USING (list) JOIN {DATABASE}.log_items USING (item)
        JOIN cells USING (cell, attribute) JOIN requests USING (list)
        WHERE rank <= {RANKS} ORDER BY attribute, place, rank, item_id"""
