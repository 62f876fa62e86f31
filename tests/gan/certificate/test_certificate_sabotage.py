"""Strategies of one's own, each wrong in one way: none of them gets a `same`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from ganbench.gan.certificate import certify
from ganbench.gan.data import Data
from ganbench.gan.pair import Pair
from ganbench.gan.player import Player
from ganbench.gan.schedule import Fakes
from ganbench.gan.strategies import Strategy
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


class OneOutputForBoth(Strategy):
    """D's output on the fakes is computed once and used for both losses; D steps in between."""

    def discriminator_update(self, real: Tensor, fakes: Fakes, own_latents: Tensor | None) -> None:  # noqa: ARG002
        assert fakes.images is not None
        pair = self.pair
        pair.d.clear()
        self.scores = pair.score(fakes.images)
        loss = pair.loss.real(pair.score(real)) + pair.loss.fake(self.scores)
        loss.backward(retain_graph=True)
        pair.d.step()

    def generator_update(self, fakes: Fakes, *, feeds_discriminator: bool) -> None:  # noqa: ARG002
        pair = self.pair
        pair.g.clear()
        pair.loss.generator(self.scores).backward()
        pair.g.step()


class NothingClearedBetweenUpdates(Strategy):
    """Gradients pile up over the D updates of a round; cleared at its end."""

    def step(self, player: Player, *, put_off: bool) -> None:  # noqa: ARG002
        player.step()
        if player.name == "g":
            player.clear()

    def end_round(self) -> None:
        self.pair.d.clear()


class DetachedForTheGeneratorToo(Strategy):
    """A published fix: G's loss sees detached fakes."""

    def generator_update(self, fakes: Fakes, *, feeds_discriminator: bool) -> None:
        assert fakes.images is not None
        super().generator_update(Fakes(fakes.latents, fakes.images.detach()), feeds_discriminator=feeds_discriminator)


class ShowsYesterdaysFakes(Strategy):
    """D sees the fakes of the round before."""

    def __init__(self, pair: Pair) -> None:
        super().__init__(pair)
        self._old: Tensor | None = None
        self._new: Tensor | None = None

    def shown(self, fakes: Fakes, own_latents: Tensor | None) -> Tensor:
        self._new = super().shown(fakes, own_latents)
        return self._new if self._old is None else self._old

    def end_round(self) -> None:
        self._old = self._new


class BothBackwardsThenBothSteps(Strategy):
    """G's gradients wait for D's backward, and D's are made of both losses."""

    def after(self, player: Player) -> None:
        """Nothing is discarded."""

    def step(self, player: Player, *, put_off: bool) -> None:
        if not put_off:
            super().step(player, put_off=False)

    def end_round(self) -> None:
        super().step(self.pair.g, put_off=False)


class OneMoreForward(Strategy):
    """Right gradients, but D runs forward once more: its buffers go another way."""

    def before(self, player: Player) -> None:
        if player is self.pair.d:
            with torch.no_grad():
                self.pair.score(torch.zeros(8, 1, 4, 4))


class ScalesTheLoss(Strategy):
    """Half of the declared loss."""

    def backward(self, loss: Tensor, player: Player) -> None:
        player.backward(0.5 * loss)


class NeverStepsTheDiscriminator(Strategy):
    """D's updates are made, its optimizer never steps."""

    def step(self, player: Player, *, put_off: bool) -> None:
        if player is self.pair.g:
            super().step(player, put_off=put_off)
        else:
            player.clear()


FUSED = {"g_lr": 1e-2, "d_lr": 1e-2, "fused": True}


def test_one_output_for_both_losses_with_fused_optimizers_is_stale_though_nothing_raised(judge: Judge) -> None:
    found = judge(OneOutputForBoth, order="d_first", ratio="1:1", optimizer=FUSED)
    assert found.verdict is Verdict.STALE
    assert "changed after its forward pass" in found.reason
    assert found.truth["g"].untrue == 3
    assert found.truth["g"].worst_share > 1e-3
    raised = judge(OneOutputForBoth, order="d_first", ratio="1:1")
    assert raised.text == "raises modified_in_place"


@pytest.mark.parametrize(
    ("kind", "verdict", "player", "untrue"),
    [
        (NothingClearedBetweenUpdates, Verdict.CONTAMINATED, "d", 2 * 3),
        (DetachedForTheGeneratorToo, Verdict.NOT_TRAINED, "g", 2 * 3),
        (ShowsYesterdaysFakes, Verdict.OTHER_ESTIMATOR, "d", 3 * 2),
        (BothBackwardsThenBothSteps, Verdict.CONTAMINATED, "d", 3 * 1),
        (ScalesTheLoss, Verdict.CONTAMINATED, "d", 3 * 3),
    ],
)
def test_what_is_wrong_is_named(judge: Judge, kind: Any, verdict: Verdict, player: str, untrue: int) -> None:
    found = judge(kind)
    assert found.verdict is verdict, f"{found.text}: {found.reason}"
    assert found.truth[player].untrue == untrue
    assert not found.as_expected  # of `detach`, whose place it took


def test_missing_zero_grad_cannot_be_seen_with_one_d_update(judge: Judge) -> None:
    assert judge(NothingClearedBetweenUpdates, ratio="2:1").verdict is Verdict.SAME


def test_a_further_forward_pass_is_another_trajectory(judge: Judge, own: Callable[..., dict[str, Any]]) -> None:
    plain = judge(OneMoreForward)
    assert plain.verdict is Verdict.SAME  # nothing in it remembers
    normed = judge(OneMoreForward, model=own(d={"norm": "new"}))
    assert normed.verdict is Verdict.OTHER_ESTIMATOR
    assert normed.trajectory_difference
    assert all(truth.untrue == 0 for truth in normed.truth.values())


def test_a_network_that_is_never_stepped_is_not_trained(judge: Judge) -> None:
    found = judge(NeverStepsTheDiscriminator)
    assert found.verdict is Verdict.NOT_TRAINED
    assert "discriminator" in found.reason
