"""Strategies whose faults hide: past what is watched, behind short steps, or under a declared other estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ganbench.gan.certificate import certify
from ganbench.gan.data import Data
from ganbench.gan.pair import Pair
from ganbench.gan.player import Player
from ganbench.gan.schedule import Fakes
from ganbench.gan.strategies import Strategy
from ganbench.gan.strategies.no_grad_fresh import NoGradFresh
from ganbench.record.certificate import Certificate
from ganbench.spec.run import RunSpec
from ganbench.spec.strategy import Verdict

SpecOf = Callable[..., RunSpec]
Judge = Callable[..., Certificate]


@pytest.fixture(name="judge")
def _judge(spec_of: SpecOf, data: Data) -> Judge:
    def judge(kind: Callable[[Pair], Strategy], **fields: Any) -> Certificate:
        return certify(spec_of(**{"ratio": "2:3", **fields}), data, torch.device("cpu"), strategy=kind)

    return judge


class StepsTheOptimizerItself(Strategy):
    """Past its player, and never clears D."""

    def step(self, player: Player, *, put_off: bool) -> None:  # noqa: ARG002
        player.optimizer.step()
        if player.name == "g":
            player.clear()


class RightPastThePlayer(Strategy):
    """Past its player, and right."""

    def step(self, player: Player, *, put_off: bool) -> None:  # noqa: ARG002
        player.optimizer.step()
        player.clear()


class StepsTwice(NoGradFresh):
    """Each gradient is used for two steps."""

    def step(self, player: Player, *, put_off: bool) -> None:  # noqa: ARG002
        player.step()
        player.step()
        player.clear()


class StepsAnIdleOptimizer(Strategy):
    """With no gradient there, which moves nothing."""

    def step(self, player: Player, *, put_off: bool) -> None:
        super().step(player, put_off=put_off)
        self.pair.other(player).step()


class FirstUpdateOnly(Strategy):
    """Of a round's D updates only the first is stepped."""

    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        self._done = False

    def step(self, player: Player, *, put_off: bool) -> None:
        if player is self.pair.d and self._done:
            player.clear()
            return
        self._done = player is self.pair.d
        super().step(player, put_off=put_off)

    def end_round(self) -> None:
        self._done = False


class AlwaysTheSameLatents(NoGradFresh):
    """Latents that are fresh once."""

    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        self._first: Tensor | None = None

    def shown(self, fakes: Fakes, own_latents: Tensor | None) -> Tensor:
        if self._first is None:
            self._first = own_latents
        return super().shown(fakes, self._first)


class GeneratesTwice(Strategy):
    """And uses the first."""

    def generate(self, latents: Tensor) -> Fakes:
        fakes = super().generate(latents)
        with torch.no_grad():
            self.pair.generate(latents)
        return fakes


class CallsTheModule(Strategy):
    """Fakes from the network itself, which nobody sees being made."""

    def shown(self, fakes: Fakes, own_latents: Tensor | None) -> Tensor:  # noqa: ARG002
        made: Tensor = self.pair.g.module(fakes.latents)
        return made.detach()


class EvaluatesTheGenerator(NoGradFresh):
    """Fakes for D come from G in evaluation mode."""

    def shown(self, fakes: Fakes, own_latents: Tensor | None) -> Tensor:
        self.pair.g.module.eval()
        try:
            return super().shown(fakes, own_latents)
        finally:
            self.pair.g.module.train()


class ClipsGradients(NoGradFresh):
    """Which no loss declared."""

    def step(self, player: Player, *, put_off: bool) -> None:
        nn.utils.clip_grad_norm_(player.trainable, 1e-3)
        super().step(player, put_off=put_off)


