"""Parameters that nobody trains, and outputs that depend on nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

Find = Callable[..., Any]


class Blocks(nn.Module):
    """Hidden layers in a container of the author's choice."""

    def __init__(self, keep: Callable[[list[nn.Module]], Any]) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(64, 8), nn.Linear(8, 1)
        self.blocks = keep([nn.Linear(8, 8), nn.Linear(8, 8)])

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x.flatten(1))
        blocks = self.blocks.values() if isinstance(self.blocks, dict | nn.ModuleDict) else self.blocks
        for block in blocks:
            h = torch.relu(block(h[0] if isinstance(h, tuple) else h))
        return self.last(h)


PLAIN: list[Callable[[list[nn.Module]], Any]] = [
    list,
    tuple,
    lambda layers: {"a": layers[0], "b": layers[1]},
]


@pytest.mark.parametrize("keep", PLAIN, ids=["list", "tuple", "dict"])
def test_layers_in_plain_containers(found: Find, keep: Callable[[list[nn.Module]], Any]) -> None:
    wrong = found(make_d=lambda: Blocks(keep))["hidden-layers"]
    assert wrong.severity == "warning"
    assert wrong.evidence.count("Linear with 72 numbers") == 2
    assert "discriminator.blocks[" in wrong.evidence


def test_layers_in_modules_own_containers(found: Find) -> None:
    assert not found(make_d=lambda: Blocks(nn.ModuleList))
    assert not found(make_d=lambda: Blocks(lambda layers: nn.ModuleDict({"a": layers[0], "b": layers[1]})))


def test_a_second_list_of_registered_layers_hides_nothing(found: Find) -> None:
    class Both(Blocks):
        def __init__(self) -> None:
            super().__init__(nn.ModuleList)
            self.order = list(self.blocks)

    assert not found(make_d=Both)


def test_a_tensor_that_wants_gradients_as_an_attribute(found: Find) -> None:
    class Scaled(nn.Module):
        def __init__(self, wrap: bool) -> None:
            super().__init__()
            self.net = nn.Linear(64, 1)
            scale = torch.ones(1, requires_grad=True)
            self.scale = nn.Parameter(scale) if wrap else scale

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x.flatten(1)) * self.scale

    assert found(make_d=lambda: Scaled(False))["hidden-parameters"].evidence == "discriminator.scale: tensor (1,)"
    assert not found(make_d=lambda: Scaled(True))


def test_weights_computed_by_hooks_are_not_hidden(found: Find) -> None:
    for norm in (
        nn.utils.spectral_norm,
        nn.utils.parametrizations.spectral_norm,
        nn.utils.parametrizations.weight_norm,
    ):
        assert not found(make_d=lambda norm=norm: nn.Sequential(nn.Flatten(), norm(nn.Linear(64, 1))))


def test_no_parameters_to_train(found: Find) -> None:
    def frozen() -> nn.Module:
        return nn.Sequential(nn.Linear(6, 64), nn.Unflatten(1, (1, 8, 8))).requires_grad_(False)

    wrong = found(frozen)
    assert wrong["no-trainable-parameters"].severity == "error"
    assert "all frozen" in wrong["no-trainable-parameters"].evidence
    assert wrong.looked.left_out


def test_some_frozen_layers(found: Find) -> None:
    def partly() -> nn.Module:
        net = nn.Sequential(nn.Linear(6, 8), nn.Linear(8, 64), nn.Unflatten(1, (1, 8, 8)))
        net[0].requires_grad_(False)
        return net

    looked = found(partly)
    assert list(looked) == ["frozen-parameters"]
    assert looked["frozen-parameters"].severity == "note"
    assert looked["frozen-parameters"].evidence == "generator.0.weight, generator.0.bias"


