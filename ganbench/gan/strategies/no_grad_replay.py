"""The last latents go through the updated generator again, without a graph."""

from __future__ import annotations

import torch
from torch import Tensor

from ganbench.gan.pair import Pair
from ganbench.gan.schedule import Fakes
from ganbench.gan.strategies.base import Strategy


class NoGradReplay(Strategy):
    """Another estimator: the fakes come from the generator after its step, and G runs forward once more a round."""

    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        self._replayed: Tensor | None = None

    def fakes_first(self, latents: Tensor) -> Fakes:
        return Fakes(latents, None)

    def shown(self, fakes: Fakes, own_latents: Tensor | None) -> Tensor:  # noqa: ARG002
        if self._replayed is None:
            with torch.no_grad():
                self._replayed = self.pair.generate(fakes.latents)
        return self._replayed

    def end_round(self) -> None:
        self._replayed = None
