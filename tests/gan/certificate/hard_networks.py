"""Networks with ways of their own, for pictures of 1×4×4 and latents of six numbers."""

from __future__ import annotations

import itertools
import random

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class G(nn.Module):
    """Two weighted layers; the others below replace parts of it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 16), nn.Tanh())

    def forward(self, latents: Tensor) -> Tensor:
        pictures: Tensor = self.net(latents)
        return pictures.view(-1, 1, 4, 4)


class D(nn.Module):
    """Two weighted layers."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))

    def forward(self, pictures: Tensor) -> Tensor:
        scores: Tensor = self.net(pictures)
        return scores


class LazyG(G):
    """Layers that know their width only when they are called."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.LazyLinear(8), nn.LazyBatchNorm1d(), nn.ReLU(), nn.Linear(8, 16), nn.Tanh())


class LazyD(D):
    """The same, with dropout behind them."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.LazyLinear(8), nn.LeakyReLU(0.2), nn.Dropout(0.3), nn.Linear(8, 1))


class Wrapper(nn.Module):
    """What DataParallel is to its module: it hands on."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *given: Tensor) -> Tensor:
        made: Tensor = self.module(*given)
        return made


def wrapped_g() -> nn.Module:
    """Wrapped twice."""
    return Wrapper(Wrapper(G()))


def wrapped_d() -> nn.Module:
    """With a spectral norm inside."""
    inner = D()
    inner.net[1] = nn.utils.spectral_norm(inner.net[1])
    return nn.DataParallel(Wrapper(inner))


class InPlaceG(G):
    """Activations that work in place, not on its input."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2, True), nn.Linear(8, 16))

    def forward(self, latents: Tensor) -> Tensor:
        return super().forward(latents).mul_(0.5).add_(0.1)


