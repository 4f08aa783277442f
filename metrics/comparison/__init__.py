"""Two rankings compared: a list and its reference, one declaration each.

Not here: the formulas (``overlap``, ``correlation``), and pairing two logs (``pipeline.compare``).
"""

from functools import partial

from metrics.aggregations import Range
from metrics.base import Metric, Reading, SingleMetric
from metrics.comparison import correlation, overlap
from metrics.families import COMPARISON
from metrics.parameters import Parameter

AGAINST = Parameter(
    "reference",
    "logged",
    "what a list is compared with: the logged reference_rank, or its items by relevance",
    choices=("logged", "relevance"),
    needs=(("logged", "reference_rank"), ("relevance", "relevance")),
)
# With 0.9 the first ten ranks decide 86% of the score (Webber et al. 2010).
PERSISTENCE = Parameter(
    "p", 0.9, "how likely a reader goes on to the next depth; higher looks deeper", always=True
)
_UNIT, _SIGNED = Range(0.0, 1.0), Range(-1.0, 1.0)
_WEBBER = "Webber, Moffat & Zobel 2010"

_agreement = partial(
    SingleMetric,
    family=COMPARISON,
    parameters=(AGAINST,),
    partial=frozenset({"reference_rank"}),
    by_groups=False,
    fairest=1.0,
    alarm="low",
)
_distance = partial(_agreement, fairest=0.0, alarm="high")

AO = _agreement(
    "AO",
    "Average overlap",
    per_list=overlap.average_overlap,
    text="(1/D) sum_{d <= D} X_d / d, D the cut-off or the depth of the shorter list",
    range=_UNIT,
    cutoff=True,
    source="Fagin, Kumar & Sivakumar 2003",
)
RBO = _agreement(
    "RBO",
    "Rank-biased overlap",
    text="(1 - p) sum_d p^(d-1) X_d / d",
    readings=(
        Reading(
            "MIN",
            "((1-p)/p) (sum_{d<=k} (X_d - X_k) p^d/d - X_k ln(1-p)): nothing below agrees",
            _UNIT,
            overlap.rbo_min,
            # Lists end, so even identical ones stay below 1.
            fairest=None,
            alarm="low",
            plain="lower bound",
        ),
        Reading(
            "RES",
            "what MIN gains if all below the lists agrees",
            _UNIT,
            overlap.rbo_res,
            plain="uncertainty",
        ),
        Reading(
            "EXT",
            "X_k/k p^k + ((1-p)/p) sum_{d<=k} X_d p^d / d: agreement goes on as at the lists' end",
            _UNIT,
            overlap.rbo_ext,
            fairest=1.0,
            alarm="low",
        ),
    ),
    range=_UNIT,
    parameters=(PERSISTENCE, AGAINST),
    cutoff=True,
    source=f"{_WEBBER}, eq. 11, 30 and 32",
)
RBD = _distance(
    "RBD",
    "Rank-biased distance",
    per_list=overlap.rbd,
    text="1 - RBO.EXT",
    range=_UNIT,
    parameters=(PERSISTENCE, AGAINST),
    cutoff=True,
    source=_WEBBER,
)
NDPM = _distance(
    "NDPM",
    "Normalised distance-based performance",
    per_list=correlation.ndpm,
    text="(2 contradicted + tied) / (2 pairs), of the pairs that the reference orders",
    range=_UNIT,
    source="Yao 1995",
    plain="distance to the reference order",
)
FCP = _agreement(
    "FCP",
    "Fraction of concordant pairs",
    per_list=correlation.fcp,
    text="concordant / (concordant + discordant)",
    range=_UNIT,
    source="Koren & Sill 2013",
    plain="concordant pairs",
)
KENDALL = _agreement(
    "Kendall",
    "Kendall's tau-b",
    per_list=correlation.kendall,
    text="(concordant - discordant) / sqrt(pairs * pairs that the reference orders)",
    range=_SIGNED,
    source="Kendall 1945",
    plain="Kendall's tau-b",
)
SPEARMAN = _agreement(
    "Spearman",
    "Spearman's rho",
    per_list=correlation.spearman,
    text="correlation of places, ties sharing their mean place",
    range=_SIGNED,
    source="Spearman 1904",
    plain="Spearman's rho",
)
PEARSON = _agreement(
    "Pearson",
    "Pearson's correlation",
    per_list=correlation.pearson,
    text="correlation of ranks with reference ranks, or with relevance turned round",
    range=_SIGNED,
    source="Pearson 1895",
    plain="Pearson's correlation",
)

COMPARISON_METRICS: tuple[Metric, ...] = (AO, RBO, RBD, NDPM, FCP, KENDALL, SPEARMAN, PEARSON)
