"""Counts of a batch, resampled: whole buckets of queries are drawn again and again.

Requests of one query are not independent, so queries are what is drawn.  They are hashed into a
fixed number of buckets, and each bucket counts a Poisson(1) number of times in a resample: the cost
does not depend on the number of lists.  Every score is a ratio of sums, so the number of buckets
that a resample happens to draw cancels out.

Not here: the ends of intervals (``intervals``).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
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
from metrics.asked import total_of
from metrics.weights import FloatArray, IntArray, ratio_of
from pipeline.counts.sql import attribute_structs, slice_structs
from pipeline.scores.evidence.intervals import LEAST_QUERIES
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
_ROWS = total_of("rows", None)
_KEY = ("slice", "slice_value", "attribute", "group_value", "bucket")
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
        self._file, self._database = database, quoted(database)
        self._settings = settings
        found = connection.execute(f"SELECT max(rank) FROM {self._database}.bucket_counts")
        self._depth = int(found.fetchall()[0][0] or 0)
        # Exposure stands for how alike lists of a query are, where a measure says nothing of it.
        self._totals: dict[Total, FloatArray | None] = {
            _ROWS: None,
            **asked(parse_measure("EXP"), self._depth).totals,
        }
        for measure in measures:
            if not measure.uses_lists:
                self._totals |= asked(measure, self._depth).totals
        self._sum("rank_sums", "bucket_counts", "rank", self._totals)
        self._chance = self._chances()
        if self._chance:
            self._sum("length_sums", "bucket_lengths", "length", self._chance)

    def occupied(self) -> list[Row]:
        """How many ``buckets`` hold each slice, and in it each group; no fewer queries do."""
        place, group = "slice, slice_value", "attribute, group_value"
        found = self._connection.sql(
            f"SELECT {place}, {group}, count(*) AS buckets FROM rank_sums GROUP BY ALL UNION ALL "
            f"SELECT {place}, NULL, NULL, count(DISTINCT bucket) FROM rank_sums GROUP BY ALL"
        ).to_arrow_table()
        return list(found.to_pylist())

    def _chances(self) -> dict[Total, FloatArray | None]:
        """For each weighted sum of rows, the mean weight in a list of each length, shape (depth,).

        In random order, that is what every row of the list has on average.  With gaps, ranks are
        not the places that rows can change; and files of before do not hold lengths.
        """
        counted = self._connection.execute(
            "SELECT 1 FROM duckdb_tables() WHERE database_name = ? AND table_name = ?",
            [self._file, "bucket_lengths"],
        ).fetchall()
        if not counted or self._settings.ranks.gaps == "keep":
            return {}
        length = np.arange(1, self._depth + 1)
        return {
            total: np.cumsum(weight) / length
            for total, weight in self._totals.items()
            if weight is not None and total[0] == "rows"
        }

    def _sum(
        self, table: str, source: str, by: str, totals: Mapping[Total, FloatArray | None]
    ) -> None:
        """Make sums over ranks or lengths, a column for each; ``totals`` says what they weigh.

        They may be many, so they stay in the session, which can spill them, until asked for.
        """
        weights: dict[str, Any] = {by: np.arange(1, self._depth + 1)}
        sums = []
        for at, ((column, _), weight) in enumerate(totals.items()):
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
            f"FROM {self._database}.{source} JOIN rank_weights USING ({by}) GROUP BY {apart}"
        )
        slices, attributes = slice_structs(self._settings), attribute_structs(self._settings)
        key = ", ".join(_KEY)
        outer = ", ".join(f"{outer} AS f{at}" for at, (_, outer) in enumerate(sums))
        self._connection.register("rank_weights", pyarrow.table(weights))
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {table} AS SELECT {key}, {outer} FROM "
            "(SELECT *, s.slice AS slice, s.slice_value AS slice_value, g.attribute AS attribute, "
            f"g.group_value AS group_value FROM (SELECT *, unnest({slices}) AS s "
            f"FROM (SELECT *, unnest({attributes}) AS g FROM ({cells})))) "
            f"GROUP BY {key} ORDER BY {key}"
        )
        self._connection.unregister("rank_weights")

    def _sums(
        self, table: str, part: Slice, attribute: str, counts: Counts, buckets: IntArray
    ) -> list[FloatArray]:
        """Sums of one slice and attribute, each of shape (buckets, groups)."""
        cells = self._connection.sql(
            f"SELECT * FROM {table} WHERE slice = ? AND slice_value = ? AND attribute = ?",
            params=[*part, attribute],
        ).to_arrow_table()
        at = {name: place for place, name in enumerate(counts.groups)}
        group = np.array([at[name] for name in cells["group_value"].to_pylist()], dtype=np.int64)
        bucket = np.searchsorted(buckets, cells["bucket"].to_numpy())
        found = []
        for name in cells.column_names[len(_KEY) :]:
            matrix = np.zeros((len(buckets), len(at)))
            matrix[bucket, group] = cells[name].to_numpy()
            found.append(matrix)
        return found

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

    def resampled(self, part: Slice, attribute: str, counts: Counts) -> "Resampled":
        """Resamples of one slice and attribute, of which ``counts`` are the counts."""
        evidence = self._settings.evidence
        weights = poisson_weights(evidence.seed, evidence.resamples, BUCKETS)
        rows = list(self._bucket_sums(part, attribute))
        buckets = _occupied(rows)
        # Files of before have a multiple of the buckets; queries that share one now did so there,
        # or are drawn together here.
        weights = weights[:, buckets % BUCKETS]
        sums = self._by_bucket(rows, counts, buckets)
        for kind, table, totals in (
            ("total", "rank_sums", self._totals),
            ("chance", "length_sums", self._chance),
        ):
            if totals:
                made = self._sums(table, part, attribute, counts, buckets)
                sums |= {(kind, total): matrix for total, matrix in zip(totals, made, strict=True)}
        names, matrices = list(sums), list(sums.values())
        once = np.ones((1, len(buckets)))
        product = exact_product(np.concatenate([weights, once]), np.concatenate(matrices, axis=1))
        edges = np.cumsum([matrix.shape[1] for matrix in matrices])[:-1]
        found = dict(zip(names, np.split(product, edges, axis=1), strict=True))
        chance = {
            total: ByChance(
                found["chance", total][-1],
                found["chance", total][:-1],
                cluster_variance(sums["total", total], sums["chance", total]),
            )
            for total in self._chance
        }
        return Resampled(
            self._assembled({name: matrix[:-1] for name, matrix in found.items()}, counts),
            self._assembled({name: matrix[-1:] for name, matrix in found.items()}, counts),
            effective_queries(sums["total", _ROWS]),
            {total[1]: each for total, each in chance.items() if total[1] is not None},
            cluster_variance(sums["sum", "pair_share"], sums["sum", "pair_lists"]),
            self._depth,
        )

    def _by_bucket(
        self,
        sums: Iterable[Row],
        counts: Counts,
        buckets: IntArray,
    ) -> dict[Key, FloatArray]:
        """Rows of bucket_sums as matrices, shape (buckets, groups), or (buckets, 1) without."""
        at = {name: place for place, name in enumerate(counts.groups)}
        rows, size = len(buckets), len(counts.groups)
        found: dict[Key, FloatArray] = {}
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
            absent=counts.absent,
            known_rows=counts.known_rows,
            totals={total: found["total", total] for total in self._totals},
            list_sums={
                (label, reading): ListSums(
                    none, *(found["list", label, reading, name] for name in ("value", "weight"))
                )
                for label, reading in counts.list_sums
            },
        )


@dataclass(frozen=True)
class ByChance:
    """What groups would get of a position weight in random order, shapes (groups,).

    ``sum`` is that of the batch, ``resampled`` that of its resamples, shape (resamples, groups),
    and ``variance`` that of what they got, by how far whole queries are from it.
    """

    sum: FloatArray
    resampled: FloatArray
    variance: FloatArray


@dataclass(frozen=True)
class Resampled:
    """Resamples of one slice and attribute; ``batch`` is the one in which all counts once.

    ``queries`` is on how many queries of equal weight each group rests, shape (groups,).
    ``by_chance`` holds sums of position weights, by the weights of ranks 1..``depth`` as bytes;
    ``pair_variance`` is that of sums of shares of pairs won, shape (groups,).
    """

    replicates: Replicates
    batch: Replicates
    queries: FloatArray
    by_chance: Mapping[bytes, ByChance]
    pair_variance: FloatArray
    depth: int

    def of_weight(self, weight: FloatArray) -> ByChance | None:
        """What chance would give of a weight of ranks 1..n, n being the slice's own depth."""
        start = weight.tobytes()
        return next((each for key, each in self.by_chance.items() if key.startswith(start)), None)


