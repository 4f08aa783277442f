"""Two batches cut into the same cells, and how a change of a score falls to them.

Not here: the split itself (``decomposition``), and where cells come from (``cells``).
"""

from collections.abc import Collection, Mapping, Sequence
from math import isnan

import numpy as np

from metrics import Counts, ScoreName
from metrics.weights import FloatArray
from pipeline.compare.batches.contributions import Change, Part, Split, additive
from pipeline.compare.batches.counterfactuals import Layout
from pipeline.compare.batches.decomposition import Division, Sides, divided
from pipeline.compare.batches.scorer import Point, Scorer, narrowed, point
from pipeline.errors import AuditError

LEFT_OUT = "left out"
"""What cells are called together of which none is told by itself."""
Cells = Mapping[str, tuple[Counts | None, Counts | None]]
"""Counts of each cell in A and in B, None where the batch has no list of it."""

_AGREEMENT = 1e-9
"""How far cells may be from the whole batch: sums of scaled integers differ by rounding only."""


class Partition:
    """Two batches cut into the same cells, and a score on them.

    ``rows`` of A and B have shape (cells, size), all 0 where a batch has no list of a cell.
    """

    def __init__(
        self,
        name: ScoreName,
        layout: Layout,
        names: Sequence[str],
        rows: tuple[FloatArray, FloatArray],
        whole: tuple[Counts, Counts],
        *,
        top_is_good: bool = True,
    ) -> None:
        self.name, self.layout, self.names, self.whole = narrowed(name), layout, tuple(names), whole
        self.rows = rows
        self._top_is_good = top_is_good
        self.scorer = Scorer(self.name, layout, whole, top_is_good=top_is_good)
        self.groups = self.scorer.groups
        self.lists = [each[:, 0] for each in rows]
        self._check_sums()

    def _check_sums(self) -> None:
        start = self.layout.starts[2]
        for whole, cells in zip(self.whole, self.rows, strict=True):
            lists, rows = cells[:, 0].sum(), cells[:, start:][:, : len(self.layout.groups)].sum()
            if lists != whole.lists or rows != whole.total("rows").sum():
                raise AuditError(
                    f"{self.name.label}: cells of {lists:,.0f} lists and {rows:,.0f} rows do not "
                    f"add up to {whole.lists:,} lists and {whole.total('rows').sum():,.0f} rows; "
                    "run both batches again"
                )

    def divided(self, *, parts: bool = True) -> Division:
        """The change divided, as it is: every array has one resample."""

        def score(key: object, rows: FloatArray, side: int) -> FloatArray:
            return self.scorer.once(key, rows[0], side)[None]

        found = divided(Sides((self.rows[0][None], self.rows[1][None])), score, parts=parts)
        self._check_values(found)
        return found

    def resampled(self, sides: Sides, *, parts: bool = True) -> Division:
        """Resamples of what was ``divided`` before, of the same cells."""
        return divided(sides, self.scorer.resampled, parts=parts)

    @property
    def points(self) -> list[Point]:
        """The score of the two batches, and of their groups."""
        return [point(self.name, each, top_is_good=self._top_is_good) for each in self.whole]

    def _check_values(self, found: Division) -> None:
        for side, real in enumerate(self.points):
            whole_batch, from_cells = real.numbers(self.groups), found.corners[side, side][0]
            if not np.allclose(
                whole_batch, from_cells, rtol=_AGREEMENT, atol=_AGREEMENT, equal_nan=True
            ):
                raise AuditError(
                    f"{self.name.label}: the cells of a batch score {from_cells[0]:g} together, "
                    f"the whole batch {whole_batch[0]:g}. "
                    "This is a fault of the program: please report it."
                )

    def changes(self, mix: FloatArray) -> tuple[Change, dict[str, Change]]:
        """The score and the value of each group; ``mix`` has shape (1 + groups,)."""
        real = self.points
        changes = [self._change(real, mix, at) for at in range(1 + len(self.groups))]
        return changes[0], dict(zip(self.groups, changes[1:], strict=True))

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

    def own_values(self, side: int, cells: Cells) -> list[float | None]:
        """The score of each cell by itself in one batch, None where there is none."""
        found = []
        for at, cell in enumerate(self.names):
            row = self.rows[side][at]
            counts = cells[cell][side] if cell in cells else None
            if counts is None and row[0]:
                present = self.layout.present(row, self.whole[side])
                counts = self.layout.counts(row, self.whole[side], present)
            value = None if counts is None else point(self.name, counts).value
            found.append(None if value is None else _known(value))
        return found

    @property
    def shared(self) -> tuple[float, float]:
        """Shares of the lists of A and of B in cells that both have."""
        both = (self.lists[0] > 0) & (self.lists[1] > 0)
        before, after = (float(each[both].sum() / each.sum()) for each in self.lists)
        return before, after


def partition(
    name: ScoreName,
    cells: Cells,
    before: Counts,
    after: Counts,
    *,
    top_is_good: bool = True,
    left_out: Collection[str] = (),
) -> Partition:
    """``before`` and ``after`` cut into ``cells``, those ``left_out`` as one: LEFT_OUT.

    AuditError where the cells do not add up to the batches.
    """
    layout = Layout.of(name.measure, [before, after])
    pool = pool_name(cells)
    named = {cell: pool if cell in left_out else cell for cell in cells}
    names = sorted(set(named.values()))
    rows = np.zeros((2, len(names), layout.size))
    for cell in sorted(cells):
        for side, counts in enumerate(cells[cell]):
            if counts is not None:
                rows[side, names.index(named[cell])] += layout.row(counts)
    return Partition(
        name, layout, names, (rows[0], rows[1]), (before, after), top_is_good=top_is_good
    )


def pool_name(cells: Collection[str]) -> str:
    """LEFT_OUT, so that it is none of ``cells``."""
    pool = LEFT_OUT
    while pool in cells:
        pool += " "
    return pool


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
    found = partition(name, cells, before, after, top_is_good=top_is_good, left_out=left_out)
    return split_of(found, found.divided(), cells)


def split_of(cut: Partition, division: Division, cells: Cells) -> Split:
    """A division of a partition, told cell by cell; ``cells`` have scores of their own."""
    score, groups = cut.changes(division.mix[0])
    return Split(score, groups, tuple(_parts(cut, division, cells)), *cut.shared)


def _parts(cut: Partition, division: Division, cells: Cells) -> list[Part]:
    mix, treatment = division.mix_parts, division.treatment_parts
    if mix is None or treatment is None:
        raise ValueError("divided without parts")
    own = [cut.own_values(side, cells) for side in (0, 1)]
    parts = [
        Part(
            key,
            int(cut.lists[0][at]),
            int(cut.lists[1][at]),
            own[0][at],
            own[1][at],
            float(mix[0, at, 0]),
            float(treatment[0, at, 0]),
            {
                group: None
                if np.isnan(mix[0, at, column] + treatment[0, at, column])
                else (float(mix[0, at, column]), float(treatment[0, at, column]))
                for column, group in enumerate(cut.groups, start=1)
            },
        )
        for at, key in enumerate(cut.names)
    ]
    return sorted(parts, key=lambda each: (-abs(each.mix) - abs(each.treatment), each.cell))


def _known(number: float) -> float | None:
    return None if isnan(number) else float(number)
