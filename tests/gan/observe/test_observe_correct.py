"""Steps as people write them, and rightly: nothing is found, the order of updates is told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
import torch
from torch import autograd, nn
from torch.autograd import grad
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from ganbench.gan.observe import Given, observe
from ganbench.gan.observe.arguments import plan_for
from ganbench.gan.observe.observer import Observer
from ganbench.record.loop import LoopSeen

Watch = Callable[..., LoopSeen]


def detached(G, D, opt_g, opt_d, real, z):
    for _ in range(2):
        opt_g.zero_grad()
        fake = G(z)
        F.softplus(-D(fake)).mean().backward()
        opt_g.step()
    opt_d.zero_grad()
    (F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()).backward()
    opt_d.step()


def two_passes_of_d(netG, netD, optimizerG, optimizerD, data, noise, criterion, device, b_size):
    netD.zero_grad()
    label = torch.full((b_size, 1), 1.0, device=device)
    criterion(netD(data), label).backward()
    fake = netG(noise)
    label.fill_(0.0)
    criterion(netD(fake.detach()), label).backward()
    optimizerD.step()
    netG.zero_grad()
    label.fill_(1.0)
    criterion(netD(fake), label).backward()
    optimizerG.step()


def critic_of_five(generator, critic, optimizer_G, optimizer_critic, real_imgs, z, i):
    optimizer_critic.zero_grad()
    with torch.no_grad():
        fake = generator(z)
    loss = critic(fake).mean() - critic(real_imgs).mean()
    loss.backward()
    optimizer_critic.step()
    for p in critic.parameters():
        p.data.clamp_(-0.1, 0.1)
    if i % 5 == 4:
        optimizer_G.zero_grad()
        (-critic(generator(z)).mean()).backward()
        optimizer_G.step()


def toggled(gen, disc, g_opt, d_opt, x, z):
    for _ in range(2):
        g_opt.zero_grad(set_to_none=False)
        disc.requires_grad_(False)
        fake = gen(z)
        F.softplus(-disc(fake)).mean().backward()
        disc.requires_grad_(True)
        g_opt.step()
    for _ in range(2):
        d_opt.zero_grad(set_to_none=False)
        (F.softplus(-disc(x)).mean() + F.softplus(disc(fake.detach())).mean()).backward()
        d_opt.step()


def by_inputs(G, D, opt_g, opt_d, real, z):
    for _ in range(2):
        fake = G(z)
        F.softplus(-D(fake)).mean().backward(inputs=list(G.parameters()))
        opt_g.step()
        opt_g.zero_grad()
    (F.softplus(-D(real)).mean() + F.softplus(D(fake)).mean()).backward(inputs=D.parameters())
    opt_d.step()
    opt_d.zero_grad()


def micro_batches(G, D, opt_g, opt_d, real, z):
    opt_d.zero_grad()
    for part, noise in zip(real.chunk(4), z.chunk(4), strict=True):
        loss = F.softplus(-D(part)).mean() + F.softplus(D(G(noise).detach())).mean()
        (loss / 4).backward()
    nn.utils.clip_grad_norm_(D.parameters(), 0.5)
    opt_d.step()
    opt_g.zero_grad()
    for noise in z.chunk(4):
        (F.softplus(-D(G(noise))).mean() / 4).backward()
    opt_g.step()
    opt_d.zero_grad()


def penalised(G, D, opt_g, opt_d, real, z):
    for _ in range(3):
        fake = G(z).detach()
        mix = torch.rand(len(real), 1)
        between = (mix * real + (1 - mix) * fake).requires_grad_()
        scores = D(between)
        (slope,) = grad(scores, between, torch.ones_like(scores), create_graph=True, retain_graph=True)
        loss = D(fake).mean() - D(real).mean() + 10 * ((slope.norm(2, dim=1) - 1) ** 2).mean()
        opt_d.zero_grad()
        loss.backward()
        opt_d.step()
    opt_g.zero_grad()
    autograd.backward(-D(G(z)).mean())
    opt_g.step()


def relativistic(G, D, opt_g, opt_d, real, z):
    for _ in range(2):
        opt_d.zero_grad()
        fake = G(z).detach()
        F.softplus(D(fake) - D(real)).mean().backward()
        opt_d.step()
    opt_g.zero_grad()
    F.softplus(D(real) - D(G(z))).mean().backward()
    opt_g.step()


def gradients_put_in_place(G, D, opt_g, opt_d, real, z):
    for _ in range(2):
        fake = G(z)
        for p, slope in zip(G.parameters(), grad(F.softplus(-D(fake)).mean(), G.parameters()), strict=True):
            p.grad = slope
        opt_g.step()
    loss = F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()
    for p, slope in zip(D.parameters(), torch.autograd.grad(loss, list(D.parameters())), strict=True):
        p.grad = slope
    opt_d.step()


def by_closures(G, D, opt_g, opt_d, real, z):
    def for_d():
        opt_d.zero_grad()
        loss = F.softplus(-D(real)).mean() + F.softplus(D(G(z).detach())).mean()
        loss.backward()
        return loss

    for _ in range(2):
        opt_d.step(for_d)
    opt_g.zero_grad()
    F.softplus(-D(G(z))).mean().backward()
    opt_g.step()


def after_a_call_that_raised(G, D, opt_g, opt_d, real, z):
    with contextlib.suppress(RuntimeError):
        D(z)
    detached(G, D, opt_g, opt_d, real, z)


def scaled(G, D, opt_g, opt_d, real, z, i):
    if i == 0:
        scalers[:] = [torch.amp.GradScaler("cpu"), torch.amp.GradScaler("cpu")]
    for _ in range(2):
        opt_d.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.softplus(-D(real)).mean() + F.softplus(D(G(z).detach())).mean()
        scalers[0].scale(loss).backward()
        scalers[0].unscale_(opt_d)
        nn.utils.clip_grad_norm_(D.parameters(), 1.0)
        scalers[0].step(opt_d)
        scalers[0].update()
    opt_g.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        loss = F.softplus(-D(G(z))).mean()
    scalers[1].scale(loss).backward()
    scalers[1].step(opt_g)
    scalers[1].update()


scalers = []


def checkpointed(G, D, opt_g, opt_d, real, z):
    detached(G, D, opt_g, opt_d, real, z)
    for reentrant in (False, True):
        opt_g.zero_grad()
        fake = checkpoint(G, z.clone().requires_grad_(), use_reentrant=reentrant)
        F.softplus(-checkpoint(D, fake, use_reentrant=reentrant)).mean().backward()
        opt_g.step()


@pytest.mark.parametrize(
    ("step", "order"),
    [
        (detached, "G G D"),
        (two_passes_of_d, "D G"),
        (toggled, "G G D D"),
        (by_inputs, "G G D"),
        (micro_batches, "D G"),
        (penalised, "D D D G"),
        (relativistic, "D D G"),
        (gradients_put_in_place, "G G D"),
        (by_closures, "D D G"),
        (after_a_call_that_raised, "G G D"),
        (scaled, "D D G"),
        (checkpointed, "G G D G G"),
    ],
)
@pytest.mark.parametrize("fused", [False, True])
def test_a_correct_step_gives_no_finding(watch: Watch, step: Callable[..., None], order: str, fused: bool) -> None:
    seen = watch(step, rounds=4, fused=fused)
    assert seen.findings == ()
    assert {one.order for one in seen.rounds} == {order}
    assert len(seen.rounds) == 4
    assert f"{order} in each of 4 calls" in seen.told()[0]


def test_an_order_that_changes_from_call_to_call_is_told(watch: Watch) -> None:
    seen = watch(critic_of_five)
    assert seen.findings == ()
    assert [one.order for one in seen.rounds] == ["D", "D", "D", "D", "D G", "D"]
    assert "it changes from call to call: D | D | D | D | D G | D (1 of G, 6 of D)" in seen.told()[0]


def test_gradients_left_in_the_other_network_are_told_but_are_no_finding(watch: Watch) -> None:
    seen = watch(detached, rounds=2)
    assert [update.left for update in seen.rounds[1].updates] == [True, True, False]
    assert "4 of 4 steps of G leave gradients of its loss in D" in seen.told()[1]
    assert not any(update.left for one in watch(toggled, rounds=2).rounds for update in one.updates)


class Noisy(nn.Module):
    """Batch norm, old and new spectral norm, and noise of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.utils.spectral_norm(nn.Linear(2, 8))
        self.second = nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8))
        self.last = nn.Sequential(nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(F.relu(self.second(F.relu(self.first(x)))))


@pytest.mark.parametrize("step", [detached, two_passes_of_d, toggled])
def test_buffers_that_move_in_forward_passes_are_no_changed_weights(watch: Watch, step: Callable[..., None]) -> None:
    assert watch(step, rounds=3, discriminator=Noisy()).findings == ()


def test_layers_that_both_networks_hold_are_the_gradient_of_both_losses(watch: Watch) -> None:
    both = nn.Linear(2, 2)
    networks = {
        "generator": nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2), both),
        "discriminator": nn.Sequential(both, nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1)),
    }
    seen = watch(detached, rounds=3, **networks)
    assert seen.findings == ()
    assert {one.order for one in seen.rounds} == {"G+D G+D G+D"}


