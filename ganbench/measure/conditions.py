"""Conditions under which a run was timed: clocks, power, neighbours. They may change from run to run on one host."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import torch

from ganbench.measure.host import load_average

_CPUFREQ = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def conditions(device: torch.device, cpufreq: Path = _CPUFREQ) -> dict[str, str]:
    """What was so when it was asked, as text; what cannot be told is absent.

    Keys: `load_average` (one minute), `affinity` (cores this process may use), `governor` (of the first core),
    `blas_threads` (of each BLAS and OpenMP pool loaded), and on CUDA `gpu_clock_mhz`, `gpu_memory_clock_mhz`,
    `gpu_power_limit_w`, `gpu_foreign_processes` (pids of others that compute on it).
    """
    found: dict[str, str] = {}
    load = load_average()
    if load is not None:
        found["load_average"] = f"{load:.2f}"
    if hasattr(os, "sched_getaffinity"):
        found["affinity"] = ",".join(str(core) for core in sorted(os.sched_getaffinity(0)))
    with suppress(OSError):
        found["governor"] = cpufreq.read_text(encoding="utf-8").strip()
    pools = _pools()
    if pools:
        found["blas_threads"] = pools
    if device.type == "cuda":
        found |= _gpu(device)
    return found


def _pools() -> str:
    from threadpoolctl import threadpool_info

    return ", ".join(sorted({f"{pool['internal_api']} {pool['num_threads']}" for pool in threadpool_info()}))


def nvml_handle(device: torch.device) -> object | None:
    """NVML's handle of a CUDA device by its UUID (its numbers may differ from torch's); None where NVML is absent."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        uuid = str(torch.cuda.get_device_properties(device).uuid)
        return pynvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")  # type: ignore[no-any-return]
    except pynvml.NVMLError:
        return None


def _gpu(device: torch.device) -> dict[str, str]:
    handle = nvml_handle(device)
    if handle is None:
        return {}
    import pynvml

    family = {psutil.Process().pid, *(child.pid for child in psutil.Process().children(recursive=True))}
    asked: dict[str, Callable[[], object]] = {
        "gpu_clock_mhz": lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
        "gpu_memory_clock_mhz": lambda: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
        "gpu_power_limit_w": lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000,
        "gpu_foreign_processes": lambda: " ".join(
            str(one.pid) for one in pynvml.nvmlDeviceGetComputeRunningProcesses(handle) if one.pid not in family
        ),
    }
    found = {}
    for name, ask in asked.items():
        with suppress(pynvml.NVMLError):  # boards differ in what they tell
            found[name] = str(ask())
    return {name: text for name, text in found.items() if text}
