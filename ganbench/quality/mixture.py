"""Scores of 2-D samples against a known mixture of equally likely round Gaussians.

A sample is of high quality when it lies within 3 standard deviations of its nearest mode, and then belongs to
that mode. Mode counts follow Metz et al. 2017 (arXiv:1611.02163), Srivastava et al. 2017 (VEEGAN,
arXiv:1705.07761) and Lin et al. 2018 (PacGAN, arXiv:1712.04086). Samples of the mixture itself do not score
100 %: 1 - exp(-9/2) = 98.9 % lie within 3 standard deviations, and cut off there their spread is 0.974 of the
mixture's. A single wide Gaussian blob hits most modes with a few samples and splits evenly between them: read
`high_quality_share` and `modes_20` first.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ganbench.quality.matrix import feature_matrix

HIGH_QUALITY_RADIUS = 3.0
"""How far from its mode a sample of high quality may lie, in standard deviations."""

FAIR_SHARE = 0.2
"""The part of N/K samples that a mode must hold to count in `modes_20`."""


@torch.no_grad()
def score_mixture(samples: Tensor, centers: Tensor, std: float) -> dict[str, float]:
    """Score `samples`, (N, 2), against the mixture with modes at `centers`, (K, 2), and `std` per coordinate.

    Returns a dict of

    * `high_quality_share`: share, 0 to 1, of samples within 3 `std` of the nearest mode;
    * `modes`: modes, 0 to K, with at least one high-quality sample;
    * `modes_20`: modes, 0 to K, with at least 20 % of their fair share of N/K high-quality samples;
    * `reverse_kl`: KL(samples' modes || uniform) in nats, 0 to log K, over the high-quality samples;
    * `std_ratio`: rms deviation per coordinate of high-quality samples from the mean of those of the same
      mode (pooled, one degree of freedom lost per mode), over `std`: 0 when each mode is one point.

    A score that is not defined is left out: `reverse_kl` without any high-quality sample, `std_ratio` without
    two in one mode.

    Raises:
        ValueError: a shape is not as above, N or K is 0, a value is not finite, or `std` is not positive and
            finite.
    """
    _check(centers, std)
    points = _points(samples, "samples")
    modes = _points(centers, "centers")
    count, kinds = points.shape[0], modes.shape[0]

    # Differences, not matrix products: two coordinates only, and exact near a mode far from the origin.
    squared, nearest = (points[:, None, :] - modes[None, :, :]).square().sum(dim=2).min(dim=1)
    good = squared <= (HIGH_QUALITY_RADIUS * std) ** 2
    kept, mode = points[good], nearest[good]
    held = torch.bincount(mode, minlength=kinds)

    scores = {
        "high_quality_share": kept.shape[0] / count,
        "modes": float((held >= 1).sum()),
        "modes_20": float(((held >= 1) & (held >= FAIR_SHARE * count / kinds)).sum()),
    }
    if kept.shape[0] > 0:
        shares = held[held > 0].to(torch.float64) / kept.shape[0]
        scores["reverse_kl"] = max(0.0, math.log(kinds) + float((shares * shares.log()).sum()))
    freedom = kept.shape[0] - int((held >= 1).sum())
    if freedom > 0:
        offsets = kept - modes[mode]
        sums = torch.zeros_like(modes).index_add_(0, mode, offsets)
        means = sums / held.clamp_min(1)[:, None]
        within = (offsets - means[mode]).square().sum() / (2 * freedom)
        scores["std_ratio"] = math.sqrt(float(within)) / std
    return scores


@torch.no_grad()
def sample_mixture(centers: Tensor, std: float, count: int, generator: torch.Generator) -> Tensor:
    """Draw `count` points from the mixture with modes at `centers`, (K, 2), and `std` per coordinate.

    Args:
        generator: a CPU generator; the only source of randomness.

    Returns:
        (count, 2) float64 on the CPU.

    Raises:
        ValueError: `centers` or `std` is not as for `score_mixture`, or `count` < 1.
    """
    _check(centers, std)
    if count < 1:
        raise ValueError(f"count must be at least 1; given {count}")
    modes = _points(centers, "centers")
    mode = torch.randint(modes.shape[0], (count,), generator=generator, device="cpu")
    noise = torch.randn(count, 2, generator=generator, dtype=torch.float64, device="cpu")
    return modes[mode] + std * noise


def _points(values: Tensor, name: str) -> Tensor:
    matrix = feature_matrix(values, name, least_rows=1)
    if matrix.shape[1] != 2:
        raise ValueError(f"{name} must be points of the plane, (N, 2); given shape {tuple(values.shape)}")
    return matrix


def _check(centers: Tensor, std: float) -> None:
    _points(centers, "centers")
    if not (math.isfinite(std) and std > 0):
        raise ValueError(f"std must be a positive, finite number; given {std}")
