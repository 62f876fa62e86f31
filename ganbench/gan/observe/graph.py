"""Nodes of autograd graphs: which ones a backward pass will run, and what is known of each."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from torch import Tensor
from torch.autograd.graph import Node, get_gradient_edge

from ganbench.gan.observe.timeline import Call, Mark

# The entry of `Node.metadata` that marks are kept under: it lives as long as the node itself, wherever Python is.
_KEY = "ganbench"


class Marks:
    """Puts a mark into nodes and counts, by weak references, how many of them live."""

    def __init__(self) -> None:
        self._given: weakref.WeakSet[Mark] = weakref.WeakSet()

    def __len__(self) -> int:
        return len(self._given)

    def of(self, node: Node) -> Mark | None:
        """The node's mark, if it has one of this observation."""
        found = _metadata(node).get(_KEY)
        return found if isinstance(found, Mark) and found in self._given else None

    def put(self, node: Node, round: int, call: Call | None = None) -> Mark:
        """The node's mark, made where there is none yet."""
        found = self.of(node)
        if found is None:
            found = _metadata(node)[_KEY] = Mark(round, call)
            self._given.add(found)
        return found

    def after_call(self, made: Any, round: int, call: Call) -> None:
        """Mark the nodes that a forward pass has made: those behind its outputs that have no mark yet."""
        waiting = [tensor.grad_fn for tensor in tensors_in(made)]
        while waiting:
            node = waiting.pop()
            if node is not None and not is_leaf(node) and self.of(node) is None:
                self.put(node, round, call)
                waiting.extend(before for before, _ in node.next_functions)


def _metadata(node: Node) -> dict[Any, Any]:
    # Declared as a method in torch, it is an attribute.
    return cast(dict[Any, Any], node.metadata)


def is_leaf(node: Node) -> bool:
    """Whether it only adds to a leaf's `.grad`; such a node lives as long as the leaf."""
    return not node.next_functions and hasattr(node, "variable")


def tensors_in(value: Any, depth: int = 3) -> Iterator[Tensor]:
    """The tensors of what a network gives: a tensor, or tuples, lists and mappings of them."""
    if isinstance(value, Tensor):
        yield value
    elif depth and isinstance(value, Mapping):
        for part in value.values():
            yield from tensors_in(part, depth - 1)
    elif depth and isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from tensors_in(part, depth - 1)


def to_be_run(roots: Iterable[Tensor], inputs: Iterable[Tensor] | None) -> list[Node]:
    """The nodes that a backward pass from `roots` runs, without those that only fill a leaf's `.grad`.

    With `inputs`, these are the ones on a way to one of them; the nodes that made them are not run.
    """
    behind: dict[Node, list[Node]] = {}
    waiting = [root.grad_fn for root in roots]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        for before, _ in node.next_functions:
            if before is not None:
                behind.setdefault(before, []).append(node)
                waiting.append(before)
    if inputs is None:
        return [node for node in seen if not is_leaf(node)]
    run: set[Node] = set()
    ends = [get_gradient_edge(tensor).node for tensor in inputs if tensor.requires_grad]
    while ends:
        for node in behind.get(ends.pop(), ()):
            if node not in run:
                run.add(node)
                ends.append(node)
    return list(run)
