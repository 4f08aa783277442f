"""How often the charts cry wolf, and how soon they see a shift: simulations for docs/trends.md.

Every table is measured with the functions and defaults of the project, beside published values
where there are some, and written between its markers in the document.
"""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import click
import numpy as np
from measured import fill, table
from missing_groups import missing_group_rates
from run_lengths import cusum_arl, ewma_arl
from shifts import false_shifts, shift_delays

from pipeline.settings.sections import Trends
from pipeline.trends import (
    adjusted,
    change_points,
    follow_all,
    reach,
    standardised,
)

DOCUMENT = Path(__file__).parent.parent / "docs" / "trends.md"
METHODS = ("BY", "BH", "none")
NIGHTS = 60
DEFAULTS = Trends()

# Two-sided charts from a standing start, by shift in standard deviations.
PUBLISHED = {
    ("CUSUM", 0.5, 4.0): (168, 8.38, 3.34),
    ("CUSUM", 0.5, 5.0): (465, 10.4, 4.01),
    ("EWMA", 0.1, 2.814): (500, 10.3, 4.4),
    ("EWMA", 0.2, 2.962): (500, 10.5, 3.7),
    ("EWMA", 0.4, 3.054): (500, 14.3, 3.5),
}
SHIFTS = (0.0, 1.0, 2.0)
STEPS = (1.0, 2.0, 3.0)
WILD = 20.0


def signals(kind: str, weight: float, limit: float, sided: int) -> Callable[..., np.ndarray]:
    """A chart that takes a night's values, says which series signal, and starts those again."""
    up, down = 0.0, 0.0

    def step(z: np.ndarray) -> np.ndarray:
        nonlocal up, down
        if kind == "EWMA":
            up = (1 - weight) * up + weight * z
            far = up / np.sqrt(weight / (2 - weight))
            out = np.abs(far) > limit if sided == 2 else far > limit
        elif kind == "CUSUM":
            up = np.maximum(0, up + z - weight)
            down = np.maximum(0, down - z - weight) if sided == 2 else np.zeros_like(z)
            out = (up > limit) | (down > limit)
        else:
            up = down = np.zeros_like(z)
            out = z > limit
        up, down = np.where(out, 0, up), np.where(out, 0, down)
        return out

    return step


def run_length(chart: tuple[str, float, float], shift: float, runs: int, seed: int) -> float:
    """Mean nights to a signal of ``runs`` charts on N(shift, 1), started again as they signal."""
    rng = np.random.default_rng(seed)
    step = signals(*chart, sided=2)
    live, nights, total = np.ones(runs, dtype=bool), 0, 0
    while live.any():
        nights += 1
        out = step(rng.normal(shift, 1, runs)) & live
        total += nights * int(out.sum())
        live &= ~out
    return total / runs


def known_run_lengths(runs: int, seed: int) -> str:
    rows = []
    for (kind, weight, limit), published in PUBLISHED.items():
        for shift, value in zip(SHIFTS, published, strict=True):
            solved = (
                cusum_arl(weight, limit, shift, two_sided=True)
                if kind == "CUSUM"
                else ewma_arl(weight, limit, shift)
            )
            name = f"k = {weight}, h = {limit:g}" if kind == "CUSUM" else f"{weight}, L = {limit}"
            simulated = run_length((kind, weight, limit), shift, runs, seed)
            rows.append(
                [f"{kind} {name}", f"{shift:g}", f"{value:g}", f"{solved:.2f}", f"{simulated:.1f}"]
            )
    return table(["chart", "shift", "published", "equation", "simulated"], rows)


def self_started(
    window: int | None, nights: int, series: int, shift: float, seed: int
) -> np.ndarray:
    """Residuals of ``nights`` after a first baseline, shape (nights, series); None: known law."""
    rng = np.random.default_rng(seed)
    if window is None:
        return rng.normal(shift, 1, (nights, series))
    values = rng.normal(0, 1, (window + nights, series))
    values[window:] += shift
    return standardised(
        values,
        np.ones(values.shape, dtype=bool),
        None,
        window=window,
        least=window,
        weeks=DEFAULTS.weekday_weeks,
        tested=nights,
    ).residual


