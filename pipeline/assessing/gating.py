"""Which batches are unlike those before them, so that their scores are not judged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.assessing.subjects import Row
from pipeline.settings import Gate
from pipeline.trends import Facts, Gated, tested


@dataclass(frozen=True)
class Releases:
    """Batches with which a release begins, in key order."""

    first_batches: tuple[str, ...]

    def of(self, batch: str) -> str:
        """First batch of the release that ``batch`` belongs to; '' before any."""
        return max((first for first in self.first_batches if first <= batch), default="")


def gates_of(
    batches: Sequence[str],
    start: int,
    facts: Mapping[str, Facts],
    failed: set[str],
    releases: Releases,
    limits: Gate,
) -> dict[str, tuple[tuple[Gated, ...], int]]:
    """What each gate says about ``batches`` from ``start`` on, and about how many before it.

    ``failed`` are earlier batches that a gate kept out.  Compared are the last ``limits.window``
    batches of the same release that passed, at most twice the window back.
    """
    out = set(failed)
    found = {}
    for at in range(start, len(batches)):
        batch, release = batches[at], releases.of(batches[at])
        near = batches[max(0, at - 2 * limits.window) : at]
        usable = [each for each in near if each >= release and each not in out and each in facts]
        before = [facts[each] for each in usable[-limits.window :]]
        said = tested(facts[batch], before, limits) if batch in facts else ()
        if not all(gate.passed for gate in said):
            out.add(batch)
        found[batch] = (said, len(before))
    return found


def gate_rows(found: Mapping[str, tuple[tuple[Gated, ...], int]]) -> list[Row]:
    """Rows of the table gates."""
    return [
        {
            "batch": batch,
            "gate": gate.gate,
            "attribute": gate.attribute,
            "value": gate.value,
            "usual": gate.usual,
            "distance": gate.distance,
            "allowed": gate.limit,
            "passed": gate.passed,
            "text": gate.text,
            "baseline": baseline,
        }
        for batch, (said, baseline) in found.items()
        for gate in said
    ]


def reason_of(said: Sequence[Gated]) -> str | None:
    """Why verdicts are gated, as a status_reason: the first gate that failed; None if none did."""
    for gate in said:
        if not gate.passed:
            return f"gate_{gate.gate}" + (f": {gate.attribute}" if gate.attribute else "")
    return None
