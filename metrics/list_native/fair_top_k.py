"""FA*IR: does every prefix of the top k hold enough of each group, as a binomial test sees it?"""

import numpy as np

from metrics.list_native.binomial_test import minima
from metrics.list_native.compared import compared, parts, reference_shares, sizes
from metrics.rankings import PerList, Rankings
from metrics.terms import Given
from metrics.weights import BoolArray, FloatArray, IntArray

DEEPEST = 1000
"""Places that are tested at most; the effort grows with their square."""


def _tests(lists: Rankings, given: Given, group: int) -> tuple[BoolArray, BoolArray]:
    """Lists that can be tested for a group, shape (lists,), and rows that fail, shape (rows,)."""
    rows = lists.top(int(given["k"])) & compared(lists)
    rows &= lists.running(rows) <= DEEPEST
    depth = lists.count(rows)
    share = reference_shares(lists, given)[:, group]
    tested = (depth > 0) & (share > 0) & (share < 1)
    # What each place needs depends on how many there are and on the share: a table for each pair,
    # one after another, and for each list where its table begins.
    tables: list[IntArray] = []
    begin, end = np.zeros(lists.lists, dtype=np.int64), 0
    for places in np.unique(depth[tested]).tolist():
        these = np.flatnonzero(tested & (depth == places))
        shares, which = np.unique(share[these], return_inverse=True)
        table = minima(places, shares, float(given["alpha"]))
        tested[these] = table[which, -1] > 0
        begin[these] = end + which * places
        tables.append(table.reshape(-1))
        end += table.size
    if not tables:
        return tested, np.zeros(lists.rows, dtype=np.bool_)
    rows &= tested[lists.list_of]
    place = lists.running(rows)
    need = np.concatenate(tables)[np.where(rows, lists.spread(begin) + place - 1, 0)]
    if given["reference"] == "list":
        # The group stands behind all others at worst, and has to be too late then.
        others = sizes(lists)[1] - sizes(lists)[0][:, group]
        tested &= lists.count(rows & (place - lists.spread(others) < need) & (need > 0)) > 0
    held = lists.running(lists.groups.code == group)
    return tested, rows & (held < need)


def passes(lists: Rankings, given: Given) -> PerList:
    """1 where a list passes the test for a group, 0 where it fails; shape (lists, groups).

    NaN where nothing can be tested: a group that takes no part, a share of 0 or 1, or a list that
    even the worst order of its items, or of any items if it is held against a target, would pass.
    Of lists that are fair about 1 - alpha pass; more against their own mix, which leaves less room
    for chance than the model.
    """
    value = np.full(lists.group_size.shape, np.nan)
    for group in parts(lists):
        tested, failing = _tests(lists, given, group)
        value[:, group] = np.where(tested, lists.count(failing) == 0, np.nan)
    return PerList(value)


def first_failure(lists: Rankings, given: Given) -> PerList:
    """Rank at which a list first fails the test for any group, shape (lists,); NaN if it passes."""
    first: FloatArray = np.full(lists.lists, np.inf)
    for group in parts(lists):
        _, failing = _tests(lists, given, group)
        rank = np.where(failing, lists.rank, np.inf)
        first = np.minimum(first, np.minimum.reduceat(rank, lists.starts))
    return PerList(np.where(np.isfinite(first), first, np.nan))
