"""Memory of this process as the operating system and CUDA see it, in bytes.

Unlike the count of live tensors these figures hold the interpreter, libraries, allocator reserves and other
noise, and differ between machines.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import psutil
import torch

_PROC = Path("/proc/self")


def reset_peak_rss(proc: Path = _PROC) -> bool:
    """Set this process's peak of resident memory to its present size; False where that is not possible.

    Where it is False, `peak_rss_bytes` goes back to the start of the process (or further: a forked child may
    inherit it).

    Args:
        proc: this process's directory in the proc file system.
    """
    try:
        # Not truncated or created: the file is either the kernel's or not there.
        with (proc / "clear_refs").open("r+", encoding="ascii") as file:
            file.write("5")
    except OSError:
        return False
    return True


def peak_rss_bytes(proc: Path = _PROC) -> int:
    """Most resident memory this process had since the last successful `reset_peak_rss`, else since its start.

    Read from `VmHWM` in `/proc/self/status`; where that is missing, from `getrusage`, which no reset reaches.

    Args:
        proc: this process's directory in the proc file system.
    """
    try:
        status = (proc / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        status = ""
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name == "VmHWM":
            return int(value.split()[0]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def rss_bytes() -> int:
    """Resident memory of this process now."""
    return int(psutil.Process().memory_info().rss)


def reset_cuda_peaks(device: torch.device) -> None:
    """Set the peaks of CUDA's caching allocator on `device` to their present values."""
    torch.cuda.reset_peak_memory_stats(device)


def cuda_peaks(device: torch.device) -> dict[str, int]:
    """Memory of this process on a CUDA device, in bytes.

    Returns:
        `allocated`: most bytes handed out to tensors at once since `reset_cuda_peaks`.
        `reserved`: most bytes the caching allocator held at once since `reset_cuda_peaks`.
        `process`: all that this process holds on the device now, CUDA context and libraries included. Left
            out where the
        driver does not tell it for this process: no `pynvml`, a sliced device, or process ids hidden by a
        container.
    """
    peaks = {
        "allocated": torch.cuda.max_memory_allocated(device),
        "reserved": torch.cuda.max_memory_reserved(device),
    }
    held = _cuda_process_bytes(device)
    if held is not None:
        peaks["process"] = held
    return peaks


def _cuda_process_bytes(device: torch.device) -> int | None:
    # `device_memory_used` and `mem_get_info` speak of the whole device, other processes included, so they do
    # not serve.
    try:
        import pynvml  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        return None
    uuid = str(torch.cuda.get_device_properties(device).uuid)
    try:
        pynvml.nvmlInit()
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
            for process in pynvml.nvmlDeviceGetComputeRunningProcesses(handle):
                if process.pid == os.getpid() and process.usedGpuMemory is not None:
                    return int(process.usedGpuMemory)
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return None
    return None
