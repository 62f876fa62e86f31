"""Host facts: which keys, which are absent when, and that CUDA is left alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ganbench.measure import host, host_facts, load_average

ANYWHERE = {
    *("host.cpu", "host.cores", "host.threads", "host.memory_gib"),
    *("host.os", "host.python", "host.torch"),
}


def test_without_cuda_there_are_exactly_these_facts_and_none_is_empty() -> None:
    facts = host_facts("cpu")
    assert set(facts) == ANYWHERE
    assert all(facts.values())
    assert int(facts["host.cores"]) >= 1
    assert float(facts["host.memory_gib"]) > 0
    assert facts["host.threads"] == str(torch.get_num_threads())
    assert facts["host.torch"] == torch.__version__


def test_cuda_facts_are_absent_on_a_machine_without_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert set(host_facts("cuda")) == ANYWHERE


def test_cuda_facts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    version = tmp_path / "version"
    version.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA H200")
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(host, "_NVIDIA_VERSION", version)
    facts = host_facts("cuda")
    assert set(facts) == ANYWHERE | {"host.gpu", "host.cuda", "host.driver"}
    assert (facts["host.gpu"], facts["host.cuda"], facts["host.driver"]) == (
        "NVIDIA H200",
        "13.0",
        "550.54.15",
    )
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(host, "_NVIDIA_VERSION", tmp_path / "missing")
    assert set(host_facts("cuda")) == ANYWHERE | {"host.gpu"}


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n", "580.65.06"),
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\n",
            "535.129.03",
        ),
        ("something else\n", None),
    ],
)
def test_the_driver_version_is_read_from_the_kernel_module(tmp_path: Path, text: str, driver: str | None) -> None:
    (tmp_path / "version").write_text(text)
    assert host._driver_version(tmp_path / "version") == driver


@pytest.mark.cuda
def test_cuda_facts_of_a_real_device() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device to ask")
    assert {"host.gpu", "host.cuda"} <= set(host_facts("cuda"))


def test_asking_about_the_cpu_asks_nothing_of_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    def touched() -> bool:
        raise AssertionError("CUDA was asked")

    monkeypatch.setattr(torch.cuda, "is_available", touched)
    monkeypatch.setattr(torch.cuda, "device_count", touched)
    host_facts("cpu")


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC: 9B14\n", "AMD EPYC: 9B14"),
        ("processor\t: 0\nBogoMIPS\t: 50\n", None),
    ],
)
def test_the_cpu_model_is_read_or_falls_back(tmp_path: Path, text: str, model: str | None) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    found = host._cpu_model(tmp_path / "cpuinfo")
    assert found == model if model else found
    assert host._cpu_model(tmp_path / "missing")


def test_load_average_is_told_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (1.5, 1.0, 0.5))
    assert load_average() == 1.5

    def refuse() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr(os, "getloadavg", refuse)
    assert load_average() is None


def test_the_package_exports_what_it_names_and_stays_on_its_floor() -> None:
    from ganbench import measure

    assert all(hasattr(measure, name) for name in measure.__all__)
    program = (
        "import sys, ganbench.measure\n"
        "ours = {name for name in sys.modules if name.startswith('ganbench.')}\n"
        "assert all(name.startswith('ganbench.measure') for name in ours), ours\n"
        "import torch\n"
        "ganbench.measure.host_facts('cpu')\n"
        "assert not torch.cuda.is_initialized()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
