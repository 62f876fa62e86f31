"""WGAN with a spectrally normalised critic, on points or flattened images."""
import torch
from torch import nn
from torch.nn.utils import spectral_norm
from torch.utils.data import Dataset

N_CRITIC = 5
LR = 5e-5


class Spiral(Dataset):
    """Two arms, a bit of noise."""

    def __init__(self, n=4000, noise=0.03):
        t = torch.rand(n) * 3
        arm = torch.randint(0, 2, (n,))
        angle = 2.2 * t + arm * torch.pi
        self.points = torch.stack([t * torch.cos(angle), t * torch.sin(angle)], 1) / 3
        self.points += noise * torch.randn(n, 2)

    def __len__(self):
        return len(self.points)

    def __getitem__(self, i):
        return self.points[i]


class Generator(nn.Module):
    def __init__(self, nz=16, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(nz, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 2))

    def forward(self, z):
        return self.net(z)


class Critic(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            spectral_norm(nn.Linear(2, width)), nn.LeakyReLU(0.1),
            spectral_norm(nn.Linear(width, width)), nn.LeakyReLU(0.1),
            spectral_norm(nn.Linear(width, 1)),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def generator_loss(fake_scores):
    return -fake_scores.mean()


def critic_loss(real_scores, fake_scores):
    return fake_scores.mean() - real_scores.mean()


def make_optimizer(params, lr=LR, alpha=0.99):
    return torch.optim.RMSprop(params, lr=lr, alpha=alpha)


if __name__ == "__main__":
    G, D = Generator(), Critic()
    opt_g, opt_d = make_optimizer(G.parameters()), make_optimizer(D.parameters())
    loader = torch.utils.data.DataLoader(Spiral(), batch_size=128, shuffle=True, drop_last=True)
    step = 0
    for epoch in range(500):
        for x in loader:
            opt_d.zero_grad()
            critic_loss(D(x), D(G(torch.randn(len(x), 16)).detach())).backward()
            opt_d.step()
            step += 1
            if step % N_CRITIC == 0:
                opt_g.zero_grad()
                generator_loss(D(G(torch.randn(len(x), 16)))).backward()
                opt_g.step()
