"""How right `evenrank explain` is in worlds whose cause is known: for docs/explaining.md.

Two nights of a made-up ranker at a time, whose kinds of requests and treatments are known, with the
cells, the division, the resamples and the conclusion of the project.  Only logs and files are left
out: what they would hold by kind of request and bucket is made by numpy.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
from known_causes import DEPTH, WORLDS, Night, World, night, true_parts
from measured import fill, table

from metrics import parse_score
from pipeline.compare.batches.answers import Answer, answered, furthest
from pipeline.compare.batches.bucketed import Bucketed
from pipeline.compare.batches.counterfactuals import Layout
from pipeline.compare.batches.partition import Partition, split_of
from pipeline.compare.batches.request_cells import Requests, by_query, by_slices
from pipeline.compare.batches.uncertainty import Resamples, resampled, with_intervals
from pipeline.settings.sections import Evidence
from schemas.counts import BUCKETS

DOCUMENT = Path(__file__).parent.parent / "docs" / "explaining.md"
NAME = parse_score("EXP.MinMaxRatio")


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


def cut_of(
    nights: tuple[Night, Night], cells: tuple[Any, Any]
) -> tuple[Partition, tuple[Bucketed, Bucketed]]:
    """Both nights cut into cells, and their rows by bucket."""
    whole = nights[0].counts, nights[1].counts
    layout = Layout.of(NAME.measure, whole)
    count = int(max(each.max() for each in cells)) + 1
    a, b = (bucketed(layout, each, cell) for each, cell in zip(nights, cells, strict=True))
    rows = a.by_cell(count), b.by_cell(count)
    return Partition(NAME, layout, [str(at) for at in range(count)], rows, whole), (a, b)


def divided(
    nights: tuple[Night, Night], cells: tuple[Any, Any], evidence: Evidence
) -> tuple[Any, Resamples, tuple[float, float]]:
    """The change of the score, its resamples, and shares of lists in cells of both nights."""
    cut, sides = cut_of(nights, cells)
    division = cut.divided(parts=False)
    return (
        cut.changes(division.mix[0])[0],
        resampled(cut, sides, evidence, parts=False),
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


def false_leaders(markets: int, nights: int, seed: int) -> tuple[int, int]:
    """Unchanged nights with a market beyond its interval, and with one beyond an interval of its
    own, which heeds no other.
    """
    world, evidence, found, alone = World(markets=markets), Evidence(), 0, 0
    for at in range(nights):
        rng = np.random.default_rng([seed, markets, at])
        both = night(rng, world, 0), night(rng, world, 1)
        cut, sides = cut_of(both, (both[0].slices[:, 1], both[1].slices[:, 1]))
        split = split_of(cut, cut.divided(), {})
        made = resampled(cut, sides, evidence, parts=True)
        told = with_intervals(split, cut, made, evidence.confidence)
        ends = [n for part in told.parts for n in (part.mix_interval, part.treatment_interval)]
        found += any(low is not None and not low <= 0 <= high for low, high in ends)
        place = {name: at for at, name in enumerate(cut.names)}
        alone += any(
            abs(value) > 1.96 * drawn[:, place[part.cell]].std()
            for part in split.parts
            for value, drawn in (
                (part.mix, made.mix_parts),
                (part.treatment, made.treatment_parts),
            )
        )
    return found, alone


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
    some = max(1, nights // 2)
    rows = [
        [f"{markets}", *(share(count, some) for count in false_leaders(markets, some, seed))]
        for markets in (3, 30, 200)
    ]
    heads = ["markets", "one beyond its interval", "one beyond 1.96 standard errors"]
    yield "false leaders", table(heads, rows)


@click.command(help=__doc__)
@click.option("--nights", default=200, show_default=True, help="Pairs of nights of each world.")
@click.option("--seed", default=1, show_default=True, help="Seed of the simulations.")
@click.option("--quick", is_flag=True, help="Few and small simulations, to see that all runs.")
@click.option("--document", default=DOCUMENT, type=click.Path(path_type=Path), show_default=False)
def main(nights: int, seed: int, quick: bool, document: Path) -> None:
    fill(document, tables(3 if quick else nights, 20_000 if quick else 1_000_000, seed))


if __name__ == "__main__":
    main()
