"""What the slow versions of the metrics have in common: how a label is read, what a mean is.

What belongs here: nothing that is particular to a metric.  Like the slow versions, which are second
opinions straight from the definitions, it shares no code with what they check.  Rows are those of
``brute_force``: None, NaN or a missing key means unknown.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from brute_force import Row

Value = float | None

_LABEL = re.compile(r"(\w+)(?:\(([^()]*)\))?(?:@(\d+))?(?:\.(\w+))?")


@dataclass(frozen=True)
class Label:
    """The parts of a printed label; ``given`` holds parameters that it spells out, as text."""

    name: str
    given: dict[str, str]
    k: int | None
    reading: str | None


def parsed(label: str) -> Label:
    match = _LABEL.fullmatch(label)
    assert match is not None, label
    name, given, k, reading = match.groups()
    pairs = (pair.split("=") for pair in (given or "").split(",") if pair)
    return Label(name, dict(pairs), int(k) if k else None, reading)


def known(row: Row, column: str) -> bool:
    value = row.get(column)
    return value is not None and not math.isnan(value)


def mean(values: Iterable[Value]) -> Value:
    """Mean of those that there are, None where there are none."""
    found = [value for value in values if value is not None]
    return math.fsum(found) / len(found) if found else None
