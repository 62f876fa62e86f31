"""Steps with one thing wrong: it is named, by its lines and its size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from ganbench.record.finding import Finding
from ganbench.record.loop import LoopSeen

Watch = Callable[..., LoopSeen]


def found(seen: LoopSeen) -> dict[str, Finding]:
    return {finding.code: finding for finding in seen.findings}


def line_of(step: Callable[..., Any], offset: int) -> int:
    """The line so many lines below a step's `def`."""
    return step.__code__.co_firstlineno + offset


def both_backward_then_both_steps(G, D, opt_g, opt_d, real, z):
    opt_g.zero_grad()
    opt_d.zero_grad()
    on_real, on_fake = D(real), D(G(z))
    (F.softplus(-on_real).mean() + F.softplus(on_fake).mean()).backward(retain_graph=True)
    F.softplus(-on_fake).mean().backward()
    opt_d.step()
    opt_g.step()


def detached_and_both_steps_last(G, D, opt_g, opt_d, real, z):
    opt_g.zero_grad()
    opt_d.zero_grad()
    fake = G(z)
    (F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()).backward()
    F.softplus(-D(fake)).mean().backward()
    opt_d.step()
    opt_g.step()


def own_cleared_after_the_step(G, D, opt_g, opt_d, real, z):
    (F.softplus(-D(real)).mean() + F.softplus(D(G(z))).mean()).backward()
    opt_d.step()
    opt_d.zero_grad()
    F.softplus(-D(G(z))).mean().backward()
    opt_g.step()
    opt_g.zero_grad()


def micro_batches_of_g_left_in_d(G, D, opt_g, opt_d, real, z):
    for noise in z.chunk(2):
        F.softplus(-D(G(noise))).mean().backward()
    opt_g.step()
    opt_g.zero_grad()
    (F.softplus(-D(real)).mean() + F.softplus(D(G(z).detach())).mean()).backward()
    opt_d.step()
    opt_d.zero_grad()


@pytest.mark.parametrize(
    ("step", "networks", "foreign"),
    [
        (both_backward_then_both_steps, {"G", "D"}, (5, 4)),
        (detached_and_both_steps_last, {"D"}, (5,)),
        (own_cleared_after_the_step, {"G", "D"}, (1, 4)),
        (micro_batches_of_g_left_in_d, {"D"}, (2,)),
    ],
)
def test_contaminated_updates(watch: Watch, step: Callable[..., None], networks: set[str], foreign: Any) -> None:
    seen = watch(step, rounds=3)
    findings = [one for one in seen.findings if one.code == "gradients-contaminated"]
    assert len(findings) == len(networks)
    assert {u.network for one in seen.rounds for u in one.updates if u.leftover} == networks
    lines = {line_of(step, offset) for offset in foreign}
    assert all(any(str(line) in one.evidence for line in lines) for one in findings)


def test_the_size_of_the_leftover_is_that_of_the_gradients_computed_apart(watch: Watch) -> None:
    sizes: list[float] = []

    def step(G, D, opt_g, opt_d, real, z):
        own = F.softplus(-D(real)).mean() + F.softplus(D(G(z).detach())).mean()
        parameters = list(D.parameters())
        clean = torch.autograd.grad(own, parameters, retain_graph=True)
        other = torch.autograd.grad(F.softplus(-D(G(z))).mean(), parameters)
        lengths = [float(torch.cat([g.flatten() for g in given]).norm()) for given in (other, clean)]
        sizes.append(lengths[0] / lengths[1])
        F.softplus(-D(G(z))).mean().backward()
        own.backward()
        opt_g.zero_grad()
        opt_d.step()
        opt_d.zero_grad()
        F.softplus(-D(G(z))).mean().backward()
        opt_d.zero_grad()
        opt_g.step()
        opt_g.zero_grad()

    # What was left there is used by D's step alone: then it counts as D's own, and nothing is wrong with it.
    assert "gradients-contaminated" not in found(watch(step, rounds=1))

    def contaminated(G, D, opt_g, opt_d, real, z):
        opt_d.zero_grad()
        opt_g.zero_grad()
        before = [p.clone() for p in D.parameters()]
        F.softplus(-D(G(z))).mean().backward()
        other = torch.cat([p.grad.flatten() for p in D.parameters()])
        opt_g.step()
        assert all(torch.equal(a, b) for a, b in zip(before, D.parameters(), strict=True))
        loss = F.softplus(-D(real)).mean() + F.softplus(D(G(z).detach())).mean()
        clean = torch.cat([g.flatten() for g in torch.autograd.grad(loss, D.parameters(), retain_graph=True)])
        sizes.append(float(other.norm() / clean.norm()))
        loss.backward()
        opt_d.step()

    sizes.clear()
    seen = watch(contaminated, rounds=3)
    told = [u.leftover for one in seen.rounds for u in one.updates if u.network == "D"]
    assert told == pytest.approx(sizes, rel=1e-5)


