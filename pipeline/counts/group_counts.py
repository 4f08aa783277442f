"""Groups within lists: pair_stats (ARP), prefix_stats (NDKL), and their sums by bucket.

Counters of one attribute go to the session as ``group_sums``, ``group_queries`` and ``mixes``, and
from there to the count tables; mix_counts reads ``mixes``.  Each is a table of counters where they
fit in memory.  Where they do not, groups of lists are written to the session one by one, and a
statement counts them.

Not here: what a group in a list is worth (``list_groups``).
"""

import numpy as np
import pyarrow

from metrics import PREFIX_UNIT, UNIT
from metrics.weights import IntArray
from pipeline.counts.dimensions import Dimensions
from pipeline.counts.exact_sums import half_names, halves, joined
from pipeline.counts.list_groups import ListGroups
from pipeline.counts.session_tables import GROUP_QUERIES, GROUP_SUMS, MIXES
from pipeline.counts.sql import Counting
from pipeline.log.row_chunks import RowChunk
from schemas.columns import Table, literal
from schemas.counts import PAIR_STATS, PREFIX_STATS

MOST_COUNTERS = 4_000_000
"""Counters of one kind that are held: 32 MB for each of a dozen kinds; most take none
before they are used."""
MOST_SEEN = 100_000_000
"""Bytes that say which queries have been seen with which group: 100 MB, for one attribute."""
_COUNTED = ("lists", "pair_lists", "pairs", "won")
_SCALED = ("won_share", "entropy", "share", "divergence")
_STATISTICS = {"entropy": "entropy", "share": "share", "own": "divergence"}
"""Fields of PrefixCounts, and the columns they are summed from."""
_WRITTEN = ("own", "length", "pairs", "won", *_SCALED)


