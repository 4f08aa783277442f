"""The ledger: every change of the history, outside the database, one JSON object a line.

Lines are only ever added.  Each carries the digest of the one before it, so that none can be
changed, taken out or put in unseen.  An *entry* announces a change before it is committed, and a
*closing* line says afterwards whether it was ``kept`` or ``dropped``; an entry without one was
interrupted.  ``after`` is the digest of the entry that the history was at before.

Not here: when entries are written (``commits``), and what they add up to (``ledger_state``).
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from pipeline.errors import AuditError, StoreDamaged
from pipeline.store.files import sync_folder

Line = dict[str, Any]
KEPT, DROPPED = "kept", "dropped"
_CLOSINGS = (KEPT, DROPPED)
WITHOUT_ROWS = "without_rows"
"""What entries say of a batch file whose rows were removed."""
HOLDS = "holds"
"""What entries say of rows that their change wrote: digests, by part and key."""
FORGET = "forget"
"""The event of an entry with which all of a ``batch`` goes, its files included."""
VOUCH = "vouch"
WHOLE = ("begin", "rebuild", VOUCH)
"""Entries that say this of all rows of the history, whatever was said before."""
_BLOCK = 1 << 16
"""Bytes read at a time, backwards from the end: one read is nearly always enough for a line."""


def digest(line: Line) -> str:
    """SHA-256 of a line without its own ``hash``, in hex."""
    said = {name: value for name, value in line.items() if name != "hash"}
    return hashlib.sha256(_text(said)).hexdigest()


def _text(line: Line) -> bytes:
    return json.dumps(line, sort_keys=True, separators=(",", ":"), default=_time).encode()


def _time(value: datetime) -> str:
    return value.isoformat()


@dataclass(frozen=True)
class End:
    """The last entry of a ledger, and the line that closes it, None where nothing does."""

    entry: Line
    closing: Line | None

    @property
    def last(self) -> Line:
        """The last line."""
        return self.closing or self.entry

    @property
    def heads(self) -> tuple[str | None, ...]:
        """Digests of the entry that the history may be at; None: it holds nothing yet.

        Two while nobody knows whether the last entry was committed.
        """
        after, own = self.entry["after"], self.entry["hash"]
        if self.closing is None:
            return after, own
        return (own,) if self.closing["event"] == KEPT else (after,)


@dataclass(frozen=True)
class Ledger:
    """The ledger in the file ``path``; only the holder of the history's lock adds to it."""

    path: Path

    def announce(self, event: str, after: str | None, facts: Mapping[str, Any]) -> Line:
        """Add an entry, durably; returns it."""
        return self._add({**facts, "event": event, "after": after})

    def close(self, entry: Line, how: str) -> None:
        """Add the line that says what became of ``entry``: KEPT or DROPPED."""
        self._add({"event": how, "of": entry["line"]})

    def _add(self, said: Line) -> Line:
        end = self.end()
        last: Line = end.last if end else {"line": 0, "hash": None}
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {**said, "line": last["line"] + 1, "at": at, "previous": last["hash"]}
        line["hash"] = digest(line)
        try:
            self._append(_text(line) + b"\n")
        except OSError as error:
            raise AuditError(f"{self.path}: cannot be written: {error.strerror}") from None
        return line

    def _append(self, text: bytes) -> None:
        new = not self.path.exists()
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            self._mend(file)
            self._write(file, text)
            os.fsync(file)
        finally:
            os.close(file)
        if new:
            sync_folder(self.path.parent)

    def _write(self, file: int, text: bytes) -> None:
        """Write all of ``text`` or nothing: a full disk may take half of it."""
        size = os.fstat(file).st_size
        done = 0
        try:
            while done < len(text):
                done += os.write(file, text[done:])
        except OSError:
            if done:
                os.ftruncate(file, size)
            raise

    def _mend(self, file: int) -> None:
        """Drop what an interrupted write left behind the last whole line."""
        size = os.fstat(file).st_size
        torn = len(self._whole[1])
        if torn:
            os.ftruncate(file, size - torn)

    @property
    def _whole(self) -> tuple[list[bytes], bytes]:
        """The last lines, at least three where there are so many, and what follows them."""
        try:
            with self.path.open("rb") as file:
                size, text = file.seek(0, os.SEEK_END), b""
                while len(text) < size and text.count(b"\n") < 4:
                    start = max(size - len(text) - _BLOCK, 0)
                    file.seek(start)
                    text = file.read(size - start - len(text)) + text
        except FileNotFoundError:
            return [], b""
        except OSError as error:
            raise StoreDamaged(f"{self.path}: cannot be read: {error.strerror}") from None
        *lines, torn = text.split(b"\n")
        # The first line may be the end of one.
        return lines[0 if len(text) == size else 1 :], torn

    def end(self) -> End | None:
        """How the ledger ends; None without one, or before its first line was whole.

        StoreDamaged where its last lines are not what they were.
        """
        lines, _ = self._whole
        last_lines = []
        for text in lines[-3:]:
            line, problem = _parsed(text)
            if problem:
                raise StoreDamaged(
                    f"{self.path}: one of its last lines {problem}; `evenrank verify` says more"
                )
            last_lines.append(line)
        if not last_lines:
            return None
        closes = last_lines[-1]["event"] in _CLOSINGS
        if (closes and len(last_lines) < 2) or not all(
            _follows(b, a) for a, b in pairwise(last_lines)
        ):
            raise StoreDamaged(f"{self.path}: its last lines do not belong together")
        return End(last_lines[-2], last_lines[-1]) if closes else End(last_lines[-1], None)

    def read(self) -> "Record":
        """The whole ledger, with everything that is wrong with it."""
        lines: list[Line] = []
        problems: list[str] = []
        line_before: Line = {"line": 0, "hash": None, "event": KEPT}
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            text = b""
        except OSError as error:
            return Record([], [f"cannot be read: {error.strerror}"], 0)
        *whole_lines, torn = text.split(b"\n")
        for number, each in enumerate(whole_lines, 1):
            line, problem = _parsed(each)
            # What a changed line says is not believed.
            lines.append({} if problem else line)
            if not problem and line_before and not _follows(line, line_before):
                problem = "does not follow from the line before it: lines were changed or removed"
            if problem:
                problems.append(f"line {number} {problem}")
            line_before = line
        return Record(lines, problems, len(torn))


