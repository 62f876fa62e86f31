"""`ring8` and `grid25`: points in the plane, drawn once from a known mixture of Gaussians."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ganbench.gan.data.data import Data, Mixture
from ganbench.spec.seeds import derive_seed

if TYPE_CHECKING:
    from ganbench.spec.dataset import PointSpec


def load_mixture(spec: PointSpec) -> Data:
    """`spec.points` points of the mixture: the same ones in every run, whatever its seed.

    They are drawn in float64 and kept in float32, so that a machine's vector instructions leave no trace.
    An item's label is its mode.
    """
    mixture = _MIXTURES[spec.name]()
    generator = torch.Generator().manual_seed(derive_seed("dataset", spec.name))
    mode = torch.randint(len(mixture.centers), (spec.points,), generator=generator, device="cpu")
    noise = torch.randn(spec.points, 2, generator=generator, dtype=torch.float64, device="cpu")
    points = mixture.centers.to(torch.float64)[mode] + mixture.std * noise
    return Data(spec.name, points.to(torch.float32), None, mixture, mode, len(mixture.centers))


def _ring8() -> Mixture:
    """Eight modes on a circle of radius 1, from angle 0 on; the last is one eighth short of a full turn."""
    angles = [2 * math.pi * k / 8 for k in range(8)]
    return Mixture(_float32([(math.cos(angle), math.sin(angle)) for angle in angles]), std=0.01)


def _grid25() -> Mixture:
    """5×5 modes, two apart, from -4 to 4."""
    steps = (-4.0, -2.0, 0.0, 2.0, 4.0)
    return Mixture(_float32([(x, y) for x in steps for y in steps]), std=0.05)


def _float32(centers: list[tuple[float, float]]) -> Tensor:
    return torch.tensor(centers, dtype=torch.float32, device="cpu")


_MIXTURES = {"grid25": _grid25, "ring8": _ring8}
