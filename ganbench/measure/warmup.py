"""How many leading rounds to leave out of the timings, by a stated rule on the samples alone.

The rule: leave out n rounds, where n is the smallest number, at least `least`, after which the medians of the
next two windows of `window` rounds differ by less than `drift` (relative to the larger of the two). The raw
samples are kept by the caller; this only says where the steady part begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


def steady_from(
    round_ns: Sequence[int], least: int = 3, window: int = 5, drift: float = 0.05, most: float = 0.5
) -> int | None:
    """The number of leading rounds after which the rule of this module holds, or None where it holds nowhere.

    None comes from rounds that drift until the end and from too few rounds to judge (fewer than `least + 2 *
    window`).

    Args:
        round_ns: time of each round in order; any unit, since only ratios count.
        least: rounds that are left out in any case.
        window: rounds in each of the two windows that are compared.
        drift: how far the two medians may lie apart, as a part of the larger one (0.05 = 5 %). Equal medians
            always pass.
        most: no more than this part of all rounds is left out.

    Raises:
        ValueError: an argument outside its range (`least >= 0`, `window >= 1`, `drift > 0`, `0 <= most <=
            1`).
    """
    _check(least, window, drift, most)
    last = min(_allowance(round_ns, most), len(round_ns) - 2 * window)
    for skipped in range(least, last + 1):
        middle = skipped + window
        before, after = median(round_ns[skipped:middle]), median(round_ns[middle : middle + window])
        if before == after or abs(before - after) < drift * max(before, after):
            return skipped
    return None


def warmup_rounds(
    round_ns: Sequence[int], least: int = 3, window: int = 5, drift: float = 0.05, most: float = 0.5
) -> int:
    """The number of leading rounds to leave out; never more than `most` of all rounds.

    That is `steady_from` where it finds a number. Where there are too few rounds to judge it is `least`, and
    where rounds drift until the end it is all that `most` allows; `least` also yields to `most`. Call
    `steady_from` to learn whether the rounds that are left are steady.

    Args and errors are those of `steady_from`.
    """
    _check(least, window, drift, most)
    allowance = _allowance(round_ns, most)
    steady = steady_from(round_ns, least, window, drift, most)
    if steady is not None:
        return steady
    if len(round_ns) < least + 2 * window:
        return min(least, allowance)
    return allowance


def _allowance(round_ns: Sequence[int], most: float) -> int:
    return int(len(round_ns) * most)


def _check(least: int, window: int, drift: float, most: float) -> None:
    if least < 0:
        raise ValueError(f"least is a number of rounds, 0 or more, got {least}")
    if window < 1:
        raise ValueError(f"window is a number of rounds, 1 or more, got {window}")
    if not drift > 0:
        raise ValueError(f"drift is a relative difference above 0, got {drift}")
    if not 0 <= most <= 1:
        raise ValueError(f"most is a part of all rounds from 0 to 1, got {most}")
