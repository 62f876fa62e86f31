"""Adversarial losses by name, and those of users."""

from __future__ import annotations

from ganbench.gan.losses.base import AdversarialLoss
from ganbench.gan.losses.cross_entropy import (
    CrossEntropy,
    CrossEntropyOnProbabilities,
    SaturatingCrossEntropy,
)
from ganbench.gan.losses.margin import Hinge, LeastSquares
from ganbench.gan.losses.user import user_loss
from ganbench.gan.losses.wasserstein import WassersteinGradientPenalty
from ganbench.spec.loss import UserLossSpec

LOSSES: dict[str, type[AdversarialLoss]] = {
    "bce": CrossEntropy,
    "bce_prob": CrossEntropyOnProbabilities,
    "bce_saturating": SaturatingCrossEntropy,
    "lsgan": LeastSquares,
    "hinge": Hinge,
    "wgan_gp": WassersteinGradientPenalty,
}


def make_loss(spec: str | UserLossSpec) -> AdversarialLoss:
    """The loss of that name, or a user's own.

    Raises:
        UserCodeError: a user's file cannot be used, or what it names is no loss.
    """
    return LOSSES[spec]() if isinstance(spec, str) else user_loss(spec)


__all__ = ["LOSSES", "AdversarialLoss", "make_loss"]
