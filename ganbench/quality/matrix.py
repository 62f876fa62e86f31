"""The one shape every sample-quality metric works on: a float64 matrix of features on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor


def feature_matrix(values: Tensor, name: str, least_rows: int) -> Tensor:
    """Return `values` as a detached float64 matrix on the CPU, after checking that it is one.

    Args:
        values: features, (N, F): one row a sample, one column a feature. Any real dtype, any device.
        name: what the caller calls the argument; errors say it.
        least_rows: the smallest N that the metric is defined for.

    Raises:
        ValueError: not two dimensions, no column, fewer than `least_rows` rows, complex, or not all finite.
    """
    if values.dim() != 2 or values.shape[1] == 0:
        raise ValueError(f"{name} must be a matrix (samples, features); given shape {tuple(values.shape)}")
    if values.shape[0] < least_rows:
        raise ValueError(f"{name} must have at least {least_rows} rows; given {values.shape[0]}")
    if values.is_complex():
        raise ValueError(f"{name} must be real numbers; given {values.dtype}")
    matrix = values.detach().to(device="cpu", dtype=torch.float64)
    if not bool(torch.isfinite(matrix).all()):
        bad = int((~torch.isfinite(matrix)).any(dim=1).sum())
        raise ValueError(f"{name} must be finite; {bad} of {matrix.shape[0]} rows hold NaN or infinity")
    return matrix


def same_width(x: int, y: int) -> None:
    """Check that two feature matrices have the same number of columns.

    Raises:
        ValueError: `x` and `y` differ.
    """
    if x != y:
        raise ValueError(f"both sides must have the same number of features; given {x} and {y}")
