"""A digest of source by what it says to Python, definition by definition.

Comments, docstrings, imports and layout do not count, nor do the places and names of top-level
definitions: a reference to one counts as what that one says.  All else counts, texts such as SQL
included, and alike on every version of Python.

Not here: finding definitions (``modules``), and where numbers begin (``pipeline.version``).
"""

import ast
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.version.modules import Definition, Imported, Source, imported, says_nothing

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
_Named = ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.MatchMapping

_SAYS_NOTHING = {"ctx", "kind", "type_comment"}
_GAP = "?"


class Form(NamedTuple):
    """A definition as words, with gaps in the places of other definitions."""

    words: Sequence[str]
    gaps: Sequence[Definition]


def forms(
    root: Path, starts: Iterable[str], left_out: Collection[str] = ()
) -> dict[Definition, Form]:
    """The definitions that ``starts``, dotted names, reach by naming one another.

    ``root`` holds the packages.  Of definitions with a name that is ``left_out``, only the name
    counts.  Statements that are no definitions count with all others of their module.  LookupError
    where something of the project is named that is not there.
    """
    source = Source(root)
    form_of: dict[Definition, Form] = {}
    todo = []
    for start in starts:
        module, _, name = start.rpartition(".")
        todo += source.resolved(Imported(module, name))[0]
    while todo:
        definition = todo.pop()
        if definition not in form_of:
            form_of[definition] = _Writer(source, definition, left_out).form()
            todo += form_of[definition].gaps
            if "" in source.module(definition.module).definitions:
                todo.append(Definition(definition.module, ""))
    return form_of


def digest(reached: Mapping[Definition, Form]) -> str:
    """The digest of a set of definitions, in hexadecimal digits."""
    digests = dict.fromkeys(reached, "")
    kinds = 0
    # First of the words alone, then of what fills their gaps too, and so on until no more
    # definitions can be told apart: they may name each other in circles.
    while kinds < (kinds := len(set(digests.values()))):
        digests = {
            one: _sha256([*form.words, *(digests[gap] for gap in form.gaps)])
            for one, form in reached.items()
        }
    return _sha256(sorted(set(digests.values())))


def _sha256(words: Iterable[str]) -> str:
    return sha256("\n".join(words).encode()).hexdigest()


class _Scope:
    """What a block binds, and the names used in it: where in the words, and attributes of them."""

    def __init__(self, kind: str, around: "_Scope | None" = None) -> None:
        self.kind = kind
        self.around = around
        self.bound: dict[str, Imported | None] = {}
        self.elsewhere: set[str] = set()
        self.used: list[tuple[int, str, tuple[str, ...]]] = []

    def bind(self, name: str, binding: Imported | None = None) -> None:
        self.bound[name] = self.bound.get(name) or binding


