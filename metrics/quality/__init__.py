"""Ranking quality: whether lists put relevant items on top, and whose items those are.

Here: one declaration for each metric of the family.  Not here: the formulas (``lists``,
``groups``).
"""

from functools import partial
from math import inf

from metrics.aggregations import Range
from metrics.base import GroupMetric, Metric, SingleMetric
from metrics.families import QUALITY
from metrics.parameters import Parameter
from metrics.quality import groups as by_group
from metrics.quality import lists as of_list
from metrics.reasons import Reason

GAIN = Parameter(
    "gain",
    "linear",
    "what an item of relevance g is worth: g, or 2^g - 1",
    choices=("linear", "exp"),
)
OF = Parameter(
    "of",
    "list",
    "what a group's items are measured against: the whole list, or what the group itself could get",
    choices=("list", "group"),
)
METHOD = Parameter(
    "method",
    "matching",
    "clicks of the rows with a known click, or an estimate for all rows",
    choices=("matching", "ips", "dr"),
    needs=(("ips", "propensity"), ("dr", "propensity"), ("dr", "predicted_click")),
)
# Breese et al. used a half-life of 5 and a neutral rating of 0 for items without one.
NEUTRAL = Parameter(
    "d", 0.0, "neutral relevance, which is worth nothing", from_low=True, always=True
)
HALF_LIFE = Parameter(
    "alpha", 5.0, "rank whose item has an even chance of being seen", low=1.0, high=inf, always=True
)

_single = partial(
    SingleMetric,
    family=QUALITY,
    needs=frozenset({"relevance"}),
    empty=Reason.NO_RELEVANT_ITEMS,
    range=Range(0.0, 1.0),
    cutoff=True,
    by_groups=False,
    fairest=1.0,
    alarm="low",
)
_at_cutoff = partial(_single, needs_cutoff=True)
_per_group = partial(
    GroupMetric,
    family=QUALITY,
    needs=frozenset({"relevance"}),
    empty=Reason.NO_RELEVANT_ITEMS,
    range=Range(0.0, 1.0),
    cutoff=True,
)

