"""Numbers that stand side by side, in the digits that tell them apart.

Here: a value, its limit, its interval and what is usual, each rounded once from the full value, as
a percentage, a multiple or a number.  Not here: one number by itself (``numbers``), and sentences
(``sentences``).
"""

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from math import isfinite

from metrics.aggregations import Unit
from pipeline.formatting.numbers import SIGNIFICANT, number

_DIGITS: Mapping[Unit, int] = {"number": SIGNIFICANT, "percent": 2, "times": 2}
"""Significant digits at least: a sentence with more claims more than a night can tell."""
_MOST = 8
"""Significant digits at most: what agrees in so many is equal to a reader."""


def texts_apart(
    values: Mapping[str, float | None], unit: Unit = "number", *, beside: float | None = None
) -> dict[str, str]:
    """The text of each value that there is, by its name.

    Where two unequal ones would read alike, or one like ``beside``, digits are added until they
    differ; a text that is exact stays as it is.

    >>> texts_apart({"value": 0.71996, "limit": 0.8, "usual": 0.9934}, "percent", beside=1.0)
    {'value': '72%', 'limit': '80%', 'usual': '99%'}
    >>> texts_apart({"value": 0.7996, "limit": 0.8, "upper": 0.9971}, "percent", beside=1.0)
    {'value': '79.96%', 'limit': '80%', 'upper': '99.7%'}
    >>> texts_apart({"value": 1.4142, "limit": 1.25}, "times")
    {'value': '1.4 times', 'limit': '1.3 times'}
    """
    known = {name: value for name, value in values.items() if value is not None}
    all_values = {**known, "": beside} if beside is not None else known
    digits = dict.fromkeys(all_values, _DIGITS[unit])
    while True:
        texts = {name: _text(value, unit, digits[name]) for name, value in all_values.items()}
        shown = {name: _shown(text, unit) for name, text in texts.items()}
        alike = {
            name
            for name, value in all_values.items()
            if digits[name] < _MOST
            and abs(shown[name] - value) > 1e-12 * abs(value)
            and any(
                shown[name] == shown[other] and value != each for other, each in all_values.items()
            )
        }
        if not alike:
            return {name: texts[name] for name in known}
        digits |= {name: digits[name] + 1 for name in alike}


def _text(value: float, unit: Unit, digits: int) -> str:
    if unit == "number" or not isfinite(value):
        return number(value, digits)
    if unit == "times":
        return f"{number(value, digits)} times"
    percent = Decimal(value) * 100
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(percent)
    if rounded and rounded.adjusted() >= digits:
        # All whole percents are told: 123%, not 120%.
        return f"{percent.quantize(Decimal(1), ROUND_HALF_UP):,}%"
    places = max(0, digits - 1 - rounded.adjusted()) if rounded else 0
    return f"{rounded:.{places}f}%"


def _shown(text: str, unit: Unit) -> float:
    """What a reader takes a text for."""
    shown = float(text.removesuffix("%").removesuffix(" times").replace(",", ""))
    return shown / 100 if unit == "percent" else shown
