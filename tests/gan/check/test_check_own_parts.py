"""Conditional networks, outputs of which a part is meant, and losses of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ganbench.gan.labels import batch
from ganbench.gan.losses.user import UserLoss

Find = Callable[..., Any]


class G(nn.Module):
    """Pictures of a class."""

    def __init__(self, reads_latents: bool = True) -> None:
        super().__init__()
        self.classes, self.net, self.reads = nn.Embedding(3, 4), nn.Linear(10, 64), reads_latents

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        z = z if self.reads else torch.ones_like(z)
        return torch.tanh(self.net(torch.cat([z, self.classes(y)], 1))).view(-1, 1, 8, 8)


class D(nn.Module):
    """Scores of pictures of a class."""

    def __init__(self, sigmoid: bool = False, inplace: bool = False) -> None:
        super().__init__()
        self.classes, self.net, self.sigmoid = nn.Embedding(3, 4), nn.Linear(68, 1), sigmoid
        self.first = nn.LeakyReLU(0.2, True) if inplace else nn.Identity()

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        scores = self.net(torch.cat([self.first(x).flatten(1), self.classes(y)], 1))
        return torch.sigmoid(scores) if self.sigmoid else scores


@pytest.fixture(scope="module")
def conditional(found: Find) -> Find:
    """`found` with labels from three classes on latents and real items."""
    draws = torch.Generator().manual_seed(1)

    def labelled(*shape: int) -> Callable[[int], Tensor]:
        def draw(count: int) -> Tensor:
            values = torch.rand(count, *shape, generator=draws) * 2 - 1
            return batch(values, torch.randint(3, (count,), generator=draws))

        return draw

    def finding(make_g: Any = G, make_d: Any = D, loss: Any = "bce", **further: Any) -> Any:
        parts = {"latents": labelled(6), "real": labelled(1, 8, 8), "conditional": True}
        return found(make_g, make_d, loss, **(parts | further))

    return finding


@pytest.mark.parametrize("loss", ["bce", "hinge", "wgan_gp"])
def test_conditional_networks_that_fit_are_clean(conditional: Find, loss: str) -> None:
    clean = conditional(loss=loss)
    assert not clean
    assert clean.looked.made > 25


def test_conditional_networks_are_looked_over_like_others(conditional: Find) -> None:
    assert list(conditional(make_d=lambda: D(sigmoid=True))) == ["sigmoid-into-logits"]
    assert list(conditional(make_d=lambda: D(inplace=True))) == ["input-edited-in-place"]
    assert "range-differs" in conditional(value_range=(0.0, 1.0))


def test_labels_are_no_answer_to_other_latents(conditional: Find) -> None:
    assert "generator" in conditional(lambda: G(reads_latents=False))["input-ignored"].what


def test_networks_that_want_labels_and_get_none(found: Find) -> None:
    wrong = found(G, D)
    assert {"generator-raises", "discriminator-raises"} == set(wrong)
    assert "labels" in wrong["generator-raises"].advice


class Heads(nn.Module):
    """A score and classes."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.score, self.classes = nn.Linear(64, 8), nn.Linear(8, 1), nn.Linear(8, 10)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        h = torch.relu(self.body(x.flatten(1)))
        return self.score(h), self.classes(h)


def test_the_part_of_an_output_that_is_meant(found: Find) -> None:
    named = found(make_d=Heads, outputs={"discriminator": lambda made: made[0]})
    assert list(named) == ["unused-parameters"]
    assert "discriminator.classes.weight" in named["unused-parameters"].evidence
    assert "output-not-a-tensor" in found(make_d=Heads)


def relativistic(real: Tensor, fake: Tensor) -> Tensor:
    """Jolicoeur-Martineau 2018."""
    return F.softplus(fake - real).mean()


def saturating(scores: Tensor) -> Tensor:
    return F.softplus(-scores).mean()


def test_a_loss_of_both_scores_at_once(found: Find) -> None:
    loss = UserLoss(saturating, relativistic, on_probabilities=False)
    assert not found(loss=loss)

    def sigmoid() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 1), nn.Sigmoid())

    wrong = found(make_d=sigmoid, loss=loss)["sigmoid-into-logits"]
    assert "perfect scores cost 0.313" in wrong.evidence


def test_a_loss_that_pairs_every_score_with_every_other(found: Find) -> None:
    loss = UserLoss(saturating, lambda real, fake: relativistic(real, fake.squeeze(1)), on_probabilities=False)
    wrong = found(loss=loss)["loss-broadcasts"]
    assert "sub of (8,) and (8, 1)" in wrong.evidence
    assert "discriminator(" in wrong.evidence


def test_a_loss_of_probabilities_of_ones_own(found: Find) -> None:
    def on_both(real: Tensor, fake: Tensor) -> Tensor:
        return F.binary_cross_entropy(real, torch.ones_like(real)) + F.binary_cross_entropy(
            fake, torch.zeros_like(fake)
        )

    loss = UserLoss(lambda s: F.binary_cross_entropy(s, torch.ones_like(s)), on_both, on_probabilities=False)
    assert list(found(loss=loss)) == ["logits-into-probabilities"]
