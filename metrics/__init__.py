"""What is measured: metrics of rankings, as algebra on integer counts or list by list.

Not here: files, databases and frames; numpy is all that is needed.
"""

from metrics.aggregations import AGGREGATIONS, Aggregation, Range
from metrics.asked import Asked, Total, asked
from metrics.base import GroupMetric, Measure, Metric, Reading, ScoreName, SingleMetric
from metrics.catalogue import METRICS
from metrics.counts import (
    PREFIX_UNIT,
    UNIT,
    UNKNOWN,
    WHOLE,
    Counts,
    ItemCounts,
    ListSums,
    PairCounts,
    PrefixCounts,
    RankHistogram,
)
from metrics.evaluate import Evaluation, Score, evaluate
from metrics.families import FAIRNESS, FAMILIES, Family
from metrics.labels import LabelError, parse_measure, parse_measures, parse_score
from metrics.parameters import Parameter
from metrics.rankings import Grouping, PerList, Rankings
from metrics.reasons import BELOW_ALL, Reason
from metrics.replicates import Replicated, Replicates, bare_ranks, replicated

__version__ = "0.1.0"

__all__ = [
    "AGGREGATIONS",
    "BELOW_ALL",
    "FAIRNESS",
    "FAMILIES",
    "METRICS",
    "PREFIX_UNIT",
    "UNIT",
    "UNKNOWN",
    "WHOLE",
    "Aggregation",
    "Asked",
    "Counts",
    "Evaluation",
    "Family",
    "GroupMetric",
    "Grouping",
    "ItemCounts",
    "LabelError",
    "ListSums",
    "Measure",
    "Metric",
    "PairCounts",
    "Parameter",
    "PerList",
    "PrefixCounts",
    "Range",
    "RankHistogram",
    "Rankings",
    "Reading",
    "Reason",
    "Replicated",
    "Replicates",
    "Score",
    "ScoreName",
    "SingleMetric",
    "Total",
    "asked",
    "bare_ranks",
    "evaluate",
    "parse_measure",
    "parse_measures",
    "parse_score",
    "replicated",
]
