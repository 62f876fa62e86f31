"""Small networks as a user would bring them, for pictures of 1×4×4 and latents of six numbers."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn

_NORMS = {
    "none": lambda layer: layer,
    "old": nn.utils.spectral_norm,
    "new": nn.utils.parametrizations.spectral_norm,
}


class Generator(nn.Module):
    """Two weighted layers, with BatchNorm and dropout where asked for."""

    def __init__(self, hidden: int = 8, batch_norm: bool = False, dropout: float = 0.0, frozen: bool = False) -> None:
        super().__init__()
        norm = [nn.BatchNorm1d(hidden)] if batch_norm else []
        self.layers = nn.Sequential(
            nn.Linear(6, hidden), *norm, nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 16), nn.Tanh()
        )
        self.layers[0].requires_grad_(not frozen)

    def forward(self, latents: Tensor) -> Tensor:
        pictures: Tensor = self.layers(latents.flatten(1))
        return pictures.view(-1, 1, 4, 4)


class Discriminator(nn.Module):
    """Two weighted layers, with either spectral norm, dropout, or a score blown up by `factor`."""

    def __init__(
        self, hidden: int = 8, norm: str = "none", dropout: float = 0.0, frozen: bool = False, factor: float = 1.0
    ) -> None:
        super().__init__()
        bound = _NORMS[norm]
        self.layers = nn.Sequential(
            bound(nn.Linear(16, hidden)), nn.LeakyReLU(0.2), nn.Dropout(dropout), bound(nn.Linear(hidden, 1))
        )
        self.layers[0].requires_grad_(not frozen)
        self.factor = factor

    def forward(self, pictures: Tensor) -> Tensor:
        scores: Tensor = self.layers(pictures.flatten(1))
        return scores * self.factor


class Shift(nn.Module):
    """A generator whose operations save nothing for the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, 4, 4))

    def forward(self, latents: Tensor) -> Tensor:
        return latents + self.bias


class Failing(Discriminator):
    """From its call number `call` on (the first is 0) it raises, or gives NaN."""

    def __init__(self, call: int, raises: bool) -> None:
        super().__init__()
        self.call, self.raises, self.calls = call, raises, 0

    def forward(self, pictures: Tensor) -> Tensor:
        now, self.calls = self.calls, self.calls + 1
        if now < self.call:
            return super().forward(pictures)
        if self.raises:
            raise RuntimeError(f"call {now}")
        return super().forward(pictures) * float("nan")


class OneLayer(nn.Module):
    """A generator of one weighted layer, fed by latents alone."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 16)

    def forward(self, latents: Tensor) -> Tensor:
        pictures: Tensor = self.layer(latents)
        return pictures.view(-1, 1, 4, 4)


class WeightNormed(nn.Module):
    """A discriminator with weight norm, of the old or the new kind."""

    def __init__(self, old: bool) -> None:
        super().__init__()
        norm = nn.utils.weight_norm if old else nn.utils.parametrizations.weight_norm
        self.layers = nn.Sequential(norm(nn.Linear(16, 8)), nn.LeakyReLU(0.2), norm(nn.Linear(8, 1)))

    def forward(self, pictures: Tensor) -> Tensor:
        scores: Tensor = self.layers(pictures.flatten(1))
        return scores


class Noisy(Generator):
    """Draws from the global random state inside, in its own type."""

    def forward(self, latents: Tensor) -> Tensor:
        return super().forward(latents + 0.1 * torch.randn_like(latents))


class Noisier(Discriminator):
    """Instance noise on whatever it is shown."""

    def forward(self, pictures: Tensor) -> Tensor:
        return super().forward(pictures + 0.1 * torch.randn_like(pictures))


class Averaging(Discriminator):
    """Takes the running mean of what it has seen off its input."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(1, 4, 4))

    def forward(self, pictures: Tensor) -> Tensor:
        with torch.no_grad():
            self.mean.lerp_(pictures.mean(0), 0.1)
        return super().forward(pictures - self.mean)


class EditsItsInput(Discriminator):
    """Its first layer works in place, and edits the batch that it is shown."""

    def forward(self, pictures: Tensor) -> Tensor:
        return super().forward(nn.functional.leaky_relu_(pictures.flatten(1), 0.5))


class Capricious(Discriminator):
    """Draws from Python's random numbers, which nobody seeds."""

    def forward(self, pictures: Tensor) -> Tensor:
        return super().forward(pictures) * (1 + random.random())


def sharing() -> tuple[nn.Module, nn.Module]:
    """Both networks with one layer in common: 16 numbers to 16."""
    common = nn.Linear(16, 16)
    generator = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), common, nn.Unflatten(1, (1, 4, 4)))
    discriminator = nn.Sequential(nn.Flatten(), common, nn.LeakyReLU(0.2), nn.Linear(16, 1))
    return generator, discriminator
