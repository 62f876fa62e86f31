"""Named features of pictures: what the Fréchet distance, coverage and recall are computed on.

Plain pixels see everything a small picture has, need no weights, and cost milliseconds. Grey pictures of 28x28 are
seen by a small network (`cnn28`). Other large ones are averaged over 2x2 blocks until few enough numbers are left.
Pixels are first brought from the data's own range to [0, 1]; the scale matters, since a Fréchet distance has the
square of the features' unit (on [-1, 1] every value is 4 times as large). On the 8x8 digits this scale gives .26 /
.13 / .072 for real against disjoint real at N = 250 / 500 / 898.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d

from ganbench.quality import cnn28

MOST_DIMS = 256
"""The most features a picture is described by; a covariance of more would need thousands of samples."""


@dataclass(frozen=True)
class Features:
    """A named way of describing a picture by numbers.

    Attributes:
        name: stands in metric names (`fd_<name>`) and in records.
        dims: F, how many numbers a picture becomes.
        extract: pictures on the unit scale, (N, C, H, W) in [0, 1], to features, (N, F).
        facts: what else a record must say of them, such as the hash of a network's weights.
    """

    name: str
    dims: int
    extract: Callable[[Tensor], Tensor]
    facts: dict[str, str] = field(default_factory=dict)


def features_for(shape: tuple[int, int, int]) -> Features:
    """Return the features that pictures of `shape` = (C, H, W) are judged by.

    `cnn28` for (1, 28, 28). `pixels` when C*H*W is at most 256. Else `pooled_pixels`: averaged over 2x2 blocks as
    often as it takes to come down to 256 numbers, or to one pixel a channel; a block cut by the edge averages what it
    has.

    Raises:
        ValueError: `shape` is not three positive integers.
    """
    if len(shape) != 3 or any(size < 1 for size in shape):
        raise ValueError(f"a picture's shape must be three positive integers (C, H, W); given {tuple(shape)}")
    if tuple(shape) == cnn28.SHAPE:
        return Features(cnn28.NAME, cnn28.DIMS, _of_shape(shape, cnn28.cnn28), {"weights_sha256": cnn28.SHA256})
    channels, height, width = shape
    halvings = 0
    while channels * height * width > MOST_DIMS and (height > 1 or width > 1):
        height, width, halvings = math.ceil(height / 2), math.ceil(width / 2), halvings + 1

    def pooled(pictures: Tensor) -> Tensor:
        for _ in range(halvings):
            pictures = avg_pool2d(pictures, kernel_size=2, ceil_mode=True)
        return pictures.flatten(start_dim=1)

    name = "pooled_pixels" if halvings else "pixels"
    return Features(name, channels * height * width, _of_shape(shape, pooled))


def _of_shape(shape: tuple[int, int, int], extract: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def checked(pictures: Tensor) -> Tensor:
        if tuple(pictures.shape[1:]) != tuple(shape):
            given = tuple(pictures.shape)
            raise ValueError(f"pictures must have the shape (N, C, H, W) with (C, H, W) = {shape}; given {given}")
        return extract(pictures)

    return checked


def to_unit_scale(pictures: Tensor, value_range: tuple[float, float]) -> Tensor:
    """Return `pictures` as float64 with `value_range` = (low, high) brought to [0, 1].

    Values outside are clamped. Any shape and device; NaN stays NaN.

    Raises:
        ValueError: not low < high, or one is not finite.
    """
    low, high = value_range
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"a value range must be (low, high) with low < high, both finite; given {value_range}")
    return ((pictures.to(torch.float64) - low) / (high - low)).clamp(0.0, 1.0)
