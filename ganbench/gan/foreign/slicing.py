"""Which statements of a training script the names asked for need.

The rules, in the file's order of statements:

1. A name that is needed needs what binds it: the last certain binding before the place where it is needed, every
   possible one since (under an `if`), and whatever may have changed it (`parser.add_argument(…)`, `opt.size = 32`,
   `sizes.append(8)`, `sizes += [8]`, a function of the file that does so). What those read is needed in turn.
2. What bodies of functions and methods read is needed as it stands at the **first use**: the first statement that
   makes something of what was asked for (`generator = Generator()`), the end of the file where none does. Names that
   are bound only after it are needed all the same, and taken as first bound there. A heavy statement is run if a
   body reads what it binds: the definition asks for it.
3. A loop is run if it fills a needed name, unless it trains (it calls `backward`, `zero_grad` or `step`, itself or by
   a function of the file) or goes over data (a loader or a dataset). Those are never run. The same holds for a
   statement that trains without a loop (`train()`).
4. Of an `if` or `with` only the needed statements are kept, of a `try` all: they decide which handler runs.
5. Imports are as other statements: one that nothing needed reads is not run. `from x import *` is needed if a needed
   name is bound nowhere else.
6. Global switches (seeds, default dtype, cudnn's flags, `sys.path`, …) are set too, so that they can be noticed, if
   what they read is needed anyhow.
7. Everything else is not run: folders made, downloads, loaders, networks, optimizers, checks that only raise.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterator

from ganbench.gan.foreign.blocks import dotted, names_of
from ganbench.gan.foreign.links import reached
from ganbench.gan.foreign.origins import Origins
from ganbench.gan.foreign.parts import Part, Parts

_DATA = re.compile(r"loader|dataset|imagefolder|mnist|cifar|lsun|celeb", re.IGNORECASE)
_GIVEN = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__spec__", "__package__", "__loader__"}

Given = tuple[str | None, ...]


class OutOfReach(Exception):
    """A needed name is bound only where nothing is ever run. `why` is one of `trains`, `guard`."""

    def __init__(self, name: str, read_at: int, bound_at: int, why: str) -> None:
        super().__init__(name)
        self.name, self.read_at, self.bound_at, self.why = name, read_at, bound_at, why


class Slice:
    """The parts that some names need. `kept`: their numbers.

    Raises:
        OutOfReach: a needed name is bound only in a training loop or under the `__main__` guard.
    """

    def __init__(self, parts: Parts, wanted: Collection[str], neighbours: Collection[str] = ()) -> None:
        self._parts = parts
        self._origins = Origins(parts, neighbours)
        self._binders: dict[str, list[Part]] = {}
        self._changers: dict[str, list[Part]] = {}
        for part in parts.all:
            for name in part.names.binds:
                self._binders.setdefault(name, []).append(part)
        self._links = {
            (one, other) for part in parts.all for one, other in part.names.links if self._own(one) and self._own(other)
        }
        for part in parts.all:
            for name in self._changes(part):
                self._changers.setdefault(name, []).append(part)
        self.kept: set[int] = set()
        self._seen: set[tuple[str, int, bool]] = set()
        self._todo: list[tuple[str, int, bool, int]] = []
        self.first_use = self._first_use(wanted)
        for part in parts.all:
            if _always(part):
                self._keep(part, sure=True)
        for name in sorted(wanted):
            self._todo.append((name, self.first_use, True, 0))
        self._work()
        if not all(any(part.number in self.kept for part in self._binders.get(name, ())) for name in wanted):
            # A file that ends before it defines anything: that it ends tells more than that the name is missing.
            for part in parts.all:
                if isinstance(part.node, ast.ClassDef):
                    break
                if _ends(part):
                    self._keep(part, sure=True)
            self._work()
        self._switches()

    # What is needed

    def _work(self) -> None:
        while self._todo:
            name, before, sure, read_at = self._todo.pop()
            if (name, before, sure) in self._seen or (name, before, True) in self._seen:
                continue
            self._seen.add((name, before, sure))
            self._need(name, before, sure, read_at)

    def _need(self, name: str, before: int, sure: bool, read_at: int) -> None:
        binders = self._binders.get(name, [])
        refused = [part for part in binders if self.trains(part)]
        usable = [part for part in binders if part not in refused]
        earlier = [part for part in usable if part.top < before]
        within = [part for part in usable if part.top == before and part.above]
        since = -1
        for part in reversed(earlier):
            self._keep(part, sure)
            if part.sure and not _adds(part, name):
                since = part.number
                break
        for part in within:
            self._keep(part, sure)
        if not earlier and not within:
            after = [part for part in usable if part.top >= before]
            if after and before < self.first_use:
                return  # not bound yet: the script itself would fail here
            if after:
                before, since = after[0].top + 1, after[0].number
                for part in after:
                    if part.top < before:
                        self._keep(part, sure)
            elif name not in _GIVEN or name in self._parts.guarded or refused:
                self._unbound(name, refused, sure, read_at)
        for part in self._changers.get(name, []):
            in_time = part.top < before or (part.top == before and bool(part.above))
            if since < part.number and in_time and not self.trains(part):
                self._keep(part, sure)

    def _unbound(self, name: str, refused: list[Part], sure: bool, read_at: int) -> None:
        wild = [part for part in self._parts.all if part.names.anything and not self.trains(part)]
        for part in wild:
            self._keep(part, sure)
        if wild or not sure or name in _GIVEN:
            return
        if refused:
            raise OutOfReach(name, read_at, (refused[0].loops or (refused[0],))[0].line, "trains")
        if name in self._parts.guarded:
            raise OutOfReach(name, read_at, self._parts.guarded[name], "guard")

    def _keep(self, part: Part, sure: bool) -> None:
        fresh = part.number not in self.kept
        self.kept.add(part.number)
        for name in part.names.reads:
            self._todo.append((name, part.top, sure, part.line))
            for later in self._called(name):  # it may be called here and now
                self._todo.append((later, part.top, False, part.line))
        for name, surely in part.names.later.items():
            self._todo.append((name, self.first_use, sure and surely, part.line))
        if not fresh:
            return
        for head in part.above:
            self._keep(head, sure)
        for head in part.loops:
            for inside in head.below:
                if isinstance(inside.node, ast.Break | ast.Continue):
                    self._keep(inside, sure)
        if isinstance(part.node, ast.Try | ast.TryStar):
            for inside in part.below:
                self._keep(inside, sure)

    def _called(self, name: str, seen: frozenset[str] = frozenset()) -> Iterator[str]:
        """What bodies read that run if `name` is called."""
        if name in seen:
            return
        for part in self._binders.get(name, []):
            for later in part.names.later:
                yield later
                yield from self._called(later, seen | {name})

    # What changes, trains, uses

    def _changes(self, part: Part) -> set[str]:
        """Names whose objects this part may change."""
        if self._origins.switch(part):
            return set()  # rule 6: wanted by nobody
        found = {name for name in part.names.changes if self._own(name) or _assigns_into(part, name)}
        for called, given in part.names.given:
            found |= self._changed_by_call(called, given)
        for name in part.names.reads:
            for function in self._functions(name, frozenset()):
                found |= function.names.body_changes
        return reached(found, self._links)

    def _own(self, name: str) -> bool:
        return name in self._binders and self._origins.own(name)

    def _changed_by_call(
        self, called: str, given: tuple[str | None, ...], inside: frozenset[str] = frozenset()
    ) -> set[str]:
        for_effect, called = not called.startswith("="), called.removeprefix("=")
        for part in self._binders.get(called, []):
            if isinstance(part.node, ast.FunctionDef | ast.AsyncFunctionDef) and called not in inside:
                body = names_of(list(part.node.body))
                touched = set(body.changes)
                for further, handed in body.given:
                    touched |= self._changed_by_call(further, handed, inside | {called})
                touched = reached(touched, body.links)
                spec = part.node.args
                parameters = [arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
                return {name for name, own in zip(given, parameters, strict=False) if name and own in touched}
        unknown = self._origins.neighbour(called) or called.endswith("_")
        return {name for name in given if name} if for_effect and unknown else set()

    def _functions(self, name: str, seen: frozenset[str]) -> Iterator[Part]:
        """The functions that run if `name` is called."""
        if name in seen:
            return
        for part in self._binders.get(name, []):
            if isinstance(part.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield part
                for later in part.names.later:
                    yield from self._functions(later, seen | {name})

    def trains(self, part: Part) -> bool:
        """Whether running it could start a training."""
        heads = [inside for loop in part.loops for inside in (loop, *loop.below)]
        return any(self._trains_itself(one) for one in (part, *heads)) or any(map(self._over_data, part.loops))

    def _trains_itself(self, part: Part) -> bool:
        if isinstance(part.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return False
        called = {one for name in part.names.reads for one in self._functions(name, frozenset())}
        return part.names.trains or any(
            one.names.body_trains for one in called if not isinstance(one.node, ast.ClassDef)
        )

    def _over_data(self, loop: Part) -> bool:
        if not isinstance(loop.node, ast.For | ast.AsyncFor):
            return False
        named = [node for node in ast.walk(loop.node.iter) if isinstance(node, ast.Name | ast.Attribute)]
        if any(_DATA.search(dotted(node)) for node in named):
            return True
        made = [
            part.node.value
            for name in loop.names.reads
            for part in self._binders.get(name, [])
            if isinstance(part.node, ast.Assign)
        ]
        return any(isinstance(value, ast.Call) and _DATA.search(dotted(value.func)) for value in made)

    def _first_use(self, wanted: Collection[str]) -> int:
        last = max((p.top for name in wanted for p in self._binders.get(name, []) if not self.trains(p)), default=-1)
        for part in self._parts.all:
            if part.top <= last or isinstance(part.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            reads = part.names.reads | {later for name in part.names.reads for later in self._called(name)}
            if any(name in reads and part not in self._changers.get(name, []) for name in wanted):
                return part.top
        return len(self._parts.tree.body)

    def _switches(self) -> None:
        for part in self._parts.all:
            if part.top >= self.first_use or not self._origins.switch(part):
                continue
            conditions = all(isinstance(head.node, ast.If) for head in part.above)
            if conditions and all(self._at_hand(name) for one in (part, *part.above) for name in one.names.reads):
                self._keep(part, sure=False)
                self._work()

    def _at_hand(self, name: str) -> bool:
        binders = self._binders.get(name, [])
        imports = all(isinstance(part.node, ast.Import | ast.ImportFrom) for part in binders)
        return imports or any(part.number in self.kept for part in binders)


def _always(part: Part) -> bool:
    node = part.node
    if isinstance(node, ast.ImportFrom) and node.module == "__future__":
        return True
    return part.number == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _ends(part: Part) -> bool:
    """Whether the script ends here in any case."""
    if part.above:
        return False
    call = part.node.value if isinstance(part.node, ast.Expr) else None
    exits = isinstance(call, ast.Call) and dotted(call.func) in {"sys.exit", "exit", "quit", "os._exit"}
    return exits or isinstance(part.node, ast.Raise)


def _adds(part: Part, name: str) -> bool:
    """Whether it binds the name and leaves what it stood for: `import a.b` after `import a.c`, `x += 1`."""
    if isinstance(part.node, ast.Import):
        return any("." in alias.name and not alias.asname for alias in part.node.names)
    return name in part.names.reads or isinstance(part.node, ast.For | ast.AsyncFor | ast.Try | ast.Match)


def _assigns_into(part: Part, name: str) -> bool:
    return isinstance(part.node, ast.Assign | ast.AugAssign | ast.Delete) and name in part.names.changes
