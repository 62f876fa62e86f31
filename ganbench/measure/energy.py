"""Energy where the machine can tell: RAPL for the processor package, NVML for the GPU. Absent otherwise."""

from __future__ import annotations

from pathlib import Path

import torch

from ganbench.measure.conditions import nvml_handle

_RAPL = Path("/sys/class/powercap")


class EnergyMeter:
    """Joules since the start, by source. Both counters are of the whole package or board, not of this process."""

    def __init__(self, device: torch.device, rapl: Path = _RAPL) -> None:
        self._device = device
        self._zones = sorted(zone for zone in rapl.glob("intel-rapl:*") if zone.name.count(":") == 1)
        self._start = self._read()

    def joules(self) -> dict[str, float]:
        """What was used since the start; a source that cannot be read has no entry. A RAPL counter that went through
        its maximum is put right once."""
        used: dict[str, float] = {}
        for name, (value, most) in self._read().items():
            if name in self._start:
                spent = value - self._start[name][0]
                used[name] = (spent + most if spent < 0 else spent) / 1e6
        return used

    def _read(self) -> dict[str, tuple[int, int]]:
        """Counters in microjoules with the value at which they begin anew."""
        found: dict[str, tuple[int, int]] = {}
        for zone in self._zones:
            try:
                energy = int((zone / "energy_uj").read_text())
                most = int((zone / "max_energy_range_uj").read_text())
            except (OSError, ValueError):
                continue  # only root may read it on most machines
            found[f"cpu_{zone.name.partition(':')[2]}"] = (energy, most)
        if self._device.type == "cuda":
            millijoules = _nvml_millijoules(self._device)
            if millijoules is not None:
                found["gpu"] = (millijoules * 1000, 0)
        return found


def _nvml_millijoules(device: torch.device) -> int | None:
    handle = nvml_handle(device)
    if handle is None:
        return None
    import pynvml

    try:
        return int(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle))
    except pynvml.NVMLError:
        return None  # boards before Volta have no such counter
