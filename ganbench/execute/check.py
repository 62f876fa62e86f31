"""Looking networks, data and loss over in a process of their own: what crashes there ends nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from ganbench.errors import DeviceUnavailable
from ganbench.execute.beforehand import data_line, file_lines
from ganbench.execute.judging import evaluator_for
from ganbench.execute.local import LocalExecutor
from ganbench.record.finding import Finding, Looked
from ganbench.spec.run import RunSpec

# What checks depend on. Arms that agree in these are looked over once.
DEPENDS_ON = ("model", "dataset", "latent", "loss", "batch_size", "order", "precision", "device")


@dataclass(frozen=True)
class Checked:
    """One combination as it was looked over: what was found, and lines worth saying about device and data."""

    looked: Looked
    lines: tuple[str, ...] = ()


def check(executor: LocalExecutor, spec: RunSpec, download: bool) -> Checked:
    """Look over what a run consists of, in an isolated process.

    Raises:
        UsageError: data, or a user's file, cannot be loaded or constructed.
    """
    return executor.ask(look_at, spec, download) or Checked(Looked((_CRASHED,), 0))


_CRASHED = Finding(
    "process-ended",
    "error",
    "looking the networks over ended the process, or took longer than ten minutes: a run would not end otherwise",
    "the isolated process gave no answer",
    "construct both networks in a Python shell and call them once: a signal, os._exit or an endless loop stands there",
)


def look_at(spec: RunSpec, download: bool) -> Checked:
    """Make every check; called in a process of its own.

    Raises:
        UsageError: data, or a user's file, cannot be loaded or constructed; or too few items to judge fakes by.
    """
    import torch

    from ganbench.gan.check import look, parts_of
    from ganbench.gan.data import load
    from ganbench.gan.session import device_for

    torch.set_num_threads(spec.threads)
    name, lines = spec.device, []
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = device_for(name)
    except DeviceUnavailable as error:
        device = torch.device("cpu")
        lines.append(f"{error}; looked over on the CPU instead")
    data = load(spec.dataset, download=download)
    lines.append(data_line(spec.dataset, data))
    evaluator_for(spec, data)
    looked = look(lambda: parts_of(spec, data, device))
    if spec.batch_size > data.count:
        looked = looked.with_finding(_too_few(spec.batch_size, data.count))
    return Checked(looked, (*lines, *file_lines(spec, switches=False)))


def _too_few(batch_size: int, count: int) -> Finding:
    return Finding(
        "batch-larger-than-data",
        "error",
        "a batch holds more items than the dataset",
        f"batch_size {batch_size}, {count} items",
        f"choose a batch_size of at most {count}",
    )
