"""What happens while a strategy plays a round: the updates that the schedule asked for, every forward pass, and the
gradients that lie there when an optimizer steps. Nothing of it changes the training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ganbench.gan.labels import tensors_of
from ganbench.gan.player import Network, Player
from ganbench.gan.schedule import Fakes, Moves, RoundInput
from ganbench.gan.session import Session

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

    def restore(self, device: torch.device) -> None:
        """Make it the state again."""
        torch.set_rng_state(self.cpu)
        if self.cuda is not None:
            torch.cuda.set_rng_state(self.cuda, device)


@dataclass(frozen=True, eq=False)
class Forward:
    """One forward pass of a network: everything that it depended on, and what came out."""

    role: str
    given: Batch
    output: Tensor
    weights: State
    buffers: State
    random: RandomState


@dataclass(frozen=True, eq=False)
class Update:
    """An update as the schedule asked for it, at the moment it did.

    `latents` made the fakes, with `fakes_weights` in G where they are those of a G update. `before`: what lay in the
    player's gradients already. `since`: how many forward passes had been seen.
    """

    player: str
    latents: Batch
    own_latents: Batch | None
    real: Batch
    fakes_weights: State
    weights: dict[str, State]
    buffers: dict[str, State]
    before: list[Tensor | None]
    since: int


@dataclass(frozen=True, eq=False)
class Step:
    """An optimizer step: the update that it belongs to, its gradients, and the forward passes seen until then."""

    update: Update
    gradients: list[Tensor | None]
    until: int


@dataclass
class _Kept:
    """What a network's state was last copied as; shared by all that is seen until the next step."""

    state: State | None = None


@dataclass
class Observer:
    """Watches a session. `moves` takes the strategy's place before the schedule, and hands everything on to it."""

    session: Session
    forwards: list[Forward] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._players = {player.name: player for player in (self.session.pair.g, self.session.pair.d)}
        self._kept = {name: _Kept() for name in self._players}
        self._waiting: dict[str, list[Update]] = {name: [] for name in self._players}

    @contextmanager
    def watching(self) -> Iterator[None]:
        """See every forward pass and step meanwhile."""
        networks = {name: player.network for name, player in self._players.items()}
        for player in self._players.values():
            player.network = self._watched(player)
            player.before_step = self._before_step
        try:
            yield
        finally:
            for name, player in self._players.items():
                player.network = networks[name]
                player.before_step = None

    def play_round(self) -> None:
        """Draw and play one round. Gradients that no scheduled update accounts for are not looked at."""
        given = self.session.draw()
        self.session.schedule.play(_Observed(self.session.strategy, self, given), given)
        self.session.pair.notes.clear()

    def declare(self, player: str, fakes: Fakes, real: Batch, own: Tensor | None, made_with: State) -> None:
        """The schedule asks for an update now."""
        self._waiting[player].append(
            Update(
                player=player,
                latents=copied(fakes.latents),
                own_latents=None if own is None else copied(own),
                real=real,
                fakes_weights=made_with,
                weights={name: self.weights(name) for name in self._players},
                buffers={name: _copies(one.module.named_buffers()) for name, one in self._players.items()},
                before=_gradients(self._players[player]),
                since=len(self.forwards),
            )
        )

    def weights(self, name: str) -> State:
        """A network's parameters at this moment; the same object until its next step, or its neighbour's where they
        share layers."""
        kept = self._kept[name]
        if kept.state is None:
            kept.state = _copies(self._players[name].module.named_parameters())
        return kept.state

    def _watched(self, player: Player) -> Network:
        network = player.network

        def call(*given: Tensor) -> Tensor:
            before = RandomState.now(self.session.device)
            buffers = _copies(player.module.named_buffers())
            inputs = tuple(one.detach().clone() for one in given)
            weights = self.weights(player.name)
            made: Tensor = network(*given)
            self.forwards.append(Forward(player.name, inputs, made.detach().clone(), weights, buffers, before))
            return made

        return call

    def _before_step(self, player: Player) -> None:
        if self._waiting[player.name]:
            update = self._waiting[player.name].pop(0)
            self.steps.append(Step(update, _gradients(player), len(self.forwards)))
        for name, kept in self._kept.items():
            if name == player.name or self.session.pair.shared:
                kept.state = None


class _Observed:
    """The strategy as the schedule sees it, with every request noted first."""

    def __init__(self, moves: Moves, observer: Observer, given: RoundInput) -> None:
        self._moves = moves
        self._observer = observer
        # As drawn: a network may edit its input in place.
        self._real = {id(batch): copied(batch) for batch in given.real}
        self._made_with: dict[int, State] = {}

    def generate(self, latents: Tensor) -> Fakes:
        return self._noted(self._moves.generate(latents))

    def fakes_first(self, latents: Tensor) -> Fakes:
        return self._noted(self._moves.fakes_first(latents))

    def generator_update(self, fakes: Fakes, *, feeds_discriminator: bool) -> None:
        self._observer.declare("g", fakes, (), None, self._made_with[id(fakes)])
        self._moves.generator_update(fakes, feeds_discriminator=feeds_discriminator)

    def discriminator_update(self, real: Tensor, fakes: Fakes, own_latents: Tensor | None) -> None:
        self._observer.declare("d", fakes, self._real[id(real)], own_latents, self._made_with[id(fakes)])
        self._moves.discriminator_update(real, fakes, own_latents)

    def end_round(self) -> None:
        self._moves.end_round()

    def _noted(self, fakes: Fakes) -> Fakes:
        self._made_with[id(fakes)] = self._observer.weights("g")
        return fakes


def copied(batch: Tensor) -> Batch:
    """Copies of a batch's tensors, its labels among them."""
    return tuple(tensor.detach().clone() for tensor in tensors_of(batch))


def _copies(named: Iterator[tuple[str, Tensor | nn.Parameter]]) -> State:
    return {name: tensor.detach().clone() for name, tensor in named}


def _gradients(player: Player) -> list[Tensor | None]:
    """Copies, without the scale of a gradient scaler."""
    scale = player.scaler.get_scale() if player.scaler is not None else 1.0
    return [None if p.grad is None else p.grad.detach() / scale for p in player.trainable]
