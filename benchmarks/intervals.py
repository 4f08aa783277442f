"""How often intervals hold the true value, and what verdicts come of it: for docs/evidence.md.

Simulated rankers whose true scores are known, with the intervals and verdicts of the project, and
the cost of intervals on logs that went the way of a nightly batch.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import extremes
import numpy as np
from interval_cost import cost
from interval_verdicts import fair_world, power
from measured import fill, table
from served import (
    DEPTH,
    Measured,
    Served,
    buckets,
    measured,
    served,
    truth,
)

from metrics import parse_measure
from pipeline.scores.evidence.randomness import poisson_weights
from schemas.counts import BUCKETS

DOCUMENT = Path(__file__).parent.parent / "docs" / "evidence.md"
LABELS = ("EXP", "EXPU", "AWRF(p=0.1)", "ERBE(decay=0.75)", "ARP", "NDKL", "GroupnDCG")
MEASURES = tuple(map(parse_measure, LABELS))
EXP = MEASURES[:1]
BEHIND = (0.0, -0.6)
"""What two groups are favoured by, in standard deviations of the ranker's noise."""
SIZES = (30, 100, 300, 1000)
KINDS = ("MinMaxRatio", "MaxMinDiff", "NDKL")


def inside(ends: tuple[Any, Any], value: float) -> bool:
    lower, upper = ends
    return lower is not None and upper is not None and lower <= value <= upper


def hits(found: Measured, true: Any) -> Iterator[tuple[tuple[str, str], bool]]:
    """Whether each interval of one measure holds the true value, by measure and kind."""
    label = true.measure.label
    for score, ends in zip(true.scores, found.scores, strict=True):
        kind = score.name.aggregation.name if score.name.aggregation else "NDKL"
        if kind in KINDS:
            yield (label, "value" if kind == "NDKL" else kind), inside(ends, score.value)
    if true.values is not None:
        for value, ends in zip(true.values.values, found.groups, strict=True):
            yield (label, "value of a group"), inside(ends, value)


def coverage(days: int, large: int, seed: int) -> str:
    true = truth(served(np.random.default_rng(seed), large, BEHIND), MEASURES)
    shares: dict[tuple[str, str], list[str]] = {}
    for size in SIZES:
        held: dict[tuple[str, str], list[bool]] = {}
        for day in range(days):
            rng = np.random.default_rng([seed, size, day])
            log = served(rng, size, BEHIND)
            for found, each in zip(
                measured(log, MEASURES, buckets(rng, log.query)), true, strict=True
            ):
                for key, hit in hits(found, each):
                    held.setdefault(key, []).append(hit)
        for key, found_in in held.items():
            shares.setdefault(key, []).append(f"{np.mean(found_in):.1%}")
    rows = [[label, kind, *cells] for (label, kind), cells in sorted(shares.items())]
    return table(["metric", "score", *(f"{size} queries" for size in SIZES)], rows)


def repeated(days: int, large: int, seed: int) -> str:
    """60 queries, each answered 20 times with the same list."""
    true = truth(served(np.random.default_rng(seed), large, BEHIND), MEASURES)
    rows: dict[tuple[str, str], list[str]] = {}
    for by_query in (True, False):
        held: dict[tuple[str, str], list[bool]] = {}
        for day in range(days):
            rng = np.random.default_rng([seed, day])
            log = served(rng, 60, BEHIND).again(20)
            if not by_query:
                log = Served(log.group, log.relevance, np.arange(log.lists), log.names)
            for found, each in zip(
                measured(log, MEASURES, buckets(rng, log.query)), true, strict=True
            ):
                for key, hit in hits(found, each):
                    held.setdefault(key, []).append(hit)
        for key, found_in in held.items():
            rows.setdefault(key, []).append(f"{np.mean(found_in):.1%}")
    heads = ["metric", "score", "queries resampled", "requests resampled"]
    return table(heads, [[*key, *cells] for key, cells in sorted(rows.items())])


def linear(days: int, seed: int) -> str:
    """IAA and Gini: resamples in which items keep their side and place, beside real ones."""
    rows = []
    for size in SIZES:
        both: dict[str, list[tuple[float, ...]]] = {"IAA": [], "Gini": []}
        for day in range(days):
            rng = np.random.default_rng([seed, size, day])
            items = 300
            exposure, gap = np.zeros((size, items)), np.zeros((size, items))
            popular = np.arange(1, items + 1) ** -0.7
            for at in range(size):
                shown = rng.choice(items, DEPTH, replace=False, p=popular / popular.sum())
                exposure[at, shown] = 1 / np.log2(np.arange(DEPTH) + 2)
                gap[at] = exposure[at] - (exposure[at] > 0) * (rng.random(items) < 0.4)
            weights = poisson_weights(1, 400, BUCKETS)[:, rng.permutation(BUCKETS)[:size]]
            seen = exposure.any(axis=0)
            drawn_gap, drawn_sum = weights @ gap, weights @ exposure[:, seen]
            lists = weights.sum(axis=1)
            order = np.argsort(exposure[:, seen].sum(axis=0), kind="stable")
            places = 2 * np.arange(1, seen.sum() + 1) - seen.sum() - 1

            def gini(ordered: Any, places: Any = places) -> Any:
                return (ordered * places).sum(axis=-1) / ordered.sum(axis=-1) / len(places)

            signs = np.sign(gap.sum(axis=0))
            values = {
                "IAA": (
                    np.abs(gap.sum(axis=0)).sum() / size,
                    np.abs(drawn_gap).sum(axis=1) / lists,
                    drawn_gap @ signs / lists,
                ),
                "Gini": (
                    gini(np.sort(exposure[:, seen].sum(axis=0))),
                    gini(np.sort(drawn_sum, axis=1)),
                    gini(drawn_sum[:, order]),
                ),
            }
            for name, (value, real, line) in values.items():
                both[name].append(
                    (real.mean() / value, line.mean() / value, line.std() / real.std())
                )
        for name, found in both.items():
            cells = np.mean(found, axis=0)
            rows.append([name, f"{size:,}", *(f"{cell:.3f}" for cell in cells)])
    heads = ["metric", "queries", "mean of real resamples / value", "mean of linear ones / value"]
    return table(
        [*heads, "spread of linear ones / of real ones"], sorted(rows, key=lambda row: row[0])
    )


def tables(quick: bool, days: int, seed: int) -> Iterator[tuple[str, str]]:
    """The measured tables, each with the name of its markers, as they get ready."""
    large = 2_000 if quick else 300_000
    yield "coverage", coverage(days, large, seed)
    yield from extremes.tables(quick, days, seed)
    yield "repeated queries", repeated(days, large, seed)
    yield "fair world", fair_world(days, seed)
    yield "power", power(days, large // 10, seed)
    yield "linear forms", linear(max(2, days // 100), seed)
    yield "cost", cost((100, 200) if quick else (1_000, 10_000, 100_000), seed)


@click.command(help=__doc__)
@click.option("--days", default=1500, show_default=True, help="Days of each simulation.")
@click.option("--seed", default=1, show_default=True, help="Seed of the simulations.")
@click.option("--quick", is_flag=True, help="Few and small simulations, to see that all runs.")
@click.option("--document", default=DOCUMENT, type=click.Path(path_type=Path), show_default=False)
def main(days: int, seed: int, quick: bool, document: Path) -> None:
    fill(document, tables(quick, 3 if quick else days, seed))


if __name__ == "__main__":
    main()
