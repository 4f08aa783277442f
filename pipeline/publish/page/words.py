"""The headline of the page: whether the newest batch is bad, in one sentence.

Not here: numbers, moments and names (``formatting.numbers``), and what alerts say.
"""

from collections.abc import Mapping
from typing import Any

from pipeline.formatting.numbers import counted


def headline(newest: str | None, batch: Mapping[str, Any] | None) -> tuple[str, str | None]:
    """The one sentence, and the verdict whose look it has."""
    if newest is None or batch is None:
        return "No batch has been scored yet", None
    if not batch["scores"]:
        return f"{newest}: its scores are kept back, as they are about too few", None
    breaches, gated, doubtful = batch["breach"], batch["gated"], batch["insufficient"]
    mixed = batch["composition"]
    if breaches:
        whose = "its threshold" if breaches == 1 else "their thresholds"
        return f"{newest}: {_scores(breaches)} beyond {whose}", "breach"
    if gated:
        return f"{newest}: not judged, as a data gate is closed", "gated"
    if mixed:
        also = f"; {_scores(doubtful)} cannot be judged with confidence" if doubtful else ""
        verb, whose = ("is", "its threshold") if mixed == 1 else ("are", "their thresholds")
        return (
            f"{newest}: no breach, but {_scores(mixed)} {verb} beyond {whose} as lists in "
            f"random order would be{also}",
            "composition",
        )
    if doubtful:
        return (
            f"{newest}: no breach, but {_scores(doubtful)} cannot be judged with confidence",
            "insufficient",
        )
    if batch["ok"]:
        return f"{newest}: no score breaches its threshold", "ok"
    if batch["undefined"]:
        return f"{newest}: no score with a threshold has a value", "undefined"
    return f"{newest}: scored, but no thresholds are set", "not_judged"


def _scores(count: int) -> str:
    return counted(count, "score")
