"""Fairness of the order of groups and items in lists: what other papers and packages measure.

Here: one declaration for each metric of the family.  Not here: the formulas, which stand in the
modules beside this one.
"""

from dataclasses import replace
from functools import partial
from math import inf

from metrics.aggregations import WORST_RATIO, Aggregation, Range
from metrics.base import GroupMetric, Metric, SingleMetric
from metrics.families import LIST_NATIVE
from metrics.list_native.expected_exposure import (
    browsing,
    exposure_disparity,
    exposure_loss,
    exposure_relevance,
)
from metrics.list_native.fair_top_k import first_failure, passes
from metrics.list_native.group_shares import attention_match, skew, skew_per_list
from metrics.list_native.inequality import GINI
from metrics.list_native.prefix_shares import rkl, rnd, rrd
from metrics.list_native.relevance_pairs import pairs_in_order
from metrics.parameters import DECAY, PER, REFERENCE, P, Parameter
from metrics.reasons import Reason

WORST = Aggregation(
    "Max",
    "max V",
    lambda values: values.max(axis=-1),
    fairest=0.0,
    alarm="high",
    range=Range,
    plain="largest",
    said="the {thing} of {high} was {value}, more than of any other group",
)
MIN_SKEW = replace(
    WORST_RATIO,
    name="MinSkew",
    fairest=0.0,
    said="the {thing} of {low} was {value} (0: in proportion)",
    unit="number",
)
MAX_SKEW = replace(
    WORST,
    name="MaxSkew",
    plain="highest",
    said="the {thing} of {high} was {value} (0: in proportion)",
)
ENOUGH = replace(
    WORST_RATIO, said="{value} of the lists held enough of {low} among their first places"
)

SHARES = replace(
    REFERENCE,
    text="the shares to compare with: the group's own, in the batch or in each list, those of the "
    "item table, or of the target",
)
# One page of results after the other.
STEP = Parameter(
    "step", 10, "items from one cut point to the next", low=2, high=inf, from_low=True, whole=True
)
# A fair list fails in one of ten tests: stricter ones miss more unfair lists.
ALPHA = Parameter("alpha", 0.1, "share of fair lists that fails the test", high=0.5)
WEIGHT = Parameter(
    "weight",
    "log",
    "attention at rank k: 1 / log2(max(k, 2)), or (1 - p)^(k - 1)",
    choices=("log", "geometric"),
)
PAIRS = Parameter(
    "pairs",
    "all",
    "whose items the relevant ones are compared with: anyone's, other groups', or their own",
    choices=("all", "inter", "intra"),
)
OVER = Parameter(
    "over", "pairs", "every pair counts the same, or every list", choices=("pairs", "lists")
)
# A reader looks at 1 / (1 - decay) = 2 ranks on average: what counts is the very top.
PATIENCE = replace(DECAY, default=0.5)

