"""Where a script's names come from: its own, a neighbouring file's, or an installed package's; and which statements
set one of the process's global switches."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection

from ganbench.gan.foreign.blocks import dotted
from ganbench.gan.foreign.parts import Part, Parts

# Set for the whole process; what they set is noticed and put back.
_SWITCHES = re.compile(
    r"torch\.(set_(?!device)\w+|manual_seed|seed|use_deterministic_algorithms|autograd\.set_\w+|cuda\.manual_seed\w*"
    r"|random\.manual_seed|multiprocessing\.set_\w+|backends\..+)"
    r"|(random|numpy\.random)\.seed|warnings\.(filterwarnings|simplefilter)|sys\.setrecursionlimit"
    r"|sys\.path\.(append|insert|extend)|sys\.path|os\.environ(\.(setdefault|update|pop))?"
)


class Origins:
    """`neighbours`: names of top-level modules that lie beside the script."""

    def __init__(self, parts: Parts, neighbours: Collection[str]) -> None:
        self._full: dict[str, str] = {}
        self._neighbours: set[str] = set()
        bound_otherwise = set()
        for part in parts.all:
            if not isinstance(part.node, ast.Import | ast.ImportFrom):
                bound_otherwise |= part.names.binds
                continue
            relative = isinstance(part.node, ast.ImportFrom) and part.node.level > 0
            source = part.node.module or "" if isinstance(part.node, ast.ImportFrom) else ""
            for alias in part.node.names:
                full = f"{source}.{alias.name}".lstrip(".")
                name = alias.asname or (alias.name if source or relative else alias.name.split(".")[0])
                self._full[name] = full if alias.asname or source else name
                if relative or full.split(".")[0] in neighbours:
                    self._neighbours.add(name)
        # A name that nothing here binds may come from there.
        self._star = "*" in self._neighbours
        self._bound = bound_otherwise | set(self._full) | set(dir(builtins))
        for name in bound_otherwise:
            self._full.pop(name, None)

    def own(self, name: str) -> bool:
        """Whether what it stands for may be changed by the script: anything but an installed package's."""
        return name not in self._full or name in self._neighbours

    def neighbour(self, called: str) -> bool:
        """Whether this dotted name leads into a neighbouring file."""
        first = called.split(".")[0]
        return first in self._neighbours or (self._star and first not in self._bound)

    def full(self, written: str) -> str:
        """The dotted name with its first part replaced by what was imported under it."""
        first, dot, rest = written.partition(".")
        return f"{self._full.get(first, '')}{dot}{rest}" if first in self._full else ""

    def switch(self, part: Part) -> bool:
        """Whether this sets a global switch, and does nothing else."""
        node = part.node
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return bool(_SWITCHES.fullmatch(self.full(dotted(node.value.func))))
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            places = [target.value if isinstance(target, ast.Subscript) else target for target in targets]
            return all(_SWITCHES.fullmatch(self.full(dotted(place))) for place in places)
        return False
