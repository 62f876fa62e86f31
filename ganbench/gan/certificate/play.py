"""A real session plays rounds under observation, and every step of it is compared."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

from ganbench.errors import UsageError
from ganbench.gan.certificate.compare import TOLERANCE, Comparison, Estimator, Finding
from ganbench.gan.certificate.observe import Observer
from ganbench.gan.certificate.reference import ROLES, CannotRepeat, Reference
from ganbench.gan.certificate.seen import RandomState
from ganbench.gan.certificate.trajectory import State, state_of
from ganbench.gan.data import Data
from ganbench.gan.pair import Pair
from ganbench.gan.session import Session
from ganbench.gan.strategies import Strategy
from ganbench.spec.run import RunSpec

# By how much a repeated output may differ from the watched one: in float64, and in the networks' own type.
_SLACK = {torch.float64: 1e-3, None: 1e-5}
_SLACK_OF_COMPILED = 1e-3


@dataclass
class Played:
    """A session after its rounds. `unmoved`: networks none of whose trainable parameters is another one than before;
    `skipped`: networks all of whose steps a gradient scaler skipped; `trainable`: names in `start` and `end`."""

    start: State
    trainable: frozenset[str]
    findings: list[Finding] = field(default_factory=list)
    rounds: int = 0
    error: BaseException | None = None
    unmoved: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    end: State = field(default_factory=dict)
    random: RandomState | None = None

    def group(self, state: State, role: str, *, trainable: bool) -> Mapping[str, Tensor]:
        """A network's trainable parameters in a state, or all the rest of it."""
        prefix = f"{role}."
        return {
            key: tensor
            for key, tensor in state.items()
            if key.startswith(prefix) and (key in self.trainable) is trainable
        }


@dataclass(frozen=True)
class Begun:
    """Python's and NumPy's random state: networks that draw from them while they are made draw the same each time."""

    python: Any
    numpy: Any

    @classmethod
    def now(cls) -> Begun:
        """The state at this moment."""
        return cls(random.getstate(), np.random.get_state())

    def again(self) -> None:
        """Make it the state again."""
        random.setstate(self.python)
        np.random.set_state(self.numpy)


def play(
    spec: RunSpec,
    data: Data,
    device: torch.device,
    rounds: int,
    estimator: Estimator,
    dtype: torch.dtype | None,
    *,
    begun: Begun,
    strategy: Callable[[Pair], Strategy] | None = None,
    tolerance: float = TOLERANCE,
) -> Played:
    """Play rounds and compare each; an error of the training is kept, one of the comparison passes through.

    Raises:
        CannotRepeat: the networks cannot be made or called again as they were.
        UsageError: networks or data cannot be used.
    """
    begun.again()
    session = Session(spec, data, device)
    if strategy is not None:
        session.strategy = strategy(session.pair)
    players = (session.pair.g, session.pair.d)

    def reference(dtype: torch.dtype | None) -> Reference:
        rough = spec.compile or device.type == "cuda"
        begun.again()
        slack = _SLACK_OF_COMPILED if rough else _SLACK[dtype]
        return Reference(spec, data.shape, device, dtype, slack, [player.module for player in players])

    own = cache(lambda: reference(None)) if dtype is not None else None
    comparison = Comparison(session, reference(dtype), own, estimator, tolerance)
    try:
        _let_lazy_layers_be_made(session)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001 - the training raises it too
        return Played({}, frozenset(), error=error.with_traceback(None))
    observer = Observer(session)
    trainable = {id(p) for player in players for p in player.trainable}
    names = {
        f"{player.name}.{name}" for player in players for name, p in player.module.named_parameters()
        if id(p) in trainable
    }  # fmt: skip
    found = Played(state_of(session), frozenset(names))
    for _ in range(rounds):
        try:
            with observer.watching():
                observer.play_round()
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a strategy's training raises is its verdict
            found.error = error.with_traceback(None)
            break
        found.rounds += 1
        found.findings += comparison.findings(observer)
    found.end, found.random = state_of(session), RandomState.now(device)
    for name in ROLES:
        before, after = (found.group(state, name, trainable=True) for state in (found.start, found.end))
        if all(torch.equal(tensor, after[key]) for key, tensor in before.items()):
            found.unmoved.append(name)
        if comparison.skipped[name] and not any(one.player == name for one in found.findings):
            found.skipped.append(name)
    return found


def reference_play(
    spec: RunSpec, data: Data, device: torch.device, rounds: int, dtype: torch.dtype | None, begun: Begun
) -> tuple[Played, float]:
    """The rounds of a spec whose strategy is the reference, and the tolerance that holds for others.

    Where nothing tells rounding from faults, since there is only the networks' own type and it does not repeat to the
    bit, what the reference itself is off is taken for rounding, tenfold, up to a hundredth.
    """
    played = play(spec, data, device, rounds, "last", dtype, begun=begun)
    if dtype is not None or (device.type == "cpu" and not spec.compile):
        return played, TOLERANCE
    most = 1e-2
    off = max((one.share for one in played.findings if one.share < most), default=0.0)
    return played, min(most, max(TOLERANCE, 10 * off))


def _let_lazy_layers_be_made(session: Session) -> None:
    """Where some are not: from a batch of their own, without a gradient."""
    modules = (session.pair.g.module, session.pair.d.module)
    if any(is_lazy(tensor) for module in modules for tensor in (*module.parameters(), *module.buffers())):
        given = session.draw()
        with torch.no_grad():
            session.pair.generate(given.latents[0])
            session.pair.score(given.real[0])


__all__ = ["Begun", "CannotRepeat", "Played", "play", "reference_play"]
