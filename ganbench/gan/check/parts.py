"""What is looked over: freshly built networks with their loss, their latents and real data, as training has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from ganbench.gan.conditional import ConditionalPair
from ganbench.gan.data import Data
from ganbench.gan.foreign.names import loading
from ganbench.gan.foreign.telling import told
from ganbench.gan.labels import LabelledLatents
from ganbench.gan.losses import AdversarialLoss, make_loss
from ganbench.gan.models import build, is_conditional, outputs
from ganbench.gan.pair import Pair
from ganbench.gan.player import Output, Player
from ganbench.gan.session import AUTOCAST, require_labels
from ganbench.gan.streams import Latents, stream
from ganbench.record.loading import Loaded
from ganbench.spec.loss import UserLossSpec
from ganbench.spec.model import UserModelSpec
from ganbench.spec.place import role_of
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
        conditional: latents and real items come with labels, with which the networks are called.
        outputs: role -> what of its output is meant, where it gives more than a tensor.
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
    conditional: bool = False
    outputs: Mapping[str, Output] = field(default_factory=dict)
    order: Literal["g_first", "d_first"] = "g_first"
    places: Mapping[str, str] = field(default_factory=dict)
    loaded: tuple[Loaded, ...] = ()
    probe: int = PROBE

    @cached_property
    def pair(self) -> Pair:
        """Both networks as training holds them: on the device, in training mode, each with its optimizer."""
        rates = {"generator": self.optimizer.g_lr, "discriminator": self.optimizer.d_lr}
        g, d = (
            Player(role[0], network.to(self.device).train(), self.optimizer, rates[role], output=self.outputs.get(role))
            for role, network in self.networks
        )
        kind = ConditionalPair if self.conditional else Pair
        return kind(g, d, self.loss, self.device, autocast=self.autocast, mixing=stream(0, "penalty"))

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
        DatasetError: networks that are called with labels, and data that have none.
    """
    conditional = is_conditional(spec)
    if conditional:
        require_labels(data)
    items = (data if conditional else data.without_labels()).to(device)
    loss = make_loss(spec.loss)
    generator, discriminator = build(spec, data.shape, on_probabilities=loss.on_probabilities)
    noise, order, labels = (stream(spec.seed, "check", purpose) for purpose in ("latents", "data", "labels"))

    def latents(count: int) -> Tensor:
        plain = Latents(count, spec.latent.shape, spec.latent.distribution, noise)
        if items.labels is None:
            return plain.next(device)
        return LabelledLatents(plain, torch.arange(items.classes), labels).next(device)

    def real(count: int) -> Tensor:
        rows = torch.randint(items.count, (count,), generator=order).to(device)
        return items.floats(rows) if items.labels is None else items.labelled(rows)

    meant = zip(("generator", "discriminator"), outputs(spec), strict=True)
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
        conditional=conditional,
        outputs={role: output for role, output in meant if output is not None},
        order=spec.order,
        places=_places(spec),
        loaded=_loaded(spec),
        probe=min(PROBE, spec.batch_size),
    )


def _places(spec: RunSpec) -> dict[str, str]:
    """Role -> the place whose lines errors name."""
    places = {}
    if isinstance(spec.model, UserModelSpec):
        both = {"generator": spec.model.generator, "discriminator": spec.model.discriminator}
        places = {role: place or spec.model.factory or "" for role, place in both.items()}
    if isinstance(spec.loss, UserLossSpec):
        places["loss"] = spec.loss.place or spec.loss.discriminator or ""
    return places


def _loaded(spec: RunSpec) -> tuple[Loaded, ...]:
    """How each file of the user's was loaded, once for each."""
    found: dict[str, Loaded] = {}
    for name, part in spec.foreign().items():
        for named, place in part.places().items():
            record = loading(place, role_of(name, named), getattr(part, "argv", ()))
            found[record.file] = record
    return tuple(found.values())
