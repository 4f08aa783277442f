"""What explaining a change found: for people, and as a document.

Not here: lines of a terminal (``cli.explain``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import floor, log10
from typing import Any

from pipeline.compare.batches.contributions import Change, Part, Split
from pipeline.compare.batches.partition import LEFT_OUT
from pipeline.formatting.numbers import counted, number

_MOSTLY = 2
"""How many times the other one of the two must be to be named alone.

Below that a reader should look at both; it is a matter of words, and no number depends on it."""
_FINEST = 12
"""Most decimals of a part that are shown: further down there is nothing but rounding."""


@dataclass(frozen=True)
class Side:
    """A score in one of two batches."""

    batch: str
    lists: int
    value: float
    worst_group: str | None


@dataclass(frozen=True)
class Explanation:
    """Why a score moved.

    ``splits`` by slice column, or by ``query``; ``refused`` says why others are not possible.
    ``attribute`` is None for scores without groups.
    """

    score: str
    attribute: str | None
    before: Side
    after: Side
    splits: Mapping[str, Split]
    refused: Mapping[str, str]

    def document(self) -> dict[str, Any]:
        """All of it as one JSON document."""
        return {
            "score": self.score,
            "attribute": self.attribute,
            "before": asdict(self.before),
            "after": asdict(self.after),
            "change": self.after.value - self.before.value,
            "by": {way: _document(each) for way, each in self.splits.items()},
            "not_split_by": dict(self.refused),
        }

    def verdict(self) -> Iterator[str]:
        """What happened, in a few lines of at most 80 characters where names are short."""
        a, b = self.before, self.after
        what = self.score + (f" of {self.attribute}" if self.attribute else "")
        change = b.value - a.value
        told = number(a.value), number(b.value)
        moved = f"{'rose' if change > 0 else 'fell'} from {told[0]} to {told[1]}"
        yield f"{what} {moved if change else f'stayed at {told[1]}'}"
        yield f"A {a.batch}, {counted(a.lists, 'list')}; B {b.batch}, {counted(b.lists, 'list')}"
        if b.worst_group is not None:
            same = a.worst_group in (b.worst_group, None)
            yield f"worst off: {b.worst_group}" + ("" if same else f" ({a.worst_group} in A)")
        for way, each in self.splits.items():
            show = signed(each)
            found = each.score
            yield (
                f"{show(found.change)} = mix {show(found.mix)}, "
                f"treatment {show(found.treatment)} (by {way}): {_reading(found)}"
            )
            if any(part.cell.rstrip() == LEFT_OUT for part in each.parts):
                yield f"{LEFT_OUT}: values of {way} about too few, together (privacy.min_cell)"
        for way, cause in self.refused.items():
            yield f"not split by {way}: {cause}"


def _reading(found: Change) -> str:
    mix, treatment = found.mix or 0.0, found.treatment or 0.0
    if max(abs(mix), abs(treatment)) == 0:
        return "nothing moved"
    if abs(treatment) >= _MOSTLY * abs(mix):
        return "mostly treatment"
    if abs(mix) >= _MOSTLY * abs(treatment):
        return "mostly mix"
    return "both" if mix * treatment > 0 else "opposed"


class Signed:
    """Parts of one change as texts, all with as many decimals as the largest needs."""

    def __init__(self, *numbers: float | None) -> None:
        self.largest = max((abs(each) for each in numbers if each is not None), default=0.0)
        places = 2 - floor(log10(self.largest)) if self.largest > 0 else 0
        self.places = min(max(places, 0), _FINEST)

    def __call__(self, number: float | None) -> str:
        """``number`` with its sign; what rounds to nothing is 0."""
        if number is None:
            return ""
        text = f"{number:+,.{self.places}f}"
        return text if text.strip("+-0.,") else "0"


def signed(found: Split) -> Signed:
    """How the parts of one split are told."""
    return Signed(found.score.change, found.score.mix, found.score.treatment)


def rest_of(parts: tuple[Part, ...], shown: int) -> tuple[int, float, float]:
    """How many parts come after the first ``shown``, and what their mix and treatment add up to."""
    left = parts[shown:]
    return len(left), sum(each.mix for each in left), sum(each.treatment for each in left)


def _document(found: Split) -> dict[str, Any]:
    return {
        "score": asdict(found.score),
        "groups": {group: asdict(each) for group, each in found.groups.items()},
        "lists_in_shared_cells": {"before": found.shared_before, "after": found.shared_after},
        "turnover": found.turnover,
        "parts": [_part(each) for each in found.parts],
    }


def _part(part: Part) -> dict[str, Any]:
    groups = {
        group: None if each is None else dict(zip(("mix", "treatment"), each, strict=True))
        for group, each in part.groups.items()
    }
    return {**asdict(part), "groups": groups}
