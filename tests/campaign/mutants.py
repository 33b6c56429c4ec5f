"""Small changes of Python code, each of which some test should notice."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt,), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt,), ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}
OPERATIONS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any", "sum": "max"}
# What only people read, or what only tools for types do.
UNREAD = (ast.Raise, ast.JoinedStr, ast.AnnAssign, ast.arg, ast.Import, ast.ImportFrom, ast.Assert)
UNREAD_FUNCTIONS = ("__repr__", "way")
UNREAD_KEYWORDS = ("strict",)  # of `zip`: an assertion, too
COMMUTATIVE = ("maximum", "minimum")  # functions of NumPy


class Mutant(NamedTuple):
    """
    A change of a module.

    Attributes
    ----------
    function : str
        The qualified name of the function, or an empty string outside of functions.
    before, after : str
        The expression or statement that is changed, in the notation of `ast.unparse`.
    number : int
        Of equal changes in the same function.
    line : int
    """

    function: str
    before: str
    after: str
    number: int
    line: int

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What identifies it, even if other parts of the module change."""
        return self.function, self.before, self.after, self.number


def changes_of(node: ast.AST) -> Iterator[ast.AST | None]:
    """The nodes that may replace one; None deletes a statement."""
    match node:
        case ast.Compare(left, [operator], [right]):
            for other in COMPARISONS[type(operator)]:
                yield ast.Compare(left, [other()], [right])
        case ast.Compare(left, operators, values):  # a chain loses its first or its last comparison
            yield ast.Compare(values[0], operators[1:], values[1:])
            yield ast.Compare(left, operators[:-1], values[:-1])
        case ast.BinOp(left, operator, right) if type(operator) in OPERATIONS:
            yield ast.BinOp(left, OPERATIONS[type(operator)](), right)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
            for i in range(len(values)):
                rest = values[:i] + values[i + 1:]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(operator, rest)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield operand
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Call(ast.Name(name) as function, arguments, keywords) if name in FUNCTIONS:
            yield ast.Call(ast.Name(FUNCTIONS[name]), arguments, keywords)
            for i in range(len(arguments) if name in ("min", "max") and len(arguments) > 1 else 0):
                yield ast.Call(function, arguments[:i] + arguments[i + 1:], keywords) if len(arguments) > 2 else (
                    arguments[1 - i])
        case ast.Call(ast.Attribute(attr=name), [_, _]) if name in COMMUTATIVE:
            return
        case ast.Call(function, [first, second, *others], keywords) if ast.dump(first) != ast.dump(second):
            yield ast.Call(function, [second, first, *others], keywords)
        case ast.If(test, [ast.Raise() | ast.Return(), *_]):
            yield ast.If(ast.Constant(False), node.body, node.orelse)
        case ast.AugAssign() | ast.Expr(ast.Call()):
            yield None
        case ast.Slice(lower, upper, step) if lower is not None and upper is None:
            yield ast.Slice(None, upper, step)


def places_of(node: ast.AST, function: str = "") -> Iterator[tuple[ast.AST, str, list[object] | ast.AST, int | str]]:
    """All nodes that can be changed: with their function, and where their parent keeps them."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for place, child in enumerate(value) if isinstance(value, list) else [(field, value)]:
            if not isinstance(child, ast.AST) or isinstance(child, UNREAD):
                continue
            if isinstance(child, ast.keyword) and child.arg in UNREAD_KEYWORDS:
                continue
            if getattr(child, "name", "") in UNREAD_FUNCTIONS or "TYPE_CHECKING" in ast.dump(child)[:60]:
                continue
            inner = function
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                inner = f"{function}.{child.name}".lstrip(".")
            yield child, inner, value if isinstance(value, list) else node, place
            yield from places_of(child, inner)


def first_line(node: ast.AST) -> str:
    """A node as text; of a statement with a body, the first line."""
    return ast.unparse(ast.fix_missing_locations(node)).splitlines()[0]


def changes(tree: ast.AST) -> Iterator[tuple[Mutant, list[object] | ast.AST, int | str, ast.AST]]:
    """All changes of a module, one at a time: with the place of the changed node, and its replacement."""
    numbers: dict[tuple[str, str, str], int] = {}
    for node, function, parent, place in list(places_of(tree)):
        for change in changes_of(node):
            new = ast.Pass() if change is None else change
            before, after = first_line(node), "pass" if change is None else first_line(new)
            line: int = node.lineno if hasattr(node, "lineno") else node.lower.lineno  # type: ignore[attr-defined]
            number = numbers[function, before, after] = numbers.get((function, before, after), -1) + 1
            yield Mutant(function, before, after, number, line), parent, place, ast.copy_location(new, node)


def mutants_of(source: str) -> list[Mutant]:
    """All changes of a module."""
    return [mutant for mutant, *_ in changes(ast.parse(source))]


def mutated(source: str, wanted: Mutant) -> str:
    """The module with a change."""
    tree = ast.parse(source)
    parent, place, new = next(change for mutant, *change in changes(tree) if mutant == wanted)
    put(parent, place, new)
    return ast.unparse(ast.fix_missing_locations(tree))


def put(parent: list[object] | ast.AST, place: int | str, node: ast.AST) -> None:
    """Set a child of a node."""
    if isinstance(parent, list):
        assert isinstance(place, int)
        parent[place] = node
    else:
        setattr(parent, str(place), node)
