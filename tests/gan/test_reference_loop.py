"""`detach` against a loop written out by hand, with nothing of `ganbench.gan` in it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce

from ganbench.gan.data import Data
from ganbench.gan.session import Session
from ganbench.spec.seeds import derive_seed

ROUNDS = 7
BATCH, LATENT, SEED = 8, 6, 11


def seeded(*name: str) -> torch.Generator:
    return torch.Generator().manual_seed(derive_seed(SEED, *name))


def networks() -> tuple[nn.Sequential, nn.Sequential]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(SEED, "weights", "generator"))
        g = nn.Sequential(
            nn.Linear(LATENT, 8), nn.BatchNorm1d(8), nn.ReLU(),
            nn.Linear(8, 8), nn.BatchNorm1d(8), nn.ReLU(),
            nn.Linear(8, 16), nn.Tanh(),
        )  # fmt: skip
        torch.manual_seed(derive_seed(SEED, "weights", "discriminator"))
        d = nn.Sequential(nn.Linear(16, 8), nn.LeakyReLU(0.2), nn.Linear(8, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    return g, d


def written_out(pictures: Tensor, g_steps: int, d_steps: int, order: str, per_d_update: bool) -> list[Tensor]:
    g, d = networks()
    to_g = torch.optim.Adam(g.parameters(), lr=1e-2, betas=(0.5, 0.999))
    to_d = torch.optim.Adam(d.parameters(), lr=1e-2, betas=(0.5, 0.999))
    latents, shuffle = seeded("latents", "generator"), seeded("data order")
    real_items = pictures.flatten(1).float() * (2 / 255) - 1
    ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)
    order_of_items: list[int] = []

    def real_batch() -> Tensor:
        nonlocal order_of_items
        if len(order_of_items) < BATCH:
            order_of_items = torch.randperm(len(pictures), generator=shuffle).tolist()
        now, order_of_items = order_of_items[:BATCH], order_of_items[BATCH:]
        return real_items[now]

    def g_update(fakes: Tensor) -> None:
        to_g.zero_grad()
        bce(d(fakes), ones).backward()
        to_g.step()

    def d_updates(fakes: Tensor) -> None:
        real = real_batch()
        for n in range(d_steps):
            if n > 0 and per_d_update:
                real = real_batch()
            to_d.zero_grad()
            (bce(d(real), ones) + bce(d(fakes.detach()), zeros)).backward()
            to_d.step()

    for _ in range(ROUNDS):
        if order == "d_first":
            fakes = g(torch.randn(BATCH, LATENT, generator=latents))
            d_updates(fakes)
            g_update(fakes)
            for _ in range(g_steps - 1):
                g_update(g(torch.randn(BATCH, LATENT, generator=latents)))
        else:
            for _ in range(g_steps):
                fakes = g(torch.randn(BATCH, LATENT, generator=latents))
                g_update(fakes)
            d_updates(fakes)
    return [*g.state_dict().values(), *d.state_dict().values()]


@pytest.mark.parametrize("batches", ["per_round", "per_d_update"])
@pytest.mark.parametrize("order", ["g_first", "d_first"])
@pytest.mark.parametrize(("g_steps", "d_steps"), [(2, 1), (1, 3), (3, 2)])
def test_a_session_is_bit_equal_to_the_loop_written_out(
    session_of: Callable[..., Session], data: Data, g_steps: int, d_steps: int, order: str, batches: str
) -> None:
    session = session_of(
        model={"name": "mlp", "hidden": 8, "batch_norm": True},
        ratio=f"{g_steps}:{d_steps}",
        order=order,
        real_batches=batches,
        seed=SEED,
        batch_size=BATCH,
        latent={"dim": LATENT},
    )
    for _ in range(ROUNDS):
        session.play_round()
    expected = written_out(data.items, g_steps, d_steps, order, batches == "per_d_update")
    found = [t for player in (session.pair.g, session.pair.d) for t in player.module.state_dict().values()]
    assert len(found) == len(expected)
    for mine, its in zip(found, expected, strict=True):
        assert torch.equal(mine, its)
