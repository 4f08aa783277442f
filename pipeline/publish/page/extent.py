"""How much of a history a page can hold, so that it stays one that people can open.

A month of a few slices is shown whole.  Years of many slices are not: whole batches go back
further than slices, and scores further than the values of groups.

Not here: selecting it (``reading``).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

MOST_POINTS = 90_000
"""Values of series, groups included, that a page holds: about 3 MB of it, as they travel whole."""


class Size(NamedTuple):
    """How large a history is: batches to the newest scored one, slices beside the whole, series."""

    batches: int
    slices: int
    scores: int
    groups: int


@dataclass(frozen=True)
class Extent:
    """How many batches back a page goes, for what; None is all of them.

    ``groups`` are values of groups.  ``slices`` is how many slices are shown.
    """

    whole: int | None = None
    whole_groups: int | None = None
    slice: int | None = None
    slice_groups: int | None = None
    slices: int | None = None

    def points(self, size: Size) -> int:
        """How many values that is, of a history of this size."""

        def back(limit: int | None) -> int:
            return size.batches if limit is None else min(limit, size.batches)

        slices = size.slices if self.slices is None else min(self.slices, size.slices)
        of_whole_batch = back(self.whole) * size.scores + back(self.whole_groups) * size.groups
        of_a_slice = back(self.slice) * size.scores + back(self.slice_groups) * size.groups
        return of_whole_batch + slices * of_a_slice


def _candidates() -> Iterator[Extent]:
    """From everything to very little."""
    yield Extent()
    yield Extent(None, 366, 366, 92)
    yield Extent(None, 184, 184, 31)
    yield Extent(None, 92, 92, 31)
    yield Extent(1096, 92, 62, 14)
    yield Extent(1096, 62, 62, 7)
    yield Extent(1096, 31, 31, 1)
    yield Extent(366, 31, 31, 1)
    for slices in (200, 100, 40, 20, 10):
        yield Extent(366, 31, 31, 1, slices)
    yield Extent(92, 14, 14, 0, 10)


def fitting(size: Size, most: int = MOST_POINTS) -> Extent:
    """The largest extent whose values a page can hold; the smallest where none fits.

    >>> fitting(Size(batches=30, slices=6, scores=40, groups=80)) == Extent()
    True
    """
    *larger, smallest = _candidates()
    return next((each for each in larger if each.points(size) <= most), smallest)
