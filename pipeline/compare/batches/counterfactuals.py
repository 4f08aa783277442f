"""Counts as plain rows of numbers, so that batches that never were can be put together and scored.

Not here: which batches are put together, and why (``decomposition``).

Counts are additive, and so are such rows: cells times weights, added up in the order of the cells,
are the counts of a batch with another mix of cells.  They need not be whole numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np

from metrics import (
    UNKNOWN,
    Counts,
    ListSums,
    Measure,
    PairCounts,
    PrefixCounts,
    Replicates,
    Total,
    asked,
    bare_ranks,
)
from metrics.asked import total_of
from metrics.weights import BoolArray, FloatArray, IntArray

PAIRS = ("lists", "share")
PREFIXES = ("entropy", "share", "own")
SUMS = ("lists", "value", "weight")
_ROWS = total_of("rows", None)


@dataclass(frozen=True)
class Layout:
    """Which number of a row is which sum over lists.

    ``groups`` are all that any cell has, in name order, ``totals`` the sums over the rank histogram
    that the measure asks for, with the weights of the ranks 1..``depth``.  ``known`` are log
    columns, and ``sums`` the readings of the measure that have sums over lists.
    """

    measure: Measure
    groups: tuple[str, ...]
    depth: int
    totals: Mapping[Total, FloatArray | None]
    known: tuple[str, ...]
    sums: tuple[tuple[str, str | None], ...]

    @classmethod
    def of(cls, measure: Measure, counts: Sequence[Counts]) -> "Layout":
        """The layout that holds all of ``counts``, as far as ``measure`` looks at them."""
        depth = max(int(each.ranks.rank.max(initial=1)) for each in counts)
        keys = {(measure.label, reading) for reading in measure.list_functions}
        return cls(
            measure,
            tuple(sorted({name for each in counts for name in each.groups})),
            depth,
            {_ROWS: None, **({} if measure.uses_lists else asked(measure, depth).totals)},
            tuple(sorted({name for each in counts for name in each.known_rows})),
            tuple(sorted(keys.intersection(*(each.list_sums for each in counts)), key=str)),
        )

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Columns of the rank histogram that are asked for."""
        return tuple(dict.fromkeys(column for column, _ in self.totals))

    @cached_property
    def per_list(self) -> bool:
        """Whether pairs, prefixes or sums over lists are asked for, beside the rank histogram."""
        fields = asked(self.measure, (self.measure.k or 1) + 1).fields
        return bool(fields & {"pairs", "prefixes", "list_sums"})

    @property
    def width(self) -> int:
        """Numbers of a sum over lists."""
        return len(self.groups) if self.measure.metric.per_group else 1

    @cached_property
    def starts(self) -> list[int]:
        """Where the parts of a row begin, and where it ends.

        Lists, rows with a known value, totals, pairs, prefixes, sums over lists.
        """
        groups, per_list = len(self.groups), int(self.per_list)
        sizes = (
            1,
            len(self.known),
            groups * len(self.totals),
            groups * len(PAIRS) * per_list,
            groups * len(PREFIXES) * per_list,
            self.width * len(SUMS) * len(self.sums) * per_list,
        )
        return [0, *np.cumsum(sizes).tolist()]

    @property
    def size(self) -> int:
        """Numbers in a row."""
        return self.starts[-1]

    def row(self, counts: Counts) -> FloatArray:
        """``counts`` as a row, shape (size,)."""
        ranks = counts.ranks
        code = {name: at for at, name in enumerate(self.groups)}
        own = np.array([code[name] for name in counts.groups], dtype=np.int64)
        columns = {name: getattr(ranks, name) for name in self.columns}
        nowhere = np.zeros(len(ranks.rank), dtype=np.int64)
        row: FloatArray = self.rows(1, nowhere, own[ranks.group], ranks.rank, columns)[0]
        row[0] = counts.lists
        row[1 : self.starts[2]] = [counts.known_rows.get(name, 0) for name in self.known]
        if self.per_list:
            pairs, prefixes, sums = (row[a:b] for a, b in pairwise(self.starts[3:]))
            if counts.pairs is not None:
                _put(pairs, PAIRS, counts.pairs, own)
            if counts.prefixes is not None:
                _put(prefixes, PREFIXES, counts.prefixes, own)
            places = own if self.measure.metric.per_group else np.zeros(1, dtype=np.int64)
            tables = sums.reshape(len(self.sums), len(SUMS) * self.width)
            for table, key in zip(tables, self.sums, strict=True):
                if key in counts.list_sums:
                    _put(table, SUMS, counts.list_sums[key], places)
        return row

    def rows(
        self,
        count: int,
        row: IntArray,
        group: IntArray,
        rank: IntArray,
        columns: Mapping[str, Any],
    ) -> FloatArray:
        """Rows that hold nothing but totals, shape (count, size), from rank histograms.

        ``row``, ``group`` and ``rank`` say whose an entry is, and ``columns`` what it counts, all
        of shape (entries,).
        """
        found = np.zeros((count, self.size))
        groups = len(self.groups)
        place = row * groups + group
        at = self.starts[2]
        for (column, _), weight in self.totals.items():
            values = columns[column].astype(np.float64)
            if weight is not None:
                values = values * weight[rank - 1]
            sums = np.bincount(place, weights=values, minlength=count * groups)
            found[:, at : at + groups] = sums.reshape(count, groups)
            at += groups
        return found

    def present(self, row: FloatArray, like: Counts) -> BoolArray:
        """The groups with rows, and those that the measure expects, shape (groups,)."""
        expected = _expected(self.measure, like)
        rows = row[self.starts[2] :][: len(self.groups)]
        return np.array([n > 0 or g in expected for n, g in zip(rows, self.groups, strict=True)])

    def counts(self, rows: FloatArray, like: Counts, present: BoolArray) -> Replicates:
        """The counts that rows stand for, of shape (size,), or (replicates, size).

        What is no count is as in ``like``, and there are no groups but those ``present``.
        """
        lead = rows.shape[:-1]
        known, totals, pairs, prefixes, sums = (
            rows[..., a:b] for a, b in pairwise(self.starts[1:])
        )

        def grouped(part: FloatArray) -> list[FloatArray]:
            tables = part.reshape(*lead, -1, len(self.groups))[..., present]
            return [tables[..., at, :] for at in range(tables.shape[-2])]

        measured = sums.reshape(*lead, len(self.sums) * self.per_list, len(SUMS), self.width)
        if self.measure.metric.per_group:
            measured = measured[..., present]
        first = known if not lead else known[0]
        # Nothing that is computed from counts asks them to be whole numbers.
        return Replicates(
            lists=rows[..., :1] if lead else float(rows[0]),
            groups=tuple(name for name, yes in zip(self.groups, present, strict=True) if yes),
            ranks=bare_ranks(self.depth),
            binary=like.binary,
            pairs=PairCounts(*cast(Any, grouped(pairs))) if self.per_list else None,
            prefixes=PrefixCounts(*grouped(prefixes)) if self.per_list else None,
            items=None,
            catalogue=like.catalogue,
            target=like.target,
            unknown_counts=like.unknown_counts,
            absent=like.absent,
            known_rows=cast(Any, dict(zip(self.known, first.tolist(), strict=True))),
            totals=dict(zip(self.totals, grouped(totals), strict=True)),
            list_sums={
                key: ListSums(*(cast(Any, measured[..., at, n, :]) for n in range(len(SUMS))))
                for at, key in enumerate(self.sums if self.per_list else ())
            },
        )


def _put(part: FloatArray, names: Sequence[str], source: object, where: IntArray) -> None:
    table = part.reshape(len(names), -1)
    for column, name in zip(table, names, strict=True):
        column[where] = getattr(source, name)


def _expected(measure: Measure, like: Counts) -> set[str]:
    """Groups that count although no row has them."""
    named = {"catalogue": like.catalogue, "target": like.target}.get(measure.expects or "")
    return {name for name in named or () if like.unknown_counts or name != UNKNOWN}
