"""Trends: every followed score of every assessed batch against those before it.

Not here: the statistics (``trends``), which scores are followed (``settings.choices``), by which
series (``followed_series``), and rows of tables (``trend_rows``).
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pipeline.monitoring.followed_series import (
    FollowedSeries,
    each_followed,
    followed_series,
    speaking,
)
from pipeline.monitoring.gates import Releases
from pipeline.monitoring.inputs import Floats, Integers, Matrix
from pipeline.settings.sections import Trends
from pipeline.trends import (
    Discoveries,
    Expectation,
    Followed,
    Side,
    Spoken,
    discover,
    reach,
    spoken,
    standardised,
)

Exclusions = Collection[tuple[str | None, str]]
"""Attributes and batches of acknowledged incidents: no baseline for any score of the attribute."""


@dataclass(frozen=True)
class Night:
    """Trends of one batch; arrays of shape (scores,), but for those of ``series``.

    ``row`` is the batch's row of the matrix, ``first`` that of the first batch of its release
    that was looked at: ``since`` counts from it.  ``expected`` is what was expected of the scores
    themselves.  ``said`` is what the series say of each score, ``news`` which of them are worse,
    and ``gains`` which are better than usually, beyond chance.
    """

    row: int
    first: int
    expected: Expectation
    series: FollowedSeries
    followed: Followed
    said: Spoken
    news: Discoveries
    gains: Discoveries

    @property
    def worse(self) -> Side:
        """The unfair side of each score."""
        return self.said.worse

    @cached_property
    def improved(self) -> NDArray[np.bool_]:
        """Which scores are clearly better: none that is also worse for some group."""
        found: NDArray[np.bool_] = self.gains.found & ~self.news.found
        return found

    @cached_property
    def of(self) -> Integers:
        """The series that is told of each score, -1 for none."""
        return np.where(self.improved, self.said.of_better, self.said.of_worse)

    @cached_property
    def told(self) -> Side:
        """The side of each score that is told: the better one where it improved."""
        better = vars(self.said.better)
        return Side(
            **{
                name: np.where(self.improved, better[name], array)
                for name, array in vars(self.said.worse).items()
            }
        )

    def of_series(self, array: Floats) -> Floats:
        """An array of series, for the one that is told of each score; NaN for none."""
        if not len(array):
            return np.full(len(self.of), np.nan)
        return np.where(self.of >= 0, array[self.of], np.nan)


def eligible(matrix: Matrix, gated: Collection[str], exclusions: Exclusions) -> NDArray[np.bool_]:
    """Which values may serve as a baseline, shape (batches, series)."""
    able = np.array([batch not in gated for batch in matrix.batches], dtype=np.bool_)
    found = np.repeat(able[:, None], len(matrix.series), axis=1)
    row_of = {batch: row for row, batch in enumerate(matrix.batches)}
    about: dict[str | None, list[int]] = {}
    for column, series in enumerate(matrix.series):
        about.setdefault(series.attribute, []).append(column)
    for attribute, batch in exclusions:
        if batch in row_of:
            found[row_of[batch], about.get(attribute, [])] = False
    return found


def nights(
    matrix: Matrix,
    start: int,
    able: NDArray[np.bool_],
    gated: Collection[str],
    releases: Releases,
    settings: Trends,
) -> Iterator[Night]:
    """Trends of the batches from row ``start`` on that no gate kept out, oldest first.

    A release begins anew: rows before it are not looked at.
    """
    for first, after in _releases(matrix, releases):
        if after <= start:
            continue
        first = max(first, start - reach(settings))  # noqa: PLW2901
        tested = after - max(start, first)
        rows = slice(first, after)
        series = followed_series(matrix, rows, tested, settings)
        expected = _expected(matrix, rows, able, tested, settings)
        for row, followed in each_followed(
            series, able[rows], matrix.weekdays[rows], tested, settings
        ):
            if matrix.batches[first + row] in gated:
                continue
            said = spoken(followed, series.of, speaking(series, row, followed), len(matrix.series))
            here = row - (after - first - tested)
            yield Night(
                first + row,
                first,
                Expectation(**{name: array[here] for name, array in expected.items()}),
                series,
                followed,
                said,
                _discovered(matrix, said.worse.p_value, settings),
                _discovered(matrix, said.better.p_value, settings),
            )


def _discovered(matrix: Matrix, p: Floats, settings: Trends) -> Discoveries:
    return discover(
        p, matrix.is_whole, matrix.parent, method=settings.discoveries, level=settings.level
    )


def _expected(
    matrix: Matrix, rows: slice, able: NDArray[np.bool_], tested: int, settings: Trends
) -> dict[str, NDArray[np.generic]]:
    """What was expected of the scores, whatever series they are followed by; tested rows only."""
    found = standardised(
        matrix.values[rows],
        able[rows],
        matrix.weekdays[rows],
        window=settings.window,
        least=settings.least,
        weeks=settings.weekday_weeks,
        hold=settings.hold,
        tested=tested,
    )
    return {each.name: getattr(found, each.name) for each in fields(Expectation)}


def _releases(matrix: Matrix, releases: Releases) -> Iterator[tuple[int, int]]:
    """First row of each release among the rows, and the one after its last."""
    begins = [releases.of(batch) for batch in matrix.batches]
    edges = [row for row in range(len(begins)) if row == 0 or begins[row] != begins[row - 1]]
    yield from zip(edges, [*edges[1:], len(begins)], strict=True)
