"""Classes first; what they call and read comes after them."""
import math
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class Generator(nn.Module):
    def __init__(self, z_dim=8):
        super().__init__()
        self.blocks = nn.ModuleList(up_block(a, b) for a, b in zip(WIDTHS, WIDTHS[1:]))
        self.start = nn.Linear(z_dim, WIDTHS[0])

    def forward(self, z):
        h = self.start(z)
        for block in self.blocks:
            h = block(h)
        return scaled(h)

    def summary(self):
        return writer.add_text("G", repr(self))


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(WIDTHS[-1], 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

    def forward(self, x):
        return self.net(x)


def up_block(a, b):
    return nn.Sequential(nn.Linear(a, b), nn.ReLU())


WIDTHS = []
for exponent in (2, 3, 4):
    if exponent == 9:
        break
    WIDTHS.append(2 ** exponent)


def scaled(h):
    return GAIN * torch.tanh(h)


GAIN = 0.5

generator = Generator()
discriminator = Discriminator()
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4)
opt_d = torch.optim.Adam(discriminator.parameters(), lr=2e-4)

writer = None
step = 0
while step < 10 ** 9:
    real = torch.randn(32, WIDTHS[-1])
    fake = generator(torch.randn(32, 8))
    loss_d = F.softplus(-discriminator(real)).mean() + F.softplus(discriminator(fake.detach())).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = F.softplus(-discriminator(fake)).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
    step += 1
    GAIN = 1 + step / 10 ** 9
sys.exit(0)
