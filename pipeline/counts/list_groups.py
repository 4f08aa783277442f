"""Groups within lists: how many rows each has, where they stand, and what that is worth.

Not here: the tables made of it (``group_counts``, ``mix_counts``).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from metrics import PREFIX_UNIT, UNIT
from metrics.elementary import log
from metrics.fairness.prefixes import SMOOTHED_ZERO, SMOOTHING
from metrics.weights import IntArray
from pipeline.counts.dimensions import Groups
from pipeline.counts.exact_sums import whole_numbers
from pipeline.counts.prefix_terms import PrefixTerms
from pipeline.log.row_chunks import RowChunk
from pipeline.log.whole_lists import run_starts

_FEW_GROUPS = 12
"""Groups up to which looking for each is faster than sorting: its cost grows with the groups."""


@dataclass(frozen=True)
class ListGroups:
    """The groups of some lists, shape (groups of lists,), by group and then by list.

    ``place`` is the list's place in its chunk; ``own`` of its ``length`` rows are the group's.
    ``won`` of ``pairs`` mixed pairs are the group's, ``won_share`` their quotient scaled by UNIT;
    ``entropy``, ``share`` and ``divergence`` are those of NDKL, scaled by PREFIX_UNIT.
    """

    place: npt.NDArray[np.int32]
    group: IntArray
    length: IntArray
    own: IntArray
    pairs: IntArray
    won: IntArray
    won_share: IntArray
    entropy: IntArray
    share: IntArray
    divergence: IntArray


def _by_group(code: IntArray, groups: int) -> IntArray:
    """Rows in order of their group, those of one group in the order they have; shape (rows,)."""
    if groups <= _FEW_GROUPS:
        return np.concatenate([np.flatnonzero(code == group) for group in range(groups)])
    # Keys of one or two bytes are sorted without comparing them.
    return np.argsort(code, kind="stable")


def list_groups(chunk: RowChunk, groups: Groups, terms: PrefixTerms) -> ListGroups:
    """The groups of a chunk's lists.

    A row at position i is below i - 1 rows, k - 1 of its own group, so the sum of a group's
    positions gives the pairs that it wins.
    """
    code = groups.code.astype(np.min_scalar_type(len(groups.names))).take(chunk.ints["cell"])
    order = _by_group(code, len(groups.names))
    place = chunk.place.take(order)
    position = chunk.ints["position"].take(order)
    group = code.take(order)
    starts = run_starts(place, group)
    own = np.diff(starts, append=len(place))
    place = place[starts]
    length = chunk.lengths[place]
    position_sum = np.add.reduceat(position, starts, dtype=np.int64)
    won = length * own - position_sum - own * (own - 1) // 2
    pairs = own * (length - own)
    entropy, share = terms.sums(position, starts, own, length)
    cross = (share / PREFIX_UNIT + SMOOTHING) * log(own / length + SMOOTHING) - SMOOTHED_ZERO
    return ListGroups(
        place=place,
        group=group[starts].astype(np.int64),
        length=length,
        own=own,
        pairs=pairs,
        won=won,
        won_share=whole_numbers(won / np.maximum(pairs, 1), UNIT),
        entropy=entropy,
        share=share,
        # A list of one group diverges from its own mix by nothing, not by rounding.
        divergence=np.where(pairs == 0, 0, entropy - whole_numbers(cross, PREFIX_UNIT)),
    )