def cluster_variance(got: FloatArray, due: FloatArray) -> FloatArray:
    """Variance of what groups got in all, from how far their queries are apart, shape (groups,).

    ``got`` and ``due`` have shape (buckets, groups): a group that gets 2 % more than is due does
    so everywhere, which is no noise.
    """
    size = len(got)
    if size < LEAST_QUERIES:
        return np.full(got.shape[1], np.nan)
    share = np.nan_to_num(ratio_of(got.sum(axis=0), due.sum(axis=0)))
    found: FloatArray = ((got - share * due) ** 2).sum(axis=0) * (size / (size - 1.0))
    return found


def effective_queries(rows: FloatArray) -> FloatArray:
    """On how many queries of equal weight each group rests, shape (groups,) (Kish 1965).

    ``rows`` of the group in each bucket have shape (buckets, groups).  Where few queries hold most
    of the rows, it is those few that decide, however many others there are.  That n queries share
    b buckets makes n b / (n + b) of them, which is taken back.

    >>> effective_queries(np.array([[10.0, 9.0], [10.0, 1.0], [10.0, 0.0]])).round(2)
    array([3.01, 1.22])
    """
    found = np.nan_to_num(ratio_of(rows.sum(axis=0) ** 2, (rows**2).sum(axis=0)))
    # Close to as many as there are buckets, nobody can tell how many more there are.
    return found / np.maximum(1.0 - found / BUCKETS, 1.0 / BUCKETS)


def _occupied(rows: Iterable[Row]) -> IntArray:
    """Buckets with a list of the slice that ``rows`` are about, ascending."""
    for row in rows:
        if row["statistic"] == "lists":
            found: IntArray = row["buckets"].astype(np.int64)
            return found
    return np.zeros(0, dtype=np.int64)
