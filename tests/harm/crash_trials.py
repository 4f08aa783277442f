"""Trials: a command is killed, or a call of it fails, and everything is looked at afterwards."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

import duckdb
from crash_children import Children, Ended, Plan
from crash_stores import DAYS, Scene, State, settings_in, state, states

from pipeline.errors import AuditError, Terminated
from pipeline.integrity.verify import verify
from pipeline.store.paths import store_of

_SOME = 8
"""One in so many trials verifies twice."""


@dataclass
class Found:
    """What trials found: how many there were of each kind, and what was wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def add(self, kind: str, about: str, problems: Iterable[str]) -> None:
        """Note one trial."""
        self.counts[kind] += 1
        self.problems += [f"{kind}: {about}: {problem}" for problem in problems]


def trial(
    scene: Scene, children: Children, place: Path, kind: str, plan: Plan, found: Found
) -> Ended:
    """Run a command under ``plan``, look, run it again, look again."""
    folder = scene.copy(place)
    ended = scene.run(children, folder, plan)
    call = ended.calls[plan.at - 1] if 0 < plan.at <= len(ended.calls) else "none"
    about = f"call {plan.at} of {len(ended.calls)} ({call})"
    judged(scene, children, folder, kind, about, ended, found, verifying=not plan.at % _SOME)
    rmtree(folder)
    return ended


def judged(
    scene: Scene,
    children: Children,
    folder: Path,
    kind: str,
    about: str,
    ended: Ended,
    found: Found,
    *,
    verifying: bool = False,
) -> None:
    """Note what is wrong after a command ended as it did, and after it was run again."""
    problems = []
    try:
        if ended.sign is None:
            problems += told(scene, folder, ended)
        problems += whole(scene, folder)
        problems += again(scene, children, folder, verifying=verifying)
    except duckdb.Error as error:
        problems.append(f"a file cannot be read: {error}")
    found.add(kind, f"{scene.name}, {about}", problems)


def told(scene: Scene, folder: Path, ended: Ended) -> Iterator[str]:
    """What is wrong with how a command ended of which a call failed."""
    if ended.code == 0:
        if state(store_of(settings_in(folder)).history) != scene.after[None]:
            yield "it said that it was done, and was not"
    elif ended.code not in (AuditError.exit_code, Terminated.exit_code):
        yield f"it ended with {ended.code}, signal {ended.sign}"
    if "Traceback" in ended.err:
        yield f"a traceback: {ended.err.strip()[-400:]}"
    elif ended.code and not ended.err.strip().startswith("evenrank: "):
        yield f"it said {ended.err!r}"


def whole(scene: Scene, folder: Path) -> Iterator[str]:
    """What is wrong with a store that a command left, before anything is mended."""
    store = store_of(settings_in(folder))
    yield from verified(folder)
    here = states(store.history)
    for batch in DAYS:
        if here.get(batch, {}) not in (scene.before.get(batch, {}), scene.after[batch]):
            yield f"{batch} is torn: {_differing(here[batch], scene.after[batch])}"
    if state(store.dashboard) not in (scene.before.get(None, {}), scene.after[None]):
        yield "the published copy is neither what it was nor what it will be"


def again(
    scene: Scene, children: Children, folder: Path, *, verifying: bool = False
) -> Iterator[str]:
    """What is wrong once the same command was run again: it should be as if nothing had been.

    ``verifying``: `evenrank verify` is asked once more, which takes as long as the rest.
    """
    ended = scene.run(children, folder, turn=1)
    if ended.code != 0:
        yield f"the same command again: {ended.code} {ended.sign} {ended.err.strip()[-600:]}"
        return
    store = store_of(settings_in(folder))
    for path in (store.history, store.dashboard):
        here = state(path)
        if here != scene.after[None]:
            yield f"{path.name}, again: {_differing(here, scene.after[None])}"
    if verifying:
        yield from verified(folder, finished=True)
    names = {path.name for path in store.root.glob("*") if path.is_file()}
    files = (store.history, store.dashboard, store.ledger, store.report, store.seen)
    # What is noted of files is written over by whoever notes next, and never needed.
    known = {path.name for path in files} | {f"{store.seen.name}.part"}
    # A log that was removed comes back where the power is lost before the folder is synced; it
    # says itself that it was taken over.
    unknown = {name for name in names - known if not name.endswith(".wal")}
    if unknown:
        yield f"left behind: {sorted(unknown)}"


def verified(folder: Path, *, finished: bool = False) -> Iterator[str]:
    """What ``evenrank verify`` says is wrong."""
    try:
        found = verify(settings_in(folder))
    except AuditError as error:
        yield f"verify: {error}"
        return
    yield from (f"verify: {problem}" for problem in found.problems)
    if finished:
        # Files of killed runs stay for a day: one may still be at work.
        yield from (f"unfinished: {text}" for text in found.unfinished if "staged:" not in text)


def _differing(here: State, there: State) -> str:
    """Tables in which two states differ, with a row that one of them lacks."""
    said = []
    for name in sorted(here.keys() | there.keys()):
        ours, theirs = Counter(here.get(name, ())), Counter(there.get(name, ()))
        if ours != theirs:
            more, less = [*(ours - theirs)], [*(theirs - ours)]
            said.append(f"{name} +{len(more)} -{len(less)} {[*more, *less][0][:200]}")
    return "; ".join(said)
