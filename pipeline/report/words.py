"""What the page says in words: the headline, slices, numbers in three digits, times in UTC."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from metrics import WHOLE
from pipeline.rejects import counted

_DIGITS = 3


def number(value: float | None) -> str:
    """Three significant digits; none for no value.

    >>> number(0.71996), number(1234.5), number(0.0), number(None), number(2.5e-7)
    ('0.720', '1,234', '0', 'none', '2.50e-7')
    """
    if value is None:
        return "none"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-4:
        digits, power = f"{value:.{_DIGITS - 1}e}".split("e")
        return f"{digits}e{int(power)}"
    if size >= 1000:
        return f"{value:,.0f}"
    return f"{value:#.{_DIGITS}g}".removesuffix(".")


def slice_name(name: str, value: str) -> str:
    """A slice as people say it."""
    return "whole batch" if name == WHOLE else f"{name}: {value}"


def utc(moment: datetime) -> str:
    """A moment, with its zone written out.

    >>> utc(datetime(2026, 1, 31, 3, 5))
    '2026-01-31 03:05 UTC'
    """
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def headline(newest: str | None, batch: Mapping[str, Any] | None) -> tuple[str, str | None]:
    """The one sentence, and the verdict whose look it has."""
    if newest is None or batch is None:
        return "No batch has been scored yet", None
    if not batch["scores"]:
        return f"{newest}: its scores are kept back, as they are about too few", None
    breaches, gated, doubtful = batch["breach"], batch["gated"], batch["insufficient"]
    if breaches:
        whose = "its threshold" if breaches == 1 else "their thresholds"
        return f"{newest}: {_scores(breaches)} beyond {whose}", "breach"
    if gated:
        return f"{newest}: not judged, as it is unlike the batches before it", "gated"
    if doubtful:
        return (
            f"{newest}: no breach, but {_scores(doubtful)} cannot be told for sure",
            "insufficient",
        )
    if batch["ok"]:
        return f"{newest}: no score is beyond its threshold", "ok"
    if batch["undefined"]:
        return f"{newest}: no score with a threshold has a value", "undefined"
    return f"{newest}: scored, but no thresholds are set", "not_judged"


def _scores(count: int) -> str:
    return counted(count, "score")
