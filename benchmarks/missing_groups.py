"""How often a group is missing though nothing happened: simulated, for docs/trends.md."""

from collections.abc import Callable

import numpy as np
from measured import table

from pipeline.monitoring.findings import Findings
from pipeline.monitoring.gates import Releases
from pipeline.monitoring.inputs import Presence
from pipeline.monitoring.missing_groups import missing_findings, serving
from pipeline.settings.sections import Trends

FEWEST, MOST = 0.2, 2000.0
"""Mean queries of the smallest and the largest groups; as many of each order of magnitude."""
Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def _weekly(queries: np.ndarray, sunday: float) -> np.ndarray:
    at = np.arange(len(queries))[:, None]
    return np.where(at % 7 == 6, sunday, 1) * queries


WORLDS: dict[str, Draw] = {
    "each query by itself": lambda rng, mean: rng.poisson(mean),
    "a quarter of them on Sundays": lambda rng, mean: rng.poisson(_weekly(mean, 0.25)),
    "none on Sundays": lambda rng, mean: rng.poisson(_weekly(mean, 0)),
    "their means vary by half from night to night": lambda rng, mean: rng.poisson(
        rng.gamma(4, mean / 4)
    ),
    "three at a time": lambda rng, mean: 3 * rng.poisson(mean / 3),
    "five at a time": lambda rng, mean: 5 * rng.poisson(mean / 5),
    "off on one night in ten": lambda rng, mean: rng.poisson(mean) * (rng.random(mean.shape) > 0.1),
    "off on one night in three": lambda rng, mean: (
        rng.poisson(mean) * (rng.random(mean.shape) > 1 / 3)
    ),
}
"""How queries of groups come, by their means of shape (nights, groups)."""


def found_by_night(queries: np.ndarray) -> np.ndarray:
    """How many groups are missing on each night, from their queries, shape (nights, groups)."""
    nights, groups = queries.shape
    presence = Presence(
        tuple(f"{night:06}" for night in range(nights)),
        tuple(("group", str(group)) for group in range(groups)),
        queries.astype(np.int64),
        queries.astype(np.int64),
        np.ones(queries.shape, dtype=bool),
    )
    serves, settings = serving(presence, (), ()), Trends()
    found = np.zeros(nights, dtype=np.int64)
    for row, batch in enumerate(presence.batches):
        into = Findings(batch)
        missing_findings(into, presence, row, serves, Releases(()), settings)
        found[row] = len(into.missing)
    return found


def missing_group_rates(years: int, groups: int, nights: int, seed: int) -> str:
    """A table of findings and of nights with any, in worlds in which nothing happens."""
    rng = np.random.default_rng(seed)
    rows = []
    for name, draw in WORLDS.items():
        found = []
        for _ in range(years):
            rates = np.exp(rng.uniform(np.log(FEWEST), np.log(MOST), groups))
            found.append(found_by_night(draw(rng, np.tile(rates, (nights, 1)))))
        each = np.concatenate(found)
        often = each.sum() / (each.size * groups)
        rows.append([name, f"{1e6 * often:.0f}", f"{np.mean(each > 0):.2%}"])
    heads = ["queries of a group", "missing in a million groups and nights", "nights with any"]
    return table(heads, rows)
