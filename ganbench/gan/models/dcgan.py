"""The convolutional pair of Radford et al. 2016 for 28, 32 and 64 px, weights from N(0, 0.02) as in its section 3."""

from __future__ import annotations

from torch import Tensor, nn

from ganbench.spec.model import DcganSpec

# Side of the smallest map, and how often it is doubled: 7·2² = 28, 4·2³ = 32, 4·2⁴ = 64.
_STAGES = {28: (7, 2), 32: (4, 3), 64: (4, 4)}


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)


class Generator(nn.Module):
    """Latents (N, …) of `latent_dim` numbers to pictures (N, C, size, size) in [-1, 1] by a tanh."""

    def __init__(self, spec: DcganSpec, latent_dim: int, shape: tuple[int, ...]) -> None:
        super().__init__()
        channels, side, _ = shape
        smallest, doublings = _STAGES[side]
        width = spec.width * 2 ** (doublings - 1)
        layers: list[nn.Module] = [nn.ConvTranspose2d(latent_dim, width, smallest, bias=not spec.batch_norm)]
        for _ in range(doublings - 1):
            layers += self._activation(spec, width)
            layers.append(nn.ConvTranspose2d(width, width // 2, 4, 2, 1, bias=not spec.batch_norm))
            width //= 2
        layers += self._activation(spec, width)
        self.layers = nn.Sequential(*layers, nn.ConvTranspose2d(width, channels, 4, 2, 1), nn.Tanh())
        self.apply(_initialise)

    @staticmethod
    def _activation(spec: DcganSpec, width: int) -> list[nn.Module]:
        return [nn.BatchNorm2d(width), nn.ReLU()] if spec.batch_norm else [nn.ReLU()]

    def forward(self, latents: Tensor) -> Tensor:
        pictures: Tensor = self.layers(latents.flatten(1)[:, :, None, None])
        return pictures


class Discriminator(nn.Module):
    """Pictures (N, C, size, size) to scores (N, 1): logits, or probabilities with `on_probabilities`."""

    def __init__(self, spec: DcganSpec, shape: tuple[int, ...], on_probabilities: bool) -> None:
        super().__init__()
        channels, side, _ = shape
        smallest, halvings = _STAGES[side]
        layers: list[nn.Module] = [nn.Conv2d(channels, spec.width, 4, 2, 1), nn.LeakyReLU(0.2)]
        width = spec.width
        for _ in range(halvings - 1):
            layers.append(nn.Conv2d(width, width * 2, 4, 2, 1, bias=not spec.batch_norm))
            width *= 2
            if spec.batch_norm:
                layers.append(nn.BatchNorm2d(width))
            layers.append(nn.LeakyReLU(0.2))
        layers += [nn.Conv2d(width, 1, smallest), nn.Flatten()]
        if on_probabilities:
            layers.append(nn.Sigmoid())
        self.layers = nn.Sequential(*layers)
        self.apply(_initialise)

    def forward(self, pictures: Tensor) -> Tensor:
        scores: Tensor = self.layers(pictures)
        return scores
