"""One change of one score of two stored batches, divided by whatever is asked for.

Not here: which divisions are asked for and what they answer (``explain``), cells (``cells``).
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

import duckdb

from metrics import Counts, Measure, ScoreName, asked
from pipeline.compare.batches.bucketed import Bucketed, of_requests, of_slices
from pipeline.compare.batches.cells import (
    Stored,
    name_queries,
    pieces_of,
    query_cells,
    shared_queries,
    slice_cells,
)
from pipeline.compare.batches.contributions import Split
from pipeline.compare.batches.counterfactuals import Layout
from pipeline.compare.batches.partition import Cells, Partition, partition, split_of
from pipeline.compare.batches.requests import FILES, QUERY, both_files, finest
from pipeline.compare.batches.uncertainty import MOST_PARTS, Resamples, resampled
from pipeline.errors import NoData, SettingsError
from pipeline.privacy.small_cells import Block, Hidden, Place
from pipeline.settings.audit import Settings
from pipeline.store.sessions import first_line


@dataclass(frozen=True)
class Divided:
    """A division: by what, its cells, what falls to them, and resamples where there are any.

    ``shared`` are the shares of the lists of A and of B that have their like in the other.
    """

    by: tuple[str, ...]
    cut: Partition
    split: Split
    resamples: Resamples | None
    shared: tuple[float, float]

    @property
    def is_apart(self) -> bool:
        """Whether nothing of one batch has its like in the other."""
        return self.shared == (0.0, 0.0)


class Dividing:
    """The change of ``name``, of one attribute, between two batches with the counts ``whole``.

    ``no_intervals`` says why there are none.
    """

    def __init__(
        self,
        settings: Settings,
        name: ScoreName,
        attribute: str,
        sides: tuple[Stored, Stored],
        whole: tuple[Counts, Counts],
    ) -> None:
        self._settings, self._name, self._attribute = settings, name, attribute
        self._sides, self._whole = sides, whole
        self._good = settings.top_of_list == "good"
        self._stack = ExitStack()
        self._connection: duckdb.DuckDBPyConnection | None = None
        self.no_intervals: str | None = None

    def __enter__(self) -> Self:
        if not self._settings.evidence.resamples:
            self.no_intervals = "there are no intervals (evidence.resamples is 0)"
            return self
        try:
            files = both_files(self._settings, [side.batch for side in self._sides])
            self._connection = self._stack.enter_context(files)
        except NoData:
            self.no_intervals = "one of the batches keeps no counts by query, so no intervals"
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def by(self, way: str) -> Divided:
        """By the values of a slice column, or by query.

        SettingsError where the score cannot be divided so, NoData where a batch has no rows or the
        score no value.
        """
        check_way(self._name.measure, way)
        queries = way == QUERY and QUERY not in self._settings.slices
        if queries and self._settings.privacy.min_cell > 1:
            raise SettingsError("a query is too few to be told of (privacy.min_cell)")
        left_out: set[str] = set()
        if queries:
            a, b = (
                (side.batch, counts) for side, counts in zip(self._sides, self._whole, strict=True)
            )
            cells = query_cells(self._settings, self._attribute, a, b)
        else:
            cells = slice_cells(
                self._settings, self._name.measure, self._attribute, way, *self._sides
            )
            left_out = self._left_out(way, cells)
        cut = partition(self._name, cells, *self._whole, top_is_good=self._good, left_out=left_out)
        split = split_of(cut, cut.divided(), cells)
        if split.score.reason is not None:
            raise NoData(split.score.reason)
        place = {cell: at for at, cell in enumerate(cut.names)}
        pool = next((name for name in cut.names if name not in cells), "")
        named = {cell: place[pool if cell in left_out else cell] for cell in cells}
        parts = not queries and len(cut.names) <= MOST_PARTS
        loaded = self._loaded(way, named, queries=queries)
        shared = cut.shared
        if queries and self._connection is not None:
            # Pools of rare queries are in both, whatever queries they hold.
            shared = shared_queries(self._connection)
        return Divided((way,), cut, split, self._resampled(cut, loaded, parts=parts), shared)

    def finest(self, columns: Sequence[str], *, with_queries: bool) -> Divided | None:
        """By all that is known of a request; None where no cells will do, or none may be told of.

        What is not counted by bucket and rank has no cells but those of single columns.
        """
        fields = asked(self._name.measure, (self._name.measure.k or 1) + 1).fields
        if (
            self._connection is None
            or self._settings.privacy.min_cell > 1
            or fields & {"pairs", "prefixes", "list_sums"}
        ):
            return None
        try:
            found = finest(
                self._connection,
                self._settings,
                self._name,
                pieces_of(self._settings, self._attribute),
                self._whole,
                columns,
                with_queries=with_queries,
            )
        except duckdb.Error:
            # Files of before know less of their requests.
            return None
        if found is None:
            return None
        division = found.cut.divided(parts=False)
        score, groups = found.cut.changes(division.mix[0])
        if score.reason is not None:
            return None
        split = Split(score, groups, (), *found.cut.shared)
        return Divided(
            found.by,
            found.cut,
            split,
            self._resampled(found.cut, found.sides, parts=False),
            found.shared,
        )

    def _left_out(self, way: str, cells: Cells) -> set[str]:
        about = self._attribute if self._name.measure.metric.grouped else None
        return {
            value
            for value in cells
            for side in self._sides
            if is_hidden(side.hidden, Place(way, value), about)
        }

    def _loaded(
        self, way: str, cells: dict[str, int], *, queries: bool
    ) -> tuple[Bucketed, Bucketed] | None:
        """Rows of the cells by bucket; None where they cannot be had."""
        connection, settings = self._connection, self._settings
        if connection is None:
            return None
        layout = Layout.of(self._name.measure, self._whole)
        pieces = pieces_of(settings, self._attribute)
        try:
            if queries:
                name_queries(connection)
                query, cell = zip(
                    *connection.execute("SELECT query_id, cell FROM cells").fetchall(),
                    strict=True,
                )
                named = {"query_id": query}, [cells[each] for each in cell]
                a, b = (
                    of_requests(connection, file, settings, layout, pieces, *named)
                    for file in FILES
                )
            else:
                a, b = (
                    of_slices(connection, file, settings, layout, pieces, way, cells)
                    for file in FILES
                )
        except duckdb.Error as error:
            self.no_intervals = f"a batch was counted by another version ({first_line(error)})"
            return None
        return a, b

    def _resampled(
        self, cut: Partition, sides: tuple[Bucketed, Bucketed] | None, *, parts: bool
    ) -> Resamples | None:
        if sides is None:
            return None
        for side, rows in zip(sides, cut.rows, strict=True):
            if (side.by_cell(len(cut.names))[:, 0] != rows[:, 0]).any():
                self.no_intervals = "a batch was counted by another version; run it again"
                return None
        return resampled(cut, sides, self._settings.evidence, parts=parts)


def is_hidden(out: Hidden, place: Place, attribute: str | None) -> bool:
    """Whether nothing is told of a slice, or of an attribute in it."""
    return place in out.places or (attribute is not None and Block(*place, attribute) in out.blocks)


def check_way(measure: Measure, way: str) -> None:
    """SettingsError where what a measure is made of does not add up over the cells of ``way``."""
    fields = asked(measure, (measure.k or 1) + 1).fields
    if measure.metric.by_query is not None:
        raise SettingsError(
            "it looks at all lists of a query together, and they can fall into several cells"
        )
    if "items" in fields:
        raise SettingsError(
            "it sums up items, each over all lists that show it, so that cells do not add up"
        )
    if way == QUERY and fields & {"pairs", "prefixes", "list_sums"}:
        raise SettingsError("it needs sums over lists, which are kept per slice only")