class OneOutputForBoth(Strategy):
    """D's scores of the fakes serve both losses; D steps in between."""

    def discriminator_update(self, real: Tensor, fakes: Fakes, own_latents: Tensor | None) -> None:  # noqa: ARG002
        assert fakes.images is not None
        pair = self.pair
        pair.d.clear()
        self.scores = pair.score(fakes.images)
        (pair.loss.real(pair.score(real)) + pair.loss.fake(self.scores)).backward(retain_graph=True)  # type: ignore[no-untyped-call]
        pair.d.step()

    def generator_update(self, fakes: Fakes, *, feeds_discriminator: bool) -> None:  # noqa: ARG002
        pair = self.pair
        pair.g.clear()
        pair.loss.generator(self.scores).backward()  # type: ignore[no-untyped-call]
        pair.g.step()


def test_steps_past_the_player_are_seen(judge: Judge) -> None:
    found = judge(StepsTheOptimizerItself)
    assert found.verdict is Verdict.CONTAMINATED
    assert found.truth["d"].updates == 9
    assert found.truth["d"].untrue == 6
    assert judge(RightPastThePlayer).verdict is Verdict.SAME


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_a_step_without_gradients_is_none(judge: Judge, precision: str) -> None:
    found = judge(StepsAnIdleOptimizer, precision=precision)
    # A gradient scaler asserts that there are some.
    assert found.verdict is (Verdict.SAME if precision == "fp32" else Verdict.RAISES), found.reason


@pytest.mark.parametrize(
    ("kind", "verdict", "text"),
    [
        (StepsTheOptimizerItself, Verdict.CONTAMINATED, "differs from the declared one"),
        (StepsTwice, Verdict.CONTAMINATED, "a step that no update asked for"),
        (AlwaysTheSameLatents, Verdict.OTHER_ESTIMATOR, "other fakes than the declared ones"),
        (ClipsGradients, Verdict.CONTAMINATED, "differs from the declared one"),
    ],
)
def test_another_estimator_has_to_be_true_to_what_it_declares(
    judge: Judge, kind: Any, verdict: Verdict, text: str
) -> None:
    """Its trajectory is expected to differ: that alone must not let anything pass."""
    found = judge(kind, strategy="no_grad_fresh")
    assert found.verdict is verdict, f"{found.text}: {found.reason}"
    assert text in found.reason
    assert not found.as_expected
    assert judge(NoGradFresh, strategy="no_grad_fresh").as_expected


def test_updates_without_a_step_do_not_shift_those_that_follow(judge: Judge) -> None:
    found = judge(FirstUpdateOnly)
    assert found.verdict is Verdict.NOT_TRAINED
    assert "ended without a step" in found.reason
    assert (found.truth["d"].updates, found.truth["d"].missing) == (9, 6)
    assert found.truth["g"].untrue == 0
    assert judge(FirstUpdateOnly, ratio="2:1").verdict is Verdict.SAME


def test_the_pass_that_made_the_fakes_is_the_one_that_counts(judge: Judge, own: Callable[..., dict[str, Any]]) -> None:
    noisy = own("Noisy", g={"dropout": 0.3, "batch_norm": True})
    found = judge(GeneratesTwice, model=noisy)
    assert found.verdict is Verdict.OTHER_ESTIMATOR
    assert all(truth.untrue == 0 for truth in found.truth.values())


def test_passes_that_cannot_be_watched_are_no_ground_for_a_verdict(
    judge: Judge, own: Callable[..., dict[str, Any]]
) -> None:
    found = judge(CallsTheModule, model=own(g={"dropout": 0.3}))
    assert found.verdict is None
    assert "past the session" in found.reason


def test_fakes_of_evaluation_mode_are_not_the_declared_ones(judge: Judge, own: Callable[..., dict[str, Any]]) -> None:
    found = judge(EvaluatesTheGenerator, strategy="no_grad_fresh", model=own(g={"batch_norm": True}))
    assert not found.as_expected
    assert found.verdict is None
    assert "generator called again" in found.reason


@pytest.mark.parametrize("lr", [1e-2, 1e-7])
def test_short_steps_do_not_hide_stale_weights(judge: Judge, lr: float) -> None:
    fused = {"g_lr": lr, "d_lr": lr, "fused": True}
    found = judge(OneOutputForBoth, order="d_first", ratio="1:1", optimizer=fused)
    assert found.verdict is Verdict.STALE, f"{found.text}: {found.reason}"
