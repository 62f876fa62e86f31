"""Resizing and channels: against Pillow, by chunks, and where nothing is to do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from ganbench.gan.data import fit as fit_module
from ganbench.gan.data.fit import fit


def noise(count: int, channels: int, side: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    shape = (count, channels, side, side)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


def test_nothing_to_do_changes_nothing() -> None:
    pictures = noise(2, 3, 8)
    assert fit(pictures, 8, 3).data_ptr() == pictures.data_ptr()


@pytest.mark.parametrize("size", [5, 8, 16, 21])
def test_resizing_is_that_of_pillow(size: int) -> None:
    pictures = noise(3, 1, 16)
    fitted = fit(pictures, size, 1)
    for before, after in zip(pictures, fitted, strict=True):
        pillow = Image.fromarray(before[0].numpy()).resize((size, size), Image.Resampling.BILINEAR)
        assert (after[0].int() - torch.from_numpy(np.array(pillow)).int()).abs().max() <= 1


def test_luma_is_that_of_pillow() -> None:
    pictures = noise(2, 3, 16)
    for before, after in zip(pictures, fit(pictures, 16, 1), strict=True):
        pillow = Image.fromarray(before.permute(1, 2, 0).contiguous().numpy()).convert("L")
        assert (after[0].int() - torch.from_numpy(np.array(pillow)).int()).abs().max() <= 1


def test_grey_and_white_stay_what_they_are() -> None:
    for value in (0, 128, 255):
        pictures = torch.full((1, 3, 9, 9), value, dtype=torch.uint8)
        assert (fit(pictures, 5, 1) == value).all()
        assert (fit(pictures, 20, 3) == value).all()


def test_one_channel_becomes_three_equal_ones() -> None:
    pictures = noise(4, 1, 8)
    assert torch.equal(fit(pictures, 8, 3), pictures.expand(4, 3, 8, 8))


@pytest.mark.parametrize("chunk", [1, 300, 10**6])
def test_chunks_leave_no_trace(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = noise(7, 3, 8)
    wanted = fit(pictures, 12, 1)
    monkeypatch.setattr(fit_module, "_CHUNK", chunk)
    assert torch.equal(fit(pictures, 12, 1), wanted)
