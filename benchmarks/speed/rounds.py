"""Runs entries in turn, each in a process of its own, and keeps what they said."""

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from speed.data import LOGS, ready
from speed.entries import ENTRIES, SIZES, Entry
from speed.peers import python_of

ROOT = Path(__file__).parents[2]
JOBS_DAYS = {"tiny": 2, "small": 6}
"""Days of a backfill at sizes at which thirty would be too many."""
PACKAGES = ("duckdb", "numpy", "pandas", "pandera", "pyarrow")
COMMANDS = ("run", "start", "jobs")
"""Tasks that are whole commands."""
PATIENCE = 2 * 3600.0
"""Seconds after which a task is given up."""

_ERROR = re.compile(r"^[\w.]+(?:Error|Exception|Refused|Busy|NoData)\b", re.MULTILINE)

Results = dict[str, dict[str, Any]]
"""By entry: its stamp and its rounds, or why it failed."""


def machine() -> dict[str, Any]:
    """What the numbers depend on, without a name of anything."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text("utf-8").splitlines() if "model name" in line]
        model = lines[0].partition(":")[2].strip() if lines else model
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 1e9, 1),
        "system": platform.system(),
    }


def commit() -> str:
    """The commit that is measured, with a plus where files differ from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "metrics", "schemas", "pipeline", "assets")
    return (git("rev-parse", "--short", "HEAD") or "none") + ("+" if changed else "")


def stamp() -> dict[str, Any]:
    """When, on what and with what something is measured."""
    return {
        "date": str(datetime.now(UTC).date()),
        "commit": commit(),
        "machine": machine(),
        "versions": {
            "Python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
    }


class Rounds:
    """Entries of one size, run in turn.

    ``cache`` holds logs, environments and whatever a task leaves behind.  ``keep`` gets the
    results whenever there are more of them.
    """

    def __init__(
        self,
        size: str,
        cache: Path,
        keep: Callable[[Results], None],
        tell: Callable[[str], None],
    ) -> None:
        self.rows = SIZES[size]
        self.size = size
        self.cache = cache
        self.keep = keep
        self.tell = tell
        self.results: Results = {}

    def run(self, entries: Sequence[Entry], rounds: int) -> None:
        """Measure every entry in every round that it takes part in."""
        self._prepare(entries)
        said = stamp()
        last = max((self._rounds_of(entry, rounds) for entry in entries), default=0)
        for turn in range(last):
            found: dict[str, Any] = {}
            for entry in entries:
                failed = "failed" in self.results.get(entry.name, {})
                if failed or turn >= self._rounds_of(entry, rounds):
                    continue
                self.tell(f"round {turn + 1} of {last}: {entry.name}")
                try:
                    found[entry.name] = self._measured(entry, found)
                except TaskFailed as error:
                    self.results[entry.name] = {"stamp": said, "failed": str(error)}
                    self.tell(f"  failed: {error}")
                else:
                    kept = self.results.setdefault(entry.name, {"stamp": said, "rounds": []})
                    kept["rounds"].append(found[entry.name])
                self.keep(self.results)

    @staticmethod
    def _rounds_of(entry: Entry, rounds: int) -> int:
        """Rounds of an entry; one round that was asked for is one of everything."""
        if entry.rounds is not None:
            return entry.rounds if rounds > 1 else rounds
        return min(rounds, entry.most or rounds)

    def _prepare(self, entries: Iterable[Entry]) -> None:
        for name in dict.fromkeys(["warm-up", *(entry.log for entry in entries)]):
            lists, rows = LOGS[name].counted(self.rows)
            self.tell(f"log {name}: {rows:,} rows in {lists:,} lists")
            ready(self.cache / "data", name, self.rows)

    def _measured(self, entry: Entry, found: Mapping[str, Any]) -> dict[str, Any]:
        missing = [name for name in entry.against if name not in found]
        if missing:
            raise TaskFailed(f"there is nothing to compare with: {', '.join(missing)} failed")
        given = {
            **entry.given,
            "file": str(ready(self.cache / "data", entry.log, self.rows)),
            "tiny": str(ready(self.cache / "data", "warm-up", self.rows)),
            "folder": str(self.cache),
            "rows": LOGS[entry.log].counted(self.rows)[1],
        }
        if entry.task == "jobs":
            given["days"] = JOBS_DAYS.get(self.size, entry.given["days"])
        if entry.peer:
            given["python"] = str(python_of(self.cache, entry.peer))
        numbers = {"rows": given["rows"], **task(entry.task, given, self.cache)}
        numbers["against"] = {name: found[name]["cpu"] for name in entry.against}
        return numbers


class TaskFailed(Exception):
    """A task that ended without numbers, with what it said."""


def task(name: str, given: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """The numbers of one task; TaskFailed where it has none."""
    scratch = cache / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "benchmarks"), str(ROOT)]),
        "TMPDIR": str(scratch),
    }
    # A command is measured with compiled modules, as whoever starts a second time has them.
    if name in COMMANDS and environment.pop("PYTHONDONTWRITEBYTECODE", None):
        environment["PYTHONPYCACHEPREFIX"] = str(cache / "pycache")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "speed.work", name, json.dumps(given)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        raise TaskFailed(f"not done after {PATIENCE / 60:.0f} minutes") from None
    if done.returncode:
        raise TaskFailed(_said(done.stderr) or f"ended with {done.returncode}")
    try:
        numbers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        raise TaskFailed("said nothing that is a number") from None
    return numbers


def _said(errors: str) -> str:
    """What an error says, in one line, without the way to it."""
    found = list(_ERROR.finditer(errors))
    return " ".join(errors[found[-1].start() if found else 0 :].split())[:300]


def read(path: Path) -> dict[str, Results]:
    """Results by size, as they were kept."""
    if not path.exists():
        return {}
    found: dict[str, Results] = json.loads(path.read_text("utf-8"))
    return found


def keep(path: Path, size: str, results: Results) -> None:
    """Put results beside those of other entries and sizes."""
    found = read(path)
    merged = {**found.get(size, {}), **results}
    order = [name for name in ENTRIES if name in merged]
    found[size] = {name: merged[name] for name in order}
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    unfinished.replace(path)
