"""Steps under observation: the published listings are named for what they are, and sound ones give no finding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ganbench.errors import UserCodeError
from ganbench.gan.data import Data
from ganbench.gan.observe import observe_step
from ganbench.record.finding import Finding
from ganbench.record.loop import LoopSeen
from ganbench.spec.run import RunSpec

STEPS = Path(__file__).with_name("steps.py")
FUSED = {"g_lr": 1e-2, "d_lr": 1e-2, "fused": True}
SpecOf = Callable[..., RunSpec]
Observe = Callable[..., LoopSeen]


@pytest.fixture(name="observe")
def _observe(spec_of: SpecOf, data: Data) -> Observe:
    def observe(step: str, **fields: Any) -> LoopSeen:
        return observe_step(spec_of(**fields), data, torch.device("cpu"), f"{STEPS}:{step}")

    return observe


def found(seen: LoopSeen) -> dict[str, Finding]:
    return {finding.code: finding for finding in seen.findings}


def test_the_first_listing_goes_backward_a_second_time(observe: Observe) -> None:
    seen = observe("one_fake_for_both")
    finding = found(seen)["second-backward"]
    assert finding.severity == "error"
    assert "graph_freed" in finding.what
    assert "call 1, after updates G G" in finding.evidence
    assert "fake.detach()" in finding.advice


def test_the_retained_graph_is_modified_in_place(observe: Observe) -> None:
    finding = found(observe("graph_retained"))["modified-in-place"]
    assert finding.severity == "error"
    assert "weights of the generator that a step has changed" in finding.what


def test_with_fused_optimizers_the_retained_graph_is_stale_and_nothing_raises(observe: Observe) -> None:
    seen = observe("one_output_for_both", optimizer=FUSED)
    assert all(update.stale for one in seen.rounds for update in one.updates if update.network == "G")
    assert "gradients-stale" in found(seen)
    assert "modified-in-place" in found(observe("one_output_for_both"))


def test_clearing_ones_own_gradients_only_contaminates_the_discriminator(observe: Observe) -> None:
    seen = observe("own_gradients_cleared_only")
    finding = found(seen)["gradients-contaminated"]
    assert "discriminator" in finding.what
    assert "6 of 6 steps of D" in finding.evidence
    assert all(u.leftover > 0.1 for one in seen.rounds for u in one.updates if u.network == "D")
    assert [one.order for one in seen.rounds] == ["G G D"] * 6


@pytest.mark.parametrize(
    ("step", "order"),
    [
        ("sound", "G G D D D"),
        ("dcgan", "D G"),
        ("wasserstein", "D D D D D G"),
        ("in_micro_batches", "D G"),
    ],
)
def test_a_sound_step_gives_no_finding(observe: Observe, step: str, order: str) -> None:
    seen = observe(step)
    assert seen.findings == ()
    assert [one.order for one in seen.rounds] == [order] * 6


def test_an_order_that_changes_from_call_to_call_is_told(observe: Observe) -> None:
    seen = observe("every_third")
    assert [one.order for one in seen.rounds] == ["D", "D", "D G"] * 2
    assert "it changes from call to call: D | D | D G" in seen.told()[0]
    assert seen.findings == ()


@pytest.mark.parametrize(
    ("step", "code", "text"),
    [
        ("nothing_cleared_between", "zero-grad-missing", "D"),
        ("detached_for_both", "network-never-moves", "generator"),
        ("keeps_losses", "graph-grows", "history"),
        ("keeps_losses", "host-waits", ".item()"),
        ("needlessly_retained", "retain-graph-needless", "retain_graph"),
    ],
)
def test_what_else_goes_wrong(observe: Observe, step: str, code: str, text: str) -> None:
    seen = found(observe(step))
    assert code in seen
    finding = seen[code]
    assert text in " ".join((finding.what, finding.evidence, finding.advice))


def test_the_missing_zero_grad_shows_with_several_d_updates(observe: Observe) -> None:
    seen = observe("nothing_cleared_between")
    repeated = [u.repeated for u in seen.rounds[0].updates if u.network == "D"]
    assert repeated[0] == 0
    assert all(share > 0.1 for share in repeated[1:])


def test_a_step_that_wants_what_is_not_known_is_told_the_names(observe: Observe) -> None:
    with pytest.raises(UserCodeError, match=r"wants 'schedulers', which is not known.*opt_g"):
        observe("wants_more")
    with pytest.raises(UserCodeError, match=r"no .*'nothing'|has no 'nothing'"):
        observe("nothing")


def test_observing_leaves_no_trace(observe: Observe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    random, backward, grad = torch.get_rng_state(), torch.Tensor.backward, torch.autograd.grad
    seen = observe("writes")
    assert any("wrote images/log.txt" in line for line in seen.lines)
    assert list(tmp_path.iterdir()) == []
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.Tensor.backward is backward
    assert torch.autograd.grad is grad
    observe("one_fake_for_both")  # one that raises
    assert torch.Tensor.backward is backward
