"""Control: the attached fakes of the G update go into the D update, and nothing else is done."""

from __future__ import annotations

from torch import Tensor

from ganbench.gan.player import Player
from ganbench.gan.schedule import Fakes
from ganbench.gan.strategies.base import Strategy


class Reuse(Strategy):
    """Expected to raise: the first backward pass freed the graph that the second one needs."""

    def shown(self, fakes: Fakes, own_latents: Tensor | None) -> Tensor:  # noqa: ARG002
        assert fakes.images is not None
        return fakes.images

    def before(self, player: Player) -> None:
        # The idiom of most scripts: each optimizer clears its own gradients before its backward pass.
        player.clear()

    def after(self, player: Player) -> None:
        """Nothing is discarded."""
