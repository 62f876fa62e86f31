"""What a user's own training step did while it was observed: its updates, what they were made of, what stayed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ganbench.record.finding import Finding, by_severity

NETWORKS = {"G": "generator", "D": "discriminator"}


@dataclass(frozen=True)
class UpdateSeen:
    """One optimizer step.

    Attributes:
        network: `G`, `D`, `G+D` where one optimizer holds both, `other` where it holds neither.
        line: of the user's file; None where the step was called from elsewhere.
        backwards: lines of the backward calls whose gradients it used.
        left: gradients of this update's loss lay in the other network when the step was taken.
        leftover: length of the other network's loss's gradient in it, relative to that of its own; 0 is clean.
        repeated: length of gradients that an earlier step of this network had used already, relative to the new ones.
        stale: a backward pass whose gradients it used went through weights that were changed since its forward pass.
        empty: there was no gradient, or only zeros.
    """

    network: str
    line: int | None = None
    backwards: tuple[int, ...] = ()
    left: bool = False
    leftover: float = 0.0
    repeated: float = 0.0
    stale: bool = False
    empty: bool = False


@dataclass(frozen=True)
class RoundSeen:
    """One call of the step.

    Attributes:
        updates: its optimizer steps in order.
        forwards: how often each network was called, `G` and `D`.
        waits: operations that make the host wait for a CUDA device.
        graph_nodes: nodes of autograd graphs, of this and all earlier calls, that were alive after it.
    """

    updates: tuple[UpdateSeen, ...] = ()
    forwards: dict[str, int] = field(default_factory=dict)
    waits: int = 0
    graph_nodes: int = 0

    @property
    def order(self) -> str:
        """`G G D`; `-` where nothing was updated."""
        return " ".join(update.network for update in self.updates) or "-"


@dataclass(frozen=True)
class LoopSeen:
    """All calls of a step, and what was found.

    Attributes:
        place: `file.py:step`.
        asked: calls that were to be made; `rounds` holds fewer where the step raised, the unfinished one last.
        lines: further things worth saying: global switches that it sets, its warnings, files that it wrote.
    """

    place: str
    asked: int
    rounds: tuple[RoundSeen, ...]
    findings: tuple[Finding, ...]
    lines: tuple[str, ...] = ()

    def told(self) -> tuple[str, ...]:
        """What happened, in lines for people; the findings are not among them."""
        return (self._order(), *self._left(), *self._waits(), *self.lines)

    def plain(self) -> dict[str, Any]:
        """All of it as JSON's own types."""
        return {
            "place": self.place,
            "rounds_asked": self.asked,
            "rounds": [
                {
                    "order": one.order,
                    "updates": [vars(update) | {"backwards": list(update.backwards)} for update in one.updates],
                    "forwards": dict(one.forwards),
                    "waits": one.waits,
                    "graph_nodes": one.graph_nodes,
                }
                for one in self.rounds
            ],
            "findings": [finding.plain() for finding in by_severity(self.findings)],
            "lines": list(self.told()),
        }

    def _order(self) -> str:
        orders = [one.order for one in self.rounds]
        if len(set(orders)) <= 1:
            shown = orders[0] if orders else "-"
            text = f"{shown} in each of {len(orders)} calls" if len(orders) > 1 else f"{shown} in the one call"
        else:
            text = f"it changes from call to call: {' | '.join(orders)}"
        updates = [update.network for one in self.rounds for update in one.updates]
        return f"{self.place}: order of updates: {text} ({updates.count('G')} of G, {updates.count('D')} of D)"

    def _left(self) -> list[str]:
        lines = []
        for network, other in (("G", "D"), ("D", "G")):
            steps = [update for one in self.rounds for update in one.updates if update.network == network]
            left = sum(update.left for update in steps)
            if left:
                lines.append(
                    f"{left} of {len(steps)} steps of {network} leave gradients of its loss in {other}: they must be "
                    f"cleared before {other} is updated"
                )
        return lines

    def _waits(self) -> list[str]:
        most = max((one.waits for one in self.rounds), default=0)
        return [f"up to {most} operations a call make the host wait for a CUDA device"] if most else []
