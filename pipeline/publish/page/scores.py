"""What the page says of a score by itself: from its declaration, for labels of any age.

Not here: its values (``document``).
"""

from dataclasses import dataclass
from math import isfinite

from metrics import AGGREGATIONS, ScoreName, parse_score

STANDS_FOR = "MinMaxRatio"
"""Of the seven aggregations, the one that stands for its metric where no threshold says more."""


@dataclass(frozen=True)
class About:
    """A score as the page explains it; all None but ``label`` for one that is declared no more."""

    label: str
    title: str | None = None
    formula: str | None = None
    range: str | None = None
    low: float | None = None
    high: float | None = None
    fairest: float | None = None
    alarm: str | None = None
    family: str | None = None
    source: str | None = None
    main: bool = True


def about(label: str) -> About:
    """What is declared about a score."""
    try:
        name = parse_score(label)
    except ValueError:
        return About(label)
    metric, value_range = name.measure.metric, name.range
    return About(
        label,
        metric.title,
        metric.formula,
        str(value_range),
        low=value_range.low if isfinite(value_range.low) else None,
        high=value_range.high if isfinite(value_range.high) else None,
        fairest=name.fairest,
        alarm=name.alarm,
        family=metric.family.name,
        source=metric.source,
        main=_stands_for_its_metric(name),
    )


def _stands_for_its_metric(name: ScoreName) -> bool:
    """Of readings each does; of the seven aggregations one."""
    if name.measure.metric.usual.ways != AGGREGATIONS:
        return True
    return name.aggregation is not None and name.aggregation.name == STANDS_FOR
