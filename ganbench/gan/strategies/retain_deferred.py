"""The graph is retained, and the G step before the D updates waits until they are done."""

from __future__ import annotations

from torch import Tensor

from ganbench.gan.pair import Pair
from ganbench.gan.player import Player
from ganbench.gan.schedule import Fakes
from ganbench.gan.strategies.base import Strategy


class RetainDeferred(Strategy):
    """What `retain_graph=True` would have to be: G's weights stay as its graph saved them while D goes through it.

    The D updates fill G's gradients through the attached fakes; those are discarded, and the gradients that belong to
    the waiting step are kept aside meanwhile.
    """

    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        self._waiting: list[Tensor | None] | None = None

    def shown(self, fakes: Fakes, own_latents: Tensor | None) -> Tensor:  # noqa: ARG002
        assert fakes.images is not None
        return fakes.images

    def backward(self, loss: Tensor, player: Player) -> None:
        player.backward(loss, retain_graph=True)

    def step(self, player: Player, *, put_off: bool) -> None:
        if not put_off:
            super().step(player, put_off=False)
            return
        self._waiting = [parameter.grad for parameter in player.trainable]
        player.clear()

    def end_round(self) -> None:
        if self._waiting is None:
            return
        for parameter, gradient in zip(self.pair.g.trainable, self._waiting, strict=True):
            parameter.grad = gradient
        self._waiting = None
        super().step(self.pair.g, put_off=False)
        self.pair.mark("g_step")
