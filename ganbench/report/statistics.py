"""Ratios between arms with honest intervals, the noise floor, and what may be said of a difference.

The replicate is the block (one seed, its arms interleaved in time), never the round: an arm's figure in a block is one
number, the rounds inside it are summed up before anything here is called. Pure: what resamples is given its generator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtrit

LEAST_BLOCKS = 3  # for an interval at all
_LEAST_TO_RESAMPLE = 5  # fewer blocks have too few distinct resamples: 10 of three, 35 of four
_LEAST_SPREAD = 0.2  # of a resample, as a share of the sample's own; see `paired_ratio`
_EQUAL = 1e-12  # log ratios that differ by less are equal but for rounding

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ratio:
    """A figure of an arm over the reference's: 1.2 is a fifth more. The interval is None where `n` allows none.

    `kind` names the interval, or says why there is none.
    """

    estimate: float
    low: float | None
    high: float | None
    n: int
    kind: str


@dataclass(frozen=True)
class Floor:
    """What two copies of one arm differ by: ratios from `1 / factor` to `factor` are noise. `factor` is at least 1."""

    factor: float
    copies: int


class Scale(StrEnum):
    """What a figure counts, which gives a verdict its words."""

    TIME = "time"  # a larger figure is slower
    SPEED = "speed"  # a larger figure is faster
    AMOUNT = "amount"  # a larger figure is more


WITHIN_NOISE = "within noise"
NOT_KNOWN = "not known"
_WORDS = {Scale.TIME: ("faster", "slower"), Scale.SPEED: ("slower", "faster"), Scale.AMOUNT: ("less", "more")}


def paired_ratio(
    values: Sequence[float],
    reference: Sequence[float],
    rng: np.random.Generator,
    *,
    resamples: int = 2000,
    level: float = 0.95,
) -> Ratio:
    """The geometric mean of an arm's ratios to the reference in the same blocks, with an interval over blocks.

    `values[i]` and `reference[i]` are positive figures of one unit from block i. What a block does to both arms alike
    (a slow hour, a hard seed) cancels. The geometric mean, unlike a mean of ratios, does not depend on which arm is the
    reference, and unlike a median its interval exists from three blocks on.

    The interval is the union of two, on log ratios with mean m and standard deviation s: Student's t, right for
    symmetric noise, and the equal-tailed bootstrap-t over blocks (Efron and Tibshirani 1993, section 12.5), which
    follows skewed noise. Alone each covers too little where the other is right. Over 16 000 simulated tables of 10
    blocks at 95 %: bootstrap-t 91 to 93 % where both arms have lognormal spikes or heavy tails, t 91 % where one arm
    has exponential ones; the union 95 to 97 % in these cases and under normal noise (BCa, over 2000: 84 to 90 %).
    Where one arm alone has noise as skewed as a lognormal of sigma 1 it is 92 % (20 blocks: 93 %); with rare outliers
    on both sides 98 %. A resample's s counts as at least a fifth of the sample's, so that nearly equal blocks do not
    blow the interval up. Below five blocks it is Student's t alone.

    Raises:
        ValueError: figures are absent, not positive or not finite, or there are not as many of both.
    """
    _check(resamples, level)
    a, b = _logs("values", values), _logs("reference", reference)
    if len(a) != len(b):
        raise ValueError(
            f"paired figures come from the same blocks, got {len(a)} values and {len(b)} of the reference; "
            "leave out the blocks in which one arm has none"
        )
    d = a - b
    n, mean = len(d), float(d.mean())
    if n < LEAST_BLOCKS:
        return _without_interval(mean, n)
    if _constant(d):
        return _zero_width(mean, n)
    error = float(d.std(ddof=1)) / math.sqrt(n)
    if n < _LEAST_TO_RESAMPLE:
        low, high = _student(error, n - 1, level)
        return _ratio(mean, low, high, n, "Student's t over blocks")
    drawn = d[rng.integers(0, n, (resamples, n))]
    errors = drawn.std(axis=1, ddof=1) / math.sqrt(n)
    low, high = _union(error, n - 1, drawn.mean(axis=1) - mean, errors, level)
    return _ratio(mean, low, high, n, "paired bootstrap-t over blocks")


def unpaired_ratio(
    values: Sequence[float],
    reference: Sequence[float],
    rng: np.random.Generator,
    *,
    resamples: int = 2000,
    level: float = 0.95,
) -> Ratio:
    """The ratio of both arms' geometric means as if no block were shared: both sides are resampled by themselves.

    The interval is made like that of `paired_ratio`, with Welch's standard error and degrees of freedom. Beside the
    paired one it shows what pairing buys. The sides may differ in length; `n` is the shorter one's.

    Raises:
        ValueError: figures are absent, not positive or not finite.
    """
    _check(resamples, level)
    a, b = _logs("values", values), _logs("reference", reference)
    n, mean = min(len(a), len(b)), float(a.mean() - b.mean())
    if n < LEAST_BLOCKS:
        return _without_interval(mean, n)
    if _constant(a) and _constant(b):
        return _zero_width(mean, n)
    va, vb = float(a.var(ddof=1)) / len(a), float(b.var(ddof=1)) / len(b)
    error = math.sqrt(va + vb)
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    if n < _LEAST_TO_RESAMPLE:
        low, high = _student(error, freedom, level)
        return _ratio(mean, low, high, n, "Welch's t, unpaired")
    drawn_a = a[rng.integers(0, len(a), (resamples, len(a)))]
    drawn_b = b[rng.integers(0, len(b), (resamples, len(b)))]
    errors = np.sqrt(drawn_a.var(axis=1, ddof=1) / len(a) + drawn_b.var(axis=1, ddof=1) / len(b))
    low, high = _union(error, freedom, drawn_a.mean(axis=1) - drawn_b.mean(axis=1) - mean, errors, level)
    return _ratio(mean, low, high, n, "unpaired bootstrap-t")


def wilson(successes: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a share (E. B. Wilson 1927, JASA 22, 209-212), without continuity correction.

    Raises:
        ValueError: `n` is below 1 or `successes` is not in 0 … n.
    """
    _check_level(level)
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"a share is successes of n ≥ 1 with 0 ≤ successes ≤ n, got {successes} of {n}")
    z, share = float(ndtri((1 + level) / 2)), successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (0.0 if successes == 0 else centre - half), (1.0 if successes == n else centre + half)


