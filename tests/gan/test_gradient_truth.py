"""Each optimizer step is made of the gradient it claims: held against a recomputation in float64."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ganbench.gan.player import Player
from ganbench.gan.session import Session
from ganbench.spec.seeds import derive_seed
from ganbench.spec.strategy import CORRECT

ROUNDS = 3
EXACT = 1e-4
"""Relative length of what float32 may leave between a gradient and its recomputation."""

SessionOf = Callable[..., Session]
Weights = dict[str, Tensor]


class Witness:
    """Before each step of a session, works out what `p.grad` should be, from the declared inputs and the weights that
    the declared order implies, and keeps what lies there beyond it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.g, self.d = (copy.deepcopy(p.module).double() for p in (session.pair.g, session.pair.d))
        self.mixing = torch.Generator().manual_seed(derive_seed(session.spec.seed, "penalty"))
        self.truths: dict[str, list[Tensor]] = {}
        self.leftovers: dict[str, list[Tensor]] = {}
        self.idle: list[Tensor] = []
        session.pair.g.before_step = session.pair.d.before_step = self.before_step

    def play_round(self) -> None:
        self.given = self.session.draw()
        self.truths, self.leftovers, self.idle = {"g": [], "d": []}, {"g": [], "d": []}, []
        # G's weights after so many of its steps in this round, and D's before its first.
        self.g_weights: list[Weights] = []
        self.d_at_start = weights_of(self.session.pair.d)
        self.session.schedule.play(self.session.strategy, self.given)

    def before_step(self, player: Player) -> None:
        truth = self.g_truth() if player.name == "g" else self.d_truth()
        got = torch.cat([p.grad.double().flatten() for p in player.trainable if p.grad is not None])
        self.truths[player.name].append(truth)
        self.leftovers[player.name].append(got - truth)
        if player.name == "g":
            self.g_weights.append(weights_of(player))

    def g_truth(self) -> Tensor:
        """The gradient of G's loss on the next latents. With G first, all G updates see D as the round began."""
        latents = self.given.latents[len(self.truths["g"])].double()
        first = self.session.spec.order == "g_first"
        set_to(self.g, weights_of(self.session.pair.g))
        set_to(self.d, self.d_at_start if first else weights_of(self.session.pair.d))
        loss = self.g_loss(self.d(self.g(latents)))
        # What this same loss gives D: nothing of it belongs into a D step.
        self.idle.append(gradient(loss, self.d, keep=True))
        return gradient(loss, self.g)

    def d_truth(self) -> Tensor:
        n = len(self.truths["d"])
        latents, weights = self.origin_of_fakes(n)
        set_to(self.g, weights)
        set_to(self.d, weights_of(self.session.pair.d))
        real = self.given.real[n % len(self.given.real)].double()
        fakes = self.g(latents.double()).detach()
        return gradient(self.d_loss(real, fakes), self.d)

    def origin_of_fakes(self, n: int) -> tuple[Tensor, Weights]:
        """Latents and G's weights of the fakes of D update `n`, as DESIGN section 4 has them."""
        spec, now = self.session.spec, weights_of(self.session.pair.g)
        own = self.given.own_latents[n]
        if own is not None:
            return own, now
        if spec.order == "d_first":
            return self.given.latents[0], now
        if spec.strategy == "no_grad_replay":
            return self.given.latents[-1], now
        last = spec.ratio.g - 1
        # Where the last step was put off, G still has the weights that made the fakes.
        return self.given.latents[-1], self.g_weights[last] if len(self.g_weights) > last else now

    def g_loss(self, scores: Tensor) -> Tensor:
        return -scores.mean() if self.session.spec.loss == "wgan_gp" else -nn.functional.logsigmoid(scores).mean()

    def d_loss(self, real: Tensor, fakes: Tensor) -> Tensor:
        on_real, on_fakes = self.d(real), self.d(fakes)
        if self.session.spec.loss != "wgan_gp":
            return -nn.functional.logsigmoid(on_real).mean() - nn.functional.logsigmoid(-on_fakes).mean()
        mix = torch.rand(len(real), generator=self.mixing).double().view(-1, 1, 1, 1)
        between = (mix * real + (1 - mix) * fakes).requires_grad_(True)
        (slope,) = torch.autograd.grad(self.d(between).sum(), between, create_graph=True)
        return on_fakes.mean() - on_real.mean() + 10 * (slope.flatten(1).norm(dim=1) - 1).square().mean()

    def share(self, player: str, update: int) -> float:
        """Length of what does not belong there, relative to the gradient's own."""
        return float(self.leftovers[player][update].norm() / self.truths[player][update].norm())


