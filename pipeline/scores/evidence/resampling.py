"""Counts of a batch, resampled: whole buckets of queries are drawn again and again.

Requests of one query are not independent, so queries are what is drawn.  They are hashed into a
fixed number of buckets, and each bucket counts a Poisson(1) number of times in a resample: the cost
does not depend on the number of lists.  Every score is a ratio of sums, so the number of buckets
that a resample happens to draw cancels out.

Not here: the ends of intervals (``intervals``).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pyarrow

from metrics import (
    UNIT,
    Counts,
    ListSums,
    Measure,
    PairCounts,
    PrefixCounts,
    Replicates,
    Total,
    asked,
    bare_ranks,
    parse_measure,
)
from metrics.weights import FloatArray, IntArray
from pipeline.counts.sql import attribute_structs, slice_structs
from pipeline.scores.evidence.randomness import poisson_weights
from pipeline.settings.audit import Settings
from schemas.columns import Row, internal, quoted
from schemas.counts import BUCKET_SUMS, BUCKETS

Slice = tuple[str, str]
Key = tuple[Any, ...]
_GROUPED = ("pair_lists", "pair_share", "entropy", "share", "own")
_SINGLE = ("lists", "gap", "share_gap", "share_lists", "exposure", "exposure_ranks")
"""Statistics of bucket_sums, with and without groups."""
_DIGITS = 48
"""Bits of a bucket's sum, of that of all buckets: then no sum of a resample is ever rounded."""
_FINE = 50
"""Bits of a rank's weight, of the largest."""
_SCALED = ("relevance", "click")
"""Columns of bucket_counts that are scaled."""


def exact_product(weights: FloatArray, sums: FloatArray) -> FloatArray:
    """``weights @ sums`` for small whole weights, the same to the last bit in any order of adding.

    Shapes (resamples, buckets) and (buckets, columns).  Sums are rounded to whole multiples of a
    power of two so small that products and their sums fit the 53 bits of a double.
    """
    size = np.abs(sums).sum(axis=0)
    _, exponent = np.frexp(size)
    # A factor of 2 to that power could itself be too large, or too small, for a double.
    whole = weights @ np.rint(np.ldexp(sums, _DIGITS - exponent))
    found: FloatArray = np.ldexp(whole, exponent - _DIGITS)
    return found


