"""Training steps as people write them. Not collected."""

from __future__ import annotations

import os

import torch
from torch.nn import functional as F

history = []


def bce(scores, target):
    return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, target))


def one_fake_for_both(G, D, opt_g, opt_d, real, z):
    """The first listing: several G steps, then D on the last fake as it is."""
    for _ in range(2):
        fake = G(torch.randn_like(z))
        opt_g.zero_grad()
        bce(D(fake), 1.0).backward()
        opt_g.step()
    opt_d.zero_grad()
    (bce(D(real), 1.0) + bce(D(fake), 0.0)).backward()
    opt_d.step()


def graph_retained(G, D, opt_g, opt_d, real, z):
    """The first remedy: keep the graph, and step at once."""
    for _ in range(2):
        fake = G(torch.randn_like(z))
        opt_g.zero_grad()
        bce(D(fake), 1.0).backward(retain_graph=True)
        opt_g.step()
    opt_d.zero_grad()
    (bce(D(real), 1.0) + bce(D(fake), 0.0)).backward()
    opt_d.step()


def one_output_for_both(G, D, opt_g, opt_d, real, z):
    """D's output on the fake is used for both losses, with D's step in between."""
    on_fake = D(G(z))
    opt_d.zero_grad()
    (bce(D(real), 1.0) + bce(on_fake, 0.0)).backward(retain_graph=True)
    opt_d.step()
    opt_g.zero_grad()
    bce(on_fake, 1.0).backward()
    opt_g.step()


def own_gradients_cleared_only(G, D, opt_g, opt_d, real, z):
    """The second remedy: detach, and each optimizer clears its own gradients after its step."""
    for _ in range(2):
        fake = G(torch.randn_like(z))
        bce(D(fake), 1.0).backward()
        opt_g.step()
        opt_g.zero_grad()
    (bce(D(real), 1.0) + bce(D(fake.detach()), 0.0)).backward()
    opt_d.step()
    opt_d.zero_grad()


def sound(G, D, opt_g, opt_d, real, z):
    for _ in range(2):
        fake = G(torch.randn_like(z))
        opt_g.zero_grad()
        bce(D(fake), 1.0).backward()
        opt_g.step()
    for _ in range(3):
        opt_d.zero_grad()
        (bce(D(real), 1.0) + bce(D(fake.detach()), 0.0)).backward()
        opt_d.step()




def dcgan(netD, netG, optimizerD, optimizerG, data, noise, criterion):
    """As in PyTorch's DCGAN example: two backward calls for one D update."""
    netD.zero_grad()
    output = netD(data)
    criterion(output, torch.ones_like(output)).backward()
    fake = netG(noise)
    output = netD(fake.detach())
    criterion(output, torch.zeros_like(output)).backward()
    optimizerD.step()
    netG.zero_grad()
    output = netD(fake)
    criterion(output, torch.ones_like(output)).backward()
    optimizerG.step()


def wasserstein(generator, critic, optimizer_G, optimizer_D, real_imgs, z):
    for _ in range(5):
        optimizer_D.zero_grad()
        fake = generator(torch.randn_like(z)).detach()
        mix = torch.rand(len(real_imgs), 1, 1, 1)
        between = (mix * real_imgs + (1 - mix) * fake).requires_grad_(True)
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = ((slope.flatten(1).norm(dim=1) - 1) ** 2).mean()
        (critic(fake).mean() - critic(real_imgs).mean() + 10 * penalty).backward()
        optimizer_D.step()
    for p in critic.parameters():
        p.requires_grad_(False)
    optimizer_G.zero_grad()
    (-critic(generator(z)).mean()).backward()
    optimizer_G.step()
    for p in critic.parameters():
        p.requires_grad_(True)


def in_micro_batches(G, D, opt_g, opt_d, real, z):
    opt_d.zero_grad()
    for some, latents in zip(real.chunk(2), z.chunk(2), strict=True):
        (0.5 * (bce(D(some), 1.0) + bce(D(G(latents).detach()), 0.0))).backward()
    opt_d.step()
    opt_g.zero_grad()
    for latents in z.chunk(2):
        (0.5 * bce(D(G(latents)), 1.0)).backward()
    opt_g.step()


def every_third(G, D, opt_g, opt_d, real, z, i):
    fake = G(z)
    opt_d.zero_grad()
    (bce(D(real), 1.0) + bce(D(fake.detach()), 0.0)).backward()
    opt_d.step()
    if i % 3 == 2:
        opt_g.zero_grad()
        bce(D(fake), 1.0).backward()
        opt_g.step()


def nothing_cleared_between(G, D, opt_g, opt_d, real, z):
    fake = G(z)
    opt_g.zero_grad()
    bce(D(fake), 1.0).backward()
    opt_g.step()
    opt_d.zero_grad()
    for _ in range(3):
        (bce(D(real), 1.0) + bce(D(fake.detach()), 0.0)).backward()
        opt_d.step()


def detached_for_both(G, D, opt_g, opt_d, real, z):
    fake = G(z).detach()
    opt_g.zero_grad()
    bce(D(fake), 1.0).backward()
    opt_g.step()
    opt_d.zero_grad()
    (bce(D(real), 1.0) + bce(D(fake), 0.0)).backward()
    opt_d.step()


def keeps_losses(G, D, opt_g, opt_d, real, z):
    fake = G(z)
    opt_d.zero_grad()
    loss = bce(D(real), 1.0) + bce(D(fake.detach()), 0.0)
    loss.backward()
    opt_d.step()
    history.append(loss)
    opt_g.zero_grad()
    g_loss = bce(D(fake), 1.0)
    g_loss.backward()
    opt_g.step()
    return g_loss.item()


def needlessly_retained(G, D, opt_g, opt_d, real, z):
    fake = G(z)
    opt_d.zero_grad()
    (bce(D(real), 1.0) + bce(D(fake.detach()), 0.0)).backward(retain_graph=True)
    opt_d.step()
    opt_g.zero_grad()
    bce(D(fake), 1.0).backward()
    opt_g.step()


def wants_more(G, D, opt_g, opt_d, real, schedulers):
    schedulers.step()


def writes(G, D, opt_g, opt_d, real, z):
    sound(G, D, opt_g, opt_d, real, z)
    os.makedirs("images", exist_ok=True)
    with open("images/log.txt", "w") as file:
        file.write("done")
