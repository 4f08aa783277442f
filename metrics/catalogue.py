"""All metrics, family by family; all that shows or stores a metric derives from here.

Not here: declarations, which are those of the families.
"""

from metrics.base import Metric
from metrics.comparison import COMPARISON_METRICS
from metrics.fairness import FAIRNESS_METRICS
from metrics.list_native import LIST_NATIVE_METRICS
from metrics.quality import QUALITY_METRICS
from metrics.top_k import TOP_K_METRICS

METRICS: tuple[Metric, ...] = (
    *FAIRNESS_METRICS,
    *QUALITY_METRICS,
    *COMPARISON_METRICS,
    *TOP_K_METRICS,
    *LIST_NATIVE_METRICS,
)
BY_NAME: dict[str, Metric] = {metric.name: metric for metric in METRICS}
