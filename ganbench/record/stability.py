"""Whether a run was timed long enough: the interval of its median over rounds. Standard library only.

The intervals take rounds as independent. Rounds that drift together say less than their number; what compares arms
therefore counts blocks, and this only tells when to stop timing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

MOST_GROWTH = 10  # one estimate never asks for more than this many times the rounds there are


def median_interval(samples: Sequence[float], level: float = 0.95) -> tuple[float, float] | None:
    """The narrowest symmetric pair of order statistics that holds the median with at least `level`, in samples' unit.

    Whatever the distribution: the number of samples below its median is binomial(n, 1/2), so that the k-th smallest
    and the k-th largest miss it with chance 2 P(B < k) (David and Nagaraja 2003, Order Statistics, section 7.1). None
    where even the smallest and the largest hold it less often: below 6 samples at 95 %.

    Raises:
        ValueError: a sample is not finite, or `level` is not between 0 and 1.
    """
    if not all(math.isfinite(sample) for sample in samples):
        raise ValueError(f"samples must be finite, got {[sample for sample in samples if not math.isfinite(sample)]}")
    k = _rank(len(samples), level)
    if k == 0:
        return None
    ordered = sorted(samples)
    return float(ordered[k - 1]), float(ordered[-k])


def rounds_needed(samples: Sequence[float], share: float, level: float = 0.95) -> int:
    """How many further rounds, by estimate, until the median's interval is narrower than `share` of the median.

    0 when it is. The width is taken to shrink with 1/sqrt(n); as it is itself an estimate, at most `MOST_GROWTH` times
    the rounds there are in all: time those, then ask again. With too few samples for any interval: what lacks to one.

    Raises:
        ValueError: a sample is not positive and finite, `share` is not positive, or `level` is not between 0 and 1.
    """
    if not all(math.isfinite(sample) and sample > 0 for sample in samples):
        raise ValueError(f"samples must be positive and finite, got {[s for s in samples if not 0 < s < math.inf]}")
    if not 0 < share < math.inf:
        raise ValueError(f"share must be positive, such as 0.02 for 2 %, got {share}")
    n = len(samples)
    interval = median_interval(samples, level)
    if interval is None:
        return least_samples(level) - n
    width, target = interval[1] - interval[0], share * median(samples)
    if width < target:
        return 0
    growth = MOST_GROWTH if target == 0 else min(float(MOST_GROWTH), (width / target) ** 2)
    return max(1, math.ceil(n * growth) - n)


def least_samples(level: float = 0.95) -> int:
    """The fewest samples whose smallest and largest hold the median with at least `level`: 6 at 95 %."""
    n = 1
    while _rank(n, level) == 0:
        n += 1
    return n


def _rank(n: int, level: float) -> int:
    """The largest k with 2 P(binomial(n, 1/2) < k) ≤ 1 - level; 0 where there is none."""
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, such as 0.95, got {level}")
    # Further than 10 sqrt(n) under the middle lies less than e**-200 of the mass (Hoeffding): start there, where the
    # first term does not underflow as 0.5**n would.
    j = max(0, int(n / 2 - 10 * math.sqrt(n)))
    chance = math.exp(math.lgamma(n + 1) - math.lgamma(j + 1) - math.lgamma(n - j + 1) - n * math.log(2))
    below = 0.0
    # At most the middle: a low level must not turn the pair round.
    while j < (n + 1) // 2 and 2 * (below + chance) <= (1 - level) * (1 + 1e-12):
        below += chance
        chance *= (n - j) / (j + 1)
        j += 1
    return j if below else 0
