"""How far the newest batch of every series is from what came before it.

Here: residuals, charts and p-values, put together.  Not here: groups against each other
(``comparisons``), and which series are news (``discoveries``).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipeline.settings.sections import Trends
from pipeline.trends.autocorrelation import autocorrelations
from pipeline.trends.charts import CHARTS, charts, p_values
from pipeline.trends.residuals import OUTLIER, Flags, Floats, Integers, Residuals, standardised

EQUAL = 2.0
"""Standard errors from equality up to which groups are nearly equal: a shift to either side takes
them further from it, so that both are tested.  Beyond that, one side closes the gap."""


@dataclass(frozen=True)
class Side:
    """What the charts of one side say: arrays of shape (batches, series), or (series,).

    ``sign`` is 1 where the charts rise with the value, -1 where they rise as it falls.  ``p_value``
    is that of all charts together, and ``chart`` the one that says most ("" where there is none);
    ``since`` is the row in which the shift began, if it is one (-1 where there is nothing to say).
    ``ewma`` and ``cusum`` are where these charts stand, ``distance`` how far the value is to this
    side, in standard errors, and ``deviate`` the normal deviate of the same probability.
    """

    sign: Integers
    distance: Floats
    deviate: Floats
    ewma: Floats
    cusum: Floats
    p_value: Floats
    chart: NDArray[np.str_]
    since: Integers


@dataclass(frozen=True)
class Followed:
    """What is known about tested batches: arrays of shape (series,), or (batches, series).

    ``center`` and ``spread`` are what was expected of the value and the standard error of that
    prediction; ``baseline`` counts the batches behind it, and ``weekday`` says whether they were
    compared by day of the week.  They are NaN where the baseline is too small.  ``worse`` is the
    unfair side, and ``better`` the other one; where both sides take the value further from
    equality, ``worse`` is the one that says more, and ``better`` has no p-value.  ``outlier`` is
    whether the value is an outlier, and the batch before it was none to the same side.
    """

    center: Floats
    spread: Floats
    baseline: Integers
    weekday: Flags
    outlier: Flags
    worse: Side
    better: Side


def reach(settings: Trends) -> int:
    """Batches that the newest one depends on, itself left out.

    Charts look back one window, the autocorrelation a little further, and each of their residuals
    at the window before what is held back.
    """
    return 2 * (settings.window + settings.hold)


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
    each series 1 where high values are unfair, -1 where low ones are, 0 where 0 is equality and
    whatever is further from it is unfair.  ``since`` counts rows of ``values``.

    A batch that is not eligible is tested, but enters no later baseline or chart.  The p-value is
    three times the smallest of those of the charts (Bonferroni), and twice as much near equality,
    at most 1.
    """
    start = max(0, len(values) - reach(settings) - 1)
    days = None if weekdays is None else weekdays[start:]
    followed = _followed(values[start:], eligible[start:], days, unfair, settings, tested=1)
    return at_row(followed, -1, start)


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


def at_row(followed: Followed, row: int, start: int = 0) -> Followed:
    """One row of what was followed, in a matrix with ``start`` more rows before it."""
    return Followed(
        center=followed.center[row],
        spread=followed.spread[row],
        baseline=followed.baseline[row],
        weekday=followed.weekday[row],
        outlier=followed.outlier[row],
        worse=_side_at(followed.worse, row, start),
        better=_side_at(followed.better, row, start),
    )


