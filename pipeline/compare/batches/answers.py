"""What a change and its parts come to: one cause, or none, and a sentence that says so.

Not here: intervals (``uncertainty``), which cells answer (``request_cells``), tables (``report``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.compare.batches.contributions import NOTHING, Change, Ends
from pipeline.compare.batches.uncertainty import Resamples, ends
from pipeline.formatting.numbers import number
from pipeline.formatting.signed import Signed

NO_CHANGE, MIX, TREATMENT, BOTH, UNCLEAR, UNKNOWN = (
    *("no_change", "mix", "treatment", "both"),
    *("unclear", "unknown"),
)
"""Causes: UNCLEAR is a change beyond chance of which no part is, UNKNOWN what has no intervals."""
_MEANING = {MIX: "other requests", TREATMENT: "other answers to the same requests"}


@dataclass(frozen=True)
class Estimate:
    """A number with its interval; an end is None where there is none."""

    value: float
    lower: float | None = None
    upper: float | None = None

    @property
    def is_certain(self) -> bool:
        """Whether the interval excludes 0."""
        return (
            self.lower is not None
            and self.upper is not None
            and not self.lower <= 0.0 <= self.upper
        )


@dataclass(frozen=True)
class Answer:
    """Why a score moved: the one division that answers, and what follows from it.

    ``by`` are the columns of its cells, empty where the change has no division.  The interval of
    the change is its own; those of mix and treatment hold at once.  ``reason`` says why there is no
    division, or no interval.
    """

    by: tuple[str, ...]
    change: Estimate
    mix: Estimate | None
    treatment: Estimate | None
    confidence: float
    shared: tuple[float, float] | None = None
    reason: str | None = None

    @property
    def cause(self) -> str:
        """The cause as one word.

        None is named where the change may be chance; else those whose own interval excludes 0.
        """
        if self.change.lower is None or self.change.upper is None:
            return UNKNOWN
        if not self.change.is_certain:
            return NO_CHANGE
        if self.mix is None or self.treatment is None or self.mix.lower is None:
            return UNKNOWN
        named = [
            cause
            for cause, part in ((MIX, self.mix), (TREATMENT, self.treatment))
            if part.is_certain
        ]
        return (named[0] if len(named) == 1 else BOTH) if named else UNCLEAR

    def sentence(self, what: str, before: float, after: float) -> str:
        """What happened to ``what``, from what to what, how sure that is, and why."""
        show = Signed(self.change.value, self.change.lower, self.change.upper)
        told = f"change {show(self.change.value)}"
        if self.change.lower is not None and self.change.upper is not None:
            told += (
                f", {self.confidence:.0%} interval {show(self.change.lower)} to "
                f"{show(self.change.upper)}"
            )
        if self.by:
            told += f"; by {joined(self.by)}"
        a, b = number(before), number(after)
        cause = self.cause
        if cause == NO_CHANGE:
            return f"{what}: no change beyond chance, {a} before and {b} now ({told})."
        moved = "rose" if after > before else "fell"
        moved = f"{moved} from {a} to {b}" if after != before else f"stayed at {b}"
        return f"{what} {moved}{self._why(cause)} ({told})."

    def _why(self, cause: str) -> str:
        if cause in _MEANING:
            return f", mostly by {cause}: {_MEANING[cause]}"
        if cause == UNKNOWN:
            head = "beyond chance, but why" if self.change.is_certain else "whether by chance"
            return f", {head} is not known: {self.reason}"
        if cause == UNCLEAR:
            return " beyond chance, but neither mix nor treatment is so by itself"
        parts = {MIX: self.mix, TREATMENT: self.treatment}
        values = {name: part.value for name, part in parts.items() if part is not None}
        show = Signed(*values.values())
        first, second = sorted(values, key=lambda name: -abs(values[name]))
        return f", by both {first} ({show(values[first])}) and {second} ({show(values[second])})"

    def document(self, what: str, before: float, after: float) -> dict[str, Any]:
        """The answer as a part of a JSON document."""
        return {
            "sentence": self.sentence(what, before, after),
            "cause": self.cause,
            "by": list(self.by),
            "change": _estimate(self.change),
            "mix": _estimate(self.mix),
            "treatment": _estimate(self.treatment),
            "confidence": self.confidence,
            "lists_in_shared_cells": None
            if self.shared is None
            else dict(zip(("before", "after"), self.shared, strict=True)),
            "reason": self.reason,
        }


def _estimate(found: Estimate | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    return {"value": found.value, "lower": found.lower, "upper": found.upper}


def joined(names: Sequence[str]) -> str:
    """Names as a sentence has them: ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def answered(
    by: tuple[str, ...],
    score: Change,
    shared: tuple[float, float],
    resamples: Resamples,
    confidence: float,
    others: Sequence[tuple[Change, Resamples]] = (),
) -> Answer:
    """The answer of one division, whose ``score`` has parts.

    ``others`` are divisions of which it was chosen for its mix: intervals hold for theirs as well.
    """
    change = Estimate(*_plain(score.change), *change_ends(score, resamples, confidence))
    every = [(score, resamples), *others]
    values = np.array(
        [n for each, _ in every for n in (*_plain(each.mix), *_plain(each.treatment))]
    )
    drawn = np.stack(
        [part[:, 0] for _, each in every for part in (each.mix, each.treatment)], axis=1
    )
    queries = np.repeat([each.queries for _, each in every], 2)
    mix, treatment = ends(values, drawn, queries, confidence)[:2]
    return Answer(
        by,
        change,
        Estimate(*_plain(score.mix), *mix),
        Estimate(*_plain(score.treatment), *treatment),
        confidence,
        shared,
        None if mix != NOTHING else "too few queries for intervals",
    )


def without_parts(
    score: Change, resamples: Resamples | None, reason: str, confidence: float
) -> Answer:
    """What is left where no division can answer: the change itself, and ``reason``."""
    known = NOTHING if resamples is None else change_ends(score, resamples, confidence)
    change = Estimate(*_plain(score.change), *known)
    return Answer((), change, None, None, confidence, reason=reason)


def without_intervals(
    by: tuple[str, ...],
    score: Change,
    shared: tuple[float, float],
    reason: str | None,
    confidence: float,
) -> Answer:
    """A division of which nobody knows how sure it is."""
    change, mix, treatment = (
        Estimate(*_plain(each)) for each in (score.change, score.mix, score.treatment)
    )
    return Answer(by, change, mix, treatment, confidence, shared, reason)


def change_ends(score: Change, resamples: Resamples, confidence: float) -> Ends:
    """Ends of the interval of a change."""
    value, queries = np.array(_plain(score.change)), np.array([resamples.queries])
    return ends(value, resamples.change[:, :1], queries, confidence)[0]


def furthest(divisions: Mapping[str, tuple[Change, Resamples | None]]) -> str:
    """The division whose mix is furthest from 0, in standard errors where there are any."""

    def distance(way: str) -> tuple[float, float]:
        score, resamples = divisions[way]
        size = abs(score.mix or 0.0)
        if resamples is None:
            return size, size
        error = float(np.nanstd(resamples.mix[:, 0]))
        return (size / error if error > 0 else 0.0), size

    return max(divisions, key=distance)


def _plain(value: float | None) -> tuple[float]:
    return (np.nan if value is None else value,)
