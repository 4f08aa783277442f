"""How unequally exposure is spread over items, whatever their group.

Not here: inequality of what a cut gives (``metrics.top_k.entropy``).
"""

import numpy as np

from metrics.aggregations import Range
from metrics.base import SingleMetric
from metrics.counts import Counts
from metrics.families import LIST_NATIVE
from metrics.parameters import Parameter
from metrics.reasons import Reason
from metrics.terms import Given, Number

POOL = Parameter(
    "items",
    "shown",
    "over which items: those that were shown, or all of the item table",
    choices=("shown", "catalogue"),
)


def _gini(counts: Counts, given: Given) -> Number:
    shown = counts.items
    if shown is None:
        return Reason.NOT_COUNTED
    unseen = 0
    if given["items"] == "catalogue":
        if counts.catalogue is None:
            return Reason.CATALOGUE_MISSING
        unseen = max(0, sum(counts.catalogue.values()) - shown.items)
    items = shown.items + unseen
    # Unseen items come first in the order of exposure and move all others up by their number.
    places = shown.exposure_ranks + unseen * shown.exposure
    found = 2.0 * places / (items * shown.exposure) - (items + 1.0) / items
    index: Number = np.maximum(0.0, found)
    return index


GINI = SingleMetric(
    "Gini",
    "Gini coefficient of item exposure",
    plain="Gini coefficient of exposure",
    value=_gini,
    text="sum_i (2i - n - 1) x_i / (n sum_i x_i), x the exposures of n items, ascending",
    range=Range(0.0, 1.0),
    parameters=(POOL,),
    family=LIST_NATIVE,
    by_groups=False,
    source="Gini 1912; of recommended items: Fleder & Hosanagar 2009",
)
