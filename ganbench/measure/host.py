"""Facts about the machine that figures depend on."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

import psutil
import torch

_CPUINFO = Path("/proc/cpuinfo")
_NVIDIA_VERSION = Path("/proc/driver/nvidia/version")


def host_facts(device_type: str) -> dict[str, str]:
    """What this process runs on, as text; a fact that does not apply or cannot be told is absent.

    Keys: `host.cpu` (model), `host.cores` (logical cores this process may use), `host.threads` (torch's threads per
    operator), `host.memory_gib` (main memory of the machine), `host.os`, `host.python`, `host.torch`; and for
    `device_type == "cuda"`, where torch can use CUDA, `host.gpu` (model of the current device), `host.cuda`
    (version torch was built for) and `host.driver` (version of NVIDIA's kernel driver).

    CUDA is touched only for `device_type == "cuda"`, so that a process that must stay free to fork can ask
    for "cpu".
    """
    facts = {
        "host.cpu": _cpu_model(_CPUINFO),
        "host.cores": str(_usable_cores()),
        "host.threads": str(torch.get_num_threads()),
        "host.memory_gib": f"{psutil.virtual_memory().total / 2**30:.1f}",
        "host.os": platform.platform(),
        "host.python": platform.python_version(),
        "host.torch": str(torch.__version__),
    }
    if device_type == "cuda" and torch.cuda.is_available():
        facts["host.gpu"] = torch.cuda.get_device_name()
        if torch.version.cuda is not None:
            facts["host.cuda"] = torch.version.cuda
        driver = _driver_version(_NVIDIA_VERSION)
        if driver is not None:
            facts["host.driver"] = driver
    return facts


def load_average() -> float | None:
    """Processes running or waiting for a core, a mean over the last minute; None where it cannot be told."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def _cpu_model(cpuinfo: Path) -> str:
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name" and value.strip():
            return value.strip()
    return platform.processor() or platform.machine() or "unknown"


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _driver_version(version: Path) -> str | None:
    try:
        text = version.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 ..."; the open module puts "for
    # x86_64" between.
    found = re.search(r"Kernel Module\s+(?:for \S+\s+)?(\d+(?:\.\d+)+)", text)
    return found.group(1) if found else None
