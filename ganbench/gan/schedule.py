"""The order of updates within a round. The only reader of the ratio; it knows no strategy by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor

from ganbench.spec.ratio import UpdateRatio


@dataclass(frozen=True, slots=True)
class Fakes:
    """Latents and, where they have been made with their graph, the pictures from them."""

    latents: Tensor
    images: Tensor | None


@dataclass(frozen=True, slots=True)
class RoundInput:
    """All that a round consumes: latents for each G update, a real batch and, where asked for, latents for each D
    update."""

    latents: list[Tensor]
    real: list[Tensor]
    own_latents: list[Tensor | None]


class Moves(Protocol):
    """What a strategy offers the schedule."""

    def generate(self, latents: Tensor) -> Fakes:
        """Make fakes for a generator update."""

    def fakes_first(self, latents: Tensor) -> Fakes:
        """Make fakes that D sees before G is updated on them."""

    def generator_update(self, fakes: Fakes, *, feeds_discriminator: bool) -> None:
        """Update G on its fakes; `feeds_discriminator`: D updates on the same fakes follow."""

    def discriminator_update(self, real: Tensor, fakes: Fakes, own_latents: Tensor | None) -> None:
        """Update D on a real batch and fakes."""

    def end_round(self) -> None:
        """Do what was put off to the end of the round."""


@dataclass(frozen=True)
class Schedule:
    """`g_first`: the D updates see the fakes of the round's last G update. `d_first`: fakes are made first, the D
    updates see them, and the round's first G update goes through those same fakes."""

    ratio: UpdateRatio
    order: Literal["g_first", "d_first"] = "g_first"
    real_batches: Literal["per_round", "per_d_update"] = "per_round"

    def __str__(self) -> str:
        g, d = ["G"] * self.ratio.g, ["D"] * self.ratio.d
        return " ".join(g + d if self.order == "g_first" else d + g)

    @property
    def g_updates(self) -> int:
        """Generator updates a round."""
        return self.ratio.g

    @property
    def d_updates(self) -> int:
        """Discriminator updates a round."""
        return self.ratio.d

    @property
    def updates(self) -> int:
        """Updates a round, of both."""
        return self.ratio.g + self.ratio.d

    @property
    def batches(self) -> int:
        """Real batches a round."""
        return 1 if self.real_batches == "per_round" else self.ratio.d

    def play(self, moves: Moves, given: RoundInput) -> None:
        """One round."""
        if self.order == "g_first":
            fakes = self._generator_phase(moves, given, None)
            self._discriminator_phase(moves, given, fakes)
        else:
            fakes = moves.fakes_first(given.latents[0])
            self._discriminator_phase(moves, given, fakes)
            self._generator_phase(moves, given, fakes)
        moves.end_round()

    def _generator_phase(self, moves: Moves, given: RoundInput, made: Fakes | None) -> Fakes:
        last = len(given.latents) - 1
        fakes = made
        for n, latents in enumerate(given.latents):
            if n > 0 or fakes is None or fakes.images is None:
                fakes = moves.generate(latents)
            moves.generator_update(fakes, feeds_discriminator=made is None and n == last)
        assert fakes is not None  # a ratio has at least one G update
        return fakes

    def _discriminator_phase(self, moves: Moves, given: RoundInput, fakes: Fakes) -> None:
        for n, own_latents in enumerate(given.own_latents):
            moves.discriminator_update(given.real[n % len(given.real)], fakes, own_latents)
