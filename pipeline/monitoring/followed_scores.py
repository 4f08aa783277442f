"""Trends: every followed score of every assessed batch against those before it.

Not here: the statistics (``trends.follow``), and which scores are followed (``settings.choices``).
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow
from numpy.typing import NDArray

from pipeline.monitoring.gates import Releases
from pipeline.monitoring.inputs import Floats, Integers, Matrix
from pipeline.settings.sections import Trends
from pipeline.trends import Discoveries, Followed, discover, follow, follow_all
from schemas.monitoring import SERIES_KEY, TRENDS

Exclusions = Collection[tuple[str | None, str]]
"""Attributes and batches of acknowledged incidents: no baseline for any score of the attribute."""


@dataclass(frozen=True)
class Night:
    """Trends of one batch; arrays of shape (series,).

    ``row`` is the batch's row of the matrix, ``first`` that of the first batch of its release
    that was looked at: ``trends.since`` counts from it.
    """

    row: int
    first: int
    trends: Followed
    news: Discoveries


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
    parent, is_whole = matrix.parent, matrix.is_whole
    for first, after in _releases(matrix, releases):
        if after <= start:
            continue
        # Nobody looks further back than two windows.
        first = max(first, start - 2 * settings.window)  # noqa: PLW2901
        for row, trends in _followed(matrix, able, first, max(start, first), after, settings):
            if matrix.batches[row] in gated:
                continue
            news = discover(
                trends.p_value,
                is_whole,
                parent,
                method=settings.discoveries,
                level=settings.level,
            )
            yield Night(row, first, trends, news)


def _releases(matrix: Matrix, releases: Releases) -> Iterator[tuple[int, int]]:
    """First row of each release among the rows, and the one after its last."""
    begins = [releases.of(batch) for batch in matrix.batches]
    edges = [row for row in range(len(begins)) if row == 0 or begins[row] != begins[row - 1]]
    yield from zip(edges, [*edges[1:], len(begins)], strict=True)


def _followed(
    matrix: Matrix,
    able: NDArray[np.bool_],
    first: int,
    start: int,
    after: int,
    settings: Trends,
) -> Iterator[tuple[int, Followed]]:
    weekdays = matrix.weekdays
    if after - start == 1:
        rows = slice(first, after)
        yield (
            start,
            follow(matrix.values[rows], able[rows], weekdays[rows], matrix.unfair, settings),
        )
        return
    rows = slice(first, after)
    every = follow_all(matrix.values[rows], able[rows], weekdays[rows], matrix.unfair, settings)
    for row in range(start, after):
        at = row - first
        yield row, Followed(**{name: array[at] for name, array in vars(every).items()})


def trend_rows(matrix: Matrix, night: Night) -> pyarrow.Table:
    """Rows of the table trends for one batch: every followed score that has a value."""
    values = matrix.values[night.row]
    here = np.flatnonzero(~np.isnan(values))
    trends, news = night.trends, night.news
    whole = matrix.is_whole[here]
    known = ~np.isnan(trends.p_value[here])
    family = np.where(whole, "whole", np.where(news.covered[here], "covered", "slices"))
    began = _batch_of(matrix, night.first, trends.since[here])
    columns = {
        "batch": [matrix.batches[night.row]] * len(here),
        **{name: [getattr(matrix.series[column], name) for column in here] for name in SERIES_KEY},
        "value": values[here],
        **{
            name: _nullable(getattr(trends, name)[here])
            for name in ("center", "spread", "residual", "ewma", "cusum", "p_value")
        },
        "baseline": trends.baseline[here],
        "weekday": trends.weekday[here],
        "p_adjusted": _nullable(news.p_adjusted[here]),
        "family": pyarrow.array(family.tolist(), mask=~known),
        "family_size": news.family_size[here],
        "chart": pyarrow.array(trends.chart[here].tolist(), mask=~known),
        "since": began,
        "shift": news.found[here],
    }
    return pyarrow.table(
        [pyarrow.array(columns[name]) for name in TRENDS.names], names=list(TRENDS.names)
    ).cast(TRENDS.arrow)


def _nullable(values: Floats) -> pyarrow.Array:
    return pyarrow.array(values, mask=np.isnan(values))


def _batch_of(matrix: Matrix, first: int, rows: Integers) -> list[str | None]:
    return [None if row < 0 else matrix.batches[first + row] for row in rows]
