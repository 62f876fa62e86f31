"""Every D update draws latents of its own and makes its fakes without a graph, as WGAN training does."""

from __future__ import annotations

import torch
from torch import Tensor

from ganbench.gan.schedule import Fakes
from ganbench.gan.strategies.base import Strategy


class NoGradFresh(Strategy):
    """Another estimator: new fakes of the updated generator for every D update."""

    def fakes_first(self, latents: Tensor) -> Fakes:
        return Fakes(latents, None)

    def shown(self, fakes: Fakes, own_latents: Tensor | None) -> Tensor:  # noqa: ARG002
        assert own_latents is not None  # the table of strategies asks for them
        with torch.no_grad():
            return self.pair.generate(own_latents)
