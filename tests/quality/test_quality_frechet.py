from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from torch import Tensor, nn

from ganbench.quality import Moments, frechet_between, frechet_distance


def gaussian(seed: int, rows: int, columns: int, scale: float = 1.0, shift: float = 0.0) -> Tensor:
    """Correlated Gaussian features."""
    generator = torch.Generator().manual_seed(seed)
    mixing = torch.randn(columns, columns, generator=generator, dtype=torch.float64)
    noise = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    return scale * noise @ mixing + shift


def by_sqrtm(x: Tensor, y: Tensor) -> float:
    """The textbook form: tr((S1 S2)^1/2) by scipy."""
    a, b = np.cov(x.numpy(), rowvar=False), np.cov(y.numpy(), rowvar=False)
    root = np.real(np.trace(sqrtm(a @ b)))
    return float(((x.mean(0) - y.mean(0)) ** 2).sum() + np.trace(a) + np.trace(b) - 2 * root)


@pytest.mark.parametrize("columns", [2, 7, 32])
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_agrees_with_scipy(columns: int, shift: float) -> None:
    x, y = gaussian(1, 200, columns), gaussian(2, 150, columns, shift=shift)
    assert frechet_distance(x, y) == pytest.approx(by_sqrtm(x, y), rel=1e-6)


@pytest.mark.parametrize("rows", [40, 300])
def test_agrees_with_torchmetrics(rows: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torchmetrics.image.fid import FrechetInceptionDistance

    class Flat(nn.Module):
        num_features = 16

        def forward(self, pictures: Tensor) -> Tensor:
            return pictures.flatten(1)

    x, y = gaussian(3, rows, 16), gaussian(4, rows, 16, scale=1.3, shift=0.5)
    oracle = FrechetInceptionDistance(feature=Flat(), normalize=True).set_dtype(torch.float64)
    oracle.update(x.view(-1, 1, 4, 4), real=True)
    oracle.update(y.view(-1, 1, 4, 4), real=False)
    assert frechet_distance(x, y) == pytest.approx(float(oracle.compute()), rel=1e-6)


def test_one_feature_has_a_closed_form() -> None:
    """(m1 - m2)^2 + (s1 - s2)^2, with the N - 1 standard deviation."""
    x = torch.tensor([[0.0], [2.0], [4.0]])
    y = torch.tensor([[10.0], [11.0], [12.0]])
    assert frechet_distance(x, y) == pytest.approx((2 - 11) ** 2 + (2 - 1) ** 2)


def test_moments_once_give_the_same_as_features_each_time() -> None:
    x, y = gaussian(5, 60, 8), gaussian(6, 50, 8)
    assert frechet_between(Moments.of(x), Moments.of(y)) == frechet_distance(x, y)
    assert Moments.of(x).count == 60
    assert torch.allclose(Moments.of(x).covariance, torch.cov(x.T))
    root = Moments.of(x).root
    assert torch.allclose(root @ root, torch.cov(x.T))


seeds = st.integers(0, 2**31 - 1)


@settings(max_examples=25, deadline=None)
@given(seed=seeds, rows=st.integers(2, 40), columns=st.integers(1, 12), scale=st.floats(0.01, 100))
def test_properties(seed: int, rows: int, columns: int, scale: float) -> None:
    """0 to itself, symmetric, blind to order, growing with the square of the unit; also for N < F."""
    x, y = gaussian(seed, rows, columns), gaussian(seed + 1, rows, columns, shift=0.3)
    size = float(torch.cov(x.T).trace() + torch.cov(y.T).trace()) if columns > 1 else float(x.var() + y.var())
    distance = frechet_distance(x, y)
    near = 1e-6 * (size + distance)
    assert distance >= 0
    assert frechet_distance(x, x) <= near
    assert frechet_distance(y, x) == pytest.approx(distance, abs=near)
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed))
    assert frechet_distance(x[order], y) == pytest.approx(distance, abs=near)
    assert frechet_distance(scale * x, scale * y) == pytest.approx(scale**2 * distance, abs=scale**2 * near)
    assert frechet_distance(x, x + 2.0) == pytest.approx(4.0 * columns, abs=near + 1e-6)


def test_constant_features_and_a_single_repeated_sample() -> None:
    """Rank-deficient on both sides: still a real number, and the right one."""
    x = gaussian(7, 50, 4)
    x[:, 1] = 2.0
    one = x[:1].repeat(50, 1)
    expected = float((x.mean(0) - one[0]).square().sum() + torch.cov(x.T).trace())
    assert frechet_distance(x, one) == pytest.approx(expected)
    assert frechet_distance(one, one) == 0.0


def test_a_far_offset_costs_no_digits() -> None:
    x, y = gaussian(8, 100, 5), gaussian(9, 100, 5)
    assert frechet_distance(x + 1e6, y + 1e6) == pytest.approx(frechet_distance(x, y), rel=1e-6)


def test_grows_with_noise() -> None:
    x = gaussian(10, 300, 6)
    noise = torch.randn(300, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    values = [frechet_distance(x, x + level * noise) for level in (0.0, 0.1, 0.3, 1.0, 3.0)]
    assert values == sorted(values)
    assert values[1] > values[0]


def test_dtypes_and_autograd() -> None:
    x, y = gaussian(11, 40, 3), gaussian(12, 40, 3)
    expected = frechet_distance(x, y)
    assert frechet_distance(x.float().requires_grad_(), y.float()) == pytest.approx(expected, rel=1e-5)
    assert not Moments.of(x.requires_grad_()).root.requires_grad


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (torch.zeros(3), torch.zeros(3, 2), r"x must be a matrix \(samples, features\); given shape \(3,\)"),
        (torch.zeros(3, 2), torch.zeros(3, 2, 1), r"y must be a matrix .* given shape \(3, 2, 1\)"),
        (torch.zeros(1, 2), torch.zeros(3, 2), "x must have at least 2 rows; given 1"),
        (torch.zeros(3, 2), torch.zeros(3, 4), "same number of features; given 2 and 4"),
        (torch.zeros(3, 0), torch.zeros(3, 0), r"x must be a matrix .* given shape \(3, 0\)"),
        (torch.full((3, 2), math.nan), torch.zeros(3, 2), "x must be finite; 3 of 3 rows"),
        (torch.zeros(3, 2, dtype=torch.complex64), torch.zeros(3, 2), "real numbers; given torch.complex64"),
    ],
)
def test_bad_input_says_rule_and_given(x: Tensor, y: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        frechet_distance(x, y)