def _side_at(side: Side, row: int, start: int) -> Side:
    found = Side(**{name: array[row] for name, array in vars(side).items()})
    return replace(found, since=np.where(found.since < 0, -1, found.since + start))


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
    found = standardised(
        values,
        eligible,
        weekdays,
        window=settings.window,
        least=settings.least,
        weeks=settings.weekday_weeks,
        hold=settings.hold,
        tested=tested + settings.window + settings.hold,
    )
    newest = slice(len(found.residual) - min(tested, len(values)), None)
    start = len(values) - len(found.residual)
    repeats = autocorrelations(
        found.residual,
        eligible[start:],
        window=settings.window,
        hold=settings.hold,
        tested=min(tested, len(values)),
    )
    up, down = (_side(sign, found, eligible[start:], repeats, settings) for sign in (1, -1))
    up, down = (
        replace(side, since=np.where(side.since < 0, -1, side.since + start)) for side in (up, down)
    )
    center, spread = found.center[newest], found.spread[newest]
    with np.errstate(invalid="ignore"):
        rises, falls = (
            (unfair == sign) | ((unfair == 0) & _widens(sign, values[-len(center) :], center))
            for sign in (1, -1)
        )
        both = rises & falls
        is_up = np.where(both, up.p_value <= down.p_value, rises)
        # Near equality, which side is further from it is a matter of the night.
        tests = np.where(both | ((unfair == 0) & (np.abs(center) <= EQUAL * spread)), 2.0, 1.0)
    worse, better = _chosen(is_up, up, down), _chosen(~is_up, up, down)
    p_worse, p_better = (np.minimum(1.0, tests * each.p_value) for each in (worse, better))
    return Followed(
        center=center,
        spread=spread,
        baseline=found.baseline[newest],
        weekday=found.weekday[newest],
        outlier=_outliers(found.residual, tested),
        worse=replace(worse, p_value=p_worse),
        better=replace(better, p_value=np.where(both, np.nan, p_better)),
    )


def _widens(sign: int, values: Floats, center: Floats) -> Flags:
    """Whether values that moved to one side are further from equality, which is at 0.

    They are if they were on that side of it; and if they were on the other one, once they are
    further beyond equality than they usually are on this side of it.
    """
    return np.asarray((sign * center >= 0.0) | (sign * values > np.abs(center)))


def _side(sign: int, found: Residuals, eligible: Flags, repeats: Floats, settings: Trends) -> Side:
    """The charts of one side; ``since`` counts rows of the residuals."""
    deviate, tested = sign * found.residual, len(repeats)
    state = charts(
        deviate,
        eligible,
        smoothing=settings.smoothing,
        drift=settings.drift,
        window=settings.window,
        tested=tested,
        autocorrelation=repeats,
    )
    newest = slice(len(deviate) - tested, None)
    p = p_values(deviate[newest], state.ewma, state.cusum, settings.drift)
    known = ~np.isnan(deviate[newest])
    most = np.argmin(np.where(known, p, 0.0), axis=0)
    row = np.arange(len(deviate) - tested, len(deviate))[:, None]
    # A batch that is far out by itself says nothing of those before it; unless the last one was.
    before = np.pad(deviate, ((1, 0), (0, 0)), constant_values=np.nan)[-tested - 1 : -1]
    alone = (most == CHARTS.index("shewhart")) & ~(before > OUTLIER)
    since = np.where(alone, row, state.since)
    return Side(
        sign=np.full(known.shape, sign),
        distance=sign * found.distance[newest],
        deviate=deviate[newest],
        ewma=state.ewma,
        cusum=state.cusum,
        p_value=np.minimum(1.0, len(CHARTS) * np.min(p, axis=0)),
        chart=np.where(known, np.array(CHARTS)[most], ""),
        since=np.where(known, since, -1),
    )


def _chosen(is_up: Flags, up: Side, down: Side) -> Side:
    return Side(
        **{name: np.where(is_up, array, getattr(down, name)) for name, array in vars(up).items()}
    )


def _outliers(residual: Floats, tested: int) -> Flags:
    """Whether each of the last ``tested`` rows is far out, and the one before it is not so."""
    far = np.where(np.abs(residual) > OUTLIER, np.sign(residual), 0.0)
    before = np.pad(far, ((1, 0), (0, 0)))[:-1]
    found: Flags = (far != 0) & (far != before)
    return found[len(far) - min(tested, len(far)) :]
