"""A user's own losses, optimizers and picked outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from ganbench.errors import UserCodeError
from ganbench.gan.losses import make_loss
from ganbench.gan.models.output import a_tensor, picker
from ganbench.gan.session import Session
from ganbench.spec.run import RunSpec

MINE = """
import torch
from torch import nn
import torch.nn.functional as F

def g_loss(fake):
    return F.softplus(-fake).mean()

def d_loss(real, fake):
    return F.softplus(-real).mean() + F.softplus(fake).mean()

class Softplus:
    def __init__(self, weight=1.0):
        self.weight = weight
    def generator(self, fake_scores):
        return self.weight * g_loss(fake_scores)
    def discriminator(self, real_scores, fake_scores):
        return self.weight * d_loss(real_scores, fake_scores)

ready = Softplus()
adversarial_loss = nn.BCEWithLogitsLoss()
probabilities = nn.BCELoss()
def many(fake): return fake
def plain(fake): return 3.0
constant = 7

def make(parameters, lr, alpha=0.5):
    return torch.optim.RMSprop(parameters, lr=lr, alpha=alpha)
def no_optimizer(parameters, lr): return list(parameters)

def first(outputs): return outputs[0]
def count(outputs): return len(outputs)
def broken(outputs): return outputs.scores
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    file = tmp_path_factory.mktemp("own") / "own_parts.py"
    file.write_text(MINE)
    return lambda name: f"{file}:{name}"


def spec(**fields: Any) -> RunSpec:
    return RunSpec.model_validate(fields)


def test_pair_object_class_and_criterion_are_the_same_loss(place: Callable[[str], str]) -> None:
    given: list[Any] = [
        {"generator": place("g_loss"), "discriminator": place("d_loss")},
        place("ready"),
        place("Softplus"),
        {"name": place("Softplus"), "args": {"weight": 1.0}},
        place("adversarial_loss"),
        "torch.nn:BCEWithLogitsLoss",
    ]
    real, fake = torch.randn(7, 1), torch.randn(7, 1)
    for one in given:
        loss = make_loss(spec(loss=one).loss)
        assert torch.allclose(loss.generator(fake), F.softplus(-fake).mean())
        total, on_real, on_fake = loss.discriminator(real, fake)
        assert torch.allclose(total, F.softplus(-real).mean() + F.softplus(fake).mean())
        assert (on_real is None) == (on_fake is None) == (not loss.in_parts)
        assert not loss.on_probabilities
    assert make_loss(spec(loss=place("probabilities")).loss).on_probabilities
    doubled = make_loss(spec(loss={"name": place("Softplus"), "args": {"weight": 2.0}}).loss)
    assert torch.allclose(doubled.generator(fake), 2 * F.softplus(-fake).mean())


@pytest.mark.parametrize(
    ("loss", "parts"),
    [
        ({"generator": "g_loss", "discriminator": "constant"}, ["loss.discriminator: ", "is a int", "function"]),
        ({"name": "constant"}, ["gives a int", "generator(fake_scores)"]),
        ({"name": "g_loss"}, ["g_loss() of", "raised TypeError", "half a loss"]),
        ({"name": "make"}, ["raised TypeError"]),
        ({"name": "ready", "args": {"a": 1}}, ["is made already"]),
        ({"name": "Softplus", "args": {"wait": 1}}, ["Softplus(wait=1) of", "raised TypeError"]),
    ],
)
def test_what_is_no_loss_is_told(place: Callable[[str], str], loss: dict[str, Any], parts: list[str]) -> None:
    given = {key: place(value) if isinstance(value, str) else value for key, value in loss.items()}
    with pytest.raises(UserCodeError) as caught:
        make_loss(spec(loss=given).loss)
    assert [part for part in parts if part not in str(caught.value)] == []


@pytest.mark.parametrize("name", ["many", "plain"])
def test_a_loss_that_is_not_one_number_is_told(place: Callable[[str], str], name: str) -> None:
    loss = make_loss(spec(loss={"generator": place(name), "discriminator": place("d_loss")}).loss)
    with pytest.raises(UserCodeError, match="one number"):
        loss.generator(torch.zeros(3, 1))


