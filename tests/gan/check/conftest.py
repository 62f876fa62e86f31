"""Networks looked over as authors would have written them, on pictures of 1×8×8 and latents of six numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ganbench.gan.check import Parts, look
from ganbench.gan.losses import LOSSES, AdversarialLoss
from ganbench.record.finding import Finding, Looked

SHAPE = (1, 8, 8)


def generator(*last: nn.Module) -> nn.Sequential:
    """Two weighted layers and an end, by default a Tanh."""
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 64), *(last or (nn.Tanh(),)), nn.Unflatten(1, SHAPE))


def discriminator(*last: nn.Module) -> nn.Sequential:
    """Two weighted layers and an end, by default none."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1), *last)


class Found(dict[str, Finding]):
    """Findings by code, with how the look came out."""

    looked: Looked


@pytest.fixture(scope="session")
def found() -> Callable[..., Found]:
    """`found(make_g, make_d, loss, latent=(6,), shape=(1, 8, 8), data=None, **parts)`: what checks find."""

    def finding(
        make_g: Callable[[], nn.Module] = generator,
        make_d: Callable[[], nn.Module] = discriminator,
        loss: str | AdversarialLoss = "bce",
        *,
        latent: tuple[int, ...] = (6,),
        shape: tuple[int, ...] = SHAPE,
        data: Callable[[Tensor], Tensor] = lambda unit: unit * 2 - 1,
        together: Callable[[], tuple[nn.Module, nn.Module]] | None = None,
        **further: Any,
    ) -> Found:
        """`data` makes the items of numbers in [0, 1]; `together` constructs both networks."""

        def build() -> Parts:
            draws = torch.Generator().manual_seed(0)
            g, d = together() if together else (make_g(), make_d())
            parts = Parts(
                generator=g,
                discriminator=d,
                loss=LOSSES[loss]() if isinstance(loss, str) else loss,
                latents=lambda count: torch.randn(count, *latent, generator=draws),
                real=lambda count: data(torch.rand(count, *shape, generator=draws)),
                batch_size=16,
                evaluation_batch=32,
            )
            return replace(parts, **further)

        result = Found()
        result.looked = look(build)
        for one in result.looked.findings:
            assert all((one.what, one.evidence, one.advice)), one
            result.setdefault(one.code, one)
        return result

    return finding
