"""The script people write: one GAN, one ratio, one seed, `mlflow.log_metrics` after every round.

`python -m benchmarks.by_hand --ratio 2:1 --strategy detach --seed 0 --rounds 300`. It keeps the curves that ganbench
keeps: losses, their parts, scores.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

Log = Callable[[dict[str, float], int], None]
LATENT, BATCH = 64, 64


def networks(hidden: int, size: int) -> tuple[nn.Module, nn.Module]:
    """(N, 64) to (N, 1, size, size), and that to (N, 1): as the shipped `mlp`."""
    pixels = size * size
    generator = nn.Sequential(
        nn.Linear(LATENT, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden), nn.LeakyReLU(0.2),
        nn.Linear(hidden, pixels), nn.Tanh(), nn.Unflatten(1, (1, size, size)),
    )  # fmt: skip
    discriminator = nn.Sequential(
        nn.Flatten(), nn.Linear(pixels, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden), nn.LeakyReLU(0.2),
        nn.Linear(hidden, 1),
    )  # fmt: skip
    return generator, discriminator


def pictures(size: int) -> Tensor:
    """(1797, 1, size, size), -1 to 1."""
    small = torch.tensor(load_digits().images, dtype=torch.float32).unsqueeze(1) / 8 - 1
    return small if size == 8 else F.interpolate(small, size=(size, size), mode="bilinear")


def bce(scores: Tensor, real: bool) -> Tensor:
    """Cross-entropy on logits against all real or all fake."""
    return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, float(real)))


def train(
    ratio: tuple[int, int], strategy: str, seed: int, rounds: int, log: Log, hidden: int = 256, size: int = 28
) -> None:
    """Train, logging after every round. `strategy`: `detach` or `inputs`."""
    torch.manual_seed(seed)
    data = pictures(size)
    g, d = networks(hidden, size)
    opt_g = torch.optim.Adam(g.parameters(), lr=2e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(d.parameters(), lr=2e-4, betas=(0.5, 0.999))
    own_g, own_d = (list(network.parameters()) if strategy == "inputs" else None for network in (g, d))
    for n in range(rounds):
        real = data[torch.randint(len(data), (BATCH,))]
        for _ in range(ratio[0]):
            opt_g.zero_grad()
            fake = g(torch.randn(BATCH, LATENT))
            g_loss = bce(d(fake), True)
            g_loss.backward(inputs=own_g)
            opt_g.step()
        for _ in range(ratio[1]):
            opt_d.zero_grad()
            on_real, on_fake = d(real), d(fake if own_d else fake.detach())
            d_real, d_fake = bce(on_real, True), bce(on_fake, False)
            (d_real + d_fake).backward(inputs=own_d)
            opt_d.step()
        log(
            {
                "loss/g": g_loss.item(), "loss/d": (d_real + d_fake).item(),
                "loss/d_real": d_real.item(), "loss/d_fake": d_fake.item(),
                "score/real": on_real.mean().item(), "score/fake": on_fake.mean().item(),
            },
            n,
        )  # fmt: skip


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ratio", default="1:1")
    parser.add_argument("--strategy", default="detach", choices=["detach", "inputs"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--size", type=int, default=28)
    options = parser.parse_args(given)
    import mlflow

    torch.set_num_threads(1)
    g, d = (int(part) for part in options.ratio.split(":"))
    mlflow.set_tracking_uri("sqlite:///by_hand.db")
    mlflow.set_experiment("by hand")
    with mlflow.start_run(run_name=f"{options.ratio} {options.strategy} {options.seed}"):
        mlflow.log_params(vars(options))
        train(
            (g, d),
            options.strategy,
            options.seed,
            options.rounds,
            lambda row, n: mlflow.log_metrics(row, step=n),
            options.hidden,
            options.size,
        )


if __name__ == "__main__":
    main()
