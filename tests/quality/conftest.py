"""Data that the quality tests share; sampled with generators of their own, never the global one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor


@pytest.fixture(scope="session")
def digits() -> tuple[Tensor, Tensor]:
    """All 1797 digits, (1797, 1, 8, 8) float32 in [-1, 1] as training sees them, and their classes."""
    bunch = load_digits()
    pictures = torch.tensor(bunch.data, dtype=torch.float32).view(-1, 1, 8, 8) / 8 - 1
    return pictures, torch.tensor(bunch.target)


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """Work as small as this waits for threads more than it gains, above all beside other tests."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)
