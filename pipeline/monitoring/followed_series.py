"""Series that scores are followed by: groups against each other, or a score that has none.

Not here: which scores these are (``inputs``), and what is found of them (``followed_scores``).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.monitoring.inputs import Floats, Integers, Matrix
from pipeline.settings.sections import Trends
from pipeline.trends import Followed, at_row, comparisons, follow, follow_all

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class FollowedSeries:
    """Series of consecutive batches; shapes (batches, series) and (series,).

    Each score has one of its own, which counts where it has no groups, or none that can be compared
    yet; the others are groups against each other.

    ``of`` is the column of the score that each belongs to; ``unfair`` is 1 or -1 as for the score,
    or 0 for groups against each other.  ``group`` and ``mirror`` are places among the groups of the
    score, -1 for none: see ``trends.Comparisons``.  ``speaks`` is in which batches it counts.
    """

    values: Floats
    of: Integers
    unfair: Integers
    group: Integers
    mirror: Integers
    speaks: Flags


def followed_series(matrix: Matrix, rows: slice, tested: int, settings: Trends) -> FollowedSeries:
    """The series of some rows of the matrix, of which the last ``tested`` are asked for."""
    every = np.ones((rows.stop - rows.start, 1), dtype=np.bool_)
    alone = np.array([-1])
    values, of, unfair, group, mirror, speaks = [], [], [], [], [], []
    for column in range(len(matrix.series)):
        held, score = matrix.compared.get(column), matrix.values[rows, column]
        values.append(score[:, None])
        of.append([column])
        unfair.append([matrix.unfair[column]])
        group.append(alone)
        mirror.append(alone)
        speaks.append(every)
        if held is None:
            continue
        made = comparisons(
            # Where groups had no score, nobody compared them.
            np.where(np.isnan(score)[:, None], np.nan, held.values[rows]),
            is_ratio=held.is_ratio,
            window=settings.window,
            tested=tested,
        )
        values.append(made.values)
        of.append([column] * len(made.group))
        unfair.append([0] * len(made.group))
        group.append(made.group)
        mirror.append(made.mirror)
        speaks.append(made.speaks)
    if not values:
        nothing = np.zeros(0, dtype=np.int64)
        empty = np.zeros((len(every), 0))
        return FollowedSeries(empty, nothing, nothing, nothing, nothing, empty > 0)
    return FollowedSeries(
        values=np.concatenate(values, axis=1),
        of=np.concatenate(of),
        unfair=np.concatenate(unfair),
        group=np.concatenate(group),
        mirror=np.concatenate(mirror),
        speaks=np.concatenate(speaks, axis=1),
    )


def speaking(series: FollowedSeries, row: int, followed: Followed) -> Flags:
    """Which series count in a row: the score's own only where none of its groups' can."""
    known = series.speaks[row] & ~np.isnan(followed.worse.deviate)
    has_groups = np.zeros(series.of.max(initial=-1) + 1, dtype=np.bool_)
    has_groups[series.of[known & (series.group >= 0)]] = True
    found: Flags = known & ((series.group >= 0) | ~has_groups[series.of])
    return found


def each_followed(
    series: FollowedSeries,
    able: Flags,
    weekdays: Integers,
    tested: int,
    settings: Trends,
) -> Iterator[tuple[int, Followed]]:
    """The last ``tested`` rows of some series, each against those before it."""
    count = len(series.values)
    given = series.values, able[:, series.of], weekdays, series.unfair, settings
    if tested == 1:
        yield count - 1, follow(*given)
        return
    every = follow_all(*given)
    for row in range(count - tested, count):
        yield row, at_row(every, row)