def test_curves_lack_the_parts_that_a_loss_has_not(
    place: Callable[[str], str], session_of: Callable[..., Session]
) -> None:
    from ganbench.gan.trainer import Trainer
    from ganbench.measure import clock_for
    from ganbench.record.curves import Thinner, rows_of

    session = session_of(loss=place("ready"), ratio="1:2", budget="6 updates")
    told: list[Any] = []
    Trainer(session, clock_for(torch.device("cpu")), lambda _progress: {"quality/x": 1.0}, told.append).train()
    rows = [row for columns in told for row in rows_of(columns)]
    shown = {key for row in rows for key, _, _ in Thinner().take(row, 0.5)}
    assert {"loss/g", "loss/d", "score/real", "score/fake"} <= shown
    assert not {"loss/d_real", "loss/d_fake"} & shown


def test_a_users_optimizer_is_made_for_each_network(
    place: Callable[[str], str], session_of: Callable[..., Session]
) -> None:
    optimizer = {"name": place("make"), "g_lr": 1e-3, "d_lr": 2e-3, "args": {"alpha": 0.7}}
    mine = session_of(optimizer=optimizer, ratio="2:3")
    settings = [
        (p.optimizer.param_groups[0]["lr"], p.optimizer.param_groups[0]["alpha"]) for p in (mine.pair.g, mine.pair.d)
    ]
    assert settings == [(1e-3, 0.7), (2e-3, 0.7)]
    before = mine.checksums()
    mine.play_round()
    assert all(mine.checksums()[name] != before[name] for name in before)


@pytest.mark.parametrize(
    ("name", "args", "text"),
    [
        ("no_optimizer", {}, "gave a list; a torch.optim.Optimizer is needed"),
        ("make", {"alfa": 1}, "make(parameters, lr=0.0002, alfa=1) of"),
        ("Absent", {}, "optimizer: "),
    ],
)
def test_what_is_no_optimizer_is_told(
    place: Callable[[str], str], session_of: Callable[..., Session], name: str, args: dict[str, Any], text: str
) -> None:
    with pytest.raises(UserCodeError) as caught:
        session_of(optimizer={"name": place(name), "args": args})
    assert text in str(caught.value)


def test_outputs_are_picked(place: Callable[[str], str]) -> None:
    scores, other = torch.ones(3, 1), torch.zeros(3, 10)
    assert picker(None, "generator") is None
    for output, made in (
        (0, (scores, other)),
        (-1, [other, scores]),
        ("scores", {"scores": scores, "classes": other}),
        (1, {1: scores}),
        ("values", torch.return_types.max((scores, other))),
        (place("first"), (scores, other)),
        (3, scores),
    ):
        pick = picker(output, "discriminator")
        assert pick is not None
        assert pick(made) is scores


@pytest.mark.parametrize(
    ("output", "parts"),
    [
        (2, ["output.discriminator", "no tensor at 2 of a tuple of (Tensor (3, 1), NoneType)"]),
        (1, ["no tensor at 1"]),
        ("scores", ["no tensor at 'scores'"]),
        ("count", ["count(…) gave a int"]),
        ("broken", ["broken(a tuple of", "raised AttributeError at line"]),
    ],
)
def test_an_output_that_is_not_there_is_told(place: Callable[[str], str], output: Any, parts: list[str]) -> None:
    pick = picker(place(output) if output in ("count", "broken") else output, "discriminator")
    assert pick is not None
    with pytest.raises(UserCodeError) as caught:
        pick((torch.ones(3, 1), None))
    assert [part for part in parts if part not in str(caught.value)] == []


def test_several_tensors_without_a_choice_are_told() -> None:
    with pytest.raises(UserCodeError, match=r"generator: it gives a tuple of .*output: \{generator: 0\}"):
        a_tensor((torch.ones(2), torch.ones(2)), "generator")
