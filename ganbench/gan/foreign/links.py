"""Which names share an object after an assignment: who changes it by one name changes it for the other."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

# (of a name, to a name): a change of what the first stands for is one of what the second stands for.
Link = tuple[str, str]

# Their results hold nothing of what they are given.
_COPIES = frozenset(
    ("abs", "bool", "bytes", "float", "hash", "int", "isinstance", "len", "print", "range", "repr", "round", "str")
)


def root(node: ast.AST) -> str | None:
    """`opt` of `opt.sizes[0].pop()`; None where it starts with anything else than a name, as in `super().x`."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call | ast.Starred):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return None
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None


def links(target: ast.expr, value: ast.expr) -> Iterator[Link]:
    """Of one assignment, or of one step of a loop with its iterable as the value."""
    if isinstance(target, ast.Tuple | ast.List):
        pairs = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        for number, part in enumerate(target.elts):
            whole = value.elts[number] if pairs and isinstance(value, ast.Tuple | ast.List) else value
            yield from links(part, whole)
    elif isinstance(target, ast.Starred):
        yield from links(target.value, value)
    elif (name := root(target)) is not None:
        for other in _shared(value):
            yield from ((name, other), (other, name))
        for other in _held(value):
            yield other, name


def _shared(value: ast.expr) -> Iterator[str]:
    """Names of which the value is, or has, a piece."""
    if isinstance(value, ast.Name | ast.Attribute | ast.Subscript | ast.Starred):
        if (name := root(value)) is not None:
            yield name
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        # `group = parser.add_argument_group()`, `sizes = table.setdefault("sizes", [])`
        method = value.func.attr
        if method.startswith("add_") or method in {"setdefault", "get", "items", "values"}:
            yield from _shared(value.func.value)
    elif isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        if value.func.id in {"enumerate", "zip", "reversed", "iter", "list", "tuple", "sorted", "vars"}:
            for argument in value.args:
                yield from _shared(argument)
    elif isinstance(value, ast.IfExp):
        yield from _shared(value.body)
        yield from _shared(value.orelse)
    elif isinstance(value, ast.BoolOp | ast.List | ast.Tuple | ast.Set | ast.Dict):
        inside = value.elts if isinstance(value, ast.List | ast.Tuple | ast.Set) else value.values
        for part in inside:
            yield from _shared(part)
    elif isinstance(value, ast.NamedExpr | ast.Await):
        yield from _shared(value.value)
    elif isinstance(value, ast.BinOp):  # `[xs] + rest`
        yield from _shared(value.left)
        yield from _shared(value.right)


def _held(value: ast.expr) -> Iterator[str]:
    """Names that the value may have kept: what was given to a call."""
    if isinstance(value, ast.Call) and not (isinstance(value.func, ast.Name) and value.func.id in _COPIES):
        for argument in (*value.args, *(keyword.value for keyword in value.keywords)):
            if isinstance(argument, ast.Name):
                yield argument.id


def reached(names: Iterable[str], given: Iterable[Link]) -> set[str]:
    """The names, and all that links lead to from them."""
    found = set(names)
    further: dict[str, set[str]] = {}
    for name, other in given:
        further.setdefault(name, set()).add(other)
    todo = list(found)
    while todo:
        fresh = further.get(todo.pop(), set()) - found
        found |= fresh
        todo += fresh
    return found
