"""Foreign load is seen, one's own is not; energy is read where there is a counter and absent otherwise."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import torch

from ganbench.measure import EnergyMeter, LoadWatch


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_busy_neighbour_counts_and_ones_own_work_does_not() -> None:
    watch = LoadWatch()
    spin(1.0)
    own = watch.foreign_cores()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(psutil.cpu_count() or 1)]
    try:
        watch = LoadWatch()
        time.sleep(1.5)
        loud = watch.foreign_cores()
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert own is not None
    assert loud is not None
    # The other suites' processes may be at work too; the neighbours come on top of nothing less than that.
    assert loud > 0.3


def test_a_span_too_short_for_the_counters_says_nothing() -> None:
    assert LoadWatch().foreign_cores() is None


def zone(folder: Path, name: str, energy: int, most: int = 1_000_000) -> Path:
    place = folder / name
    place.mkdir(exist_ok=True)
    (place / "energy_uj").write_text(f"{energy}\n")
    (place / "max_energy_range_uj").write_text(f"{most}\n")
    return place


def test_rapl_counters_give_joules_and_may_begin_anew(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", 250_000)
    zone(tmp_path, "intel-rapl:1", 900_000)
    zone(tmp_path, "intel-rapl:0:0", 5)  # a part of package 0, counted in it already
    meter = EnergyMeter(torch.device("cpu"), tmp_path)
    zone(tmp_path, "intel-rapl:0", 750_000)
    zone(tmp_path, "intel-rapl:1", 100_000)
    assert meter.joules() == {"cpu_0": 0.5, "cpu_1": 0.2}


def test_without_a_counter_there_is_no_figure(tmp_path: Path) -> None:
    assert EnergyMeter(torch.device("cpu"), tmp_path).joules() == {}
    place = zone(tmp_path, "intel-rapl:0", 1)
    (place / "energy_uj").unlink()
    assert EnergyMeter(torch.device("cpu"), tmp_path).joules() == {}
