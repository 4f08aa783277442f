"""What explaining a change found: for people, and as a document.

Not here: lines of a terminal (``cli.explain``).
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pipeline.compare.batches.answers import Answer
from pipeline.compare.batches.contributions import Part, Split
from pipeline.compare.batches.partition import LEFT_OUT
from pipeline.formatting.numbers import counted
from pipeline.formatting.signed import Signed


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

    ``answer`` is by one division; ``splits`` by slice column, or by ``query``, are its details, and
    ``refused`` says why others are not possible.
    ``attribute`` is None for scores without groups.
    """

    score: str
    attribute: str | None
    before: Side
    after: Side
    answer: Answer
    splits: Mapping[str, Split]
    refused: Mapping[str, str]

    def document(self) -> dict[str, Any]:
        """All of it as one JSON document."""
        return {
            "score": self.score,
            "attribute": self.attribute,
            "answer": self.answer.document(self.what, self.before.value, self.after.value),
            "before": asdict(self.before),
            "after": asdict(self.after),
            "change": self.after.value - self.before.value,
            "by": {way: _document(each) for way, each in self.splits.items()},
            "not_split_by": dict(self.refused),
        }

    @property
    def what(self) -> str:
        """The score, and of which attribute."""
        return self.score + (f" of {self.attribute}" if self.attribute else "")

    @property
    def sentence(self) -> str:
        """What happened, in one sentence."""
        return self.answer.sentence(self.what, self.before.value, self.after.value)

    def remarks(self) -> Iterator[str]:
        """What the answer is about, in a few lines."""
        a, b = self.before, self.after
        yield f"A {a.batch}, {counted(a.lists, 'list')}; B {b.batch}, {counted(b.lists, 'list')}"
        if b.worst_group is not None:
            same = a.worst_group in (b.worst_group, None)
            yield f"worst off: {b.worst_group}" + ("" if same else f" ({a.worst_group} in A)")
        for way, each in self.splits.items():
            if any(part.cell.rstrip() == LEFT_OUT for part in each.parts):
                yield f"{LEFT_OUT}: values of {way} about too few, together (privacy.min_cell)"
        for way, cause in self.refused.items():
            yield f"not split by {way}: {cause}"


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
