"""The idle network is frozen around each phase, so that nothing is computed for it."""

from __future__ import annotations

from ganbench.gan.pair import Pair
from ganbench.gan.player import Player
from ganbench.gan.strategies.base import Strategy


class Toggle(Strategy):
    """`requires_grad_(False)` on the idle network; each flag is restored to what it was.

    G is frozen only after its fakes were made: fakes of a frozen generator carry no graph, and G would never move.
    """

    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        # Only what was trainable is touched: a layer that its author froze stays frozen. Nor is a layer of both
        # networks idle in either phase.
        self._trainable = {player.name: player.exclusive for player in (pair.g, pair.d)}

    def before(self, player: Player) -> None:
        self._freeze(self.pair.other(player), True)

    def after(self, player: Player) -> None:
        self._freeze(self.pair.other(player), False)

    def _freeze(self, player: Player, frozen: bool) -> None:
        for parameter in self._trainable[player.name]:
            parameter.requires_grad_(not frozen)
