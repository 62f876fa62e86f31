"""Quality of items that are neither pictures nor points of a known mixture, such as vectors and sequences.

Each coordinate is brought to mean 0 and deviation 1 of the real data, so that a coordinate's unit does not matter.
Items of more than `MOST_DIMS` numbers are projected to so many by a fixed random matrix, which keeps distances on
average (Johnson & Lindenstrauss 1984).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ganbench.quality.evaluator import MOST_NEIGHBOURS, check_fakes
from ganbench.quality.features import MOST_DIMS
from ganbench.quality.frechet import Moments, frechet_between
from ganbench.quality.neighbours import NEIGHBOURS, Neighbourhoods

_SEED = 0


class CoordinateEvaluator:
    """Scores items of any shape by Fréchet distance, coverage and recall on their standardised coordinates.

    The real items are split at random into two disjoint halves of `samples`: the reference, and the one whose score is
    the floor. `fd_coordinates` (`fd_projected_coordinates` for large items) is the primary metric, lower is better.
    """

    def __init__(self, real: Tensor, samples: int, generator: torch.Generator) -> None:
        """Choose the two halves and compute the reference and the floor.

        Args:
            real: real items, (M, …), finite.
            samples: N, size of each half and number of fakes; 2 N <= M.
            generator: a CPU generator; draws one permutation of M.

        Raises:
            ValueError: `samples` < 6 or > M / 2, or items that are not finite.
        """
        count = real.shape[0]
        if not NEIGHBOURS < samples <= count // 2:
            raise ValueError(f"samples must be from {NEIGHBOURS + 1} to half of {count} items; given {samples}")
        self._shape = tuple(real.shape[1:])
        order = torch.randperm(count, generator=generator, device="cpu").to(real.device)
        flat = _flat(real[order[: 2 * samples]])
        dims = flat.shape[1]
        self._mean = flat[:samples].mean(0)
        deviation = flat[:samples].std(0)
        # What never changes stays in its own unit: dividing by its deviation of 0 would make fakes infinitely wrong.
        self._deviation = torch.where(deviation > 0, deviation, torch.ones_like(deviation))
        self._projection: Tensor | None = None
        if dims > MOST_DIMS:
            fixed = torch.Generator().manual_seed(_SEED)
            self._projection = torch.randn(dims, MOST_DIMS, generator=fixed, dtype=torch.float64) / math.sqrt(MOST_DIMS)
        name = "coordinates" if self._projection is None else "projected_coordinates"
        self.samples: int = samples
        self.primary: str = f"fd_{name}"
        self.metrics: tuple[str, ...] = (self.primary, "coverage", "recall")
        reference = self._features(flat[:samples])
        self._moments = Moments.of(reference)
        self._neighbourhoods = Neighbourhoods.of(reference[:MOST_NEIGHBOURS], NEIGHBOURS)
        self.floor: dict[str, float] = self._score(self._features(flat[samples:]))
        self.describe: dict[str, str | int | float] = {
            "features": name,
            "feature_dims": int(reference.shape[1]),
            "dims": dims,
            "samples": samples,
            "real_items": count,
            "neighbours": NEIGHBOURS,
            "neighbour_samples": min(samples, MOST_NEIGHBOURS),
            "direction": "minimize",
        }

    def score(self, fake: Tensor) -> dict[str, float]:
        """Return the Fréchet distance, `coverage` and `recall` of `fake`, N items shaped like the data.

        Raises:
            NonFiniteSamples: `fake` holds NaN or infinity.
            ValueError: another shape or number of items.
        """
        check_fakes(fake, (self.samples, *self._shape))
        return self._score(self._features(_flat(fake)))

    def _features(self, flat: Tensor) -> Tensor:
        standard = (flat - self._mean) / self._deviation
        return standard if self._projection is None else standard @ self._projection

    def _score(self, features: Tensor) -> dict[str, float]:
        few = features[:MOST_NEIGHBOURS]
        return {
            self.primary: frechet_between(self._moments, Moments.of(features)),
            "coverage": self._neighbourhoods.share_of_balls_reached(few),
            "recall": Neighbourhoods.of(few, NEIGHBOURS).share_of_points_held(self._neighbourhoods.points),
        }


@torch.no_grad()
def _flat(items: Tensor) -> Tensor:
    return items.detach().to(device="cpu", dtype=torch.float64).flatten(start_dim=1)
