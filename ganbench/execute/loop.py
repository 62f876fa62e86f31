"""A user's own training step under observation, in a process of its own: what crashes there ends nothing else."""

from __future__ import annotations

from dataclasses import replace

from ganbench.errors import DeviceUnavailable, UserCodeError
from ganbench.execute.local import LocalExecutor
from ganbench.record.loop import LoopSeen
from ganbench.spec.model import UserModelSpec
from ganbench.spec.run import RunSpec


def observe_loop(executor: LocalExecutor, spec: RunSpec, place: str, rounds: int, download: bool) -> LoopSeen:
    """What the step that `place` names does with a spec's networks and data in so many calls.

    Raises:
        UsageError: data or a user's file cannot be used, the step wants something unknown, or it ended its process.
    """
    seen = executor.ask(observed, spec, place, rounds, download)
    if seen is None:
        raise UserCodeError(
            f"--loop: '{place}' ended its process, or took longer than ten minutes; call it once in a Python shell"
        )
    return seen


def observed(spec: RunSpec, place: str, rounds: int, download: bool) -> LoopSeen:
    """In the process: load everything and observe."""
    import torch

    from ganbench.gan.data import load
    from ganbench.gan.observe import observe_step
    from ganbench.gan.session import device_for

    torch.set_num_threads(spec.threads)
    name = spec.device
    lines: tuple[str, ...] = ()
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = device_for(name)
    except DeviceUnavailable as error:
        device, lines = torch.device("cpu"), (f"{error}; observed on the CPU instead",)
    argv = spec.model.argv if isinstance(spec.model, UserModelSpec) else ()
    seen = observe_step(spec, load(spec.dataset, download=download), device, place, rounds, argv)
    return replace(seen, lines=(*lines, *seen.lines))
