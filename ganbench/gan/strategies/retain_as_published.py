"""Control: `retain_graph=True` as it is commonly advised, every step taken at once."""

from __future__ import annotations

from torch import Tensor

from ganbench.gan.player import Player
from ganbench.gan.strategies.reuse import Reuse


class RetainAsPublished(Reuse):
    """Expected to raise with G first: the step changed weights that the retained graph had saved. Fused optimizers do
    not tell autograd so, and training goes on with stale weights."""

    def backward(self, loss: Tensor, player: Player) -> None:
        player.backward(loss, retain_graph=True)
