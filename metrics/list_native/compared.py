"""Which rows are compared, and with what mix: shared by metrics of the groups in a list.

Rows whose group takes no part, such as the unknown one, keep their place: ranks, cut-offs and
weights count them.  Shares, prefixes and pairs are of the other rows alone, so that the shares of
the groups that take part always add up to 1.

Not here: any metric.
"""

from math import fsum

import numpy as np

from metrics.counts import COMPARED
from metrics.rankings import Rankings
from metrics.terms import Given
from metrics.weights import BoolArray, FloatArray, IntArray, ratio_of


def compared(lists: Rankings) -> BoolArray:
    """Rows whose group takes part, shape (rows,)."""
    found: BoolArray = lists.groups.takes_part[lists.groups.code]
    return found


def parts(lists: Rankings) -> tuple[int, ...]:
    """The groups that take part, as indices into ``names``."""
    return tuple(np.flatnonzero(lists.groups.takes_part).tolist())


def several_groups(lists: Rankings) -> BoolArray:
    """Lists that hold at least two groups that take part, shape (lists,).

    Any order of the others is as good as any other when a list is held against its own mix.
    """
    held = (lists.group_size > 0) & lists.groups.takes_part
    found: BoolArray = held.sum(axis=1) >= COMPARED
    return found


def sizes(lists: Rankings) -> tuple[IntArray, IntArray]:
    """Rows of each group, shape (lists, groups), and of all that take part, shape (lists,)."""
    return lists.group_size.astype(np.int64), lists.count(compared(lists))


def reference_shares(lists: Rankings, given: Given) -> FloatArray:
    """The share that each group should have, by the parameter ``reference``; shape (lists, groups).

    They add up to 1 over the groups that take part.  NaN for the other groups, in a list of fewer
    than two groups held against its own mix, and everywhere when there is no such reference.
    """
    takes_part, shape = lists.groups.takes_part, lists.group_size.shape
    if given["reference"] == "list":
        of_group, all_rows = sizes(lists)
        known = takes_part & several_groups(lists)[:, None]
        return np.where(known, ratio_of(of_group, all_rows[:, None]), np.nan)
    target = given["reference"] == "target"
    wanted = lists.groups.target if target else lists.groups.catalogue
    if wanted is None:
        return np.full(shape, np.nan)
    total = fsum(wanted[takes_part].tolist())
    shares = np.where(takes_part, wanted / total if total > 0 else np.nan, np.nan)
    return np.broadcast_to(shares, shape)
