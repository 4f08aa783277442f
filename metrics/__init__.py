"""What is measured: fairness metrics of rankings as algebra on integer counts.  numpy only."""

from metrics.aggregations import AGGREGATIONS, Aggregation, Range
from metrics.base import GroupMetric, Measure, Metric, Parameter, ScoreName, SingleMetric
from metrics.catalogue import METRICS
from metrics.counts import (
    PREFIX_UNIT,
    UNIT,
    UNKNOWN,
    WHOLE,
    Counts,
    ItemCounts,
    PairCounts,
    PrefixCounts,
    RankHistogram,
)
from metrics.evaluate import Evaluation, Score, evaluate
from metrics.labels import LabelError, parse_measure, parse_score
from metrics.reasons import Reason

__version__ = "0.1.0"

__all__ = [
    "AGGREGATIONS",
    "METRICS",
    "PREFIX_UNIT",
    "UNIT",
    "UNKNOWN",
    "WHOLE",
    "Aggregation",
    "Counts",
    "Evaluation",
    "GroupMetric",
    "ItemCounts",
    "LabelError",
    "Measure",
    "Metric",
    "PairCounts",
    "Parameter",
    "PrefixCounts",
    "Range",
    "RankHistogram",
    "Reason",
    "Score",
    "ScoreName",
    "SingleMetric",
    "evaluate",
    "parse_measure",
    "parse_score",
]