class InPlaceD(D):
    """Activations that work in place, not on its input."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.LeakyReLU(0.2, True), nn.Linear(8, 1))


class EditsLatents(G):
    """Edits the latents that it is given, which nobody needs again."""

    def forward(self, latents: Tensor) -> Tensor:
        return super().forward(latents.div_(latents.norm(dim=1, keepdim=True)))


class EditsALittle(D):
    """Edits the batch that it is shown, by so little that tolerances might let it pass."""

    def forward(self, pictures: Tensor) -> Tensor:
        return super().forward(F.leaky_relu_(pictures, 0.999))


class CheckpointedG(G):
    """Half of it is computed again in the backward pass."""

    def __init__(self, reentrant: bool = False) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 16))

    def forward(self, latents: Tensor) -> Tensor:
        made: Tensor = checkpoint(self.net, latents.requires_grad_(self.reentrant), use_reentrant=self.reentrant)
        return made.view(-1, 1, 4, 4)


class CheckpointedD(D):
    """Half of it is computed again in the backward pass."""

    def __init__(self, reentrant: bool = False) -> None:
        super().__init__()
        self.reentrant = reentrant
        self.head = nn.Linear(16, 16)

    def forward(self, pictures: Tensor) -> Tensor:
        scores: Tensor = checkpoint(self.net, self.head(pictures.flatten(1)), use_reentrant=self.reentrant)
        return scores


class ConditionalG(nn.Module):
    """Labels by an embedding, beside the latents."""

    def __init__(self, bound: float | None = None) -> None:
        super().__init__()
        self.embed = nn.Embedding(3, 4, max_norm=bound)
        self.net = nn.Sequential(nn.Linear(10, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 16), nn.Tanh())

    def forward(self, latents: Tensor, labels: Tensor) -> Tensor:
        pictures: Tensor = self.net(torch.cat([latents, self.embed(labels)], 1))
        return pictures.view(-1, 1, 4, 4)


class ConditionalD(nn.Module):
    """Projection of features on the label's embedding, and the class beside the score."""

    def __init__(self, bound: float | None = None) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Flatten(), nn.Linear(16, 4), nn.LeakyReLU(0.2), nn.Dropout(0.2))
        self.score, self.embed, self.classes = nn.Linear(4, 1), nn.Embedding(3, 4, max_norm=bound), nn.Linear(4, 3)

    def forward(self, pictures: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        features = self.features(pictures)
        scores = self.score(features) + (features * self.embed(labels)).sum(1, keepdim=True)
        return scores, self.classes(features)


class RecurrentG(nn.Module):
    """A GRU that draws a picture row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(6, 8, num_layers=2, batch_first=True, dropout=0.2), nn.Linear(8, 4)

    def forward(self, latents: Tensor) -> Tensor:
        rows, _ = self.gru(latents.unsqueeze(1).expand(-1, 4, -1))
        pictures: Tensor = self.head(rows)
        return pictures.unsqueeze(1)


class RecurrentD(nn.Module):
    """A GRU that reads it in both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(4, 6, batch_first=True, bidirectional=True), nn.Linear(12, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        _, last = self.gru(pictures.squeeze(1))
        scores: Tensor = self.head(last.transpose(0, 1).flatten(1))
        return scores


def deep_g(depth: int = 20) -> nn.Module:
    """Many layers with BatchNorm."""
    layers = [part for _ in range(depth) for part in (nn.Linear(16, 16), nn.BatchNorm1d(16), nn.ReLU())]
    return nn.Sequential(nn.Linear(6, 16), *layers, nn.Linear(16, 16), nn.Unflatten(1, (1, 4, 4)))


def deep_d(depth: int = 20) -> nn.Module:
    """Many layers without a norm: its scores hardly depend on its input."""
    layers = [part for _ in range(depth) for part in (nn.Linear(16, 16), nn.LeakyReLU(0.2))]
    return nn.Sequential(nn.Flatten(), *layers, nn.Linear(16, 1))


class DoubleG(G):
    """Computes in float64, and gives float32."""

    def __init__(self) -> None:
        super().__init__()
        self.net.double()

    def forward(self, latents: Tensor) -> Tensor:
        return super().forward(latents.double()).float()


class DoubleD(D):
    """Computes in float64, and gives float64."""

    def __init__(self) -> None:
        super().__init__()
        self.net.double()

    def forward(self, pictures: Tensor) -> Tensor:
        return super().forward(pictures.double())


class SingleD(D):
    """Insists on float32."""

    def forward(self, pictures: Tensor) -> Tensor:
        assert pictures.dtype is torch.float32, "float32 alone"
        return super().forward(pictures)


class Centred(nn.Module):
    """Takes a running mean off, which is a buffer."""

    mean: Tensor

    def __init__(self, mean: Tensor, *, kept: bool = True) -> None:
        super().__init__()
        self.register_buffer("mean", mean, persistent=kept)

    def forward(self, given: Tensor) -> Tensor:
        with torch.no_grad():
            self.mean.lerp_(given.mean(0), 0.1)
        return given - self.mean


def one_buffer_for_two() -> nn.Module:
    """Two layers that move the same buffer."""
    mean = torch.zeros(16)
    return nn.Sequential(nn.Flatten(), Centred(mean), nn.Linear(16, 16), nn.ReLU(), Centred(mean), nn.Linear(16, 1))


def unsaved_buffer() -> nn.Module:
    """Its buffer is in no state_dict, and follows what it is shown."""
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), Watching(), nn.Linear(8, 1))


class Watching(nn.Module):
    """Counts what it saw in a buffer that nothing depends on, and that is not saved."""

    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()), persistent=False)

    def forward(self, given: Tensor) -> Tensor:
        self.seen += 1.0
        return given


class Shrinking(D):
    """Its own weights get smaller in every forward pass."""

    def forward(self, pictures: Tensor) -> Tensor:
        self.net[1].weight.data.mul_(0.99)
        return super().forward(pictures)


class ShrinkingG(G):
    """Its own weights get smaller in every forward pass."""

    def forward(self, latents: Tensor) -> Tensor:
        self.net[0].weight.data.mul_(0.99)
        return super().forward(latents)


