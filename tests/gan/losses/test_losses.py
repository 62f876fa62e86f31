"""Each loss against its formula, written out in float64."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from ganbench.gan.losses import LOSSES
from ganbench.spec.loss import LOSSES as NAMES

SHAPES = [(7,), (7, 1), (7, 1, 1, 1), (7, 1, 5, 5)]


def softplus(x: float) -> float:
    return math.log1p(math.exp(-abs(x))) + max(x, 0.0)


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


Formula = Callable[[float], float]

# Of one score x: G's term, D's on real data, D's on fakes. bce: p = sigmoid(x), so that -log p = log(1 + exp(-x)).
FORMULAS: dict[str, tuple[Formula, Formula, Formula]] = {
    "bce": (lambda x: softplus(-x), lambda x: softplus(-x), softplus),
    "bce_saturating": (lambda x: math.log(1 - sigmoid(x)), lambda x: softplus(-x), softplus),
    "bce_prob": (lambda p: -math.log(p), lambda p: -math.log(p), lambda p: -math.log(1 - p)),
    "lsgan": (lambda x: (x - 1) ** 2 / 2, lambda x: (x - 1) ** 2 / 2, lambda x: x**2 / 2),
    "hinge": (lambda x: -x, lambda x: max(0.0, 1 - x), lambda x: max(0.0, 1 + x)),
    "wgan_gp": (lambda x: -x, lambda x: -x, lambda x: x),
}


def scores_for(name: str, shape: tuple[int, ...]) -> Tensor:
    """On both sides of every kink, in float64."""
    raw = 3 * torch.randn(shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    assert raw.min() < -1
    assert raw.max() > 1
    return raw.sigmoid() if LOSSES[name].on_probabilities else raw


def test_every_loss_of_the_spec_is_here() -> None:
    assert set(LOSSES) == set(NAMES) == set(FORMULAS)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_each_part_is_the_mean_of_its_formula(name: str, shape: tuple[int, ...]) -> None:
    loss, scores = LOSSES[name](), scores_for(name, shape)
    for part, formula in zip((loss.generator, loss.real, loss.fake), FORMULAS[name], strict=True):
        found = part(scores)
        assert found.shape == ()
        expected = sum(formula(x) for x in scores.flatten().tolist()) / scores.numel()
        assert found.item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ["bce", "bce_saturating"])
def test_logits_far_out_stay_finite_with_a_gradient(name: str) -> None:
    loss = LOSSES[name]()
    scores = torch.tensor([200.0, -200.0], requires_grad=True)
    loss.fake(scores).backward()
    assert scores.grad is not None
    assert torch.equal(scores.grad, torch.tensor([0.5, 0.0]))
    assert loss.fake(scores).item() == pytest.approx(100.0)


def test_the_probability_form_agrees_with_the_logit_form() -> None:
    scores = scores_for("bce", (9, 1))
    on_logits, on_probabilities = LOSSES["bce"](), LOSSES["bce_prob"]()
    for part in ("generator", "real", "fake"):
        torch.testing.assert_close(getattr(on_probabilities, part)(scores.sigmoid()), getattr(on_logits, part)(scores))


def test_only_the_probability_form_asks_for_a_sigmoid_and_only_wgan_gp_for_a_penalty() -> None:
    assert [name for name in NAMES if LOSSES[name].on_probabilities] == ["bce_prob"]
    assert [name for name in NAMES if LOSSES[name].needs_penalty] == ["wgan_gp"]
    with pytest.raises(NotImplementedError):
        LOSSES["bce"]().penalty(lambda x: x, torch.ones(1), torch.ones(1), torch.ones(1))


class Linear(nn.Module):
    """A critic whose gradient is its weight everywhere."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, items: Tensor) -> Tensor:
        return items.flatten(1) @ self.weight


@pytest.mark.parametrize("shape", [(5, 2), (5, 1, 2, 1)])
def test_the_penalty_of_a_linear_critic(shape: tuple[int, ...]) -> None:
    """||w|| = 5: the penalty is 10 (5 - 1)² = 160, its gradient 20 (5 - 1) w / 5 = (48, 64)."""
    critic = Linear(torch.tensor([3.0, 4.0]))
    penalty = LOSSES["wgan_gp"]().penalty(critic, torch.randn(shape), torch.randn(shape), torch.rand(5))
    assert penalty.shape == ()
    assert penalty.item() == pytest.approx(160.0)
    penalty.backward()
    assert critic.weight.grad is not None
    torch.testing.assert_close(critic.weight.grad, torch.tensor([48.0, 64.0]))


def test_the_penalty_is_taken_between_fake_and_real() -> None:
    """With the critic |x|² / 2 the gradient at a point is the point itself: its length tells where it was taken."""
    real, fake = torch.tensor([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0]]), torch.tensor([[0.0, 4.0]] * 3)
    mix = torch.tensor([0.0, 0.5, 1.0])
    lengths = torch.tensor([4.0, math.sqrt(1 + 4), 2.0])
    penalty = LOSSES["wgan_gp"]().penalty(lambda x: x.square().sum(1) / 2, real, fake, mix)
    assert penalty.item() == pytest.approx(float(10 * (lengths - 1).square().mean()))


@pytest.mark.parametrize("output", [(4,), (4, 1), (4, 1, 1, 1)], ids=str)
def test_the_penalty_takes_scores_of_any_shape(output: tuple[int, ...]) -> None:
    critic = Linear(torch.tensor([3.0, 4.0]))
    penalty = LOSSES["wgan_gp"]().penalty(
        lambda x: critic(x).view(output), torch.randn(4, 2), torch.randn(4, 2), torch.rand(4)
    )
    assert penalty.item() == pytest.approx(160.0)


def test_the_penalty_reaches_d_and_not_g() -> None:
    torch.manual_seed(0)
    g, d = nn.Linear(3, 2), nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    LOSSES["wgan_gp"]().penalty(d, torch.randn(6, 2), g(torch.randn(6, 3)), torch.rand(6)).backward()
    assert all(p.grad is None for p in g.parameters())
    # The last bias moves no gradient of the scores.
    assert [p.grad is not None and bool(p.grad.any()) for p in d.parameters()] == [True, True, True, False]


def test_the_penalty_changes_neither_batch() -> None:
    torch.manual_seed(0)
    real, fake = torch.randn(6, 2), torch.randn(6, 2)
    kept = copy.deepcopy((real, fake))
    LOSSES["wgan_gp"]().penalty(Linear(torch.ones(2)), real, fake, torch.rand(6))
    assert torch.equal(real, kept[0])
    assert torch.equal(fake, kept[1])
    assert not real.requires_grad
    assert not fake.requires_grad


def test_a_dead_critic_gives_no_nan() -> None:
    critic = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    for parameter in critic.parameters():
        nn.init.zeros_(parameter)
    penalty = LOSSES["wgan_gp"]().penalty(critic, torch.randn(6, 2), torch.randn(6, 2), torch.rand(6))
    assert penalty.item() == pytest.approx(10.0)
    penalty.backward()
    assert all(p.grad is None or bool(torch.isfinite(p.grad).all()) for p in critic.parameters())