def self_started_run_lengths(series: int, nights: int, seed: int) -> str:
    kinds = (("Shewhart", 0.0, 3.0), ("EWMA", 0.2, 2.962), ("CUSUM", 0.5, 5.0))
    rows = []
    for kind in kinds:
        for window in (None, 14, 28, 56):
            step, count = signals(*kind, sided=1), 0
            for z in self_started(window, nights, series, 0.0, seed):
                count += int(step(z).sum())
            cells = [f"{nights * series / count:.0f}" if count else "none"]
            for shift in (1.0, 2.0):
                step, seen = signals(*kind, sided=1), np.zeros(series, dtype=bool)
                for z in self_started(window, NIGHTS, series, shift, seed + 1):
                    seen |= step(z)
                cells.append(f"{seen.mean():.0%}")
            limit = f"{kind[0]} {kind[2]:g}"
            rows.append([limit, "known" if window is None else str(window), *cells])
    heads = ["one-sided chart, limit", "baseline", "nights between false signals"]
    return table([*heads, "1 sd seen in 60 nights", "2 sd seen in 60 nights"], rows)


def nightly(values: np.ndarray, settings: Trends) -> np.ndarray:
    """p-values of the last 60 nights, shape (nights, series)."""
    eligible, unfair = np.ones(values.shape, dtype=bool), np.ones(values.shape[1], dtype=np.int64)
    weekdays = np.arange(len(values)) % 7
    return follow_all(values, eligible, weekdays, unfair, settings).worse.p_value[-NIGHTS:]


def quiet(
    series: int, correlation: float, rng: np.random.Generator, settings: Trends
) -> np.ndarray:
    shape = (reach(settings) + NIGHTS, series)
    common = rng.normal(size=(shape[0], 1))
    return np.sqrt(correlation) * common + np.sqrt(1 - correlation) * rng.normal(size=shape)


def news(p: np.ndarray, method: str) -> np.ndarray:
    """Which series are news in which night, shape (nights, series)."""
    return np.stack([adjusted(night, method) for night in p]) <= DEFAULTS.level


def false_alarms(series: int, seeds: int, seed: int) -> str:
    rows = []
    for correlation in (0.0, 0.5):
        found = {method: [] for method in METHODS}
        for each in range(seeds):
            rng = np.random.default_rng([seed, each])
            p = nightly(quiet(series, correlation, rng, DEFAULTS), DEFAULTS)
            for method in METHODS:
                found[method].append(news(p, method))
        for method in METHODS:
            hits = np.stack(found[method])
            rows.append(
                [
                    f"{correlation:g}",
                    method,
                    f"{hits.sum(axis=2).mean():.3f}",
                    f"{hits.any(axis=2).mean():.2%}",
                    f"{hits.any(axis=(1, 2)).mean():.0%}",
                    f"{hits.any(axis=1).mean():.2%}",
                ]
            )
    heads = ["correlation", "control", "false alarms a night", "nights with any"]
    return table([*heads, "60 nights with any", "series with any in 60 nights"], rows)


def nights_to_news(
    settings: Trends, sizes: tuple[int, ...], seeds: int, each_seed: int, seed: int
) -> Iterator[tuple[int, str, float, list[float]]]:
    """Nights until a step in one of many quiet series is news, by family, control and step."""
    nights: dict[tuple[int, str, float], list[float]] = {}
    for at in range(seeds):
        values = quiet(max(sizes), 0.0, np.random.default_rng([seed, at]), settings)
        p = nightly(values, settings)
        for step in STEPS:
            moved = values[:, :each_seed].copy()
            moved[-NIGHTS:] += step
            moved_p = nightly(moved, settings)
            for one in range(each_seed):
                with_one = p.copy()
                with_one[:, one] = moved_p[:, one]
                for size, method in product(sizes, METHODS):
                    seen = np.flatnonzero(news(with_one[:, :size], method)[:, one])
                    night = seen[0] + 1.0 if len(seen) else np.inf
                    nights.setdefault((size, method, step), []).append(night)
    for size, method, step in product(sizes, METHODS, STEPS):
        yield size, method, step, nights[size, method, step]


