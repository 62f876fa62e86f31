"""Live memory per phase, split by what it is for, and the gradients that were computed for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from ganbench.record.memory import MIB, LiveMemory, share_text

DEFINITION = (
    "MiB of live tensors at the peak of each phase, from rounds of their own after training; equal for every seed. "
    "Retained graph: the part of the saved activations at the D phase's peak that was saved before the round's first "
    "D update. Discarded: gradients of the idle network that were computed and cleared unused, in a round, with the "
    "share of the phase's time that computing them takes (median over seeds; from rounds with and without)"
)


def memory_table(rows: Iterable[tuple[str, LiveMemory, Mapping[str, float]]]) -> pd.DataFrame:
    """A row for each (arm's label, its memory, shares of time spent on discarded gradients by phase), as text in MiB
    and %."""
    return pd.DataFrame([_row(label, memory, shares) for label, memory, shares in rows])


def _row(label: str, memory: LiveMemory, shares: Mapping[str, float]) -> dict[str, str]:
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
    for phase in ("g", "d"):
        share = f" ({share_text(shares[phase])} of its time)" if shares.get(phase) else ""
        row[f"discarded in {phase.upper()}"] = _mib(memory.discarded_gradient_bytes[phase]) + share
    return row


def _mib(size: int) -> str:
    return f"{size / MIB:.2f}"
