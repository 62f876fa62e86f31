"""Seeds summed up: mean, standard deviation, n, and a 95 % t interval of the mean."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, stdev

from pydantic import BaseModel, ConfigDict


class Aggregate(BaseModel):
    """Of one figure over the seeds of an arm. `std` and the interval are None for a single seed."""

    model_config = ConfigDict(frozen=True)

    mean: float
    n: int
    std: float | None = None
    low: float | None = None
    high: float | None = None


def aggregate(values: Sequence[float]) -> Aggregate:
    """Mean, sample standard deviation (n - 1) and the 95 % Student t interval of the mean.

    Raises:
        ValueError: there is no value, or one is not finite.
    """
    if not values or not all(math.isfinite(value) for value in values):
        raise ValueError(f"an aggregate needs at least one value, all finite, got {list(values)}")
    mean, n = fmean(values), len(values)
    if n == 1:
        return Aggregate(mean=mean, n=1)
    from scipy.special import stdtrit  # the inverse of Student's t distribution

    std = stdev(values)
    half = float(stdtrit(n - 1, 0.975)) * std / math.sqrt(n)
    return Aggregate(mean=mean, n=n, std=std, low=mean - half, high=mean + half)


def aggregate_all(rows: Iterable[Mapping[str, float]]) -> dict[str, Aggregate]:
    """Aggregate each key over the rows that have a finite value for it."""
    gathered: dict[str, list[float]] = {}
    for row in rows:
        for key, value in row.items():
            if math.isfinite(value):
                gathered.setdefault(key, []).append(value)
    return {key: aggregate(values) for key, values in gathered.items()}


def mean_curves(curves: Sequence[Mapping[str, Mapping[int, float]]]) -> dict[str, dict[int, float]]:
    """The mean curve of each key (step -> value) at the steps that every seed with that key has."""
    means: dict[str, dict[int, float]] = {}
    for key in sorted({key for seed in curves for key in seed}):
        having = [seed[key] for seed in curves if key in seed]
        steps = set(having[0]).intersection(*having[1:])
        means[key] = {step: fmean(seed[step] for seed in having) for step in sorted(steps)}
    return means
