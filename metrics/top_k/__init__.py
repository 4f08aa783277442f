"""Classification-style fairness of a top-k cut: the metrics, one declaration each.

``X@10`` takes the rows of all lists together, ``X(per=list)@10`` is the mean over lists.  They can
contradict each other: a group can be selected more often in every list, and less often in all of
them together, where it stands in the lists that are hard to be selected in.

Not here: the formulas (``rates``, ``comparisons``, ``entropy``).
"""

from functools import partial
from math import inf

from metrics.aggregations import WORST_DIFFERENCE, WORST_RATIO, Range
from metrics.base import GroupMetric, Metric, SingleMetric
from metrics.families import TOP_K
from metrics.parameters import PER
from metrics.reasons import Reason
from metrics.top_k.comparisons import (
    difference_of_counts,
    difference_of_lists,
    impact_of_counts,
    impact_of_lists,
)
from metrics.top_k.entropy import ALPHA, entropy_of_counts, entropy_of_lists
from metrics.top_k.rates import (
    FALSE_NEGATIVES,
    FALSE_OMISSIONS,
    FALSE_POSITIVES,
    SELECTION,
    TRUE_POSITIVES,
    Rate,
    rate_of_counts,
    rate_of_lists,
)

_of_groups = partial(GroupMetric, parameters=(PER,), cutoff=True, needs_cutoff=True, family=TOP_K)


def _rate(
    name: str,
    title: str,
    rate: Rate,
    source: str,
    *,
    thing: str,
    higher_is_better: bool = True,
    empty: Reason = Reason.NOT_ENOUGH_ITEMS,
) -> GroupMetric:
    return _of_groups(
        name,
        title,
        value=rate_of_counts(rate),
        per_list=rate_of_lists(rate),
        range=Range(0.0, 1.0),
        needs=rate.columns,
        empty=empty,
        higher_is_better=higher_is_better,
        source=source,
        thing=thing,
    )


def _difference(
    name: str,
    title: str,
    text: str,
    *rates: Rate,
    source: str,
    plain: str,
    thing: str,
    higher_is_better: bool = True,
) -> GroupMetric:
    term = difference_of_counts(text, *rates)
    return _of_groups(
        name,
        title,
        value=term,
        per_list=difference_of_lists(*rates),
        range=Range(-1.0, 1.0),
        needs=term.columns,
        aggregations=(WORST_DIFFERENCE,),
        higher_is_better=higher_is_better,
        source=source,
        plain=plain,
        thing=thing,
    )


SELECTION_RATE = _rate(
    "SelectionRate",
    "Selection rate",
    SELECTION,
    "Calders & Verwer 2010",
    # A group's rate is missing only from lists in which nobody stands below the cut.
    empty=Reason.ALL_SELECTED,
    thing="chance of a place",
)
TPR = _rate(
    "TPR",
    "True positive rate",
    TRUE_POSITIVES,
    "Hardt et al. 2016",
    thing="chance of a place for relevant items",
)
FPR = _rate(
    "FPR",
    "False positive rate",
    FALSE_POSITIVES,
    "Corbett-Davies et al. 2017",
    thing="chance of a place for irrelevant items",
)
FNR = _rate(
    "FNR",
    "False negative rate",
    FALSE_NEGATIVES,
    "Chouldechova 2017",
    thing="false negative rate",
    higher_is_better=False,
)
FOR = _rate(
    "FOR",
    "False omission rate",
    FALSE_OMISSIONS,
    "Berk et al. 2018",
    thing="false omission rate",
    higher_is_better=False,
)

STATISTICAL_PARITY = _difference(
    "StatisticalParity",
    "Statistical parity difference",
    "SelectionRate of g - that of the rest",
    SELECTION,
    source="Dwork et al. 2012; Calders & Verwer 2010",
    plain="difference in places",
    thing="chance of a place",
)
DISPARATE_IMPACT = _of_groups(
    # A library returns a count where the rest has nobody above the cut: a ratio by 0 is none.
    "DisparateImpact",
    "Disparate impact ratio",
    value=impact_of_counts,
    per_list=impact_of_lists,
    range=Range(0.0, inf),
    empty=Reason.NONE_SELECTED,
    aggregations=(WORST_RATIO,),
    source="Feldman et al. 2015",
    plain="share of places beside the others",
    thing="chance of a place",
)
EQUAL_OPPORTUNITY = _difference(
    # Jurity's page calls it a ratio; its code, and the paper, compare by difference.
    "EqualOpportunity",
    "Equal opportunity difference",
    "TPR of g - that of the rest",
    TRUE_POSITIVES,
    source="Hardt et al. 2016",
    plain="difference in places of relevant items",
    thing="chance of a place for relevant items",
)
PREDICTIVE_EQUALITY = _difference(
    "PredictiveEquality",
    "Predictive equality difference",
    "FPR of g - that of the rest",
    FALSE_POSITIVES,
    source="Corbett-Davies et al. 2017",
    plain="difference in places of irrelevant items",
    thing="chance of a place for irrelevant items",
)
FNR_DIFFERENCE = _difference(
    "FNRDifference",
    "False negative rate difference",
    "FNR of g - that of the rest",
    FALSE_NEGATIVES,
    source="Chouldechova 2017",
    higher_is_better=False,
    plain="difference in relevant items missing",
    thing="false negative rate",
)
FOR_DIFFERENCE = _difference(
    "FORDifference",
    "False omission rate difference",
    "FOR of g - that of the rest",
    FALSE_OMISSIONS,
    source="Berk et al. 2018",
    higher_is_better=False,
    plain="difference in relevant items left out",
    thing="false omission rate",
)
AVERAGE_ODDS = _difference(
    # Jurity's page turns the sign of the TPR difference, so that two gains would cancel out.
    "AverageOdds",
    "Average odds difference",
    "((FPR of g - that of the rest) + (TPR of g - that of the rest)) / 2",
    TRUE_POSITIVES,
    FALSE_POSITIVES,
    source="Hardt et al. 2016; Bellamy et al. 2018",
    plain="difference in odds",
    thing="chance of a place, given the relevance,",
)

_entropy = partial(
    SingleMetric,
    value=entropy_of_counts,
    per_list=entropy_of_lists,
    range=Range(0.0, inf),
    cutoff=True,
    needs_cutoff=True,
    needs=frozenset({"relevance"}),
    by_groups=False,
    family=TOP_K,
)
GENERALIZED_ENTROPY = _entropy(
    "GeneralizedEntropy",
    "Generalised entropy index",
    text="mean of ((b / mean b)^alpha - 1) / (alpha (alpha - 1)), b = selected - relevant + 1",
    parameters=(ALPHA, PER),
    source="Speicher et al. 2018; Shorrocks 1980",
)
THEIL = _entropy(
    "Theil",
    "Theil index",
    plain="Theil index",
    text="mean of b / mean b * ln(b / mean b), b = selected - relevant + 1",
    parameters=(PER,),
    source="Speicher et al. 2018; Theil 1967",
)

TOP_K_METRICS: tuple[Metric, ...] = (
    SELECTION_RATE,
    TPR,
    FPR,
    FNR,
    FOR,
    STATISTICAL_PARITY,
    DISPARATE_IMPACT,
    EQUAL_OPPORTUNITY,
    PREDICTIVE_EQUALITY,
    FNR_DIFFERENCE,
    FOR_DIFFERENCE,
    AVERAGE_ODDS,
    GENERALIZED_ENTROPY,
    THEIL,
)
