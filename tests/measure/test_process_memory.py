"""Process memory as the operating system tells it, and what is said where it does not."""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path

import pytest
import torch

from ganbench.measure import (
    cuda_peaks,
    peak_rss_bytes,
    reset_cuda_peaks,
    reset_peak_rss,
    rss_bytes,
)

MIB = 2**20


def test_the_peak_is_no_less_than_the_present_size() -> None:
    assert 0 < rss_bytes() <= peak_rss_bytes() + MIB


def test_the_peak_rises_with_use_and_falls_after_a_reset() -> None:
    if not reset_peak_rss():
        pytest.skip("/proc/self/clear_refs cannot be written here")
    before = peak_rss_bytes()
    block = bytearray(b"\1") * (64 * MIB)
    del block
    assert peak_rss_bytes() >= before + 48 * MIB
    high = peak_rss_bytes()
    assert reset_peak_rss()
    assert peak_rss_bytes() <= high - 48 * MIB


def test_a_reset_says_that_it_was_not_possible(tmp_path: Path) -> None:
    assert reset_peak_rss(tmp_path) is False
    assert list(tmp_path.iterdir()) == []


def test_a_reset_writes_five(tmp_path: Path) -> None:
    (tmp_path / "clear_refs").write_text("")
    assert reset_peak_rss(tmp_path) is True
    assert (tmp_path / "clear_refs").read_text() == "5"


def test_the_peak_is_read_in_kibibytes_from_status(tmp_path: Path) -> None:
    (tmp_path / "status").write_text("Name:\tpython\nVmPeak:\t  999 kB\nVmHWM:\t    1536 kB\nVmRSS:\t  12 kB\n")
    assert peak_rss_bytes(tmp_path) == 1536 * 1024


@pytest.mark.parametrize("status", [None, "Name:\tpython\n"])
def test_without_a_peak_in_status_the_one_of_getrusage_is_told(tmp_path: Path, status: str | None) -> None:
    if status is not None:
        (tmp_path / "status").write_text(status)
    assert peak_rss_bytes(tmp_path) > MIB


class FakeNvml(types.ModuleType):
    """As much of `pynvml` as is asked for, with one device that these processes use."""

    class NVMLError(Exception):
        pass

    def __init__(self, processes: dict[int, int | None], known: bool = True) -> None:
        super().__init__("pynvml")
        self.processes = processes
        self.known = known
        self.opened = 0

    def nvmlInit(self) -> None:
        self.opened += 1

    def nvmlShutdown(self) -> None:
        self.opened -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if not self.known:
            raise self.NVMLError
        assert uuid == "GPU-some-uuid"
        return uuid

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[types.SimpleNamespace]:
        assert handle == "GPU-some-uuid"
        return [types.SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in self.processes.items()]


@pytest.fixture
def fake_cuda(monkeypatch: pytest.MonkeyPatch) -> torch.device:
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda _: 10)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda _: 20)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: types.SimpleNamespace(uuid="some-uuid"))
    monkeypatch.setattr(os, "getpid", lambda: 7)
    return torch.device("cuda")


@pytest.mark.parametrize(
    ("nvml", "expected"),
    [
        pytest.param(FakeNvml({5: 1, 7: 30}), {"process": 30}, id="told"),
        pytest.param(FakeNvml({5: 1}), {}, id="not-listed"),
        pytest.param(FakeNvml({7: None}), {}, id="not-available"),
        pytest.param(FakeNvml({7: 30}, known=False), {}, id="unknown-device"),
        pytest.param(None, {}, id="no-pynvml"),
    ],
)
def test_process_memory_on_cuda_is_told_or_left_out(
    fake_cuda: torch.device,
    monkeypatch: pytest.MonkeyPatch,
    nvml: FakeNvml | None,
    expected: dict[str, int],
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert cuda_peaks(fake_cuda) == {"allocated": 10, "reserved": 20, **expected}
    assert nvml is None or nvml.opened == 0


@pytest.mark.cuda
def test_cuda_peaks_rise_with_use_and_fall_after_a_reset() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device to allocate on")
    device = torch.device("cuda")
    reset_cuda_peaks(device)
    before = cuda_peaks(device)["allocated"]
    block = torch.ones(MIB, device=device)
    high = cuda_peaks(device)
    assert high["allocated"] >= before + 4 * MIB
    assert high["reserved"] >= high["allocated"]
    del block
    reset_cuda_peaks(device)
    assert cuda_peaks(device)["allocated"] <= high["allocated"] - 4 * MIB
