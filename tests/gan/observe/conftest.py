"""Steps are observed on small networks of two weighted layers each, with two or more updates of one network a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ganbench.gan.observe import Given, observe
from ganbench.record.loop import LoopSeen


def drawing(*shape: int) -> Callable[[], Tensor]:
    generator = torch.Generator().manual_seed(1)
    return lambda: torch.randn(*shape, generator=generator)


def given_with(
    generator: nn.Module | None = None, discriminator: nn.Module | None = None, fused: bool = False, lr: float = 1e-2
) -> Given:
    torch.manual_seed(0)
    g = generator or nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    d = discriminator or nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    points = drawing(16, 2)
    return Given(
        g,
        d,
        torch.optim.Adam(g.parameters(), lr, fused=fused),
        torch.optim.Adam(d.parameters(), lr, fused=fused),
        lambda: (points() + 2,),
        drawing(16, 3),
        16,
        3,
        torch.device("cpu"),
        nn.BCEWithLogitsLoss(),
        {"labels": "there are none"},
    )


@pytest.fixture
def given() -> Callable[..., Given]:
    """`given_with`."""
    return given_with


@pytest.fixture
def watch() -> Iterator[Callable[..., LoopSeen]]:
    """`watch(step, rounds=…, …)`: what is seen of a step; the further arguments are those of `given_with`."""

    def watching(step: Callable[..., Any], rounds: int = 6, **further: Any) -> LoopSeen:
        return observe(step, given_with(**further), f"{step.__code__.co_filename}:{step.__name__}", rounds)

    with torch.random.fork_rng(devices=[]):
        yield watching