def noise_floor(copies: Sequence[Ratio]) -> Floor | None:
    """How far copies of one arm (A/A) may seem to differ: the largest distance from 1 of their intervals' ends.

    Distance is in logs, so that a half is as far as a double. None where no copy has an interval.
    """
    ends = [end for copy in copies if copy.low is not None and copy.high is not None for end in (copy.low, copy.high)]
    if not ends:
        return None
    return Floor(max(max(end, 1 / end) for end in ends), len(ends) // 2)


def verdict(ratio: Ratio, floor: Floor | None, scale: Scale = Scale.TIME) -> str:
    """`within noise`, `not known`, or the word for the side on which the whole interval clears the floor.

    `within noise` wherever the interval contains 1 or touches the floor's, `not known` without an interval. Otherwise
    `faster` or `slower`, or `less` or `more` of an amount: never `better`. Where no floor was measured the interval is
    held against 1 alone; whoever prints the verdict then says so.
    """
    if ratio.low is None or ratio.high is None:
        return NOT_KNOWN
    factor = (1.0 if floor is None else floor.factor) * (1 + _EQUAL)
    below, above = _WORDS[scale]
    if ratio.low > factor:
        return above
    if ratio.high * factor < 1:
        return below
    return WITHIN_NOISE


def _logs(name: str, figures: Sequence[float]) -> Floats:
    array = np.asarray(figures, dtype=np.float64)
    if array.ndim != 1 or not len(array) or not bool((np.isfinite(array) & (array > 0)).all()):
        raise ValueError(f"{name} must be at least one figure, all positive and finite, got {array.tolist()}")
    return np.log(array)


def _check(resamples: int, level: float) -> None:
    _check_level(level)
    if resamples < 100:
        raise ValueError(f"resamples must be at least 100, got {resamples}")


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, such as 0.95, got {level}")


def _constant(logs: Floats) -> bool:
    return bool(np.ptp(logs) <= _EQUAL)


def _ratio(mean: float, low: float, high: float, n: int, kind: str) -> Ratio:
    """From the log's mean and the quantiles of (mean - truth)."""
    return Ratio(_exp(mean), _exp(mean - high), _exp(mean - low), n, kind)


def _exp(log: float) -> float:
    return math.exp(max(-700.0, min(700.0, log)))  # positive and finite, however wide an interval


def _without_interval(mean: float, n: int) -> Ratio:
    return Ratio(_exp(mean), None, None, n, f"too few blocks: n={n}, at least {LEAST_BLOCKS}")


def _zero_width(mean: float, n: int) -> Ratio:
    estimate = _exp(mean)
    return Ratio(estimate, estimate, estimate, n, "all blocks equal")


def _student(error: float, freedom: float, level: float) -> tuple[float, float]:
    """Quantiles of (mean - truth) by Student's t."""
    half = float(stdtrit(freedom, (1 + level) / 2)) * error
    return -half, half


def _union(error: float, freedom: float, shifts: Floats, errors: Floats, level: float) -> tuple[float, float]:
    """Quantiles of (mean - truth): the outer ones of Student's t and of the bootstrap-t. `errors` of resamples."""
    low, high = _student(error, freedom, level)
    t = shifts / np.maximum(errors, _LEAST_SPREAD * error)
    tails = np.quantile(t, [(1 - level) / 2, (1 + level) / 2]) * error
    return min(low, float(tails[0])), max(high, float(tails[1]))
