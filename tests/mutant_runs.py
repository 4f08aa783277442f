"""Tests against mutants: which tests call the changed function, and whether one of them fails.

What belongs here: processes and pytest.  Every run of tests is a process forked from one that has
loaded the libraries, in a copy of the tree, so that edits meanwhile do not matter.
"""

import hashlib
import importlib.machinery
import importlib.util
import json
import os
import resource
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from mutants import Mutant, mutated

MEMORY = 8 << 30
QUIET = ["-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", "--tb=no", "-x"]
COPIED = ("metrics", "schemas", "pipeline", "assets", "tests", "docs", "examples", ".ci")
OWN = ("mutants.py", "mutant_runs.py", "mutant_swaps.py", "mutation.py")

Test = tuple[str, float, frozenset[str]]
"""A test, the seconds that it takes, and the functions that it calls, as ``path:first line``."""


class Broken(Exception):
    """The tests cannot be used: they fail without any change, or none ran."""


class Traced:
    """A pytest plugin that notes which functions of the tree each test calls."""

    def __init__(self, tree: Path) -> None:
        self.prefixes = tuple(f"{tree}/{top}" for top in ("metrics", "pipeline"))
        self.strip = len(f"{tree}/")
        self.called: set[Any] = set()
        self.tests: list[tuple[str, float, list[str]]] = []

    def _call(self, frame: Any, event: str, argument: Any) -> None:
        self.called.add(frame.f_code)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self.called = set()
        begun = time.process_time()
        threading.settrace(self._call)
        sys.settrace(self._call)
        yield
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        taken = time.process_time() - begun
        calls = {
            f"{code.co_filename[self.strip :]}:{code.co_firstlineno}"
            for code in self.called
            if code.co_filename.startswith(self.prefixes)
        }
        self.tests.append((item.nodeid, round(taken, 4), sorted(calls)))