def reversing(G, D, opt_g, opt_d, real, z):
    opt_g.zero_grad()
    opt_d.zero_grad()
    fake = Reversed.apply(G(z))
    (F.softplus(-D(real)).mean() + F.softplus(D(fake)).mean()).backward()
    opt_d.step()
    opt_g.step()


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # noqa: ARG004 - torch's signature
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:  # noqa: ARG004
        return -gradient


def test_one_loss_for_both_is_a_note(watch: Watch) -> None:
    seen = watch(reversing, rounds=2)
    assert [one.code for one in seen.findings] == ["one-loss-moves-both"]
    assert seen.findings[0].severity == "note"


def several_on_one_fake(G, D, opt_g, opt_d, real, z):
    fake = G(z)
    opt_d.zero_grad()
    (F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()).backward()
    opt_d.step()
    for _ in range(3):
        opt_g.zero_grad()
        F.softplus(-D(fake)).mean().backward(retain_graph=True)
        opt_g.step()


def test_several_generator_steps_on_one_retained_fake(watch: Watch) -> None:
    raised = found(watch(several_on_one_fake))["modified-in-place"]
    assert str(line_of(several_on_one_fake, 1)) in raised.evidence  # the forward pass
    assert str(line_of(several_on_one_fake, 8)) in raised.evidence  # the step that changed the weights
    # A single layer saves no weight of its own; fused optimizers tell autograd nothing.
    for further in ({"generator": nn.Linear(3, 2)}, {"fused": True}):
        seen = watch(several_on_one_fake, rounds=2, **further)
        stale = [[u.stale for u in one.updates] for one in seen.rounds]
        assert stale == [[False, False, True, True]] * 2
        assert "gradients-stale" in found(seen)


def undetached(G, D, opt_g, opt_d, real, z):
    for _ in range(2):
        opt_d.zero_grad()
        (F.softplus(-D(real)).mean() + F.softplus(D(G(z))).mean()).backward()
        opt_d.step()
    opt_g.zero_grad()
    F.softplus(-D(G(z))).mean().backward()
    opt_g.step()


def test_fakes_not_detached_are_cost_alone(watch: Watch) -> None:
    seen = watch(undetached, rounds=3)
    assert [(one.code, one.severity) for one in seen.findings] == [("fakes-not-detached", "note")]


def idle_with_momentum(G, D, opt_g, opt_d, real, z, i):
    opt_d.zero_grad(set_to_none=False)
    if i % 2 == 0:
        (F.softplus(-D(real)).mean() + F.softplus(D(G(z).detach())).mean()).backward()
    opt_d.step()
    opt_g.zero_grad()
    F.softplus(-D(G(z))).mean().backward()
    opt_g.step()


def test_a_step_without_a_gradient(watch: Watch) -> None:
    seen = watch(idle_with_momentum, rounds=4)
    assert [one.code for one in seen.findings] == ["step-without-gradient"]
    assert "2 of 4 steps of D" in seen.findings[0].evidence


def loss_cut_off(G, D, opt_g, opt_d, real, z):
    opt_d.zero_grad()
    (F.softplus(-D(real)).mean() + F.softplus(D(G(z).detach())).mean()).backward()
    opt_d.step()
    opt_g.zero_grad()
    loss = F.softplus(-D(G(z))).mean().detach_().requires_grad_(True)
    loss.backward()
    opt_g.step()


def never_stepped(G, D, opt_d, real, z):
    opt_d.zero_grad()
    (F.softplus(-D(real)).mean() + F.softplus(D(G(z).detach())).mean()).backward()
    opt_d.step()


@pytest.mark.parametrize(
    ("step", "further", "words"),
    [
        (loss_cut_off, {}, "6 steps, 6 of them without a gradient"),
        (never_stepped, {}, "none of its parameters was in an optimizer that was stepped"),
        (undetached, {"lr": 0.0}, "12 steps with gradients, and no parameter changed"),
    ],
)
def test_networks_that_never_move(watch: Watch, step: Callable[..., None], further: Any, words: str) -> None:
    finding = found(watch(step, **further))["network-never-moves"]
    assert words in finding.evidence


