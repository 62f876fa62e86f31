"""Items edited in place, tensors that carry a graph along, and penalties that train nobody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ganbench.errors import UserCodeError
from ganbench.gan.check import STAGES, look
from ganbench.gan.losses.wasserstein import WassersteinGradientPenalty
from ganbench.record.loading import Loaded

Find = Callable[..., Any]


def d(*first: nn.Module) -> nn.Module:
    return nn.Sequential(*first, nn.Flatten(), nn.Linear(64, 8), nn.LeakyReLU(0.2, True), nn.Linear(8, 1))


def linear_end() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(True), nn.Linear(8, 64), nn.Unflatten(1, (1, 8, 8)))


def test_a_first_layer_that_edits_its_input_silently(found: Find) -> None:
    wrong = found(linear_end, lambda: d(nn.LeakyReLU(0.2, True)))["input-edited-in-place"]
    assert wrong.severity == "warning"
    assert "nothing raises" in wrong.what
    assert "of the values of real items" in wrong.evidence
    assert "of the values of fakes" in wrong.evidence


def test_a_first_layer_that_edits_what_a_tanh_needs(found: Find) -> None:
    looked = found(make_d=lambda: d(nn.LeakyReLU(0.2, True)))
    assert list(looked) == ["input-edited-in-place"]
    assert looked["input-edited-in-place"].severity == "error"
    assert "modified by an inplace operation" in looked["input-edited-in-place"].evidence
    assert not looked.looked.can_run


def test_a_first_layer_that_edits_the_copy_that_is_none(found: Find) -> None:
    class Scoring(nn.Module):
        """Copies fakes that have a graph, and edits those that `detach()` gave, which share memory with them."""

        def __init__(self) -> None:
            super().__init__()
            self.net = d(nn.LeakyReLU(0.2, True))

        def forward(self, x: Tensor) -> Tensor:
            return self.net(x.clone() if x.requires_grad else x)

    assert found(make_d=Scoring)["input-edited-in-place"].severity == "warning"
    assert found(make_d=Scoring, order="d_first")["input-edited-in-place"].severity == "error"


def test_in_place_layers_elsewhere_are_harmless(found: Find) -> None:
    assert not found(linear_end, d)
    assert not found(make_d=lambda: d(nn.LeakyReLU(0.2)))


def test_a_generator_that_edits_its_latents(found: Find) -> None:
    wrong = found(lambda: nn.Sequential(nn.ReLU(True), *linear_end()))["input-edited-in-place"]
    assert "generator" in wrong.what
    assert "of the values of latents" in wrong.evidence


class Average(nn.Module):
    """Subtracts a running average of its features."""

    def __init__(self, detach: bool) -> None:
        super().__init__()
        self.first, self.last, self.detach = nn.Linear(64, 8), nn.Linear(8, 1), detach
        self.register_buffer("ema", torch.zeros(8))

    def forward(self, x: Tensor) -> Tensor:
        h = torch.tanh(self.first(x.flatten(1)))
        self.ema = 0.9 * self.ema + 0.1 * (h.detach() if self.detach else h).mean(0)
        return self.last(h - self.ema)


def test_a_buffer_that_carries_its_graph_along(found: Find) -> None:
    wrong = found(make_d=lambda: Average(detach=False))["buffer-holds-graph"]
    assert wrong.severity == "error"
    assert "discriminator.ema" in wrong.evidence
    assert "graph_freed" in wrong.evidence
    assert "not the strategy" in wrong.what
    assert not found(make_d=lambda: Average(detach=True))


def test_a_generators_buffer_is_blamed_as_well(found: Find) -> None:
    class Generating(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.average = nn.Sequential(Average(detach=False), nn.Linear(1, 64))

        def forward(self, z: Tensor) -> Tensor:
            return torch.tanh(self.average(z.repeat(1, 11)[:, :64])).view(-1, 1, 8, 8)

    assert "generator.average.0.ema" in found(Generating)["buffer-holds-graph"].evidence


def test_a_graph_that_only_grows(found: Find) -> None:
    class Remembering(nn.Module):
        """Sums a loss up for a print: sums save nothing, so that nothing raises."""

        def __init__(self, detach: bool) -> None:
            super().__init__()
            self.net, self.detach = nn.Linear(64, 1), detach
            self.total = torch.zeros(())

        def forward(self, x: Tensor) -> Tensor:
            scores = self.net(x.flatten(1))
            self.total = self.total + (scores.detach() if self.detach else scores).sum()
            return scores

    wrong = found(make_d=lambda: Remembering(detach=False))["buffer-graph-grows"]
    assert wrong.severity == "warning"
    assert "discriminator.total" in wrong.evidence
    first, second, third = map(int, wrong.evidence.rpartition(": ")[2].split(", "))
    assert third - second == second - first > 0
    assert not found(make_d=lambda: Remembering(detach=True))


def test_a_round_that_raises_for_another_reason(found: Find) -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.calls = nn.Linear(64, 1), 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            if self.calls > 6:
                raise RuntimeError(f"call {self.calls}")
            return self.net(x.flatten(1))

    wrong = found(make_d=Counting)["training-raises"]
    assert wrong.severity == "error"
    assert "round 2: RuntimeError: call 7" in wrong.evidence


class Penalty(WassersteinGradientPenalty):
    """The penalty as it is often written wrongly."""

    def __init__(self, create_graph: bool = True, detach: bool = False, root: bool = False) -> None:
        self.create_graph, self.detach, self.root = create_graph, detach, root

    def penalty(self, critic: Callable[[Tensor], Tensor], real: Tensor, fake: Tensor, mix: Tensor) -> Tensor:
        mix = mix.view(-1, *([1] * (real.dim() - 1)))
        between = torch.lerp(fake.detach(), real, mix).requires_grad_(True)
        (gradient,) = torch.autograd.grad(critic(between).sum(), between, create_graph=self.create_graph)
        flat = (gradient.detach() + 0 * critic(between).sum() if self.detach else gradient).flatten(1)
        lengths = flat.square().sum(1).sqrt() if self.root else flat.norm(2, dim=1)
        return (lengths - 1).square().mean()


def test_a_penalty_without_its_graph(found: Find) -> None:
    wrong = found(make_d=d, loss=Penalty(create_graph=False))["penalty-without-graph"]
    assert wrong.severity == "warning"
    assert "create_graph=True" in wrong.advice
    assert not found(make_d=d, loss=Penalty())


def test_a_penalty_that_reaches_nobody(found: Find) -> None:
    assert "all gradients zero" in found(make_d=d, loss=Penalty(detach=True))["penalty-reaches-nobody"].evidence


def test_a_penalty_with_a_square_root_at_zero(found: Find) -> None:
    def dead() -> nn.Module:
        net = d()
        nn.init.zeros_(net[3].weight)
        return net

    assert found(make_d=dead, loss=Penalty(root=True))["penalty-not-finite"].severity == "error"
    assert "penalty-not-finite" not in found(make_d=dead, loss=Penalty())


def test_a_penalty_on_a_discriminator_that_edits_its_input(found: Find) -> None:
    wrong = found(linear_end, lambda: d(nn.LeakyReLU(0.2, True)), loss="wgan_gp")["penalty-raises"]
    assert wrong.severity == "error"
    assert "in place" in wrong.advice


def test_a_penalty_through_reentrant_checkpointing(found: Find) -> None:
    from torch.utils.checkpoint import checkpoint

    class Saving(nn.Module):
        def __init__(self, reentrant: bool) -> None:
            super().__init__()
            self.net, self.reentrant = d(), reentrant

        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(self.net, x, use_reentrant=self.reentrant)

    assert found(make_d=lambda: Saving(True), loss="wgan_gp")["penalty-raises"].severity == "error"
    assert not found(make_d=lambda: Saving(False), loss="wgan_gp")


def test_global_switches_of_a_file(found: Find) -> None:
    switches = {"anomaly mode": ("False", "True"), "torch random state": ("a", "b"), "recursion limit": ("1", "2")}
    looked = found(loaded=(Loaded(file="gan.py", switches=switches),) * 2).looked
    assert [finding.code for finding in looked.findings] == ["global-switch", "global-switch"]
    warning, note = looked.findings
    assert warning.evidence == "anomaly mode: False → True"
    assert "slower" in warning.what
    assert note.evidence == "torch random state, recursion limit: 1 → 2"


def test_a_check_that_fails_itself_is_told(found: Find) -> None:
    class Stubborn(nn.Module):
        """Refuses copies of its input that require gradients."""

        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(64, 1)

        def forward(self, x: Tensor) -> Tensor:
            if len(x) == 8 and not torch.is_grad_enabled():
                raise TypeError("not without gradients")
            return self.net(x.flatten(1))

    unchecked = found(make_d=Stubborn)["unchecked"]
    assert unchecked.severity == "note"
    assert "TypeError: not without gradients" in unchecked.evidence


def test_what_cannot_be_built_is_no_finding() -> None:
    def build() -> Any:
        raise UserCodeError("generator: no file 'x.py'")

    with pytest.raises(UserCodeError, match=r"x\.py"):
        look(build)


def test_looking_leaves_the_random_state_alone(found: Find) -> None:
    before = torch.get_rng_state()
    found()
    assert torch.equal(before, torch.get_rng_state())


def test_every_check_has_a_name_of_its_own() -> None:
    names = [check.__name__ for stage in STAGES for check in stage]
    assert len(names) == len(set(names)) > 25