SKEW = GroupMetric(
    "Skew",
    "Skew of the top k",
    value=skew,
    per_list=skew_per_list,
    range=Range(-inf, inf),
    parameters=(SHARES, PER),
    cutoff=True,
    needs_cutoff=True,
    aggregations=(MIN_SKEW, MAX_SKEW),
    family=LIST_NATIVE,
    source="Geyik, Ambler & Kenthapadi 2019; list by list one item of the reference mix is added",
    plain="skew",
    thing="skew",
)
_prefixes = partial(
    GroupMetric,
    range=Range(0.0, 1.0),
    parameters=(STEP,),
    aggregations=(WORST,),
    higher_is_better=False,
    family=LIST_NATIVE,
)
RND = _prefixes(
    "rND",
    "Normalised discounted difference",
    per_list=rnd,
    text="mean over lists of (1/Z) sum_i |share of g in first i - share of g in all| / log2(i)",
    source="Yang & Stoyanovich 2017; Z is the sum of the worst order",
    plain="discounted difference of shares",
    thing="discounted difference of shares",
)
RRD = _prefixes(
    "rRD",
    "Normalised discounted ratio",
    per_list=rrd,
    text="mean over lists of (1/Z) sum_i max(0, g / others in all - in first i) / log2(i)",
    source="Yang & Stoyanovich 2017, one-sided as in their program; Z is the worst order's sum",
    plain="discounted ratio of shares",
    thing="discounted ratio of shares",
)
RKL = SingleMetric(
    "rKL",
    "Normalised discounted KL divergence at cut points",
    per_list=rkl,
    text="mean over lists of (1/Z) sum_i KL(mix of first i || mix of all) / log2(i)",
    range=Range(0.0, 1.0),
    parameters=(STEP,),
    family=LIST_NATIVE,
    source="Yang & Stoyanovich 2017; Z is the sum of the worst order, or an upper bound of it",
    plain="divergence of the group mix at cut points",
)
FAIR = GroupMetric(
    "FAIR",
    "Ranked group fairness test",
    per_list=passes,
    text="lists whose top k has enough of g in every prefix, by a binomial test / lists tested",
    range=Range(0.0, 1.0),
    parameters=(ALPHA, SHARES),
    cutoff=True,
    needs_cutoff=True,
    aggregations=(ENOUGH,),
    family=LIST_NATIVE,
    source="Zehlike et al. 2017 (FA*IR); exact adjustment: Zehlike, Suehr & Castillo 2020",
    plain="lists that pass the group test",
)
FAIR_FIRST = SingleMetric(
    "FAIRFirst",
    "First rank that fails the ranked group fairness test",
    per_list=first_failure,
    text="mean over failing lists of the rank at which the top k first has too few of a group",
    range=Range(1.0, inf),
    parameters=(ALPHA, SHARES),
    cutoff=True,
    needs_cutoff=True,
    empty=Reason.NO_LIST_FAILS,
    family=LIST_NATIVE,
    fairest=None,
    alarm=None,
    source="after Zehlike et al. 2017 (FA*IR)",
    plain="first rank that fails the group test",
)
TARGET_AWRF = SingleMetric(
    "TargetAWRF",
    "Attention beside target shares",
    per_list=attention_match,
    text="mean over lists of 1 - JS(share of attention on each group || reference share), in bits",
    range=Range(0.0, 1.0),
    parameters=(WEIGHT, replace(P, always=False), replace(REFERENCE, default="target")),
    cutoff=True,
    family=LIST_NATIVE,
    fairest=1.0,
    alarm="low",
    source="Sapiezynski et al. 2019; with logarithmic attention: TREC Fair Ranking 2021 and 2022",
)
PAIRWISE = GroupMetric(
    "Pairwise",
    "Pairwise accuracy",
    per_list=pairs_in_order,
    text="pairs with the relevant item of g above the item that is not relevant / such pairs",
    range=Range(0.0, 1.0),
    parameters=(PAIRS, OVER),
    needs=frozenset({"relevance"}),
    family=LIST_NATIVE,
    source="Beutel et al. 2019",
    plain="pairs in the right order",
    thing="share of pairs in the right order",
)
_of_queries = partial(
    SingleMetric,
    range=Range(0.0, inf),
    parameters=(PATIENCE,),
    needs=frozenset({"relevance"}),
    by_query=browsing,
    family=LIST_NATIVE,
    by_groups=False,
    source="Diaz et al. 2020",
)
EEL = _of_queries(
    "EEL",
    "Expected exposure loss",
    per_list=exposure_loss,
    text="mean over queries of sum over items of (mean exposure - target exposure)^2",
)
EED = _of_queries(
    "EED",
    "Expected exposure disparity",
    per_list=exposure_disparity,
    text="mean over queries of sum over items of (mean exposure)^2",
    fairest=None,
)
EER = _of_queries(
    "EER",
    "Expected exposure relevance",
    per_list=exposure_relevance,
    text="mean over queries of sum over items of mean exposure * target exposure",
    fairest=None,
    alarm="low",
)

LIST_NATIVE_METRICS: tuple[Metric, ...] = (
    SKEW,
    RND,
    RKL,
    RRD,
    FAIR,
    FAIR_FIRST,
    TARGET_AWRF,
    PAIRWISE,
    EEL,
    EED,
    EER,
    GINI,
)
