"""The count of faults that tests notice: what is changed, who is asked, what is recorded."""

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mutant_runs import chosen_tests
from mutants import Mutant, mutants_of, mutated
from mutation import HERE, LEFT, RECORD, TARGETS, all_mutants, record, wilson

SOURCE = '''\
"""Text stays."""
LIMIT: int | None = 3


@decorated(5)
def first(a: int = 0, *, b: float) -> bool:
    """Text stays."""
    if a < b and not a:
        return True
    total = [x for x in range(2) if x]
    for one, other in zip(total, total, strict=True):
        total[one] = -other
    raise ValueError(f"{a:5d} of {min(a, b)}")


class Kept:
    def second(self) -> None:
        return None
'''
FOUND = [
    "module: 3 -> 4",
    "module: 3 -> 2",
    "first: 0 -> 1",
    "first: if a < b and (not a) -> if not (a < b and (not a))",
    "first: a < b and (not a) -> a < b or not a",
    "first: a < b -> a <= b",
    "first: a < b -> a >= b",
    "first: not a -> a",
    "first: True -> False",
    "first: for x in range(2) if x -> for x in range(2)",
    "first: 2 -> 3",
    "first: 2 -> 1",
    "first: total[one] = -other -> pass",
    "first: -other -> other",
    "first: raise ValueError(f'{a:5d} of {min(a, b)}') -> pass",
    "first: min -> max",
]


def test_every_kind_of_change_is_found_and_nothing_else() -> None:
    assert sorted(each.name for each in mutants_of("a.py", SOURCE)) == sorted(FOUND)


def test_each_mutant_differs_from_the_source_in_its_own_way() -> None:
    texts = [ast.unparse(mutated(SOURCE, each)) for each in mutants_of("a.py", SOURCE)]
    assert len({*texts, ast.unparse(ast.parse(SOURCE))}) == len(FOUND) + 1


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a + b", "a - b"),
        ("a * b", "a / b"),
        ("a ** b", "a * b"),
        ("a // b", "a * b"),
        ("a & b", "a | b"),
        ("~a", "a"),
        ("a == b", "a != b"),
        ("a is None", "a is not None"),
        ("a in b", "a not in b"),
        ("a if b else c", "c if b else a"),
        ("sorted(a)", "a"),
        ("a.any(axis=b)", "a.all(axis=b)"),
        ("a += b", "a -= b"),
        ("f(a)", "pass"),
    ],
)
def test_one_change(before: str, after: str) -> None:
    made = [ast.unparse(mutated(before, each)) for each in mutants_of("a.py", before)]
    assert after in made


def test_a_change_keeps_its_name_when_lines_move() -> None:
    moved = mutants_of("a.py", "import os\n\n\n" + SOURCE.replace('"""Text stays."""\n', "", 1))
    assert [each.key for each in moved] == [each.key for each in mutants_of("a.py", SOURCE)]


def test_the_same_change_twice_in_a_function_has_two_names() -> None:
    assert [each.name for each in mutants_of("a.py", "x = 1\ny = 1")] == [
        "module: 1 -> 2",
        "module: 1 -> 2 (#2)",
    ]


def test_cheap_tests_of_the_changed_function_come_first() -> None:
    calls, other = frozenset({"a.py:7"}), frozenset({"a.py:1", "b.py:7"})
    tests = [
        ("t.py::dear", 1.0, calls),
        ("t.py::many[1]", 0.3, calls),
        ("t.py::many[2]", 0.3, calls),
        ("t.py::many[3]", 0.3, calls),
        ("t.py::many[4]", 0.3, calls),
        ("t.py::elsewhere", 0.1, other),
    ]
    mutant = Mutant("a.py", "f: 1 -> 2", 8, frozenset({7}), 0, 0)
    names = [name for name, _, _ in chosen_tests(mutant, tests, 2.0)]
    assert names == ["t.py::many[1]", "t.py::many[2]", "t.py::many[3]", "t.py::dear"]
    assert [name for name, _, _ in chosen_tests(mutant, tests, 0.1)] == ["t.py::many[1]"]
    table = Mutant("a.py", "module: 1 -> 2", 1, frozenset(), 0, 0)
    assert chosen_tests(table, tests, 0.2)[0][0] == "t.py::elsewhere"
    unheard_of = Mutant("c.py", "module: 1 -> 2", 1, frozenset(), 0, 0)
    assert len(chosen_tests(unheard_of, tests, 99.0)) == len(tests)
    quiet = ("t.py::of_constants", 0.1, frozenset[str]())
    assert chosen_tests(unheard_of, [*tests, quiet], 99.0) == [quiet]


