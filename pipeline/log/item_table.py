"""The item table of a batch: one row per item, with its groups.

Not here: joining it with rows (``accepted_rows``).
"""

import duckdb

from pipeline.errors import DataRefused
from pipeline.log.column_mapping import Layout
from pipeline.log.counted_as import group_meant
from pipeline.log.reading import Reading
from pipeline.log.sources import Source
from pipeline.log.unreadable import read_whole, unreadable
from pipeline.log.values import group_of, tidy
from pipeline.settings.labels import JOIN
from schemas.columns import internal, literal, quoted


def read_items(reading: Reading, items: Source, layout: Layout) -> None:
    """Fill ``item_table`` of the session, one row per item, and the group sizes.

    The table has values as they are; sizes are of the groups that they count as.

    DataRefused if an item stands there twice or has no id.
    """
    names = [name for name in reading.settings.attribute_columns if name in layout.found]
    values = "".join(
        f", {tidy(f'CAST({quoted(layout.found[name])} AS VARCHAR)')} AS {internal(name)}"
        for name in names
    )
    item_id = f"CAST({quoted(layout.found['item_id'])} AS VARCHAR)"

    def read(table: Source) -> int:
        reading.run(
            f"CREATE OR REPLACE TEMP TABLE item_table AS SELECT {item_id} AS item_id{values} "
            f"FROM {table.table}"
        )
        ((read_rows,),) = reading.rows("SELECT count(*) FROM item_table")
        return read_rows

    try:
        read_whole(items, read)
    except duckdb.Error as error:
        raise unreadable(items, error) from None
    ((rows, apart, missing),) = reading.rows(
        "SELECT count(*), count(DISTINCT item_id), count(*) FILTER (item_id IS NULL) "
        "FROM item_table"
    )
    if apart < rows:
        raise DataRefused(
            f"{items.shown}: {rows - apart - missing:,} rows repeat an item_id and {missing:,} "
            "have none; the item table has one row per item"
        )
    groups = ", ".join(
        f"{group_meant(reading, name, internal(name))} AS {internal(name)}" for name in names
    )
    for attribute in reading.settings.attributes:
        if set(attribute) <= set(names):
            reading.run(
                f"INSERT INTO {reading.database}.group_sizes "
                f"SELECT {literal(JOIN.join(attribute))}, {group_of(attribute, internal)}, "
                f"count(*) FROM (SELECT {groups} FROM item_table) GROUP BY ALL"
            )
