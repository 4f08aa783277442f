"""A change of a score, split into mix and treatment, and over the cells of a partition.

Not here: which cells there are (``partition``), and how rows are scored (``scorer``).

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

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from metrics.weights import BoolArray, FloatArray
from pipeline.compare.batches.contributions import changes_alone, shared_out

Score = Callable[[object, FloatArray, int], FloatArray]
"""Scores rows, (resamples, states, size), under a key, like one of the batches."""


@dataclass(frozen=True)
class Sides:
    """Both batches cut into the same cells, or resamples of them.

    ``rows`` of A and of B have shape (resamples, cells, size), and their first number is how many
    lists a cell has.
    """

    rows: tuple[FloatArray, FloatArray]

    def lists(self, side: int) -> FloatArray:
        """Lists of each cell, shape (resamples, cells)."""
        found: FloatArray = self.rows[side][:, :, 0]
        return found

    def total(self, side: int) -> FloatArray:
        """Lists in all, shape (resamples, 1)."""
        found: FloatArray = self.lists(side).sum(axis=1, keepdims=True)
        return found

    def batch(self, treated: int, mixed: int) -> FloatArray:
        """The cells of the batch with the treatment of one and the mix of the other.

        It has as many lists as the batch whose treatment it is: where the mix of both is the same,
        whatever their sizes, no cell is changed in the last bit.  Lists of a cell that this batch
        lacks are those of the other.
        """
        own, other = self._factors(treated, mixed)
        found: FloatArray = self.rows[treated] * own[:, :, None]
        found += self.rows[mixed] * other[:, :, None]
        return found

    def sums(self, treated: int, mixed: int) -> FloatArray:
        """The same batch, its cells added up, shape (resamples, size)."""
        own, other = self._factors(treated, mixed)
        found: FloatArray = np.einsum("rc,rcs->rs", own, self.rows[treated])
        if other.any():
            found += np.einsum("rc,rcs->rs", other, self.rows[mixed])
        return found

    def _factors(self, treated: int, mixed: int) -> tuple[FloatArray, FloatArray]:
        """How often the lists of a cell count, of its own batch or else of the other one."""
        own, wanted = self.lists(treated), self.lists(mixed)
        is_own = own > 0
        under = np.where(is_own, own, wanted) * self.total(mixed)
        factor = np.divide(
            wanted * self.total(treated), under, out=np.zeros_like(own), where=under > 0
        )
        return np.where(is_own, factor, 0.0), np.where(is_own, 0.0, factor)


@dataclass(frozen=True)
class Division:
    """A change divided into mix and treatment; None where parts were not asked for.

    ``corners`` are the scores of the four batches by treatment and mix, shapes (resamples, 1 +
    groups), as those of ``mix`` and ``treatment``; their parts have (resamples, cells, 1 + groups).
    """

    corners: Mapping[tuple[int, int], FloatArray]
    mix_parts: FloatArray | None = None
    treatment_parts: FloatArray | None = None

    @property
    def change(self) -> FloatArray:
        """B less A."""
        return self.corners[1, 1] - self.corners[0, 0]

    @property
    def mix(self) -> FloatArray:
        """Mean of the two steps that change the mix."""
        ab, ba = self.steps(mixing=True)
        return (ab + ba) / 2

    @property
    def treatment(self) -> FloatArray:
        """Mean of the two steps that change the treatment."""
        ab, ba = self.steps(mixing=False)
        return (ab + ba) / 2

    def steps(self, *, mixing: bool) -> tuple[FloatArray, FloatArray]:
        """The two steps of one kind: under what A has of the other kind, then under B's."""
        corners = self.corners
        if mixing:
            return corners[0, 1] - corners[0, 0], corners[1, 1] - corners[1, 0]
        return corners[1, 0] - corners[0, 0], corners[1, 1] - corners[0, 1]


def divided(sides: Sides, score: Score, *, parts: bool = True) -> Division:
    """The change from A to B, divided, and over the cells where ``parts`` are asked for."""
    corners = {
        (t, m): score(("corner", t, m), sides.sums(t, m)[:, None], t)[:, 0]
        for t in (0, 1)
        for m in (0, 1)
    }
    found = Division(corners)
    if not parts:
        return found
    batches = {key: sides.batch(*key) for key in corners}
    ab, ba = found.steps(mixing=True)
    mix, treatment = (
        np.zeros((*sides.lists(0).shape, corners[0, 0].shape[-1])) for _ in ("mix", "treatment")
    )
    for t, step in ((0, ab), (1, ba)):
        mix += _over_cells(("mix", t), (batches[t, 0], batches[t, 1]), (t, t), step, score)
    # Both with as many lists as A has.
    scale = (sides.total(0) / sides.total(1))[:, :, None]
    both = (sides.lists(0) > 0) & (sides.lists(1) > 0)
    ab, ba = found.steps(mixing=False)
    for m, step in ((0, ab), (1, ba)):
        after = batches[1, m] * scale
        # A cell of one batch alone is the same in both, but for rounding.
        before = np.where(both[:, :, None], batches[0, m], after)
        treatment += _over_cells(("treatment", m), (before, after), (0, 1), step, score)
    return Division(corners, mix / 2, treatment / 2)


def _over_cells(
    key: object,
    rows: tuple[FloatArray, FloatArray],
    like: tuple[int, int],
    difference: FloatArray,
    score: Score,
) -> FloatArray:
    """What each cell does to a difference, shape (resamples, cells, 1 + groups)."""
    steps = rows[1] - rows[0]
    start, end = (each.sum(axis=1) for each in rows)
    alone = changes_alone(
        start,
        end,
        steps,
        lambda name, states: score((key, "start", name), states, like[0]),
        lambda name, states: score((key, "end", name), states, like[1]),
    )
    moved: BoolArray = np.asarray(steps.any(axis=2))
    return shared_out(alone, difference, moved)
