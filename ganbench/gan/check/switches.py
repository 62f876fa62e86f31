"""What loading a user's file did to the whole process."""

from __future__ import annotations

from collections.abc import Iterator

from ganbench.gan.check.parts import Parts
from ganbench.record.finding import Finding

# What a switch does to training, where that is worth a warning; the beginnings of the switches' names.
_MATTERS = {
    "anomaly mode": "it makes every update several times slower",
    "grad mode": "nothing can be trained while gradients are off",
    "default dtype": "tensors made inside a network get another type than the data",
    "default device": "tensors made inside a network lie on another device than the data",
    "deterministic algorithms": "it is slower, and some operations raise",
    "cudnn.enabled": "convolutions on a GPU become slower",
    "threads": "times differ from those of other networks",
}


def switches_left_alone(parts: Parts) -> Iterator[Finding]:
    """Loading a file sets no switch of the process."""
    files = {loaded.file: loaded for loaded in parts.loaded}
    for file, loaded in files.items():
        quiet = []
        for name, (before, after) in loaded.switches.items():
            if name not in _MATTERS:
                quiet.append(name if "random state" in name else f"{name}: {before} → {after}")
                continue
            yield Finding(
                "global-switch",
                "warning",
                f"loading '{file}' sets {name} for the whole process: {_MATTERS[name]}; it was put back, and is not "
                "set in runs",
                f"{name}: {before} → {after}",
                "networks trained with it by its own script train without it here; where it is wanted, set what "
                "ganbench has an option for (threads, seeds, precision)",
            )
        if quiet:
            yield Finding(
                "global-switch",
                "note",
                f"loading '{file}' sets global state of the process, which was put back",
                ", ".join(quiet),
                "nothing; seeds of runs are the experiment's",
            )
