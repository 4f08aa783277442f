"""Metrics that are computed list by list: from accepted rows to sums of scaled integers.

A list's number is scaled to an integer once and then only added, so what is stored depends neither
on the order of lists nor on how many are held at a time.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow

from metrics import UNIT, UNKNOWN, WHOLE, Grouping, Measure, PerList, Rankings
from metrics.terms import Given
from metrics.weights import FloatArray, IntArray, Weight
from pipeline.counts.bucket_sums import BucketTotals
from pipeline.counts.dimensions import Ground
from pipeline.counts.exact_sums import scaled_sums
from pipeline.counts.rankings import LIST_COLUMNS, Chunk, chunks_of, rankings_of
from pipeline.counts.sql import Counting, bucket_of, scaled, structs
from pipeline.errors import AuditError
from pipeline.log.row_chunks import RowChunk, row_chunks
from pipeline.log.whole_lists import CHUNK_ROWS
from pipeline.settings.audit import Settings
from pipeline.settings.labels import JOIN
from pipeline.version import code_version
from schemas.columns import Table, internal, literal

_DENSE_CELLS = 4_000_000
"""Most cells of a table of lists by groups that is held at a time."""

Row = dict[str, Any]
Part = tuple[str, str]
"""A slice and its value."""


def basis(settings: Settings, measure: Measure, attribute: str | None) -> str:
    """What the numbers of a measure depend on beside its label, as stored with them.

    Unlike counts, they are results of a formula: of the code that computed them, too.
    """
    said: dict[str, Any] = {"code": code_version()}
    if attribute is not None and settings.unknown_group.in_aggregations:
        said["unknown_counts"] = True
    if measure.given.get("reference") == "target" and attribute in settings.targets:
        said["target"] = settings.targets[attribute]
    return json.dumps(said, sort_keys=True, ensure_ascii=False)


@dataclass
class _Sums:
    """Exact sums over lists, by slice and group."""

    buckets: BucketTotals[tuple[Any, ...]] = field(default_factory=BucketTotals)
    lists: dict[tuple[Any, ...], int] = field(default_factory=dict)
    value: dict[tuple[Any, ...], int] = field(default_factory=dict)
    weight: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def add(self, key: tuple[Any, ...], lists: int, value: int, weight: int) -> None:
        for sums, one in ((self.lists, lists), (self.value, value), (self.weight, weight)):
            sums[key] = sums.get(key, 0) + one


@dataclass(frozen=True)
class _Cells:
    """Which sums the numbers of some lists belong to: a code per list, and what codes mean."""

    code: IntArray
    parts: Sequence[Part]

    def keys(self, names: Sequence[str | None]) -> list[tuple[Part, str | None]]:
        """Slice and group of each cell, where a list has one cell per group of ``names``."""
        return [(part, name) for part in self.parts for name in names]


class ListMeasuring:
    """Fills ``list_stats`` of a batch for the measures that look at lists."""

    def __init__(self, counting: Counting, ground: Ground, measures: Iterable[Measure]) -> None:
        self.counting, self.ground = counting, ground
        self.connection, self.settings = counting.connection, counting.settings
        self.database = counting.database
        self.measures = tuple(measures)
        grouped = any(measure.metric.grouped for measure in self.measures)
        self.attributes = {
            JOIN.join(attribute): attribute
            for attribute in (self.settings.attributes if grouped else ())
        }
        self.sizes = {name: self._sizes(name) for name in self.attributes}
        self.names = {name: self._group_names(name) for name in self.attributes}
        self.sums: dict[tuple[Measure, str | None, str | None], _Sums] = {}

    def run(self) -> None:
        """Compute all lists."""
        in_lists = [each for each in self.measures if each.metric.by_query is None]
        if in_lists:
            for chunk in self._chunks():
                lists = rankings_of(chunk, self.settings.relevant_from)
                bucket = self.ground.bucket[chunk.lists]
                self._add(in_lists, lists, self._codes(chunk), self._slices(chunk), bucket)
        for weight, given, measures in self._by_weight():
            for queries in self._queries(weight, given):
                bucket = queries.rows["bucket"].to_numpy()[queries.lists.starts]
                self._add(measures, queries.lists, {}, [_queried(queries)], bucket)

    def _chunks(self) -> Iterator[RowChunk]:
        """Lists as they are stored, fewer at a time where there are many groups."""
        known = self.ground.known
        most = max(map(len, self.names.values()), default=1)
        chunk_rows = min(CHUNK_ROWS, max(4096, _DENSE_CELLS // most))
        columns = ["cell", *(name for name in LIST_COLUMNS if known.get(name, 1))]
        with self.connection.cursor() as reading:
            yield from row_chunks(reading, self.counting.name, columns, chunk_rows)

    def _codes(self, chunk: RowChunk) -> dict[str, IntArray]:
        """Where the group of each row stands among the names of an attribute's groups."""
        found = {}
        for name, names in self.names.items():
            groups = self.ground.groups[name]
            place = {value: at for at, value in enumerate(names)}
            codes = np.array([place[value] for value in groups.names], dtype=np.int64)
            found[name] = codes[groups.code].take(chunk.ints["cell"])
        return found

    def _slices(self, chunk: RowChunk) -> list[_Cells]:
        """The slices that each list belongs to, a table for each slice column."""
        ground = self.ground
        part = ground.part[chunk.lists]
        found = []
        for codes in ground.codes:
            first, last = codes.min(), codes.max()
            found.append(_Cells(codes[part] - first, ground.values[first : last + 1]))
        return found

    def _by_weight(self) -> Iterator[tuple[Weight, Given, list[Measure]]]:
        """Metrics of queries, those that weigh positions alike together."""
        alike: dict[Any, list[Measure]] = {}
        for measure in self.measures:
            if measure.metric.by_query is not None:
                key = measure.metric.by_query, measure.parameters
                alike.setdefault(key, []).append(measure)
        for (weight, _), measures in alike.items():
            yield weight, measures[0].given, measures

    def _queries(self, weight: Weight, given: Given) -> Iterator[Chunk]:
        """The items of each query, once per slice, with the mean position weight they received."""
        numbers = {
            name: float(value) for name, value in given.items() if isinstance(value, int | float)
        }
        deepest = self.connection.execute("SELECT max(place) FROM positions").fetchall()[0][0]
        ranks = np.arange(1, deepest + 1)
        weights = np.rint(weight.at(ranks, numbers) * UNIT).astype(np.int64)
        self.connection.register(
            "weights_frame", pyarrow.table({"place": ranks, "weight": weights})
        )
        self.connection.execute("CREATE OR REPLACE TEMP TABLE weights AS FROM weights_frame")
        self.connection.unregister("weights_frame")
        slices = [(literal(WHOLE), literal(WHOLE))]
        slices += [(literal(name), internal(name)) for name in self.settings.slices]
        self.connection.execute(
            "CREATE OR REPLACE TEMP VIEW sliced AS SELECT s.slice AS slice, "
            "s.slice_value AS slice_value, query_id, item_id, list_id, weight, relevance FROM "
            f"(SELECT *, unnest({structs('slice', 'slice_value', slices)}) AS s "
            f"FROM {self.counting.log} JOIN weights ON place = rank)"
        )
        key = "slice, slice_value, query_id"
        yield from chunks_of(
            self.connection,
            f"SELECT dense_rank() OVER (ORDER BY {key}) AS list, slice, slice_value, "
            f"{bucket_of('query_id')} AS bucket, "
            # Sums depend on their order, which must not depend on what items are called.
            "row_number() OVER (PARTITION BY slice, slice_value, query_id "
            "ORDER BY weight, relevance, item_id) "
            f"AS rank, relevance, weight / {float(UNIT)!r} / lists AS exposure "
            f"FROM (SELECT {key}, item_id, sum(weight)::DOUBLE AS weight, "
            f"sum({scaled('relevance', UNIT)})::DOUBLE / {float(UNIT)!r} / count(relevance) "
            "AS relevance FROM sliced GROUP BY ALL) "
            f"JOIN (SELECT {key}, count(DISTINCT list_id) AS lists FROM sliced GROUP BY ALL) "
            f"USING ({key}) ORDER BY list, rank",
            relevant_from=self.settings.relevant_from,
        )

    def _group_names(self, attribute: str) -> tuple[str, ...]:
        """Groups of an attribute: those in the batch, in the item table and in the target."""
        found = self.connection.execute(
            f"SELECT DISTINCT group_value FROM {self.database}.rank_counts WHERE attribute = ?",
            [attribute],
        ).fetchall()
        expected = {*self.sizes[attribute], *self.settings.targets.get(attribute, {})}
        return tuple(sorted({name for (name,) in found} | expected))

    def _sizes(self, attribute: str) -> dict[str, int]:
        """Items per group in the item table; empty without one."""
        found = self.connection.execute(
            f"SELECT group_value, items FROM {self.database}.group_sizes WHERE attribute = ?",
            [attribute],
        ).fetchall()
        return dict(found)

    def _grouping(self, code: IntArray, attribute: str) -> Grouping:
        names = self.names[attribute]
        unknown_counts = self.settings.unknown_group.in_aggregations
        return Grouping(
            names,
            code,
            np.array([unknown_counts or name != UNKNOWN for name in names]),
            _shares(names, self.settings.targets.get(attribute, {})),
            _shares(names, self.sizes[attribute]),
        )

    def _add(
        self,
        measures: Sequence[Measure],
        lists: Rankings,
        codes: Mapping[str, IntArray],
        slices: Sequence[_Cells],
        bucket: IntArray,
    ) -> None:
        """Add what lists are worth to the sums; ``codes`` are those of their rows' groups."""
        plain = [measure for measure in measures if not measure.metric.grouped]
        self._evaluate(plain, None, lists, slices, bucket)
        grouped = [measure for measure in measures if measure.metric.grouped]
        for attribute in self.attributes if grouped else ():
            with_groups = replace(lists, grouping=self._grouping(codes[attribute], attribute))
            self._evaluate(grouped, attribute, with_groups, slices, bucket)

    def _evaluate(
        self,
        measures: Sequence[Measure],
        attribute: str | None,
        lists: Rankings,
        slices: Sequence[_Cells],
        bucket: IntArray,
    ) -> None:
        for measure in measures:
            for reading, function in measure.list_functions.items():
                found = function(lists, measure.given)
                sums = self.sums.setdefault((measure, reading, attribute), _Sums())
                groups = self.names[attribute] if measure.metric.per_group and attribute else None
                _sum_up(measure, sums, found, groups, slices, bucket)

    def rows(self) -> Iterator[Row]:
        """Rows of list_stats."""
        for (measure, reading, attribute), sums in self.sums.items():
            # Where no list has a value, one row still says that all were looked at.
            sums.add(((WHOLE, WHOLE), None), 0, 0, 0)
            for (part, group), lists in sums.lists.items():
                yield {
                    **self._about(measure, reading, attribute, part, group),
                    "lists": lists,
                    "value_sum": sums.value[part, group],
                    "weight_sum": sums.weight[part, group],
                }

    def bucket_rows(self) -> Iterator[Row]:
        """Rows of bucket_sums."""
        for (measure, reading, attribute), sums in self.sums.items():
            for (part, group), buckets, value, weight in sums.buckets.totals():
                about = self._about(measure, reading, attribute, part, group)
                for statistic, found in (("value", value), ("weight", weight)):
                    yield {**about, "statistic": statistic, "buckets": buckets, "sums": found}

    def _about(
        self,
        measure: Measure,
        reading: str | None,
        attribute: str | None,
        part: Part,
        group: str | None,
    ) -> Row:
        return {
            "slice": part[0],
            "slice_value": part[1],
            "attribute": attribute,
            "metric": measure.label,
            "reading": reading,
            "group_value": group,
            "basis": basis(self.settings, measure, attribute),
        }


