"""How often a store was harmed, and what came of it.

    make crashes ARGS='[--kills 500] [--faults 150] [--damage 80] [--signals 40]
                       [--power 120] [--publications 30] [--minutes 0] [--write]'

Every call by which a command changes the store is a place to be killed at, to be killed at half of
it, to fail, or to find the disk full.  Besides, whole runs are killed at random moments, disks are
really too small where one may be mounted, what was not synced is lost as with the power, files are
damaged, and copies are published while somebody reads.  All of it comes in an order that a seed
gives, as much as is asked for.  ``--write`` puts the counts into ``crashes.json``.
"""

import argparse
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import duckdb
from crash_children import FAIL, FULL, KILL, SIGNAL, TEAR, Children, Plan, why_not
from crash_damage import LOG, LOG_DAMAGES, Damage, damages, harmed, log_harmed
from crash_power import WAYS, Powerless
from crash_stores import Scene, scenes
from crash_together import make_audit, publish_before_a_reader
from crash_trials import Found, judged, trial

RECORD = Path(__file__).with_name("crashes.json")
SEED = 20261121
KILLS = ("killed at a call", "killed at half of a write", "killed at a random moment")
SIGNALS = ("Ctrl-C at a call", "ended by SIGTERM at a call")
FAULTS = ("a call fails", "the disk is full", "a disk that is too small")
_PLANS = {
    KILLS[0]: (KILL, 0),
    KILLS[1]: (TEAR, 0),
    SIGNALS[0]: (SIGNAL, signal.SIGINT),
    SIGNALS[1]: (SIGNAL, signal.SIGTERM),
    FAULTS[0]: (FAIL, errno.EIO),
    FAULTS[1]: (FULL, errno.ENOSPC),
}
_DISK, _ROOM = 64 << 20, 4 << 20
Task = Callable[[], object]


