"""Statistics of scores over time: pure functions on arrays, public.

Here: baselines, groups against each other, control charts, change points, control of false
discoveries, tests of the data gate.  Not here: databases, and what follows from a shift
(``monitoring``).

One batch is a row, one series (a score of one slice and attribute) a column.  ``follow`` says how
far the newest batch is from what came before, ``discover`` which of a night's many series are
news, ``change_points`` where a whole series changed level, and ``tested`` whether a batch is
enough like those before it to be judged at all.
"""

from pipeline.trends.autocorrelation import autocorrelations
from pipeline.trends.change_points import ChangePoint, change_points
from pipeline.trends.charts import CAP, CHARTS, Charts, charts, p_values
from pipeline.trends.comparisons import Comparisons, Spoken, comparisons, spoken
from pipeline.trends.discoveries import Discoveries, adjusted, discover
from pipeline.trends.follow import Followed, Side, at_row, follow, follow_all, reach
from pipeline.trends.gates import ABSOLUTE, GATES, Facts, Gated, tested
from pipeline.trends.residuals import FURTHEST, OUTLIER, Expectation, Residuals, standardised
from pipeline.trends.run_lengths import cusum_tail

__all__ = [
    "ABSOLUTE",
    "CAP",
    "CHARTS",
    "FURTHEST",
    "GATES",
    "OUTLIER",
    "ChangePoint",
    "Charts",
    "Comparisons",
    "Discoveries",
    "Expectation",
    "Facts",
    "Followed",
    "Gated",
    "Residuals",
    "Side",
    "Spoken",
    "adjusted",
    "at_row",
    "autocorrelations",
    "change_points",
    "charts",
    "comparisons",
    "cusum_tail",
    "discover",
    "follow",
    "follow_all",
    "p_values",
    "reach",
    "spoken",
    "standardised",
    "tested",
]
