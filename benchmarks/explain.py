"""How right `evenrank explain` is in worlds whose cause is known: for docs/explaining.md.

Two nights of a made-up ranker at a time, whose kinds of requests and treatments are known, with the
cells, the division, the resamples and the conclusion of the project.  Only logs and files are left
out: what they would hold by kind of request and bucket is made by numpy.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np
from measured import fill, table

from metrics import Counts, RankHistogram, parse_score
from metrics.weights import exposure_at
from pipeline.compare.batches.answers import Answer, answered, furthest
from pipeline.compare.batches.bucketed import Bucketed
from pipeline.compare.batches.counterfactuals import Layout
from pipeline.compare.batches.partition import Partition
from pipeline.compare.batches.request_cells import Requests, by_query, by_slices
from pipeline.compare.batches.uncertainty import Resamples, resampled
from pipeline.settings.sections import Evidence
from schemas.counts import BUCKETS

DOCUMENT = Path(__file__).parent.parent / "docs" / "explaining.md"
NAME = parse_score("EXP.MinMaxRatio")
GROUPS = ("m", "w")
DEPTH, DEVICES, MARKETS = 10, 2, 3
LEVELS = 3
"""What women are favoured by differs from query to query, in so many steps."""


@dataclass(frozen=True)
class World:
    """Two nights; what is said twice is that of the first and of the second.

    ``behind`` is by how much women are behind on the first and the second device, in standard
    deviations of the ranker's noise, ``better`` what they are favoured by beside.  ``turnover`` is
    the share of requests whose query is asked on that night alone.  There are LEVELS times as many
    queries as ``queries``.
    """

    causes: frozenset[str] = frozenset()
    web: tuple[float, float] = (0.4, 0.4)
    better: tuple[float, float] = (0.0, 0.0)
    behind: tuple[float, float] = (0.1, 0.6)
    step: float = 0.15
    queries: int = 25
    lists: tuple[int, int] = (3000, 3000)
    turnover: float = 0.0


MIX, TREATMENT = frozenset({"mix"}), frozenset({"treatment"})
WORLDS = {
    "unchanged": World(),
    "unchanged, equal groups": World(behind=(0.0, 0.0), step=0.0),
    "unchanged, 12 queries": World(queries=4, lists=(600, 600)),
    "unchanged, half as many lists": World(lists=(3000, 1500)),
    "unchanged, 10% other queries": World(turnover=0.1),
    "unchanged, nearly all other queries": World(queries=5000),
    "mix": World(MIX, web=(0.4, 0.8)),
    "mix, a fifth of that": World(MIX, web=(0.4, 0.48)),
    "mix, 10% other queries": World(MIX, web=(0.4, 0.8), turnover=0.1),
    "mix, nearly all other queries": World(MIX, web=(0.4, 0.8), queries=5000),
    "treatment": World(TREATMENT, better=(0.0, -0.25)),
    "treatment, a fifth of that": World(TREATMENT, better=(0.0, -0.05)),
    "treatment, 10% other queries": World(TREATMENT, better=(0.0, -0.25), turnover=0.1),
    "treatment, nearly all other queries": World(TREATMENT, better=(0.0, -0.25), queries=5000),
    "both": World(MIX | TREATMENT, web=(0.4, 0.8), better=(0.0, -0.25)),
    "both, opposed": World(MIX | TREATMENT, web=(0.4, 0.8), better=(0.0, 0.3)),
    "both, cancelling out": World(MIX | TREATMENT, web=(0.4, 0.8), better=(0.0, 0.2)),
}


def ranked(rng: np.random.Generator, advantage: Any) -> Any:
    """Groups by rank of one list for each ``advantage`` of women, shape (lists, DEPTH)."""
    group = rng.random((len(advantage), DEPTH)) < 0.5
    score = group * advantage[:, None] + rng.normal(size=group.shape)
    return np.take_along_axis(group, np.argsort(-score, axis=1), axis=1).astype(np.int64)


@cache
def exposed(advantage: float, lists: int) -> tuple[float, float]:
    """What a list gives each group of exposure, in the mean over many."""
    rng = np.random.default_rng(7)
    group = ranked(rng, np.full(lists, advantage))
    weight = exposure_at(np.arange(1, DEPTH + 1))
    women = float((group * weight).sum() / lists)
    return float(weight.sum()) - women, women


def true_parts(world: World, large: int) -> tuple[float, float, float]:
    """Change, mix and treatment of nights of endlessly many lists."""

    def score(treated: int, mixed: int) -> float:
        total = np.zeros(2)
        for level in range(LEVELS):
            for device in range(DEVICES):
                share = world.web[mixed] if device else 1 - world.web[mixed]
                advantage = advantage_of(world, treated, level, device)
                total += share * np.array(exposed(round(float(advantage), 6), large))
        return float(total.min() / total.max())

    f = {(t, m): score(t, m) for t in (0, 1) for m in (0, 1)}
    mix = (f[0, 1] - f[0, 0] + f[1, 1] - f[1, 0]) / 2
    return f[1, 1] - f[0, 0], mix, f[1, 1] - f[0, 0] - mix


def advantage_of(world: World, night: int, query: Any, device: Any) -> Any:
    """What women are favoured by in lists of a query on a device."""
    behind = np.where(device, world.behind[1], world.behind[0])
    return (query % LEVELS - (LEVELS - 1) / 2) * world.step - behind + world.better[night]


@dataclass(frozen=True)
class Night:
    """Lists of one night: their query, slices and ranked groups."""

    query: Any
    slices: Any
    group: Any

    @property
    def counts(self) -> Counts:
        rank = np.tile(np.arange(1, DEPTH + 1), 2)
        rows = np.array([(self.group == g).sum(axis=0) for g in (0, 1)]).ravel()
        none, zero = np.zeros_like(rows), np.zeros(len(rows))
        histogram = RankHistogram(
            np.repeat([0, 1], DEPTH), rank, rows, none, none, zero, none, zero
        )
        return Counts(len(self.group), GROUPS, histogram, True)


def night(rng: np.random.Generator, world: World, which: int) -> Night:
    popular = np.arange(1, world.queries + 1) ** -0.7
    # Each level of queries is asked as often as the others.
    size = world.lists[which]
    query = rng.choice(world.queries, size, p=popular / popular.sum()) * LEVELS
    query += rng.integers(0, LEVELS, size)
    fresh = rng.random(size) < world.turnover
    query[fresh] += (1 + which) * LEVELS * world.queries
    device = (rng.random(size) < world.web[which]).astype(np.int64)
    slices = np.stack([device, rng.integers(0, MARKETS, size)], axis=1)
    return Night(query, slices, ranked(rng, advantage_of(world, which, query, device)))


def bucketed(layout: Layout, each: Night, cell: Any) -> Bucketed:
    """What the file of a night would hold of each cell and bucket."""
    # Queries of an audit are hashed; so are these.
    bucket = (each.query * 2654435761 >> 7) % BUCKETS
    key, entry = np.unique(cell * BUCKETS + bucket, return_inverse=True)
    rank = np.tile(np.arange(1, DEPTH + 1), len(each.group))
    ones = {name: np.ones(each.group.size) for name in layout.columns}
    rows = layout.rows(len(key), np.repeat(entry, DEPTH), each.group.ravel(), rank, ones)
    rows[:, 0] = np.bincount(entry, minlength=len(key))
    return Bucketed(key // BUCKETS, key % BUCKETS, rows)


def divided(
    nights: tuple[Night, Night], cells: tuple[Any, Any], evidence: Evidence
) -> tuple[Any, Resamples, tuple[float, float]]:
    """The change of the score, its resamples, and shares of lists in cells of both nights."""
    whole = nights[0].counts, nights[1].counts
    layout = Layout.of(NAME.measure, whole)
    count = int(max(each.max() for each in cells)) + 1
    a, b = (bucketed(layout, each, cell) for each, cell in zip(nights, cells, strict=True))
    rows = a.by_cell(count), b.by_cell(count)
    cut = Partition(NAME, layout, [str(at) for at in range(count)], rows, whole)
    division = cut.divided(parts=False)
    return (
        cut.changes(division.mix[0])[0],
        resampled(cut, (a, b), evidence, parts=False),
        cut.shared,
    )


def answer_of(nights: tuple[Night, Night], evidence: Evidence) -> Answer:
    """The answer by all that is known of a request."""
    kinds = [np.column_stack([each.query, each.slices]) for each in nights]
    found, kind = np.unique(np.concatenate(kinds), axis=0, return_inverse=True)
    sides = np.split(kind.ravel(), [len(kinds[0])])
    lists = np.array([np.bincount(side, minlength=len(found)) for side in sides], dtype=float)
    requests = Requests(found[:, 1:], lists)
    by, cut = ("query", "device", "market"), by_query(requests)
    if not cut.is_enough:
        by, cut = by[1:], by_slices(requests)
    score, made, _ = divided(nights, (cut.cell[sides[0]], cut.cell[sides[1]]), evidence)
    return answered(by, score, cut.shared, made, evidence.confidence)


def answer_by_column(nights: tuple[Night, Night], evidence: Evidence) -> Answer:
    """The answer by the single column that is best, as for scores that are counted per slice."""
    found = {
        name: divided(nights, (nights[0].slices[:, at], nights[1].slices[:, at]), evidence)
        for at, name in enumerate(("device", "market"))
    }
    way = furthest({name: each[:2] for name, each in found.items()})
    others = [each[:2] for name, each in found.items() if name != way]
    score, made, shared = found[way]
    return answered((way,), score, shared, made, evidence.confidence, others)


def share(count: float, of: int) -> str:
    """A share with its Monte Carlo error."""
    p = count / of
    return f"{p:.1%} ± {100 * np.sqrt(p * (1 - p) / of):.1f}"


NO_CHANGE = 0.005
"""A change of the score that no night of this size shows."""


def simulated(
    name: str, nights: int, true: dict[str, float], seed: int, *, by_column: bool = False
) -> tuple[Counter[str], Counter[str]]:
    """How often intervals hold what is true, and how often each cause is named."""
    world = WORLDS[name]
    held: Counter[str] = Counter()
    named: Counter[str] = Counter()
    for at in range(nights):
        rng = np.random.default_rng([seed, list(WORLDS).index(name), at])
        both = night(rng, world, 0), night(rng, world, 1)
        found = (answer_by_column if by_column else answer_of)(both, Evidence())
        named[found.cause] += 1
        for part, value in true.items():
            each = getattr(found, part)
            held[part] += each.lower is not None and each.lower <= value <= each.upper
    return held, named


def is_wrong(cause: str, true: frozenset[str]) -> bool:
    """Whether a cause is named that there is not."""
    named = {"both": {"mix", "treatment"}, "mix": {"mix"}, "treatment": {"treatment"}}
    return not named.get(cause, set()) <= true


HEADS = [
    "what changed",
    "change held",
    "mix held",
    "treatment held",
    "no change beyond chance",
    "exactly what changed",
    "a wrong cause",
]


def row_of(name: str, nights: int, large: int, seed: int, *, by_column: bool = False) -> list[str]:
    """One row of the table."""
    parts = true_parts(WORLDS[name], large)
    true = dict(zip(("change", "mix", "treatment"), parts, strict=True))
    held, named = simulated(name, nights, true, seed, by_column=by_column)
    causes = WORLDS[name].causes
    right = {0: "no_change", 1: next(iter(causes), ""), 2: "both"}[len(causes)]
    if abs(true["change"]) < NO_CHANGE:
        right = "no_change"
    wrong = sum(count for cause, count in named.items() if is_wrong(cause, causes))
    return [
        *(share(held[part], nights) for part in true),
        share(named["no_change"], nights),
        share(named[right], nights),
        share(wrong, nights),
    ]


def tables(nights: int, large: int, seed: int) -> Iterator[tuple[str, str]]:
    """The measured tables, each with the name of its markers, as they get ready."""
    rows = [[name, *row_of(name, nights, large, seed)] for name in WORLDS]
    yield "answers", table(HEADS, rows)
    single = ("unchanged", "unchanged, equal groups", "mix", "treatment", "both")
    rows = [[name, *row_of(name, nights, large, seed, by_column=True)] for name in single]
    yield "answers by one column", table(HEADS, rows)


@click.command(help=__doc__)
@click.option("--nights", default=1000, show_default=True, help="Pairs of nights of each world.")
@click.option("--seed", default=1, show_default=True, help="Seed of the simulations.")
@click.option("--quick", is_flag=True, help="Few and small simulations, to see that all runs.")
@click.option("--document", default=DOCUMENT, type=click.Path(path_type=Path), show_default=False)
def main(nights: int, seed: int, quick: bool, document: Path) -> None:
    fill(document, tables(3 if quick else nights, 20_000 if quick else 1_000_000, seed))


if __name__ == "__main__":
    main()
