"""What is written down while a step is observed. No tensors: what is observed must be free to die."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Call:
    """One outermost forward pass of a network: the weights it used are those of `epoch`."""

    network: str
    round: int
    line: int | None
    epoch: int


@dataclass(slots=True, eq=False, weakref_slot=True)
class Mark:
    """What is known of one node of an autograd graph; it lives in the node and dies with it.

    `freed_by`, `retained_by`: the backward pass that ran through it.
    """

    round: int
    call: Call | None = None
    freed_by: int | None = None
    retained_by: int | None = None


@dataclass(slots=True)
class Backward:
    """One call of `backward`, or of `autograd.grad` (`fills` False: its gradients go to nobody's `.grad`).

    Attributes:
        retain: `retain_graph=True` was asked for, without `create_graph`.
        scored_real: the loss came from scores of something that is not the generator's.
        nan: the loss was NaN.
        reached: networks whose own parameters got a gradient that is not all zeros.
        changed: forward passes it went through whose weights were changed since.
        again: forward passes whose part of the graph an earlier backward pass had freed, with that pass's index.
        reused: a later backward pass went through what this one retained.
    """

    index: int
    round: int
    line: int | None
    fills: bool
    retain: bool
    scored_real: bool
    nan: bool
    reached: set[str] = field(default_factory=set)
    changed: list[Call] = field(default_factory=list)
    again: list[tuple[Call | None, int]] = field(default_factory=list)
    reused: bool = False

    def stale_for(self, network: str) -> list[Call]:
        """Forward passes with changed weights on the way to this network's parameters: G's lies behind D's."""
        return [call for call in self.changed if network == "G" or call.network == network]


@dataclass(frozen=True, slots=True)
class Taken:
    """Of which backward passes one network's gradients consist when it is stepped.

    `fresh`: passes that no earlier step has used; `used`: the others. `gram`: products of their contributions, so
    that the length of any sum of them is known without keeping one.
    """

    fresh: tuple[int, ...]
    used: tuple[int, ...]
    gram: dict[tuple[int, int], float]
    empty: bool

    def length(self, passes: set[int]) -> float:
        """2-norm of the sum of these passes' contributions."""
        square = sum(self.gram.get((min(i, j), max(i, j)), 0.0) for i in passes for j in passes)
        return math.sqrt(max(square, 0.0))


@dataclass(slots=True)
class Step:
    """One optimizer step; `taken` by network, `left`: backward passes whose gradients lie in networks not stepped."""

    index: int
    round: int
    label: str
    line: int | None
    taken: dict[str, Taken]
    left: set[int]


@dataclass
class Timeline:
    """All that happened, in order."""

    backwards: list[Backward] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    forwards: Counter[tuple[int, str]] = field(default_factory=Counter)
    # (round, what it was, line)
    waits: Counter[tuple[int, str, int | None]] = field(default_factory=Counter)
    # (network, epoch) → line of the step or the call in which its weights became those of that epoch.
    changes: dict[tuple[str, int], int | None] = field(default_factory=dict)
    # Networks that an optimizer's step has moved.
    moved: set[str] = field(default_factory=set)
    alive_nodes: list[int] = field(default_factory=list)
    alive_tensors: list[dict[str, int]] = field(default_factory=list)
    # What raised while it ran, if it was a backward pass.
    failed: Backward | None = None
