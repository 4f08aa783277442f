"""Changes and their parts: what a split holds, and how parts are made to add up.

Not here: scores and counts (``decomposition``, ``counterfactuals``).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import fsum

import numpy as np

from metrics.weights import BoolArray, FloatArray

Ends = tuple[float | None, float | None]
"""Ends of an interval, None where there is none."""
NOTHING: Ends = (None, None)


@dataclass(frozen=True)
class Change:
    """How a number moved; ``mix + treatment`` is ``change``, to the last bit.

    They are None where the number has no value in some batch, real or put together: ``reason``.
    The three have intervals, which hold at once.
    """

    before: float | None
    after: float | None
    change: float | None = None
    mix: float | None = None
    treatment: float | None = None
    reason: str | None = None
    change_interval: Ends = NOTHING
    mix_interval: Ends = NOTHING
    treatment_interval: Ends = NOTHING


@dataclass(frozen=True)
class Part:
    """What one cell has to do with a change.

    ``lists_before`` and ``lists_after`` are its lists in A and B, ``before`` and ``after`` the
    score of the cell by itself.  ``mix`` and ``treatment`` are its parts of those of the score,
    ``groups`` the same of each group's value; None where that has no split.  Intervals of all
    parts that are listed hold at once.
    """

    cell: str
    lists_before: int
    lists_after: int
    before: float | None
    after: float | None
    mix: float
    treatment: float
    groups: Mapping[str, tuple[float, float] | None]
    mix_interval: Ends = NOTHING
    treatment_interval: Ends = NOTHING


@dataclass(frozen=True)
class Split:
    """A change of a score, of the group values behind it, and the parts of cells in it.

    Parts stand in order of |mix| + |treatment|, the largest first.  ``shared_before`` and
    ``shared_after`` are the shares of lists in cells that both batches have.
    """

    score: Change
    groups: Mapping[str, Change]
    parts: tuple[Part, ...]
    shared_before: float
    shared_after: float

    @property
    def turnover(self) -> float:
        """The part of mix that comes from cells of one batch alone."""
        alone = (each for each in self.parts if not (each.lists_before and each.lists_after))
        return fsum(each.mix for each in alone)


def additive(change: float, mix: float) -> tuple[float, float, float]:
    """Change, mix and treatment, so that the first is the sum of the others to the last bit.

    Mix and treatment that all but cancel out have no bits as small as those of the change: then it
    gives up its own.
    """
    treatment = change - mix
    if mix + treatment != change:
        mix = change - treatment
        treatment = change - mix
    return mix + treatment, mix, treatment


def changes_alone(
    start: FloatArray,
    end: FloatArray,
    steps: FloatArray,
    at_start: Callable[[str, FloatArray], FloatArray],
    at_end: Callable[[str, FloatArray], FloatArray],
) -> FloatArray:
    """What each step changes, as the mean of being the first and the last.

    All ``steps``, shape (resamples, cells, size), lead from ``start`` to ``end``, (resamples,
    size).  The functions give numbers of states, and what they return has shape (resamples, cells,
    numbers).  Where one of the two is not defined, the other counts; where neither is, 0.
    """
    low, high = at_start("none", start[:, None]), at_end("all", end[:, None])
    gains = np.stack(
        [
            at_start("one", start[:, None] + steps) - low,
            high - at_end("all but one", end[:, None] - steps),
        ]
    )
    defined = ~np.isnan(gains)
    sums = np.where(defined, gains, 0.0).sum(axis=0)
    return np.where(
        steps.any(axis=2, keepdims=True), sums / np.maximum(defined.sum(axis=0), 1), 0.0
    )


def shared_out(alone: FloatArray, difference: FloatArray, moved: BoolArray) -> FloatArray:
    """``alone``, shape (..., cells, numbers), made to add up to ``difference``, (..., numbers).

    What is over or lacking goes to cells in proportion to their absolute parts; to all that
    ``moved``, in equal parts, where none has one.
    """
    rest = difference - alone.sum(axis=-2)
    weight = np.abs(alone)
    none = weight.sum(axis=-2, keepdims=True) == 0
    weight = np.where(none, moved[..., None], weight)
    total = weight.sum(axis=-2, keepdims=True)
    found: FloatArray = alone + rest[..., None, :] * weight / np.where(total > 0, total, 1.0)
    return found
