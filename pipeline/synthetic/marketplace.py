"""Synthetic ranking logs of a marketplace, with three incidents an audit should notice.

Here: who sells, who asks, how a ranker answers, and how the answer is logged.  Not here: files
(``files``), and how often a query is asked (``queries``).  Every number is drawn from a stream of
its own, list after list, so a day depends on the seed, its date and the number of items only: not
on the other days, nor on how many lists are held at a time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow

from pipeline.synthetic.files import (
    CannotGenerate,
    DayFiles,
    WrittenLogs,
    calendar_of,
    calendar_problems,
    faulty_lists,
    least_problems,
    misplaced,
    numbered,
    plant_faults,
    refuse_strangers,
    write_logs,
)
from pipeline.synthetic.queries import Floats, Integers, asked_between, queries_for

SHORTEST, LONGEST = 8, 30
"""Items in a list, about a page of a small and of a large screen; every length between is as
likely."""
CHUNK_LISTS = 8192
"""Lists held in memory at a time, about 150,000 rows: one row group of the file."""
PART_LISTS = 250_000
"""Lists in a file, so that a large day can be read by several readers."""

GENDERS = {"F": 0.42, "M": 0.57, None: 0.01}
REGIONS = {"north": 0.40, "south": 0.30, "east": 0.18, "west": 0.12}
DEVICES = {"mobile": 0.60, "desktop": 0.32, "tablet": 0.08}
MARKETS = {"de": 0.45, "fr": 0.33, "us": 0.22}

DEMOTED_GENDER, HARD_MARKET, HARD_DEVICE = "F", "de", "mobile"
HARD_DEMOTION, MILD_DEMOTION = 0.90, 0.25
"""What the unfair ranker takes off a score; merits spread by about 0.25 around 0.5."""
RANKER_NOISE = 0.20
"""About the spread of merits: a better item usually wins, and the same query seldom gets the same
list."""

RELEVANT_FROM = 0.5
"""Merit from which on an item is judged relevant, half of them: every metric has a value then, also
those that know only relevant or not."""

LOG_SCHEMA = pyarrow.schema(
    {
        "list_id": pyarrow.string(),
        "query_id": pyarrow.string(),
        "item_id": pyarrow.string(),
        "rank": pyarrow.int32(),
        "relevance": pyarrow.float64(),
        "click": pyarrow.int8(),
        "device": pyarrow.string(),
        "market": pyarrow.string(),
    }
)
ITEM_SCHEMA = pyarrow.schema(dict.fromkeys(("item_id", "gender", "region"), pyarrow.string()))

_CANDIDATES = 60
"""Items that a query chooses from: twice the longest list, so that what is shown is a choice."""
_DAYS_FOR_INCIDENTS = 8
"""Days from which on there are incidents: with fewer, hardly a quiet day is left
to compare them with."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Incidents:
    """Days on which something is wrong; None where nothing of the kind happens.

    ``unfair``: the ranker demotes women, most of all in one market on mobiles.  ``broken``: a few
    lists hold rows that no ranking can have.  ``missing``: no log was delivered.
    """

    unfair: date | None = None
    broken: date | None = None
    missing: date | None = None

    @classmethod
    def spread(cls, start: date, days: int) -> "Incidents":
        """One of each, in the same proportion for any number of days; none in a short period.

        >>> Incidents.spread(date(2026, 1, 1), 30).broken
        datetime.date(2026, 1, 12)
        """
        if days < _DAYS_FOR_INCIDENTS:
            return cls()
        unfair, broken, missing = (start + timedelta(days * nth // 30 - 1) for nth in (19, 12, 24))
        return cls(unfair, broken, missing)

    def dates(self) -> dict[str, date]:
        """The incidents that happen, by name."""
        every = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: day for name, day in every.items() if day is not None}


@dataclass(frozen=True)
class GeneratedLogs(WrittenLogs):
    """What was written, and what is wrong in it."""

    incidents: Incidents


@dataclass(frozen=True)
class Market:
    """Everything that stays the same from day to day.

    ``candidates`` and ``merits`` have the shape (queries, candidates): the items that can answer
    a query, and how well each does.  A ranker tells apart two items that a judge would both call
    relevant.
    """

    item_ids: pyarrow.Array
    query_ids: pyarrow.Array
    genders: pyarrow.Array
    regions: pyarrow.Array
    demoted: Flags
    asked: Floats
    candidates: Integers
    merits: Floats

    @classmethod
    def of(cls, items: int, seed: int) -> "Market":
        """The market of a seed."""
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        queries = queries_for(items)
        genders, regions = (
            _names(shares)[_drawn(shares, rng.random(items))] for shares in (GENDERS, REGIONS)
        )
        quality = rng.normal(0.5, 0.2, items)
        shuffled = rng.permutation(items)
        # A query is answered by a stretch of the shuffled catalogue: related queries share items,
        # and drawing without replacement costs nothing, however many items there are.
        begins = rng.permutation(queries) * items // queries
        width = min(_CANDIDATES, items)
        candidates = shuffled[(begins[:, None] + np.arange(width)) % items]
        return cls(
            item_ids=numbered("item-", np.arange(items), items),
            query_ids=numbered("q", np.arange(queries), queries),
            genders=pyarrow.array(genders, pyarrow.string()),
            regions=pyarrow.array(regions, pyarrow.string()),
            demoted=genders == DEMOTED_GENDER,
            asked=asked_between(queries),
            candidates=candidates,
            merits=quality[candidates] + rng.normal(0, 0.15, (queries, width)),
        )


class DayLog:
    """The lists of one day, drawn in order and never all at once."""

    def __init__(self, market: Market, day: date, seed: int, incidents: Incidents) -> None:
        self.market, self.day = market, day
        self.unfair, self.broken = day == incidents.unfair, day == incidents.broken
        streams = np.random.SeedSequence(seed, spawn_key=(1, day.toordinal())).spawn(7)
        # A stream per quantity, read row by row: the numbers of a list are then the same whether
        # it is drawn with a thousand others or alone.
        (self.queries, self.devices, self.markets, self.lengths,
         self.retrieval, self.noise, self.clicks) = map(np.random.default_rng, streams)  # fmt: skip

    def tables(self, lists: int, chunk_lists: int) -> Iterator[Iterator[pyarrow.Table]]:
        """The tables of each file in turn; a table has ``chunk_lists`` lists, each list whole.

        To be used up in this order, as the streams are.
        """
        faulty = faulty_lists(lists) if self.broken else np.empty(0, np.int64)
        for begin in range(0, lists, PART_LISTS):
            end = min(begin + PART_LISTS, lists)
            yield (
                self._table(np.arange(first, min(first + chunk_lists, end)), faulty)
                for first in range(begin, end, chunk_lists)
            )

    def _table(self, number: Integers, faulty: Integers) -> pyarrow.Table:
        market, lists = self.market, len(number)
        query = np.searchsorted(market.asked, self.queries.random(lists), side="right")
        device = _drawn(DEVICES, self.devices.random(lists))
        country = _drawn(MARKETS, self.markets.random(lists))
        surplus = self.lengths.random(lists) * (LONGEST - SHORTEST + 1)
        length = SHORTEST + surplus.astype(np.int64)
        item, merit = self._ranked(query, length, self._demotion(device, country))

        shown = np.arange(LONGEST) < length[:, None]
        row_list = np.repeat(np.arange(lists), length)
        rank = np.broadcast_to(np.arange(1, LONGEST + 1), shown.shape)[shown]
        item = item[shown]
        appeal: Floats = merit[shown].clip(0.0, 1.0).round(2)
        relevance = (appeal >= RELEVANT_FROM).astype(np.float64)
        # Judges say yes or no; those who click see more finely.
        click = self.clicks.random(len(rank)) < appeal / np.log2(rank + 1)
        plant_faults(int(number[0]), faulty, np.cumsum(length), rank, relevance, item)

        columns = {
            "list_id": numbered(f"{self.day.isoformat()}-", number + 1, 10**7).take(
                pyarrow.array(row_list)
            ),
            "query_id": market.query_ids.take(pyarrow.array(query[row_list])),
            "item_id": market.item_ids.take(pyarrow.array(item)),
            "rank": pyarrow.array(rank, pyarrow.int32()),
            "relevance": pyarrow.array(relevance),
            "click": pyarrow.array(click.astype(np.int8)),
            "device": pyarrow.array(list(DEVICES)).take(pyarrow.array(device[row_list])),
            "market": pyarrow.array(list(MARKETS)).take(pyarrow.array(country[row_list])),
        }
        return pyarrow.table(columns, schema=LOG_SCHEMA)

    def _demotion(self, device: Integers, country: Integers) -> Floats:
        """What each list takes off a woman's score."""
        if not self.unfair:
            return np.zeros(len(device))
        hard = (device == list(DEVICES).index(HARD_DEVICE)) & (
            country == list(MARKETS).index(HARD_MARKET)
        )
        return np.where(hard, HARD_DEMOTION, MILD_DEMOTION)

    def _ranked(
        self, query: Integers, length: Integers, demotion: Floats
    ) -> tuple[Integers, Floats]:
        """Items and merits of each list, best first; shape (lists, LONGEST).

        Only the first ``length`` columns of a row are shown.  Which items are retrieved is drawn
        before they are scored, so a demoted item sinks but does not vanish.
        """
        market, lists = self.market, len(query)
        lottery = self.retrieval.random((lists, market.candidates.shape[1]))
        retrieved = np.argsort(lottery, axis=1)[:, :LONGEST]
        item = market.candidates[query[:, None], retrieved]
        merit = market.merits[query[:, None], retrieved]
        score = merit + RANKER_NOISE * self.noise.standard_normal((lists, LONGEST))
        score -= demotion[:, None] * market.demoted[item]
        score[np.arange(LONGEST) >= length[:, None]] = -np.inf
        order = np.argsort(-score, axis=1)
        return np.take_along_axis(item, order, axis=1), np.take_along_axis(merit, order, axis=1)


def generate(
    out: Path,
    *,
    start: date,
    days: int,
    lists: int,
    items: int = 2000,
    seed: int = 7,
    incidents: Incidents | None = None,
    progress: Callable[[str], None] | None = None,
    chunk_lists: int = CHUNK_LISTS,
) -> GeneratedLogs:
    """Write ``out/items.parquet`` and ``out/logs/<day>/part-<n>.parquet``, ``lists`` lists a day.

    ``incidents`` defaults to ``Incidents.spread(start, days)``; ``Incidents()`` is a period in
    which nothing goes wrong.  ``progress`` is told a line for each day.  Files of an earlier call
    are replaced, and removed where this one has no use for them; a file that was not generated is
    never touched: it makes the call fail before anything is written.

    Raises ValueError when the arguments cannot be met.
    """
    # A datetime is a date too, but prints with its time.
    start = date(start.year, start.month, start.day)
    problems = calendar_problems(start, days) + least_problems(lists, chunk_lists)
    if seed < 0:
        problems.append(f"seed is {seed}: give 0 or more")
    if items < LONGEST:
        problems.append(
            f"items is {items}: a list holds up to {LONGEST} different items, "
            f"give {LONGEST} or more"
        )
    if problems:
        raise CannotGenerate(problems)
    incidents = Incidents.spread(start, days) if incidents is None else incidents
    calendar = calendar_of(start, days)
    if problems := misplaced([*incidents.dates().items()], calendar):
        raise CannotGenerate(problems)
    refuse_strangers(out, calendar)

    market = Market.of(items, seed)
    notes = {incidents.unfair: "an unfair ranker", incidents.broken: "some wrong rows"}
    written = write_logs(
        out,
        pyarrow.table([market.item_ids, market.genders, market.regions], schema=ITEM_SCHEMA),
        (
            DayFiles(
                day,
                None
                if day == incidents.missing
                else DayLog(market, day, seed, incidents).tables(lists, chunk_lists),
                notes.get(day, ""),
            )
            for day in calendar
        ),
        lists=lists,
        schema=LOG_SCHEMA,
        progress=progress,
    )
    return GeneratedLogs(**vars(written), incidents=incidents)


def _names(shares: dict[Any, float]) -> npt.NDArray[np.object_]:
    return np.array(list(shares), dtype=object)


def _drawn(shares: dict[Any, float], uniform: Floats) -> Integers:
    """For each number in [0, 1), which entry of ``shares`` it falls on."""
    bounds = np.cumsum(list(shares.values()))[:-1]
    return np.searchsorted(bounds, uniform, side="right")
