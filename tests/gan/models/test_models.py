"""The shipped pairs: shapes, ranges, and weights that depend on the seed and on nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ganbench.gan.models import build
from ganbench.spec.run import RunSpec

PAIRS = [
    ({"name": "mlp", "hidden": 8}, "digits", (1, 8, 8)),
    ({"name": "mlp", "hidden": 8, "layers": 1, "batch_norm": True}, "cifar10", (3, 32, 32)),
    ({"name": "mlp2d", "hidden": 8}, "ring8", (2,)),
    ({"name": "dcgan", "width": 4}, {"name": "mnist"}, (1, 28, 28)),
    ({"name": "dcgan", "width": 4}, {"name": "mnist", "size": 32}, (1, 32, 32)),
    ({"name": "dcgan", "width": 4}, {"name": "cifar10"}, (3, 32, 32)),
    ({"name": "dcgan", "width": 4, "batch_norm": False}, {"name": "mnist", "size": 64}, (1, 64, 64)),
    ({"name": "dcgan", "width": 4}, {"name": "cifar10", "size": 64}, (3, 64, 64)),
]
pairs = pytest.mark.parametrize(("model", "dataset", "shape"), PAIRS, ids=lambda value: str(value))


def spec(model: object, dataset: object, **fields: Any) -> RunSpec:
    return RunSpec.model_validate({"model": model, "dataset": dataset, "latent": {"dim": 5}, **fields})


def pair(spec: RunSpec, shape: tuple[int, ...], *, on_probabilities: bool = False) -> tuple[nn.Module, nn.Module]:
    return build(spec, shape, on_probabilities=on_probabilities)


def weights(module: nn.Module) -> list[Tensor]:
    return list(module.state_dict().values())


def equal(first: nn.Module, second: nn.Module) -> bool:
    one, other = weights(first), weights(second)
    return len(one) == len(other) and all(torch.equal(p, q) for p, q in zip(one, other, strict=True))


@pairs
@pytest.mark.parametrize("latent", [{"dim": 5}, {"shape": [5, 1, 1]}], ids=str)
@pytest.mark.parametrize("count", [2, 3])
def test_shapes_follow_the_data_and_the_batch(
    model: object, dataset: object, shape: tuple[int, ...], latent: dict[str, Any], count: int
) -> None:
    asked = spec(model, dataset, latent=latent)
    g, d = pair(asked, shape)
    fakes = g(torch.randn(count, *asked.latent.shape))
    assert fakes.shape == (count, *shape)
    assert d(fakes).shape == (count, 1)


@pairs
def test_pictures_lie_in_their_range_whatever_the_latents(
    model: dict[str, Any], dataset: object, shape: tuple[int, ...]
) -> None:
    g, _ = pair(spec(model, dataset), shape)
    fakes = g(1e4 * torch.randn(4, 5))
    if model["name"] == "mlp2d":
        assert fakes.abs().max() > 1
    else:
        assert fakes.abs().max() <= 1


@pairs
def test_a_loss_on_probabilities_gets_the_same_d_with_a_sigmoid(
    model: object, dataset: object, shape: tuple[int, ...]
) -> None:
    asked = spec(model, dataset)
    _, on_logits = pair(asked, shape)
    _, on_probabilities = pair(asked, shape, on_probabilities=True)
    items = 50 * torch.randn(6, *shape)
    torch.testing.assert_close(on_probabilities(items), on_logits(items).sigmoid())


@pairs
def test_every_parameter_is_trained(model: object, dataset: object, shape: tuple[int, ...]) -> None:
    g, d = pair(spec(model, dataset), shape)
    d(g(torch.randn(8, 5))).square().sum().backward()
    assert all(p.grad is not None for network in (g, d) for p in network.parameters())


@pairs
def test_the_seed_decides_the_weights(model: object, dataset: object, shape: tuple[int, ...]) -> None:
    g, d = pair(spec(model, dataset, seed=1), shape)
    torch.randn(7)
    again_g, again_d = pair(spec(model, dataset, seed=1), shape)
    other_g, other_d = pair(spec(model, dataset, seed=2), shape)
    assert equal(g, again_g)
    assert equal(d, again_d)
    assert not equal(g, other_g)
    assert not equal(d, other_d)


@pytest.mark.parametrize("change", [{"batch_norm": True}, {"latent": {"dim": 9}}], ids=str)
def test_another_generator_leaves_the_discriminators_weights(change: dict[str, Any]) -> None:
    model = {"name": "mlp", "hidden": 8} | {k: v for k, v in change.items() if k == "batch_norm"}
    fields = {k: v for k, v in change.items() if k == "latent"}
    g, d = pair(spec({"name": "mlp", "hidden": 8}, "digits"), (1, 8, 8))
    other_g, other_d = pair(spec(model, "digits", **fields), (1, 8, 8))
    assert not equal(g, other_g)
    assert equal(d, other_d)


def test_a_users_generator_leaves_the_discriminators_weights(own: Callable[..., dict[str, Any]]) -> None:
    g, d = pair(spec(own(g={"hidden": 8}), "digits"), (1, 4, 4))
    other_g, other_d = pair(spec(own(g={"hidden": 9}), "digits"), (1, 4, 4))
    assert not equal(g, other_g)
    assert equal(d, other_d)


@pairs
def test_building_leaves_the_global_random_state(model: object, dataset: object, shape: tuple[int, ...]) -> None:
    torch.manual_seed(4)
    before = torch.get_rng_state()
    pair(spec(model, dataset), shape)
    assert torch.equal(torch.get_rng_state(), before)


def test_dcgan_weights_are_drawn_as_the_paper_says() -> None:
    g, d = pair(spec({"name": "dcgan", "width": 32}, {"name": "mnist", "size": 32}), (1, 32, 32))
    for module in [*g.modules(), *d.modules()]:
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d) and module.weight.numel() > 10_000:
            assert module.weight.std().item() == pytest.approx(0.02, rel=0.03)
            assert module.weight.mean().item() == pytest.approx(0.0, abs=0.001)
        if isinstance(module, nn.BatchNorm2d):
            assert module.weight.mean().item() == pytest.approx(1.0, abs=0.02)
