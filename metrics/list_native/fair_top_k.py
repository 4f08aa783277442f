"""FA*IR: does every prefix of the top k hold enough of each group, as a binomial test sees it?

Not here: how many of a group are enough (``binomial_test``).
"""

from collections.abc import Iterator

import numpy as np

from metrics.list_native.binomial_test import minima
from metrics.list_native.compared import compared, parts, reference_shares, sizes
from metrics.rankings import PerList, Rankings
from metrics.terms import Given
from metrics.weights import BoolArray, FloatArray, IntArray

DEEPEST = 1000
"""Places that are tested at most.

The effort grows with their square, and hardly anybody looks further down a list."""


def _minima(depth: IntArray, share: FloatArray, alpha: float) -> tuple[IntArray, IntArray]:
    """What each place of each list needs, for lists of so many places and such a share.

    Returns tables of minima, one after another, and where that of each list begins, shape (lists,):
    lists of the same depth and share have the same.  -1 where there is nothing to test.
    """
    some = (depth > 0) & (share > 0) & (share < 1)
    begin, end = np.full(len(depth), -1), 0
    tables = [np.zeros(0, dtype=np.int64)]
    for places in np.unique(depth[some]).tolist():
        these = np.flatnonzero(some & (depth == places))
        shares, which = np.unique(share[these], return_inverse=True)
        table = minima(places, shares, alpha)
        begin[these] = np.where(table[which, -1] > 0, end + which * places, -1)
        tables.append(table.reshape(-1))
        end += table.size
    return np.concatenate(tables), begin


def _tests(lists: Rankings, given: Given) -> Iterator[tuple[int, BoolArray, BoolArray]]:
    """Groups, the lists that can be tested for each, and its rows that fail: (lists,), (rows,)."""
    rows = lists.top(int(given["k"])) & compared(lists)
    rows &= lists.running(rows) <= DEEPEST
    shares = reference_shares(lists, given)
    for group in parts(lists):
        yield group, *_test(lists, given, group, rows.copy(), shares[:, group])


def _test(
    lists: Rankings, given: Given, group: int, rows: BoolArray, share: FloatArray
) -> tuple[BoolArray, BoolArray]:
    """The test for one group, of ``rows``, with the share that it should have in each list."""
    tables, begin = _minima(lists.count(rows), share, float(given["alpha"]))
    tested = begin >= 0
    rows &= lists.spread(tested)
    place = lists.running(rows)
    # Other rows need nothing, so they never fail.
    need = np.zeros(lists.rows, dtype=np.int64)
    need[rows] = tables[(lists.spread(begin) + place - 1)[rows]]
    if given["reference"] == "list":
        # The group stands behind all others at worst, and has to be too late then.
        of_group, all_rows = sizes(lists)
        least = np.maximum(place - lists.spread(all_rows - of_group[:, group]), 0)
        tested &= lists.count(least < need) > 0
    held = lists.running(lists.groups.code == group)
    return tested, held < need


def passes(lists: Rankings, given: Given) -> PerList:
    """1 where a list passes the test for a group, 0 where it fails; shape (lists, groups).

    NaN where nothing can be tested: a group that takes no part, a share of 0 or 1, or a list that
    even the worst order of its items, or of any items if it is held against a target, would pass.
    Of lists that are fair about 1 - alpha pass; more against their own mix, which leaves less room
    for chance than the model.
    """
    value = np.full(lists.group_size.shape, np.nan)
    for group, tested, failing in _tests(lists, given):
        value[:, group] = np.where(tested, lists.count(failing) == 0, np.nan)
    return PerList(value)


def first_failure(lists: Rankings, given: Given) -> PerList:
    """Rank at which a list first fails the test for any group, shape (lists,); NaN if it passes."""
    first: FloatArray = np.full(lists.lists, np.inf)
    for _, _, failing in _tests(lists, given):
        rank = np.where(failing, lists.rank, np.inf)
        first = np.minimum(first, np.minimum.reduceat(rank, lists.starts))
    return PerList(np.where(np.isfinite(first), first, np.nan))
