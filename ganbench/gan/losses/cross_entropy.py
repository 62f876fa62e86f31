"""Binary cross-entropy: Goodfellow et al. 2014, equation 1 and the non-saturating form of section 3."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ganbench.gan.losses.base import AdversarialLoss


class CrossEntropy(AdversarialLoss):
    """Non-saturating, on logits: G minimises -log D(G(z))."""

    def generator(self, fake_scores: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(fake_scores, torch.ones_like(fake_scores))

    def real(self, real_scores: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(real_scores, torch.ones_like(real_scores))

    def fake(self, fake_scores: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(fake_scores, torch.zeros_like(fake_scores))


class SaturatingCrossEntropy(CrossEntropy):
    """The minimax form, on logits: G minimises log(1 - D(G(z)))."""

    def generator(self, fake_scores: Tensor) -> Tensor:
        return -self.fake(fake_scores)


class CrossEntropyOnProbabilities(AdversarialLoss):
    """Non-saturating, on a D that ends in a sigmoid, as most public scripts have it."""

    on_probabilities = True

    def generator(self, fake_scores: Tensor) -> Tensor:
        return F.binary_cross_entropy(fake_scores, torch.ones_like(fake_scores))

    def real(self, real_scores: Tensor) -> Tensor:
        return F.binary_cross_entropy(real_scores, torch.ones_like(real_scores))

    def fake(self, fake_scores: Tensor) -> Tensor:
        return F.binary_cross_entropy(fake_scores, torch.zeros_like(fake_scores))
