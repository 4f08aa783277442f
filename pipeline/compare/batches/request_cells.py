"""Which cells answer why a score moved: the finest in which both batches have most of their lists.

Not here: reading which requests there were (``requests``), and scores of the cells (``partition``).

Mix and treatment by one column say nothing of another: where only the devices of requests changed,
every market is suddenly answered otherwise.  So a change is divided by all that is known of a
request at once.

1.  By query and all slice columns, where at least ``LARGE`` of the lists of either batch have lists
    of the same query and slice values in the other one.
2.  Otherwise by all slice columns together, under the same condition.
3.  Otherwise by the single slice column whose mix is furthest from nothing, in standard errors.

Lists without their like in the other batch are compared with the other lists of their slice values
that lack theirs, and where one batch has hardly any of those, with those of the rarest queries; or
else with all that lack theirs.  Only lists with a slice value that the other batch has nowhere
count as mix.
"""

from dataclasses import dataclass

import numpy as np

from metrics.weights import BoolArray, FloatArray, IntArray

LARGE = 0.8
"""Share of lists whose like must be in the other batch.

Of the others, nobody knows how requests of their kind were answered."""
MOST_CELLS = 20_000
"""Cells that are told apart, those with most lists: more take more memory and time."""


@dataclass(frozen=True)
class Requests:
    """Kinds of requests: no two have the same slice values, and the same query where it is known.

    Columns of ``slices`` are codes of values, shape (kinds, columns); ``lists`` are those of A and
    of B, shape (2, kinds).
    """

    slices: IntArray
    lists: FloatArray


@dataclass(frozen=True)
class Cut:
    """Cells of requests: ``cell`` of each kind, shape (kinds,), of ``count`` cells.

    ``shared`` are the shares of the comparable lists of A and of B that have their like.
    """

    cell: IntArray
    count: int
    shared: tuple[float, float]

    @property
    def is_enough(self) -> bool:
        """Whether most lists of both have their like."""
        return min(self.shared) >= LARGE


def by_query(requests: Requests, most: int = MOST_CELLS) -> Cut:
    """Cells by query and all slices."""
    comparable, joint = _comparable(requests), _joint(requests)
    both = comparable & (requests.lists > 0).all(axis=0)
    order = np.argsort(-requests.lists.sum(axis=0), kind="stable")
    own = np.zeros(len(both), dtype=np.bool_)
    own[order[both[order]][:most]] = True
    return _cut(requests, joint, comparable, own, np.arange(len(own)))


def by_slices(requests: Requests) -> Cut:
    """Cells by all slices together."""
    comparable, joint = _comparable(requests), _joint(requests)
    own = comparable & _in_both(requests, joint, comparable)
    return _cut(requests, joint, comparable, own, joint)


def _joint(requests: Requests) -> IntArray:
    """A code for each combination of slice values, shape (kinds,)."""
    if not requests.slices.shape[1]:
        return np.zeros(len(requests.slices), dtype=np.int64)
    _, found = np.unique(requests.slices, axis=0, return_inverse=True)
    return np.asarray(found.reshape(-1), dtype=np.int64)


def _in_both(requests: Requests, code: IntArray, some: BoolArray) -> BoolArray:
    """Whether both batches have lists of the code of each kind, among ``some`` kinds."""
    if not len(code):
        return np.zeros(0, dtype=np.bool_)
    sums = [np.bincount(code, weights=each * some) for each in requests.lists]
    found: BoolArray = ((sums[0] > 0) & (sums[1] > 0))[code]
    return found


def _comparable(requests: Requests) -> BoolArray:
    """Kinds of which both batches have every slice value, if not together."""
    every = np.ones(len(requests.slices), dtype=np.bool_)
    found = every.copy()
    for column in requests.slices.T:
        found &= _in_both(requests, column, every)
    return found


def _company(lists: FloatArray, joint: IntArray, rest: BoolArray, own: BoolArray) -> BoolArray:
    """Which of their ``own`` cells join the ``rest`` of their slice values, shape (kinds,).

    A rest of one batch alone, or nearly, has nothing to be compared with but lists of other slices.
    So the rarest kinds join it, until both batches have at least half as many lists as the other.
    """
    found = np.zeros(len(own), dtype=np.bool_)
    size = int(joint.max(initial=-1)) + 1
    sums: FloatArray = np.array(
        [np.bincount(joint, weights=each * rest, minlength=size) for each in lists], dtype=float
    )
    for at in np.argsort(lists.sum(axis=0), kind="stable"):
        code = joint[at]
        if own[at] and 2 * sums[:, code].min() < sums[:, code].max():
            found[at] = True
            sums[:, code] = sums[:, code] + lists[:, at]
    return found


def _cut(
    requests: Requests, joint: IntArray, comparable: BoolArray, own: BoolArray, code: IntArray
) -> Cut:
    size = len(own) + 1
    before, after = (
        float(each[own].sum() / total) if (total := each[comparable].sum()) else 0.0
        for each in requests.lists
    )
    own = own & ~_company(requests.lists, joint, comparable & ~own, own)
    rest = comparable & ~own
    alike = rest & _in_both(requests, joint, rest)
    label = np.where(own, code, np.where(alike, size + joint, 2 * size))
    label = np.where(comparable, label, 3 * size + joint)
    names, cell = np.unique(label, return_inverse=True)
    return Cut(np.asarray(cell.reshape(-1), dtype=np.int64), len(names), (before, after))
