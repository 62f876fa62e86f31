"""Networks that misbehave, as users' networks do."""

from __future__ import annotations

import ctypes
import os
import sys
import time

import torch
from torch import Tensor, nn


class Generator(nn.Module):
    """A sound generator of 8×8 pictures that counts its forward passes in training."""

    def __init__(self, trouble_at: int = 0) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 64), nn.Tanh())
        self.trouble_at = trouble_at
        self.calls = 0

    def forward(self, latents: Tensor) -> Tensor:
        if self.training:
            self.calls += 1
            if self.calls == self.trouble_at:
                self.trouble()
        pictures: Tensor = self.layers(latents)
        return pictures.view(-1, 1, 8, 8)

    def trouble(self) -> None:
        """What goes wrong."""


class Discriminator(nn.Module):
    """A sound discriminator."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))

    def forward(self, pictures: Tensor) -> Tensor:
        scores: Tensor = self.layers(pictures.flatten(1))
        return scores


class Exits(Generator):
    """Ends its process."""

    def trouble(self) -> None:
        os._exit(3)


class SystemExits(Generator):
    """Calls sys.exit, as scripts do."""

    def trouble(self) -> None:
        print("giving up")
        sys.exit("no licence for this dataset")


class Raises(Generator):
    """Raises."""

    def trouble(self) -> None:
        raise RuntimeError("the fifth round is unlucky")


class Hangs(Generator):
    """Never returns."""

    def trouble(self) -> None:
        time.sleep(3600)


class MakesNan(Generator):
    """Turns a weight into NaN."""

    def trouble(self) -> None:
        with torch.no_grad():
            self.layers[0].weight[0, 0] = float("nan")


class Segfaults(Generator):
    """Reads address 0."""

    def trouble(self) -> None:
        ctypes.string_at(0)


class EatsMemory(Generator):
    """Asks for more memory than any machine has."""

    def trouble(self) -> None:
        torch.empty(2**55, dtype=torch.uint8)


class ConstructorExits(Generator):
    """Ends its process as soon as it is made."""

    def __init__(self) -> None:
        super().__init__()
        os._exit(4)


class Forks(Generator):
    """Leaves a process behind that holds everything open, and ends."""

    def trouble(self) -> None:
        if os.fork() == 0:
            time.sleep(30)
        os._exit(5)
