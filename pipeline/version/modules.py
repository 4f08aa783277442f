"""Modules of the project as they are written: what their top levels define and import.

Source is parsed and never imported, so that a digest of it costs no import and runs nothing.

Not here: what is digested of them (``digest``).
"""

import ast
from collections.abc import Iterator
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("metrics", "schemas", "pipeline")

_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_TARGETS = (ast.Name, ast.Tuple, ast.List, ast.Starred)


class Definition(NamedTuple):
    """A top-level name of a module; the empty one stands for what may do more than bind names."""

    module: str
    name: str


class Imported(NamedTuple):
    """What an import binds: a module, or a name of it."""

    module: str
    name: str | None


def imported(
    statement: ast.Import | ast.ImportFrom, package: str
) -> Iterator[tuple[str, Imported]]:
    """What an import in a module of ``package`` binds, by the names that it binds."""
    for alias in statement.names:
        if isinstance(statement, ast.ImportFrom):
            module = resolve_name("." * statement.level + (statement.module or ""), package)
            yield alias.asname or alias.name, Imported(module, alias.name)
        elif alias.asname:
            yield alias.asname, Imported(alias.name, None)
        else:
            first = alias.name.partition(".")[0]
            yield first, Imported(first, None)


def says_nothing(statement: ast.stmt) -> bool:
    """Whether it does nothing when it runs: docstrings, imports, what type checkers alone read."""
    if isinstance(statement, ast.If):
        read = (getattr(statement.test, "id", None), getattr(statement.test, "attr", None))
        return "TYPE_CHECKING" in read and not statement.orelse
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, (*_IMPORTS, ast.Pass))


class Module:
    """Statements of a source file by the names that they bind, and what it imports."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.package = name if path.stem == "__init__" else name.rpartition(".")[0]
        self.imports: dict[str, Imported] = {}
        self.definitions: dict[str, list[ast.stmt]] = {}
        for statement in ast.parse(path.read_bytes()).body:
            bound = set()
            for node in _in_scope(statement):
                if isinstance(node, _IMPORTS):
                    self.imports.update(imported(node, self.package))
                elif isinstance(node, _DEFINED):
                    bound.add(node.name)
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    bound.add(node.id)
            if not says_nothing(statement):
                if not _only_binds(statement):
                    bound.add("")
                for each in bound - {"__all__"}:
                    self.definitions.setdefault(each, []).append(statement)


def _only_binds(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, _TARGETS) for target in statement.targets)
    if isinstance(statement, ast.AnnAssign | ast.AugAssign):
        return isinstance(statement.target, ast.Name)
    return isinstance(statement, _DEFINED)


def _in_scope(node: ast.AST) -> Iterator[ast.AST]:
    """``node`` and the statements and targets that it holds in the same scope."""
    yield node
    if not isinstance(node, (*_DEFINED, *_IMPORTS, ast.Name)):
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr) or isinstance(child, _TARGETS):
                yield from _in_scope(child)


class Source:
    """The packages of the project below a folder, read as far as somebody asks."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._read: dict[str, Module | None] = {}

    def find(self, name: str) -> Module | None:
        """A module by its dotted name; None where the project has no such module."""
        if name not in self._read:
            place = self.root.joinpath(*name.split("."))
            files = (place / "__init__.py", place.with_name(f"{place.name}.py"))
            file = next((file for file in files if _is_own(name) and file.is_file()), None)
            self._read[name] = Module(name, file) if file else None
        return self._read[name]

    def module(self, name: str) -> Module:
        """A module of the project; LookupError where there is none."""
        module = self.find(name)
        if module is None:
            raise LookupError(f"no source of {name} in {self.root}")
        return module

    def resolved(
        self, binding: Imported, rest: tuple[str, ...] = ()
    ) -> tuple[list[Definition], tuple[str, ...]]:
        """What ``rest``, attributes of what is imported, leads to: definitions, and what is left.

        A module that is passed on as a whole is all that it defines.  Of what others wrote, the
        whole dotted name is left.
        """
        if binding.name is not None:
            rest = (binding.name, *rest)
        if not _is_own(binding.module):
            return [], (*binding.module.split("."), *rest)
        module = self.module(binding.module)
        while rest:
            name, rest = rest[0], rest[1:]
            if name in module.definitions:
                return [Definition(module.name, name)], rest
            further = module.imports.get(name)
            # A package may import its own modules by name, which leads back here.
            if further and further != (module.name, name):
                return self.resolved(further, rest)
            if name.startswith("__"):
                return [], (name, *rest)
            module = self.module(f"{module.name}.{name}")
        return [Definition(module.name, name) for name in sorted(module.definitions)], ()


def _is_own(module: str) -> bool:
    return module.partition(".")[0] in PACKAGES
