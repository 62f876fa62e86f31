"""Layers, wrappers and modes that are not what they seem; and losses that pair every score with every target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ganbench.gan.losses.base import AdversarialLoss

Find = Callable[..., Any]


def critic(*inner: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), *inner, nn.Linear(8, 1))


def test_leaky_relu_of_slope_one(found: Find) -> None:
    wrong = found(make_d=lambda: critic(nn.LeakyReLU(True)))["leaky-relu-slope-one"]
    assert "discriminator.2: LeakyReLU(negative_slope=True)" in wrong.evidence
    assert not found(make_d=lambda: critic(nn.LeakyReLU(0.2, True)))


def test_an_epsilon_that_was_meant_as_momentum(found: Find) -> None:
    wrong = found(make_d=lambda: critic(nn.BatchNorm1d(8, 0.8)))["batch-norm-eps"]
    assert "eps=0.8" in wrong.evidence
    assert not found(make_d=lambda: critic(nn.BatchNorm1d(8, momentum=0.8)))
    assert not found(make_d=lambda: critic(nn.BatchNorm1d(8, 1e-3)))


def test_a_tanh_on_a_tanh(found: Find) -> None:
    class Twice(nn.Module):
        def __init__(self, again: bool) -> None:
            super().__init__()
            self.net, self.again = nn.Sequential(nn.Linear(6, 64), nn.Tanh()), again

        def forward(self, z: Tensor) -> Tensor:
            made = self.net(z).view(-1, 1, 8, 8)
            return torch.tanh(made) if self.again else made

    wrong = found(lambda: Twice(True))["activation-doubled"]
    assert wrong.evidence == "Tanh, then Tanh"
    assert not found(lambda: Twice(False))
    sigmoids = found(make_d=lambda: nn.Sequential(critic(), nn.Sigmoid(), nn.Sigmoid()), loss="bce_prob")
    assert "discriminator squashes" in sigmoids["activation-doubled"].what


def test_wrappers(found: Find) -> None:
    wrapped = found(make_d=lambda: nn.DataParallel(critic()))["wrapped-module"]
    assert "discriminator: DataParallel" in wrapped.evidence


def test_a_compiled_network(found: Find) -> None:
    class Compiled(nn.Sequential):
        """`net.compile()` wraps nothing, and compiles all the same."""

        def __init__(self) -> None:
            super().__init__(nn.Flatten(), nn.Linear(64, 1))
            self.compile(backend="eager")

    assert "discriminator: Compiled" in found(make_d=Compiled)["wrapped-module"].evidence
    optimized = found(make_d=lambda: torch.compile(critic(), backend="eager"))["wrapped-module"]
    assert "OptimizedModule" in optimized.evidence


def test_batch_norm_in_a_critic_with_a_penalty(found: Find) -> None:
    wrong = found(make_d=lambda: critic(nn.BatchNorm1d(8)), loss="wgan_gp")["batch-norm-under-penalty"]
    assert "discriminator.2" in wrong.evidence
    assert not found(make_d=lambda: critic(nn.LayerNorm(8)), loss="wgan_gp")
    assert not found(make_d=lambda: critic(nn.BatchNorm1d(8)), loss="bce")


def test_batch_norm_over_one_item(found: Find) -> None:
    raises = found(make_d=lambda: critic(nn.BatchNorm1d(8)), batch_size=1, probe=1)["batch-norm-batch-one"]
    assert raises.severity == "error"

    def pictures() -> nn.Module:
        return nn.Sequential(nn.Conv2d(1, 2, 4), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(50, 1))

    runs = found(make_d=pictures, batch_size=1, probe=1)["batch-norm-batch-one"]
    assert runs.severity == "warning"
    assert not found(make_d=critic, batch_size=1, probe=1)


def test_left_in_evaluation_mode(found: Find) -> None:
    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.last = nn.BatchNorm2d(1), nn.Linear(64, 1)
            self.norm.eval()

        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.norm(x).flatten(1))

    assert found(make_d=Frozen)["left-in-eval-mode"].evidence == "discriminator.norm"
    assert "generator" in found(lambda: nn.Sequential(nn.Linear(6, 64), nn.Unflatten(1, (1, 8, 8))).eval())[
        "left-in-eval-mode"
    ].evidence  # fmt: skip


def test_a_forward_that_changes_its_mode(found: Find) -> None:
    class Switching(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            self.eval()
            return super().forward(x)

    wrong = found(make_d=lambda: Switching(nn.Flatten(), nn.Linear(64, 1)))["mode-changed-in-forward"]
    assert "discriminator" in wrong.evidence


class OwnLeastSquares(AdversarialLoss):
    """Targets of the shape (N,), as scripts keep them."""

    def __init__(self, squeeze: bool, warns: bool = True) -> None:
        self.squeeze, self.warns = squeeze, warns

    def _to(self, scores: Tensor, target: float) -> Tensor:
        scores = scores.squeeze(1) if self.squeeze else scores
        targets = torch.full((scores.shape[0],), target)
        return F.mse_loss(scores, targets) if self.warns else (scores - targets).square().mean()

    def generator(self, fake_scores: Tensor) -> Tensor:
        return self._to(fake_scores, 1)

    def real(self, real_scores: Tensor) -> Tensor:
        return self._to(real_scores, 1)

    def fake(self, fake_scores: Tensor) -> Tensor:
        return self._to(fake_scores, 0)


@pytest.mark.parametrize("warns", [True, False])
def test_scores_that_broadcast_against_targets(found: Find, warns: bool) -> None:
    wrong = found(loss=OwnLeastSquares(squeeze=False, warns=warns))["loss-broadcasts"]
    assert wrong.severity == "warning"
    assert "(8, 1)" in wrong.evidence
    assert "(8,)" in wrong.evidence or "[8]" in wrong.evidence
    assert not found(loss=OwnLeastSquares(squeeze=True, warns=warns))


def test_a_loss_that_raises_or_gives_many_numbers(found: Find) -> None:
    class Raising(OwnLeastSquares):
        def _to(self, scores: Tensor, target: float) -> Tensor:
            return F.binary_cross_entropy_with_logits(scores, torch.full((len(scores),), target))

    class Many(OwnLeastSquares):
        def _to(self, scores: Tensor, target: float) -> Tensor:
            return (scores - target).square()

    wrong = found(loss=Raising(squeeze=False))["loss-raises"]
    assert wrong.severity == "error"
    assert "shape (8, 1)" in wrong.evidence
    assert found(loss=Many(squeeze=False))["loss-not-scalar"].severity == "error"
