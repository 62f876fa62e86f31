"""Adversarial losses by name."""

from __future__ import annotations

from ganbench.gan.losses.base import AdversarialLoss
from ganbench.gan.losses.cross_entropy import (
    CrossEntropy,
    CrossEntropyOnProbabilities,
    SaturatingCrossEntropy,
)
from ganbench.gan.losses.margin import Hinge, LeastSquares
from ganbench.gan.losses.wasserstein import WassersteinGradientPenalty

LOSSES: dict[str, type[AdversarialLoss]] = {
    "bce": CrossEntropy,
    "bce_prob": CrossEntropyOnProbabilities,
    "bce_saturating": SaturatingCrossEntropy,
    "lsgan": LeastSquares,
    "hinge": Hinge,
    "wgan_gp": WassersteinGradientPenalty,
}

__all__ = ["LOSSES", "AdversarialLoss"]
