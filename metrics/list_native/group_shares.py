"""Shares of groups beside the shares they should have: Skew@k and the attention on each group.

Not here: which shares these are (``compared``), and shares of every prefix (``prefix_shares``).
"""

from collections.abc import Mapping
from math import fsum

import numpy as np

from metrics.counts import UNKNOWN, Counts
from metrics.elementary import log, log2, powers_of
from metrics.list_native.compared import compared, parts, reference_shares, sizes
from metrics.rankings import PerList, Rankings
from metrics.reasons import Reason
from metrics.terms import Given, GroupValues, Term, explained, missing
from metrics.weights import FloatArray, exposure_at, ratio_of


def _wanted(counts: Counts, given: Given) -> FloatArray | Reason:
    """Reference shares of the groups, over those that take part, or why there are none."""
    if given["reference"] == "list":
        rows = np.where(counts.takes_part, counts.total("rows"), 0.0)
        return ratio_of(rows, rows.sum(axis=-1, keepdims=True))
    found: Mapping[str, float] | None = counts.target
    missing = Reason.TARGET_MISSING
    if given["reference"] == "catalogue":
        found, missing = counts.catalogue, Reason.CATALOGUE_MISSING
    if found is None:
        return missing
    part = {
        group: size for group, size in found.items() if counts.unknown_counts or group != UNKNOWN
    }
    # A group that should have a share and is not even listed would leave all others above theirs.
    if any(size > 0 for group, size in part.items() if group not in counts.groups):
        return Reason.GROUP_ABSENT
    whole = fsum(part.values())
    shares = [part.get(group, 0.0) / whole if whole > 0 else np.nan for group in counts.groups]
    return np.array(shares)


def _skew_of(counts: Counts, given: Given) -> GroupValues:
    wanted = _wanted(counts, given)
    if isinstance(wanted, Reason):
        return missing(len(counts.groups), wanted)
    rows = counts.total("rows")
    compared = np.where(counts.takes_part, rows, 0.0).sum(axis=-1, keepdims=True)
    above = np.where(counts.ranks.rank <= int(given["k"]), 1.0, 0.0)
    top = np.where(counts.takes_part, counts.total("rows", above), 0.0)
    depth = top.sum(axis=-1, keepdims=True)
    share = ratio_of(ratio_of(top, depth), wanted)
    some = share > 0
    return explained(
        log(np.where(some, share, np.nan)),
        [
            (rows == 0, Reason.GROUP_ABSENT),
            (~(counts.takes_part & (wanted > 0)), Reason.NOT_COMPARED),
            (
                (depth == compared) & (given["reference"] == "list"),
                Reason.ALL_SELECTED,
            ),
            (top == 0, Reason.NOT_ON_TOP),
        ],
    )


skew = Term("ln(share of g in the top k / reference share of g)", _skew_of)
"""Skew of the batch: shares over the top-k rows of all lists together.

A batch without rows below the cut-off has no skew against its own mix, which is the mix of the top
by construction; a group that is not on top has a reason instead of minus infinity.
"""


def skew_per_list(lists: Rankings, given: Given) -> PerList:
    """Skew of each list and group, shape (lists, groups).

    A short list often lacks a small group on top, and leaving such lists out would hide just what
    is asked for.  So one more item is added to the top k, divided over the groups as the reference
    says: ``ln((c + s) / ((n + 1) s))`` for c of n items and the share s.  It is 0 where c = n s,
    and -ln(n + 1) for a group that is absent.  Chance takes more from a logarithm than it gives, so
    the mean over fair lists is below 0, most of all for small groups and short tops.

    NaN for groups that should have no share, and for lists that end at the cut-off when they are
    held against their own mix.
    """
    top = lists.top(int(given["k"])) & compared(lists)
    shown, depth = lists.group_sum(top), lists.count(top)
    judged = depth > 0
    if given["reference"] == "list":
        judged &= depth < sizes(lists)[1]
    share = reference_shares(lists, given)
    share = np.where(judged[:, None] & (share > 0), share, np.nan)
    value = log((shown + share) / ((depth[:, None] + 1) * share))
    return PerList(value)


def _weights(lists: Rankings, given: Given) -> FloatArray:
    """Attention at each row's rank; only its proportions matter."""
    if given["weight"] == "log":
        # TREC discounts ranks 1 and 2 alike: 1 / log2(max(k, 2)).
        return exposure_at(np.maximum(lists.rank, 2) - 1)
    return powers_of(1.0 - float(given["p"]), lists.rank - 1)


def attention_match(lists: Rankings, given: Given) -> PerList:
    """1 - Jensen-Shannon divergence of attention and reference, in bits; shape (lists,), in [0, 1].

    Attention is that on rows whose group takes part, at or above the cut-off if there is one, and
    scaled to sum 1.  NaN for lists without such rows.  The program of TREC takes natural
    logarithms, which makes 1 - ln 2 its lowest value.
    """
    rows = lists.top(int(given["k"])) & compared(lists)
    attention = lists.group_sum(np.where(rows, _weights(lists, given), 0.0))
    share = reference_shares(lists, given)
    # Added one by one: the sum must not depend on how many groups a table has room for.
    total, distance = np.zeros(lists.lists), np.zeros(lists.lists)
    for group in parts(lists):
        total += attention[:, group]
    for group in parts(lists):
        seen = ratio_of(attention[:, group], total)
        wanted = share[:, group]
        middle = (seen + wanted) / 2.0
        distance += _bits(seen, middle) + _bits(wanted, middle)
    return PerList(np.clip(1.0 - distance / 2.0, 0.0, 1.0))


def _bits(share: FloatArray, middle: FloatArray) -> FloatArray:
    """``share * log2(share / middle)``, 0 where the share is 0, NaN where it is unknown."""
    some = share > 0
    ratio = np.divide(share, middle, out=np.ones(share.shape), where=some)
    found: FloatArray = share * log2(ratio)
    return found