def test_a_first_forward_pass_may_set_parameters(watch: Watch) -> None:
    class FromData(nn.Linear):
        ready = False

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if not self.ready:
                with torch.no_grad():
                    self.weight.div_(x.std())
                self.ready = True
            return super().forward(x)

    d = nn.Sequential(FromData(2, 8), nn.Tanh(), nn.Linear(8, 1))
    assert watch(detached, rounds=3, discriminator=d, fused=True).findings == ()


def test_lazy_layers_are_followed(watch: Watch) -> None:
    d = nn.Sequential(nn.LazyLinear(8), nn.Tanh(), nn.Linear(8, 1))
    assert watch(detached, rounds=3, discriminator=d).findings == ()


@pytest.mark.parametrize("step", [detached, two_passes_of_d, penalised])
@pytest.mark.parametrize("fused", [False, True])
def test_observing_changes_no_weight(given: Callable[..., Given], step: Callable[..., None], fused: bool) -> None:
    weights = []
    for watched in (True, False):
        with torch.random.fork_rng(devices=[]):
            parts = given(fused=fused)
            plan = plan_for(step, "file.py:step", {})
            if watched:
                observe(step, parts, "file.py:step", 3, plan)
            else:
                for number in range(3):
                    plan.call(step, parts.for_round(number))
        weights.append([*parts.generator.parameters(), *parts.discriminator.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*weights, strict=True))
    assert not any(p._backward_hooks for p in weights[0])


def test_nothing_is_seen_after_the_observation(given: Callable[..., Given]) -> None:
    parts = given()
    plan, values = plan_for(detached, "file.py:step", {}), parts.for_round(0)
    with Observer({"G": parts.generator, "D": parts.discriminator}, None) as observer:
        observer.begin_round([values["latents"]], [values["real"]])
        plan.call(detached, values)
        observer.end_round()
    counts = len(observer.seen.steps), len(observer.seen.backwards), dict(observer.seen.forwards)
    assert counts == (3, 3, {(0, "G"): 2, (0, "D"): 4})
    plan.call(detached, values)
    assert counts == (len(observer.seen.steps), len(observer.seen.backwards), dict(observer.seen.forwards))
