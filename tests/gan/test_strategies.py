"""What single strategies promise beyond their trajectory: flags, idle gradients, and steps."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ganbench.gan.player import Player
from ganbench.gan.session import Session
from ganbench.gan.strategies import make
from ganbench.spec.strategy import CORRECT, STRATEGIES, Verdict

SessionOf = Callable[..., Session]
Own = Callable[..., dict[str, Any]]
ROUNDS = 3


def players(session: Session) -> tuple[Player, Player]:
    return session.pair.g, session.pair.d


def flags(module: nn.Module) -> list[bool]:
    return [p.requires_grad for p in module.parameters()]


def grads(player: Player) -> list[Tensor | None]:
    return [None if p.grad is None else p.grad.clone() for p in player.module.parameters()]


@pytest.mark.parametrize("name", STRATEGIES)
def test_each_row_of_the_table_has_a_class_of_its_own(session_of: SessionOf, name: str) -> None:
    pair = session_of().pair
    assert type(make(name, pair)).__name__.lower() == name.replace("_", "")


@pytest.mark.parametrize("fused", [False, True], ids=["plain", "fused"])
@pytest.mark.parametrize("ratio", ["2:1", "1:3", "3:2"])
@pytest.mark.parametrize("order", ["g_first", "d_first"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_each_update_is_one_step(session_of: SessionOf, strategy: str, order: str, ratio: str, fused: bool) -> None:
    session = session_of(strategy=strategy, order=order, ratio=ratio, optimizer={"fused": fused})
    if session.spec.expected.verdict is Verdict.RAISES:
        with pytest.raises(RuntimeError):
            session.play_round()
        return
    steps: Counter[str] = Counter()
    for player in players(session):
        player.optimizer.register_step_post_hook(lambda *_, name=player.name: steps.update([name]))
    for done in range(1, ROUNDS + 1):
        session.play_round()
        assert steps == {"g": done * session.spec.ratio.g, "d": done * session.spec.ratio.d}


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name not in ("reuse", "retain_as_published")])
@pytest.mark.parametrize("order", ["g_first", "d_first"])
def test_what_its_author_froze_stays_as_it_is(session_of: SessionOf, own: Own, strategy: str, order: str) -> None:
    model = own(g={"frozen": True}, d={"frozen": True})
    session = session_of(strategy=strategy, order=order, ratio="2:3", model=model)
    before = {player.name: flags(player.module) for player in players(session)}
    assert before == {"g": [False, False, True, True], "d": [False, False, True, True]}
    weights = {player.name: [p.detach().clone() for p in player.module.parameters()] for player in players(session)}
    for _ in range(ROUNDS):
        session.play_round()
        assert {player.name: flags(player.module) for player in players(session)} == before
    for player in players(session):
        moved = [not torch.equal(p, q) for p, q in zip(player.module.parameters(), weights[player.name], strict=True)]
        assert moved == before[player.name]
        assert all(p.grad is None for p in player.module.parameters() if not p.requires_grad)


@pytest.mark.parametrize("strategy", ["toggle", "inputs", "retain_deferred"])
def test_frozen_layers_do_not_part_a_strategy_from_detach(session_of: SessionOf, own: Own, strategy: str) -> None:
    fields = {"ratio": "2:3", "model": own(g={"frozen": True}, d={"frozen": True})}
    found = []
    for name in ("detach", strategy):
        session = session_of(strategy=name, **fields)
        for _ in range(ROUNDS):
            session.play_round()
        found.append(session.checksums()["weights"])
    assert found[0] == found[1]


@pytest.mark.parametrize("order", ["g_first", "d_first"])
def test_toggle_freezes_the_idle_network_while_the_loss_is_made_and_no_longer(
    session_of: SessionOf, order: str
) -> None:
    session = session_of(strategy="toggle", order=order, ratio="2:3")
    g, d = players(session)
    seen: list[tuple[bool, bool]] = []
    d.module.register_forward_pre_hook(lambda *_: seen.append((all(flags(g.module)), any(flags(d.module)))))
    for player in (g, d):
        player.before_step = lambda _: seen.append((all(flags(g.module)), all(flags(d.module))))
    session.play_round()
    assert all(flags(g.module))
    assert all(flags(d.module))
    # (G trainable, D trainable): D scores once for a G update and twice for a D update, then comes the step.
    g_update, d_update = [(True, False), (True, True)], [(False, True), (False, True), (True, True)]
    phases = [g_update * 2, d_update * 3]
    assert seen == list(itertools.chain.from_iterable(phases if order == "g_first" else reversed(phases)))


@pytest.mark.parametrize("order", ["g_first", "d_first"])
@pytest.mark.parametrize(
    ("strategy", "in_g_update", "in_d_update"),
    [
        ("inputs", {"g"}, {"d"}),
        ("toggle", {"g"}, {"d"}),
        ("detach", {"g", "d"}, {"d"}),
        ("no_grad_fresh", {"g", "d"}, {"d"}),
        ("retain_deferred", {"g", "d"}, {"g", "d"}),
    ],
)
def test_which_networks_gradients_an_update_computes(
    session_of: SessionOf, strategy: str, in_g_update: set[str], in_d_update: set[str], order: str
) -> None:
    """What is computed for the idle network is thrown away; `inputs` and `toggle` never make it."""
    session = session_of(strategy=strategy, order=order, ratio="2:3")
    reached: set[str] = set()
    for player in players(session):
        for parameter in player.trainable:
            parameter.register_post_accumulate_grad_hook(lambda _, name=player.name: reached.add(name))
    given = session.draw()
    fakes = session.strategy.generate(given.latents[0])
    if order == "g_first":
        session.strategy.generator_update(fakes, feeds_discriminator=True)
        assert reached == in_g_update
    for _ in range(3):
        reached.clear()
        session.strategy.discriminator_update(given.real[0], fakes, given.own_latents[0])
        assert reached == in_d_update
    if order == "d_first":
        reached.clear()
        session.strategy.generator_update(fakes, feeds_discriminator=False)
        assert reached == in_g_update


@pytest.mark.parametrize("ratio", ["2:1", "2:3"])
@pytest.mark.parametrize("order", ["g_first", "d_first"])
@pytest.mark.parametrize("strategy", CORRECT)
def test_no_gradient_outlives_its_update(session_of: SessionOf, strategy: str, order: str, ratio: str) -> None:
    session = session_of(strategy=strategy, order=order, ratio=ratio)
    seen: list[bool] = []

    def look(player: Player) -> None:
        seen.append(None not in grads(player) and grads(session.pair.other(player)) == [None] * 6)

    for player in players(session):
        player.before_step = look
    for _ in range(ROUNDS):
        session.play_round()
        assert [grads(player) for player in players(session)] == [[None] * 6] * 2
    assert seen == [True] * ROUNDS * session.schedule.updates


@pytest.mark.parametrize("ratio", ["1:1", "2:3"])
def test_retain_deferred_takes_the_last_g_step_of_a_round_after_ds(session_of: SessionOf, ratio: str) -> None:
    session = session_of(strategy="retain_deferred", ratio=ratio)
    order: list[str] = []
    for player in players(session):
        player.before_step = lambda p: order.append(p.name)
    for _ in range(ROUNDS):
        order.clear()
        session.play_round()
        assert order == ["g"] * (session.spec.ratio.g - 1) + ["d"] * session.spec.ratio.d + ["g"]


def test_retain_deferred_keeps_no_graph_beyond_the_round(session_of: SessionOf) -> None:
    session = session_of(strategy="retain_deferred", ratio="2:3")
    given = session.draw()
    session.schedule.play(session.strategy, given)
    kept = [value for value in vars(session.strategy).values() if value is not None and value is not session.pair]
    assert kept == []


@pytest.mark.parametrize("order", ["g_first", "d_first"])
@pytest.mark.parametrize(
    ("strategy", "extra"), [("detach", 0), ("inputs", 0), ("toggle", 0), ("no_grad_replay", 1), ("no_grad_fresh", 3)]
)
def test_how_often_g_runs_forward_a_round(session_of: SessionOf, strategy: str, extra: int, order: str) -> None:
    session = session_of(strategy=strategy, order=order, ratio="2:3")
    calls: list[bool] = []
    session.pair.g.module.register_forward_pre_hook(lambda *_: calls.append(torch.is_grad_enabled()))
    for done in range(1, ROUNDS + 1):
        session.play_round()
        assert (calls.count(True), calls.count(False)) == (2 * done, extra * done)