class GroupSums:
    """Counters of one attribute."""

    def __init__(self, counting: Counting, dimensions: Dimensions, attribute: str) -> None:
        self._counting, self._dimensions, self._attribute = counting, dimensions, attribute
        self._groups = len(dimensions.groups[attribute].names)
        self._wide = dimensions.longest + 1
        self._rows = f"list_groups_{list(dimensions.groups).index(attribute)}"
        keys = len(dimensions.values) * self._groups
        triangle = self._wide * (self._wide + 1) // 2
        self._sums = self._mixes = self._seen = None
        if keys * dimensions.buckets <= MOST_COUNTERS:
            names = (*_COUNTED, *(half for name in _SCALED for half in half_names(name)))
            self._sums = {
                name: np.zeros(keys * dimensions.buckets, dtype=np.int64) for name in names
            }
        if keys * triangle <= MOST_COUNTERS:
            self._mixes = np.zeros(keys * triangle, dtype=np.int64)
        if dimensions.query is not None and keys * dimensions.queries <= MOST_SEEN:
            self._seen = np.zeros((keys, dimensions.queries), dtype=np.bool_)
        self._written = (
            self._sums is None
            or self._mixes is None
            or (dimensions.query is not None and self._seen is None)
        )
        if self._written:
            columns = ", ".join(f"{name} BIGINT" for name in ("list", "code", *_WRITTEN))
            counting.connection.execute(f"CREATE OR REPLACE TEMP TABLE {self._rows} ({columns})")

    def add(self, chunk: RowChunk, groups: ListGroups) -> None:
        """Add the groups of a chunk's lists."""
        dimensions = self._dimensions
        lists = chunk.lists[groups.place]
        bucket, part = dimensions.bucket[lists], dimensions.part[lists]
        scaled = {name: halves(getattr(groups, name)) for name in _SCALED}
        mixed = groups.pairs > 0
        mix = groups.length * (groups.length + 1) // 2 + groups.own
        for codes in dimensions.codes:
            key = codes[part] * self._groups + groups.group
            if self._sums is not None:
                cell = key * dimensions.buckets + bucket
                np.add.at(self._sums["lists"], cell, 1)
                np.add.at(self._sums["pair_lists"], cell[mixed], 1)
                np.add.at(self._sums["pairs"], cell, groups.pairs)
                np.add.at(self._sums["won"], cell, groups.won)
                for name, both in scaled.items():
                    for half, numbers in zip(half_names(name), both, strict=True):
                        np.add.at(self._sums[half], cell, numbers)
            if self._mixes is not None:
                np.add.at(self._mixes, key * (len(self._mixes) // self._keys) + mix, 1)
            if self._seen is not None and dimensions.query is not None:
                self._seen[key, dimensions.query[lists]] = True
        if self._written:
            columns = {"list": lists, "code": groups.group}
            columns |= {name: getattr(groups, name) for name in _WRITTEN}
            with self._counting.registered("groups", pyarrow.table(columns)):
                self._counting.connection.execute(
                    f"INSERT INTO {self._rows} BY NAME SELECT * FROM groups"
                )

    @property
    def _keys(self) -> int:
        return len(self._dimensions.values) * self._groups

    def store(self) -> None:
        """Make the three session tables."""
        self._store_sums()
        self._store_queries()
        self._store_mixes()

    def _store_sums(self) -> None:
        if self._sums is None:
            scaled = ", ".join(f"sum({name})::HUGEINT AS {name}" for name in _SCALED)
            self._by_sql(
                GROUP_SUMS,
                "bucket, count(*) AS lists, count(*) FILTER (pairs > 0) AS pair_lists, "
                f"sum(pairs)::HUGEINT AS pairs, sum(won)::HUGEINT AS won, {scaled}",
                f"bucket, pairs, won, {', '.join(_SCALED)}",
            )
            return
        here = np.flatnonzero(self._sums["lists"])
        key, bucket = np.divmod(here, self._dimensions.buckets)
        columns = {"key": key, "bucket": bucket}
        columns |= {name: counts[here] for name, counts in self._sums.items()}
        scaled = ", ".join(f"{joined(name)} AS {name}" for name in _SCALED)
        self._from_counters(
            GROUP_SUMS,
            "bucket::INTEGER AS bucket, lists, pair_lists, pairs::HUGEINT AS pairs, "
            f"won::HUGEINT AS won, {scaled}",
            columns,
        )

    def _store_queries(self) -> None:
        if self._dimensions.query is None:
            self._counting.make(
                GROUP_QUERIES,
                "SELECT slice, slice_value, group_value, sum(lists)::BIGINT AS queries "
                "FROM group_sums GROUP BY ALL",
            )
        elif self._seen is None:
            self._by_sql(GROUP_QUERIES, "count(DISTINCT query_id) AS queries", "query_id")
        else:
            queries = np.count_nonzero(self._seen, axis=1)
            here = np.flatnonzero(queries)
            self._from_counters(GROUP_QUERIES, "queries", {"key": here, "queries": queries[here]})

    def _store_mixes(self) -> None:
        if self._mixes is None:
            self._by_sql(MIXES, "length, own, count(*) AS lists", "length, own")
            return
        counted_cells = np.flatnonzero(self._mixes)
        key, mix = np.divmod(counted_cells, len(self._mixes) // self._keys)
        at = np.arange(self._wide + 1)
        triangles = at * (at + 1) // 2
        length = np.searchsorted(triangles, mix, side="right") - 1
        columns = {"key": key, "length": length, "own": mix - triangles[length]}
        self._from_counters(
            MIXES, "length, own, lists", {**columns, "lists": self._mixes[counted_cells]}
        )

    def _from_counters(self, table: Table, selected: str, columns: dict[str, IntArray]) -> None:
        """A session table of counters whose ``key`` stands for a slice value and a group."""
        value, group = np.divmod(columns.pop("key"), self._groups)
        counters = pyarrow.table({"code": value, "group_code": group, **columns})
        with self._counting.registered("counters", counters):
            self._counting.make(
                table,
                f"SELECT slice, slice_value, group_value, {selected} FROM counters "
                "JOIN slice_values USING (code) JOIN (SELECT code AS group_code, group_value "
                f"FROM group_names WHERE attribute = {literal(self._attribute)}) "
                "USING (group_code)",
            )

    def _by_sql(self, table: Table, selected: str, columns: str) -> None:
        """The same table from ``list_groups``."""
        slices = self._counting.lists_slices("lists")
        rows = (
            f"SELECT found.*, group_value, bucket, query_id{slices} FROM {self._rows} AS found "
            "JOIN lists USING (list) JOIN group_names "
            f"ON group_names.code = found.code AND attribute = {literal(self._attribute)}"
        )
        sliced = self._counting.by_slice(f"({rows})", f"group_value, {columns}")
        self._counting.make(
            table,
            f"SELECT slice, slice_value, group_value, {selected} FROM ({sliced}) GROUP BY ALL",
        )


def fill_group_counts(counting: Counting, attribute: str) -> None:
    """Add what ARP and NDKL are made of, and what their intervals resample, for one attribute."""
    name = literal(attribute)
    key = f"SELECT slice, slice_value, {name} AS attribute, group_value"
    counting.fill(
        PAIR_STATS,
        f"{key}, sum(pair_lists)::BIGINT AS lists, sum(pairs)::HUGEINT AS pairs, "
        "sum(won)::HUGEINT AS won, sum(won_share)::HUGEINT AS share_sum "
        "FROM group_sums GROUP BY ALL HAVING sum(pair_lists) > 0",
    )
    counting.fill(
        PREFIX_STATS,
        f"{key}, sum(lists)::BIGINT AS lists, any_value(queries) AS queries, "
        "sum(entropy)::HUGEINT AS entropy_sum, sum(share)::HUGEINT AS share_sum, "
        "sum(divergence)::HUGEINT AS own_sum FROM group_sums "
        "JOIN group_queries USING (slice, slice_value, group_value) GROUP BY ALL",
    )
    counting.fill_buckets(
        "FROM group_sums",
        ("slice", "slice_value", "group_value"),
        {
            "pair_lists": "sum(pair_lists)",
            "pair_share": f"sum(won_share) / {UNIT}",
            **{
                statistic: f"sum({column}) / {PREFIX_UNIT}"
                for statistic, column in _STATISTICS.items()
            },
        },
        attribute=attribute,
    )
