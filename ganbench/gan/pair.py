"""Both players, their loss, and what is noted of every update."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from ganbench.gan.losses import AdversarialLoss
from ganbench.gan.player import Player


@dataclass(frozen=True, slots=True)
class Note:
    """What is kept of one update: detached tensors, read after the timed window."""

    player: str
    loss: Tensor
    real_loss: Tensor | None = None
    fake_loss: Tensor | None = None
    real_scores: Tensor | None = None
    fake_scores: Tensor | None = None


def unmarked(_segment: str) -> None:
    """A mark that nobody reads."""


class Pair:
    """Generator and discriminator with their loss. Strategies act on it; it knows neither strategy nor ratio."""

    def __init__(
        self,
        generator: Player,
        discriminator: Player,
        loss: AdversarialLoss,
        device: torch.device,
        *,
        autocast: torch.dtype | None = None,
        mixing: torch.Generator | None = None,
    ) -> None:
        self.g = generator
        self.d = discriminator
        self.loss = loss
        self.device = device
        self.notes: list[Note] = []
        self.mark: Callable[[str], None] = unmarked
        # Shown all fakes as they are made: memory rounds count them apart from what autograd keeps alive.
        self.on_fakes: Callable[[Tensor], None] | None = None
        self._autocast = autocast
        self._mixing = mixing
        # Parameters that both networks hold, by identity.
        self.shared = {id(p) for p in generator.trainable} & {id(p) for p in discriminator.trainable}
        if self.shared:
            for player in (generator, discriminator):
                player.exclusive = [p for p in player.trainable if id(p) not in self.shared]
        self._no_part: Tensor | None = None

    def other(self, player: Player) -> Player:
        """The one whose turn it is not."""
        return self.d if player is self.g else self.g

    def generate(self, latents: Tensor) -> Tensor:
        """Fakes from latents, with their graph."""
        with self._cast():
            fakes: Tensor = self.g.network(latents)
        if self._autocast is not None:
            fakes = fakes.float()
        if self.on_fakes is not None:
            self.on_fakes(fakes)
        return fakes

    def score(self, items: Tensor) -> Tensor:
        """D's scores, in float32 whatever the networks computed in: losses on half precision overflow."""
        with self._cast():
            scores: Tensor = self.d.network(items)
        return scores.float() if self._autocast is not None else scores

    def generator_loss(self, fakes: Tensor) -> Tensor:
        """The generator's loss on these fakes; noted."""
        loss = self.loss.generator(self.score(fakes))
        self.notes.append(Note("g", loss.detach()))
        return loss

    def discriminator_loss(self, real: Tensor, fakes: Tensor) -> Tensor:
        """The discriminator's loss on a real batch and these fakes; noted."""
        real_scores, fake_scores = self.score(real), self.score(fakes)
        loss, real_loss, fake_loss = self.loss.discriminator(real_scores, fake_scores)
        if self.loss.needs_penalty:
            loss = loss + self._penalty(real, fakes)
        self.notes.append(
            Note(
                "d",
                loss.detach(),
                self._absent() if real_loss is None else real_loss.detach(),
                self._absent() if fake_loss is None else fake_loss.detach(),
                real_scores.detach(),
                fake_scores.detach(),
            )
        )
        return loss

    def sample(self, latents: Tensor) -> Tensor:
        """Fakes for judging: from the module itself, neither compiled nor in another precision."""
        return self.g.output(self.g.module(latents))

    def _penalty(self, real: Tensor, fakes: Tensor) -> Tensor:
        return self.loss.penalty(self.score, real, fakes, self._mix(real.shape[0]))

    def _mix(self, count: int) -> Tensor:
        return torch.rand(count, generator=self._mixing).to(self.device)

    def _absent(self) -> Tensor:
        """Noted where a loss has no such part; what is not finite makes no point of a curve."""
        if self._no_part is None:
            self._no_part = torch.full((), torch.nan, device=self.device)
        return self._no_part

    def _cast(self) -> AbstractContextManager[object]:
        return _PLAIN if self._autocast is None else torch.autocast(self.device.type, self._autocast)


_PLAIN: AbstractContextManager[object] = nullcontext()
