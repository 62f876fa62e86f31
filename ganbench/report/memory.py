"""Live memory per phase, split by what it is for, and the gradients that were computed for nothing."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from ganbench.record.memory import MIB, LiveMemory

DEFINITION = (
    "MiB of live tensors at the peak of each phase, from rounds of their own after training; equal for every seed. "
    "Retained graph: the part of the saved activations at the D phase's peak that was saved before the round's first "
    "D update. Discarded: gradients of the idle network that were computed and cleared unused, in a round"
)


def memory_table(rows: Iterable[tuple[str, LiveMemory]]) -> pd.DataFrame:
    """A row for each (arm's label, its memory), as text in MiB."""
    return pd.DataFrame([_row(label, memory) for label, memory in rows])


def _row(label: str, memory: LiveMemory) -> dict[str, str]:
    row = {"arm": label}
    for phase in ("g", "d"):
        split = memory.phase(phase)
        name = phase.upper()
        row[f"{name} phase"] = _mib(split.total)
        for part, title in (
            ("parameters", "parameters"),
            ("gradients", "gradients"),
            ("optimizer_state", "optimizer"),
            ("saved_for_backward", "saved"),
            ("other", "other"),
        ):
            row[f"{name} {title}"] = _mib(getattr(split, part))
    row["retained graph"] = _mib(memory.retained_graph_bytes)
    row["discarded in G"] = _mib(memory.discarded_gradient_bytes["g"])
    row["discarded in D"] = _mib(memory.discarded_gradient_bytes["d"])
    return row


def _mib(size: int) -> str:
    return f"{size / MIB:.2f}"