class Chosen:
    """A pytest plugin that keeps certain tests, in a certain order."""

    def __init__(self, names: Sequence[str]) -> None:
        self.place = {name: at for at, name in enumerate(names)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        kept = [item for item in items if item.nodeid in self.place]
        items[:] = sorted(kept, key=lambda item: self.place[item.nodeid])


class Changed(importlib.machinery.SourceFileLoader):
    """Finds and loads one module of the tree with a mutant in it."""

    def __init__(self, tree: Path, mutant: Mutant) -> None:
        parts = Path(mutant.path).with_suffix("").parts
        super().__init__(".".join(parts).removesuffix(".__init__"), str(tree / mutant.path))
        self.mutant = mutant

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def get_code(self, fullname: str) -> Any:
        source = Path(self.path).read_text("utf-8")
        return compile(mutated(source, self.mutant), self.path, "exec")


def copied(root: Path, to: Path) -> Path:
    """A copy of what the tests need."""
    tree = to / "tree"
    tree.mkdir()
    for name in COPIED:
        if (root / name).is_dir():
            left = shutil.ignore_patterns("__pycache__")
            shutil.copytree(root / name, tree / name, ignore=left)
    for file in root.glob("*.*"):
        if file.suffix in (".toml", ".yaml", ".md", ".lock") and file.is_file():
            shutil.copy(file, tree)
    return tree


def in_fork(work: Callable[[], int], seconds: float) -> int | None:
    """Exit code of ``work`` in a process of its own, None if it took longer than ``seconds``.

    Seconds are those of the processor, or ten times as many of the clock: other work on the machine
    must not look like an endless loop.  An exception is the exit code 1.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (ceil(seconds), ceil(seconds) + 1))
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            code = work()
        finally:
            # Nothing of the parent's must run here, whatever went wrong.
            os._exit(code)
    until = time.monotonic() + 10 * seconds
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            return None if code in (-signal.SIGXCPU, -signal.SIGKILL) else code
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def enter(tree: Path) -> None:
    """From here on this process works in the copy."""
    os.chdir(tree)
    sys.path[:0] = [str(tree), str(tree / "tests")]


def in_child(
    tree: Path, hook: Any, changed: Changed | None, files: Iterable[str], seconds: float
) -> int | None:
    """What pytest says in a process of its own, None if it took longer than ``seconds``."""

    def work() -> int:
        enter(tree)
        sys.meta_path[:0] = [changed] if changed else []
        code = int(pytest.main([*QUIET, f"--basetemp={tree.parent}/tmp", *files], [hook]))
        if isinstance(hook, Traced):
            (tree.parent / "calls.json").write_text(json.dumps(hook.tests))
        return code

    return in_fork(work, seconds)


def _digest(files: Iterable[Path]) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in sorted(files))).hexdigest()


def mapped(tree: Path, names: Sequence[str], cache: Path) -> list[Test]:
    """What every test of the files ``test_NAME.py`` calls; ``NAME::function`` for one of a file.

    A file of tests that is as it was, like all that is not a test, is taken from ``cache``.
    """
    asked = [name.partition("::") for name in names]
    files = {(file, of) for name, _, of in asked for file in tree.glob(f"tests/test_{name}.py")}
    sources = {
        file for top in ("metrics", "schemas", "pipeline") for file in tree.glob(f"{top}/**/*.py")
    }
    helpers = {file for file in tree.glob("tests/*.py") if not file.name.startswith("test_")}
    base = _digest(sources | helpers - {tree / "tests" / name for name in OWN})
    known = json.loads(cache.read_text()) if cache.exists() else {}
    found: list[Test] = []
    for file, of in sorted(files):
        key = f"{file.name} {of} {base} {_digest([file])}"
        if key not in known:
            test = f"{file}::{of}" if of else str(file)
            code = in_child(tree, Traced(tree), None, [test], 3600)
            if code != 0:
                raise Broken(f"{file.name} fails without any change (pytest said {code})")
            known[key] = json.loads((tree.parent / "calls.json").read_text())
            cache.write_text(json.dumps(known))
        found += [(name, taken, frozenset(calls)) for name, taken, calls in known[key]]
    return found


def chosen_tests(mutant: Mutant, tests: Sequence[Test], budget: float) -> list[Test]:
    """Tests that call the changed function, cheapest first, for ``budget`` seconds.

    The n-th case of a test function counts as n times as dear as it is: another function's first
    says more.  A change outside functions is for the tests that call any function of its module, or
    none at all, after the one of the documentation: it notices most changes of a table.
    """
    wanted = {f"{mutant.path}:{line}" for line in mutant.scope}
    near = [test for test in tests if test[2] & wanted]
    first: list[Test] = []
    if not near:
        first = [test for test in tests if "test_docs.py" in test[0]]
        near = [
            test
            for test in tests
            if not test[2] or any(call.startswith(mutant.path) for call in test[2])
        ]
    nth: Counter[str] = Counter()
    ranked = [(0.0, test) for test in first]
    for test in sorted(near or tests, key=lambda test: test[1]):
        function = test[0].partition("[")[0]
        nth[function] += 1
        if test not in first:
            ranked.append((test[1] * nth[function], test))
    chosen, total = [], 0.0
    for _, test in sorted(ranked, key=lambda each: each[0]):
        total += test[1]
        if chosen and total > budget:
            break
        chosen.append(test)
    return chosen


def limit(chosen: Sequence[Test]) -> float:
    """Seconds of the processor after which tests never end."""
    return 5.0 + 4.0 * sum(taken for _, taken, _ in chosen)


def outcome(tree: Path, mutant: Mutant, tests: Sequence[Test], budget: float) -> str:
    """killed, timeout or survived."""
    chosen = chosen_tests(mutant, tests, budget)
    names = [name for name, _, _ in chosen]
    files = sorted({str(tree / name.partition("::")[0]) for name in names})
    seconds = limit(chosen)
    code = in_child(tree, Chosen(names), Changed(tree, mutant), files, seconds)
    if code == int(pytest.ExitCode.NO_TESTS_COLLECTED):
        raise Broken(f"no test ran for {mutant.key}")
    return "timeout" if code is None else "killed" if code else "survived"
