"""A change of a score, split into mix and treatment, and over the cells of a partition.

Not here: where counts come from (``cells``), and how they are put together (``counterfactuals``).

Both batches are cut into the same cells: the values of a slice column, or queries.  *Mix* is how
many lists each cell has, *treatment* all that happens inside its lists: which items they show, and
in which order.  The batch "mix of B, treatment of A" takes the lists of A in each cell, as many
times as B has lists there; "mix of A, treatment of B" the other way round.  With f(treatment, mix),

    mix       = ((f(A, B) - f(A, A)) + (f(B, B) - f(B, A))) / 2
    treatment = ((f(B, A) - f(A, A)) + (f(B, B) - f(A, B))) / 2

which add up to f(B, B) - f(A, A).  These are the Shapley values (Shapley 1953) of the two factors;
for a mean over cells they are Kitagawa's components (Kitagawa 1955), which Oaxaca and Blinder
(both 1973) take to regressions.  Where only one batch has a cell, there is no other treatment: it
comes or goes as it is, and counts as mix.  Sizes of the item table go with the treatment.  Batches
count by shares of their lists: as many requests of everything twice over change nothing.

A cell's part in each of the four differences is the mean of what it changes when it is the first
to change and when it is the last: with two cells the Shapley value, which over many cells costs
2^cells evaluations.  What the parts lack of the difference, as several cells do some of it only
together, is divided in proportion to their sizes, so that parts add up to mix and to treatment.
"""

from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from math import fsum, isnan

import numpy as np

from metrics import Counts, ScoreName
from metrics.weights import FloatArray
from pipeline.compare.batches.contributions import (
    Change,
    Part,
    Split,
    additive,
    changes_alone,
    shared_out,
)
from pipeline.compare.batches.counterfactuals import Layout, Point, Row, narrowed, point
from pipeline.errors import AuditError

LEFT_OUT = "left out"
"""What cells are called together of which none is told by itself."""
Cells = Mapping[str, tuple[Counts | None, Counts | None]]
"""Counts of each cell in A and in B, None where the batch has no list of it."""

_AGREEMENT = 1e-9
"""How far cells may be from the whole batch: sums of scaled integers differ by rounding only."""


def split(
    name: ScoreName,
    cells: Cells,
    before: Counts,
    after: Counts,
    *,
    top_is_good: bool = True,
    left_out: Collection[str] = (),
) -> Split:
    """Why ``name`` is another on ``after`` than on ``before``, whose lists ``cells`` divide.

    Cells that are ``left_out`` are one cell, LEFT_OUT, before anything is computed of them.
    AuditError where the cells do not add up to the batches.  The order of the cells plays no part
    but in the last bits.
    """
    name = narrowed(name)
    if left_out:
        cells = _pooled(name, cells, (before, after), left_out)
    found = _Split(name, cells, before, after, top_is_good=top_is_good)
    return found.split()


def _pooled(
    name: ScoreName, cells: Cells, whole: tuple[Counts, Counts], left_out: Collection[str]
) -> Cells:
    every = [each for pair in cells.values() for each in pair if each is not None]
    layout = Layout.of(name.measure, [*whole, *every])
    pools = [
        layout.pooled(
            [each for cell in sorted(left_out) if (each := cells[cell][side]) is not None], like
        )
        for side, like in enumerate(whole)
    ]
    told = {cell: pair for cell, pair in cells.items() if cell not in left_out}
    pool = LEFT_OUT
    while pool in told:
        pool += " "
    return {**told, pool: (pools[0], pools[1])}


