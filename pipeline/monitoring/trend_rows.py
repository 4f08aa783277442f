"""Rows of the table trends: what one batch says of every followed score.

Not here: what the numbers are (``followed_scores``).
"""

import numpy as np
import pyarrow

from metrics.elementary import exp
from pipeline.monitoring.followed_scores import Night
from pipeline.monitoring.inputs import Floats, Integers, Matrix
from pipeline.settings.sections import Trends
from schemas.columns import Row
from schemas.monitoring import SERIES_KEY, TRENDS

_OF_GROUPS = ("group_value", "against", "against_center", "is_ratio")
NO_GROUPS: Row = dict.fromkeys(_OF_GROUPS)


def trend_rows(matrix: Matrix, night: Night, settings: Trends) -> pyarrow.Table:
    """Rows of one batch: every followed score that has a value."""
    values = matrix.values[night.row]
    here = np.flatnonzero(~np.isnan(values))
    p, known = night.told.p_value[here], night.of[here] >= 0
    toward = np.where(night.improved, -1.0, 1.0)[here]
    covered = np.where(night.improved, night.gains.covered, night.news.covered)
    family = np.where(matrix.is_whole[here], "whole", np.where(covered[here], "covered", "slices"))
    moved = night.improved | night.news.found
    since = np.where(known, night.told.since[here], -1)
    levels = [
        _levels(matrix, night, int(at), settings) if moved[at] else (None, None) for at in here
    ]
    groups = [_groups(matrix, night, int(at)) for at in here]
    columns = {
        "batch": [matrix.batches[night.row]] * len(here),
        **{name: [getattr(matrix.series[column], name) for column in here] for name in SERIES_KEY},
        "value": values[here],
        "center": _nullable(night.expected.center[here]),
        "spread": _nullable(night.expected.spread[here]),
        "baseline": night.expected.baseline[here],
        "weekday": night.expected.weekday[here],
        "residual": _nullable(toward * night.told.distance[here]),
        "ewma": _nullable(toward * night.told.ewma[here]),
        "cusum": _nullable(toward * night.told.cusum[here]),
        "p_value": _nullable(p),
        "p_adjusted": _nullable(_of(night, "p_adjusted")[here]),
        "family": pyarrow.array(family.tolist(), mask=~known),
        "family_size": _of(night, "family_size")[here],
        "chart": pyarrow.array(night.told.chart[here].tolist(), mask=~known),
        "since": _batch_of(matrix, night.first, since),
        "shift": night.news.found[here],
        "improved": night.improved[here],
        "level_before": [before for before, _ in levels],
        "level_now": [now for _, now in levels],
        "outlier": night.of_series(night.followed.outlier.astype(np.float64))[here] == 1.0,
        **{name: [each[name] for each in groups] for name in _OF_GROUPS},
    }
    return pyarrow.table(
        [pyarrow.array(columns[name]) for name in TRENDS.names], names=list(TRENDS.names)
    ).cast(TRENDS.arrow)


def _of(night: Night, name: str) -> Floats:
    found: Floats = np.where(night.improved, getattr(night.gains, name), getattr(night.news, name))
    return found


def _levels(
    matrix: Matrix, night: Night, column: int, settings: Trends
) -> tuple[float | None, float | None]:
    """The usual score before a shift or an improvement began, and that since then: medians."""
    since = night.first + int(night.told.since[column])
    before = matrix.values[max(night.first, since - settings.window) : since, column]
    now = matrix.values[since : night.row + 1, column]
    found = (each[np.isfinite(each)] for each in (before, now))
    low, high = (float(np.median(each)) if len(each) else None for each in found)
    return low, high


def _groups(matrix: Matrix, night: Night, column: int) -> Row:
    """The group that is told, against the others: how it is, and what was expected of that.

    Of two groups, the one that falls behind, or that catches up.
    """
    at, held = int(night.of[column]), matrix.compared.get(column)
    if held is None or at < 0 or night.series.group[at] < 0:
        return NO_GROUPS
    series = night.series
    value, center = series.values[night.row - night.first, at], night.followed.center[at]
    group, mirror = series.group[at], series.mirror[at]
    rises = night.told.sign[column] > 0
    if mirror >= 0 and rises != night.improved[column]:
        group, value, center = mirror, -value, -center
    if held.is_ratio:
        value, center = exp([value, center])
    return {
        "group_value": held.groups[group],
        "against": float(value) if np.isfinite(value) else None,
        "against_center": float(center),
        "is_ratio": held.is_ratio,
    }


def _nullable(values: Floats) -> pyarrow.Array:
    return pyarrow.array(values, mask=np.isnan(values))


def _batch_of(matrix: Matrix, first: int, rows: Integers) -> list[str | None]:
    return [None if row < 0 else matrix.batches[first + row] for row in rows]
