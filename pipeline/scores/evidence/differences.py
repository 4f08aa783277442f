"""How far each group is from the one that is worst off, with intervals of the differences.

Two groups of one batch are counted in the same queries, so their own intervals say less about
which of them is worse off than the interval of their difference does.

Not here: resampling (``resampling``), and how intervals are made to hold at once (``comparisons``).
"""

from collections.abc import Sequence

import numpy as np

from metrics import Evaluation
from metrics.replicates import Replicated
from metrics.weights import FloatArray

Apart = tuple[float | None, float | None]
"""Ends of the interval of a group's value less that of the group that is worst off."""
NOTHING: Apart = (None, None)


def worst_of(found: Evaluation) -> str | None:
    """The group that is worst off by the first aggregation that knows; None where none does."""
    return next((score.worst_group for score in found.scores if score.worst_group), None)


def from_worst(
    found: Evaluation, made: Replicated, queries: FloatArray, confidence: float
) -> tuple[Apart, ...]:
    """Ends for each group, which hold for all of them with probability ``confidence``.

    ``queries`` is on how many queries of equal weight each group rests, shape (groups,).  NOTHING
    for the worst group itself, for groups that are not compared, and where there is no interval.
    """
    from pipeline.scores.evidence.comparisons import paired

    worst = worst_of(found)
    if found.values is None or made.groups is None or worst is None:
        return ()
    values = found.values.values
    at = found.groups.index(worst)
    others = [each for each in found.compared if each != at and np.isfinite(values[each])]
    if not others or not np.isfinite(values[at]) or not len(made.groups):
        return ()
    said = paired(
        values[others],
        np.full(len(others), values[at]),
        (made.groups[:, others], made.groups[:, [at] * len(others)]),
        np.minimum(queries[others], queries[at]),
        confidence,
    )
    ends: list[Apart] = [NOTHING] * len(found.groups)
    for each, low, high in zip(others, said.lower.tolist(), said.upper.tolist(), strict=True):
        if np.isfinite(low) and np.isfinite(high):
            ends[each] = (low, high)
    return tuple(ends)


def is_apart(ends: Sequence[float | None]) -> bool:
    """Whether an interval of a difference excludes equality."""
    low, high = ends
    return low is not None and high is not None and (low > 0.0 or high < 0.0)