def weights_of(player: Player) -> Weights:
    return {name: p.detach().double().clone() for name, p in player.module.named_parameters()}


def set_to(module: nn.Module, weights: Weights) -> None:
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            parameter.copy_(weights[name])


def gradient(loss: Tensor, module: nn.Module, *, keep: bool = False) -> Tensor:
    trainable = [p for p in module.parameters() if p.requires_grad]
    found = torch.autograd.grad(loss, trainable, retain_graph=keep, materialize_grads=True)
    return torch.cat([g.flatten() for g in found])


@pytest.mark.parametrize("loss", ["bce", "wgan_gp"])
@pytest.mark.parametrize("batches", ["per_round", "per_d_update"])
@pytest.mark.parametrize("ratio", ["2:1", "1:3", "3:2"])
@pytest.mark.parametrize("order", ["g_first", "d_first"])
@pytest.mark.parametrize("strategy", CORRECT)
def test_correct_strategies_step_on_the_gradient_they_claim(
    session_of: SessionOf, strategy: str, order: str, ratio: str, batches: str, loss: str
) -> None:
    model = {"name": "mlp", "hidden": 8, "batch_norm": True}
    session = session_of(
        strategy=strategy, order=order, ratio=ratio, real_batches=batches, loss=loss, model=model, batch_size=6
    )
    witness = Witness(session)
    for _ in range(ROUNDS):
        witness.play_round()
        counts = {name: len(found) for name, found in witness.leftovers.items()}
        assert counts == {"g": session.spec.ratio.g, "d": session.spec.ratio.d}
        shares = [witness.share(name, n) for name, found in witness.leftovers.items() for n in range(len(found))]
        assert max(shares) < EXACT


@pytest.mark.parametrize("ratio", ["2:1", "2:3"])
def test_detach_as_published_makes_the_first_d_step_of_a_round_of_gs_gradients_too(
    session_of: SessionOf, ratio: str
) -> None:
    witness = Witness(session_of(strategy="detach_as_published", ratio=ratio))
    for _ in range(ROUNDS):
        witness.play_round()
        first, *later = witness.leftovers["d"]
        assert witness.share("d", 0) > 0.1
        # It is exactly what the round's G updates left there, all of them together.
        torch.testing.assert_close(first, torch.stack(witness.idle).sum(0), rtol=0, atol=1e-5)
        assert len(later) == witness.session.spec.ratio.d - 1
        assert all(witness.share("d", n) < EXACT for n in range(1, len(later) + 1))
        assert all(witness.share("g", n) < EXACT for n in range(2))


@pytest.mark.parametrize("ratio", ["2:1", "1:3"])
def test_a_fused_optimizer_lets_the_published_retain_run_on_the_gradients_of_its_losses(
    session_of: SessionOf, ratio: str
) -> None:
    """Stale weights are met only on the way back through G, and what comes out there is cleared before G's next step:
    the D step itself sees the fakes as numbers."""
    fused: dict[str, Any] = {"g_lr": 1e-2, "d_lr": 1e-2, "fused": True}
    witness = Witness(session_of(strategy="retain_as_published", ratio=ratio, optimizer=fused))
    for _ in range(ROUNDS):
        witness.play_round()
        shares = [witness.share(name, n) for name, found in witness.leftovers.items() for n in range(len(found))]
        assert max(shares) < EXACT
