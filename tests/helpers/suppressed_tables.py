"""Small batches, the tables that would be published of them, and somebody who solves for the rest.

The attacker knows every slice value and group there is, which tables add up to which, that counts
are whole and not negative, that every item has one group, how queries, lists and items of parts and
of the whole bound each other, and everything that is published.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
"""A count: rows, lists, queries or items of a slice, and of a group of an attribute in it; '' for
all rows."""
Sum = dict[int, float]
_SAFE = 1e-6
_MOST = 10_000


@dataclass(frozen=True)
class List:
    """A ranking: its slices, and the groups of each row, per attribute.

    Its ``query`` is one of its own, and so is each of its ``items``, unless they are said.
    """

    slices: dict[str, str]
    rows: tuple[Names, ...]
    items: Names = ()
    query: str = ""


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

    @cached_property
    def people(self) -> dict[tuple[Place, str, str], tuple[int, int]]:
        """Queries and items of each slice and of each group that is there; '' for all rows."""
        queries: dict[tuple[Place, str, str], set[str]] = {}
        items: dict[tuple[Place, str, str], set[str]] = {}
        for place in self.places:
            for number, each in enumerate(self.lists):
                if place != ALL and each.slices[place.slice] != place.slice_value:
                    continue
                for at, row in enumerate(each.rows):
                    item = each.items[at] if each.items else f"{number} {at}"
                    keys = [("", "")]
                    keys += [
                        (name, JOIN.join(row[n] for n in columns))
                        for name, columns in self.columns.items()
                    ]
                    for attribute, group in keys:
                        key = (place, attribute, group)
                        queries.setdefault(key, set()).add(each.query or str(number))
                        items.setdefault(key, set()).add(item)
        return {key: (len(found), len(items[key])) for key, found in queries.items()}

    @property
    def sizes(self) -> tuple[dict[Place, int], dict[Block, dict[str, int]]]:
        """What ``hidden`` takes."""
        return (
            {place: min(self.people[place, "", ""]) for place in self.places},
            {
                block: {
                    group: min(self.people[block.place, block.attribute, group]) for group in groups
                }
                for block, groups in self.cells.items()
            },
        )

    def published(self, out: Hidden) -> Iterator[tuple[Number, int]]:
        """Every count that is told where ``out`` is left out."""
        for place, lists in self.places.items():
            if place not in out.places:
                yield ("rows", place, "", ""), sum(len(each.rows) for each in lists)
                yield ("lists", place, "", ""), len(lists)
                yield ("queries", place, "", ""), self.people[place, "", ""][0]
        for block, groups in self.cells.items():
            if block in out.blocks:
                continue
            whats = ("rows",) if block.attribute in out.torn else ("rows", "lists", "queries")
            for group in self.groups(block.attribute):
                queries, _ = self.people.get((block.place, block.attribute, group), (0, 0))
                counts = (*groups.get(group, (0, 0)), queries)
                for what, count in zip(whats, counts, strict=False):
                    yield (what, block.place, block.attribute, group), count

    def groups(self, attribute: str) -> list[str]:
        """Groups that an attribute could have."""
        known = [sorted(self.cells[Block(*ALL, name)]) for name in attribute.split(JOIN)]
        return [JOIN.join(names) for names in product(*known)]

    def small(self, k: int) -> dict[Number, int]:
        """Every count of slices and groups of fewer than ``k`` queries or items."""
        found: dict[Number, int] = {}
        for (place, attribute, group), (queries, items) in self.people.items():
            if min(queries, items) < k:
                lists = self.places[place]
                counts = (sum(len(each.rows) for each in lists), len(lists))
                if attribute:
                    counts = self.cells[Block(*place, attribute)][group]
                for what, count in zip(
                    ("rows", "lists", "queries", "items"), (*counts, queries, items), strict=True
                ):
                    found[what, place, attribute, group] = count
        return found


class Attacker:
    """What counts can be, from what is published of ``tables``.

    Unknown are the rows of every combination of slice values and groups, published or not, and the
    lists, queries and items of each group of each slice.
    """

    def __init__(self, tables: Tables, published: Iterable[tuple[Number, int]]) -> None:
        self.tables, self.told = tables, dict(published)
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
        if what != "rows":
            return {self.lists.setdefault(number, len(self.rows) + len(self.lists)): 1.0}
        wanted = {} if place == ALL else {place.slice: place.slice_value}
        if attribute:
            wanted |= dict(zip(attribute.split(JOIN), group.split(JOIN), strict=True))
        return {
            n: 1.0
            for n, row in enumerate(self.rows)
            if all(row[name] == value for name, value in wanted.items())
        }

    def _cells(self) -> Iterator[tuple[str, str]]:
        """Attributes and their groups; and the slice itself, which has neither."""
        yield "", ""
        for attribute in self.tables.attributes:
            for group in self.tables.groups(attribute):
                yield attribute, group

    def _add_up(self) -> None:
        """What holds of lists: they add up over a slice, have rows, and hold a group."""
        for name, cell in product(self.tables.slices, self._cells()):
            parts = [place for place in self.tables.places if place.slice == name]
            for what in ("lists", "queries", "items"):
                held = [self.sum_of((what, place, *cell)) for place in parts]
                total = self.sum_of((what, ALL, *cell))
                if what == "lists":
                    self.equal.append((_plus(_minus(total), *held), 0))
                    continue
                # Slices may share some of both, and have no more than there are.
                self.below.append((_plus(total, *map(_minus, held)), 0))
                self.below += [(_plus(own, _minus(total)), 0) for own in held]
        for place in self.tables.places:
            for attribute in self.tables.attributes:
                self._hold(place, attribute)
            self._bound(place, "", "")

    def _hold(self, place: Place, attribute: str) -> None:
        """What holds of the groups of an attribute: each list, query and item has one or more."""
        groups = self.tables.groups(attribute)
        for what in ("lists", "queries", "items"):
            every = self.sum_of((what, place, "", ""))
            held = [self.sum_of((what, place, attribute, group)) for group in groups]
            one = _plus(every, *map(_minus, held))
            (self.equal if what == "items" else self.below).append((one, 0))
            self.below += [(_plus(own, _minus(every)), 0) for own in held]
        for group in groups:
            self._bound(place, attribute, group)

    def _bound(self, place: Place, attribute: str, group: str) -> None:
        """Queries are no more than lists, lists and items no more than rows."""
        rows, lists, queries, items = (
            self.sum_of((what, place, attribute, group))
            for what in ("rows", "lists", "queries", "items")
        )
        self.below += [
            (_plus(queries, _minus(lists)), 0),
            (_plus(lists, _minus(rows)), 0),
            (_plus(items, _minus(rows)), 0),
        ]
        # An item stands in a list once, so that as many lists as there are hold all its rows.
        if most := self.told.get(("lists", place, "", "")):
            self.below.append((_plus(rows, {n: -most * value for n, value in items.items()}), 0))

    def _read(self) -> None:
        """What is published."""
        self.equal += [(self.sum_of(number), count) for number, count in self.told.items()]

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


@st.composite
def crowds(draw: st.DrawFn, *, slices: int, intersection: bool) -> Tables:
    """The same of few items, which stand in many lists, and of queries of several lists."""
    people = [(gender, region, n) for gender in "FM" for region in "xyz" for n in range(3)]
    names = tuple(f"slice{n}" for n in range(slices))
    found = draw(
        st.lists(
            st.tuples(
                st.fixed_dictionaries({name: st.sampled_from("abc") for name in names}),
                st.lists(st.sampled_from(people), min_size=1, max_size=3, unique=True),
                st.integers(0, 20),
            ),
            min_size=1,
            max_size=30,
        )
    )
    lists = tuple(
        List(
            parts,
            tuple((gender, region) for gender, region, _ in shown),
            tuple("".join(map(str, each)) for each in shown),
            f"q{query}",
        )
        for parts, shown, query in found
    )
    return Tables(lists, names, ("gender", "region", *(["gender*region"] if intersection else [])))
