"""What is kept of a round under observation: forward passes, updates, steps. Copies, all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ganbench.gan.labels import tensors_of
from ganbench.gan.player import Player

State = dict[str, Tensor]
Batch = tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class RandomState:
    """The global random state, of the CPU and of the session's device."""

    cpu: Tensor
    cuda: Tensor | None

    @classmethod
    def now(cls, device: torch.device) -> RandomState:
        """The state at this moment."""
        cuda = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
        return cls(torch.get_rng_state(), cuda)

    def equals(self, other: RandomState) -> bool:
        """Whether both are the same."""
        mine, others = (self.cpu, self.cuda), (other.cpu, other.cuda)
        return all((a is None and b is None) or (a is not None and b is not None and torch.equal(a, b))
                   for a, b in zip(mine, others, strict=True))  # fmt: skip

    def restore(self, device: torch.device) -> None:
        """Make it the state again."""
        torch.set_rng_state(self.cpu)
        if self.cuda is not None:
            torch.cuda.set_rng_state(self.cuda, device)


@dataclass(frozen=True, eq=False)
class Forward:
    """One forward pass of a network: everything that it depended on, and what came out. `age`: how many optimizer
    steps its weights had seen."""

    role: str
    given: Batch
    output: Tensor
    weights: State
    buffers: State
    random: RandomState
    age: int


@dataclass(frozen=True, eq=False)
class Update:
    """An update as the schedule asked for it, at the moment it did.

    `latents` were drawn for its fakes; `made` is the pass that made these, None where none is known. `generator`: G's
    weights when the fakes were asked for; `updated`: those at the round's first D update. `before`: what lay in the
    player's gradients already. `since`: how many forward passes had been seen. `ages`: see `Forward`.
    """

    player: str
    number: int
    latents: Batch
    own_latents: Batch | None
    real: Batch
    made: Forward | None
    generator: State
    updated: State
    weights: dict[str, State]
    ages: dict[str, int]
    buffers: dict[str, State]
    before: list[Tensor | None]
    since: int


@dataclass(frozen=True, eq=False)
class Step:
    """An optimizer step: the update that it belongs to, None where nobody asked for it; its gradients, the scale that
    they had, None without a scaler; and the forward passes seen until then."""

    player: str
    update: Update | None
    gradients: list[Tensor | None]
    scale: float | None
    until: int


def copied(batch: Tensor) -> Batch:
    """Copies of a batch's tensors, its labels among them."""
    return tuple(tensor.detach().clone() for tensor in tensors_of(batch))


def same(one: Batch, other: Batch) -> bool:
    """Whether the tensors of two batches are equal, as far as both go."""
    return all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(one, other, strict=False))


def known(named: Iterable[tuple[str, Tensor | nn.Parameter]]) -> Iterator[tuple[str, Tensor]]:
    """Named tensors without those that a lazy layer has not made yet."""
    return ((name, tensor.detach()) for name, tensor in named if not is_lazy(tensor))


def copies(named: Iterable[tuple[str, Tensor | nn.Parameter]]) -> State:
    """Copies by name."""
    return {name: tensor.clone() for name, tensor in known(named)}


def scale_of(player: Player) -> float | None:
    """The scale of a player's gradients; None without a scaler."""
    return None if player.scaler is None else player.scaler.get_scale()


def gradients_of(player: Player, scale: float | None = None) -> list[Tensor | None]:
    """Copies, without the scale of a gradient scaler."""
    scale = scale_of(player) or 1.0 if scale is None else scale
    found = []
    for parameter in player.trainable:
        gradient = None if parameter.grad is None else parameter.grad.detach()
        if gradient is not None and gradient.is_sparse:
            gradient = gradient.to_dense()
        found.append(None if gradient is None else gradient / scale)
    return found
