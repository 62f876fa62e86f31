"""Evaluators: one object that knows the real data and turns fakes into named scores.

An evaluator is made once per run and used at every evaluation point. It draws only from the generator it is
given, and only while it is made: `score` is a pure function of the fakes, so that evaluating more or less
often changes neither training nor scores. Everything happens on the CPU, without autograd.

The number of fakes is part of the measure (Fréchet distance, coverage and recall all depend on N), so each
evaluator says how many it wants and takes no other number. `floor` holds the same scores for fresh real data
of the same size: what a perfect generator would get.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from ganbench.quality.features import features_for, to_unit_scale
from ganbench.quality.frechet import Moments, frechet_between
from ganbench.quality.mixture import FAIR_SHARE, HIGH_QUALITY_RADIUS, sample_mixture, score_mixture
from ganbench.quality.neighbours import NEIGHBOURS, Neighbourhoods

MOST_NEIGHBOURS = 2000
"""Coverage and recall use at most this many rows of each side: their cost grows with the square."""

_BLOCK = 512
# Resizing and float rounding may leave a range by a little; more means that the range is not the data's.
_SLACK = 0.01


class NonFiniteSamples(ValueError):
    """Fakes hold NaN or infinity: there is no quality to measure, the generator has diverged."""


class Evaluator(Protocol):
    """What training needs to know of an evaluator."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Every name that `score` may return; one may be left out where it is not defined."""

    @property
    def primary(self) -> str:
        """The metric that stands for quality as a whole; `score` always returns it."""

    @property
    def samples(self) -> int:
        """N: how many fakes `score` takes."""

    @property
    def floor(self) -> dict[str, float]:
        """The scores of N real samples that are not those compared with."""

    @property
    def describe(self) -> dict[str, str | int | float]:
        """Facts for the record: features, N, k ...; `direction` says what is better for `primary`."""

    def score(self, fake: Tensor) -> dict[str, float]:
        """Return the scores of `fake`, N samples shaped like the data.

        Raises:
            NonFiniteSamples: `fake` holds NaN or infinity.
            ValueError: another shape or number than asked for.
        """


class PictureEvaluator:
    """Scores pictures by Fréchet distance, coverage and recall on the features that suit their size.

    The real pictures are split at random into two disjoint halves of `samples`. The first is the reference;
    the second, scored as if it were fake, gives the floor. `fd_<features>` is the primary metric, lower is
    better.
    """

    def __init__(
        self, real: Tensor, value_range: tuple[float, float], samples: int, generator: torch.Generator
    ) -> None:
        """Choose the two halves and compute the reference and the floor.

        Args:
            real: real pictures, (M, C, H, W), values in `value_range`.
            value_range: (low, high) of the data; fakes are clamped to it.
            samples: N, size of each half and number of fakes; 2 N <= M.
            generator: a CPU generator; draws one permutation of M.

        Raises:
            ValueError: wrong shape, `samples` < 6 or > M / 2, pictures that are not finite or not in
                `value_range`.
        """
        if real.dim() != 4 or real.is_complex():
            given = f"{tuple(real.shape)} of {real.dtype}"
            raise ValueError(f"real pictures must be numbers of shape (M, C, H, W); given {given}")
        count = real.shape[0]
        if samples <= NEIGHBOURS:
            raise ValueError(f"samples must be at least {NEIGHBOURS + 1}, for {NEIGHBOURS} neighbours; given {samples}")
        if 2 * samples > count:
            raise ValueError(
                "two disjoint halves of real pictures are needed, 2 x samples <= pictures; "
                f"given samples {samples} and {count} pictures: ask for at most {count // 2} samples"
            )
        _check_range(real, value_range)

        self._shape = (int(real.shape[1]), int(real.shape[2]), int(real.shape[3]))
        self._features = features_for(self._shape)
        self._range = value_range
        self.samples: int = samples
        self.primary: str = f"fd_{self._features.name}"
        self.metrics: tuple[str, ...] = (self.primary, "coverage", "recall")

        order = torch.randperm(count, generator=generator, device="cpu").to(real.device)
        reference = self._extract(real[order[:samples]])
        self._moments = Moments.of(reference)
        self._neighbourhoods = Neighbourhoods.of(reference[:MOST_NEIGHBOURS], NEIGHBOURS)
        self.floor: dict[str, float] = self.score(real[order[samples : 2 * samples]])
        self.describe: dict[str, str | int | float] = {
            "features": self._features.name,
            "feature_dims": self._features.dims,
            **self._features.facts,
            "pixel_scale": "0..1",
            "value_low": float(value_range[0]),
            "value_high": float(value_range[1]),
            "samples": samples,
            "real_pictures": count,
            "neighbours": NEIGHBOURS,
            "neighbour_samples": min(samples, MOST_NEIGHBOURS),
            "direction": "minimize",
        }

    def score(self, fake: Tensor) -> dict[str, float]:
        """Return `fd_<features>`, `coverage` and `recall` of `fake`, (N, C, H, W) with N = `samples`.

        Pictures are clamped to the data's value range first. Any float dtype, any device.

        Raises:
            NonFiniteSamples: `fake` holds NaN or infinity.
            ValueError: another shape or number of pictures.
        """
        check_fakes(fake, (self.samples, *self._shape))
        features = self._extract(fake)
        few = features[:MOST_NEIGHBOURS]
        around = Neighbourhoods.of(few, NEIGHBOURS)
        return {
            self.primary: frechet_between(self._moments, Moments.of(features)),
            "coverage": self._neighbourhoods.share_of_balls_reached(few),
            "recall": around.share_of_points_held(self._neighbourhoods.points),
        }

    @torch.no_grad()
    def _extract(self, pictures: Tensor) -> Tensor:
        """Return features, (N, F) float64 on the CPU; in blocks, so that few pictures are float64 at once."""
        blocks = torch.split(pictures.detach(), _BLOCK)
        return torch.cat([self._features.extract(to_unit_scale(block.cpu(), self._range)) for block in blocks])


