"""Watching a session: the updates that the schedule asks for, every forward pass, and the gradients that lie there when
an optimizer steps. Nothing of it changes the training."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ganbench.gan.certificate.seen import (
    Batch,
    Forward,
    RandomState,
    State,
    Step,
    Update,
    copied,
    copies,
    gradients_of,
    known,
    same,
    scale_of,
)
from ganbench.gan.labels import tensors_of
from ganbench.gan.player import Network, Player
from ganbench.gan.schedule import Fakes, Moves, RoundInput
from ganbench.gan.session import Session


@dataclass(frozen=True, eq=False)
class _Made:
    """Fakes as they were asked for: the latents as they were drawn, G's weights, and the pass that made them."""

    latents: Batch
    generator: State
    made: Forward | None


@dataclass
class Observer:
    """Watches a session, round by round.

    Attributes:
        forwards, steps: of this round.
        unmade: updates of this round that no step belongs to.
        unseen: networks that were called in another way than through their player's `network`.
    """

    session: Session
    forwards: list[Forward] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    unmade: list[Update] = field(default_factory=list)
    unseen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._players = {player.name: player for player in (self.session.pair.g, self.session.pair.d)}
        self._kept: dict[str, State] = {name: {} for name in self._players}
        self._ages = dict.fromkeys(self._players, 0)
        self._waiting: dict[str, list[Update]] = {name: [] for name in self._players}
        self._calls = dict.fromkeys(self._players, 0)
        # Those whose `Player.step` is under way: their optimizer's own step is that one.
        self._stepping: set[str] = set()
        self._asked = 0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """See every forward pass and step meanwhile."""
        networks = {name: player.network for name, player in self._players.items()}
        handles = []
        for player in self._players.values():
            player.network = self._watched(player)
            player.before_step = self._before_step
            handles.append(player.optimizer.register_step_pre_hook(self._past_the_player(player)))
            if not self.session.spec.compile:  # a hook would be compiled too
                handles.append(player.module.register_forward_pre_hook(self._counting(player.name)))
        try:
            yield
        finally:
            for name, player in self._players.items():
                player.network = networks[name]
                player.before_step = None
            for handle in handles:
                handle.remove()

    def play_round(self) -> None:
        """Draw and play one round."""
        for seen in (self.forwards, self.steps, self.unmade):
            seen.clear()
        self._calls = dict.fromkeys(self._players, 0)
        given = self.session.draw()
        self.session.schedule.play(_Observed(self.session.strategy, self, given), given)
        self.session.pair.notes.clear()
        for name, waiting in self._waiting.items():
            self.unmade += waiting
            waiting.clear()
            if self._calls[name] > sum(one.role == name for one in self.forwards):
                self.unseen.add(name)

    def declare(self, player: str, fakes: _Made, real: Batch, own: Batch | None, updated: State) -> None:
        """The schedule asks for an update now."""
        self._asked += 1
        self._waiting[player].append(
            Update(
                player=player,
                number=self._asked,
                latents=fakes.latents,
                own_latents=own,
                real=real,
                made=fakes.made,
                generator=fakes.generator,
                updated=updated,
                weights={name: self.weights(name) for name in self._players},
                ages=dict(self._ages),
                buffers={name: copies(one.module.named_buffers()) for name, one in self._players.items()},
                before=gradients_of(self._players[player]),
                since=len(self.forwards),
            )
        )

    def weights(self, name: str) -> State:
        """A network's parameters at this moment; the same object as long as they stay the same."""
        now = dict(known(self._players[name].module.named_parameters()))
        kept = self._kept[name]
        if kept.keys() != now.keys() or not all(torch.equal(kept[key], tensor) for key, tensor in now.items()):
            self._kept[name] = kept = copies(now.items())
        return kept

    def _watched(self, player: Player) -> Network:
        network = player.network

        def call(*given: Tensor) -> Tensor:
            before = RandomState.now(self.session.device)
            buffers = copies(player.module.named_buffers())
            inputs = tuple(one.detach().clone() for one in given)
            weights, age = self.weights(player.name), self._ages[player.name]
            made: Tensor = network(*given)
            self.forwards.append(Forward(player.name, inputs, made.detach().clone(), weights, buffers, before, age))
            return made

        return call

    def _counting(self, name: str) -> Callable[..., None]:
        def count(*_given: object) -> None:
            self._calls[name] += 1

        return count

    def _before_step(self, player: Player) -> None:
        self._stepping.add(player.name)
        self._stepped(player, scale_of(player))

    def _past_the_player(self, player: Player) -> Callable[..., None]:
        def before(*_given: object) -> None:
            if player.name in self._stepping:
                self._stepping.discard(player.name)
            else:  # a scaler has unscaled its gradients by now
                self._stepped(player, None)

        return before

    def _stepped(self, player: Player, scale: float | None) -> None:
        waiting = self._waiting[player.name]
        update = waiting.pop(0) if waiting else None
        gradients = gradients_of(player, scale or 1.0)
        self.steps.append(Step(player.name, update, gradients, scale, len(self.forwards)))
        for name in self._ages:
            if name == player.name or self.session.pair.shared:
                self._ages[name] += 1


class _Observed:
    """The strategy as the schedule sees it, with every request noted first."""

    def __init__(self, moves: Moves, observer: Observer, given: RoundInput) -> None:
        self._moves = moves
        self._observer = observer
        # As drawn: a network may edit its input in place.
        drawn = [*given.real, *given.latents, *(own for own in given.own_latents if own is not None)]
        self._drawn = {id(batch): copied(batch) for batch in drawn}
        self._made: dict[int, tuple[Fakes, _Made]] = {}
        self._updated: State | None = None

    def generate(self, latents: Tensor) -> Fakes:
        return self._noted(self._moves.generate, latents)

    def fakes_first(self, latents: Tensor) -> Fakes:
        return self._noted(self._moves.fakes_first, latents)

    def generator_update(self, fakes: Fakes, *, feeds_discriminator: bool) -> None:
        self._observer.declare("g", self._made[id(fakes)][1], (), None, {})
        self._moves.generator_update(fakes, feeds_discriminator=feeds_discriminator)

    def discriminator_update(self, real: Tensor, fakes: Fakes, own_latents: Tensor | None) -> None:
        if self._updated is None:
            self._updated = self._observer.weights("g")
        own = None if own_latents is None else self._drawn[id(own_latents)]
        self._observer.declare("d", self._made[id(fakes)][1], self._drawn[id(real)], own, self._updated)
        self._moves.discriminator_update(real, fakes, own_latents)

    def end_round(self) -> None:
        self._moves.end_round()

    def _noted(self, ask: Callable[[Tensor], Fakes], latents: Tensor) -> Fakes:
        generator, since = self._observer.weights("g"), len(self._observer.forwards)
        fakes, drawn = ask(latents), self._drawn[id(latents)]
        made = None
        if fakes.images is not None:
            images = tensors_of(fakes.images)[0].detach()
            passes = [one for one in self._observer.forwards[since:] if one.role == "g" and same(one.given, drawn)]
            made = next((one for one in passes if same((one.output.to(images.dtype),), (images,))), None)
        # Kept with its fakes, so that no others get their id.
        self._made[id(fakes)] = (fakes, _Made(drawn, generator, made))
        return fakes
