"""Small networks as a user would bring them, for pictures of 1×4×4 and latents of six numbers."""

from __future__ import annotations

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