def _parsed(text: bytes) -> tuple[Line, str | None]:
    """A line, empty where it is none, and what is wrong with it."""
    try:
        line = json.loads(text)
        if not _is_line(line):
            return {}, "is no line of a ledger"
        # What means the same and is written in another way was not written by us.
        changed = line["hash"] != digest(line) or text != _text(line)
    except (ValueError, RecursionError):
        return {}, "cannot be read"
    return line, "was changed after it was written" if changed else None


def _is_line(said: object) -> bool:
    if not isinstance(said, dict) or "previous" not in said:
        return False
    kinds = {"line": int, "event": str, "hash": str}
    link = "of" if said.get("event") in _CLOSINGS else "after"
    return link in said and all(isinstance(said.get(name), kind) for name, kind in kinds.items())


def _follows(line: Line, before: Line) -> bool:
    """Whether a line belongs behind the one before it: closings close that one."""
    if (line["line"], line["previous"]) != (before["line"] + 1, before["hash"]):
        return False
    return line["event"] not in _CLOSINGS or (
        line["of"] == before["line"] and before["event"] not in _CLOSINGS
    )


@dataclass(frozen=True)
class Record:
    """All lines of a ledger, what is wrong with them, and bytes behind the last whole line.

    A line that was changed, or is none, is empty.
    """

    lines: list[Line]
    problems: list[str]
    torn: int

    @cached_property
    def kept(self) -> list[Line]:
        """Entries that were committed, in order, as far as the ledger itself can tell."""
        closed = {line["of"] for line in self.lines if line.get("event") == KEPT}
        return [line for line in self.entries if line["line"] in closed]

    @cached_property
    def entries(self) -> list[Line]:
        """All entries in order, whatever became of them."""
        return [line for line in self.lines if line.get("event", KEPT) not in _CLOSINGS]

    def up_to(self, head: str | None) -> list[Line]:
        """Kept entries, and the last one if the history is at it though nothing closes it."""
        last = self.entries[-1:]
        if last and last[0]["hash"] == head and last[0] not in self.kept:
            return [*self.kept, *last]
        return self.kept


def mismatch(ledger: Ledger, head: tuple[int, str] | None) -> StoreDamaged:
    """Why a history that is at ``head``, a line and its digest, does not go with its ledger."""
    record = ledger.read()
    advice = (
        "Nothing was changed.\n"
        "  `evenrank verify` tells all of it, `evenrank restore` puts back a backup, and\n"
        "  `evenrank rebuild` makes the history again from the batch files."
    )
    if not record.lines:
        return StoreDamaged(f"{ledger.path} is missing, and the history needs it. {advice}")
    at = next((line["line"] for line in record.lines if head and line.get("hash") == head[1]), 0)
    if head and not at:
        return StoreDamaged(
            f"{ledger.path} was cut or replaced: the history is at its line {head[0]}, which is "
            f"not there. {advice}"
        )
    lost = [line for line in record.kept if line["line"] > at]
    named = list(dict.fromkeys(line["batch"] for line in lost if "batch" in line))
    shown = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")
    first = lost[0]["line"] if lost else at + 1
    return StoreDamaged(
        f"history.duckdb has lost what lines {first} and later of {ledger.path.name} say it "
        f"holds{': ' + shown if named else ''}. {advice}"
    )