# A table, a function, and a function that was made while the module was imported.
TINY = """
LIMIT = 3
def clipped(x, low):
    if x < low:
        return low
    return x
def at_most(limit):
    def cut(x):
        return min(x, limit)
    return cut
cut = at_most(LIMIT)
"""
TINY_TESTS = """
from metrics.tiny import clipped, cut
def test_below(): assert clipped(1, 2) == 2
def test_above(): assert clipped(3, 2) == 3
def test_cut(): assert cut(9) == 3
"""


def test_a_run_tells_what_the_tests_notice_from_what_they_do_not(tmp_path: Path) -> None:
    for name, text in (("metrics/tiny.py", TINY), ("tests/test_tiny.py", TINY_TESTS)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    (tmp_path / "metrics" / "__init__.py").touch()
    command = [sys.executable, str(HERE / "mutation.py"), "metrics", "--root", str(tmp_path)]
    done = subprocess.run(
        [*command, "--tests", "tiny"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / ".bench" / "mutants.json").read_text()) == {
        "metrics/tiny.py: module: 3 -> 4": "killed",
        "metrics/tiny.py: module: 3 -> 2": "killed",
        "metrics/tiny.py: at_most: return cut -> return None": "killed",
        "metrics/tiny.py: at_most.cut: return min(x, limit) -> return None": "killed",
        "metrics/tiny.py: at_most.cut: min -> max": "killed",
        "metrics/tiny.py: clipped: if x < low -> if not x < low": "killed",
        # Where both are the same, so is the answer.
        "metrics/tiny.py: clipped: x < low -> x <= low": "survived",
        "metrics/tiny.py: clipped: x < low -> x >= low": "killed",
        "metrics/tiny.py: clipped: return low -> return None": "killed",
        "metrics/tiny.py: clipped: return x -> return None": "killed",
    }
    assert "survived metrics/tiny.py:4 clipped: x < low -> x <= low" in done.stdout
    (tmp_path / "tests" / "test_tiny.py").write_text("def test_no(): assert False")
    broken = subprocess.run(
        [*command, "--again", "--tests", "tiny"], capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert broken.returncode == 1
    assert "test_tiny.py fails without any change" in broken.stderr


def test_the_record_counts_by_file_and_names_what_is_not_explained() -> None:
    mutants = [Mutant("a.py", f"f: m{at}", 1, frozenset(), 0, 0) for at in range(5)]
    state = {"a.py: f: m0": "killed", "a.py: f: m1": "survived", "a.py: f: m2": "survived"}
    mutants.append(Mutant("b.py", "g: m", 1, frozenset(), 0, 0))
    found = record(mutants, state | {"b.py: g: m": "timeout"}, {"a.py: f: m1"})
    of_a = {"mutants": 5, "tried": 3, "killed": 1, "timeout": 0, "survived": 2, "explained": 1}
    assert found["files"]["a.py"] == of_a
    assert found["total"] == {**of_a, "mutants": 6, "tried": 4, "timeout": 1}
    # All of b.py was tried; of a.py 1 of 3, whose interval is Wilson's.
    low, high = wilson(1, 3)
    assert found["noticed"] == pytest.approx((1 + 5 / 3) / 6, abs=1e-4)
    assert found["interval"] == pytest.approx([(1 + 5 * low) / 6, (1 + 5 * high) / 6], abs=1e-4)
    assert found["unexplained"] == ["a.py: f: m2"]


def test_wilson_of_a_sample() -> None:
    """10 of 10: the lower end is n / (n + z^2)."""
    low, high = wilson(10, 10)
    assert low == pytest.approx(10 / (10 + 1.96**2))
    assert high == pytest.approx(1.0)


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return found


def test_what_was_measured_meets_the_bar(recorded: dict[str, Any]) -> None:
    total = recorded["total"]
    low, high = recorded["interval"]
    assert 0.85 <= low <= recorded["noticed"] <= high
    assert recorded["files"].keys() >= {"metrics/terms.py", "pipeline/verdicts.py"}
    for name, counts in recorded["files"].items():
        parts = counts["killed"] + counts["timeout"] + counts["survived"]
        assert parts == counts["tried"] <= counts["mutants"], name
        assert counts["explained"] <= counts["survived"]
    for what, number in total.items():
        assert number == sum(counts[what] for counts in recorded["files"].values())
    verdicts = recorded["files"]["pipeline/verdicts.py"]
    assert verdicts["tried"] == verdicts["mutants"]


def test_every_survivor_was_looked_at(recorded: dict[str, Any]) -> None:
    left = json.loads(LEFT.read_text("utf-8"))
    keys = [key for keys in left.values() for key in keys]
    assert len(keys) == len(set(keys))
    assert recorded["unexplained"] == []
    made = {mutant.key for mutant in all_mutants(HERE.parent, TARGETS)}
    gone = set(keys) - made
    assert not gone, "changed since: look again, or remove them from mutants_left.json"
