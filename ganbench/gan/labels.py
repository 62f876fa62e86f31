"""Batches with labels, for networks that are called with them: `G(z, y)` and `D(x, y)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from ganbench.gan.streams import Latents


@dataclass(frozen=True, slots=True)
class Labelled:
    """Latents or items (N, …) with their labels, int64 (N,).

    It takes a batch's place wherever batches are only handed on: schedule and strategies do not know it, a
    `ConditionalPair` takes it apart.
    """

    tensor: Tensor
    labels: Tensor

    def detach(self) -> Labelled:
        """The same labels with the tensor cut off from its graph."""
        return Labelled(self.tensor.detach(), self.labels)


def batch(tensor: Tensor, labels: Tensor) -> Tensor:
    """A labelled batch, under the type of a plain one."""
    return cast(Tensor, Labelled(tensor, labels))


def tensors_of(given: Tensor | Labelled) -> tuple[Tensor, ...]:
    """The tensors that a batch consists of."""
    return (given.tensor, given.labels) if isinstance(given, Labelled) else (given,)


class LabelledLatents:
    """Endless latent batches with labels from a stream of their own: drawing labels shifts no latents.

    `known`: int64, the labels to draw from. With each class once, classes are equally likely; with those of a whole
    dataset, they are as likely as there.
    """

    def __init__(self, latents: Latents, known: Tensor, generator: torch.Generator) -> None:
        self._latents = latents
        self._known = known
        self._generator = generator

    def next(self, device: torch.device) -> Tensor:
        """The next batch on the device."""
        latents = self._latents.next(device)
        chosen = torch.randint(len(self._known), (len(latents),), generator=self._generator, device="cpu")
        return batch(latents, self._known[chosen.to(self._known.device)].to(device, non_blocking=True))
