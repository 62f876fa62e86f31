"""Two fully connected networks for pictures of any shape, as in Goodfellow et al. 2014 and most first tutorials."""

from __future__ import annotations

import math

from torch import Tensor, nn

from ganbench.spec.model import MlpSpec


class Generator(nn.Module):
    """Latents (N, …) of `latent_dim` numbers to pictures (N, *shape) in [-1, 1] by a tanh."""

    def __init__(self, spec: MlpSpec, latent_dim: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.shape = shape
        layers: list[nn.Module] = []
        width = latent_dim
        for _ in range(spec.layers):
            layers.append(nn.Linear(width, spec.hidden))
            if spec.batch_norm:
                layers.append(nn.BatchNorm1d(spec.hidden))
            layers.append(nn.ReLU())
            width = spec.hidden
        self.layers = nn.Sequential(*layers, nn.Linear(width, math.prod(shape)), nn.Tanh())

    def forward(self, latents: Tensor) -> Tensor:
        pictures: Tensor = self.layers(latents.flatten(1))
        return pictures.view(-1, *self.shape)


class Discriminator(nn.Module):
    """Pictures (N, *shape) to scores (N, 1): logits, or probabilities with `on_probabilities`."""

    def __init__(self, spec: MlpSpec, shape: tuple[int, ...], on_probabilities: bool) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        width = math.prod(shape)
        for _ in range(spec.layers):
            layers += [nn.Linear(width, spec.hidden), nn.LeakyReLU(0.2)]
            width = spec.hidden
        layers.append(nn.Linear(width, 1))
        if on_probabilities:
            layers.append(nn.Sigmoid())
        self.layers = nn.Sequential(*layers)

    def forward(self, pictures: Tensor) -> Tensor:
        scores: Tensor = self.layers(pictures.flatten(1))
        return scores
