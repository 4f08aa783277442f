"""Small batches, the tables that would be published of them, and somebody who solves for the rest.

The attacker knows every slice value and group there is, which tables add up to which, that counts
are whole and not negative, and everything that is published.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_array

from pipeline.privacy.small_cells import ALL, Block, Hidden, Place
from pipeline.settings.labels import JOIN

Names = tuple[str, ...]
Number = tuple[str, Place, str, str]
"""A count: rows or lists, of a slice, and of a group of an attribute in it; '' for all rows."""
Sum = dict[int, float]
_SAFE = 1e-6
_MOST = 10_000


@dataclass(frozen=True)
class List:
    """A ranking of a query of its own: its slices, and the groups of each row, per attribute."""

    slices: dict[str, str]
    rows: tuple[Names, ...]


@dataclass(frozen=True)
class Tables:
    """Everything that could be published of some lists."""

    lists: tuple[List, ...]
    slices: Names
    attributes: Names

    @cached_property
    def places(self) -> dict[Place, list[List]]:
        found: dict[Place, list[List]] = {ALL: list(self.lists)}
        for each in self.lists:
            for name, value in each.slices.items():
                found.setdefault(Place(name, value), []).append(each)
        return found

    @property
    def columns(self) -> dict[str, tuple[int, ...]]:
        """Attributes, intersections last, and which values of a row each is made of."""
        single = [name for name in self.attributes if JOIN not in name]
        return {
            name: tuple(single.index(part) for part in name.split(JOIN)) for name in self.attributes
        }

    @cached_property
    def cells(self) -> dict[Block, dict[str, tuple[int, int]]]:
        """Rows and lists of each group that is there."""
        found: dict[Block, dict[str, tuple[int, int]]] = {}
        for place, lists in self.places.items():
            for name, at in self.columns.items():
                block = found.setdefault(Block(*place, name), {})
                for each in lists:
                    groups = [JOIN.join(row[n] for n in at) for row in each.rows]
                    for group in set(groups):
                        rows, held = block.get(group, (0, 0))
                        block[group] = rows + groups.count(group), held + 1
        return found

    @property
    def sizes(self) -> tuple[dict[Place, int], dict[Block, dict[str, int]]]:
        """What ``hidden`` takes."""
        return (
            {place: len(lists) for place, lists in self.places.items()},
            {
                block: {group: lists for group, (_, lists) in groups.items()}
                for block, groups in self.cells.items()
            },
        )


class Attacker:
    """What counts can be, from what is published of ``tables``.

    Unknown are the rows of every combination of slice values and groups, published or not, and the
    lists that hold each group of each slice.
    """

    def __init__(self, tables: Tables, out: Hidden) -> None:
        self.tables, self.out = tables, out
        single = [name for name in tables.attributes if JOIN not in name]
        kinds = [
            *(
                sorted({place.slice_value for place in tables.places if place.slice == name})
                for name in tables.slices
            ),
            *(sorted(tables.cells[Block(*ALL, name)]) for name in single),
        ]
        names = (*tables.slices, *single)
        self.rows = [dict(zip(names, each, strict=True)) for each in product(*kinds)]
        self.lists: dict[Number, int] = {}
        self.equal: list[tuple[Sum, float]] = []
        self.below: list[tuple[Sum, float]] = []
        self._add_up()
        self._read()

    def sum_of(self, number: Number) -> Sum:
        """A count as a sum of unknowns."""
        what, place, attribute, group = number
        if what == "lists":
            return {self.lists.setdefault(number, len(self.rows) + len(self.lists)): 1.0}
        wanted = {} if place == ALL else {place.slice: place.slice_value}
        if attribute:
            wanted |= dict(zip(attribute.split(JOIN), group.split(JOIN), strict=True))
        return {
            n: 1.0
            for n, row in enumerate(self.rows)
            if all(row[name] == value for name, value in wanted.items())
        }

    def _groups(self, attribute: str) -> list[str]:
        known = [sorted(self.tables.cells[Block(*ALL, name)]) for name in attribute.split(JOIN)]
        return [JOIN.join(names) for names in product(*known)]

    def _cells(self) -> Iterator[tuple[str, str]]:
        """Attributes and their groups; and the slice itself, which has neither."""
        yield "", ""
        for attribute in self.tables.attributes:
            for group in self._groups(attribute):
                yield attribute, group

    def _add_up(self) -> None:
        """What holds of lists: they add up over a slice, have rows, and hold a group."""
        for name, cell in product(self.tables.slices, self._cells()):
            parts = [place for place in self.tables.places if place.slice == name]
            total = _minus(self.sum_of(("lists", ALL, *cell)))
            self.equal.append((_plus(total, *(self.sum_of(("lists", p, *cell)) for p in parts)), 0))
        for place in self.tables.places:
            every = self.sum_of(("lists", place, "", ""))
            for attribute in self.tables.attributes:
                keys = [(place, attribute, group) for group in self._groups(attribute)]
                held = [self.sum_of(("lists", *key)) for key in keys]
                self.below.append((_plus(every, *map(_minus, held)), 0))
                for key, own in zip(keys, held, strict=True):
                    self.below.append((_plus(own, _minus(every)), 0))
                    self.below.append((_plus(own, _minus(self.sum_of(("rows", *key)))), 0))

    def _read(self) -> None:
        """What is published."""
        for place, lists in self.tables.places.items():
            if place not in self.out.places:
                rows = sum(len(each.rows) for each in lists)
                self.equal.append((self.sum_of(("rows", place, "", "")), rows))
                self.equal.append((self.sum_of(("lists", place, "", "")), len(lists)))
        for block, groups in self.tables.cells.items():
            if block in self.out.blocks:
                continue
            whats = ("rows",) if block.attribute in self.out.torn else ("rows", "lists")
            for group in self._groups(block.attribute):
                for what, count in zip(whats, groups.get(group, (0, 0)), strict=False):
                    number = (what, block.place, block.attribute, group)
                    self.equal.append((self.sum_of(number), count))

    def pinned(self, cells: Mapping[Number, int]) -> list[Number]:
        """Those of some counts, given with what they are, that can be nothing else.

        Counts that fit are a convex set, and the true ones fit: whatever else a count can be, if it
        is one or more away, leaves two whole numbers at least.  One guess frees many counts.
        """
        left = dict(cells)
        place = {cell: n for n, cell in enumerate(cells)}
        sums = self._matrix([(self.sum_of(cell), 0) for cell in cells]).toarray()
        system = {
            "A_ub": self._matrix(self.below),
            "b_ub": [limit for _, limit in self.below],
            "A_eq": self._matrix(self.equal),
            "b_eq": [value for _, value in self.equal],
        }
        for sign in (1.0, -1.0):
            goals = [list(left), *([cell] for cell in left)]
            for goal in goals:
                if not any(cell in left for cell in goal):
                    continue
                wanted = sign * sums[[place[cell] for cell in goal]].sum(axis=0)
                found = linprog(wanted, **system, bounds=(0, _MOST), method="highs")
                assert found.status == 0, found.message
                left = {
                    cell: count
                    for cell, count in left.items()
                    if abs(sums[place[cell]] @ found.x - count) < 1 - _SAFE
                }
        return list(left)

    def _matrix(self, rows: Sequence[tuple[Sum, float]]) -> csr_array:
        at = [(n, column) for n, (row, _) in enumerate(rows) for column in row]
        values = [value for row, _ in rows for value in row.values()]
        shape = (len(rows), len(self.rows) + len(self.lists))
        return csr_array((values, tuple(zip(*at, strict=True))), shape=shape)


def _minus(one: Sum) -> Sum:
    return {n: -value for n, value in one.items()}


def _plus(*sums: Sum) -> Sum:
    return {n: value for each in sums for n, value in each.items()}


@st.composite
def batches(draw: st.DrawFn, *, slices: int, intersection: bool) -> Tables:
    """A few lists; with attributes of two and three groups, and slices of up to three values."""
    groups = [("F", "M"), ("x", "y", "z")]
    names = tuple(f"slice{n}" for n in range(slices))
    row = st.tuples(*(st.sampled_from(each) for each in groups))
    lists = draw(
        st.lists(
            st.builds(
                List,
                st.fixed_dictionaries({name: st.sampled_from("abc") for name in names}),
                st.lists(row, min_size=1, max_size=3).map(tuple),
            ),
            min_size=1,
            max_size=30,
        )
    )
    attributes = ("gender", "region", *(["gender*region"] if intersection else []))
    return Tables(tuple(lists), names, attributes)