def test_a_layer_that_both_networks_hold(found: Find) -> None:
    def both() -> tuple[nn.Module, nn.Module]:
        shared = nn.Linear(64, 64)
        return (
            nn.Sequential(nn.Linear(6, 64), shared, nn.Unflatten(1, (1, 8, 8))),
            nn.Sequential(nn.Flatten(), shared, nn.Linear(64, 1)),
        )

    wrong = found(together=both)
    assert list(wrong) == ["shared-layers"]
    assert "generator.1.weight = discriminator.1.weight" in wrong["shared-layers"].evidence


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_lazy_layers(found: Find) -> None:
    def lazy(dry_run: bool) -> nn.Module:
        net = nn.Sequential(nn.Flatten(), nn.LazyLinear(8), nn.ReLU(), nn.Linear(8, 1))
        if dry_run:
            net(torch.zeros(2, 64))
        return net

    wrong = found(make_d=lambda: lazy(False))
    assert list(wrong) == ["lazy-layers"]
    assert wrong["lazy-layers"].evidence == "discriminator.1.weight, discriminator.1.bias"
    assert not found(make_d=lambda: lazy(True))


class Heads(nn.Module):
    """A score and classes, of which the score alone is given."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.score, self.classes = nn.Linear(64, 8), nn.Linear(8, 1), nn.Linear(8, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.score(torch.relu(self.body(x.flatten(1))))


def test_a_head_that_gets_no_gradient(found: Find) -> None:
    wrong = found(make_d=Heads)
    assert list(wrong) == ["unused-parameters"]
    assert wrong["unused-parameters"].evidence == "discriminator.classes.weight, discriminator.classes.bias"


class Generating(nn.Module):
    """A generator with what an author may do to its input or output."""

    def __init__(self, before: Callable[[Tensor], Tensor] = lambda z: z, after: Any = lambda made: made) -> None:
        super().__init__()
        self.net, self.before, self.after = nn.Linear(6, 64), before, after

    def forward(self, z: Tensor) -> Tensor:
        return self.after(torch.tanh(self.net(self.before(z)))).view(-1, 1, 8, 8)


def test_a_generator_that_does_not_read_its_latents(found: Find) -> None:
    wrong = found(lambda: Generating(before=lambda z: torch.ones(len(z), 6)))["input-ignored"]
    assert wrong.severity == "warning"
    assert "generator" in wrong.what
    # Its own noise is no answer to other latents.
    assert "input-ignored" in found(lambda: Generating(before=lambda z: torch.randn(len(z), 6)))
    assert not found(Generating)


def test_a_discriminator_that_ignores_items(found: Find) -> None:
    class Constant(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.score = nn.Parameter(torch.zeros(1))

        def forward(self, x: Tensor) -> Tensor:
            return self.score.expand(len(x), 1)

    assert "discriminator" in found(make_d=Constant)["input-ignored"].what


def test_an_output_layer_that_starts_at_zero_is_a_note(found: Find) -> None:
    def zeroed() -> nn.Module:
        net = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 1))
        nn.init.zeros_(net[3].weight)
        return net

    assert found(make_d=zeroed)["input-ignored"].severity == "note"


def test_a_generator_out_of_gradients_reach(found: Find) -> None:
    wrong = found(lambda: Generating(after=lambda made: made.detach()))["no-gradient"]
    assert wrong.severity == "warning"  # it runs: the generator never moves
    assert "generator's loss reaches none" in wrong.what

    class Scoring(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(64, 1)

        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                return self.net(x.flatten(1))

    assert found(make_d=Scoring)["no-gradient"].severity == "error"  # backward would raise


def test_values_that_are_not_finite_at_first(found: Find) -> None:
    wrong = found(lambda: Generating(after=lambda made: made / 0))["output-not-finite"]
    assert wrong.severity == "error"
    assert "fakes" in wrong.what
    assert "of 512 values" in wrong.evidence


def test_a_generator_with_noise_of_its_own(found: Find) -> None:
    looked = found(lambda: Generating(after=lambda made: made + 0.1 * torch.randn_like(made)))
    assert looked["internal-noise"].severity == "note"
    assert looked.looked.can_run
    # Dropout is silent in evaluation mode.
    dropout = found(lambda: nn.Sequential(nn.Linear(6, 64), nn.Dropout(0.5), nn.Tanh(), nn.Unflatten(1, (1, 8, 8))))
    assert not dropout
