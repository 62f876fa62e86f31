import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(2, width)

    def forward(self, z):
        return self.layer(z)


class Placed(nn.Module):
    def forward(self, z):
        return z.to(device)


def train():
    generator = Generator(4)
    generator(torch.randn(3, 2)).sum().backward()


if __name__ == "__main__":
    device = torch.device("cpu")
    train()