class PointEvaluator:
    """Scores points of the plane against the mixture they should come from, by `score_mixture`.

    The floor is the score of N points drawn from the mixture itself. `high_quality_share` is the primary
    metric, higher is better.
    """

    metrics: tuple[str, ...] = ("high_quality_share", "modes", "modes_20", "reverse_kl", "std_ratio")
    primary: str = "high_quality_share"

    def __init__(self, centers: Tensor, std: float, samples: int, generator: torch.Generator) -> None:
        """Draw the points behind the floor.

        Args:
            centers: (K, 2), the modes, equally likely.
            std: standard deviation per coordinate, in the unit of `centers`.
            samples: N, how many fakes are scored.
            generator: a CPU generator; draws N points.

        Raises:
            ValueError: `centers` is not a finite (K, 2), `std` is not positive and finite, or `samples` < 1.
        """
        if samples < 1:
            raise ValueError(f"samples must be at least 1; given {samples}")
        real = sample_mixture(centers, std, samples, generator)
        self._centers = centers.detach().to(device="cpu", dtype=torch.float64, copy=True)
        self._std = std
        self.samples: int = samples
        self.floor: dict[str, float] = self.score(real)
        self.describe: dict[str, str | int | float] = {
            "features": "points",
            "centers": int(centers.shape[0]),
            "std": float(std),
            "samples": samples,
            "high_quality_radius": HIGH_QUALITY_RADIUS,
            "fair_share": FAIR_SHARE,
            "direction": "maximize",
        }

    def score(self, fake: Tensor) -> dict[str, float]:
        """Return the scores of `fake`, (N, 2) with N = `samples`. Any float dtype, any device.

        `reverse_kl` and `std_ratio` are left out where they are not defined.

        Raises:
            NonFiniteSamples: `fake` holds NaN or infinity.
            ValueError: another shape or number of points.
        """
        check_fakes(fake, (self.samples, 2))
        return score_mixture(fake, self._centers, self._std)


@torch.no_grad()
def check_fakes(fake: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse fakes of another shape, and those that hold what is no number.

    Raises:
        NonFiniteSamples: `fake` holds NaN or infinity.
        ValueError: its shape, samples first, is another one.
    """
    if tuple(fake.shape) != shape:
        raise ValueError(f"fakes must have the shape {shape}, samples first; given {tuple(fake.shape)}")
    finite = torch.isfinite(fake).flatten(start_dim=1).all(dim=1)
    bad = int((~finite).sum())
    if bad:
        raise NonFiniteSamples(f"samples must be finite; {bad} of {shape[0]} hold NaN or infinity")


@torch.no_grad()
def _check_range(real: Tensor, value_range: tuple[float, float]) -> None:
    to_unit_scale(real[:0], value_range)  # says what is wrong with the range itself
    if real.numel() == 0:
        raise ValueError(f"real pictures must have pixels; given shape {tuple(real.shape)}")
    least, most = float(real.min()), float(real.max())
    slack = _SLACK * (value_range[1] - value_range[0])
    # Written so that NaN fails too.
    if not (value_range[0] - slack <= least and most <= value_range[1] + slack):
        raise ValueError(
            f"real pictures must lie in their value range {value_range}; "
            f"given values from {least:g} to {most:g}: state the range the data has"
        )