def detections(series: int, seeds: int, each_seed: int, seed: int) -> str:
    found = nights_to_news(DEFAULTS, (20, series), seeds, each_seed, seed)
    rows = [
        [
            str(size),
            method,
            f"{step:g}",
            f"{np.isfinite(nights).mean():.0%}",
            *(_night(np.quantile(nights, share, method="higher")) for share in (0.5, 0.9)),
        ]
        for size, method, step, nights in found
    ]
    heads = ["series in the family", "control", "step", "seen in 60 nights"]
    return table([*heads, "median night", "90% by night"], rows)


def windows(series: int, seeds: int, each_seed: int, seed: int) -> str:
    rows = []
    for window in (28, 56, 84, 112):
        settings = DEFAULTS.model_copy(update={"window": window})
        cells = [
            f"{np.isfinite(nights).mean():.0%}"
            for _, method, step, nights in nights_to_news(
                settings, (20, series), seeds, each_seed, seed
            )
            if method == DEFAULTS.discoveries and step < 3
        ]
        rows.append([str(window), *cells])
    heads = [f"step of {step} among {size}" for size in (20, series) for step in (1, 2)]
    return table(["window", *heads], rows)


def _night(value: float) -> str:
    return f"{value:.0f}" if np.isfinite(value) else "later"


def change_point_rates(runs: int, seed: int) -> str:
    rng = np.random.default_rng(seed)
    rows = []
    for length in (30, 60, 120, 365):
        false = np.mean([bool(change_points(rng.normal(size=length))) for _ in range(runs)])
        cells = [f"{false:.1%}"]
        for step in (1.0, 2.0, 3.0):
            near = 0
            for _ in range(runs):
                values = rng.normal(size=length)
                values[length // 2 :] += step
                near += any(abs(c.index - length // 2) <= 3 for c in change_points(values))
            cells.append(f"{near / runs:.0%}")
        wild = 0
        for _ in range(runs):
            values = rng.normal(size=length)
            values[rng.integers(length)] += WILD
            wild += bool(change_points(values))
        rows.append([str(length), *cells, f"{wild / runs:.1%}"])
    heads = ["nights", "quiet series with a change", "step of 1 found within 3 nights"]
    return table([*heads, "step of 2", "step of 3", f"a change by one night {WILD:g} off"], rows)


def tables(quick: bool, seeds: int, series: int, seed: int) -> Iterator[tuple[str, str]]:
    """The measured tables, each with the name of its markers, as they get ready."""
    runs = 50 if quick else 40_000
    yield "known run lengths", known_run_lengths(runs, seed)
    size, nights = (20, 200) if quick else (500, 4000)
    yield "self-started run lengths", self_started_run_lengths(size, nights, seed)
    yield "new false shifts", false_shifts(seeds, seed)
    yield "delays", shift_delays(max(1, seeds // 8), seed)
    yield "false alarms", false_alarms(series, seeds, seed)
    yield "detections", detections(series, max(1, seeds // 4), 2 if quick else 10, seed)
    yield "windows", windows(series, max(1, seeds // 8), 2 if quick else 10, seed)
    yield "change points", change_point_rates(10 if quick else 4000, seed)
    years, groups, nights = (1, 30, 100) if quick else (10, 500, 365)
    yield "missing groups", missing_group_rates(years, groups, nights, seed)


@click.command(help=__doc__)
@click.option("--seeds", default=200, show_default=True, help="Simulations of 60 nights.")
@click.option("--series", default=500, show_default=True, help="Series followed each night.")
@click.option("--seed", default=1, show_default=True, help="Seed of the first simulation.")
@click.option("--quick", is_flag=True, help="Few and small simulations, to see that all runs.")
@click.option("--document", default=DOCUMENT, type=click.Path(path_type=Path), show_default=False)
def main(seeds: int, series: int, seed: int, quick: bool, document: Path) -> None:
    if quick:
        seeds, series = 2, 30
    fill(document, tables(quick, seeds, series, seed))


if __name__ == "__main__":
    main()