class Resampling:
    """Replicates of a batch, slice by slice, from its tables bucket_counts and bucket_sums."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        database: str,
        settings: Settings,
        measures: Iterable[Measure],
    ) -> None:
        self._connection = connection
        self._database = quoted(database)
        self._settings = settings
        found = connection.execute(f"SELECT max(rank) FROM {self._database}.bucket_counts")
        self._depth = int(found.fetchall()[0][0] or 0)
        self._totals: dict[Total, FloatArray | None] = {}
        for measure in measures:
            if not measure.uses_lists:
                self._totals |= asked(measure, self._depth).totals
        if self._totals:
            self._sum_ranks()

    def _sum_ranks(self) -> None:
        """Make the sums over ranks that measures ask for, a column for each.

        They may be many, so they stay in the session, which can spill them, until asked for.
        """
        weights: dict[str, Any] = {"rank": np.arange(1, self._depth + 1)}
        sums = []
        for at, ((column, _), weight) in enumerate(self._totals.items()):
            stored, scale = (f"{column}_sum", UNIT) if column in _SCALED else (column, 1)
            if weight is not None:
                _, exponent = np.frexp(weight.max())
                fine = 2 ** (_FINE - int(exponent))
                weights[f"w{at}"] = np.rint(weight * float(fine)).astype(np.int64)
                stored, scale = f"{stored}::HUGEINT * w{at}", scale * fine
            sums.append((f"sum({stored}) AS f{at}", f"sum(f{at})::DOUBLE / {float(scale)!r}"))
        users = [internal(name) for name in self._settings.slices]
        users += [internal(name) for name in self._settings.attribute_columns]
        apart = ", ".join(("bucket", *users))
        cells = (
            f"SELECT {apart}, {', '.join(inner for inner, _ in sums)} "
            f"FROM {self._database}.bucket_counts JOIN rank_weights USING (rank) GROUP BY {apart}"
        )
        slices, attributes = slice_structs(self._settings), attribute_structs(self._settings)
        key = "slice, slice_value, attribute, group_value, bucket"
        outer = ", ".join(f"{outer} AS f{at}" for at, (_, outer) in enumerate(sums))
        self._connection.register("rank_weights", pyarrow.table(weights))
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE rank_sums AS SELECT {key}, {outer} FROM "
            "(SELECT *, s.slice AS slice, s.slice_value AS slice_value, g.attribute AS attribute, "
            f"g.group_value AS group_value FROM (SELECT *, unnest({slices}) AS s "
            f"FROM (SELECT *, unnest({attributes}) AS g FROM ({cells})))) "
            f"GROUP BY {key} ORDER BY {key}"
        )
        self._connection.unregister("rank_weights")

    def _rank_sums(self, part: Slice, attribute: str) -> pyarrow.Table:
        """Sums over ranks of one slice and attribute, by group and bucket."""
        return self._connection.sql(
            "SELECT * FROM rank_sums WHERE slice = ? AND slice_value = ? AND attribute = ?",
            params=[*part, attribute],
        ).to_arrow_table()

    def _bucket_sums(self, part: Slice, attribute: str) -> Iterator[Row]:
        """Rows of bucket_sums of one slice and attribute, with arrays for their lists."""
        table = self._connection.sql(
            f"SELECT {BUCKET_SUMS.column_list} FROM {self._database}.bucket_sums WHERE slice = ? "
            "AND slice_value = ? AND coalesce(attribute, ?) = ?",
            params=[*part, attribute, attribute],
        ).to_arrow_table()
        packed = {name: table[name].combine_chunks() for name in ("buckets", "sums")}
        edges = packed["sums"].offsets.to_numpy()
        numbers = {name: lists.values.to_numpy() for name, lists in packed.items()}
        plain = table.drop_columns(list(packed)).to_pylist()
        for row, start, stop in zip(plain, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            yield row | {name: array[start:stop] for name, array in numbers.items()}

    def replicates(self, part: Slice, attribute: str, counts: Counts) -> Replicates:
        """Resamples of one slice and attribute, of which ``counts`` are the counts."""
        evidence = self._settings.evidence
        weights = poisson_weights(evidence.seed, evidence.resamples, BUCKETS)
        rows = list(self._bucket_sums(part, attribute))
        buckets = _occupied(rows)
        # Files of before have a multiple of the buckets; queries that share one now did so there,
        # or are drawn together here.
        weights = weights[:, buckets % BUCKETS]
        cells = self._rank_sums(part, attribute) if self._totals else None
        sums = self._by_bucket(rows, cells, counts, buckets)
        names, matrices = list(sums), list(sums.values())
        product = exact_product(weights, np.concatenate(matrices, axis=1))
        edges = np.cumsum([matrix.shape[1] for matrix in matrices])[:-1]
        found = dict(zip(names, np.split(product, edges, axis=1), strict=True))
        return self._assembled(found, counts)

    def _by_bucket(
        self,
        sums: Iterable[Row],
        cells: pyarrow.Table | None,
        counts: Counts,
        buckets: IntArray,
    ) -> dict[Key, FloatArray]:
        """Everything that is resampled, shape (buckets, groups), or (buckets, 1) without groups."""
        at = {name: place for place, name in enumerate(counts.groups)}
        rows, size = len(buckets), len(counts.groups)
        found: dict[Key, FloatArray] = {}
        if cells is not None:
            group = np.array([at[name] for name in cells["group_value"].to_pylist()])
            bucket = np.searchsorted(buckets, cells["bucket"].to_numpy())
        for place, total in enumerate(self._totals):
            found["total", total] = matrix = np.zeros((rows, size))
            if cells is not None:
                matrix[bucket, group] = cells[f"f{place}"].to_numpy()
        for name in (*_GROUPED, *_SINGLE):
            found["sum", name] = np.zeros((rows, size if name in _GROUPED else 1))
        for label, reading in counts.list_sums:
            wide = parse_measure(label).metric.per_group
            for statistic in ("value", "weight"):
                found["list", label, reading, statistic] = np.zeros((rows, size if wide else 1))
        for row in sums:
            key: Key = ("sum", row["statistic"])
            if row["metric"] is not None:
                key = ("list", row["metric"], row["reading"], row["statistic"])
            # Groups that are only expected stand in the sums of measures that expect them.
            column = 0 if row["group_value"] is None else at.get(row["group_value"])
            if key in found and column is not None:
                occupied = np.searchsorted(buckets, row["buckets"])
                found[key][occupied, column] = row["sums"]
        return found

    def _assembled(self, found: Mapping[Key, FloatArray], counts: Counts) -> Replicates:
        none = np.zeros(0, dtype=np.int64)
        alone: dict[str, Any] = {
            name: found["sum", name][:, 0] for name in _SINGLE if name != "lists"
        }
        together: dict[str, Any] = {name: found["sum", name] for name in _GROUPED}
        return Replicates(
            lists=found["sum", "lists"],
            groups=counts.groups,
            ranks=bare_ranks(self._depth),
            binary=counts.binary,
            pairs=PairCounts(together["pair_lists"], together["pair_share"]),
            prefixes=PrefixCounts(together["entropy"], together["share"], together["own"]),
            items=None if counts.items is None else replace(counts.items, **alone),
            catalogue=counts.catalogue,
            target=counts.target,
            unknown_counts=counts.unknown_counts,
            known_rows=counts.known_rows,
            totals={total: found["total", total] for total in self._totals},
            list_sums={
                (label, reading): ListSums(
                    none, *(found["list", label, reading, name] for name in ("value", "weight"))
                )
                for label, reading in counts.list_sums
            },
        )


def _occupied(rows: Iterable[Row]) -> IntArray:
    """Buckets with a list of the slice that ``rows`` are about, ascending."""
    for row in rows:
        if row["statistic"] == "lists":
            found: IntArray = row["buckets"].astype(np.int64)
            return found
    return np.zeros(0, dtype=np.int64)
