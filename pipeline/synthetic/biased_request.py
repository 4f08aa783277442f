"""What may be asked of biased rankings and of their days, in plain values.

Not here: whether it can be met (``biased_checks``), what follows from it (``biased``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

Slices = Mapping[str, Mapping[str, float] | Sequence[str]]
Order = Literal["smallest", "largest", "given"]
Judgements = Literal["graded", "binary", "none"]
Clicks = Literal["log", "power", "none"]


def shares_of(values: Mapping[str, float] | Sequence[str]) -> Mapping[str, float]:
    """Shares by value; values alone have equal ones, and a text is one value."""
    if isinstance(values, str):
        return {values: 1.0}
    return values if isinstance(values, Mapping) else dict.fromkeys(values, 1.0)


@dataclass(frozen=True)
class BiasedRequest:
    """What is asked for, unchecked; ``BiasedRankings`` says what each value means."""

    groups: Mapping[str, float]
    phi: float
    items: int = 2000
    length: int | tuple[int, int] = 20
    candidates: int | None = None
    order: Order = "smallest"
    attribute: str = "group"
    slices: Slices = field(default_factory=dict)
    relevance: Judgements = "graded"
    correlation: float = 0.7
    mean_relevance: float = 0.5
    group_gap: float = 0.0
    clicks: Clicks = "log"
    eta: float = 1.0
    click_noise: float = 0.0
    propensity: bool = False
    seed: int = 7

    @property
    def lengths(self) -> tuple[int, int]:
        """The fewest and the most rows of a list."""
        if isinstance(self.length, Sequence):
            fewest, most = self.length
            return fewest, most
        return self.length, self.length


@dataclass(frozen=True)
class BiasedIncidents:
    """Days on which something is wrong.

    ``unfair`` gives the phi of days that have another one, everywhere or only in lists with these
    slice values: ``only={"market": "de"}``.  On a ``broken`` day a few lists hold rows that no
    ranking can have; of a ``missing`` day there is no log.
    """

    unfair: Mapping[date, float] = field(default_factory=dict)
    broken: Sequence[date] = ()
    missing: Sequence[date] = ()
    only: Mapping[str, str] = field(default_factory=dict)
