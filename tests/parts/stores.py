"""Small sweeps on real stores, for tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ganbench.execute.local import LocalExecutor
from ganbench.execute.stop import Stop
from ganbench.record.events import Ended
from ganbench.spec.run import RunSpec
from ganbench.spec.sweep import SweepSpec
from ganbench.sweep import Result, Retry, run_sweep
from ganbench.track.store import Store
from ganbench.track.tracker import Tracker


class Silent:
    """A watcher that only counts."""

    def __init__(self) -> None:
        self.todo = self.done = -1
        self.order: list[RunSpec] = []

    def planned(self, todo: int, done: int) -> None:
        self.todo, self.done = todo, done

    def started(self, spec: RunSpec, label: str) -> None:  # noqa: ARG002
        self.order.append(spec)

    def ended(self, spec: RunSpec, label: str, event: Ended) -> None:
        """Nothing to show."""


def small_sweep(**fields: Any) -> SweepSpec:
    """Two strategies, 1:2, two seeds, a few updates, on the CPU."""
    base = {
        "name": "small",
        "question": "Is it <b>small</b>?",
        "ratio": ["1:2"],
        "strategy": ["detach", "inputs", "reuse"],
        "device": "cpu",
        "seeds": 2,
        "budget": "60 updates",
        "model": {"name": "mlp", "hidden": 32},
        "latent": {"dim": 8},
        "evaluate": {"every": "30 updates", "samples": 100},
    }
    return SweepSpec.from_fields(base | fields, "test")


def carry_out(
    sweep: SweepSpec, store: Store, folder: Path, *, retry: Retry = "none", jobs: int = 2
) -> tuple[Result, Silent]:
    """Run a sweep on a store as the command does."""
    stop, watcher = Stop(), Silent()
    tracker = Tracker(store, sweep, folder)
    tracker.ship_leftovers()
    result = run_sweep(sweep, LocalExecutor(jobs, stop), tracker, stop, watcher, retry=retry)
    return result, watcher


@dataclass
class Carried:
    """A sweep that was carried out, and where."""

    store: Store
    result: Result
    folder: Path
