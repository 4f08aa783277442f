"""Damage at rest: files that are cut, changed, removed or older than they should be."""

import hashlib
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
from crash_children import KILL, Children, Plan
from crash_stores import DAYS, Scene, settings_in, state
from crash_trials import Found

from pipeline.errors import AuditError
from pipeline.integrity.verify import verify
from pipeline.store.paths import store_of

HISTORY, COPY, LEDGER = "history.duckdb", "dashboard.duckdb", "ledger.jsonl"
FILES = (HISTORY, COPY, LEDGER, *(f"batches/{day}.duckdb" for day in DAYS[:3]))
LOG = f"{HISTORY}.wal"
_NEXT = ("mark", "--quiet", "--batch", DAYS[0], "--text", "another release")
"""A command that reads and writes the history, and publishes."""


@dataclass(frozen=True)
class Damage:
    """What is done to one file of a store; ``harm`` gets its path and chance."""

    name: str
    file: str
    harm: Callable[[Path, random.Random], None]


def _flip(path: Path, draw: random.Random) -> None:
    text = bytearray(path.read_bytes())
    text[draw.randrange(len(text))] ^= 1 << draw.randrange(8)
    path.write_bytes(text)


def _cut(path: Path, draw: random.Random) -> None:
    with path.open("r+b") as file:
        file.truncate(draw.randrange(path.stat().st_size))


def _remove(path: Path, draw: random.Random) -> None:
    path.unlink()


def _empty(path: Path, draw: random.Random) -> None:
    path.write_bytes(b"")


def _without_a_line(path: Path, draw: random.Random) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines.pop(draw.randrange(len(lines)))
    path.write_bytes(b"".join(lines))


def _another(path: Path, draw: random.Random) -> None:
    """Another whole database in its place."""
    shutil.copyfile(path.parent / "2026-01-01.duckdb", path)


def older(folder: Path) -> Callable[[Path, random.Random], None]:
    """Put back a file as it was in the store of ``folder``."""

    def harm(path: Path, draw: random.Random) -> None:
        shutil.copyfile(folder / "store" / path.name, path)

    return harm


def damages(before: Path) -> list[Damage]:
    """Everything that is done to a store; ``before`` is the audit as it was one batch earlier."""
    common = (("flipped", _flip), ("cut", _cut), ("removed", _remove), ("emptied", _empty))
    found = [Damage(name, file, harm) for file in FILES for name, harm in common]
    found += [Damage("older", file, older(before)) for file in (HISTORY, LEDGER)]
    found += [Damage("a line removed", LEDGER, _without_a_line)]
    found += [Damage("another", f"batches/{day}.duckdb", _another) for day in DAYS[1:3]]
    return found


LOG_DAMAGES = (
    Damage("flipped", LOG, _flip),
    Damage("cut", LOG, _cut),
    Damage("removed", LOG, _remove),
)


def harmed(
    scene: Scene, children: Children, place: Path, damage: Damage, seed: int, found: Found
) -> None:
    """Harm the store that ``scene`` ends with, and see who notices."""
    shutil.copytree(scene.ended, place)
    damage.harm(place / "store" / damage.file, random.Random(seed))
    found.add(
        "damage",
        f"{damage.file} {damage.name}, seed {seed}",
        _unnoticed(scene, children, place, damage.file),
    )
    shutil.rmtree(place)


def log_harmed(
    scene: Scene, children: Children, place: Path, damage: Damage, at: int, seed: int, found: Found
) -> None:
    """Harm the write-ahead log that a command leaves when it is killed at its ``at``-th call."""
    folder = scene.copy(place)
    ended = scene.run(children, folder, Plan(KILL, at, late=True))
    about = f"{damage.file} {damage.name} after {ended.calls[-1]}, seed {seed}"
    path = folder / "store" / LOG
    if path.exists() and path.stat().st_size:
        damage.harm(path, random.Random(seed))
        found.add("damaged log", about, _log_unnoticed(scene, children, folder))
    shutil.rmtree(folder)


def _unnoticed(scene: Scene, children: Children, folder: Path, file: str) -> Iterator[str]:
    """What nobody says of a damaged file, or what was done to it."""
    root = folder / "store"
    named = _named(folder, file)
    if not named and not _right(scene, root):
        yield "verify says nothing"
    before = _digest(root / file)
    ended = children.run(folder, _NEXT)
    if "Traceback" in ended.err or ended.code not in (0, AuditError.exit_code):
        yield f"the next command: {ended.code} {ended.sign} {ended.err.strip()[-600:]}"
    if file == COPY:
        # A copy of the history, and made anew whenever something was written.
        return
    after = _digest(root / file)
    # What is damaged in a place that nobody looks at first is found out after a change or two.
    if file != HISTORY and after != before and (file != LEDGER or ended.code):
        yield f"the next command wrote over the damaged file ({before} to {after})"
    if file == HISTORY and "none" in (before, after) and before != after:
        yield f"the next command removed or made the history ({before} to {after})"
    if named and not _named(folder, file):
        yield "the next command has hidden the damage"


def _log_unnoticed(scene: Scene, children: Children, folder: Path) -> Iterator[str]:
    ended = scene.run(children, folder, turn=1)
    if "Traceback" in ended.err or ended.code not in (0, AuditError.exit_code):
        yield f"the same command again: {ended.code} {ended.sign} {ended.err.strip()[-600:]}"
    elif ended.code == 0:
        if state(store_of(settings_in(folder)).history) != scene.after[None]:
            yield "the same command again gave something else"
    elif not _named(folder, HISTORY):
        yield f"verify says nothing, the command {ended.err.strip()[-300:]}"


def _named(folder: Path, file: str) -> bool:
    """Whether verify has a problem, or something unfinished, with ``file``."""
    name = Path(file).name.removesuffix(".duckdb")
    found = verify(settings_in(folder))
    return any(name in text for text in found.problems + found.unfinished)


def _right(scene: Scene, root: Path) -> bool:
    """Whether a history and its copy still say what they said: the bytes were of no use."""
    try:
        return all(state(root / name) == scene.after[None] for name in (HISTORY, COPY))
    except duckdb.Error:
        return False


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:8] if path.exists() else "none"
