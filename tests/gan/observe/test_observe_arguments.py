"""A step's parameters are given what their names ask for."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from ganbench.errors import UserCodeError
from ganbench.gan.data import Data
from ganbench.gan.observe import Given, given_of
from ganbench.gan.observe.arguments import NAMES, plan_for
from ganbench.spec.run import RunSpec

DOCS = Path(__file__).resolve().parents[3] / "docs" / "bring-your-own.md"
GIVEN = {role: role for role in NAMES}


def test_each_name_asks_for_one_thing_and_is_in_the_docs() -> None:
    plain = [name.replace("_", "").lower() for names in NAMES.values() for name in names]
    roles = {}
    for role, names in NAMES.items():
        for name in names:
            assert roles.setdefault(name.replace("_", "").lower(), role) == role
    assert len(plain) > 80
    documented = [re.findall(r"`(\w+)`", line.split("|")[2]) for line in DOCS.read_text().splitlines() if "| `" in line]
    assert [list(names) for names in NAMES.values()] == documented[-len(NAMES) :]


def test_case_underscores_and_positions() -> None:
    def step(NetG, dis, /, Optimizer_g, *, OPT_D, real_imgs, Z, dropout=0.3, criterion="mine", **further):
        return NetG, dis, Optimizer_g, OPT_D, real_imgs, Z, dropout, criterion, further

    plan = plan_for(step, "mine.py:step", {"criterion": "there is none"})
    expected = ("generator", "discriminator", "g_optimizer", "d_optimizer", "real", "latents", 0.3, "mine", {})
    assert plan.call(step, GIVEN) == expected
    assert plan.wanted == {"generator", "discriminator", "g_optimizer", "d_optimizer", "real", "latents"}


def generating(G):
    yield G


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (lambda G, loader: (G, loader), "wants 'loader', which is not known"),
        (lambda G, loss: (G, loss), "wants 'loss', but hinge has none"),
        (nn.Linear, "is a class"),
        (3, "is of type int"),
        (generating, "yields or awaits"),
    ],
)
def test_what_cannot_be_called_is_told(step: Any, words: str) -> None:
    with pytest.raises(UserCodeError, match=words):
        plan_for(step, "mine.py:step", {"criterion": "hinge has none"})


@pytest.mark.parametrize(
    ("loss", "kind"),
    [("bce", nn.BCEWithLogitsLoss), ("bce_prob", nn.BCELoss), ("lsgan", nn.MSELoss), ("hinge", type(None))],
)
def test_what_an_experiment_gives(
    spec_of: Callable[..., RunSpec], data: Data, loss: str, kind: type[nn.Module]
) -> None:
    given: Given = given_of(spec_of(loss=loss), data, torch.device("cpu"))
    first, second = given.for_round(0), given.for_round(1)
    assert set(first) == set(NAMES)
    assert type(first["criterion"]) is kind
    assert ("criterion" in given.lacking) == (kind is type(None))
    assert first["real"].shape == (8, 1, 4, 4)
    assert first["latents"].shape == (8, 6)
    assert not torch.equal(first["real"], second["real"])
    assert not torch.equal(first["latents"], second["latents"])
    assert (second["round"], second["batch_size"], second["latent_dim"]) == (1, 8, 6)
    assert first["labels"] is None
    held = {id(p) for group in first["g_optimizer"].param_groups for p in group["params"]}
    assert held == {id(p) for p in first["generator"].parameters()}
