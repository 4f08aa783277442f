"""How many small faults in the metrics and the verdict rules the tests notice.

    make mutants ARGS='[FILE...] [--share 0.2] [--budget 5] [--again]'

First the tests run once, and it is noted which functions each of them calls.  Then, for every
mutant (``mutants``), the tests that call the changed function run until one fails, for as many
seconds of tests as ``--budget`` says (``mutant_runs``).  A mutant that none fails for survived, be
it that only tests notice it which do not take part: runs of a whole store take too long.

What was found is kept in ``--state``: a run can be stopped and taken up again.  ``--again`` tries
those that survived, and that mutants_left.json does not explain, against the tests as they are now.
``--write`` derives mutation.json: the counts, and the survivors that are still to be looked at.

The tools that there are do not fit: mutmut 3 changes nothing outside functions, and much of
``metrics`` is tables; cosmic-ray starts a new interpreter for every mutant.
"""

import argparse
import importlib
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from math import sqrt
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from mutant_runs import Broken, copied, enter, mapped, outcome
from mutant_swaps import Session
from mutants import Mutant, mutants_of

HERE = Path(__file__).parent
RECORD, LEFT = HERE / "mutation.json", HERE / "mutants_left.json"
TARGETS = ("metrics", "pipeline/verdicts.py", "pipeline/assessing/gating.py")
TESTS = (
    "chance", "comparison*", "docs::test_derived_parts_are_fresh", "evaluate", "families", "golden",
    "item_sums", "labels", "laws", "list_native*", "metrics", "quality*", "resampling", "top_k*",
    "verdicts", "against_brute_force", "trend_gates",
)  # fmt: skip
LIBRARIES = (
    "numpy", "pandas", "pandera.pandas", "pyarrow.parquet", "duckdb", "pydantic", "scipy.stats",
    "yaml", "click", "rich.console", "hypothesis.strategies",
)  # fmt: skip


COUNTED = ("mutants", "tried", "killed", "timeout", "survived", "explained")


def all_mutants(root: Path, paths: Sequence[str]) -> list[Mutant]:
    """Every mutant of files and folders, in the order of files and lines."""
    files = sorted(
        file
        for path in paths
        for file in ([root / path] if path.endswith(".py") else (root / path).rglob("*.py"))
    )
    return [
        mutant
        for file in files
        for mutant in mutants_of(file.relative_to(root).as_posix(), file.read_text("utf-8"))
    ]


def explained() -> set[str]:
    """Keys of the mutants that no test can notice; mutants_left.json says why."""
    left: dict[str, list[str]] = json.loads(LEFT.read_text("utf-8"))
    return {key for keys in left.values() for key in keys}


def wilson(hits: int, tried: int) -> tuple[float, float]:
    """95 % confidence interval of a share.  Source: Wilson 1927."""
    z = 1.96
    centre = (hits + z * z / 2) / (tried + z * z)
    half = z * sqrt(hits * (tried - hits) / tried + z * z / 4) / (tried + z * z)
    return centre - half, centre + half


def estimated(mutants: Sequence[Mutant], state: Mapping[str, str]) -> tuple[float, float, float]:
    """Share of mutants that are noticed, and the ends of its interval.

    Functions of which every mutant was tried are counted; of the others, what was tried is a
    sample: those inside functions are tried first, so the two differ.
    """
    parts: dict[tuple[str, str], list[str | None]] = {}
    for mutant in mutants:
        function = mutant.path, mutant.name.partition(":")[0]
        parts.setdefault(function, []).append(state.get(mutant.key))
    counted = [said for part in parts.values() if None not in part for said in part]
    others = [said for part in parts.values() if None in part for said in part]
    sample = [said for said in others if said is not None]
    known, some = (sum(said != "survived" for said in part) for part in (counted, sample))
    shares = (some / len(sample), *wilson(some, len(sample))) if sample else (0.0, 0.0, 1.0)
    whole = [(known + share * len(others)) / len(mutants) for share in shares]
    return whole[0], whole[1], whole[2]


def record(mutants: Sequence[Mutant], state: Mapping[str, str], left: Set[str]) -> Any:
    """Counts by file, all of them together, and the survivors that nobody has explained.

    ``noticed`` estimates the share of all mutants that a test fails for, or never ends, with a 95 %
    confidence ``interval``; equivalent ones are among those that are not.
    """
    files: dict[str, Counter[str]] = {}
    for mutant in mutants:
        counts = files.setdefault(
            mutant.path,
            Counter(dict.fromkeys(COUNTED, 0)),
        )
        counts["mutants"] += 1
        said = state.get(mutant.key)
        if said is not None:
            counts.update(("tried", said))
            counts["explained"] += said == "survived" and mutant.key in left
    total = {name: sum(counts[name] for counts in files.values()) for name in COUNTED}
    noticed, low, high = estimated(mutants, state)
    return {
        "total": total,
        "noticed": round(noticed, 4),
        "interval": [round(low, 4), round(high, 4)],
        "files": {path: dict(counts) for path, counts in files.items()},
        "unexplained": sorted(
            mutant.key
            for mutant in mutants
            if state.get(mutant.key) == "survived" and mutant.key not in left
        ),
    }


