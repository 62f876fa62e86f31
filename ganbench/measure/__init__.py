"""Clocks, memory and host facts. Knows torch and the machine, and nothing else of ganbench."""

from __future__ import annotations

from ganbench.measure.clock import Clock, CpuClock, CudaClock, DeviceEvent, NullClock, clock_for
from ganbench.measure.conditions import conditions
from ganbench.measure.energy import EnergyMeter
from ganbench.measure.host import host_facts, load_average
from ganbench.measure.live_tensors import GRAIN_BYTES, LiveTensorTracker, tensors_held_by
from ganbench.measure.load import BOUND_CORES, LoadWatch
from ganbench.measure.process_memory import (
    cuda_peaks,
    peak_rss_bytes,
    reset_cuda_peaks,
    reset_peak_rss,
    rss_bytes,
)
from ganbench.measure.warmup import steady_from, warmup_rounds

__all__ = [
    "BOUND_CORES",
    "GRAIN_BYTES",
    "Clock",
    "CpuClock",
    "CudaClock",
    "DeviceEvent",
    "EnergyMeter",
    "LiveTensorTracker",
    "LoadWatch",
    "NullClock",
    "clock_for",
    "conditions",
    "cuda_peaks",
    "host_facts",
    "load_average",
    "peak_rss_bytes",
    "reset_cuda_peaks",
    "reset_peak_rss",
    "rss_bytes",
    "steady_from",
    "tensors_held_by",
    "warmup_rounds",
]
