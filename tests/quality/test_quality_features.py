from __future__ import annotations

import math

import pytest
import torch

from ganbench.quality import features_for, to_unit_scale


@pytest.mark.parametrize(
    ("shape", "name", "dims"),
    [
        ((1, 8, 8), "pixels", 64),
        ((1, 16, 16), "pixels", 256),
        ((1, 1, 257), "pooled_pixels", 129),
        ((1, 17, 16), "pooled_pixels", 72),
        ((1, 28, 28), "cnn28", 64),
        ((3, 28, 28), "pooled_pixels", 147),
        ((1, 27, 28), "pooled_pixels", 196),
        ((1, 32, 32), "pooled_pixels", 256),
        ((3, 32, 32), "pooled_pixels", 192),
        ((3, 64, 64), "pooled_pixels", 192),
        ((300, 2, 2), "pooled_pixels", 300),
        ((300, 1, 1), "pixels", 300),
    ],
)
def test_name_and_dims_by_shape(shape: tuple[int, int, int], name: str, dims: int) -> None:
    features = features_for(shape)
    assert (features.name, features.dims) == (name, dims)
    assert features.extract(torch.zeros(5, *shape, dtype=torch.float64)).shape == (5, dims)


def test_pixels_are_the_pixels() -> None:
    pictures = torch.arange(2 * 64.0).view(2, 1, 8, 8)
    assert torch.equal(features_for((1, 8, 8)).extract(pictures), pictures.flatten(1))


def test_pooling_averages_blocks() -> None:
    pictures = torch.rand(3, 1, 28, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    blocks = pictures.view(3, 14, 2, 15, 2).mean(dim=(2, 4))
    assert torch.allclose(features_for((1, 28, 30)).extract(pictures), blocks.flatten(1))


@pytest.mark.parametrize("shape", [(1, 17, 17), (3, 33, 65), (1, 1, 999), (2, 27, 13)])
def test_a_cut_block_averages_what_it_has(shape: tuple[int, int, int]) -> None:
    """No pixel is dropped and none is watered down by padding: a flat picture stays flat."""
    flat = torch.full((2, *shape), 0.7, dtype=torch.float64)
    values = features_for(shape).extract(flat)
    assert torch.allclose(values, torch.full_like(values, 0.7))
    corner = torch.zeros(1, *shape, dtype=torch.float64)
    corner[..., -1, -1] = 1
    assert features_for(shape).extract(corner).sum() > 0


@pytest.mark.parametrize("value_range", [(0.0, 1.0), (-1.0, 1.0), (0.0, 255.0), (-0.42, 2.8)])
def test_unit_scale(value_range: tuple[float, float]) -> None:
    low, high = value_range
    values = torch.tensor([low, (low + high) / 2, high, low - 9, high + 9], dtype=torch.float64)
    expected = torch.tensor([0, 0.5, 1, 0, 1], dtype=torch.float64)
    assert torch.allclose(to_unit_scale(values, value_range), expected)
    assert to_unit_scale(values.half(), value_range).dtype == torch.float64


def test_nan_is_not_clamped_away() -> None:
    assert to_unit_scale(torch.tensor([math.nan]), (0, 1)).isnan().all()


@pytest.mark.parametrize("value_range", [(1.0, 1.0), (1.0, -1.0), (0.0, math.inf), (math.nan, 1.0)])
def test_a_bad_range_says_rule_and_given(value_range: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match=r"must be \(low, high\).*low < high.*given \("):
        to_unit_scale(torch.zeros(3), value_range)


@pytest.mark.parametrize("shape", [(1, 0, 8), (8, 8), (1, -1, 8)])
def test_a_bad_shape_says_rule_and_given(shape: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"three positive integers \(C, H, W\); given \("):
        features_for(shape)


def test_pictures_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(1, 8, 8\); given \(5, 1, 8, 4\)"):
        features_for((1, 8, 8)).extract(torch.zeros(5, 1, 8, 4))
