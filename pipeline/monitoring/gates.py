"""Which batches are not whole, or unlike those before them, so that they are not judged.

Not here: the tests (``trends.gates``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.settings.sections import Gate
from pipeline.trends import ABSOLUTE, GATES, Facts, Gated, tested
from schemas.columns import Row
from schemas.history import IdsDiffer

TEXT_OF_DIFFERENCE = {each.value: each.text for each in IdsDiffer}
CHANGE_WITH_RELEASE = ("list_length", "group_mix")
"""Gates on what a release may change on purpose; the others are about the data that came in."""


@dataclass(frozen=True)
class Releases:
    """Batches with which a release begins, in key order; ``marked`` are those that people named."""

    first_batches: tuple[str, ...]
    marked: tuple[str, ...] = ()

    def of(self, batch: str) -> str:
        """First batch of the release that ``batch`` belongs to; '' before any."""
        return _last(self.first_batches, batch)

    def data_of(self, batch: str) -> str:
        """First batch since which data is meant to be as it is now; '' for always.

        That a log names another model says nothing of the data; somebody who marks a batch does.
        """
        return _last(self.marked, batch)


def _last(first_batches: Sequence[str], batch: str) -> str:
    return max((first for first in first_batches if first <= batch), default="")


def gates_of(
    batches: Sequence[str],
    start: int,
    facts: Mapping[str, Facts],
    failed: set[str],
    releases: Releases,
    limits: Gate,
) -> dict[str, tuple[tuple[Gated, ...], tuple[int, ...]]]:
    """What each gate says about ``batches`` from ``start`` on, and about how many before it.

    ``failed`` are earlier batches that a gate kept out.  Compared are the last ``limits.window``
    batches that passed, at most twice the window back, and since the last marker that counts.
    """
    out = set(failed)
    found = {}
    for at in range(start, len(batches)):
        batch = batches[at]
        near = batches[max(0, at - 2 * limits.window) : at]
        usable = [each for each in near if each not in out and each in facts]
        said = []
        for changes, first in ((True, releases.of(batch)), (False, releases.data_of(batch))):
            of_use = [each for each in usable if each >= first][-limits.window :]
            before = [facts[each] for each in of_use]
            gates = tested(facts[batch], before, limits) if batch in facts else ()
            of_kind = (gate for gate in gates if (gate.gate in CHANGE_WITH_RELEASE) == changes)
            said += [(gate, 0 if gate.gate in ABSOLUTE else len(before)) for gate in of_kind]
        said.sort(key=lambda each: GATES.index(each[0].gate))
        if not all(gate.passed for gate, _ in said):
            out.add(batch)
        found[batch] = (tuple(gate for gate, _ in said), tuple(count for _, count in said))
    return found


def join_gate(rows: int, joined: int | None, differ: str | None, limits: Gate) -> Gated | None:
    """What the gate on the item table says of a batch by itself; None where it says nothing.

    ``differ`` is what ids differ in, as the manifest has it.
    """
    facts = Facts(rows, 0, 0, 0, {}, {}, joined, TEXT_OF_DIFFERENCE.get(differ or ""))
    said = [gate for gate in tested(facts, (), limits) if gate.gate in ABSOLUTE]
    return said[0] if said else None


def gate_rows(found: Mapping[str, tuple[tuple[Gated, ...], tuple[int, ...]]]) -> list[Row]:
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
        for batch, (said, baselines) in found.items()
        for gate, baseline in zip(said, baselines, strict=True)
    ]


def reason_of(said: Sequence[Gated]) -> str | None:
    """Why verdicts are gated, as a status_reason: the first gate that failed; None if none did."""
    for gate in said:
        if not gate.passed:
            return f"gate_{gate.gate}" + (f": {gate.attribute}" if gate.attribute else "")
    return None
