"""Rooms of ``pipeline`` and who may import whom, from docstrings and from ``pyproject.toml``.

Not here: ways through the rooms, which are prose.
"""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

from docs.build.markdown import code, grid

ROOT = Path(__file__).resolve().parents[2]


def _contracts() -> list[dict[str, Any]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts: list[dict[str, Any]] = project["tool"]["importlinter"]["contracts"]
    return contracts


def _layers(name: str) -> list[str]:
    """Layers of a contract, the highest first; rooms of one layer are joined by ``|``."""
    return next(list(each["layers"]) for each in _contracts() if each["id"] == name)


def _head(room: str) -> tuple[str, str]:
    """What a room's docstring says belongs there, and what it says does not."""
    place = ROOT / "pipeline" / room
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    head = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    here, said, other = head.replace("``", "`").partition("Not here:")
    if not said:
        raise ValueError(f"{file}: its docstring does not say what is 'Not here:'")
    here = re.sub(r"Here:\s+(\w)", lambda match: match[1].upper(), here)
    other = other.strip().partition("\n\n")[0]
    return " ".join(here.split()), " ".join((other[0].upper() + other[1:]).split())


def rooms() -> str:
    """One line per room, from the command line down to the ground."""
    named = [room for layer in _layers("way") for room in layer.split(" | ")]
    return grid(
        ("room", "belongs there", "does not"), ((code(room), *_head(room)) for room in named)
    )


def ways() -> str:
    """Packages and rooms in layers, and what else is forbidden."""
    lines = []
    for package in _layers("layers"):
        inside = _layers("way") if package == "pipeline" else [""]
        lines.append(f"{package:<10}{inside[0]}".rstrip())
        lines += [f"{'':<10}{layer}" for layer in inside[1:]]
    others = [each["name"] for each in _contracts() if each["type"] == "forbidden"]
    return "\n".join(["```text", *lines, "```", "", f"Besides: {'; '.join(others)}."])