class Clipped(D):
    """Its weights are clipped in every forward pass, as some WGAN critics do it."""

    def forward(self, pictures: Tensor) -> Tensor:
        for parameter in self.parameters():
            parameter.data.clamp_(-0.1, 0.1)
        return super().forward(pictures)


class FaintNoise(G):
    """Noise so faint that another draw of it is nearly the same output."""

    def forward(self, latents: Tensor) -> Tensor:
        made = super().forward(latents)
        return made + 3e-4 * torch.randn_like(made)


class Annealed(D):
    """Its instance noise gets less with a count that is no buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = itertools.count(1)

    def forward(self, pictures: Tensor) -> Tensor:
        return super().forward(pictures + torch.randn_like(pictures) / next(self.calls))


class OwnBackward(torch.autograd.Function):
    """The same forward, a gradient with noise that nobody seeds."""

    @staticmethod
    def forward(_ctx: object, given: Tensor) -> Tensor:
        return given.clone()

    @staticmethod
    def backward(_ctx: object, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return gradient * (1 + 0.1 * random.random())


class NoisyGradients(D):
    """Repeats its outputs, not its gradients."""

    def forward(self, pictures: Tensor) -> Tensor:
        made: Tensor = OwnBackward.apply(super().forward(pictures))
        return made


class NumpyMade(D):
    """Initial weights from NumPy's global random numbers."""

    def __init__(self) -> None:
        super().__init__()
        with torch.no_grad():
            self.net[1].weight.copy_(torch.from_numpy(np.random.standard_normal((8, 16)) / 4))


class RandomFeatures(D):
    """A fixed projection from Python's random numbers, in a plain attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.project = torch.tensor([[random.gauss(0, 0.25) for _ in range(16)] for _ in range(16)])

    def forward(self, pictures: Tensor) -> Tensor:
        return super().forward(pictures.flatten(1) @ self.project.to(pictures.dtype))


class Unseeded(D):
    """Other initial weights each time, whatever is seeded."""

    def __init__(self) -> None:
        super().__init__()
        source = torch.Generator()
        source.seed()
        with torch.no_grad():
            self.net[1].weight.add_(0.1 * torch.rand(8, 16, generator=source))


class ExtraState(D):
    """Has something in its state_dict that is no tensor."""

    def get_extra_state(self) -> dict[str, int]:
        return {"version": 3}

    def set_extra_state(self, state: dict[str, int]) -> None:
        """Nothing to set."""


class Sparse(nn.Module):
    """Gradients of its embedding are sparse."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(4, 3, sparse=True), nn.Linear(48, 1)

    def forward(self, pictures: Tensor) -> Tensor:
        levels = (pictures.flatten(1) * 2).long().clamp(-2, 1) + 2
        scores: Tensor = self.head(self.embed(levels).flatten(1) * pictures.flatten(1).repeat_interleave(3, 1))
        return scores


class Zeroed(D):
    """Its last layer begins at zero: the gradients of the layers before it vanish."""

    def __init__(self) -> None:
        super().__init__()
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)


class GoesToFreeze(D):
    """Freezes a layer of its own when it is first called."""

    def forward(self, pictures: Tensor) -> Tensor:
        self.net[1].requires_grad_(False)
        return super().forward(pictures)


_ONCE = (G(), D())


def only_once() -> tuple[nn.Module, nn.Module]:
    """The same two networks, whoever asks."""
    return _ONCE


def tied() -> tuple[nn.Module, nn.Module]:
    """One parameter in two layers of D, and a layer with BatchNorm in both networks."""
    common = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16))
    first, second = nn.Linear(16, 16), nn.Linear(16, 16)
    second.weight = first.weight
    generator = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), common, nn.Unflatten(1, (1, 4, 4)))
    discriminator = nn.Sequential(nn.Flatten(), common, first, nn.ReLU(), second, nn.ReLU(), nn.Linear(16, 1))
    return generator, discriminator
