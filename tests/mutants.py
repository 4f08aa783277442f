"""Small faults that a test should notice: every place in a module where one can be put.

What belongs here: the kinds of change, and a module's source with one of them made.  A change is
named by where it is, what stood there and what stands there now, not by its line, so that its name
outlives edits elsewhere in the file.  Left as they are: text, annotations, decorators, and
``strict=`` of zip, which only guards.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

COMPARED: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
COMPUTED: dict[type[ast.operator], list[type[ast.operator]]] = {
    ast.Add: [ast.Sub],
    ast.Sub: [ast.Add],
    ast.Mult: [ast.Div],
    ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult],
    ast.Mod: [ast.Mult],
    ast.Pow: [ast.Mult],
    ast.MatMult: [ast.Mult],
    ast.BitAnd: [ast.BitOr],
    ast.BitOr: [ast.BitAnd],
    ast.BitXor: [ast.BitAnd],
}
_PAIRS = [
    ("min", "max"), ("minimum", "maximum"), ("fmin", "fmax"), ("argmin", "argmax"),
    ("nanmin", "nanmax"), ("any", "all"), ("sum", "mean"), ("floor", "ceil"),
    ("zeros", "ones"), ("zeros_like", "ones_like"), ("isnan", "isfinite"),
    ("log", "log2"), ("exp", "exp2"), ("union", "intersection"), ("lower", "upper"),
    ("left", "right"), ("low", "high"), ("first", "last"),
]  # fmt: skip
RENAMED = {a: b for one, other in _PAIRS for a, b in ((one, other), (other, one))}
UNWRAPPED = {"abs", "sorted", "reversed", "sqrt", "cumsum", "unique", "round", "expm1", "log1p"}


@dataclass(frozen=True)
class Mutant:
    """One change.  ``scope`` are the first lines of the function around it, empty at module level.

    ``at`` is the place of the changed node in ``ast.walk``, ``choice`` which of its changes.
    """

    path: str
    name: str
    line: int
    scope: frozenset[int] = field(compare=False)
    at: int = field(compare=False)
    choice: int = field(compare=False)

    @property
    def key(self) -> str:
        return f"{self.path}: {self.name}"


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What could stand in a node's place."""
    match node:
        case ast.Compare(ops=ops):
            for place, op in enumerate(ops):
                for other in COMPARED[type(op)]:
                    changed = [*ops[:place], other(), *ops[place + 1 :]]
                    yield ast.Compare(node.left, changed, node.comparators)
        case ast.BinOp():
            for operator in COMPUTED.get(type(node.op), []):
                yield ast.BinOp(node.left, operator(), node.right)
        case ast.AugAssign():
            for operator in COMPUTED.get(type(node.op), []):
                yield ast.AugAssign(node.target, operator(), node.value)
            yield ast.Pass()
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert()):
            yield node.operand
        case ast.BoolOp():
            yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
        case ast.IfExp():
            yield ast.IfExp(node.test, node.orelse, node.body)
        case ast.If():
            yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.While():
            yield ast.While(ast.Constant(False), node.body, node.orelse)
        case ast.comprehension() if node.ifs:
            yield ast.comprehension(node.target, node.iter, [], node.is_async)
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(node.value + 1)
            if node.value not in (0, 1):
                yield ast.Constant(node.value - 1)
        case ast.Return(value=ast.expr()) if not _plain(node.value):
            yield ast.Return(ast.Constant(None))
        case ast.Continue():
            yield ast.Break()
        case ast.Break():
            yield ast.Continue()
        case ast.Raise() | ast.Expr(value=ast.Call()):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield ast.Pass()
        case ast.Call(func=ast.Attribute() | ast.Name()):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if name in UNWRAPPED and node.args:
                yield node.args[0]
        case ast.Attribute(ctx=ast.Load()) if node.attr in RENAMED:
            yield ast.Attribute(node.value, RENAMED[node.attr], node.ctx)
        case ast.Name(id="min" | "max" | "any" | "all", ctx=ast.Load()):
            yield ast.Name(RENAMED[node.id], node.ctx)


def _plain(node: ast.AST) -> bool:
    """None, False and True: the last two have a change of their own."""
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))


def _left_alone(parent: ast.AST, name: str, child: ast.AST) -> bool:
    if name in ("annotation", "returns", "decorator_list"):
        return True
    if isinstance(parent, ast.JoinedStr | ast.FormattedValue):
        return name == "format_spec"
    return isinstance(child, ast.keyword) and child.arg == "strict"


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield name, child


def _visited(
    node: ast.AST, within: tuple[str, ...], scope: frozenset[int]
) -> Iterator[tuple[ast.AST, tuple[str, ...], frozenset[int]]]:
    yield node, within, scope
    for name, child in _children(node):
        if _left_alone(node, name, child):
            continue
        inner = (within, scope)
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            inner = ((*within, child.name), scope)
        # Defaults of a function's arguments are made where it is defined.
        if isinstance(node, ast.FunctionDef | ast.Lambda) and name == "body":
            first = [node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))]
            inner = (inner[0], frozenset(first))
        yield from _visited(child, *inner)


def mutants_of(path: str, source: str) -> list[Mutant]:
    """Every change of a module that can be made and is one."""
    tree = ast.parse(source)
    places = {id(node): at for at, node in enumerate(ast.walk(tree))}
    found, seen = [], Counter[str]()
    for node, within, scope in _visited(tree, (), frozenset()):
        line = getattr(node, "lineno", None) or min(
            (part.lineno for part in ast.walk(node) if hasattr(part, "lineno")), default=1
        )
        for choice, after in enumerate(changes(node)):
            name = f"{'.'.join(within) or 'module'}: {_shown(node)} -> {_shown(after)}"
            seen[name] += 1
            if seen[name] > 1:
                name += f" (#{seen[name]})"
            found.append(Mutant(path, name, line, scope, places[id(node)], choice))
    return found


def _shown(node: ast.AST) -> str:
    """A node in one line; of a statement with a body, its head."""
    if isinstance(node, ast.If | ast.While):
        kind = "if" if isinstance(node, ast.If) else "while"
        return f"{kind} {ast.unparse(node.test)}"
    text = " ".join(ast.unparse(ast.fix_missing_locations(node)).split())
    return text if len(text) <= 100 else f"{text[:60]} ... {text[-36:]}"


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """The module with the change made."""
    tree = ast.parse(source)
    target = list(ast.walk(tree))[mutant.at]
    after = list(changes(target))[mutant.choice]
    if hasattr(target, "lineno"):
        ast.copy_location(after, target)
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is target:
                setattr(parent, name, after)
            elif isinstance(value, list):
                value[:] = [after if each is target else each for each in value]
    return ast.fix_missing_locations(tree)
