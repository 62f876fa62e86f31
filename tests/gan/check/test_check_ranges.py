"""Values that fakes cannot have, and scores that the loss does not mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ganbench.gan.losses.base import AdversarialLoss

Find = Callable[..., Any]

UNIT = {"data": lambda unit: unit, "value_range": (0.0, 1.0)}


def g(*last: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 64), *last, nn.Unflatten(1, (1, 8, 8)))


def d(*last: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1), *last)


def test_tanh_against_data_from_zero_to_one(found: Find) -> None:
    wrong = found(lambda: g(nn.Tanh()), **UNIT)["range-differs"]
    assert wrong.severity == "warning"
    assert "[-1, 1]" in wrong.what
    assert "[0, 1]" in wrong.what
    assert "sign alone" in wrong.what
    assert "Tanh" in wrong.evidence
    assert not found(lambda: g(nn.Sigmoid()), **UNIT)


def test_the_range_is_seen_where_it_is_not_stated(found: Find) -> None:
    assert "range-differs" in found(lambda: g(nn.Tanh()), data=lambda unit: unit)
    assert not found(lambda: g(nn.Tanh()), data=lambda unit: unit * 2 - 1)


def test_values_that_a_generator_can_never_give(found: Find) -> None:
    for last, data in ((nn.Sigmoid(), (-1.0, 1.0)), (nn.ReLU(), (-1.0, 1.0)), (nn.Tanh(), (0.0, 255.0))):
        low, high = data
        wrong = found(
            lambda last=last: g(last),
            data=lambda unit, low=low, high=high: low + unit * (high - low),
            value_range=data,
        )["range-differs"]
        assert "can never give" in wrong.what


def test_a_range_written_out_by_hand(found: Find) -> None:
    class Scaled(nn.Module):
        """Pictures in [0, 1], from a Tanh that forward() scales."""

        def __init__(self, scale: Callable[[Tensor], Tensor]) -> None:
            super().__init__()
            self.net, self.scale = g(nn.Tanh()), scale

        def forward(self, z: Tensor) -> Tensor:
            return self.scale(self.net(z))

    scalings: list[Callable[[Tensor], Tensor]] = [lambda made: (made + 1) / 2, lambda made: made * 0.5 + 0.5]
    for scale in scalings:
        wrong = found(lambda scale=scale: Scaled(scale))["range-differs"]
        assert "no value of 16 fakes is negative" in wrong.evidence
        assert not found(lambda scale=scale: Scaled(scale), **UNIT)


def test_an_unbounded_generator_reaches_all_data(found: Find) -> None:
    assert not found(lambda: g())
    assert not found(lambda: g(), **UNIT)

    class Positive(nn.Module):
        """All values are positive at first; its last operation enlarges what a convolution gives."""

        def __init__(self) -> None:
            super().__init__()
            self.net, self.last = nn.Linear(6, 16), nn.Conv2d(1, 1, 1)
            nn.init.constant_(self.last.bias, 50.0)

        def forward(self, z: Tensor) -> Tensor:
            return nn.functional.interpolate(self.last(self.net(z).view(-1, 1, 4, 4)), size=8)

    assert not found(Positive)


def test_data_outside_of_its_stated_range(found: Find) -> None:
    wrong = found(lambda: g(), data=lambda unit: unit * 255, value_range=(0.0, 1.0))["data-outside-range"]
    assert "stated [0, 1]" in wrong.evidence
    assert "255" in wrong.evidence


@pytest.mark.parametrize("loss", ["bce", "bce_saturating", "hinge", "wgan_gp"])
def test_a_sigmoid_into_a_loss_on_logits(found: Find, loss: str) -> None:
    wrong = found(make_d=lambda: d(nn.Sigmoid()), loss=loss)["sigmoid-into-logits"]
    assert wrong.severity == "warning"
    assert "made by Sigmoid" in wrong.evidence
    if loss == "bce":
        assert "0.313 on real items and 0.693 on fakes" in wrong.evidence
    assert "sigmoid-into-logits" not in found(loss=loss)


def test_a_sigmoid_that_forward_writes_out(found: Find) -> None:
    class ByHand(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = d()

        def forward(self, x: Tensor) -> Tensor:
            return 1 / (1 + torch.exp(-self.net(x)))

    assert "sigmoid-into-logits" in found(make_d=ByHand)
    assert not found(make_d=ByHand, loss="bce_prob")


def test_a_sigmoid_suits_probabilities_and_least_squares(found: Find) -> None:
    assert not found(make_d=lambda: d(nn.Sigmoid()), loss="bce_prob")
    assert not found(make_d=lambda: d(nn.Sigmoid()), loss="lsgan")


def test_a_tanh_into_a_loss_on_logits(found: Find) -> None:
    assert "tanh-into-logits" in found(make_d=lambda: d(nn.Tanh()))
    assert "tanh-into-logits" not in found(make_d=lambda: d(nn.Tanh()), loss="hinge")  # its margin is ±1


class OwnCrossEntropy(AdversarialLoss):
    """As scripts write it out: no word says that it wants probabilities."""

    def generator(self, fake_scores: Tensor) -> Tensor:
        return -torch.log(fake_scores + 1e-8).mean()

    def real(self, real_scores: Tensor) -> Tensor:
        return -torch.log(real_scores + 1e-8).mean()

    def fake(self, fake_scores: Tensor) -> Tensor:
        return -torch.log(1 - fake_scores + 1e-8).mean()


@pytest.mark.parametrize("loss", ["bce_prob", OwnCrossEntropy()])
def test_logits_into_a_loss_on_probabilities(found: Find, loss: Any) -> None:
    wrong = found(loss=loss)
    assert list(wrong) == ["logits-into-probabilities"]
    assert not wrong.looked.can_run
    assert not found(make_d=lambda: d(nn.Sigmoid()), loss=loss)
