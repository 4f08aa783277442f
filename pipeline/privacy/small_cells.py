"""Which numbers are about too few: small cells, and others that would give them away.

Not here: leaving them out of tables and texts (``suppression``).

A *cell* is a group of an attribute in a slice of a batch; a *block* is all groups of an attribute
there, published as a whole or not at all.  The size of a cell is how many queries it rests on; its
lists and rows are never fewer.  Rows without a group are no group.

Blocks of the values of a slice add up to the block of the whole batch, groups add up to the slice,
intersections to their attributes.  So what is left out together must not be one small cell, and:

1.  A slice value with fewer than k queries is left out altogether; so is a batch.
2.  A block with a cell of 1 to k-1 queries is left out; where it is that of the whole batch, the
    attribute is left out in every slice.
3.  Every group of a block that is left out must be hidden among k or more queries: where no other
    block that is left out holds as many of it, the smallest one that does is left out too; where
    there is none, every value of the slice is.  The same holds for slice values of rule 1.
4.  Intersections are published where none of them holds a small cell, in the batch or in a slice,
    and nothing of the attributes that they join is left out; otherwise none of them is.

5.  Of the groups of an attribute of which anything is left out, only rows are told: rows and
    lists together say more than either.

The rules are those of cell suppression, on whole blocks: primary and complementary suppression,
Hundepool et al. 2012, Statistical Disclosure Control, chapter 4.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from metrics import UNKNOWN, WHOLE, Reason
from pipeline.settings.labels import JOIN

SUPPRESSED = str(Reason.SUPPRESSED)
"""Why a value is null that is not told."""


class Place(NamedTuple):
    """A slice of a batch, or the whole of it."""

    slice: str
    slice_value: str


class Block(NamedTuple):
    """All groups of an attribute in a slice of a batch."""

    slice: str
    slice_value: str
    attribute: str

    @property
    def place(self) -> Place:
        """The slice."""
        return Place(self.slice, self.slice_value)


Key = TypeVar("Key", Place, Block)

ALL = Place(WHOLE, WHOLE)
Sizes = Mapping[str, int]
"""Queries that each group of a block rests on."""


@dataclass(frozen=True)
class Hidden:
    """What is left out of one batch: slices with all that is in them, and blocks.

    Blocks of slices that are left out are among the blocks.
    """

    places: frozenset[Place] = frozenset()
    blocks: frozenset[Block] = frozenset()

    @property
    def torn(self) -> set[str]:
        """Attributes of which something is left out."""
        return {block.attribute for block in self.blocks}


def hidden(places: Mapping[Place, int], blocks: Mapping[Block, Sizes], k: int) -> Hidden:
    """What of one batch is not published, by the rules of this module.

    ``places`` has the queries of each slice value and of the whole batch; ``k`` is the least that
    a cell rests on, and up to 1 nothing is left out.

    >>> places = {ALL: 90, Place("device", "tv"): 30, Place("device", "pc"): 60}
    >>> tv, pc, every = (Block(*place, "gender") for place in (*list(places)[1:], ALL))
    >>> blocks = {every: {"F": 42, "M": 85}, tv: {"F": 2, "M": 28}, pc: {"F": 40, "M": 57}}
    >>> found = hidden(places, blocks, 10)
    >>> sorted(block.slice_value for block in found.blocks), found.places
    (['pc', 'tv'], frozenset())
    """
    if k <= 1:
        return Hidden()
    if _is_small(places.get(ALL, 0), k):
        return Hidden(frozenset(places), frozenset(blocks))
    sizes_by_block = {
        block: {name: size for name, size in sizes.items() if name != UNKNOWN}
        for block, sizes in blocks.items()
    }
    out = frozenset(_hidden_places(places, k))
    left_out = {block for block in sizes_by_block if block.place in out}
    attributes = sorted({block.attribute for block in sizes_by_block})
    joint = {name for name in attributes if JOIN in name}
    for attribute in attributes:
        if attribute not in joint:
            of_attribute = {
                block: sizes
                for block, sizes in sizes_by_block.items()
                if block.attribute == attribute
            }
            left_out |= _hidden_blocks(of_attribute, left_out, k)
    return Hidden(
        out, frozenset(left_out | _hidden_intersections(sizes_by_block, left_out, joint, k))
    )


def _is_small(size: int, k: int) -> bool:
    return 0 < size < k


def _hidden_places(places: Mapping[Place, int], k: int) -> set[Place]:
    """Slice values that are too small, and those that hide them."""
    hidden_places: set[Place] = set()
    for name in {place.slice for place in places} - {WHOLE}:
        of_slice = {place: {"": size} for place, size in places.items() if place.slice == name}
        hidden_places |= _with_cover(of_slice, set(), k)
    return hidden_places


def _hidden_blocks(own: Mapping[Block, Sizes], before: set[Block], k: int) -> set[Block]:
    """Blocks of one attribute that are left out; ``before`` are some that are in any case."""
    for block, sizes in own.items():
        if block.place == ALL and any(_is_small(size, k) for size in sizes.values()):
            return set(own)
    hidden_blocks: set[Block] = set()
    for name in {block.slice for block in own} - {WHOLE}:
        of_slice = {block: sizes for block, sizes in own.items() if block.slice == name}
        hidden_blocks |= _with_cover(of_slice, before & of_slice.keys(), k)
    return hidden_blocks


def _with_cover(own: Mapping[Key, Sizes], before: Iterable[Key], k: int) -> set[Key]:
    """Of what adds up to a whole, the keys with a small cell and the keys that hide these."""
    out = {key for key, sizes in own.items() if any(_is_small(n, k) for n in sizes.values())}
    out.update(before)
    for name in sorted({name for key in out for name, size in own[key].items() if size}):
        if any(own[key].get(name, 0) >= k for key in out):
            continue
        covers = [key for key in own.keys() - out if own[key].get(name, 0) >= k]
        if not covers:
            return set(own)
        out.add(min(covers, key=lambda key: (sum(own[key].values()), key)))
    return out


def _hidden_intersections(
    known: Mapping[Block, Sizes], left_out: set[Block], joint: set[str], k: int
) -> set[Block]:
    """All blocks of intersections, or none."""
    joined = {part for name in joint for part in name.split(JOIN)}
    own = {block for block in known if block.attribute in joint}
    small = any(_is_small(size, k) for block in own for size in known[block].values())
    torn = any(block.attribute in joined for block in left_out) or bool(own & left_out)
    return own if small or torn else set()
