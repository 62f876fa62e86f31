"""The separate random streams of a run, each from its own named seed."""

from __future__ import annotations

import torch

from ganbench.spec.seeds import derive_seed


def stream(seed: int, *name: str) -> torch.Generator:
    """A CPU generator of its own for one named purpose; the same numbers on every machine and device."""
    return torch.Generator().manual_seed(derive_seed(seed, *name))


class Latents:
    """Endless latent batches of shape (batch_size, *shape), drawn on the CPU so that every device sees the same."""

    def __init__(self, batch_size: int, shape: tuple[int, ...], distribution: str, generator: torch.Generator) -> None:
        self._shape = (batch_size, *shape)
        self._normal = distribution == "normal"
        self._generator = generator

    def next(self, device: torch.device) -> torch.Tensor:
        """The next batch: standard normal, or uniform in [-1, 1)."""
        if self._normal:
            latents = torch.randn(self._shape, generator=self._generator)
        else:
            latents = torch.rand(self._shape, generator=self._generator).mul_(2).sub_(1)
        return latents if device.type == "cpu" else latents.to(device, non_blocking=True)
