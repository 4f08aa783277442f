"""Mutants inside functions, tried without importing anything again.

What belongs here: one pytest session that has collected all tests, and for every mutant a process
forked from it in which the changed functions get their new code.  That is right only for functions
that nothing has called yet: what ran while modules were imported and tests collected, has left
results behind.  The others, and changes outside functions, are left to ``mutant_runs.outcome``.
"""

import gc
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from mutant_runs import QUIET, Broken, Test, chosen_tests, in_fork, limit
from mutants import Mutant, mutated

Place = tuple[str, str, int]
"""File, qualified name and first line of a function; lambdas of one line share it."""


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _by_place(module: CodeType) -> dict[Place, list[CodeType]]:
    found: dict[Place, list[CodeType]] = defaultdict(list)
    for code in _codes(module):
        found[code.co_filename, code.co_qualname, code.co_firstlineno].append(code)
    return found


def swaps(file: Path, mutant: Mutant) -> list[tuple[CodeType, CodeType]] | None:
    """The functions that a mutant changes, as they are and as they should be.

    None where that cannot be told: functions came or went.
    """
    source = file.read_text("utf-8")
    before = _by_place(compile(source, str(file), "exec"))
    after = _by_place(compile(mutated(source, mutant), str(file), "exec"))
    if {place: len(codes) for place, codes in before.items()} != {
        place: len(codes) for place, codes in after.items()
    }:
        return None
    pairs = [
        pair for place, codes in before.items() for pair in zip(codes, after[place], strict=True)
    ]
    changed = [(old, new) for old, new in pairs if old != new]
    fits = all(len(old.co_freevars) == len(new.co_freevars) for old, new in changed)
    return changed if changed and fits else None


class Session:
    """A pytest plugin that tries mutants where pytest would run the tests.

    ``report`` gets each mutant with its outcome; those that cannot be tried are passed over.
    """

    def __init__(
        self, tree: Path, todo: Sequence[Mutant], tests: Sequence[Test], budget: float,
        report: Callable[[Mutant, str], None],
    ) -> None:  # fmt: skip
        self.tree, self.todo, self.tests, self.budget = tree, todo, tests, budget
        self.report = report
        self.called: set[CodeType] = set()

    def run(self, files: Sequence[str]) -> None:
        """Collect the tests of ``files``, noting what is called on the way, and try the mutants."""
        sys.settrace(lambda frame, event, argument: self.called.add(frame.f_code))
        code = pytest.main(
            [*QUIET, "--capture=no", f"--basetemp={self.tree.parent}/tmp", *files], [self]
        )
        if code != 0:
            raise Broken(f"the tests cannot be collected (pytest said {int(code)})")

    def pytest_collection_finish(self) -> None:
        sys.settrace(None)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        functions: dict[CodeType, list[FunctionType]] = defaultdict(list)
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(
                str(self.tree)
            ):
                functions[each.__code__].append(each)
        gc.freeze()
        for mutant in self.todo:
            pairs = swaps(self.tree / mutant.path, mutant) if mutant.scope else None
            # Functions come before those inside them: the last holds the change.
            if pairs is None or pairs[-1][0] in self.called or not functions[pairs[0][0]]:
                continue
            chosen = chosen_tests(mutant, self.tests, self.budget)

            def tried(pairs: Any = pairs, chosen: Any = chosen) -> int:
                for old, new in pairs:
                    for function in functions[old]:
                        function.__code__ = new
                return _run([items[name] for name, _, _ in chosen], session)

            code = in_fork(tried, limit(chosen))
            self.report(mutant, "timeout" if code is None else "killed" if code else "survived")
        return True


def _run(items: Sequence[pytest.Item], session: pytest.Session) -> int:
    for at, item in enumerate(items):
        following = items[at + 1] if at + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed or session.shouldstop:
            return 1
    return 0
