"""Batch sizes and shapes that do not follow what goes in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

Find = Callable[..., Any]


class Unflattened(nn.Module):
    """Reads (N, 6, 1, 1), and takes (6, 1, 1) for one sample."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.ConvTranspose2d(6, 1, 8), nn.Tanh())

    def forward(self, z: Tensor) -> Tensor:
        return self.net(z)


class WrittenIn(nn.Module):
    """The batch size stands in `view`."""

    def __init__(self, batch: int = 16) -> None:
        super().__init__()
        self.net, self.batch = nn.Linear(6, 64), batch

    def forward(self, z: Tensor) -> Tensor:
        return torch.tanh(self.net(z)).view(self.batch, 1, 8, 8)


class OneSample(nn.Module):
    """Gives one fake for any number of latents."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(6, 64)

    def forward(self, z: Tensor) -> Tensor:
        return torch.tanh(self.net(z.mean(0, keepdim=True))).view(-1, 1, 8, 8)


class ManyRows(nn.Module):
    """A DCGAN's end, made for smaller pictures: 5 × 5 scores a picture in rows of their own."""

    def __init__(self, rows: bool = True) -> None:
        super().__init__()
        self.net, self.rows = nn.Conv2d(1, 1, 4), rows

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.net(x)
        return scores.view(-1, 1) if self.rows else scores


class GroupStatistics(nn.Module):
    """A minibatch standard deviation over groups of four."""

    def __init__(self, group: int = 4) -> None:
        super().__init__()
        self.group, self.last = group, nn.Linear(65, 1)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(1)
        y = flat.view(self.group, -1, 64)
        spread = (y.var(0, correction=0) + 1e-8).sqrt().mean(1, keepdim=True)
        return self.last(torch.cat([flat, spread.repeat(self.group, 1)], 1))


class Heads(nn.Module):
    """An auxiliary classifier beside the score."""

    def __init__(self, score_only: bool) -> None:
        super().__init__()
        self.body, self.score, self.classes = nn.Linear(64, 8), nn.Linear(8, 1), nn.Linear(8, 10)
        self.score_only = score_only

    def forward(self, x: Tensor) -> Any:
        h = torch.relu(self.body(x.flatten(1)))
        return self.score(h) if self.score_only else (self.score(h), self.classes(h))


