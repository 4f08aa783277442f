"""Numbers as they travel to the script, which rounds each once, as everything else does.

Values travel whole.  Ends of intervals of groups, which are mostly drawn, are cut so that the
script still reads them right.

Not here: which numbers (``columns``, ``document``), and how they read (``formatting.numbers``).
"""

from decimal import ROUND_05UP, Context
from math import isfinite
from typing import Any

_CUT = Context(prec=6, rounding=ROUND_05UP)
_LARGE = 999


def whole(value: float | None) -> float | None:
    """A number as it travels; none for one that JSON cannot hold."""
    return value if value is not None and isfinite(value) else None


def cut(value: float | None) -> float | None:
    """A number in six digits, which reads in up to five like the whole one: half-ways stay apart.

    >>> cut(0.123456789), cut(0.50000001), cut(0.0625), cut(None)
    (0.123456, 0.500001, 0.0625, None)
    """
    known = whole(value)
    # Large ones are read to the last whole number.
    if known is None or abs(known) >= _LARGE:
        return known
    return float(_CUT.create_decimal_from_float(known))


def plain(value: Any) -> Any:
    """A value of any column as JSON can hold it."""
    return whole(value) if isinstance(value, float) else value