def not_a_number(G, D, opt_g, opt_d, real, z):
    opt_d.zero_grad()
    (D(real).mean() * float("nan")).backward()
    opt_d.step()
    opt_g.zero_grad()
    D(G(z)).mean().backward()
    opt_g.step()


def test_a_loss_that_is_nan(watch: Watch) -> None:
    finding = found(watch(not_a_number, rounds=2))["loss-not-finite"]
    assert "4 of 4 backward passes, first in call 1" in finding.evidence


total: Any = 0.0


def running_sum(G, D, opt_g, opt_d, real, z):
    global total
    loss = F.softplus(-D(real)).mean() + F.softplus(D(G(z).detach())).mean()
    opt_d.zero_grad()
    loss.backward()
    opt_d.step()
    total = total + loss
    opt_g.zero_grad()
    F.softplus(-D(G(z))).mean().backward()
    opt_g.step()


last: dict[str, Any] = {}


def last_fake_kept(G, D, opt_g, opt_d, real, z):
    undetached(G, D, opt_g, opt_d, real, z)
    last["fake"] = G(z)


def test_a_running_sum_grows_by_the_graph_of_each_call(watch: Watch) -> None:
    global total
    total = 0.0
    seen = watch(running_sum, rounds=5)
    finding = found(seen)["graph-grows"]
    assert "`total`" in finding.evidence
    nodes = [one.graph_nodes for one in seen.rounds]
    reachable: set[Any] = set()
    waiting = [total.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in reachable:
            reachable.add(node)
            waiting += [before for before, _ in node.next_functions]
    # Each of the five additions made one more, and no pass went through them; leaves' accumulators are not counted.
    leaves = sum(type(node).__name__ == "AccumulateGrad" for node in reachable)
    assert nodes[-1] == len(reachable) - leaves - 5
    assert nodes == [nodes[0] * n for n in range(1, 6)]
    total = 0.0


def test_one_fake_kept_until_the_next_is_no_growth(watch: Watch) -> None:
    finding = found(watch(last_fake_kept, rounds=4))
    assert "graph-grows" not in finding
    assert finding["graph-kept"].severity == "note"
    assert "`last`" in finding["graph-kept"].evidence
    last.clear()


def reading(G, D, opt_g, opt_d, real, z, device):
    chance = torch.rand(1).item()  # made on the host
    opt_d.zero_grad()
    loss = F.softplus(-D(real)).mean() + F.softplus(D(G(z).detach())).mean()
    loss.backward()
    opt_d.step()
    opt_g.zero_grad()
    g_loss = F.softplus(-D(G(z.to(device)))).mean()
    g_loss.backward()
    opt_g.step()
    if g_loss.detach() > 100 or chance > 2:
        print(g_loss)
    return f"{loss.item():.2f} {g_loss:.2f}", G(z).detach().cpu().numpy(), loss.detach().to("cpu")


def test_what_waits_for_the_device_is_told_by_line(watch: Watch) -> None:
    seen = watch(reading, rounds=3)
    assert [one.code for one in seen.findings] == ["host-waits"]
    assert [one.waits for one in seen.rounds] == [5, 5, 5]
    evidence = seen.findings[0].evidence
    for what, offset in ((".item()", 12), ("printing", 12), (".cpu()", 12), ('.to("cpu")', 12), ("use as a", 10)):
        assert any(what in part and str(line_of(reading, offset)) in part for part in evidence.split(", ")), what


def no_way_back(G, D, z):
    with torch.no_grad():
        scores = D(G(z))
    scores.mean().backward()


def other_error(real):
    raise KeyError(tuple(real.shape))


@pytest.mark.parametrize(("step", "kind", "offset"), [(no_way_back, "no_path", 3), (other_error, "(other)", 1)])
def test_other_errors_are_classified_with_their_line(watch: Watch, step: Any, kind: str, offset: int) -> None:
    seen = watch(step)
    finding = seen.findings[0]
    assert (finding.code, finding.severity) == ("step-raises", "error")
    assert kind in finding.what
    assert f"at line {line_of(step, offset)}" in finding.evidence
    assert len(seen.rounds) == 1
    assert seen.rounds[0].order == "-"
