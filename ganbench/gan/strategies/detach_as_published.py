"""Control: D sees detached fakes, but the gradients that the G phase leaves in D stay there."""

from __future__ import annotations

from ganbench.gan.player import Player
from ganbench.gan.strategies.base import Strategy


class DetachAsPublished(Strategy):
    """Expected to be contaminated: each network clears its gradients after its own step only, so that the first D
    update of every round is made of the G phase's leftovers too."""

    def after(self, player: Player) -> None:
        """Nothing is discarded."""
