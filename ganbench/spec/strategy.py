"""The strategies and what is expected of each: the one table.

An expectation is declared here and never trusted: what happened is recorded beside it. A new strategy is one file in
`ganbench/gan/strategies/` and one row here.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ganbench.errors import ErrorKind


class Verdict(StrEnum):
    """How a strategy's training relates to the reference's."""

    REFERENCE = "reference"
    SAME = "same"
    OTHER_ESTIMATOR = "other estimator"
    CONTAMINATED = "contaminated"
    STALE = "stale"
    NOT_TRAINED = "not trained"
    TO_BE_JUDGED = "runs, to be judged by its gradients"
    RAISES = "raises"


# Under these a strategy trains on the gradients that it claims.
CERTIFIED = (Verdict.SAME, Verdict.OTHER_ESTIMATOR)


@dataclass(frozen=True)
class Expectation:
    """A verdict, and the kind of error where it is `raises`."""

    verdict: Verdict
    error_kind: ErrorKind | None = None

    def __str__(self) -> str:
        return f"raises {self.error_kind}" if self.error_kind else str(self.verdict)


@dataclass(frozen=True)
class StrategyRow:
    """What is expected under either order, and where fused optimizers or compilation change it."""

    summary: str
    g_first: Expectation
    d_first: Expectation
    control: bool = False
    g_first_fused: Expectation | None = None
    compiled: Expectation | None = None
    # The D updates draw latents of their own.
    own_latents: bool = False
    # D is shown fakes with their graph, and its gradients are kept apart from G's by parameters alone.
    attached: bool = False


_REFERENCE = Expectation(Verdict.REFERENCE)
_SAME = Expectation(Verdict.SAME)
_OTHER = Expectation(Verdict.OTHER_ESTIMATOR)
_CONTAMINATED = Expectation(Verdict.CONTAMINATED)
_FREED = Expectation(Verdict.RAISES, ErrorKind.GRAPH_FREED)
_IN_PLACE = Expectation(Verdict.RAISES, ErrorKind.MODIFIED_IN_PLACE)
_TO_BE_JUDGED = Expectation(Verdict.TO_BE_JUDGED)
_DONATED = Expectation(Verdict.RAISES, ErrorKind.DONATED_BUFFERS)

STRATEGIES: dict[str, StrategyRow] = {
    "detach": StrategyRow("detached fakes, idle network's gradients cleared", _REFERENCE, _REFERENCE),
    "toggle": StrategyRow("idle network frozen around each phase", _SAME, _SAME),
    "inputs": StrategyRow("backward(inputs=own parameters) on attached fakes", _SAME, _SAME, attached=True),
    "retain_deferred": StrategyRow(
        "graph retained, the round's last G step waits for the D updates",
        _SAME,
        _SAME,
        compiled=_DONATED,
        attached=True,
    ),
    "no_grad_replay": StrategyRow("same latents through the updated G, under no_grad", _OTHER, _OTHER),
    "no_grad_fresh": StrategyRow("new latents for every D update, under no_grad", _OTHER, _OTHER, own_latents=True),
    "reuse": StrategyRow("control: attached fakes, nothing else", _FREED, _FREED, control=True),
    "retain_as_published": StrategyRow(
        "control: retain_graph=True, every step at once",
        _IN_PLACE,
        _SAME,
        control=True,
        g_first_fused=_TO_BE_JUDGED,
        compiled=_DONATED,
    ),
    "detach_as_published": StrategyRow(
        "control: detached fakes, idle network's gradients not cleared",
        _CONTAMINATED,
        _CONTAMINATED,
        control=True,
    ),
}

REFERENCE = "detach"
CORRECT = tuple(name for name, row in STRATEGIES.items() if not row.control)


def expectation(strategy: str, *, order: str, fused: bool, compiled: bool) -> Expectation:
    """What is expected of a strategy under these options."""
    row = STRATEGIES[strategy]
    if compiled and row.compiled is not None:
        return row.compiled
    if order == "d_first":
        return row.d_first
    if fused and row.g_first_fused is not None:
        return row.g_first_fused
    return row.g_first
