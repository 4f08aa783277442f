"""Distinct items of each group in each slice: how many people a number is about.

Counted from rows that are in hand or stored, for a batch that was counted before there was this
count as for a new one.

Not here: items of a slice, which ``item_gaps`` has, and what is too few (``privacy.small_cells``).
"""

import duckdb
import numpy as np
import pyarrow

from metrics.weights import IntArray
from pipeline.counts.dimensions import Dimensions, dimensions_of
from pipeline.counts.sql import Counting
from pipeline.log.row_chunks import RowChunk
from pipeline.settings.audit import Settings
from pipeline.store.tables import add_columns, transaction
from schemas.columns import literal
from schemas.counts import PREFIX_STATS

_MOST_SEEN = 1 << 27
"""Keys of which each has a byte that says whether it was seen; with more, they are sorted."""


class _Seen:
    """Which of ``size`` keys were seen."""

    def __init__(self, size: int) -> None:
        self._all = np.zeros(size, dtype=np.bool_) if size <= _MOST_SEEN else None
        self._some: list[IntArray] = []

    def add(self, keys: IntArray) -> None:
        """Some keys, in any order and often."""
        if self._all is not None:
            self._all[keys] = True
            return
        self._some.append(np.unique(keys))
        if len(self._some) > 1 and sum(map(len, self._some)) > 4 * len(self._some[0]):
            self._some = [np.unique(np.concatenate(self._some))]

    @property
    def keys(self) -> IntArray:
        """Those that were, ascending."""
        if self._all is not None:
            return np.flatnonzero(self._all)
        return np.unique(np.concatenate([*self._some, np.empty(0, dtype=np.int64)]))


class GroupItems:
    """Items with the cells in which they stand, by slice value."""

    def __init__(self, counting: Counting, dimensions: Dimensions) -> None:
        self._counting, self._dimensions = counting, dimensions
        ((self._items,),) = counting.connection.execute(
            f"SELECT count(*) FROM {counting.database}.log_items"
        ).fetchall()
        pairs = self._items * dimensions.cells
        self._seen = [_Seen(len(np.unique(codes)) * pairs) for codes in dimensions.codes]

    def add(self, chunk: RowChunk) -> None:
        """The rows of a chunk, with their items and cells."""
        pair = chunk.ints["item"] * np.int64(self._dimensions.cells) + chunk.ints["cell"]
        part = self._dimensions.part[chunk.lists]
        size = self._items * self._dimensions.cells
        for codes, seen in zip(self._dimensions.codes, self._seen, strict=True):
            code = codes[part] - codes.min()
            seen.add(pair + np.repeat(code * size, chunk.lengths) if code.any() else pair)

    def fill(self) -> None:
        """Set the column ``items`` of prefix_stats."""
        for name, groups in self._dimensions.groups.items():
            count = len(groups.names)
            for codes, seen in zip(self._dimensions.codes, self._seen, strict=True):
                value, pair = np.divmod(seen.keys, self._items * self._dimensions.cells)
                item, cell = np.divmod(pair, self._dimensions.cells)
                # An item in two cells of one group is one item of the group.
                of_group = _Seen((int(value.max(initial=0)) + 1) * count * self._items)
                of_group.add((value * count + groups.code[cell]) * self._items + item)
                items = np.bincount(of_group.keys // self._items)
                here = np.flatnonzero(items)
                code, group = np.divmod(here, count)
                self._write(name, code + codes.min(), group, items[here])

    def _write(self, attribute: str, code: IntArray, group: IntArray, items: IntArray) -> None:
        table = pyarrow.table({"code": code, "group_code": group, "items": items})
        name = literal(attribute)
        key = ("slice", "slice_value", "group_value")
        same = " AND ".join(f"stats.{each} = found.{each}" for each in key)
        with self._counting.registered("group_items", table):
            self._counting.connection.execute(
                f"UPDATE {self._counting.database}.{PREFIX_STATS.name} AS stats "
                f"SET items = found.items FROM (SELECT {', '.join(key)}, items "
                "FROM group_items JOIN slice_values USING (code) JOIN (SELECT code AS group_code, "
                f"group_value FROM group_names WHERE attribute = {name}) USING (group_code)) "
                f"AS found WHERE stats.attribute = {name} AND {same}"
            )


def add_group_items(connection: duckdb.DuckDBPyConnection, settings: Settings, name: str) -> None:
    """Count them for a batch of before, in the attached database ``name``, if it keeps its rows."""
    add_columns(connection, name, PREFIX_STATS)
    counting = Counting(connection, settings, name)
    uncounted = f"SELECT 1 FROM {counting.database}.{PREFIX_STATS.name} WHERE items IS NULL LIMIT 1"
    kept = "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND table_name = 'log_entries'"
    if connection.execute(uncounted).fetchall() and connection.execute(kept, [name]).fetchall():
        with transaction(connection):
            items = GroupItems(counting, dimensions_of(counting))
            for chunk in counting.chunks(["item", "cell"]):
                items.add(chunk)
            items.fill()
