"""Losses with a target or a margin: least squares (Mao et al. 2017, a=0, b=c=1) and hinge (Miyato et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ganbench.gan.losses.base import AdversarialLoss


class LeastSquares(AdversarialLoss):
    """D draws real scores to 1 and fake ones to 0, G draws fake ones to 1; each term is a mean square halved."""

    def generator(self, fake_scores: Tensor) -> Tensor:
        return 0.5 * F.mse_loss(fake_scores, torch.ones_like(fake_scores))

    def real(self, real_scores: Tensor) -> Tensor:
        return 0.5 * F.mse_loss(real_scores, torch.ones_like(real_scores))

    def fake(self, fake_scores: Tensor) -> Tensor:
        return 0.5 * F.mse_loss(fake_scores, torch.zeros_like(fake_scores))


class Hinge(AdversarialLoss):
    """D keeps real scores above 1 and fake ones below -1; G raises the mean score of its fakes."""

    def generator(self, fake_scores: Tensor) -> Tensor:
        return -fake_scores.mean()

    def real(self, real_scores: Tensor) -> Tensor:
        return F.relu(1 - real_scores).mean()

    def fake(self, fake_scores: Tensor) -> Tensor:
        return F.relu(1 + fake_scores).mean()
