"""A pair whose networks are called with labels."""

from __future__ import annotations

from typing import cast

from torch import Tensor

from ganbench.gan.labels import Labelled, batch
from ganbench.gan.pair import Pair


class ConditionalPair(Pair):
    """`G(z, y)` and `D(x, y)`. Latents and real batches are `Labelled`; fakes keep the labels they were made for."""

    def generate(self, latents: Tensor) -> Tensor:
        """Fakes from labelled latents, with their graph and with those labels."""
        given = _labelled(latents)
        with self._cast():
            fakes: Tensor = self.g.network(given.tensor, given.labels)
        if self._autocast is not None:
            fakes = fakes.float()
        if self.on_fakes is not None:
            self.on_fakes(fakes)
        return batch(fakes, given.labels)

    def score(self, items: Tensor) -> Tensor:
        """D's scores of labelled items, in float32."""
        given = _labelled(items)
        with self._cast():
            scores: Tensor = self.d.network(given.tensor, given.labels)
        return scores.float() if self._autocast is not None else scores

    def sample(self, latents: Tensor) -> Tensor:
        """Fakes for judging, without their labels."""
        given = _labelled(latents)
        return self.g.output(self.g.module(given.tensor, given.labels))

    def _penalty(self, real: Tensor, fakes: Tensor) -> Tensor:
        # Points between a real item and a fake have no label of their own: they get the real item's, as is common.
        items, labels = _labelled(real).tensor, _labelled(real).labels
        mix = self._mix(items.shape[0])
        return self.loss.penalty(
            lambda between: self.score(batch(between, labels)), items, _labelled(fakes).tensor, mix
        )


def _labelled(given: Tensor) -> Labelled:
    # What `batch` made: a value under the type of a tensor.
    return cast(Labelled, given)