RR = _single(
    "RR",
    "Reciprocal rank",
    per_list=of_list.reciprocal_rank,
    text="mean over lists of 1 / rank of the first relevant item, 0 where it is below k",
    source="Voorhees 1999",
)
P = _at_cutoff(
    "P",
    "Precision",
    per_list=of_list.precision,
    text="mean over lists of (relevant items in the first k) / k",
    source="Manning, Raghavan & Schütze 2008, ch. 8; as in trec_eval",
)
R = _at_cutoff(
    "R",
    "Recall",
    per_list=of_list.recall,
    text="mean over lists of (relevant items in the first k) / (relevant items)",
    source="Manning, Raghavan & Schütze 2008, ch. 8; as in trec_eval",
)
F1 = _at_cutoff(
    "F1",
    "F1 of precision and recall",
    plain="F1",
    per_list=of_list.f1,
    text="mean over lists of 2 P R / (P + R), 0 where both are 0",
    source="van Rijsbergen 1979",
)
AP = _single(
    "AP",
    "Average precision",
    per_list=of_list.average_precision,
    text="mean over lists of (sum of P@rank over relevant items in the first k) / (relevant items)",
    source="Buckley & Voorhees 2000; as in trec_eval",
)
HIT = _at_cutoff(
    "hit",
    "Hit rate, or top-k accuracy",
    per_list=of_list.hit,
    text="share of lists with a relevant item in the first k",
    source="success in trec_eval",
    plain="hit rate",
)
CG = _at_cutoff(
    "CG",
    "Cumulative gain",
    per_list=of_list.cumulative_gain,
    text="mean over lists of the sum of gains in the first k",
    range=Range(0.0, inf),
    parameters=(GAIN,),
    fairest=None,
    source="Järvelin & Kekäläinen 2002",
)
DCG = _at_cutoff(
    "DCG",
    "Discounted cumulative gain",
    per_list=of_list.discounted_gain,
    text="mean over lists of the sum of gain / log2(rank + 1) in the first k",
    range=Range(0.0, inf),
    parameters=(GAIN,),
    fairest=None,
    source="Järvelin & Kekäläinen 2002; exponential gain: Burges et al. 2005",
    plain="DCG",
)
NDCG = _single(
    "nDCG",
    "Normalised discounted cumulative gain",
    per_list=of_list.normalised_gain,
    text="mean over lists of DCG / (DCG of the list's items in their best order, cut at k)",
    parameters=(GAIN,),
    source="Järvelin & Kekäläinen 2002; exponential gain: Burges et al. 2005",
    plain="nDCG",
)
RSCORE = _single(
    "RScore",
    "R-score, or half-life utility",
    per_list=of_list.r_score,
    text="sum of R_u / sum of R_u of the best order, over lists; "
    "R_u = sum of max(relevance - d, 0) / 2^((rank - 1) / (alpha - 1))",
    cutoff=False,
    parameters=(NEUTRAL, HALF_LIFE),
    source="Breese, Heckerman & Kadie 1998",
    plain="R-score",
)
AR = _at_cutoff(
    "AR",
    "Average recall",
    per_list=of_list.average_recall,
    text="mean over lists of (R@1 + ... + R@k) / k",
    source="defined here: the literature has no agreed definition",
)
CTR = _single(
    "CTR",
    "Click-through rate",
    per_list=of_list.click_through,
    text="matching: sum of click / rows with a click known; ips: sum of click / propensity over "
    "those, / rows; dr: (sum of predicted + sum of (click - predicted) / propensity) / rows",
    # The estimates are unbiased, not bounded: both can leave [0, 1].
    range=Range(-inf, inf),
    parameters=(METHOD,),
    needs=frozenset({"click"}),
    partial=frozenset({"click", "propensity"}),
    empty=Reason.NOT_ENOUGH_ITEMS,
    fairest=None,
    source="Dudík, Langford & Li 2011; as in Jurity 2.1",
)
JURITY_PRECISION = _at_cutoff(
    "JurityPrecision",
    "Precision over the items returned",
    per_list=of_list.precision_of_returned,
    text="mean over lists of (relevant items in the first k) / (items in the first k)",
    source="Jurity 2.1",
    plain="precision of the items returned",
)
JURITY_RECALL = _at_cutoff(
    "JurityRecall",
    "Recall, as Jurity has it",
    per_list=of_list.recall,
    text="mean over lists of (relevant items in the first k) / (relevant items)",
    source="Jurity 2.1",
    plain="recall",
)
JURITY_MAP = _at_cutoff(
    "JurityMAP",
    "Average precision over what k places can hold",
    per_list=of_list.average_precision_of_possible,
    text="mean over lists of (sum of P@rank over relevant items in the first k) / "
    "min(k, relevant items)",
    source="Jurity 2.1",
    plain="average precision of what fits",
)
JURITY_NDCG = _at_cutoff(
    "JurityNDCG",
    "Binary nDCG whose ideal is not cut",
    per_list=of_list.normalised_gain_of_all,
    text="mean over lists of (sum of 1 / log2(rank + 1) over relevant items in the first k) / "
    "(the same for all relevant items on top)",
    source="Jurity 2.1",
    plain="binary nDCG",
)
GROUP_P = _per_group(
    "GroupP",
    "Group precision",
    per_list=by_group.group_precision,
    by_chance=by_group.precision_by_chance,
    text="mean over lists of (relevant items of g in the first k) / (k, or items of g there)",
    parameters=(OF,),
    needs_cutoff=True,
    source="defined here: precision, taken apart by group",
    thing="precision",
)
GROUP_R = _per_group(
    "GroupR",
    "Group recall",
    per_list=by_group.group_recall,
    by_chance=by_group.recall_by_chance,
    text="mean over lists of (relevant items of g in the first k) / "
    "(relevant items of the list, or of g)",
    parameters=(OF,),
    needs_cutoff=True,
    source="defined here: recall, taken apart by group",
    thing="recall",
)
GROUP_NDCG = _per_group(
    "GroupnDCG",
    "Group nDCG",
    per_list=by_group.group_normalised_gain,
    by_chance=by_group.normalised_gain_by_chance,
    text="mean over lists of (DCG of g's items) / "
    "(DCG of the list's items in their best order, or of g's alone on top)",
    parameters=(OF, GAIN),
    source="defined here: nDCG, taken apart by group",
    thing="nDCG",
)

QUALITY_METRICS: tuple[Metric, ...] = (
    *(RR, P, R, F1, AP, HIT, CG, DCG, NDCG, RSCORE, AR, CTR),
    *(JURITY_PRECISION, JURITY_RECALL, JURITY_MAP, JURITY_NDCG),
    *(GROUP_P, GROUP_R, GROUP_NDCG),
)
