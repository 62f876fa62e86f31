"""A network with its optimizer: what the spec's options become, gradient norms, and steps that really happened."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from ganbench.gan.player import Player, optimizer_for
from ganbench.spec.training import OptimizerSpec


def spec(**fields: Any) -> OptimizerSpec:
    return OptimizerSpec.model_validate(fields)


def network() -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 1))


def player(module: nn.Module | None = None, **fields: Any) -> Player:
    return Player("g", module or network(), spec(**fields), 1e-2)


@pytest.mark.parametrize(
    ("fields", "kind", "options"),
    [
        ({"name": "adam"}, torch.optim.Adam, {"betas": (0.5, 0.999)}),
        ({"name": "adam", "betas": [0.0, 0.9]}, torch.optim.Adam, {"betas": (0.0, 0.9)}),
        ({"name": "adamw", "weight_decay": 0.1}, torch.optim.AdamW, {"weight_decay": 0.1}),
        ({"name": "sgd", "momentum": 0.9}, torch.optim.SGD, {"momentum": 0.9}),
        ({"name": "rmsprop", "momentum": 0.5}, torch.optim.RMSprop, {"momentum": 0.5}),
        ({"name": "adam", "fused": True}, torch.optim.Adam, {"fused": True}),
        ({"name": "adamw", "fused": True}, torch.optim.AdamW, {"fused": True}),
        ({"name": "sgd", "fused": True}, torch.optim.SGD, {"fused": True}),
        ({"name": "adam", "foreach": True}, torch.optim.Adam, {"foreach": True}),
        ({"name": "sgd", "foreach": False}, torch.optim.SGD, {"foreach": False}),
        ({"name": "rmsprop", "foreach": True}, torch.optim.RMSprop, {"foreach": True}),
    ],
    ids=str,
)
def test_the_specs_options_reach_the_optimizer(fields: dict[str, Any], kind: type, options: dict[str, Any]) -> None:
    module = network()
    optimizer = optimizer_for(spec(**fields), list(module.parameters()), 3e-3)
    assert type(optimizer) is kind
    found = optimizer.param_groups[0]
    assert {name: found[name] for name in options} == options
    assert found["lr"] == 3e-3
    assert found["weight_decay"] == fields.get("weight_decay", 0.0)
    before = module[3].weight.detach().clone()
    module(torch.randn(6, 4, generator=torch.Generator().manual_seed(0))).square().sum().backward()
    optimizer.step()
    assert not torch.equal(module[3].weight, before)


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "rmsprop"])
def test_an_optimizer_left_to_torch_is_torchs_own(name: str) -> None:
    """Neither option is set: both stay None, so that torch chooses as it does for a script."""
    found = optimizer_for(spec(name=name), list(network().parameters()), 1e-3).param_groups[0]
    assert found["foreach"] is None
    assert found.get("fused") is None


def test_frozen_parameters_are_not_handed_to_the_optimizer() -> None:
    module = network()
    module[0].requires_grad_(False)
    made = player(module)
    assert len(made.trainable) == 4
    assert [id(p) for p in made.optimizer.param_groups[0]["params"]] == [id(p) for p in made.trainable]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_gradient_norm_is_that_of_clip_grad_norm(scale: float) -> None:
    made = player()
    made.backward(made.module(torch.randn(6, 4)).square().sum() * scale)
    oracle = float(nn.utils.clip_grad_norm_(made.module.parameters(), float("inf")))
    assert made.grad_norm() == pytest.approx(oracle, rel=1e-6)
    assert oracle > 0


def test_the_gradient_norm_is_told_unscaled() -> None:
    batch = torch.randn(6, 4)
    plain = player()
    plain.backward(plain.module(batch).square().sum())
    scaled = Player("g", network(), spec(), 1e-2, scaler=torch.amp.GradScaler("cpu", init_scale=4096.0))
    scaled.backward(scaled.module(batch).square().sum())
    assert plain.module[0].weight.grad is not None
    assert torch.equal(scaled.module[0].weight.grad, plain.module[0].weight.grad * 4096)
    assert scaled.grad_norm() == pytest.approx(plain.grad_norm(), rel=1e-6)


def test_no_gradient_has_norm_zero() -> None:
    made = player()
    assert made.grad_norm() == 0.0
    made.backward(made.module(torch.randn(6, 4)).sum())
    made.clear()
    assert all(p.grad is None for p in made.trainable)
    assert made.grad_norm() == 0.0


def test_before_step_sees_the_gradients_and_the_weights_before_the_step() -> None:
    made = player()
    seen: list[bool] = []
    before = made.module[0].weight.detach().clone()
    made.before_step = lambda p: seen.append(torch.equal(made.module[0].weight, before) and p.grad_norm() > 0)
    made.backward(made.module(torch.randn(6, 4)).square().sum())
    made.step()
    assert seen == [True]
    assert not torch.equal(made.module[0].weight, before)


def test_without_a_scaler_every_step_happens() -> None:
    assert player().steps_taken(3) == [True, True, True]


@pytest.mark.parametrize("fused", [False, True], ids=["plain", "fused"])
def test_an_overflowed_step_is_told_and_moves_nothing(fused: bool) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2)
    made = Player("g", network(), spec(fused=fused), 1e-2, scaler=scaler)
    moved: list[bool] = []
    for factor in (1.0, float("inf"), 1.0, 1.0, 1.0, float("inf")):
        before = made.module[3].weight.detach().clone()
        made.clear()
        made.backward(made.module(torch.randn(6, 4)).square().mean() * factor)
        made.step()
        moved.append(not torch.equal(before, made.module[3].weight))
    assert moved == [True, False, True, True, True, False]
    assert made.steps_taken(4) == moved[:4]
    # What was asked for once is not told again, and the next window starts from the scale reached.
    made.clear()
    made.backward(made.module(torch.randn(6, 4)).square().mean())
    made.step()
    assert made.steps_taken(1) == [True]


def test_tensors_are_all_that_outlives_a_round() -> None:
    made = player()
    assert len(list(made.tensors())) == 6 + 3
    made.backward(made.module(torch.randn(6, 4)).sum())
    assert len(list(made.tensors())) == 6 + 6 + 3
    made.step()
    # Adam: two moments and a step count for each parameter.
    assert len(list(made.tensors())) == 6 + 6 + 3 + 18
