"""Figures of cost from a run's raw times. Pure: the record keeps the raw values, these can be made again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from ganbench.record.run_record import Timing

SEGMENTS = ("data", "g", "g_step", "d", "d_step", "rest")


def timing_of(rounds: Sequence[Sequence[tuple[str, int]]], probed: Sequence[int], warmup_rounds: int) -> Timing:
    """Add up each round's segments (name, nanoseconds) into one list a round."""
    table = []
    for row in rounds:
        sums = dict.fromkeys(SEGMENTS, 0)
        for segment, nanoseconds in row:
            sums[segment] += nanoseconds
        table.append(list(sums.values()))
    return Timing(segments=list(SEGMENTS), rounds=table, probed=list(probed), warmup_rounds=warmup_rounds)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def cost_figures(timing: Timing, updates: int, images: int) -> dict[str, float]:
    """Medians per steady round in ms, and throughput over all steady rounds.

    `updates` and `images` are those of one round. A round's time is everything in it: drawing latents and real
    batches, both phases with their optimizer steps, and the rest. Empty without steady rounds.
    """
    steady = timing.steady()
    if not steady:
        return {}
    column = {name: n for n, name in enumerate(timing.segments)}
    whole = [sum(row) / 1e6 for row in steady]
    generator = [(row[column["g"]] + row[column["g_step"]]) / 1e6 for row in steady]
    discriminator = [(row[column["d"]] + row[column["d_step"]]) / 1e6 for row in steady]
    seconds = sum(whole) / 1e3
    return {
        "time/round_ms": median(whole),
        "time/round_ms_p95": percentile(whole, 0.95),
        "time/g_phase_ms": median(generator),
        "time/d_phase_ms": median(discriminator),
        "throughput/updates_per_second": updates * len(steady) / seconds,
        "throughput/images_per_second": images * len(steady) / seconds,
    }