class Found:
    """What was found, kept in a file: the outcome of each mutant, by its key."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self.file, self.new, self.begun = file, 0, time.monotonic()
        self.outcomes: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}

    def add(self, mutant: Mutant, said: str) -> None:
        self.outcomes[mutant.key] = said
        self.new += 1
        if said == "survived":
            print(f"survived {mutant.path}:{mutant.line} {mutant.name}", flush=True)
        if self.new % 25 == 0:
            self.save()

    def save(self) -> None:
        self.file.write_text(json.dumps(self.outcomes, indent=1))
        taken, counts = time.monotonic() - self.begun, dict(Counter(self.outcomes.values()))
        print(f"{self.new} new, {taken:.0f} s: {counts}", flush=True)


def tried(asked: argparse.Namespace, todo: Sequence[Mutant], found: Found) -> None:
    """Try mutants: those inside functions in one session, the others one by one."""
    with tempfile.TemporaryDirectory(prefix="evenrank-mutants-") as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        tree = copied(asked.root, Path(folder))
        tests = mapped(tree, asked.tests, asked.state.with_suffix(".tests.json"))
        print(f"{len(tests)} tests of {sum(taken for _, taken, _ in tests):.0f} s", flush=True)
        done: set[str] = set()

        def report(mutant: Mutant, said: str) -> None:
            done.add(mutant.key)
            found.add(mutant, said)

        files = sorted({str(tree / name.partition("::")[0]) for name, _, _ in tests})
        session = os.fork()
        if session == 0:
            code = 1
            try:
                enter(tree)
                Session(tree, todo, tests, asked.budget, report).run(files)
                found.save()
                (tree.parent / "done.json").write_text(json.dumps(sorted(done)))
                code = 0
            except Broken as error:
                print(error, file=sys.stderr, flush=True)
            finally:
                os._exit(code)
        if os.waitpid(session, 0)[1]:
            raise Broken("the session of all tests ended early")
        found = Found(found.file)
        done |= set(json.loads((tree.parent / "done.json").read_text()))
        for mutant in todo:
            if mutant.key not in done:
                found.add(mutant, outcome(tree, mutant, tests, asked.budget))
        found.save()


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", default=TARGETS, help="files or folders to change")
    parser.add_argument("--share", type=float, default=1.0, help="try a sample of this share")
    parser.add_argument("--seed", type=int, default=1, help="of the sample and its order")
    parser.add_argument("--budget", type=float, default=5.0, help="seconds of tests per mutant")
    parser.add_argument("--again", action="store_true", help="those that survived, once more")
    parser.add_argument("--write", action="store_true", help="derive tests/mutation.json")
    parser.add_argument("--tests", nargs="+", default=TESTS, metavar="NAME", help="test_NAME.py")
    parser.add_argument("--root", type=Path, default=HERE.parent, help="the tree to work on")
    parser.add_argument("--state", type=Path, help="what was found; default .bench/mutants.json")
    asked = parser.parse_args()
    asked.state = asked.state or asked.root / ".bench" / "mutants.json"
    return asked


def main() -> None:
    asked = _asked()
    found = Found(asked.state)
    mutants = all_mutants(asked.root, asked.paths)
    some = random.Random(asked.seed).sample(mutants, round(asked.share * len(mutants)))
    before = "survived" if asked.again else None
    left = explained() if asked.again else set()
    todo = [
        mutant
        for mutant in some
        if found.outcomes.get(mutant.key) == before and mutant.key not in left
    ]
    print(f"{len(mutants)} mutants, {len(some)} chosen, {len(todo)} to try", flush=True)
    sys.dont_write_bytecode = False
    for name in LIBRARIES:
        importlib.import_module(name)
    try:
        if todo:
            tried(asked, todo, found)
    except Broken as error:
        sys.exit(str(error))
    if asked.write:
        RECORD.write_text(
            json.dumps(record(mutants, Found(asked.state).outcomes, explained()), indent=1) + "\n",
            "utf-8",
        )


if __name__ == "__main__":
    main()
