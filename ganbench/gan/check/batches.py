"""Batches with labels and without, looked at alike."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ganbench.gan.labels import Labelled, batch


def tensor_of(given: Any) -> Any:
    """The latents, items or fakes of a batch, without their labels; whatever else a network gave, as it is."""
    return given.tensor if isinstance(given, Labelled) else given


def in_place_of(given: Any, tensor: Tensor) -> Tensor:
    """Such a batch with another tensor, and with the same labels where it has some."""
    return batch(tensor, given.labels) if isinstance(given, Labelled) else tensor