class _Writer:
    """Writes one definition down."""

    def __init__(self, source: Source, one: Definition, left_out: Collection[str]) -> None:
        self.source, self.one, self.left_out = source, one, left_out
        self.module = source.module(one.module)
        self.words: list[str] = []
        self.gaps: dict[int, list[Definition]] = {}
        self.scope = _Scope("module")

    def form(self) -> Form:
        for statement in self.module.definitions[self.one.name]:
            self._write(statement)
        for at, name, rest in self.scope.used:
            if name in self.module.definitions:
                self._refer(at, [Definition(self.module.name, name)], rest)
            elif name in self.module.imports:
                self._refer(at, *self.source.resolved(self.module.imports[name], rest))
            else:
                self._refer(at, [], (name, *rest))
        return Form(self.words, [gap for at in sorted(self.gaps) for gap in self.gaps[at]])

    def _refer(self, at: int, found: Iterable[Definition], rest: tuple[str, ...]) -> None:
        words = []
        for definition in found:
            if definition == self.one:
                words.append("itself")
            elif definition.name in self.left_out:
                words.append(definition.name)
            else:
                words.append(_GAP)
                self.gaps.setdefault(at, []).append(definition)
        self.words[at] = ".".join((*words, *rest))

    # What a name means is known when its block ends, with all that the block binds.

    def _use(self, name: str, rest: tuple[str, ...] = ()) -> None:
        self.scope.used.append((len(self.words), name, rest))
        self.words.append("")

    def _bind(self, name: str) -> None:
        if self.scope.kind == "module" or name in self.scope.elsewhere:
            self._use(name)
        else:
            self.scope.bind(name)
            self.words.append(name)

    def _within(self, scope: _Scope, *parts: object) -> None:
        around, self.scope = self.scope, scope
        for part in parts:
            self._write(part)
        self.scope = around
        # Blocks inside a class do not see what it binds.
        while around.kind == "class" and around.around:
            around = around.around
        for at, name, rest in scope.used:
            if name not in scope.bound or name in scope.elsewhere:
                around.used.append((at, name, rest))
            elif binding := scope.bound[name]:
                self._refer(at, *self.source.resolved(binding, rest))
            else:
                self._refer(at, [], (name, *rest))
                if scope.kind == "class":
                    # Until the class binds it, the name is that of the block around.
                    around.used.append((len(self.words), name, rest))
                    self.words.append("")

    def _write(self, value: object) -> None:
        if isinstance(value, ast.AST):
            way = _WAYS.get(type(value))
            if way:
                way(self, value)
            else:
                self._in_general(value)
        elif isinstance(value, list):
            self.words.append("[")
            for each in value:
                self._write(each)
            self.words.append("]")
        else:
            self.words.append(str(value))

    def _in_general(self, node: ast.AST) -> None:
        """Its kind and all that it holds; what is empty is not even there in some Pythons."""
        self.words.append(f"{type(node).__name__}(")
        for field in node._fields:
            value = getattr(node, field, None)
            if value is not None and value != [] and field not in _SAYS_NOTHING:
                self.words.append(f"{field}=")
                self._write(value)
        self.words.append(")")

    def _statement(self, node: ast.stmt) -> None:
        if not says_nothing(node):
            self._in_general(node)

    def _import(self, node: ast.Import | ast.ImportFrom) -> None:
        for name, binding in imported(node, self.module.package):
            self.scope.bind(name, binding)

    def _elsewhere(self, node: ast.Global | ast.Nonlocal) -> None:
        self.scope.elsewhere.update(node.names)
        self.words.append(type(node).__name__)
        for name in node.names:
            self._use(name)

    def _name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._use(node.id)
        else:
            self._bind(node.id)

    def _attribute(self, node: ast.Attribute) -> None:
        names = [node.attr]
        while isinstance(node.value, ast.Attribute):
            node = node.value
            names.insert(0, node.attr)
        if isinstance(node.value, ast.Name):
            self._use(node.value.id, tuple(names))
        else:
            self._write(node.value)
            self.words += (f".{name}" for name in names)

    def _constant(self, node: ast.Constant) -> None:
        self.words.append(f"{type(node.value).__name__} {node.value!a}")

    def _f_string(self, node: ast.JoinedStr) -> None:
        """Pythons cut the texts between values differently."""
        self.words.append("f(")
        text = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                text += str(part.value)
            else:
                self.words.append(ascii(text))
                self._write(part)
                text = ""
        self.words += (ascii(text), ")")

    def _function(self, node: _Function) -> None:
        self.words.append(type(node).__name__)
        self._bind(node.name)
        self._write(node.decorator_list)
        self._write(node.returns)
        self._called(node.args, node.body)

    def _lambda(self, node: ast.Lambda) -> None:
        self.words.append("lambda")
        self._called(node.args, node.body)

    def _called(self, arguments: ast.arguments, body: object) -> None:
        # Defaults and annotations are read by the block around.
        self._in_general(arguments)
        scope = _Scope("function", self.scope)
        for node in ast.walk(arguments):
            if isinstance(node, ast.arg):
                scope.bind(node.arg)
        self._within(scope, body)

    def _class(self, node: ast.ClassDef) -> None:
        self.words.append("class")
        self._bind(node.name)
        for part in (node.decorator_list, node.bases, node.keywords):
            self._write(part)
        self._within(_Scope("class", self.scope), node.body)

    def _comprehension(self, node: _Comprehension) -> None:
        first, *others = node.generators
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self.words.append(type(node).__name__)
        # The first iterable is read by the block around.
        self._write(first.iter)
        self._within(
            _Scope("comprehension", self.scope),
            *(first.is_async, first.target, first.ifs, others, parts),
        )

    def _walrus(self, node: ast.NamedExpr) -> None:
        scope = self.scope
        while self.scope.kind == "comprehension" and self.scope.around:
            self.scope = self.scope.around
        self.words.append(":=")
        self._write(node.target)
        self.scope = scope
        self._write(node.value)

    def _named(self, node: _Named) -> None:
        name = node.rest if isinstance(node, ast.MatchMapping) else node.name
        if name:
            self.scope.bind(name)
        self._in_general(node)


_WAYS: Mapping[type, Callable[[_Writer, Any], None]] = {
    **dict.fromkeys((ast.Expr, ast.Pass), _Writer._statement),
    **dict.fromkeys((ast.Import, ast.ImportFrom), _Writer._import),
    **dict.fromkeys((ast.Global, ast.Nonlocal), _Writer._elsewhere),
    **dict.fromkeys((ast.FunctionDef, ast.AsyncFunctionDef), _Writer._function),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp), _Writer._comprehension),
    **dict.fromkeys((ast.ExceptHandler, ast.MatchAs, ast.MatchStar), _Writer._named),
    ast.MatchMapping: _Writer._named,
    ast.DictComp: _Writer._comprehension,
    ast.Name: _Writer._name,
    ast.Attribute: _Writer._attribute,
    ast.Constant: _Writer._constant,
    ast.JoinedStr: _Writer._f_string,
    ast.Lambda: _Writer._lambda,
    ast.ClassDef: _Writer._class,
    ast.NamedExpr: _Writer._walrus,
}
