"""Metrics that are computed list by list: from accepted rows to sums of scaled integers.

A list's number is scaled to an integer once and then only added, so what is stored depends neither
on the order of lists nor on how many are held at a time.

Not here: the metrics themselves (``metrics``), and adding up (``list_sums``).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow

from metrics import UNIT, UNKNOWN, WHOLE, Grouping, Measure, Rankings
from metrics.terms import Given
from metrics.weights import FloatArray, IntArray, Weight
from pipeline.counts.dimensions import Dimensions
from pipeline.counts.exact_sums import scaled, whole_numbers
from pipeline.counts.list_sums import ListSums, Part, SliceCodes, add_lists
from pipeline.counts.rankings import LIST_COLUMNS, Chunk, chunks_of, rankings_of
from pipeline.counts.sql import Counting, bucket_of
from pipeline.log.row_chunks import RowChunk
from pipeline.log.whole_lists import CHUNK_ROWS
from pipeline.settings.audit import Settings
from pipeline.settings.labels import JOIN
from pipeline.version import code_version
from schemas.columns import Row, Table, internal, quoted
from schemas.counts import BUCKET_SUMS, LIST_STATS

_DENSE_CELLS = 4_000_000
"""Most cells of a table of lists by groups that is held at a time: 32 MB for each such table."""


def basis(settings: Settings, measure: Measure, attribute: str | None) -> str:
    """What the numbers of a measure depend on beside its label, as stored with them.

    Unlike counts, they are results of a formula: of the code that computed them, too.
    """
    dependencies: dict[str, Any] = {"code": code_version()}
    if attribute is not None and settings.unknown_group.in_aggregations:
        dependencies["unknown_counts"] = True
    if measure.given.get("reference") == "target" and attribute in settings.targets:
        dependencies["target"] = settings.targets[attribute]
    return json.dumps(dependencies, sort_keys=True, ensure_ascii=False)


def fill_list_stats(counting: Counting, dimensions: Dimensions) -> None:
    """Add the measures that look at lists one by one, and what their intervals resample."""
    wanted = [measure for measure in counting.settings.measures if measure.uses_lists]
    if not wanted:
        return
    stats = ListStats(counting, dimensions, wanted)
    stats.run()
    for table, rows in ((LIST_STATS, stats.rows()), (BUCKET_SUMS, stats.bucket_rows())):
        with counting.registered("list_rows", _arrow_of(table, rows)):
            counting.fill(table, "SELECT * FROM list_rows")


class ListStats:
    """Fills ``list_stats`` of a batch for the measures that look at lists."""

    def __init__(
        self, counting: Counting, dimensions: Dimensions, measures: Iterable[Measure]
    ) -> None:
        self.counting, self.dimensions = counting, dimensions
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
        self.sums: dict[tuple[Measure, str | None, str | None], ListSums] = {}

    def run(self) -> None:
        """Compute all lists."""
        in_lists = [each for each in self.measures if each.metric.by_query is None]
        if in_lists:
            for chunk in self._chunks():
                lists = rankings_of(chunk, self.settings.relevant_from)
                bucket = self.dimensions.bucket[chunk.lists]
                self._add(in_lists, lists, self._codes(chunk), self._slices(chunk), bucket)
        for weight, given, measures in self._by_weight():
            for queries in self._queries(weight, given):
                bucket = queries.rows["bucket"].to_numpy()[queries.lists.starts]
                self._add(measures, queries.lists, {}, [_queried(queries)], bucket)

    def _chunks(self) -> Iterator[RowChunk]:
        """Lists as they are stored, fewer at a time where there are many groups."""
        known = self.dimensions.known
        most = max(map(len, self.names.values()), default=1)
        chunk_rows = min(CHUNK_ROWS, max(4096, _DENSE_CELLS // most))
        columns = ["cell", *(name for name in LIST_COLUMNS if known.get(name, 1))]
        yield from self.counting.chunks(columns, chunk_rows)

    def _codes(self, chunk: RowChunk) -> dict[str, IntArray]:
        """Where the group of each row stands among the names of an attribute's groups."""
        codes_by_attribute = {}
        for name, names in self.names.items():
            groups = self.dimensions.groups[name]
            place = {value: at for at, value in enumerate(names)}
            codes = np.array([place[value] for value in groups.names], dtype=np.int64)
            codes_by_attribute[name] = codes[groups.code].take(chunk.ints["cell"])
        return codes_by_attribute

    def _slices(self, chunk: RowChunk) -> list[SliceCodes]:
        """The slices that each list belongs to, a table for each slice column."""
        dimensions = self.dimensions
        part = dimensions.part[chunk.lists]
        slices = []
        for codes in dimensions.codes:
            first, last = codes.min(), codes.max()
            slices.append(SliceCodes(codes[part] - first, dimensions.values[first : last + 1]))
        return slices

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
        self.counting.need_rows()
        numbers = {
            name: float(value) for name, value in given.items() if isinstance(value, int | float)
        }
        deepest = self.connection.execute("SELECT max(place) FROM positions").fetchall()[0][0]
        ranks = np.arange(1, deepest + 1)
        weights = whole_numbers(weight.at(ranks, numbers), UNIT)
        with self.counting.registered(
            "weights_frame", pyarrow.table({"place": ranks, "weight": weights})
        ):
            self.connection.execute("CREATE OR REPLACE TEMP TABLE weights AS FROM weights_frame")
        # Columns of the user may be called like one of ours.
        renamed = "".join(f", {quoted(name)} AS {internal(name)}" for name in self.settings.slices)
        columns = "query_id, item_id, list_id, weight, relevance"
        rows = (
            f"(SELECT query_id, item_id, list_id, rank, relevance{renamed} "
            f"FROM {self.database}.ranking_log) JOIN weights ON place = rank"
        )
        sliced = self.counting.by_slice(f"(SELECT * FROM {rows})", columns)
        self.connection.execute(f"CREATE OR REPLACE TEMP VIEW sliced AS {sliced}")
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
        batch_groups = self.connection.execute(
            f"SELECT DISTINCT group_value FROM {self.database}.rank_counts WHERE attribute = ?",
            [attribute],
        ).fetchall()
        expected = {*self.sizes[attribute], *self.settings.targets.get(attribute, {})}
        return tuple(sorted({name for (name,) in batch_groups} | expected))

    def _sizes(self, attribute: str) -> dict[str, int]:
        """Items per group in the item table; empty without one."""
        size_rows = self.connection.execute(
            f"SELECT group_value, items FROM {self.database}.group_sizes WHERE attribute = ?",
            [attribute],
        ).fetchall()
        return dict(size_rows)

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
        slices: Sequence[SliceCodes],
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
        slices: Sequence[SliceCodes],
        bucket: IntArray,
    ) -> None:
        for measure in measures:
            for reading, function in measure.list_functions.items():
                found = function(lists, measure.given)
                sums = self.sums.setdefault((measure, reading, attribute), ListSums())
                groups = self.names[attribute] if measure.metric.per_group and attribute else None
                add_lists(measure, sums, found, groups, slices, bucket)

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


def _queried(chunk: Chunk) -> SliceCodes:
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
    return SliceCodes(np.array([at[part] for part in parts]), names)


def _shares(names: Sequence[str], sizes: Mapping[str, float]) -> FloatArray | None:
    """``sizes`` as shares that add up to 1, by group; None where there are none."""
    if not sizes:
        return None
    found = np.array([float(sizes.get(name, 0)) for name in names])
    shares: FloatArray = found / found.sum()
    return shares


def _arrow_of(table: Table, rows: Iterable[Row]) -> pyarrow.Table:
    """Rows of ``table`` as Arrow."""
    return pyarrow.Table.from_pylist(list(rows), schema=table.arrow)
