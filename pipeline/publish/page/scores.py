"""What the page says of a score by itself: from its declaration, for labels of any age.

Not here: its values (``document``).
"""

from dataclasses import dataclass
from math import isfinite

from metrics import AGGREGATIONS, GroupMetric, ScoreName, parse_score

STANDS_FOR = "MinMaxRatio"
"""Of the seven aggregations, the one that stands for its metric where no threshold says more."""
_FOLDS = {
    "Exposure: who is seen, and how much": ("EXP", "AWRF", "ERBE", "ERBP", "Gini"),
    "Order: who is ranked above whom": ("ARP", "NDKL", "Pairwise", "rND", "rKL", "rRD", "Skew"),
    "Merit: exposure and clicks for the same relevance": ("EXPU", "EXPRU", "ERBR", "IAA"),
}
_OTHER_FOLDS = {
    "quality": "Quality: is the ranking any good",
    "comparison": "Agreement with another order",
    "top_k": "Share at the top: who is above the cut",
}
_REST = "Other scores"
_PER_ITEM = " per item"
_PAIRS = "ARP"


@dataclass(frozen=True)
class About:
    """A score as the page explains it; ``label`` and ``plain`` alone for one declared no more.

    ``parity`` is where groups are equal: at ``zero``, at one ``half``, at the ``average`` item or
    at the ``mean`` of the groups compared; none where groups have no values.  ``higher``: a high
    value is good for the group that has it.
    """

    label: str
    plain: str
    fold: str = _REST
    unit: str = "number"
    thing: str | None = None
    parity: str | None = None
    higher: bool = True
    low: float | None = None
    high: float | None = None
    fairest: float | None = None
    alarm: str | None = None
    quality: bool = False
    main: bool = True


def about(label: str) -> About:
    """What is declared about a score."""
    try:
        name = parse_score(label)
    except ValueError:
        return About(label, label)
    metric, value_range = name.measure.metric, name.range
    grouped = metric if isinstance(metric, GroupMetric) else None
    return About(
        label,
        name.plain,
        _fold(metric.name, metric.family.name),
        name.unit,
        (grouped.thing or grouped.everyday) if grouped else None,
        _parity(grouped) if grouped else None,
        grouped.higher_is_better if grouped else True,
        low=value_range.low if isfinite(value_range.low) else None,
        high=value_range.high if isfinite(value_range.high) else None,
        fairest=name.fairest,
        alarm=name.alarm,
        quality=metric.family.name == "quality" and grouped is None,
        main=_stands_for_its_metric(name),
    )


def _fold(metric: str, family: str) -> str:
    found = (fold for fold, metrics in _FOLDS.items() if metric in metrics)
    return next(found, _OTHER_FOLDS.get(family, _REST))


def _parity(metric: GroupMetric) -> str:
    if metric.range.low < 0:
        return "zero"
    if metric.name == _PAIRS:
        return "half"
    return "average" if metric.thing.endswith(_PER_ITEM) else "mean"


def _stands_for_its_metric(name: ScoreName) -> bool:
    """Of readings each does; of the seven aggregations one."""
    if name.measure.metric.usual.ways != AGGREGATIONS:
        return True
    return name.aggregation is not None and name.aggregation.name == STANDS_FOR
