"""`cnn28`: features of 28x28 grey pictures, from a small network that was trained once to tell things apart.

Three convolutions of stride 2 (5x5 to 16, 5x5 to 32, 3x3 to 32 channels) and one linear layer to 64 numbers, trained
by `scripts/train_features.py` to name ten handwritten digits and ten clothes; the layer that names them is left away.
Each feature is scaled to a deviation of 1 over the pictures trained on. The weights lie beside this file as 16-bit
floats and nothing else: no pickle is read, and `SHA256` says which weights a value was computed with.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import conv2d, linear, relu

from ganbench.errors import UsageError

NAME = "cnn28"
SHAPE = (1, 28, 28)
"""The pictures that it is for: (C, H, W), values in [0, 1]."""

WEIGHT_SHAPES: tuple[tuple[int, ...], ...] = ((16, 1, 5, 5), (32, 16, 5, 5), (32, 32, 3, 3), (64, 32 * 4 * 4))
"""Of each layer; every layer has a bias of its first size."""

DIMS = WEIGHT_SHAPES[-1][0]
SHA256 = "f4aac8563921c8f3f5b12908131de4c61e6d7eb5645038003d127d224f1e4bae"
"""Of the file of weights."""

WEIGHTS = Path(__file__).with_name("weights") / "cnn28.fp16"

_BLOCK = 512
_STORED = np.dtype("<f2")

Layer = tuple[Tensor, Tensor]


def forward(layers: Sequence[Layer], pictures: Tensor) -> Tensor:
    """Return the features, (N, 64), of `pictures`, (N, 1, 28, 28) in [0, 1]; `layers`: (weight, bias) of its dtype."""
    *convolutions, (weight, bias) = layers
    for kernel, offset in convolutions:
        pictures = relu(conv2d(pictures, kernel, offset, stride=2, padding=kernel.shape[-1] // 2))
    return linear(pictures.flatten(start_dim=1), weight, bias)


@torch.no_grad()
def cnn28(pictures: Tensor) -> Tensor:
    """Return the features, (N, 64) float64, of `pictures`, (N, 1, 28, 28) in [0, 1], on the CPU.

    Convolutions are made in float32, where they take a fifth of the time: processors agree in six digits or so.

    Raises:
        UsageError: the file of weights is missing or is not the one that was shipped.
    """
    layers = _shipped()
    with torch.autocast("cpu", enabled=False):
        return torch.cat([forward(layers, block).double() for block in torch.split(pictures.float(), _BLOCK)])


@cache
def _shipped() -> tuple[Layer, ...]:
    return tuple((weight.float(), bias.float()) for weight, bias in read_weights(WEIGHTS, SHA256))


def read_weights(path: Path, sha256: str) -> tuple[Layer, ...]:
    """Return the layers, float64, that a file of weights holds.

    Raises:
        UsageError: the file cannot be read, or its SHA-256 is not `sha256`.
    """
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise UsageError(f"the weights of {NAME} cannot be read: '{path}': {error.strerror}; {_REMEDY}") from error
    found = hashlib.sha256(stored).hexdigest()
    if found != sha256:
        raise UsageError(
            f"the weights of {NAME} must have the SHA-256 {sha256[:16]}…; '{path}' has {found[:16]}…: {_REMEDY}"
        )
    numbers = np.frombuffer(stored, _STORED).astype(np.float64)
    layers, start = [], 0
    for shape in WEIGHT_SHAPES:
        end = start + math.prod(shape)
        weight, bias = numbers[start:end].reshape(shape), numbers[end : end + shape[0]]
        layers.append((torch.from_numpy(weight), torch.from_numpy(bias)))
        start = end + shape[0]
    return tuple(layers)


def to_bytes(layers: Sequence[Layer]) -> bytes:
    """Return what a file of weights holds: each layer's weight and bias in order, little-endian 16-bit floats.

    Raises:
        ValueError: the layers have other shapes than `WEIGHT_SHAPES`.
    """
    shapes = tuple(tuple(weight.shape) for weight, _ in layers)
    if shapes != WEIGHT_SHAPES or any(bias.shape != weight.shape[:1] for weight, bias in layers):
        raise ValueError(f"the layers must have the shapes {WEIGHT_SHAPES}, each with its bias; given {shapes}")
    return b"".join(part.detach().cpu().numpy().astype(_STORED).tobytes() for layer in layers for part in layer)


_REMEDY = "it is damaged, install ganbench again"
