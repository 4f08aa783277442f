"""Fairness of exposure: do groups get the positions, and the attention, that they should?

Here: one declaration for each metric of the family.  Not here: terms that they are written with
(``metrics.terms``), and metrics of a cut (``metrics.top_k``).
"""

from math import fsum, inf

import numpy as np

from metrics import terms
from metrics.aggregations import Range
from metrics.base import GroupMetric, Metric, SingleMetric
from metrics.counts import COMPARED, UNKNOWN, Counts, added
from metrics.elementary import log
from metrics.fairness.prefixes import SMOOTHED_ZERO, SMOOTHING
from metrics.parameters import DECAY, DENOMINATOR, NORMALISED, REFERENCE, P
from metrics.reasons import Reason
from metrics.terms import Given, Number, ratio, weighted
from metrics.weights import attention, exposure, rbp

EXP = GroupMetric(
    "EXP",
    "Group exposure",
    value=ratio(weighted(exposure), terms.appearances),
    range=Range(0.0, 1.0),
    parameters=(DENOMINATOR,),
    cutoff=True,
    source="Singh & Joachims 2018",
    plain="exposure",
    verb="got",
    thing="exposure per item",
)
EXPU = GroupMetric(
    "EXPU",
    "Exposure utility",
    value=ratio(weighted(exposure), terms.relevance),
    range=Range(0.0, inf),
    cutoff=True,
    source="Singh & Joachims 2018 (disparate treatment); named by Raj & Ekstrand 2022",
    plain="exposure for relevance",
    verb="got",
    thing="exposure for the same relevance",
)
EXPRU = GroupMetric(
    "EXPRU",
    "Exposure realised utility",
    value=ratio(terms.clicks, terms.relevance),
    range=Range(0.0, inf),
    source="Singh & Joachims 2018 (disparate impact); named by Raj & Ekstrand 2022",
    plain="clicks for relevance",
    verb="got",
    thing="clicks for the same relevance",
)
AWRF = GroupMetric(
    "AWRF",
    "Attention weighted rank fairness",
    value=ratio(weighted(attention), terms.appearances),
    range=Range(0.0, 100.0),
    parameters=(P, DENOMINATOR),
    cutoff=True,
    source="Sapiezynski et al. 2019",
    plain="attention",
    verb="got",
    thing="attention per item",
)
ERBE = GroupMetric(
    "ERBE",
    "Exposure rank biased precision equality",
    value=ratio(weighted(rbp), terms.lists),
    range=Range(0.0, 1.0),
    parameters=(DECAY,),
    cutoff=True,
    source="Kirnap et al. 2021",
    plain="rank-biased exposure per list",
    verb="got",
    thing="rank-biased exposure per list",
)
ERBP = GroupMetric(
    "ERBP",
    "Exposure rank biased precision proportionality",
    value=ratio(weighted(rbp), terms.appearances),
    range=Range(0.0, 1.0),
    parameters=(DECAY, DENOMINATOR),
    cutoff=True,
    source="Kirnap et al. 2021",
    plain="rank-biased exposure per item",
    verb="got",
    thing="rank-biased exposure per item",
)
ERBR = GroupMetric(
    "ERBR",
    "Exposure rank biased precision proportional to relevance",
    value=ratio(weighted(rbp), terms.relevant),
    range=Range(0.0, inf),
    parameters=(DECAY,),
    cutoff=True,
    source="Kirnap et al. 2021",
    plain="rank-biased exposure per relevant item",
    verb="got",
    thing="rank-biased exposure per relevant item",
)
ARP = GroupMetric(
    "ARP",
    "Attribute rank parity",
    value=ratio(terms.pair_shares, terms.pair_lists),
    range=Range(0.0, 1.0),
    source="Cachel et al. 2022",
    plain="pairs-won",
    thing="win rate in mixed pairs",
)


def _ndkl(counts: Counts, given: Given) -> Number:
    prefixes = counts.prefixes
    if prefixes is None:
        return Reason.NOT_COUNTED
    if given["reference"] == "list":
        if len(counts.known) < COMPARED:
            return Reason.ONE_GROUP
        return added(prefixes.own) / counts.lists
    wanted = counts.catalogue if given["reference"] == "catalogue" else counts.target
    if wanted is None:
        missing = {"catalogue": Reason.CATALOGUE_MISSING, "target": Reason.TARGET_MISSING}
        return missing[str(given["reference"])]
    groups = (*counts.groups, *sorted(set(wanted) - set(counts.groups)))
    if len(set(groups) - {UNKNOWN}) < COMPARED:
        return Reason.ONE_GROUP
    whole = fsum(wanted.values())
    logs = log([wanted.get(group, 0) / whole + SMOOTHING for group in groups])
    share = np.zeros((*prefixes.share.shape[:-1], len(groups)))
    share[..., : len(counts.groups)] = prefixes.share / np.asarray(counts.lists)[..., None]
    entropy = len(groups) * SMOOTHED_ZERO + added(prefixes.entropy) / counts.lists
    # Lists that follow the reference exactly have divergence 0; rounding must not print -1e-17.
    return np.maximum(0.0, entropy - added((share + SMOOTHING) * logs))


NDKL = SingleMetric(
    "NDKL",
    "Normalised discounted KL divergence",
    value=_ndkl,
    text="mean over lists of (1/Z) sum_i KL(mix of first i || reference) / log2(i + 1)",
    range=Range(0.0, inf),
    parameters=(REFERENCE,),
    source="Geyik et al. 2019; shares smoothed by 1e-7",
    plain="divergence of the group mix",
    said="the mix of groups on top differed by {value} from that of whole lists (0: not at all)",
)


def _iaa(counts: Counts, given: Given) -> Number:
    items = counts.items
    if (counts.total("judged") != counts.total("rows")).any():
        return Reason.RELEVANCE_MISSING
    if items is None:
        return Reason.NOT_COUNTED
    if not given["normalised"]:
        return items.gap / counts.lists
    if not np.any(items.share_lists):
        return Reason.NO_RELEVANT_ITEMS
    return items.share_gap / items.share_lists


IAA = SingleMetric(
    "IAA",
    "Inequity of amortised attention",
    value=_iaa,
    text="(1/R) sum over items of |sum over lists of exposure - sum over lists of relevance|",
    range=Range(0.0, inf),
    parameters=(NORMALISED,),
    needs=frozenset({"relevance"}),
    by_groups=False,
    source="Biega et al. 2018",
    plain="inequity of attention",
    said="exposure of items was {value} away from their relevance (0: not at all)",
)

FAIRNESS_METRICS: tuple[Metric, ...] = (EXP, EXPU, EXPRU, AWRF, ERBE, ERBP, ERBR, ARP, NDKL, IAA)
