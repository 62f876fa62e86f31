"""Networks with layers in common: each player's optimizer moves them, as in a loop written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from ganbench.errors import UserCodeError
from ganbench.gan.data import Data
from ganbench.gan.session import Session
from ganbench.spec.run import RunSpec

NETS = """
import torch
from torch import nn

class G(nn.Module):
    def __init__(self, code):
        super().__init__()
        self.inner, self.code, self.out = nn.Linear(6, 16), code, nn.Linear(8, 16)
    def forward(self, z):
        return torch.tanh(self.out(torch.relu(self.code(torch.relu(self.inner(z)))))).view(-1, 1, 4, 4)

class D(nn.Module):
    def __init__(self, code):
        super().__init__()
        self.code, self.out = code, nn.Linear(8, 1)
    def forward(self, x):
        return self.out(torch.relu(self.code(x.flatten(1))))

def both(width=8):
    code = nn.Linear(16, width)
    return G(code), D(code)
"""


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("nets") / "shared_nets.py"
    file.write_text(NETS)
    return f"{file}:both"


@pytest.fixture
def session_with(data: Data, spec_of: Callable[..., RunSpec], factory: str) -> Callable[..., Session]:
    def session(**fields: Any) -> Session:
        return Session(spec_of(model={"factory": factory}, **fields), data, torch.device("cpu"))

    return session


def by_hand(session: Session, rounds: int) -> None:
    """The textbook's loop with `zero_grad` on one's own optimizer before each backward pass, 2:3."""
    g, d = session.pair.g.module, session.pair.d.module
    opt_g = torch.optim.Adam(g.parameters(), lr=1e-2, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(d.parameters(), lr=1e-2, betas=(0.5, 0.999))
    one, zero = torch.ones(8, 1), torch.zeros(8, 1)
    for _ in range(rounds):
        given = session.draw()
        for latents in given.latents:
            fake = g(latents)
            opt_g.zero_grad()
            F.binary_cross_entropy_with_logits(d(fake), one).backward()
            opt_g.step()
        for _ in range(3):
            opt_d.zero_grad()
            on_real = F.binary_cross_entropy_with_logits(d(given.real[0]), one)
            (on_real + F.binary_cross_entropy_with_logits(d(fake.detach()), zero)).backward()
            opt_d.step()


@pytest.mark.parametrize("strategy", ["detach", "toggle"])
def test_both_players_move_what_they_share_as_by_hand(session_with: Callable[..., Session], strategy: str) -> None:
    session, other = (session_with(ratio="2:3", strategy=strategy) for _ in range(2))
    assert len(session.pair.shared) == 2
    for _ in range(3):
        session.play_round()
    by_hand(other, 3)
    assert session.checksums() == other.checksums()
    assert all(p.grad is None for p in session.pair.g.trainable + session.pair.d.trainable)
    assert all(p.requires_grad for p in session.pair.g.trainable + session.pair.d.trainable)


def test_each_update_moves_the_shared_layer(session_with: Callable[..., Session]) -> None:
    session = session_with(ratio="1:1")
    code = session.pair.g.module.code.weight
    moved = []
    for player in (session.pair.g, session.pair.d):
        step = player.optimizer.step

        def watched(step: Any = step) -> None:
            before = code.detach().clone()
            step()
            moved.append(not torch.equal(before, code))

        player.optimizer.step = watched  # type: ignore[method-assign]
    session.play_round()
    assert moved == [True, True]


@pytest.mark.parametrize("strategy", ["no_grad_replay", "no_grad_fresh"])
def test_other_estimators_train_them_too(session_with: Callable[..., Session], strategy: str) -> None:
    session = session_with(ratio="1:2", strategy=strategy)
    before = session.checksums()
    for _ in range(2):
        session.play_round()
    assert all(session.checksums()[name] != before[name] for name in before)


@pytest.mark.parametrize("strategy", ["inputs", "retain_deferred"])
def test_strategies_whose_fakes_are_attached_are_refused(session_with: Callable[..., Session], strategy: str) -> None:
    with pytest.raises(UserCodeError, match=f"share 2 parameters, and strategy {strategy}.*use detach, toggle"):
        session_with(strategy=strategy)


def test_networks_without_layers_in_common_share_nothing(session_of: Callable[..., Session]) -> None:
    pair = session_of().pair
    assert not pair.shared
    assert pair.g.exclusive is pair.g.trainable


def test_weights_follow_the_seed(session_with: Callable[..., Session]) -> None:
    sums = [session_with(seed=seed).checksums()["weights"] for seed in (0, 0, 1)]
    assert sums[0] == sums[1] != sums[2]
