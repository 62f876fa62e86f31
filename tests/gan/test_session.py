"""Samples leave a run as it was, and checksums tell every difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ganbench.errors import DeviceUnavailable, UserCodeError
from ganbench.gan.session import Session, device_for

SessionOf = Callable[..., Session]
Own = Callable[..., dict[str, Any]]


@pytest.fixture
def session(session_of: SessionOf, own: Own) -> Session:
    """With BatchNorm and dropout in G and spectral norm in D, a few rounds in."""
    made = session_of(ratio="2:3", model=own(g={"batch_norm": True, "dropout": 0.5}, d={"norm": "new", "dropout": 0.5}))
    for _ in range(3):
        made.play_round()
    return made


def sampled(session: Session, count: int = 20, seed: int = 5) -> Tensor:
    return session.samples(count, torch.Generator().manual_seed(seed), noise_seed=9)


def test_samples_leave_random_state_modes_weights_and_buffers(session: Session) -> None:
    session.pair.g.module.layers[1].eval()  # a user may keep a layer in evaluation mode while training
    modules = [*session.pair.g.module.modules(), *session.pair.d.module.modules()]
    modes = [module.training for module in modules]
    assert len(set(modes)) == 2
    state, sums = torch.get_rng_state(), session.checksums()
    sampled(session)
    assert torch.equal(torch.get_rng_state(), state)
    assert [module.training for module in modules] == modes
    assert session.checksums() == sums


def test_modes_are_put_back_though_g_raises(session: Session) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("in G")

    session.pair.g.module.register_forward_pre_hook(fail)
    state = torch.get_rng_state()
    with pytest.raises(RuntimeError, match="in G"):
        sampled(session)
    assert all(module.training for module in session.pair.g.module.modules())
    assert torch.equal(torch.get_rng_state(), state)


def test_samples_do_not_change_what_follows(session_of: SessionOf, own: Own) -> None:
    fields = {"ratio": "2:3", "model": own(g={"batch_norm": True, "dropout": 0.5}, d={"norm": "old"})}
    found = []
    for looks in (0, 2):
        session = session_of(**fields)
        for _ in range(4):
            for _ in range(looks):
                sampled(session)
            session.play_round()
        found.append(session.checksums())
    assert found[0] == found[1]


def test_the_same_latents_each_time(session: Session) -> None:
    first = sampled(session)
    torch.randn(5)
    assert torch.equal(sampled(session), first)
    assert not torch.equal(sampled(session, seed=6), first)
    session.play_round()
    assert not torch.equal(sampled(session), first)


def test_samples_are_made_in_evaluation_mode(session: Session) -> None:
    latents = torch.randn(20, 6, generator=torch.Generator().manual_seed(5))
    session.pair.g.module.eval()
    with torch.no_grad():
        expected = session.pair.g.module(latents)
    session.pair.g.module.train()
    assert torch.equal(sampled(session), expected)


def test_noise_of_the_model_itself_is_seeded(session: Session) -> None:
    class Noisy(nn.Module):
        def forward(self, latents: Tensor) -> Tensor:
            return latents + torch.rand(())

    session.pair.g.module = Noisy()
    assert torch.equal(sampled(session), sampled(session))
    other = session.samples(20, torch.Generator().manual_seed(5), noise_seed=10)
    assert not torch.equal(sampled(session), other)


@pytest.mark.parametrize("count", [1, 255, 256, 257, 600])
def test_as_many_samples_as_asked_for(session: Session, count: int) -> None:
    fakes = sampled(session, count)
    assert fakes.shape == (count, 1, 4, 4)
    assert fakes.dtype == torch.float32
    assert not fakes.requires_grad
    # No batch comes twice. (Two latents may meet where no hidden unit of a small G is on.)
    assert len({tuple(row) for row in fakes.flatten(1).tolist()}) > 0.98 * count


def test_checksums_tell_which_network_differs(session: Session) -> None:
    before = session.checksums()
    assert set(before) == {"generator", "discriminator", "weights"}
    with torch.no_grad():
        session.pair.d.module.layers[3].bias.add_(1e-3)
    after = session.checksums()
    assert after["generator"] == before["generator"]
    assert after["discriminator"] != before["discriminator"]
    assert after["weights"] != before["weights"]


@pytest.mark.parametrize("buffer", ["running_mean", "running_var", "num_batches_tracked"])
def test_checksums_see_buffers(session: Session, buffer: str) -> None:
    before = session.checksums()
    getattr(session.pair.g.module.layers[1], buffer).add_(1)
    after = session.checksums()
    assert after["generator"] != before["generator"]
    assert after["weights"] != before["weights"]
    assert after["discriminator"] == before["discriminator"]


def test_checksums_see_what_is_frozen_and_not_what_is_only_used(session_of: SessionOf, own: Own) -> None:
    first, second = session_of(model=own(g={"frozen": True})), session_of(model=own())
    assert first.checksums() == second.checksums()
    with torch.no_grad():
        first.pair.g.module.layers[0].weight.mul_(2)
    assert first.checksums() != second.checksums()


def test_tensors_are_those_of_both_players_and_the_data(session: Session) -> None:
    kept = {id(tensor) for tensor in session.tensors()}
    for player in (session.pair.g, session.pair.d):
        assert {id(p) for p in player.module.parameters()} <= kept
        assert {id(b) for b in player.module.buffers()} <= kept
        assert {id(state["exp_avg"]) for state in player.optimizer.state.values()} <= kept
    assert id(session.data.items) in kept


def test_segments_of_a_round_are_marked_in_order(session_of: SessionOf) -> None:
    session = session_of(ratio="2:1")
    marks: list[str] = []
    session.pair.mark = marks.append
    session.play_round()
    assert marks == ["data", "g", "g", "g_step", "g", "g", "g_step", "d", "d_step"]


def test_a_loss_on_probabilities_brings_its_sigmoid(session_of: SessionOf) -> None:
    session = session_of(loss="bce_prob", ratio="1:2")
    session.play_round()
    scores = session.pair.score(session.draw().real[0])
    assert ((scores > 0) & (scores < 1)).all()


def test_a_wrong_user_file_is_named(session_of: SessionOf, own: Own) -> None:
    with pytest.raises(UserCodeError, match="has no 'Absent'"):
        session_of(model=own("Absent"))


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device_for("cpu") == torch.device("cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceUnavailable, match="use --device cpu"):
        device_for("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert device_for("cuda") == torch.device("cuda", 0)
    assert device_for("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(DeviceUnavailable, match="there are 2"):
        device_for("cuda:2")


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_samples_on_cuda_leave_the_random_states(session_of: SessionOf, own: Own) -> None:
    session = session_of(on="cuda", model=own(g={"batch_norm": True, "dropout": 0.5}))
    session.play_round()
    states = torch.get_rng_state(), torch.cuda.get_rng_state()
    sums = session.checksums()
    first = sampled(session)
    assert first.device == torch.device("cpu")
    assert torch.equal(torch.get_rng_state(), states[0])
    assert torch.equal(torch.cuda.get_rng_state(), states[1])
    assert session.checksums() == sums
    assert torch.equal(sampled(session), first)