class Trials:
    """All trials, in an order that only depends on the seed."""

    def __init__(self, children: Children, place: Path, found: Found, seed: int = SEED) -> None:
        self.children, self.place, self.found = children, place, found
        self.draw = random.Random(seed)
        self.scenes = scenes(children, place / "scenes")
        self.calls = {scene.name: self._counted(scene) for scene in self.scenes}
        self._seconds: dict[str, float] = {}
        self._turn = 0

    def _counted(self, scene: Scene) -> tuple[str, ...]:
        """The calls of a command that nothing disturbs."""
        folder = scene.copy(self.place / "counted")
        ended = scene.run(self.children, folder, Plan(late=scene.batch is not None))
        assert ended.code == 0, ended.err
        shutil.rmtree(folder)
        return ended.calls

    def _next(self) -> Path:
        self._turn += 1
        return self.place / f"trial-{self._turn}"

    def at_calls(self, *kinds: str) -> list[Task]:
        """A trial per kind, scene and call."""
        found: list[Task] = []
        for kind in kinds:
            for scene in self.scenes:
                for at, call in enumerate(self.calls[scene.name], 1):
                    # Half of what is no write is all of it.
                    if kind != KILLS[1] or call.startswith("w"):
                        found.append(partial(self._at_call, kind, scene, at))
        self.draw.shuffle(found)
        return found

    def _at_call(self, kind: str, scene: Scene, at: int) -> None:
        mode, number = _PLANS[kind]
        plan = Plan(mode, at, number, late=scene.batch is not None)
        trial(scene, self.children, self._next(), kind, plan, self.found)

    def at_moments(self, count: int) -> list[Task]:
        """Whole runs, from the logs to the published copy, that are killed some time."""
        return [
            partial(self._at_moment, self.draw.choice(self.scenes), self.draw.random())
            for _ in range(count)
        ]

    def _at_moment(self, scene: Scene, share: float) -> None:
        if scene.name not in self._seconds:
            begun = time.monotonic()
            self._counted(scene.computing())
            self._seconds[scene.name] = time.monotonic() - begun
        folder = scene.copy(self._next())
        pid = self.children.start(folder, scene.words)
        time.sleep(share * self._seconds[scene.name])
        os.kill(pid, signal.SIGKILL)
        ended = self.children.wait(pid)
        # One that had come to its end was not killed, and tells nothing.
        if ended.killed:
            judged(scene, self.children, folder, KILLS[2], f"{share:.3f} of it", ended, self.found)
        shutil.rmtree(folder)

    def on_small_disks(self, count: int) -> list[Task]:
        """Runs that find less room than they need; none where no disk may be mounted."""
        if not _may_mount(self.place):
            return []
        chosen = [scene for scene in self.scenes if scene.batch]
        return [
            partial(self._on_a_small_disk, self.draw.choice(chosen), self.draw.randrange(_ROOM))
            for _ in range(count)
        ]

    def _on_a_small_disk(self, scene: Scene, room: int) -> None:
        with _disk(self._next()) as disk:
            folder = scene.copy(disk / "audit")
            filling = disk / "filling"
            free = shutil.disk_usage(disk).free
            filling.write_bytes(bytes(max(free - room, 0)))
            ended = scene.run(self.children, folder)
            filling.unlink()
            judged(scene, self.children, folder, FAULTS[2], f"{room:,} bytes", ended, self.found)

    def without_power(self, count: int) -> list[Task]:
        """What a loss of power after any call would leave; the last call of all among them."""
        found: list[Task] = []
        for scene in (each for each in self.scenes if each.name in ("new", "replaced")):
            cut = Powerless(scene, self.children, self._next())
            calls = len(cut.calls)
            places = [calls, *(self.draw.randint(1, calls) for _ in range(count // 2 - 1))]
            for seed, after in enumerate(places):
                found.append(partial(cut.cut, after, WAYS[seed % len(WAYS)], seed, self.found))
        return found[:count]

    def damaged(self, rounds: int = 1) -> list[Task]:
        """Every damage to a store at rest, and to the logs that killed commands leave."""
        (new,) = (scene for scene in self.scenes if scene.name == "new")
        synced = [at for at, call in enumerate(self.calls["new"], 1) if call.endswith(LOG)]
        found: list[Task] = []
        for seed in range(rounds):
            for damage in damages(new.folder):
                found.append(partial(self._damaged, new, damage, seed))
            for damage in LOG_DAMAGES:
                for at in synced[:: max(len(synced) // 4, 1)]:
                    found.append(partial(self._log_damaged, new, damage, at + 1, seed))
        self.draw.shuffle(found)
        return found

    def _damaged(self, scene: Scene, damage: Damage, seed: int) -> None:
        harmed(scene, self.children, self._next(), damage, seed, self.found)

    def _log_damaged(self, scene: Scene, damage: Damage, at: int, seed: int) -> None:
        log_harmed(scene, self.children, self._next(), damage, at, seed, self.found)


def _may_mount(place: Path) -> bool:
    try:
        with _disk(place / "probe"):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


@contextmanager
def _disk(place: Path) -> Iterator[Path]:
    """A file system of its own with little room."""
    place.mkdir()
    try:
        options = ["-t", "tmpfs", "-o", f"size={_DISK}", "evenrank-test", str(place)]
        subprocess.run(["mount", *options], check=True, capture_output=True)
        try:
            yield place
        finally:
            subprocess.run(["umount", "--lazy", str(place)], check=True, capture_output=True)
    finally:
        place.rmdir()


def together(children: Children, place: Path, publications: int, found: Found) -> None:
    """Publish while somebody else publishes and somebody reads."""
    folder = place / "together"
    (batch,) = make_audit(folder, 1)
    children.run(folder, ("run", "--quiet", "--batch", batch))
    ended, seen = publish_before_a_reader(children, folder, batch, publications)
    problems = [each.err for each in ended if each.code]
    for at in range(publications):
        found.add("publications before a reader", f"number {at}", ())
    found.problems += [f"publications: {each}" for each in (*problems, *seen["failures"])]
    found.counts["looks of the reader"] = seen["looks"]


def chosen(
    trials: Trials, kills: int, faults: int, damage: int, signals: int, power: int
) -> list[Task]:
    """Trials of every kind, mixed: whoever stops early has seen some of each."""
    moments, small = trials.at_moments(kills // 8), trials.on_small_disks(faults // 8)
    found = [
        *(moments + trials.at_calls(*KILLS[:2]))[:kills],
        *(small + trials.at_calls(*FAULTS[:2]))[:faults],
        *trials.damaged(damage // 40 + 1)[:damage],
        *trials.at_calls(*SIGNALS)[:signals],
        *trials.without_power(power),
    ]
    trials.draw.shuffle(found)
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Harm stores; 1 where anything was lost, torn or silently wrong."""
    parser = argparse.ArgumentParser(description=__doc__, add_help=True)
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--faults", type=int, default=150)
    parser.add_argument("--damage", type=int, default=80)
    parser.add_argument("--signals", type=int, default=40)
    parser.add_argument("--power", type=int, default=120)
    parser.add_argument("--publications", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=0, help="stop after as many; 0: do not")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--write", action="store_true", help=f"write {RECORD.name}")
    said = parser.parse_args(words)
    if why := why_not():
        sys.exit(why)
    found = Found()
    begun = time.monotonic()
    # In memory where there is such a place: nothing here is about real disks.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(prefix="evenrank-crashes-", dir=memory) as folder,
        Children(Path(folder) / "children") as children,
    ):
        together(children, Path(folder), said.publications, found)
        trials = Trials(children, Path(folder), found, said.seed)
        tasks = chosen(trials, said.kills, said.faults, said.damage, said.signals, said.power)
        for number, task in enumerate(tasks, 1):
            before = len(found.problems)
            task()
            for problem in found.problems[before:]:
                print(f"  {problem}", flush=True)
            if not number % 10 or number == len(tasks):
                done = f"{number:5} of {len(tasks)} trials, {len(found.problems)} problems"
                print(done, flush=True)
                if said.write:
                    _write(found)
            if said.minutes and time.monotonic() - begun > said.minutes * 60:
                break
    for kind, count in sorted(found.counts.items()):
        print(f"{count:6}  {kind}")
    print(f"{len(found.problems):6}  problems, with DuckDB {duckdb.__version__}")
    return int(bool(found.problems))


def _write(found: Found) -> None:
    """Put the counts in the place of those with the same DuckDB."""
    known = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    kills, faults = (sum(found.counts[kind] for kind in kinds) for kinds in (KILLS, FAULTS))
    known[duckdb.__version__] = {
        "kills": kills,
        "faults": faults,
        "problems": len(found.problems),
        "kinds": dict(sorted(found.counts.items())),
    }
    RECORD.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
