"""No number that is kept comes from a function that differs from processor to processor."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("metrics", "schemas", "pipeline/counts", "pipeline/scores", "pipeline/monitoring",
         "pipeline/trends", "pipeline/compare", "pipeline/history")  # fmt: skip
FUNCTIONS = {"log", "log2", "log10", "log1p", "exp", "exp2", "expm1", "power", "float_power"}
FUNCTIONS |= {"logaddexp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arctan", "cbrt"}
FUNCTIONS |= {"einsum", "dot", "matmul", "tensordot", "inner", "interp"}
LIBRARIES = ("np", "numpy", "math")
ELSEWHERE = ("scipy", "statistics", "numpy.linalg")
MEDIAN = "median"
"""Of what is elsewhere, the one thing that only orders and halves."""
KEPT: dict[str, str] = {
    "pipeline/compare/batches/decomposition.py": "einsum: shown when it is asked for, never kept",
    "pipeline/scores/evidence/resampling.py": "@ of small whole weights and whole sums",
    "pipeline/trends/run_lengths.py": "interp: compiled once, for every processor",
}
"""Modules in which one stands all the same, and why."""


def used(tree: ast.AST) -> Iterator[str]:
    """Names of functions that a module takes from a library of numbers, and its matrix products."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("math", "numpy"):
            yield from (each.name for each in node.names if each.name in FUNCTIONS)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(ELSEWHERE):
            yield from (each.name for each in node.names if each.name != MEDIAN)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.startswith(ELSEWHERE))
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in LIBRARIES and node.attr in {*FUNCTIONS, "linalg"}:
                yield node.attr
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            # Squares are products, and powers of what is written out are computed beforehand.
            exact = isinstance(node.left, ast.Constant) or ast.unparse(node.left).startswith(
                "Decimal("
            )
            if ast.unparse(node.right) != "2" and not exact:
                yield ast.unparse(node)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield "@"


@pytest.mark.parametrize("room", ROOMS)
def test_numbers_that_are_kept_use_functions_of_our_own(room: str) -> None:
    found = {}
    for path in sorted((ROOT / room).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if names := sorted(set(used(ast.parse(path.read_text(encoding="utf-8"))))):
            found[name] = names
    assert set(found) <= set(KEPT), {name: found[name] for name in set(found) - set(KEPT)}
    for name in KEPT:
        assert not name.startswith(f"{room}/") or name in found, f"{name} needs no exception"


def test_each_is_seen() -> None:
    said = (
        "import numpy as np\nfrom math import log\nfrom statistics import NormalDist, median\n"
        "from scipy.special import ndtr\ny = np.exp(a @ b) + np.linalg.norm(a) + a**0.5 + a**2\n"
    )
    seen = ["@", "NormalDist", "a ** 0.5", "exp", "linalg", "log", "ndtr"]
    assert sorted(used(ast.parse(said))) == seen
