"""Two rankings compared: a list and its reference, one declaration each."""

from metrics.aggregations import Range
from metrics.base import Metric, Reading, SingleMetric
from metrics.comparison import correlation, overlap
from metrics.families import COMPARISON
from metrics.parameters import Parameter
from metrics.rankings import ListFunction

AGAINST = Parameter(
    "reference",
    "logged",
    "what a list is compared with: the logged reference_rank, or its items by relevance",
    choices=("logged", "relevance"),
    needs=(("logged", "reference_rank"), ("relevance", "relevance")),
)
PERSISTENCE = Parameter(
    "p", 0.9, "how likely a reader goes on to the next depth; higher looks deeper", always=True
)
_UNIT = Range(0.0, 1.0)
_HELD = frozenset({"reference_rank"})
_WEBBER = "Webber, Moffat & Zobel 2010"

AO = SingleMetric(
    "AO",
    "Average overlap",
    per_list=overlap.average_overlap,
    text="(1/D) sum_{d <= D} X_d / d, D the cut-off or the depth of the shorter list",
    range=_UNIT,
    parameters=(AGAINST,),
    cutoff=True,
    family=COMPARISON,
    partial=_HELD,
    by_groups=False,
    fairest=1.0,
    alarm="low",
    source="Fagin, Kumar & Sivakumar 2003",
)
RBO = SingleMetric(
    "RBO",
    "Rank-biased overlap",
    text="(1 - p) sum_d p^(d-1) X_d / d",
    readings=(
        Reading(
            "MIN",
            "nothing below the lists agrees",
            _UNIT,
            overlap.rbo_min,
            # Lists end, so even identical ones stay below 1.
            fairest=None,
            alarm="low",
        ),
        Reading("RES", "what it gains if all below the lists agrees", _UNIT, overlap.rbo_res),
        Reading(
            "EXT",
            "agreement below the lists goes on as at their end",
            _UNIT,
            overlap.rbo_ext,
            fairest=1.0,
            alarm="low",
        ),
    ),
    range=_UNIT,
    parameters=(PERSISTENCE, AGAINST),
    cutoff=True,
    family=COMPARISON,
    partial=_HELD,
    by_groups=False,
    fairest=1.0,
    alarm="low",
    source=f"{_WEBBER}, eq. 11, 30 and 32",
)
RBD = SingleMetric(
    "RBD",
    "Rank-biased distance",
    per_list=overlap.rbd,
    text="1 - RBO.EXT",
    range=_UNIT,
    parameters=(PERSISTENCE, AGAINST),
    cutoff=True,
    family=COMPARISON,
    partial=_HELD,
    by_groups=False,
    fairest=0.0,
    alarm="high",
    source=_WEBBER,
)
NDPM = SingleMetric(
    "NDPM",
    "Normalised distance-based performance",
    per_list=correlation.ndpm,
    text="(2 contradicted + tied) / (2 pairs), of the pairs that the reference orders",
    range=_UNIT,
    parameters=(AGAINST,),
    family=COMPARISON,
    partial=_HELD,
    by_groups=False,
    fairest=0.0,
    alarm="high",
    source="Yao 1995",
)


def _agreement(
    name: str, title: str, per_list: ListFunction, text: str, low: float, source: str
) -> SingleMetric:
    return SingleMetric(
        name,
        title,
        per_list=per_list,
        text=text,
        range=Range(low, 1.0),
        parameters=(AGAINST,),
        family=COMPARISON,
        partial=_HELD,
        by_groups=False,
        fairest=1.0,
        alarm="low",
        source=source,
    )


FCP = _agreement(
    "FCP",
    "Fraction of concordant pairs",
    correlation.fcp,
    "concordant / (concordant + discordant)",
    0.0,
    "Koren & Sill 2013",
)
KENDALL = _agreement(
    "Kendall",
    "Kendall's tau-b",
    correlation.kendall,
    "(concordant - discordant) / sqrt(pairs * pairs that the reference orders)",
    -1.0,
    "Kendall 1945",
)
SPEARMAN = _agreement(
    "Spearman",
    "Spearman's rho",
    correlation.spearman,
    "correlation of places, ties sharing their mean place",
    -1.0,
    "Spearman 1904",
)
PEARSON = _agreement(
    "Pearson",
    "Pearson's correlation",
    correlation.pearson,
    "correlation of ranks with reference ranks, or with relevance turned round",
    -1.0,
    "Pearson 1895",
)

COMPARISON_METRICS: tuple[Metric, ...] = (
    AO,
    RBO,
    RBD,
    NDPM,
    FCP,
    KENDALL,
    SPEARMAN,
    PEARSON,
)
