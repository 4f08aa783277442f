"""When windows find what no night shows: a small group, far down, over a month of nights.

    python benchmarks/windows.py

Each world is a month of nights of 200 lists of 10, of which a group has 2 % of the rows; its mean
exposure is the given share of that of the others.  Every night is audited as any is, under
``windows: [7, 28]`` and a threshold of 0.8.  The last world is fair: what is found there is wrong.
"""

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from statistics import median

import click
import duckdb
import numpy as np
import pyarrow
import pyarrow.parquet
from measured import fill, table
from scipy.optimize import brentq

from metrics.weights import FloatArray
from pipeline.runs.batches import run_batch
from pipeline.settings.load import settings_from
from pipeline.store.paths import store_of

START = date(2026, 1, 1)
NIGHTS, LISTS, RANKS, SHARE, QUERIES = 30, 200, 10, 0.02, 400
RATIOS = (0.70, 0.75, 1.00)
THRESHOLD = 0.8
EXPOSURE = 1.0 / np.log2(np.arange(RANKS) + 2.0)
DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "windows.md"


def places(ratio: float) -> FloatArray:
    """Where the group stands, shape (RANKS,): as unevenly as the ratio of exposures asks for."""
    # What is left for the others, when the group takes so much of the exposure there is.
    wanted = ratio * EXPOSURE.mean() / (1.0 - SHARE + ratio * SHARE)

    def tilted(slope: float) -> FloatArray:
        weights = np.exp(slope * EXPOSURE)
        return np.asarray(weights / weights.sum())

    return tilted(brentq(lambda slope: tilted(slope) @ EXPOSURE - wanted, -100.0, 100.0))


def night(ratio: float, rng: np.random.Generator) -> pyarrow.Table:
    """The log of one night."""
    at = places(ratio)
    small = np.zeros((LISTS, RANKS), dtype=bool)
    for row, items in zip(small, rng.binomial(RANKS, SHARE, LISTS), strict=True):
        row[rng.choice(RANKS, size=items, replace=False, p=at)] = True
    number = np.repeat(np.arange(LISTS), RANKS)
    return pyarrow.table(
        {
            "list_id": number,
            "query_id": np.repeat(rng.integers(QUERIES, size=LISTS), RANKS),
            "item_id": np.arange(LISTS * RANKS),
            "rank": np.tile(np.arange(1, RANKS + 1), LISTS),
            "group": np.where(small.ravel(), "small", "large"),
        }
    )


def month(task: tuple[float, int, int]) -> tuple[float, int, int | None]:
    """The ratio, nights that were a breach by themselves, and the night a window was one.

    Asked for are a ratio, a seed and a number of nights.
    """
    ratio, seed, nights = task
    with tempfile.TemporaryDirectory() as folder:
        settings = settings_from(
            {
                "attributes": ["group"],
                "metrics": ["EXP"],
                "windows": [7, 28],
                "thresholds": {"EXP.MinMaxRatio": {"min": THRESHOLD}},
                "threads": 1,
            },
            folder=Path(folder),
        )
        for number in range(nights):
            batch = (START + timedelta(days=number)).isoformat()
            path = Path(folder) / "logs" / batch / "part.parquet"
            path.parent.mkdir(parents=True)
            rng = np.random.default_rng([seed, number, round(100 * ratio)])
            pyarrow.parquet.write_table(night(ratio, rng), path)
            run_batch(settings, batch)
        with duckdb.connect(str(store_of(settings).history), read_only=True) as history:
            ((alone,),) = history.execute(
                "SELECT count(*) FROM fairness_history WHERE status = 'breach'"
            ).fetchall()
            ((opened,),) = history.execute(
                "SELECT min(opened) FROM alerts WHERE kind = 'window'"
            ).fetchall()
    return ratio, alone, (date.fromisoformat(opened) - START).days + 1 if opened else None


def rows(found: Sequence[tuple[float, int, int | None]], nights: int) -> Iterator[list[str]]:
    for ratio in RATIOS:
        here = [(alone, first) for each, alone, first in found if each == ratio]
        firsts = [first for _, first in here if first is not None]
        yield [
            f"{ratio:.2f}",
            f"{len(here)}",
            f"{sum(alone for alone, _ in here)} of {nights * len(here)}",
            f"{len(firsts)}",
            f"{median(firsts):g}" if firsts else "",
            f"{max(firsts)}" if firsts else "",
        ]


@click.command()
@click.option("--months", default=6, show_default=True, help="Months of each world.")
@click.option("--workers", default=2, show_default=True)
@click.option("--quick", is_flag=True, help="A few nights of each world, to see that all runs.")
@click.option("--document", default=DOCUMENT, type=click.Path(path_type=Path), show_default=False)
def main(months: int, workers: int, quick: bool, document: Path) -> None:
    """Measure, and write the table into docs/windows.md."""
    months, nights = (1, 4) if quick else (months, NIGHTS)
    tasks = product(RATIOS, range(months), (nights,))
    if quick:
        found = [*map(month, tasks)]
    else:
        with ProcessPoolExecutor(workers) as pool:
            found = [*pool.map(month, tasks)]
    heads = [
        "true ratio",
        "months",
        "nights that are a breach",
        "months with a window that is",
        "its median night",
        "the last",
    ]
    fill(document, [("windows", table(heads, [*rows(found, nights)]))])


if __name__ == "__main__":
    main()
