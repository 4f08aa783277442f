"""Numbers, moments and names as people read them.

Here: one value, one text.  Not here: whole lines or tables (``pipeline.terminal``), the page's
script (``pipeline.publish.page``).
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from math import isfinite
from typing import Any

from metrics import WHOLE


def counted(number: int, what: str) -> str:
    """``1 row``, ``2 rows``."""
    plural = "es" if what.endswith("ch") else "s"
    return f"{number:,} {what}{'' if number == 1 else plural}"


SIGNIFICANT = 3
"""Significant digits that people read: more would claim a precision that few scores have."""


def number(value: float | None, digits: int = SIGNIFICANT) -> str:
    """Three significant digits, of one that lies half-way the larger; none for no value.

    The page's script writes the same texts (``numbers.js``).

    >>> number(0.71996), number(1234.5), number(0.0), number(None), number(2.5e-7)
    ('0.720', '1,235', '0', 'none', '2.50e-7')
    """
    if value is None:
        return "none"
    if value == 0:
        return "0"
    if not isfinite(value):
        return str(value)
    exact = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(value)
    size = abs(value)
    if size >= 1e6 or size < 1e-4:
        mantissa, power = f"{exact:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(power)}"
    if size >= 10**digits - 0.5:
        return f"{Decimal(value).quantize(Decimal(1), ROUND_HALF_UP):,}"
    return f"{exact:.{digits - 1 - exact.adjusted()}f}"


def slice_name(name: str, value: str) -> str:
    """A slice as people say it."""
    return "whole batch" if name == WHOLE else f"{name}: {value}"


def utc(moment: datetime) -> str:
    """A moment, with its zone written out.

    >>> utc(datetime(2026, 1, 31, 3, 5))
    '2026-01-31 03:05 UTC'
    """
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def score_text(value: float | None, reason: str | None) -> str:
    """A score in three significant digits, or why there is none."""
    return f"none ({reason})" if value is None else number(value)


def interval_text(lower: float | None, upper: float | None) -> str:
    """The ends of an interval; an end that is not known is left open."""
    if lower is None and upper is None:
        return ""
    return " to ".join("" if end is None else number(end) for end in (lower, upper)).strip()


def part_text(row: Mapping[str, Any]) -> str:
    """The part of a batch that a row is about: ``all``, or a slice and its value."""
    return "all" if row["slice"] == "all" else f"{row['slice']} {row['slice_value']}"
