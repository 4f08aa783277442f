"""The disk that a loss of power would leave: what was not synced is lost, all of it or some.

A command runs once, undisturbed, and everything that it does to files is noted down.  From the
notes comes the store as it would be found after any call: contents as of the last sync of each file
and names as of the last sync of each folder; or all names, with contents that were not written; or
any part of what was not synced.
"""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

from crash_children import Children, Ended, Plan
from crash_stores import Scene, settings_in, state
from crash_trials import Found, judged

from pipeline.store.paths import store_of

WAYS = ("nothing that was not synced", "all names", "some of it")
_HEAD = struct.Struct("5q")
_GONE = " (deleted)"


@dataclass(frozen=True)
class Call:
    """What one call did: a letter as in ``faults.c``, the path, and what goes with it."""

    letter: str
    path: str
    other: str
    offset: int
    data: bytes


def read_journal(path: Path) -> list[Call]:
    """The calls that were noted down."""
    text, at, found = path.read_bytes(), 0, []
    while at < len(text):
        letter, length, more, offset, size = _HEAD.unpack_from(text, at)
        at += _HEAD.size
        parts = []
        for each in (length, more, size):
            parts.append(text[at : at + each])
            at += each
        name, other = parts[0].decode(), parts[1].decode()
        found.append(Call(chr(letter), name.removesuffix(_GONE), other, offset, parts[2]))
    return found


@dataclass
class _File:
    """Contents as they were synced, and what was done since."""

    synced: bytes = b""
    since: list[Call] = field(default_factory=list)

    def sync(self) -> None:
        self.synced, self.since = self.as_of(self.since), []

    def as_of(self, calls: list[Call]) -> bytes:
        text = bytearray(self.synced)
        for call in calls:
            if call.letter == "w":
                text.extend(bytes(max(call.offset + len(call.data) - len(text), 0)))
                text[call.offset : call.offset + len(call.data)] = call.data
            else:
                text = text[: call.offset].ljust(call.offset, b"\0")
        return bytes(text)


class Disk:
    """Files and names below a folder, as they are and as a loss of power would leave them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.names = {
            str(path): _File(path.read_bytes()) for path in root.rglob("*") if path.is_file()
        }
        self.synced = dict(self.names)

    def do(self, call: Call) -> None:
        """What a call does to it."""
        match call.letter:
            case "c" if call.path in self.names:
                self.names[call.path].since.append(Call("t", call.path, "", 0, b""))
            case "c":
                self.names[call.path] = _File()
            case "w" | "t" if call.path in self.names:
                self.names[call.path].since.append(call)
            case "s" if call.path in self.names:
                self.names[call.path].sync()
            case "s":
                self._sync_names(call.path)
            case "r":
                self.names[call.other] = self.names.pop(call.path)
            case "u":
                self.names.pop(call.path, None)

    def _sync_names(self, folder: str) -> None:
        kept = {path: file for path, file in self.synced.items() if _folder(path) != folder}
        own = {path: file for path, file in self.names.items() if _folder(path) == folder}
        self.synced = kept | own

    def leave(self, way: str, draw: random.Random) -> None:
        """Write it as it would be found."""
        names = self.synced if way == WAYS[0] else self.names
        if way == WAYS[2] and draw.random() < 0.5:
            names = self.synced
        for path in self.root.rglob("*"):
            if path.is_file() and str(path) not in names:
                path.unlink()
        for path, file in names.items():
            some = [call for call in file.since if draw.random() < 0.5] if way == WAYS[2] else []
            Path(path).write_bytes(file.as_of(some))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


class Powerless:
    """A scene that was noted down, to be cut short after any of its calls."""

    def __init__(self, scene: Scene, children: Children, place: Path) -> None:
        self.scene, self.children, self.place = scene, children, place
        journal = place.with_name(f"{place.name}.journal")
        folder = scene.copy(place)
        ended = scene.run(children, folder, Plan(journal=journal))
        assert ended.code == 0, ended.err
        self.calls = read_journal(journal)
        rmtree(self.place)
        journal.unlink()

    def cut(self, after: int, way: str, seed: int, found: Found) -> None:
        """Lose power after so many calls, and look."""
        folder = self.scene.copy(self.place)
        disk = Disk((folder / "store").resolve())
        for call in self.calls[:after]:
            disk.do(call)
        disk.leave(way, random.Random(seed))
        about = f"{way} kept after call {after} of {len(self.calls)}, seed {seed}"
        if after == len(self.calls):
            found.problems += self._forgotten(folder, about)
        ended = Ended(None, 9, "", "", (), 0)
        judged(self.scene, self.children, folder, "power lost", about, ended, found)
        rmtree(self.place)

    def _forgotten(self, folder: Path, about: str) -> Iterator[str]:
        """What was acknowledged stays."""
        if state(store_of(settings_in(folder)).history) != self.scene.after[None]:
            yield f"{self.scene.name}, {about}: what was acknowledged is gone"
