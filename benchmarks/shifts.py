"""Shifts of groups as the nightly assessment finds them: false ones, and how soon real ones.

Everything from the groups' values to the alert is the project's own code; only the values are
drawn.  Scores are of one attribute each, so that each can open an alert.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from measured import table

from pipeline.monitoring.compared_groups import GroupValues
from pipeline.monitoring.episodes import continued
from pipeline.monitoring.findings import Findings, shift_findings
from pipeline.monitoring.followed_scores import Night, nights
from pipeline.monitoring.gates import Releases
from pipeline.monitoring.inputs import Matrix
from pipeline.monitoring.subjects import Series
from pipeline.settings.sections import Trends
from pipeline.trends import discover, reach

SCORES = 40
NIGHTS = 60
NOISE = 0.005
"""Standard error of a ratio from night to night, relative: a drift of 5 % is ten of them."""
DEFAULTS = Trends()
WARM = reach(DEFAULTS)
FAR, BEFORE = -20.0, 8
"""The outlier night, in standard errors, and how many nights before the step it is."""


@dataclass(frozen=True)
class Kind:
    """Values of groups: how many, the ratio of the first to each other, and autocorrelation."""

    name: str
    groups: int = 2
    level: float = 0.8
    repeats: float = 0.0


QUIET = (
    Kind("two groups, 0.8"),
    Kind("two equal groups", level=1.0),
    Kind("five equal groups", groups=5, level=1.0),
    Kind("two groups, AR(1) 0.2", repeats=0.2),
    Kind("two groups, AR(1) 0.5", repeats=0.5),
    Kind("two equal groups, AR(1) 0.5", level=1.0, repeats=0.5),
    Kind("two groups, AR(1) 0.7", repeats=0.7),
)
MOVED = (QUIET[0], QUIET[1], QUIET[4])


def logarithms(kind: Kind, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Logarithms of group values, shape (rows, scores, groups)."""
    fresh = rng.normal(size=(rows, SCORES, kind.groups))
    values = fresh.copy()
    for row in range(1, rows):
        old, new = kind.repeats, np.sqrt(1 - kind.repeats**2)
        values[row] = old * values[row - 1] + new * fresh[row]
    # The ratio of two groups, or of one to the mean of the others, has the noise.
    values *= NOISE / np.sqrt(1 + 1 / (kind.groups - 1))
    values[:, :, 0] += np.log(kind.level)
    return values


def matrix_of(values: np.ndarray) -> Matrix:
    """What an assessment reads: scores ``min V / max V``, and the groups behind them."""
    groups = np.exp(values)
    first = date(2026, 1, 1)
    return Matrix(
        batches=tuple((first + timedelta(days=at)).isoformat() for at in range(len(groups))),
        series=tuple(Series("all", "all", f"a{at}", "EXP", "MinMaxRatio") for at in range(SCORES)),
        values=groups.min(axis=2) / groups.max(axis=2),
        worst=np.full(groups.shape[:2], -1),
        groups=(),
        unfair=np.full(SCORES, -1),
        compared={
            at: GroupValues(
                tuple(f"g{place}" for place in range(groups.shape[2])), groups[:, at], is_ratio=True
            )
            for at in range(SCORES)
        },
    )


def assessed(matrix: Matrix, start: int) -> Iterator[Night]:
    able = np.ones(matrix.values.shape, dtype=bool)
    yield from nights(matrix, start, able, set(), Releases(()), DEFAULTS)


def opened(values: np.ndarray, start: int) -> np.ndarray:
    """In which of the nights from ``start`` on a shift opens, shape (nights,)."""
    matrix = matrix_of(values)
    found = []
    for night in assessed(matrix, start):
        found.append(Findings(matrix.batches[night.row]))
        shift_findings(found[-1], matrix, night, DEFAULTS)
    days = {each.opened for each in continued([], found)}
    return np.array([each.batch in days for each in found])


def false_shifts(periods: int, seed: int) -> str:
    """New false shifts with full windows, and in the first nights there are baselines for."""
    rows = []
    for kind in QUIET:
        later, early = [], []
        for at in range(periods):
            values = logarithms(kind, WARM + NIGHTS, np.random.default_rng([seed, at]))
            later.append(opened(values, WARM).mean())
            young = values[: DEFAULTS.least + NIGHTS]
            early.append(opened(young, DEFAULTS.least).mean())
        rows.append([kind.name, *map(_share, (later, early))])
    heads = ["40 scores of", "nights with a new false shift", "in the first 60 nights"]
    return table(heads, rows)


def _share(shares: list[float]) -> str:
    error = np.std(shares) / np.sqrt(len(shares))
    return f"{np.mean(shares):.1%} ± {error:.1%}"


def first_found(kind: Kind, change: np.ndarray, outlier: float, at: int, seed: int) -> list[float]:
    """Nights until each of the scores is found if it alone changes, infinite for never.

    ``change`` is what is added to the logarithm of the first group's value in each night.
    """
    quiet = logarithms(kind, WARM + NIGHTS, np.random.default_rng([seed, at, 1]))
    moved = logarithms(kind, WARM + NIGHTS, np.random.default_rng([seed, at, 2]))
    moved[WARM:, :, 0] += change[:, None]
    moved[WARM - BEFORE, :, 0] += outlier * NOISE
    found = np.full(SCORES, np.inf)
    both = zip(assessed(matrix_of(quiet), WARM), assessed(matrix_of(moved), WARM), strict=True)
    whole, parent = np.ones(SCORES, dtype=bool), np.full(SCORES, -1)
    for night, (still, gone) in enumerate(both, 1):
        for score in np.flatnonzero(np.isinf(found)):
            p = still.worse.p_value.copy()
            p[score] = gone.worse.p_value[score]
            news = discover(
                p, whole, parent, method=DEFAULTS.discoveries, level=DEFAULTS.level
            ).found
            if news[score] and gone.worse.deviate[score] > DEFAULTS.drift:
                found[score] = night
    return found.tolist()


def shift_delays(periods: int, seed: int) -> str:
    """Nights until a step of 1, 2, 3 standard errors is found, or a drift of 5 % in 60 nights."""
    step = np.ones(NIGHTS) * -NOISE
    drift = np.log1p(-0.05 * np.arange(1, NIGHTS + 1) / NIGHTS)
    changes = {"step of 1": step, "step of 2": 2 * step, "step of 3": 3 * step, "drift": drift}
    rows = []
    for kind in MOVED:
        for name, change in changes.items():
            cells = []
            for outlier in (0.0, FAR):
                delays = np.concatenate(
                    [first_found(kind, change, outlier, at, seed) for at in range(periods)]
                )
                cells += [_night(delays), f"{np.isfinite(delays).mean():.0%}"]
            rows.append([kind.name, name, *cells])
    heads = ["one of 40 scores of", "change", "median night", "found in 60 nights"]
    return table([*heads, "median night after an outlier", "found after it"], rows)


def _night(delays: np.ndarray) -> str:
    """The median, and the interval of 95 % that order statistics give it."""
    ordered, reach_of = np.sort(delays), 0.98 * np.sqrt(len(delays))
    middle = len(delays) / 2
    low = ordered[max(0, int(middle - reach_of))]
    high = ordered[min(len(delays) - 1, int(middle + reach_of))]
    said = [f"{value:.0f}" if np.isfinite(value) else "later" for value in (low, high)]
    median = np.quantile(delays, 0.5, method="higher")
    text = f"{median:.0f}" if np.isfinite(median) else "later"
    return text if said == [text, text] else f"{text} ({said[0]} to {said[1]})"
