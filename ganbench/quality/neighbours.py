"""Coverage and recall: how much of the real data the fakes reach, by nearest neighbours.

Around each point of a set lies a ball that ends at its k-th nearest neighbour in the same set, itself not
counted.

* coverage (Naeem et al. 2020, arXiv:2002.09797): the share of real balls that hold at least one fake;
* recall (Kynkäänniemi et al. 2019, arXiv:1904.06991): the share of real points that lie in at least one ball
  of a fake.

Both fall when modes are dropped and when samples repeat. Balls are open (distance < radius), as in the
authors' `prdc` code: a point that has k exact copies of itself has a ball that holds nothing. Both depend on
N and k.

Distances are squared, in float64, by matrix products on blocks of rows: N = 2000 takes some ten MB at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ganbench.quality.matrix import feature_matrix, same_width

NEIGHBOURS = 5
"""The k that Naeem et al. use."""

_BLOCK = 256
# A squared distance below this share of the squared norms is rounding: exact copies are exactly 0 apart.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """The balls around the points of one set; computed once for a set that is used repeatedly.

    Attributes:
        points: (N, F) float64.
        squared_radii: (N,) float64, squared distance of each point to its k-th nearest neighbour.
        k: which neighbour ends a ball.
    """

    points: Tensor
    squared_radii: Tensor
    k: int

    @classmethod
    def of(cls, points: Tensor, k: int = NEIGHBOURS) -> Neighbourhoods:
        """Return the balls around `points`, (N, F) with N > k.

        Raises:
            ValueError: k < 1, or `points` is not a finite matrix of more than k rows.
        """
        return cls._of(points, "points", k)

    @classmethod
    @torch.no_grad()
    def _of(cls, points: Tensor, name: str, k: int) -> Neighbourhoods:
        if k < 1:
            raise ValueError(f"k must be at least 1; given {k}")
        matrix = feature_matrix(points, name, least_rows=k + 1)
        # Each point is its own nearest, at exactly 0: the k-th other one is number k + 1.
        radii = [
            _squared_distances(rows, matrix, matrix[0]).kthvalue(k + 1, dim=1).values
            for rows in torch.split(matrix, _BLOCK)
        ]
        return cls(points=matrix, squared_radii=torch.cat(radii), k=k)

    def share_of_balls_reached(self, others: Tensor) -> float:
        """Return the share, 0 to 1, of these balls that hold at least one of `others`, (M, F) with M >= 1.

        With real balls and fakes as `others` this is coverage.

        Raises:
            ValueError: `others` is not a finite matrix of the same width with at least one row.
        """
        return self._reached(others, "others")

    def share_of_points_held(self, others: Tensor) -> float:
        """Return the share, 0 to 1, of `others`, (M, F) with M >= 1, that lie in at least one of these balls.

        With balls of fakes and real points as `others` this is recall.

        Raises:
            ValueError: `others` is not a finite matrix of the same width with at least one row.
        """
        return self._held(others, "others")

    @torch.no_grad()
    def _reached(self, others: Tensor, name: str) -> float:
        matrix = self._matching(others, name)
        reached = 0
        for rows, radii in zip(torch.split(self.points, _BLOCK), torch.split(self.squared_radii, _BLOCK), strict=True):
            nearest = _squared_distances(rows, matrix, self.points[0]).amin(dim=1)
            reached += int((nearest < radii).sum())
        return reached / self.points.shape[0]

    @torch.no_grad()
    def _held(self, others: Tensor, name: str) -> float:
        matrix = self._matching(others, name)
        held = 0
        for rows in torch.split(matrix, _BLOCK):
            inside = _squared_distances(rows, self.points, self.points[0]) < self.squared_radii
            held += int(inside.any(dim=1).sum())
        return held / matrix.shape[0]

    def _matching(self, others: Tensor, name: str) -> Tensor:
        matrix = feature_matrix(others, name, least_rows=1)
        same_width(self.points.shape[1], matrix.shape[1])
        return matrix


def coverage(real: Tensor, fake: Tensor, k: int = NEIGHBOURS) -> float:
    """Return the coverage, 0 to 1, of `real`, (N, F) with N > k, by `fake`, (M, F) with M >= 1.

    Higher is better. Naeem et al. 2020. Costs O((N + M) N F) time.

    Raises:
        ValueError: k < 1, a side is not a finite matrix with rows enough, or their widths differ.
    """
    return Neighbourhoods._of(real, "real", k)._reached(fake, "fake")


def recall(real: Tensor, fake: Tensor, k: int = NEIGHBOURS) -> float:
    """Return the recall, 0 to 1, of `real`, (N, F) with N >= 1, by `fake`, (M, F) with M > k.

    Higher is better. Kynkäänniemi et al. 2019. Costs O((N + M) M F) time.

    Raises:
        ValueError: k < 1, a side is not a finite matrix with rows enough, or their widths differ.
    """
    return Neighbourhoods._of(fake, "fake", k)._held(real, "real")


def _squared_distances(x: Tensor, y: Tensor, origin: Tensor) -> Tensor:
    """Return the (N, M) squared Euclidean distances of rows of `x`, (N, F), to rows of `y`, (M, F).

    Measured from `origin`, (F,), a point of the data: a common offset costs no digits, and data on a dyadic
    grid (the digits' 17 grey values) stays exact, so that ties do.
    """
    x, y = x - origin, y - origin
    norms = x.square().sum(dim=1)[:, None] + y.square().sum(dim=1)
    squared = norms - 2 * (x @ y.T)
    return squared.masked_fill_(squared <= _ROUNDING * norms, 0.0)
