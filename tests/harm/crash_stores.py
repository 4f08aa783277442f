"""A store to be harmed, and what must be true of it afterwards.

One audit of four days is made once: two are in the history, the files of the third and of a new
delivery of the second are computed and wait.  Every trial gets a copy.
"""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
from crash_children import Children, Ended, Plan
from stores import LENIENT, RUN_COLUMNS, deliver, random_lists

from pipeline.history.ledger import Ledger
from pipeline.settings.audit import Settings
from pipeline.settings.load import load_settings
from pipeline.store.checkpoints import is_begun
from pipeline.store.paths import store_of
from schemas.columns import literal, quoted
from schemas.history import HISTORY_TABLES, LEDGER_HEAD
from schemas.monitoring import ASSESSED

DAYS = ("2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04")
RUNS = 2
"""Files that are computed for a batch, each by a run of its own."""
_SETTINGS = f"""\
attributes: [gender]
slices: [device]
metrics: [EXP, NDKL]
thresholds: {{EXP.MinMaxRatio: {{min: 1.0}}}}
threads: 1
busy_seconds: 30
evidence: {LENIENT}
"""
_LISTS = 40
_TIMES = {
    *(name for name in RUN_COLUMNS if name != "revision"),
    "assessed_at",
    "acknowledged_at",
    "notified_at",
    "acted_at",
    "created_at",
}
_STATUS = {"status", "status_reason"}
"""What an assessment, which comes after the merge, may still change."""
Rows = tuple[str, ...]
State = dict[str, Rows]
"""Rows of every table of a history, as text and in order, without what differs between runs."""
States = dict[str | None, State]


@dataclass(frozen=True)
class Scene:
    """A command, the store it meets, and what the history is before and after it.

    ``computed`` are files of runs that computed the batch; none: the command computes it.
    """

    name: str
    folder: Path
    words: tuple[str, ...]
    batch: str | None
    computed: tuple[str, ...]
    before: States
    after: States
    ended: Path
    """The audit as the command leaves it, undisturbed."""

    def copy(self, to: Path) -> Path:
        """A copy of the audit for one trial."""
        shutil.copytree(self.folder, to)
        return to

    def run(
        self, children: Children, folder: Path, plan: Plan | None = None, turn: int = 0
    ) -> Ended:
        """Run the command in ``folder``; each ``turn`` is a run of its own."""
        return children.run(folder, self.words, plan, self.computed[turn] if self.computed else "")

    def computing(self) -> "Scene":
        """The same scene, computed by the command itself."""
        return replace(self, computed=())


def settings_in(folder: Path) -> Settings:
    """The settings of an audit in ``folder``."""
    return load_settings(folder / "audit.yaml")


def state(path: Path) -> State:
    """What a history, or a published copy, holds in tables that are not empty."""
    if not path.exists() or is_begun(path):
        return {}
    with duckdb.connect(str(path), read_only=True) as connection:
        return _rows(connection, None)


def states(path: Path) -> States:
    """What a history holds: all of it under None, and what the merge of each batch wrote."""
    if not path.exists() or is_begun(path):
        return {}
    with duckdb.connect(str(path), read_only=True) as connection:
        return {batch: _rows(connection, batch) for batch in (None, *DAYS)}


def _rows(connection: duckdb.DuckDBPyConnection, batch: str | None) -> State:
    found = {}
    without = _TIMES | (_STATUS if batch else set())
    there = {name for (name,) in connection.execute("SHOW TABLES").fetchall()}
    for table in HISTORY_TABLES:
        if table.name not in there or table is LEDGER_HEAD:
            continue
        if batch and (table in ASSESSED or "batch" not in table.names):
            continue
        names = ", ".join(quoted(name) for name in table.names if name not in without)
        where = f"WHERE batch = {literal(batch)}" if batch else ""
        rows = connection.execute(f"SELECT {names} FROM {table.name} {where}").fetchall()
        if rows:
            found[table.name] = tuple(sorted(map(repr, rows)))
    return found


def scenes(children: Children, folder: Path) -> list[Scene]:
    """The scenes: a first batch, a new one, one that is replaced, and a mark by somebody."""
    empty = folder / "empty"
    empty.mkdir(parents=True)
    (empty / "audit.yaml").write_text(_SETTINGS, encoding="utf-8")
    for seed, day in enumerate(DAYS, 1):
        deliver(empty, random_lists(seed, _LISTS), batch=day)
    two = folder / "two"
    shutil.copytree(empty, two)
    for day in DAYS[:2]:
        _done(children.run(two, ("run", "--quiet", "--batch", day)))
    again = folder / "again"
    shutil.copytree(two, again)
    deliver(again, random_lists(9, _LISTS), batch=DAYS[1])
    return [
        _scene(children, "first", empty, DAYS[0]),
        _scene(children, "new", two, DAYS[2]),
        _scene(children, "replaced", again, DAYS[1]),
        _scene(children, "marked", two, None),
    ]


def _done(ended: Ended) -> None:
    assert ended.code == 0, ended


def _scene(children: Children, name: str, folder: Path, batch: str | None) -> Scene:
    """Play a scene undisturbed, ``RUNS`` times where it computes a batch, to know how it ends."""
    words: tuple[str, ...] = ("mark", "--quiet", "--batch", DAYS[1], "--text", "a release")
    if batch:
        words = ("run", "--quiet", "--batch", batch)
    computed: tuple[str, ...] = ()
    (folder / "computed").mkdir(exist_ok=True)
    for turn in range(RUNS if batch else 1):
        done = folder.with_name(f"{name}-{turn}")
        shutil.copytree(folder, done)
        _done(children.run(done, words))
        if batch:
            store = store_of(settings_in(done))
            runs = [line["run_id"] for line in Ledger(store.ledger).read().kept if "sha256" in line]
            computed = (*computed, f"computed/{runs[-1]}.duckdb")
            shutil.copyfile(store.batch(batch), folder / computed[-1])
    before, after = (states(store_of(settings_in(each)).history) for each in (folder, done))
    return Scene(name, folder, words, batch, computed, before, after, done)
