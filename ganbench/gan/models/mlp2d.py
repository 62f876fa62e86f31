"""Two fully connected networks for points in the plane, as used for mixtures of Gaussians (Metz et al. 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from ganbench.spec.model import Mlp2dSpec


def _stack(width: int, spec: Mlp2dSpec, out: int) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for _ in range(spec.layers):
        layers += [nn.Linear(width, spec.hidden), nn.ReLU()]
        width = spec.hidden
    return [*layers, nn.Linear(width, out)]


class Generator(nn.Module):
    """Latents (N, …) of `latent_dim` numbers to points (N, 2), unbounded."""

    def __init__(self, spec: Mlp2dSpec, latent_dim: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(*_stack(latent_dim, spec, 2))

    def forward(self, latents: Tensor) -> Tensor:
        points: Tensor = self.layers(latents.flatten(1))
        return points


class Discriminator(nn.Module):
    """Points (N, 2) to scores (N, 1): logits, or probabilities with `on_probabilities`."""

    def __init__(self, spec: Mlp2dSpec, on_probabilities: bool) -> None:
        super().__init__()
        layers = _stack(2, spec, 1)
        if on_probabilities:
            layers.append(nn.Sigmoid())
        self.layers = nn.Sequential(*layers)

    def forward(self, points: Tensor) -> Tensor:
        scores: Tensor = self.layers(points)
        return scores
