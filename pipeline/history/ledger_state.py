"""What the ledger says the store holds: its entries, added up.

Not here: whether the store does hold it (``integrity``).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pipeline.errors import StoreDamaged
from pipeline.history.holdings import Holdings
from pipeline.history.ledger import HOLDS, WHOLE, WITHOUT_ROWS, Line
from schemas.columns import Row

TOLD = (
    "batch",
    "status",
    "revision",
    "run_id",
    "input_hash",
    "config_hash",
    "code_version",
    "result_hash",
)
"""Columns of the manifest that the ledger repeats."""


@dataclass
class Told:
    """What there should be.

    ``batches``: the last attempt at each, as the manifest has it; ``files``: digests of the file of
    each, the current one last, with the line that says so; ``merged``: digests of files whose
    result the history took; ``revisions``: digests of results, None where nobody knows;
    ``actions`` and ``marks`` of people; batches whose file is ``without_rows``, which were removed.
    ``holds``: digests of what the history holds, which are of all of it where it is ``vouched``.
    """

    batches: dict[str, Line] = field(default_factory=dict)
    files: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)
    revisions: dict[tuple[str, int], str | None] = field(default_factory=dict)
    actions: list[Row] = field(default_factory=list)
    marks: list[Row] = field(default_factory=list)
    without_rows: set[str] = field(default_factory=set)
    from_the_start: bool = True
    holds: Holdings = field(default_factory=dict)
    vouched: bool = False

    @property
    def current(self) -> dict[str, str]:
        """The digest that the file of each batch should have."""
        return {batch: digests[-1][0] for batch, digests in self.files.items()}


def told_by(entries: Iterable[Line]) -> Told:
    """What a store holds after ``entries``; StoreDamaged where one says what none can say."""
    state = Told()
    for entry in entries:
        try:
            _add(state, entry)
            _hold(state, entry)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise StoreDamaged(
                f"line {entry['line']} of the ledger says what no run has written; put the ledger "
                "back from a backup, or take it away: `evenrank rebuild` begins a new one"
            ) from None
    return state


def _add(state: Told, entry: Line) -> None:
    match entry["event"]:
        case "begin" | "rebuild":
            state.batches.clear()
            for row in entry["batches"]:
                _batch(state, row, entry["line"])
            state.revisions = {(batch, number): said for batch, number, said in entry["results"]}
            state.actions, state.marks = entry["actions"], entry["marks"]
        case "merge":
            _batch(state, entry, entry["line"])
            state.merged[entry["batch"]] = entry["sha256"]
        case "note":
            _batch(state, entry, entry["line"])
        case "file":
            _file(state, entry, entry["line"])
        case "forget":
            _forget(state, entry["batch"], {*entry["alerts"]})
        case "act":
            state.actions += entry["actions"]
        case "mark":
            state.marks.append(entry["marker"])
        case "unmark":
            batch = entry["marker"]["batch"]
            state.marks = [mark for mark in state.marks if mark["batch"] != batch]


def _forget(found: Told, batch: str, alerts: set[str]) -> None:
    """Of a batch that was forgotten nothing should be there, nor of alerts about it alone."""
    for by_batch in (found.batches, found.files, found.merged):
        by_batch.pop(batch, None)
    found.revisions = {key: said for key, said in found.revisions.items() if key[0] != batch}
    found.actions = [action for action in found.actions if action["alert"] not in alerts]
    found.without_rows.discard(batch)


def _hold(state: Told, entry: Line) -> None:
    said = entry.get(HOLDS)
    if entry["event"] in WHOLE or said is None:
        # What an older version wrote, nobody has digested.
        state.holds, state.vouched = {}, said is not None
    for part, digests in (said or {}).items():
        state.holds.setdefault(part, {}).update(digests)


def _batch(found: Told, row: Line, line: int) -> None:
    found.batches[row["batch"]] = {**row, "line": line}
    if row["status"] == "done":
        found.revisions[row["batch"], row["revision"]] = row["result_hash"]
    elif row["revision"]:
        # An attempt that failed leaves the scores of an earlier one.
        found.revisions.setdefault((row["batch"], row["revision"]), None)
    _file(found, row, line)


def _file(found: Told, row: Line, line: int) -> None:
    if "sha256" not in row:
        return
    batch, digests = row["batch"], found.files.setdefault(row["batch"], [])
    if not digests or digests[-1][0] != row["sha256"]:
        digests.append((row["sha256"], line))
        found.without_rows.discard(batch)
    if row.get(WITHOUT_ROWS):
        found.without_rows.add(batch)
