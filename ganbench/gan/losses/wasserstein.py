"""The Wasserstein loss with gradient penalty: Gulrajani et al. 2017, algorithm 1 (λ = 10)."""

from __future__ import annotations

import torch
from torch import Tensor

from ganbench.gan.losses.base import AdversarialLoss, Critic

WEIGHT = 10.0


class WassersteinGradientPenalty(AdversarialLoss):
    """The critic separates mean scores while its gradient between real and fake keeps length one."""

    needs_penalty = True

    def generator(self, fake_scores: Tensor) -> Tensor:
        return -fake_scores.mean()

    def real(self, real_scores: Tensor) -> Tensor:
        return -real_scores.mean()

    def fake(self, fake_scores: Tensor) -> Tensor:
        return fake_scores.mean()

    def penalty(self, critic: Critic, real: Tensor, fake: Tensor, mix: Tensor) -> Tensor:
        # The points between are constants of the critic's loss: they are leaves, whatever graph the fakes carry.
        mix = mix.view(-1, *([1] * (real.dim() - 1)))
        between = torch.lerp(fake.detach(), real, mix).requires_grad_(True)
        scores = critic(between)
        # create_graph: without it the penalty would be a constant and train nobody.
        (gradient,) = torch.autograd.grad(scores.sum(), between, create_graph=True)
        # .norm() has a gradient of 0 at 0, where a written-out square root has NaN.
        lengths: Tensor = gradient.flatten(1).norm(2, dim=1)
        return WEIGHT * (lengths - 1).square().mean()
