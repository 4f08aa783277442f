"""What of a column is enough to see that all its values pass: the least and the greatest.

Every check of a number is an interval, so that what both ends pass, all between them pass too, and
pandera need not look at each row.  A check that is no interval is refused here, when the rules are
imported: nothing would prove it.

Not here: the rules (``rules``), and looking at rows one by one (``offenders``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.columns import Column

_BOUNDS: Mapping[str, tuple[str | None, str | None]] = {
    "greater_than": ("min_value", None),
    "greater_than_or_equal_to": ("min_value", None),
    "less_than": (None, "max_value"),
    "less_than_or_equal_to": (None, "max_value"),
    "in_range": ("min_value", "max_value"),
}
"""Checks of pandera that are intervals, and what they call their ends."""


@dataclass(frozen=True)
class Interval:
    """All numbers from ``low`` to ``high``; an open end is no part of it."""

    low: float
    high: float
    open_low: bool
    open_high: bool

    def holds(self, low: float, high: float) -> bool:
        """Whether all from ``low`` to ``high`` lies within; false where either is NaN."""
        above = low > self.low if self.open_low else low >= self.low
        below = high < self.high if self.open_high else high <= self.high
        return above and below


def interval_of(column: Column) -> Interval:
    """What the checks of a column of numbers allow; TypeError where a check is no interval."""
    low, high = float("-inf"), float("inf")
    open_low = open_high = False
    for check in column.checks:
        if check.name not in _BOUNDS:
            raise TypeError(
                f"{column.name}: the check {check.name} is no interval; extremes cannot prove it"
            )
        given: Mapping[str, Any] = check.statistics or {}
        least, most = _BOUNDS[str(check.name)]
        if least is not None and float(given[least]) >= low:
            low = float(given[least])
            open_low = check.name == "greater_than" or not given.get("include_min", True)
        if most is not None and float(given[most]) <= high:
            high = float(given[most])
            open_high = check.name == "less_than" or not given.get("include_max", True)
    return Interval(low, high, open_low, open_high)