def _sum_up(
    measure: Measure,
    sums: _Sums,
    found: PerList,
    groups: Sequence[str] | None,
    slices: Sequence[_Cells],
    bucket: IntArray,
) -> None:
    """Add the numbers of some lists to ``sums``, under (slice, group)."""
    names: Sequence[str | None] = (None,) if groups is None else groups
    value = found.value.reshape(-1, len(names))
    weight = np.ones(value.shape) if found.weight is None else found.weight.reshape(value.shape)
    defined = ~np.isnan(value)
    if not (np.isfinite(value[defined]).all() and np.isfinite(weight[defined]).all()):
        raise AuditError(
            f"{measure.label} is not finite on some list; nothing was stored. "
            "This is a fault of the program: please report it."
        )
    which, group = np.nonzero(defined)
    values, weights = value[which, group], weight[which, group]
    for table in slices:
        cell = table.code[which] * len(names) + group
        keys = table.keys(names)
        cells = len(keys)
        sums.buckets.add(keys, cell, bucket[which], values, weights)
        lists = np.bincount(cell, minlength=cells)
        totals = scaled_sums(values, cell, cells)
        # Most lists weigh 1 each, and counting them has just been done.
        plain = found.weight is None
        whole = [n * UNIT for n in lists.tolist()] if plain else scaled_sums(weights, cell, cells)
        for at in np.flatnonzero(lists).tolist():
            sums.add(keys[at], int(lists[at]), totals[at], whole[at])


def _queried(chunk: Chunk) -> _Cells:
    """The slice of each query, which a chunk of queries says itself."""
    starts = pyarrow.array(chunk.lists.starts)
    parts = list(
        zip(
            *(chunk.rows[name].take(starts).to_pylist() for name in ("slice", "slice_value")),
            strict=True,
        )
    )
    names = sorted(set(parts))
    at = {part: code for code, part in enumerate(names)}
    return _Cells(np.array([at[part] for part in parts]), names)


def _shares(names: Sequence[str], sizes: Mapping[str, float]) -> FloatArray | None:
    """``sizes`` as shares that add up to 1, by group; None where there are none."""
    if not sizes:
        return None
    found = np.array([float(sizes.get(name, 0)) for name in names])
    shares: FloatArray = found / found.sum()
    return shares


def arrow_of(table: Table, rows: Iterable[Row]) -> pyarrow.Table:
    """Rows of ``table`` as Arrow."""
    return pyarrow.Table.from_pylist(list(rows), schema=table.arrow)