class _Split:
    """The four batches of one split as rows, and what their differences come to."""

    def __init__(
        self, name: ScoreName, cells: Cells, before: Counts, after: Counts, *, top_is_good: bool
    ) -> None:
        self.name, self.whole = name, (before, after)
        self.top_is_good = top_is_good
        self.cells = {key: cells[key] for key in sorted(cells)}
        every = [each for pair in self.cells.values() for each in pair if each is not None]
        self.layout = Layout.of(name.measure, [before, after, *every])
        self.groups = self.layout.groups if name.measure.metric.per_group else ()
        self.rows = [
            [None if each is None else self.layout.row(each) for each in pair]
            for pair in self.cells.values()
        ]
        self.lists = [
            [0 if each is None else each.lists for each in pair] for pair in self.cells.values()
        ]
        self.total = before.lists, after.lists
        self._check_sums()

    def _check_sums(self) -> None:
        for side, whole in enumerate(self.whole):
            lists = sum(pair[side] for pair in self.lists)
            rows = fsum(
                each.total("rows").sum()
                for pair in self.cells.values()
                if (each := pair[side]) is not None
            )
            if lists != whole.lists or rows != whole.total("rows").sum():
                raise AuditError(
                    f"{self.name.label}: cells of {lists:,} lists and {rows:,.0f} rows do not "
                    f"add up to {whole.lists:,} lists and {whole.total('rows').sum():,.0f} rows; "
                    "run both batches again"
                )

    def split(self) -> Split:
        real = [self._point(counts) for counts in self.whole]
        corners = {
            (treated, mixed): self._numbers(self._sum(self._batch(treated, mixed)), treated)
            for treated in (0, 1)
            for mixed in (0, 1)
        }
        self._check_values(corners, real)
        ab, ba = corners[0, 1] - corners[0, 0], corners[1, 1] - corners[1, 0]
        mix = (ab + ba) / 2
        parts_mix = (self._mixed(0, ab) + self._mixed(1, ba)) / 2
        parts_treatment = (
            self._treated(0, corners[1, 0] - corners[0, 0])
            + self._treated(1, corners[1, 1] - corners[0, 1])
        ) / 2
        shared = [
            sum(pair[side] for pair in self.lists if all(pair)) / self.total[side]
            for side in (0, 1)
        ]
        return Split(
            self._change(real, mix, 0),
            {group: self._change(real, mix, at) for at, group in enumerate(self.groups, start=1)},
            tuple(self._parts(parts_mix, parts_treatment)),
            *shared,
        )

    # -- batches that are and that never were

    def _factor(self, cell: int, treated: int, mixed: int) -> Fraction:
        """How often the lists of one batch count where the other's mix is wanted.

        The result has as many lists as the batch whose treatment it is: where the mix of both is
        the same, whatever their sizes, the factor is 1.
        """
        lists = self.lists[cell]
        if lists[mixed] == 0:
            return Fraction(0)
        own = lists[treated] or lists[mixed]
        return Fraction(lists[mixed] * self.total[treated], own * self.total[mixed])

    def _batch(self, treated: int, mixed: int) -> list[Row | None]:
        """The cells of the batch with the treatment of one and the mix of the other."""
        rows: list[Row | None] = []
        for cell, pair in enumerate(self.rows):
            factor = self._factor(cell, treated, mixed)
            row = pair[treated] if pair[treated] is not None else pair[mixed]
            rows.append(row.times(float(factor)) if row is not None and factor else None)
        return rows

    def _sum(self, rows: Sequence[Row | None]) -> FloatArray:
        state = np.zeros(self.layout.size)
        for row in rows:
            if row is not None:
                state[row.at] += row.value
        return state

    def _point(self, counts: Counts) -> Point:
        return point(self.name, counts, top_is_good=self.top_is_good)

    def _numbers(self, state: FloatArray, treated: int) -> FloatArray:
        """Score and group values of a state, shape (1 + groups,)."""
        return self._point(self.layout.counts(state, self.whole[treated])).numbers(self.groups)

    def _check_values(
        self, corners: Mapping[tuple[int, int], FloatArray], real: Sequence[Point]
    ) -> None:
        for side in (0, 1):
            whole_batch, from_cells = real[side].numbers(self.groups), corners[side, side]
            if not np.allclose(
                whole_batch, from_cells, rtol=_AGREEMENT, atol=_AGREEMENT, equal_nan=True
            ):
                raise AuditError(
                    f"{self.name.label}: the cells of a batch score {from_cells[0]:g} together, "
                    f"the whole batch {whole_batch[0]:g}. "
                    "This is a fault of the program: please report it."
                )

    # -- parts of cells

    def _mixed(self, treated: int, difference: FloatArray) -> FloatArray:
        """What each cell does to the difference that mix makes, shape (cells, 1 + groups)."""
        rows = self._batch(treated, 0), self._batch(treated, 1)
        return self._divided(rows, (treated, treated), difference)

    def _treated(self, mixed: int, difference: FloatArray) -> FloatArray:
        """What each cell does to the difference that treatment makes."""
        # Both with as many lists as A has.
        scale = self.total[0] / self.total[1]
        after = [row and row.times(scale) for row in self._batch(1, mixed)]
        # A cell of one batch alone is the same in both, but for rounding.
        both = [all(pair) for pair in self.lists]
        before = [
            row if yes else other
            for row, other, yes in zip(self._batch(0, mixed), after, both, strict=True)
        ]
        return self._divided((before, after), (0, 1), difference)

    def _divided(
        self,
        rows: tuple[Sequence[Row | None], Sequence[Row | None]],
        like: tuple[int, int],
        difference: FloatArray,
    ) -> FloatArray:
        nothing = Row(np.zeros(0, dtype=np.int64), np.zeros(0))
        size = self.layout.size
        steps = [
            (after or nothing).less(before or nothing, size)
            for before, after in zip(*rows, strict=True)
        ]
        start, end = (self._sum(each) for each in rows)
        alone = changes_alone(
            start,
            end,
            steps,
            lambda state: self._numbers(state, like[0]),
            lambda state: self._numbers(state, like[1]),
        )
        return shared_out(alone, difference, np.array([bool(len(each.at)) for each in steps]))

    def _parts(self, mix: FloatArray, treatment: FloatArray) -> list[Part]:
        def value(counts: Counts | None) -> float | None:
            return None if counts is None else _known(self._point(counts).value)

        parts = [
            Part(
                key,
                self.lists[at][0],
                self.lists[at][1],
                value(self.cells[key][0]),
                value(self.cells[key][1]),
                float(mix[at, 0]),
                float(treatment[at, 0]),
                {
                    group: None
                    if np.isnan(mix[at, column] + treatment[at, column])
                    else (float(mix[at, column]), float(treatment[at, column]))
                    for column, group in enumerate(self.groups, start=1)
                },
            )
            for at, key in enumerate(self.cells)
        ]
        return sorted(parts, key=lambda each: (-abs(each.mix) - abs(each.treatment), each.cell))

    def _change(self, real: Sequence[Point], mix: FloatArray, at: int) -> Change:
        """The score, or the group at ``at - 1``, before and after."""
        a, b = (_known(each.numbers(self.groups)[at]) for each in real)
        if a is None or b is None:
            return Change(a, b, reason=self._reason(real, at))
        change = b - a
        if isnan(mix[at]):
            reason = "no value with the mix of one batch and the treatment of the other"
            return Change(a, b, change, reason=reason)
        return Change(a, b, *additive(change, float(mix[at])))

    def _reason(self, real: Sequence[Point], at: int) -> str:
        for each in real:
            if at == 0 and each.reason is not None:
                return each.reason
            if at and isnan(each.groups.get(self.groups[at - 1], np.nan)):
                return each.reasons.get(self.groups[at - 1], "group_absent")
        raise AssertionError("asked only where a value is missing")


def _known(number: float) -> float | None:
    return None if isnan(number) else float(number)
