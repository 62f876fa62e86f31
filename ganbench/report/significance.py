"""Tests of paired differences: exact where n allows, corrected for their number, silent where n cannot reach it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_MOST_ENUMERATED = 20  # blocks: half of 2**20 sign patterns, 4 MiB


@dataclass(frozen=True)
class PairedTest:
    """Of one comparison over `n` blocks: the p value, and that adjusted for all comparisons made beside it.

    Both are None where `n` is below `needed`, the least number of blocks with which any data could be significant.
    """

    p: float | None
    adjusted: float | None
    n: int
    needed: int


def sign_flip_p(values: Sequence[float], reference: Sequence[float]) -> float:
    """Two-sided p value of the paired sign-flip permutation test on the mean log ratio.

    Where both arms are alike, a block's log ratio is as likely with the other sign: p is the share of all sign
    patterns whose |sum| is at least the observed one (R. A. Fisher 1935, The Design of Experiments, section 21).
    Exact up to 20 blocks; above, the normal approximation with the patterns' own variance, the sum of squares.

    Raises:
        ValueError: figures are absent, not positive or not finite, or there are not as many of both.
    """
    for name, figures in (("values", values), ("reference", reference)):
        if not len(figures) or not all(math.isfinite(x) and x > 0 for x in figures):
            raise ValueError(f"{name} must be at least one figure, all positive and finite, got {list(figures)}")
    if len(values) != len(reference):
        raise ValueError(
            f"paired figures come from the same blocks, got {len(values)} values and {len(reference)} of the reference"
        )
    d = [math.log(a) - math.log(b) for a, b in zip(values, reference, strict=True)]
    size = sum(abs(x) for x in d)
    if size <= 1e-12 * len(d):
        return 1.0
    observed = abs(sum(d))
    if len(d) > _MOST_ENUMERATED:
        return math.erfc(observed / math.sqrt(2 * sum(x * x for x in d)))
    # Turning all signs leaves |sum| as it is: the first one stays.
    sums = np.array([d[0]])
    for x in d[1:]:
        sums = np.concatenate([sums + x, sums - x])
    return float((np.abs(sums) >= observed - 1e-9 * size).mean())


def smallest_p(n: int) -> float:
    """The least p value that n blocks can reach: all log ratios on one side, `2 / 2**n`.

    Raises:
        ValueError: `n` is below 1.
    """
    if n < 1:
        raise ValueError(f"a paired test needs at least one block, got {n}")
    return 2.0 ** (1 - n)


def blocks_needed(alpha: float = 0.05, comparisons: int = 1) -> int:
    """The least number of blocks with which one of so many comparisons can be significant after Holm's correction.

    Raises:
        ValueError: `alpha` is not between 0 and 1, or `comparisons` is below 1.
    """
    if not 0 < alpha < 1 or comparisons < 1:
        raise ValueError(
            f"alpha lies between 0 and 1 and there is at least one comparison, got alpha {alpha}, {comparisons}"
        )
    n = 1
    while comparisons * smallest_p(n) > alpha:
        n += 1
    return n


def holm(p_values: Sequence[float]) -> list[float]:
    """P values adjusted for their number by S. Holm's step-down (1979, Scand. J. Statist. 6, 65-70), in their order.

    Controls the chance of any false claim among them, whatever their dependence.

    Raises:
        ValueError: a p value is not in 0 … 1.
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError(f"p values lie in 0 … 1, got {list(p_values)}")
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = running
    return adjusted


def paired_tests(pairs: Sequence[tuple[Sequence[float], Sequence[float]]], alpha: float = 0.05) -> list[PairedTest]:
    """Test each (values, reference) where its number of blocks allows, adjusted for all of them together.

    A comparison with too few blocks is not tested but counts in the correction, as one that found nothing.

    Raises:
        ValueError: as `sign_flip_p` and `blocks_needed`.
    """
    if not pairs:
        return []
    needed = blocks_needed(alpha, len(pairs))
    raw = [sign_flip_p(*pair) if len(pair[0]) >= needed else None for pair in pairs]
    adjusted = holm([1.0 if p is None else p for p in raw])
    return [
        PairedTest(p, None if p is None else q, len(pair[0]), needed)
        for pair, p, q in zip(pairs, raw, adjusted, strict=True)
    ]