class Pooled(nn.Module):
    """Takes pictures of any size."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 1))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


def test_latents_of_another_shape_than_convolutions_read(found: Find) -> None:
    wrong = found(Unflattened)["generator-raises"]
    assert wrong.severity == "error"
    assert "latent: {shape: [6, 1, 1]}" in wrong.advice
    assert not found(Unflattened, latent=(6, 1, 1))


def test_a_batch_that_is_taken_for_one_sample(found: Find) -> None:
    # Six latents of one number each: (6, 1, 1) is one sample of six channels to a convolution, and succeeds.
    wrong = found(Unflattened, latent=(1, 1), batch_size=6)["fixed-batch-size"]
    assert wrong.severity == "error"
    assert "N = 2: RuntimeError" in wrong.evidence


def test_a_batch_size_that_is_written_into_the_network(found: Find) -> None:
    wrong = found(WrittenIn)["fixed-batch-size"]
    assert wrong.severity == "error"  # judging asks for 32 fakes at once
    assert found(lambda: WrittenIn(32), batch_size=32)["fixed-batch-size"].severity == "warning"
    assert not found(lambda: WrittenIn(-1))


def test_one_fake_for_all_latents(found: Find) -> None:
    wrong = found(OneSample)["generator-rows"]
    assert "2 → 1" in wrong.evidence
    assert "16 → 1" in wrong.evidence


def test_two_pictures_become_fifty_rows(found: Find) -> None:
    wrong = found(make_d=ManyRows)["scores-rows"]
    assert wrong.severity == "warning"
    assert "2 → 50" in wrong.evidence
    assert "3 → 75" in wrong.evidence
    assert not found(make_d=lambda: ManyRows(rows=False))


def test_scores_without_rows(found: Find) -> None:
    class Mean(ManyRows):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x).mean()

    assert "2 → 0" in found(make_d=Mean)["scores-rows"].evidence


def test_groups_need_a_batch_that_they_divide(found: Find) -> None:
    runs = found(make_d=GroupStatistics)
    assert list(runs) == ["batch-needs-divisor"]
    assert runs["batch-needs-divisor"].severity == "warning"
    assert "N = 4, 8, 16" in runs["batch-needs-divisor"].evidence
    odd = found(make_d=GroupStatistics, batch_size=18)
    assert odd["batch-needs-divisor"].severity == "error"
    assert "N = 4, 8" in odd["batch-needs-divisor"].evidence
    assert not odd.looked.can_run
    assert not found(make_d=lambda: GroupStatistics(group=1))


def test_a_tuple_instead_of_scores(found: Find) -> None:
    wrong = found(make_d=lambda: Heads(score_only=False))["output-not-a-tensor"]
    assert wrong.severity == "error"
    assert "tuple of Tensor, Tensor" in wrong.evidence
    assert "output: 0" in wrong.advice


def test_classes_as_scores(found: Find) -> None:
    def classes() -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

    wrong = found(make_d=classes)["several-scores"]
    assert "10 numbers an item" in wrong.what
    assert "(16, 10)" in wrong.evidence


def test_fakes_of_another_size_through_a_pooled_discriminator(found: Find) -> None:
    wrong = found(make_d=Pooled, shape=(1, 9, 9))["shape-differs"]
    assert "(1, 9, 9)" in wrong.evidence
    assert "(1, 8, 8)" in wrong.evidence
    assert "no error tells of it" in wrong.evidence
    assert wrong.severity == "error"  # they cannot be held against real pictures when they are judged
    assert not found(make_d=Pooled)


def test_flat_fakes(found: Find) -> None:
    flat = found(lambda: nn.Sequential(nn.Linear(6, 64), nn.Tanh()))["shape-differs"]
    assert "of fakes: (64,)" in flat.evidence


def test_fakes_of_another_type(found: Find) -> None:
    class Double(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(6, 64)

        def forward(self, z: Tensor) -> Tensor:
            return torch.tanh(self.net(z)).double().view(-1, 1, 8, 8)

    class Casting(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.float())

    wrong = found(Double)["dtype-differs"]
    assert wrong.severity == "error"
    assert "torch.float64" in wrong.evidence
    runs = found(Double, lambda: Casting(nn.Flatten(), nn.Linear(64, 1)))["dtype-differs"]
    assert runs.severity == "warning"


def test_fakes_on_another_device(found: Find) -> None:
    class Elsewhere(WrittenIn):
        def forward(self, z: Tensor) -> Tensor:
            return super().forward(z).to("meta")

    assert "meta" in found(lambda: Elsewhere(-1))["device-differs"].evidence


def test_a_forward_that_raises_is_told_with_its_line(found: Find, tmp_path: Any) -> None:
    from ganbench.gan.foreign.names import named

    file = tmp_path / "mine.py"
    file.write_text(
        "from torch import nn\n\n\nclass D(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.l = nn.Linear(3, 1)\n\n    def forward(self, x):\n        return self.l(x.flatten(1))\n"
    )
    place = f"{file}:D"
    wrong = found(make_d=named(place, "discriminator"), places={"discriminator": place})["discriminator-raises"]
    assert "mine.py: RuntimeError at line 10" in wrong.evidence
    assert "real items (N, 1, 8, 8)" in wrong.evidence
    assert "width" in wrong.advice


def test_what_cannot_be_called_is_not_asked_further(found: Find) -> None:
    looked = found(Unflattened).looked
    assert looked.left_out
    assert "rounds can be played" in looked.left_out
    assert not looked.can_run


@pytest.mark.parametrize("loss", ["bce", "hinge", "wgan_gp"])
def test_networks_that_fit_are_clean(found: Find, loss: str) -> None:
    clean = found(loss=loss)
    assert not clean
    assert clean.looked.made > 25
    assert not clean.looked.left_out
