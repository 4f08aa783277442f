"""The log of one day of biased rankings: which lists there are, and what is logged of each row.

As in ``marketplace``, every quantity has a stream of random numbers of its own that is read list
after list: a list depends on what was asked for, its day and its number alone.

Not here: in which order groups and items stand (``biased_orders``).
"""

from collections.abc import Iterator, Mapping
from datetime import date

import numpy as np
import pyarrow

from pipeline.synthetic.biased import BiasedRankings
from pipeline.synthetic.biased_orders import drawn_groups, mixes
from pipeline.synthetic.biased_request import shares_of
from pipeline.synthetic.files import numbered, plant_faults
from pipeline.synthetic.queries import Floats, Integers

CHUNK_ROWS = 131_072
"""Candidates that are held in memory at a time, as far as one list has fewer: 1 MB an array."""
PART_ROWS = 5_000_000
"""Rows in a file, at most, as far as one list has fewer, so that a large day can be read by several
readers."""
_MOST_LISTS = 10**8
"""List numbers are padded for so many a day: more than anybody generates, in eight digits."""


class BiasedDay:
    """The lists of one day, drawn in order and never all at once."""

    def __init__(
        self,
        rankings: BiasedRankings,
        day: date,
        *,
        unfair_phi: float | None = None,
        only: Mapping[str, str] | None = None,
        faulty: Integers | None = None,
    ) -> None:
        self.rankings, self.day = rankings, day
        self.unfair_phi, self.only = unfair_phi, only or {}
        self.faulty = np.empty(0, np.int64) if faulty is None else faulty
        root = np.random.SeedSequence(rankings.seed, spawn_key=(3, day.toordinal()))
        own, slices = root.spawn(2)
        (self.queries, self.lengths, self.mixes, self.coins, self.lots,
         self.noise, self.clicks) = map(np.random.default_rng, own.spawn(7))  # fmt: skip
        # A slice more must not change what else is drawn.
        self.slices = [np.random.default_rng(each) for each in slices.spawn(len(rankings.slices))]

    def parts(self, lists: int, chunk_lists: int | None) -> Iterator[Iterator[pyarrow.Table]]:
        """The tables of each file in turn, to be used up in this order, as the streams are."""
        part = max(1, PART_ROWS // self.rankings.lengths[1])
        for begin in range(0, lists, part):
            end = min(begin + part, lists)
            yield (self.next_lists(*few)[0] for few in self.chunks(begin, end, chunk_lists))

    def chunks(self, begin: int, end: int, lists: int | None) -> Iterator[tuple[int, int]]:
        """Numbers from ``begin`` on, cut before ``end``, for so many lists at a time."""
        step = lists or max(1, CHUNK_ROWS // self.rankings.depth)
        return ((first, min(first + step, end)) for first in range(begin, end, step))

    def next_lists(self, first: int, end: int) -> tuple[pyarrow.Table, Integers]:
        """The rows of the next lists, numbered ``first`` to ``end - 1``, and their items."""
        rankings, pool = self.rankings, self.rankings.pool
        lists = end - first
        query = np.searchsorted(pool.asked, self.queries.random(lists), side="right")
        sliced = {
            name: _drawn(shares_of(rankings.slices[name]), stream.random(lists))
            for name, stream in zip(rankings.slices, self.slices, strict=True)
        }
        fewest, most = rankings.lengths
        length = fewest + (self.lengths.random(lists) * (most - fewest + 1)).astype(np.int64)
        item, group, merit = self._ranked(query, length, self._phi(lists, sliced))

        row_list = np.repeat(np.arange(lists), length)
        ends = np.cumsum(length)
        rank = np.arange(1, len(item) + 1) - np.repeat(ends - length, length)
        relevance = rankings.judge.of(merit, group)
        examined = rankings.examined_at[rank - 1]
        attractive = rankings.click_noise + (1 - rankings.click_noise) * relevance
        click = self.clicks.random(len(rank)) < examined * attractive
        plant_faults(first, self.faulty, ends, rank, relevance, item)

        number = numbered(f"{self.day.isoformat()}-", np.arange(first, end) + 1, _MOST_LISTS)
        of_list = pyarrow.array(row_list)
        columns = {
            "list_id": number.take(of_list),
            "query_id": rankings.query_ids.take(pyarrow.array(query[row_list])),
            "item_id": rankings.item_ids.take(pyarrow.array(item)),
            "rank": pyarrow.array(rank, pyarrow.int32()),
            "relevance": pyarrow.array(relevance),
            "click": pyarrow.array(click.astype(np.int8)),
            "propensity": pyarrow.array(examined),
        }
        for name, value in sliced.items():
            names = pyarrow.array(list(rankings.slices[name]), pyarrow.string())
            columns[name] = names.take(pyarrow.array(value[row_list]))
        schema = rankings.schema
        return pyarrow.table([columns[name] for name in schema.names], schema=schema), item

    def _phi(self, lists: int, sliced: Mapping[str, Integers]) -> Floats:
        """The phi of each list."""
        if self.unfair_phi is None:
            return np.full(lists, self.rankings.phi)
        meant = np.ones(lists, np.bool_)
        for name, value in self.only.items():
            meant &= sliced[name] == list(self.rankings.slices[name]).index(value)
        return np.where(meant, self.unfair_phi, self.rankings.phi)

    def _ranked(
        self, query: Integers, length: Integers, phi: Floats
    ) -> tuple[Integers, Integers, Floats]:
        """Items, groups and merits of the rows, list after list and top down."""
        rankings, pool = self.rankings, self.rankings.pool
        lists, most, groups = len(query), rankings.lengths[1], len(pool.counts)
        sizes = length if rankings.candidates is None else np.full(lists, rankings.candidates)
        counts = mixes(pool.counts, sizes, self.mixes.random(lists))

        # One cell is the candidates of one group in one list; cells follow each other.
        in_cell = counts.ravel()
        begins = (np.cumsum(in_cell) - in_cell).reshape(lists, groups)
        cell = np.repeat(np.arange(lists * groups), in_cell)
        in_list, group = np.divmod(cell, groups)
        nth = np.arange(len(cell)) - begins.ravel()[cell]
        item = pool.items(query[in_list], group, nth)
        merit = pool.merit(query[in_list], item)
        chance = self.noise.standard_normal(len(cell))
        rho = rankings.correlation
        best_first = np.lexsort((-(rho * merit + (1 - rho * rho) ** 0.5 * chance), cell))

        shape = (lists, most)
        place_group, above = drawn_groups(
            counts, phi, self.coins.random(shape), self.lots.random(shape)
        )
        shown = np.arange(most) < length[:, None]
        group = place_group[shown]
        row_list = np.repeat(np.arange(lists), length)
        chosen = best_first[begins[row_list, group] + above[shown]]
        return item[chosen], group, merit[chosen]


def _drawn(shares: Mapping[str, float], uniform: Floats) -> Integers:
    """For each number in [0, 1), which entry of ``shares`` it falls on."""
    weights = np.cumsum(list(shares.values()))
    return np.searchsorted(weights[:-1] / weights[-1], uniform, side="right")
