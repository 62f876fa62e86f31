"""What a round leaves behind: no graph that a penalty tied into a circle, and no batch scored together with another."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch
from torch import nn

from ganbench.gan.data import load
from ganbench.gan.session import Session
from ganbench.spec.run import RunSpec

SessionOf = Callable[..., Session]


@pytest.mark.parametrize("strategy", ["detach", "inputs", "retain_deferred"])
def test_a_penalty_leaves_no_tensors_for_the_garbage_collector(session_of: SessionOf, strategy: str) -> None:
    """`backward(create_graph=True)` would: gradients and parameters would hold each other until a collection."""
    session = session_of(strategy=strategy, loss="wgan_gp", ratio="2:3")

    def alive(rounds: int) -> int:
        for _ in range(rounds):
            session.play_round()
        session.pair.notes.clear()
        return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())

    alive(2)  # Adam's state is there from now on
    gc.collect()
    gc.disable()
    try:
        assert alive(1) == alive(4)
    finally:
        gc.enable()


def test_real_items_and_fakes_are_scored_apart(spec_of: Callable[..., RunSpec]) -> None:
    """In one batch, BatchNorm would mix their statistics."""
    spec = spec_of(model={"name": "dcgan", "width": 2}, dataset={"name": "digits", "size": 28})
    session = Session(spec, load(spec.dataset), torch.device("cpu"))
    norms = [module for module in session.pair.d.module.modules() if isinstance(module, nn.BatchNorm2d)]
    assert norms
    fakes = session.pair.generate(session.draw().latents[0]).detach()
    real = session.draw().real[0]
    session.pair.discriminator_loss(real, fakes)
    assert [int(norm.num_batches_tracked) for norm in norms] == [2] * len(norms)
    apart = session.pair.score(real), session.pair.score(fakes)
    together = session.pair.score(torch.cat([real, fakes]))
    assert not torch.allclose(torch.cat(apart), together, atol=1e-3)
