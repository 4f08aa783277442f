"""Each module says what belongs in it, and what does not."""

import ast
from pathlib import Path

import pytest
from places import ROOT

PACKAGES = ("metrics", "schemas", "pipeline", "assets")
MODULES = [path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_does_not_belong(path: Path) -> None:
    head = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    first = head.split("\n\n", 1)[0]
    assert 1 <= first.count("\n") + 1 <= 3, "one sentence on what it is"
    assert "Not here: " in " ".join(head.split())
