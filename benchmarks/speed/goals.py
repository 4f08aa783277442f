"""What is aimed at, and the numbers of a round that say how near it is."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from speed.rounds import Results

Round = Mapping[str, Any]
Number = Callable[[Round], float]


def beside(other: str) -> Number:
    """CPU seconds as multiples of those of another entry, in the same round."""
    return lambda found: found["cpu"] / found["against"][other]


def spent(found: Round) -> float:
    """CPU seconds."""
    return float(found["cpu"])


def clock(found: Round) -> float:
    """Seconds on the clock."""
    return float(found["wall"])


def gigabytes(found: Round) -> float:
    """The most memory held."""
    return float(found["peak"]) / 1e9


def between(one: str, other: str) -> Number:
    """One step as a multiple of another."""
    return lambda found: found["steps"][one] / found["steps"][other]


@dataclass(frozen=True)
class Goal:
    """A bound to reach, and one beyond; ``more`` where a larger number is the better one."""

    text: str
    entry: str
    number: Number
    reach: float | None
    beyond: float
    unit: str = "x"
    more: bool = False
    size: str | None = None
    """The size at which it is measured, where that is not the one of the page."""

    def said(self, bound: float | None) -> str:
        """A bound with its unit."""
        if bound is None:
            return "-"
        return f"{bound:,g}x" if self.unit == "x" else f"{bound:g} {self.unit}"

    def met(self, value: float) -> str:
        """Whether a number is at its bounds."""
        sign = -1 if self.more else 1
        if sign * value <= sign * self.beyond:
            return "beyond"
        return "met" if self.reach is not None and sign * value <= sign * self.reach else "not met"


_OURS = between("theirs", "ours")
GOALS = (
    Goal("rank histogram alone", "histogram", beside("floor-integer"), 1.5, 1.1),
    Goal("ten metrics, integer ids", "ten-integer", beside("floor-integer"), 6, 4.3),
    Goal("ten metrics, text ids", "ten-text", beside("floor-text"), 4.5, 3.2),
    Goal("ten metrics, rows shuffled", "ten-shuffled", beside("floor-shuffled"), 6, 4.5),
    Goal("20 groups against 4", "groups-20", beside("plain"), 1.5, 1.2),
    Goal("rules and gate, integer ids", "check-integer", beside("floor-integer"), 3, 2.5),
    Goal("rules and gate, text ids", "check-text", beside("floor-text"), 3, 2.5),
    Goal("rules and gate, rows shuffled", "check-shuffled", beside("floor-shuffled"), 3, 2.5),
    Goal("`evenrank run`, whole process", "run", beside("floor-text"), 12, 9),
    Goal("intervals, 1,000 lists", "intervals-1k", spent, 1, 0.5, "CPU s"),
    Goal("intervals, 10,000 lists", "intervals-10k", spent, 1, 0.5, "CPU s"),
    Goal("intervals, 100,000 lists", "intervals-100k", spent, 1, 0.5, "CPU s"),
    Goal("memory, 100M rows", "memory-text", gigabytes, 1, 0.5, "GB", size="100M"),
    Goal("memory, 100M rows shuffled", "memory-shuffled", gigabytes, 1.5, 1.2, "GB", size="100M"),
    Goal("FairRankTune 0.0.7 over this", "fairranktune", _OURS, 300, 500, more=True),
    Goal("pytrec_eval over this", "quality-pytrec_eval", _OURS, 2, 5, more=True),
    Goal("ranx over this", "quality-ranx", _OURS, 2, 5, more=True),
    Goal("`evenrank --help`", "help", clock, None, 0.3, "s"),
    Goal("`evenrank score`, 1,000 rows", "score-1000", clock, None, 1.5, "s"),
    Goal("30 batches, one job over two", "jobs", between("wall1", "wall2"), 1.8, 1.9, more=True),
)


def numbers(results: Results, entry: str, number: Number) -> list[float]:
    """A number of every round of an entry; nothing where it failed or was not measured."""
    return [number(found) for found in results.get(entry, {}).get("rounds", ())]


def spread(values: list[float]) -> str:
    """Median and range."""
    if len(values) == 1:
        return short(values[0])
    ends = f"{short(min(values))}-{short(max(values))}"
    return f"{short(statistics.median(values))} ({ends})"


def short(value: float) -> str:
    """Three significant digits, and no more places than they need."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"
