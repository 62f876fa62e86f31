"""What a statement of a module does with the module's names, read off its syntax. Nothing is run here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from ganbench.gan.foreign.links import Link, links, reached, root

# Methods that change what they are called on, also where their result is used: `last = sizes.pop()`.
_CHANGING = frozenset(
    ("append", "extend", "insert", "add", "update", "setdefault", "pop", "popitem", "remove", "clear")
)
_CHANGING_PREFIXES = ("add_", "set_", "register", "DEFINE_")
# Functions that may bind or change any name of the module.
_ANYTHING = frozenset({"exec", "globals", "locals"})
# What torch calls when a network is made and used.
_ALWAYS_CALLED = frozenset({"__init__", "forward", "__call__", "__new__"})
TRAINING = frozenset({"backward", "zero_grad", "step"})

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass
class Names:
    """Names of the module, by what one statement does with them.

    `binds`: bound. `reads`: read while it runs. `later`: read in bodies that run when they are called, mapped to
    whether they are surely called (functions, constructors and `forward`; not a class's other methods). `changes`:
    what they stand for may be changed (`x[0] = 1`, `x.append(1)`, `x += 1`, `del x`); `body_changes`: by a function
    that it defines. `links`: names that share an object from here on. `given`: calls, as (what is called, names
    handed to it), marked with `=` where the result is used. `anything`: any name may be bound here. `trains`: it
    calls `backward`, `step` or `zero_grad` itself; `body_trains`: a function that it defines does.
    """

    binds: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    later: dict[str, bool] = field(default_factory=dict)
    changes: set[str] = field(default_factory=set)
    body_changes: set[str] = field(default_factory=set)
    links: set[Link] = field(default_factory=set)
    given: list[tuple[str, tuple[str | None, ...]]] = field(default_factory=list)
    anything: bool = False
    trains: bool = False
    body_trains: bool = False


def names_of(nodes: list[ast.AST], *, effect: bool = True) -> Names:
    """What these nodes do. `effect`: a bare call is made for its effect, and may change what it is called on."""
    reader = _Reader(effect)
    for node in nodes:
        reader.visit(node)
    return reader.names


def dotted(node: ast.AST) -> str:
    """`torch.backends.cudnn.benchmark`; '' for anything but names joined by dots."""
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) else ""


class _Reader(ast.NodeVisitor):
    def __init__(self, effect: bool) -> None:
        self.names = Names()
        self._effect = effect

    # Plain names

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.names.reads.add(node.id)
            self.names.anything |= node.id in _ANYTHING
        elif isinstance(node.ctx, ast.Store):
            self.names.binds.add(node.id)
        else:
            self.names.changes.add(node.id)

    def visit_Import(self, node: ast.Import) -> None:
        self.names.binds |= {alias.asname or alias.name.split(".")[0] for alias in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.names.binds |= {alias.asname or alias.name for alias in node.names} - {"*"}
        self.names.anything |= any(alias.name == "*" for alias in node.names)

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        self._bind(node.name)
        self.generic_visit(node)

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self._bind(node.name)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self._bind(node.rest)
        self.generic_visit(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self._bind(node.name)
        self.generic_visit(node)

    def _bind(self, name: str | None) -> None:
        if name is not None:
            self.names.binds.add(name)

    # Changes

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._stored_into(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._stored_into(node)

    def _stored_into(self, node: ast.Attribute | ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load) and (name := root(node)):
            self.names.changes.add(name)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.names.reads.add(node.target.id)
            self.names.changes.add(node.target.id)
        self.names.links |= set(links(node.target, node.value))  # `all += [one]`
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self.names.links |= set(links(node.target, node.iter))
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:  # `x: int` binds nothing
            self.visit(node.annotation)
        else:
            self.names.links |= set(links(node.target, node.value))
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.names.links |= set(links(target, node.value))
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        value = node.value.value if isinstance(node.value, ast.Await) else node.value
        if self._effect and isinstance(value, ast.Call):
            if isinstance(value.func, ast.Attribute) and (name := root(value.func)):
                self.names.changes.add(name)
            handed = [*value.args, *(keyword.value for keyword in value.keywords)]
            bare = tuple(argument.id if isinstance(argument, ast.Name) else None for argument in handed)
            self.names.given.append((dotted(value.func), bare))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            method, name = node.func.attr, root(node.func)
            self.names.trains |= method in TRAINING
            if name and (method in _CHANGING or method.startswith(_CHANGING_PREFIXES)):
                self.names.changes.add(name)
        elif isinstance(node.func, ast.Name):
            bare = tuple(argument.id if isinstance(argument, ast.Name) else None for argument in node.args)
            if node.func.id in {"setattr", "delattr", "next"} and bare and bare[0]:
                self.names.changes.add(bare[0])
            self.names.given.append((f"={node.func.id}", bare))
        self.generic_visit(node)

    # Scopes of their own

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._function(node, sure=True)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._function(node, sure=True)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node, sure=True)

    def _function(self, node: Function, *, sure: bool) -> None:
        spec = node.args
        outside: list[ast.AST | None] = [*spec.defaults, *spec.kw_defaults]
        parameters = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg]
        if not isinstance(node, ast.Lambda):
            self.names.binds.add(node.name)
            outside += [*node.decorator_list, node.returns, *(a.annotation for a in parameters if a)]
        for part in outside:
            if part is not None:
                self.visit(part)
        body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
        inside = names_of(body)
        declared = set(_declared(body, ast.Global))
        local = (inside.binds | {a.arg for a in parameters if a}) - declared - set(_declared(body, ast.Nonlocal))
        self._later(dict.fromkeys(inside.reads, sure), local)
        self._later({name: sure and surely for name, surely in inside.later.items()}, local)
        changed = reached(inside.changes | inside.body_changes, inside.links)
        self.names.body_changes |= (changed - local) | (inside.binds & declared)
        self.names.body_trains |= inside.trains or inside.body_trains

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.names.binds.add(node.name)
        for part in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            self.visit(part)
        bound: set[str] = set()
        for statement in node.body:  # in order: a name read before the class binds it is the module's
            inside = _Reader(self._effect)
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                inside._function(statement, sure=statement.name in _ALWAYS_CALLED)
            else:
                inside.visit(statement)
            found = inside.names
            self.names.reads |= found.reads - bound
            self.names.changes |= found.changes - bound
            if not isinstance(statement, ast.FunctionDef) or statement.name in _ALWAYS_CALLED:
                self.names.body_changes |= found.body_changes
            self.names.given += found.given
            self.names.links |= found.links
            self._later(found.later, set())
            bound |= found.binds

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        inside = _Reader(self._effect)
        inside.generic_visit(node)
        found = inside.names
        named = {n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr)}
        local = found.binds - named
        self.names.reads |= found.reads - local
        self.names.changes |= found.changes - local
        self.names.binds |= named
        self.names.given += found.given
        self.names.trains |= found.trains
        self.names.anything |= found.anything
        self._later(found.later, local)

    def _later(self, read: dict[str, bool], local: set[str]) -> None:
        for name, sure in read.items():
            if name not in local:
                self.names.later[name] = self.names.later.get(name, False) or sure

    visit_ListComp = _comprehension
    visit_SetComp = _comprehension
    visit_DictComp = _comprehension
    visit_GeneratorExp = _comprehension


def _declared(body: list[ast.AST], kind: type[ast.Global] | type[ast.Nonlocal]) -> Iterator[str]:
    for node in body:
        if isinstance(node, kind):
            yield from node.names
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield from _declared(list(ast.iter_child_nodes(node)), kind)
