"""How far the newest batch of every series is from what came before it.

Here: residuals, charts and p-values, put together.  Not here: which series are news
(``discoveries``).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.settings.sections import Trends
from pipeline.trends.charts import CHARTS, charts, p_values
from pipeline.trends.residuals import Flags, Floats, Integers, standardised


@dataclass(frozen=True)
class Followed:
    """What is known about tested batches: arrays of shape (series,), or (batches, series).

    ``center`` and ``spread`` are what was expected of the value and the standard error of that
    prediction; ``baseline`` counts the batches behind it, and ``weekday`` says whether they were
    compared by day of the week.  ``residual``, ``ewma`` and ``cusum`` are in standard errors,
    positive towards the unfair side.  ``p_value`` is that of all charts together and ``chart`` the
    one that says most ("" where there is none); ``since`` is the row in which the shift began, if
    it is one (-1 where there is nothing to say).  ``center`` and ``spread`` are NaN where the
    baseline is too small; the residual, the charts and the p-value also where there is no value.
    """

    center: Floats
    spread: Floats
    baseline: Integers
    weekday: Flags
    residual: Floats
    ewma: Floats
    cusum: Floats
    p_value: Floats
    chart: NDArray[np.str_]
    since: Integers


def follow(
    values: Floats,
    eligible: Flags,
    weekdays: Integers | None,
    unfair: Integers,
    settings: Trends,
) -> Followed:
    """The last row of ``values`` against those before it; arrays of shape (series,).

    Takes values (NaN where there is none) and whether each may serve as baseline, of shape
    (batches, series), oldest first; weekdays of shape (batches,), 0 to 6 or -1, or None; and for
    each series +1 where high values are unfair, -1 where low ones are.  ``since`` counts rows of
    ``values``.

    Each residual looks at the ``window`` batches before its own and the charts at the last
    ``window`` residuals, so at most 2 window rows count.  A batch that is not eligible is tested,
    but enters no later baseline or chart.  The p-value is three times the smallest of those of the
    charts (Bonferroni), at most 1.
    """
    start = max(0, len(values) - 2 * settings.window)
    days = None if weekdays is None else weekdays[start:]
    followed = _followed(values[start:], eligible[start:], days, unfair, settings, tested=1)
    return Followed(
        center=followed.center[-1],
        spread=followed.spread[-1],
        baseline=followed.baseline[-1],
        weekday=followed.weekday[-1],
        residual=followed.residual[-1],
        ewma=followed.ewma[-1],
        cusum=followed.cusum[-1],
        p_value=followed.p_value[-1],
        chart=followed.chart[-1],
        since=np.where(followed.since[-1] < 0, -1, followed.since[-1] + start),
    )


def follow_all(
    values: Floats,
    eligible: Flags,
    weekdays: Integers | None,
    unfair: Integers,
    settings: Trends,
) -> Followed:
    """Every row of ``values`` against those before it; arrays of shape (batches, series).

    Row t is bit for bit what ``follow`` says of the rows up to t, with each residual computed once:
    for many batches that share one ``eligible``.
    """
    return _followed(values, eligible, weekdays, unfair, settings, tested=len(values))


def _followed(
    values: Floats,
    eligible: Flags,
    weekdays: Integers | None,
    unfair: Integers,
    settings: Trends,
    *,
    tested: int,
) -> Followed:
    """The last ``tested`` rows against those before them."""
    against_baseline = standardised(
        values,
        eligible,
        weekdays,
        window=settings.window,
        least=settings.least,
        weeks=settings.weekday_weeks,
        tested=tested + settings.window - 1,
    )
    residual = unfair * against_baseline.residual
    state = charts(
        residual,
        eligible[len(values) - len(residual) :],
        smoothing=settings.smoothing,
        drift=settings.drift,
        window=settings.window,
        tested=tested,
    )
    newest = slice(len(residual) - tested, None)
    p = p_values(residual[newest], state.ewma, state.cusum, settings.drift)
    has_residual = ~np.isnan(residual[newest])
    most = np.argmin(np.where(has_residual, p, 0.0), axis=0)
    row = np.arange(len(values) - tested, len(values))[:, None]
    # A batch that is far out by itself says nothing of those before it.
    since = np.where(
        most == CHARTS.index("shewhart"), row, state.since + len(values) - len(residual)
    )
    return Followed(
        center=against_baseline.center[newest],
        spread=against_baseline.spread[newest],
        baseline=against_baseline.baseline[newest],
        weekday=against_baseline.weekday[newest],
        residual=residual[newest],
        ewma=state.ewma,
        cusum=state.cusum,
        p_value=np.minimum(1.0, len(CHARTS) * np.min(p, axis=0)),
        chart=np.where(has_residual, np.array(CHARTS)[most], ""),
        since=np.where(has_residual, since, -1),
    )
