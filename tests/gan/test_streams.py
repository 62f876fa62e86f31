"""Each random stream has a seed of its own: nothing that one arm draws shifts what another one sees."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from ganbench.gan.session import Session
from ganbench.gan.streams import Latents, stream
from ganbench.spec.strategy import STRATEGIES

SessionOf = Callable[..., Session]
CPU = torch.device("cpu")
COUNT = 12


def drawn(session: Session) -> dict[str, list[Tensor]]:
    """The first latents, real batches and own latents of D, in the order in which they are used."""
    rounds = [session.draw() for _ in range(COUNT)]
    flat = {
        "latents": itertools.chain.from_iterable(given.latents for given in rounds),
        "real": itertools.chain.from_iterable(given.real for given in rounds),
        "own": (own for given in rounds for own in given.own_latents if own is not None),
    }
    return {name: list(itertools.islice(tensors, COUNT)) for name, tensors in flat.items()}


def same(first: list[Tensor], second: list[Tensor]) -> bool:
    assert len(first) == len(second) == COUNT
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(
    "change",
    [
        {"ratio": "3:2"},
        {"ratio": "1:5", "real_batches": "per_d_update"},
        {"order": "d_first"},
        *({"strategy": name} for name in STRATEGIES if name != "detach"),
        {"loss": "wgan_gp"},
        {"model": {"name": "mlp", "hidden": 16, "batch_norm": True}},
        {"optimizer": {"name": "sgd"}},
    ],
    ids=str,
)
def test_the_kth_latents_and_real_batch_are_the_same_in_every_arm(
    session_of: SessionOf, change: dict[str, Any]
) -> None:
    base, other = drawn(session_of(ratio="2:1", seed=3)), drawn(session_of(**{"ratio": "2:1", "seed": 3, **change}))
    assert same(base["latents"], other["latents"])
    assert same(base["real"], other["real"])


def test_d_s_own_latents_are_a_stream_apart(session_of: SessionOf) -> None:
    fresh = drawn(session_of(strategy="no_grad_fresh", ratio="2:3", seed=3))
    assert not any(torch.equal(a, b) for a in fresh["own"] for b in fresh["latents"])
    again = drawn(session_of(strategy="no_grad_fresh", ratio="1:1", seed=3))
    assert same(fresh["own"], again["own"])


def test_training_between_the_draws_changes_nothing(session_of: SessionOf, own: Callable[..., dict[str, Any]]) -> None:
    """Dropout draws from the global state, the penalty from a stream of its own."""
    fields = {"ratio": "2:2", "loss": "wgan_gp", "model": own(g={"dropout": 0.5}, d={"dropout": 0.5})}
    played, drawing = session_of(**fields), session_of(**fields)
    for _ in range(3):
        played.play_round()
        drawing.draw()
    mine, its = drawn(played), drawn(drawing)
    assert same(mine["latents"], its["latents"])
    assert same(mine["real"], its["real"])


def test_seeds_give_other_latents_and_other_orders(session_of: SessionOf) -> None:
    first, second = drawn(session_of(seed=0)), drawn(session_of(seed=1))
    for name in ("latents", "real"):
        assert not any(torch.equal(a, b) for a, b in zip(first[name], second[name], strict=True))


def test_a_session_is_repeatable(session_of: SessionOf, own: Callable[..., dict[str, Any]]) -> None:
    fields = {"ratio": "2:3", "loss": "wgan_gp", "model": own(g={"dropout": 0.5}, d={"dropout": 0.5})}
    found = []
    for noise in range(2):
        torch.manual_seed(noise)
        session = session_of(**fields)
        for _ in range(3):
            session.play_round()
        found.append(session.checksums())
    assert found[0] == found[1]
    other = session_of(**fields, seed=1)
    for _ in range(3):
        other.play_round()
    assert other.checksums()["weights"] != found[0]["weights"]


def test_streams_are_named() -> None:
    def first(*name: str, seed: int = 0) -> Tensor:
        return torch.rand(4, generator=stream(seed, *name))

    assert torch.equal(first("latents", "generator"), first("latents", "generator"))
    assert not torch.equal(first("latents", "generator"), first("latents", "discriminator"))
    assert not torch.equal(first("penalty"), first("penalty", seed=1))


@pytest.mark.parametrize(("distribution", "mean_square"), [("normal", 1.0), ("uniform", 1 / 3)])
def test_latents_have_the_distribution_asked_for(distribution: str, mean_square: float) -> None:
    latents = Latents(4000, (5, 1, 2), distribution, stream(0, "test")).next(CPU)
    assert latents.shape == (4000, 5, 1, 2)
    assert latents.mean().item() == pytest.approx(0.0, abs=0.02)
    assert latents.square().mean().item() == pytest.approx(mean_square, rel=0.03)
    if distribution == "uniform":
        assert latents.min() >= -1
        assert latents.max() < 1
    else:
        assert latents.max() > 2


def test_latents_go_on_and_leave_the_global_random_state() -> None:
    before = torch.get_rng_state()
    source = Latents(3, (2,), "normal", stream(0, "test"))
    assert not torch.equal(source.next(CPU), source.next(CPU))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
def test_a_gpu_sees_the_same_streams(session_of: SessionOf) -> None:
    fields = {"strategy": "no_grad_fresh", "ratio": "2:3"}
    here, there = drawn(session_of(**fields)), drawn(session_of(on="cuda", **fields))
    assert same(here["latents"], [t.cpu() for t in there["latents"]])
    assert same(here["own"], [t.cpu() for t in there["own"]])
    for mine, its in zip(here["real"], there["real"], strict=True):
        torch.testing.assert_close(mine, its.cpu())
