"""Seven ways to turn the values of the groups into one number: a table, read from top to bottom.

Not here: which group is worst off (``evaluate``), and readings that one metric has of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

import numpy as np

from metrics.reasons import Reason
from metrics.weights import FloatArray

Alarm = Literal["low", "high"]
Unit = Literal["number", "percent", "times"]
"""How a value reads: 0.72, 72% or 0.72 times."""


@dataclass(frozen=True)
class Range:
    """Closed interval that a value can lie in; either end may be infinite."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        """Whether ``value`` lies inside, with room for the last few bits of rounding."""
        slack = 1e-12 * max(1.0, abs(value))
        return self.low - slack <= value <= self.high + slack

    def __str__(self) -> str:
        first, last = "(" if self.low == -inf else "[", ")" if self.high == inf else "]"
        return f"{first}{self.low:g}, {self.high:g}{last}"


def _from_first(values: FloatArray) -> FloatArray:
    """``values`` less the first of them: what is equal becomes exactly 0, and stays it in means."""
    return values - values[..., :1]


def _mean_gap(values: FloatArray) -> Any:
    shifted = _from_first(values)
    return np.abs(shifted - shifted.mean(axis=-1, keepdims=True))


def _always_defined(values: FloatArray) -> Reason | None:
    return None


def _needs_positive_max(values: FloatArray) -> Reason | None:
    return Reason.ALL_ZERO if values.max() == 0 else None


def _needs_positive_min(values: FloatArray) -> Reason | None:
    # A minimum that is only just above zero makes a ratio that no number can hold.
    tiny = values.min() < values.max() / np.finfo(np.float64).max
    none = values.min() == 0 or bool(tiny)
    return _needs_positive_max(values) or (Reason.ZERO_MINIMUM if none else None)


@dataclass(frozen=True)
class Aggregation:
    """One row of the table.

    ``of`` takes group values, shape (..., groups), and returns shape (...).  ``alarm`` is the side
    on which the aggregation is unfair, None where neither is.  ``range`` derives the range from
    that of the group values, [low, high].  ``undefined`` takes defined group values, shape
    (groups,), and returns the reason why they have no such aggregation, None if they have.
    ``passes_over`` are reasons of groups without a value that cannot decide it: the others do.

    ``plain`` follows the plain name of a metric ("exposure" and "ratio"), and ``said`` is a
    sentence about a value in ``unit``.  It names the groups with the lowest and highest value
    ({low}, {high}), what the metric is of ({thing}), and how a group comes to it ({verb}, in the
    past tense, which is one for "women" and "Germany").
    """

    name: str
    formula: str
    of: Callable[[FloatArray], Any]
    fairest: float | None
    alarm: Alarm | None
    range: Callable[[float, float], Range]
    undefined: Callable[[FloatArray], Reason | None] = _always_defined
    passes_over: frozenset[Reason] = frozenset()
    plain: str = field(default="", kw_only=True)
    said: str = field(default="", kw_only=True)
    unit: Unit = field(default="number", kw_only=True)


AGGREGATIONS: tuple[Aggregation, ...] = (
    Aggregation(
        "MinMaxRatio",
        "min V / max V",
        lambda values: values.min(axis=-1) / values.max(axis=-1),
        fairest=1.0,
        alarm="low",
        range=lambda low, high: Range(0.0, 1.0),
        undefined=_needs_positive_max,
        plain="ratio",
        said="{low} {verb} {value} of the {thing} that {high} {verb}",
        unit="percent",
    ),
    Aggregation(
        "MaxMinRatio",
        "max V / min V",
        lambda values: values.max(axis=-1) / values.min(axis=-1),
        fairest=1.0,
        alarm="high",
        range=lambda low, high: Range(1.0, inf),
        undefined=_needs_positive_min,
        plain="ratio of most to least",
        said="{high} {verb} {value} the {thing} that {low} {verb}",
        unit="times",
    ),
    Aggregation(
        "MaxMinDiff",
        "max V - min V",
        lambda values: np.ptp(values, axis=-1),
        fairest=0.0,
        alarm="high",
        range=lambda low, high: Range(0.0, high - low),
        plain="gap",
        said="the {thing} of {low} was {value} below that of {high}",
    ),
    Aggregation(
        "MaxAbsDiff",
        "max |V - mean V|",
        lambda values: _mean_gap(values).max(axis=-1),
        fairest=0.0,
        alarm="high",
        range=lambda low, high: Range(0.0, high - low),
        plain="largest deviation",
        said="the {thing} of one group was {value} from the mean of all; {low} {verb} least",
    ),
    Aggregation(
        "MeanAbsDev",
        "mean |V - mean V|",
        lambda values: _mean_gap(values).mean(axis=-1),
        fairest=0.0,
        alarm="high",
        range=lambda low, high: Range(0.0, (high - low) / 2),
        plain="mean deviation",
        said="the {thing} of groups was {value} from their mean on average; {low} {verb} least",
    ),
    Aggregation(
        # The plain norm: two equal groups do not score 0, so no side of it is an alarm.
        "LTwo",
        "sqrt(sum V^2)",
        lambda values: np.sqrt((values * values).sum(axis=-1)),
        fairest=None,
        alarm=None,
        range=lambda low, high: Range(0.0, inf),
        plain="norm",
        said="the {thing} of groups, squared and added up, has the root {value}",
    ),
    Aggregation(
        # Population variance, as the reference computes it; its page prints 1 / (G - 1).
        "Variance",
        "mean (V - mean V)^2",
        lambda values: _from_first(values).var(axis=-1),
        fairest=0.0,
        alarm="high",
        range=lambda low, high: Range(0.0, (high - low) * (high - low) / 4),
        plain="variance",
        said="the {thing} of groups has a variance of {value}; {low} {verb} least",
    ),
)

# For values that already compare a group with the others: the group that is furthest off decides.
WORST_DIFFERENCE = Aggregation(
    "MaxAbs",
    "max |V|",
    lambda values: np.abs(values).max(axis=-1),
    fairest=0.0,
    alarm="high",
    range=lambda low, high: Range(0.0, max(-low, high)),
    plain="largest",
    said="the {thing} of one group was {value} from that of the others; {low} {verb} least",
)
WORST_RATIO = Aggregation(
    # Who has all there is compares with nobody; the lowest ratio is another's, and is known.
    "Min",
    "min V",
    lambda values: values.min(axis=-1),
    fairest=1.0,
    alarm="low",
    range=Range,
    passes_over=frozenset({Reason.NONE_SELECTED}),
    plain="lowest",
    said="{low} {verb} {value} of the {thing} that the others {verb}",
    unit="percent",
)
