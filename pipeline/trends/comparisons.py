"""Groups against each other, as series that have a sign, and what such series say of a score.

A score such as ``min V / max V`` folds all groups into whichever is worst off.  Where groups are
nearly equal, the fold makes a kink of noise, and it never says who moved.  A group against the mean
of the others moves either way.

Not here: how a series is followed (``follow``).
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.elementary import log
from pipeline.trends.follow import Followed, Side
from pipeline.trends.residuals import Flags, Floats, Integers

ALWAYS = 0.95
"""Share of batches that have a group, for the others to be compared with it.  Without one that
comes and goes, the mean of the others would be another one every night."""


@dataclass(frozen=True)
class Comparisons:
    """Series of groups against the others; shapes (batches, series) and (series,).

    ``group`` is the place of each group among those compared, and ``mirror`` that of the only other
    one that it is compared with, -1 where there are several: the series of that one would be its
    mirror image, and is left out.  ``speaks`` is in which batches the series is the one that
    counts: with the groups that the others are compared with, it changes.
    """

    values: Floats
    group: Integers
    mirror: Integers
    speaks: Flags


def comparisons(values: Floats, *, is_ratio: bool, window: int, tested: int) -> Comparisons:
    """Each group against the mean of the others, for the last ``tested`` batches.

    Takes values of groups, shape (batches, groups), NaN where there is none.  The series is the
    logarithm of the group's value over that mean, or the group's value less it.  The others are
    those that ``ALWAYS`` were there in the ``window`` batches up to the tested one; a batch that
    lacks one of them has no value.  A value of 0 has an infinite logarithm.
    """
    always = _always(values, window)
    made, group, mirror, speaks = [], [], [], []
    for others in np.unique(always[-tested:], axis=0):
        each = _against(values, others, is_ratio=is_ratio)
        places = np.flatnonzero(others)
        for at in range(values.shape[1]):
            against = places[places != at]
            if len(places) == 2 and at == places[1]:
                continue
            made.append(each[:, at])
            group.append(at)
            mirror.append(against[0] if len(against) == 1 else -1)
            speaks.append((always == others).all(axis=1))
    return Comparisons(
        np.column_stack(made), np.array(group), np.array(mirror), np.column_stack(speaks)
    )


def _always(values: Floats, window: int) -> Flags:
    """Which groups were always there up to each batch, shape (batches, groups)."""
    there = ~np.isnan(values)
    any_there = there.any(axis=1)
    held = np.cumsum(there, axis=0)
    told = np.cumsum(any_there)
    if len(values) > window:
        held = np.concatenate([held[:window], held[window:] - held[:-window]])
        told = np.concatenate([told[:window], told[window:] - told[:-window]])
    return np.asarray((held > 0) & (held >= ALWAYS * told[:, None]))


def _against(values: Floats, others: Flags, *, is_ratio: bool) -> Floats:
    found = np.full(values.shape, np.nan)
    for at in range(values.shape[1]):
        compared = [other for other in np.flatnonzero(others) if other != at]
        if not compared:
            continue
        total = np.zeros(len(values))
        for other in compared:
            total += values[:, other]
        mean = total / len(compared)
        with np.errstate(divide="ignore", invalid="ignore"):
            found[:, at] = log(values[:, at]) - log(mean) if is_ratio else values[:, at] - mean
    return found


@dataclass(frozen=True)
class Spoken:
    """What several series say of each score; arrays of shape (scores,).

    ``worse`` and ``better`` are the sides of the series that say most, whose places are
    ``of_worse`` and ``of_better`` (-1 for none): there the p-values are for all series together
    (Bonferroni).
    """

    worse: Side
    better: Side
    of_worse: Integers
    of_better: Integers


def spoken(followed: Followed, of: Integers, speaks: Flags, scores: int) -> Spoken:
    """What the series of one batch say of each of so many ``scores``.

    ``of`` is the score of each series, and ``speaks`` whether it counts in this batch.
    """
    worse, of_worse = _most(followed.worse, of, speaks, scores)
    better, of_better = _most(followed.better, of, speaks, scores)
    return Spoken(worse, better, of_worse, of_better)


def _most(side: Side, of: Integers, speaks: Flags, scores: int) -> tuple[Side, Integers]:
    """For each score the side of the series with the smallest p-value, and which series it is."""
    known = np.flatnonzero(speaks & ~np.isnan(side.p_value))
    order = known[np.lexsort((known, -side.deviate[known], side.p_value[known], of[known]))]
    first = np.ones(len(order), dtype=np.bool_)
    first[1:] = of[order][1:] != of[order][:-1]
    place = np.full(scores, -1, dtype=np.int64)
    place[of[order][first]] = order[first]
    series = np.bincount(of[known], minlength=scores)
    found = Side(**{name: _taken(array, place) for name, array in vars(side).items()})
    return replace(found, p_value=np.minimum(1.0, series * found.p_value)), place


def _taken(array: NDArray[Any], place: Integers) -> NDArray[Any]:
    """``array`` at ``place``; NaN, "" or -1 where there is none."""
    nothing = {"f": np.nan, "U": ""}.get(array.dtype.kind, -1)
    if not len(array):
        return np.full(len(place), nothing, dtype=array.dtype)
    return np.where(place >= 0, array[place], np.array(nothing, dtype=array.dtype))
