"""Global switches of the process: noticed when another's code sets them, and put back."""

from __future__ import annotations

import gc
import hashlib
import multiprocessing
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.utils import deterministic

# What another's code draws while it loads is the same in every process.
_SEED = 0
# torch sets these when its compiler is imported, whoever causes that.
_TORCHS_OWN = ("TORCHINDUCTOR_", "TRITON_")


class _Switch:
    """`read` gives a value that does not change when the switch does; `write` puts it back; `text` shows it."""

    def __init__(
        self, read: Callable[[], Any], write: Callable[[Any], object], text: Callable[[Any], str] = str
    ) -> None:
        self.read, self.write, self.text = read, write, text


def _attribute(holder: object, name: str) -> _Switch:
    return _Switch(lambda: getattr(holder, name), lambda value: setattr(holder, name, value))


def _set_default_device(device: torch.device) -> None:
    torch.set_default_device(None)
    if torch.get_default_device() != device:
        torch.set_default_device(device)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(_TORCHS_OWN)}


def _set_environment(variables: dict[str, str]) -> None:
    for name in set(_environment()) - set(variables):
        del os.environ[name]
    for name, value in variables.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def _digest(state: Any) -> str:
    plain = state.numpy().tobytes() if isinstance(state, torch.Tensor) else repr(state).encode()
    return hashlib.sha256(plain).hexdigest()[:8]


def _numpy_state() -> Any:
    state: Any = np.random.get_state()
    kind, keys, *rest = state
    return (kind, tuple(keys.tolist()), *rest)


_cudnn = torch.backends.cudnn
_SWITCHES: dict[str, _Switch] = {
    "anomaly mode": _Switch(
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda both: torch.autograd.set_detect_anomaly(both[0], check_nan=both[1]),
        lambda both: str(both[0]),
    ),
    "grad mode": _Switch(torch.is_grad_enabled, lambda on: torch.set_grad_enabled(on)),
    "default dtype": _Switch(torch.get_default_dtype, torch.set_default_dtype),
    "default device": _Switch(torch.get_default_device, _set_default_device),
    "cudnn.enabled": _attribute(_cudnn, "enabled"),
    "cudnn.benchmark": _attribute(_cudnn, "benchmark"),
    "cudnn.deterministic": _attribute(_cudnn, "deterministic"),
    "matmul precision": _Switch(torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    "threads": _Switch(torch.get_num_threads, torch.set_num_threads),
    "deterministic algorithms": _Switch(
        lambda: (torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()),
        lambda both: torch.use_deterministic_algorithms(both[0], warn_only=both[1]),
        lambda both: "warn only" if all(both) else str(both[0]),
    ),
    "deterministic fill": _attribute(deterministic, "fill_uninitialized_memory"),
    "sharing strategy": _Switch(
        torch.multiprocessing.get_sharing_strategy,
        lambda name: torch.multiprocessing.set_sharing_strategy(name),  # type: ignore[no-untyped-call]
    ),
    "start method": _Switch(
        lambda: multiprocessing.get_start_method(allow_none=True),
        lambda name: multiprocessing.set_start_method(name, force=True),
    ),
    "recursion limit": _Switch(sys.getrecursionlimit, sys.setrecursionlimit),
    "garbage collection": _Switch(gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
}
# Read only if the version of torch has them.
for _name, _holder in (("cuda.matmul", torch.backends.cuda.matmul), ("cudnn.conv", getattr(_cudnn, "conv", None))):
    if hasattr(_holder, "fp32_precision"):
        _SWITCHES[f"{_name}.fp32_precision"] = _attribute(_holder, "fp32_precision")

_RANDOM: dict[str, _Switch] = {
    "torch random state": _Switch(torch.get_rng_state, torch.set_rng_state, _digest),
    "numpy random state": _Switch(_numpy_state, np.random.set_state, _digest),
    "python random state": _Switch(random.getstate, random.setstate, _digest),
}


@contextmanager
def watched() -> Iterator[dict[str, tuple[str, str]]]:
    """Gives a mapping that afterwards holds what was set inside: switch → (text before, text that was set).

    Everything is put back: warnings filters, environment variables and random states too. The random states begin
    from a fixed seed, so that what draws from them is repeatable; digests of them are compared with that beginning.
    """
    with warnings.catch_warnings():
        filters = list(warnings.filters)
        with _restored() as changes:
            yield changes
        if list(warnings.filters) != filters:
            changes["warnings filters"] = (f"{len(filters)} filters", _new_filters(filters))


def _new_filters(before: list[Any]) -> str:
    fresh = [f"{item[0]} {getattr(item[2], '__name__', item[2])}" for item in warnings.filters if item not in before]
    return ", ".join(fresh[:5]) or f"{len(warnings.filters)} filters"


@contextmanager
def _restored() -> Iterator[dict[str, tuple[str, str]]]:
    changes: dict[str, tuple[str, str]] = {}
    before = {name: switch.read() for name, switch in _SWITCHES.items()}
    environment = _environment()
    outside = {name: switch.read() for name, switch in _RANDOM.items()}
    # Not torch.manual_seed: that would queue the seed for a CUDA device that nobody has touched.
    torch.default_generator.manual_seed(_SEED)
    np.random.seed(_SEED)
    random.seed(_SEED)
    seeded = {name: _digest(switch.read()) for name, switch in _RANDOM.items()}
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None  # type: ignore[no-untyped-call]
    try:
        yield changes
    finally:
        for name, switch in _SWITCHES.items():
            if (now := switch.read()) != before[name]:
                changes[name] = (switch.text(before[name]), switch.text(now))
                switch.write(before[name])
        for name in sorted({*environment, *_environment()}):
            if (was := environment.get(name)) != (now := os.environ.get(name)):
                changes[f"environment {name}"] = (_shown(was), _shown(now))
        _set_environment(environment)
        for name, switch in _RANDOM.items():
            if (now := _digest(switch.read())) != seeded[name]:
                changes[name] = (seeded[name], now)
            switch.write(outside[name])
        if cuda is not None:
            torch.cuda.set_rng_state_all(cuda)


def _shown(value: str | None) -> str:
    return "not set" if value is None else value[:200]
