"""Figures of cost from a run's raw times. Pure: the record keeps the raw values, these can be made again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from ganbench.record.run_record import Timing, Trust
from ganbench.record.stability import median_interval, rounds_needed

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


# The interval of a run's median round is to be narrower than this share of it.
SHARE = 0.05


def trust_of(
    timing: Timing, segments_ns: int, wall_ns: int, foreign_cores: float | None, bound_cores: float, jobs: int
) -> Trust:
    """How far a run's times can be believed, from its raw rounds and what was seen of the machine.

    `segments_ns` is the sum of all segments, `wall_ns` the host's wall time of the windows that held them, warm-ups
    and probe rounds included.
    """
    steady = [sum(row) / 1e6 for row in timing.steady()]
    interval = median_interval(steady)
    return Trust(
        share=SHARE,
        median_low=interval[0] if interval else None,
        median_high=interval[1] if interval else None,
        rounds_needed=rounds_needed(steady, SHARE) if steady else 0,
        accounted=segments_ns / wall_ns if wall_ns else None,
        foreign_cores=foreign_cores,
        disturbed=foreign_cores is not None and foreign_cores > bound_cores,
        jobs=jobs,
    )
