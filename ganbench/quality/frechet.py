"""Fréchet distance between two sets of features, each seen as a Gaussian.

    d(x, y) = |m1 - m2|^2 + tr(S1) + tr(S2) - 2 tr((S1^1/2 S2 S1^1/2)^1/2)

(Dowson & Landau 1982; used on Inception features as "FID" by Heusel et al. 2017, arXiv:1706.08500. With any
other features it is a Fréchet distance and not FID.) It is the *squared* 2-Wasserstein distance of the two
Gaussians, so its unit is the square of the features' unit. Covariances are divided by N - 1. The value is
biased upwards for small N, so that two values compare only at equal N, and each needs the value of real
against disjoint real beside it.

All in float64 with symmetric eigendecompositions; eigenvalues that rounding made negative count as 0. That
keeps constant features, and fewer samples than features, exact instead of complex or NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ganbench.quality.matrix import feature_matrix, same_width


@dataclass(frozen=True, eq=False)
class Moments:
    """What the Fréchet distance needs to know of one side; computed once for a side that is used repeatedly.

    Attributes:
        mean: (F,) float64.
        covariance: (F, F) float64, divided by N - 1.
        root: (F, F) float64, the symmetric square root of `covariance`.
        count: N, the number of samples behind them.
    """

    mean: Tensor
    covariance: Tensor
    root: Tensor
    count: int

    @classmethod
    def of(cls, features: Tensor) -> Moments:
        """Return the moments of `features`, (N, F) with N >= 2.

        Raises:
            ValueError: not a finite matrix of at least two rows.
        """
        return cls._of(features, "features")

    @classmethod
    @torch.no_grad()
    def _of(cls, features: Tensor, name: str) -> Moments:
        matrix = feature_matrix(features, name, least_rows=2)
        mean = matrix.mean(dim=0)
        centred = matrix - mean
        covariance = centred.T @ centred / (matrix.shape[0] - 1)
        values, vectors = torch.linalg.eigh(covariance)
        root = (vectors * values.clamp_min(0).sqrt()) @ vectors.T
        return cls(mean=mean, covariance=covariance, root=root, count=matrix.shape[0])


@torch.no_grad()
def frechet_between(x: Moments, y: Moments) -> float:
    """Return the Fréchet distance between two sides whose moments are known.

    At least 0, in the squared unit of the features. Symmetric in its arguments up to rounding.

    Raises:
        ValueError: the two sides differ in their number of features.
    """
    same_width(x.mean.shape[0], y.mean.shape[0])
    product = x.root @ y.covariance @ x.root
    values = torch.linalg.eigvalsh((product + product.T) / 2)
    shared = values.clamp_min(0).sqrt().sum()
    apart = (x.mean - y.mean).square().sum()
    distance = apart + x.covariance.trace() + y.covariance.trace() - 2 * shared
    return max(0.0, float(distance))


def frechet_distance(x: Tensor, y: Tensor) -> float:
    """Return the Fréchet distance between features `x`, (N, F), and `y`, (M, F).

    At least 0, in the squared unit of the features; lower is better.

    Raises:
        ValueError: a side is not a finite matrix of at least two rows, or their numbers of features differ.
    """
    if x.dim() == 2 and y.dim() == 2:
        same_width(x.shape[1], y.shape[1])
    return frechet_between(Moments._of(x, "x"), Moments._of(y, "y"))
