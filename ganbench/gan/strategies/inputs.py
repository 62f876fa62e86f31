"""Attached fakes, but each backward pass stops at its own network's parameters."""

from __future__ import annotations

from torch import Tensor

from ganbench.gan.player import Player
from ganbench.gan.schedule import Fakes
from ganbench.gan.strategies.base import Strategy


class Inputs(Strategy):
    """`backward(inputs=own trainable parameters)` in both phases: no gradient of the idle network is ever made."""

    def shown(self, fakes: Fakes, own_latents: Tensor | None) -> Tensor:  # noqa: ARG002
        assert fakes.images is not None
        return fakes.images

    def backward(self, loss: Tensor, player: Player) -> None:
        player.backward(loss, inputs=player.trainable)

    def after(self, player: Player) -> None:
        """Nothing reached the idle network."""
