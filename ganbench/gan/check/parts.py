"""What is looked over: freshly built networks with their loss, their latents and real data, as training has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from ganbench.gan.data import Data
from ganbench.gan.foreign.names import loading
from ganbench.gan.foreign.telling import told
from ganbench.gan.losses import LOSSES, AdversarialLoss
from ganbench.gan.models import build
from ganbench.gan.pair import Pair
from ganbench.gan.player import Player
from ganbench.gan.session import AUTOCAST
from ganbench.gan.streams import Latents, stream
from ganbench.record.loading import Loaded
from ganbench.spec.model import UserModelSpec
from ganbench.spec.run import RunSpec
from ganbench.spec.training import OptimizerSpec

# Samples in a probe where the batch size does not matter.
PROBE = 8
_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Parts:
    """Networks that nothing has touched yet, and what they will meet in training.

    Attributes:
        latents: N -> latents (N, …) on the device; other ones at every call.
        real: N -> real items (N, …) on the device, as training gets them; other ones at every call.
        value_range: what the data is said to lie in; None where that is not known.
        batch_size: N in training.
        evaluation_batch: the largest N for which the generator is asked when it is judged.
        places: role -> `file.py:Name` of a user's network, to name lines of it.
        loaded: how the user's files were loaded.
        probe: N for checks to which the batch size does not matter.
    """

    generator: nn.Module
    discriminator: nn.Module
    loss: AdversarialLoss
    latents: Callable[[int], Tensor]
    real: Callable[[int], Tensor]
    value_range: tuple[float, float] | None = None
    batch_size: int = 64
    evaluation_batch: int = 256
    device: torch.device = _CPU
    optimizer: OptimizerSpec = field(default_factory=OptimizerSpec)
    autocast: torch.dtype | None = None
    order: Literal["g_first", "d_first"] = "g_first"
    places: Mapping[str, str] = field(default_factory=dict)
    loaded: tuple[Loaded, ...] = ()
    probe: int = PROBE

    @cached_property
    def pair(self) -> Pair:
        """Both networks as training holds them: on the device, in training mode, each with its optimizer."""
        g, d = (
            Player(name, network.to(self.device).train(), self.optimizer, lr)
            for name, network, lr in (
                ("g", self.generator, self.optimizer.g_lr),
                ("d", self.discriminator, self.optimizer.d_lr),
            )
        )
        return Pair(g, d, self.loss, self.device, autocast=self.autocast, mixing=stream(0, "penalty"))

    @property
    def networks(self) -> tuple[tuple[str, nn.Module], ...]:
        """Role and network, the generator first."""
        return ("generator", self.generator), ("discriminator", self.discriminator)

    def fakes(self, count: int | None = None) -> Tensor:
        """What the generator makes of `count` latents, with its graph."""
        return self.pair.generate(self.latents(count or self.probe))

    def scores(self, items: Tensor) -> Tensor:
        """What the discriminator makes of these items, with its graph."""
        return self.pair.score(items)

    def told(self, role: str, error: BaseException) -> str:
        """An error in one line, with the user's file and its line where there is one."""
        where = self.places.get(role, "").rpartition(":")[0]
        text = f"{Path(where).name}: {told(error, where)}" if where else f"{type(error).__name__}: {error}"
        return " ".join(text.split())[:300]


def parts_of(spec: RunSpec, data: Data, device: torch.device) -> Parts:
    """The parts of a run, built anew at every call, with the seed's own weights, latents and data.

    Raises:
        UserCodeError: a user's file cannot be used.
    """
    loss = LOSSES[spec.loss]()
    generator, discriminator = build(spec, data.shape, on_probabilities=loss.on_probabilities)
    items, latent = data.to(device), spec.latent
    noise, order = stream(spec.seed, "check", "latents"), stream(spec.seed, "check", "data")

    def latents(count: int) -> Tensor:
        return Latents(count, latent.shape, latent.distribution, noise).next(device)

    def real(count: int) -> Tensor:
        return items.floats(torch.randint(data.count, (count,), generator=order).to(device))

    places = {}
    if isinstance(spec.model, UserModelSpec):
        places = {role: getattr(spec.model, role) for role in ("generator", "discriminator")}
    return Parts(
        generator=generator,
        discriminator=discriminator,
        loss=loss,
        latents=latents,
        real=real,
        value_range=data.value_range,
        batch_size=spec.batch_size,
        evaluation_batch=min(spec.evaluate_samples, 256),
        device=device,
        optimizer=spec.optimizer,
        autocast=AUTOCAST[spec.precision],
        order=spec.order,
        places=places,
        loaded=tuple(loading(place, role) for role, place in places.items()),
        probe=min(PROBE, spec.batch_size),
    )
