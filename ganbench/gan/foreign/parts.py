"""A module's statements as a flat list of parts, and the module that is left when only some are kept.

A part is a statement without statements of its own, or the head of one that has some (`if cuda:`). An
`if __name__ == "__main__":` block is no part: nothing of it is ever run.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from ganbench.gan.foreign.blocks import Names, names_of
from ganbench.gan.foreign.links import links

Compound = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
Loop = (ast.For, ast.AsyncFor, ast.While)
_SUITES = ("body", "orelse", "finalbody")

Node = TypeVar("Node", bound=ast.AST)


@dataclass(eq=False)
class Part:
    """One statement or head. `top`: position of the module's own statement in which it stands. `above`: the heads
    around it, outermost first. `sure`: it runs whenever the module does. `names`: of the head alone for a head."""

    node: ast.stmt
    top: int
    above: tuple[Part, ...]
    names: Names
    number: int = 0
    below: list[Part] = field(default_factory=list)

    @property
    def sure(self) -> bool:
        """Whether it runs whenever the module does."""
        return all(isinstance(head.node, ast.With | ast.AsyncWith) for head in self.above)

    @property
    def line(self) -> int:
        """Where it begins, decorators not counted."""
        return self.node.lineno

    @property
    def last_line(self) -> int:
        """Where it ends; a head ends before its first statement."""
        end = self.node.end_lineno or self.node.lineno
        if self.below:
            first = min(part.line for part in self.below)
            return max(self.line, first - 1)
        return end

    @property
    def loops(self) -> tuple[Part, ...]:
        """The loops around it, itself included."""
        return tuple(part for part in (*self.above, self) if isinstance(part.node, Loop))


@dataclass
class Parts:
    """All parts in the file's order; `guarded`: names bound under the `__main__` guard alone, with their lines."""

    tree: ast.Module
    all: list[Part] = field(default_factory=list)
    guarded: dict[str, int] = field(default_factory=dict)
    guard_line: int | None = None

    def keeping(self, kept: Collection[int]) -> ast.Module:
        """The module with the numbered parts alone, lines as they were."""
        keep = {id(self.all[number].node) for number in kept}
        return ast.Module(body=list(_kept(self.tree.body, keep)), type_ignores=[])


def parts_of(tree: ast.Module) -> Parts:
    """Take a module apart."""
    parts = Parts(tree)
    for top, statement in enumerate(tree.body):
        _add(parts, statement, top, ())
    for number, part in enumerate(parts.all):
        part.number = number
    bound = {name for part in parts.all for name in part.names.binds}
    parts.guarded = {name: line for name, line in parts.guarded.items() if name not in bound}
    return parts


def _add(parts: Parts, statement: ast.stmt, top: int, above: tuple[Part, ...]) -> None:
    if isinstance(statement, ast.If) and is_main_guard(statement.test):
        parts.guard_line = parts.guard_line or statement.lineno
        inside = parts_of(ast.Module(body=statement.body, type_ignores=[]))
        for part in inside.all:
            for name in part.names.binds:
                parts.guarded.setdefault(name, part.line)
        for other in statement.orelse:
            _add(parts, other, top, above)
        return
    if not isinstance(statement, Compound):
        part = Part(statement, top, above, names_of([statement]))
        parts.all.append(part)
        _under(part)
        return
    part = Part(statement, top, above, names_of(list(_head(statement)), effect=False))
    if isinstance(statement, ast.For):
        part.names.links |= set(links(statement.target, statement.iter))
    parts.all.append(part)
    _under(part)
    for suite in _suites(statement):
        for child in suite:
            _add(parts, child, top, (*above, part))


def _under(part: Part) -> None:
    for head in part.above:
        head.below.append(part)


def is_main_guard(test: ast.expr) -> bool:
    """Whether this is `__name__ == "__main__"`, or that and something else."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(is_main_guard(value) for value in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
        return False
    sides = (test.left, test.comparators[0])
    return any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides) and any(
        isinstance(side, ast.Constant) and side.value == "__main__" for side in sides
    )


def is_plain(tree: ast.Module) -> bool:
    """Whether a module only defines: imports, classes, functions, assignments that call nothing, and conditions or
    `try` around those. Such a one is run whole."""
    return all(_plain(statement) for statement in tree.body)


def _plain(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return True
    if isinstance(statement, ast.If | ast.Try):
        if isinstance(statement, ast.If) and is_main_guard(statement.test):
            return all(map(_plain, statement.orelse))
        inside = [*statement.body, *statement.orelse]
        if isinstance(statement, ast.Try):
            inside += [*statement.finalbody, *(s for handler in statement.handlers for s in handler.body)]
        return all(map(_plain, inside))
    calm = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Pass | ast.Expr
    return isinstance(statement, calm) and not any(
        isinstance(node, ast.Call | ast.Await | ast.comprehension) for node in ast.walk(statement)
    )


def _suites(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in _SUITES[:1]:
        if suite := getattr(statement, name, None):
            yield suite
    for handler in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield handler.body
    for name in _SUITES[1:]:
        if suite := getattr(statement, name, None):
            yield suite


def _head(statement: ast.stmt) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(statement):
        if name in _SUITES:
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.ExceptHandler):
                yield ast.ExceptHandler(type=node.type, name=node.name, body=[])
            elif isinstance(node, ast.match_case):
                yield from (part for part in (node.pattern, node.guard) if part is not None)
            elif isinstance(node, ast.AST):
                yield node


def _kept(statements: list[ast.stmt], keep: Collection[int]) -> Iterator[ast.stmt]:
    for statement in statements:
        if isinstance(statement, ast.If) and is_main_guard(statement.test):
            if rest := list(_kept(statement.orelse, keep)):
                yield from rest
        elif id(statement) in keep:
            yield _pruned(statement, keep) if isinstance(statement, Compound) else statement


def _pruned(statement: ast.stmt, keep: Collection[int]) -> ast.stmt:
    left = _with_suites(statement, keep)
    for name in ("handlers", "cases"):
        if hasattr(left, name):
            setattr(left, name, [_with_suites(item, keep) for item in getattr(left, name)])
    return left


def _with_suites(node: Node, keep: Collection[int]) -> Node:
    left = copy.copy(node)
    for name in _SUITES:
        if suite := getattr(left, name, None):
            rest = list(_kept(suite, keep))
            # An `else` may go; a body, and the `finally` of a `try` without handlers, may not.
            setattr(left, name, rest or ([] if name == "orelse" else [ast.copy_location(ast.Pass(), suite[0])]))
    return left
