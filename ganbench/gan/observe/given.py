"""What a step is given: copies of an experiment's networks and their optimizers, its latents and its real items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ganbench.gan.check.parts import parts_of
from ganbench.gan.data import Data
from ganbench.gan.labels import tensors_of
from ganbench.gan.losses import AdversarialLoss
from ganbench.gan.losses.user import Criterion
from ganbench.spec.run import RunSpec

_CRITERIA: dict[str, type[nn.Module]] = {
    "bce": nn.BCEWithLogitsLoss,
    "bce_saturating": nn.BCEWithLogitsLoss,
    "bce_prob": nn.BCELoss,
    "lsgan": nn.MSELoss,
}


@dataclass(frozen=True)
class Given:
    """What a step can be given.

    Attributes:
        real: other items at every call, and their labels where networks are called with labels.
        latents: likewise, without labels.
        lacking: what this experiment has not → why.
    """

    generator: nn.Module
    discriminator: nn.Module
    g_optimizer: torch.optim.Optimizer
    d_optimizer: torch.optim.Optimizer
    real: Callable[[], tuple[Tensor, ...]]
    latents: Callable[[], Tensor]
    batch_size: int
    latent_dim: int
    device: torch.device
    criterion: nn.Module | None
    lacking: dict[str, str]

    def for_round(self, number: int) -> dict[str, Any]:
        """Everything by what it is, with new latents and items."""
        real = self.real()
        return {
            "generator": self.generator,
            "discriminator": self.discriminator,
            "g_optimizer": self.g_optimizer,
            "d_optimizer": self.d_optimizer,
            "real": real[0],
            "labels": real[1] if len(real) > 1 else None,
            "latents": self.latents(),
            "latent_dim": self.latent_dim,
            "batch_size": self.batch_size,
            "device": self.device,
            "criterion": self.criterion,
            "round": number,
        }


def given_of(spec: RunSpec, data: Data, device: torch.device) -> Given:
    """What an experiment gives: networks built for this alone, with the seed's own weights, latents and data.

    Raises:
        UserCodeError: a user's file cannot be used.
        DatasetError: networks that are called with labels, and data that have none.
    """
    parts = parts_of(spec, data, device)
    criterion = _criterion(spec, parts.loss)
    lacking = {}
    if criterion is None:
        lacking["criterion"] = (
            f"loss {spec.loss if isinstance(spec.loss, str) else 'of a file'} has no criterion of scores and targets; "
            f"choose loss {', '.join(_CRITERIA)}, or write the loss into the step"
        )
    if not parts.conditional:
        lacking["labels"] = "labels are given with networks that are called with labels: set model.conditional"
    return Given(
        parts.pair.g.module,
        parts.pair.d.module,
        parts.pair.g.optimizer,
        parts.pair.d.optimizer,
        lambda: tensors_of(parts.real(spec.batch_size)),
        lambda: tensors_of(parts.latents(spec.batch_size))[0],
        spec.batch_size,
        spec.latent.shape[0],
        device,
        criterion,
        lacking,
    )


def _criterion(spec: RunSpec, loss: AdversarialLoss) -> nn.Module | None:
    if isinstance(loss, Criterion):
        return loss.criterion
    kind = _CRITERIA.get(spec.loss) if isinstance(spec.loss, str) else None
    return kind() if kind is not None else None
