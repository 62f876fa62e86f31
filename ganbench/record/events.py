"""What a run tells while it goes on. Executors hand these on; the tracker writes them down."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ganbench.record.curves import Columns
from ganbench.record.outcome import Outcome
from ganbench.spec.run import RunSpec


@dataclass(frozen=True)
class Task:
    """One run to be made: its spec, its place in the order, how long it may take (seconds; None: for ever), and how
    many runs may be made beside it."""

    spec: RunSpec
    position: int
    timeout: float | None = None
    jobs: int = 1

    @property
    def run_key(self) -> str:
        """Which run this is."""
        return self.spec.run_key


@dataclass(frozen=True)
class Started:
    """The run's process has begun."""

    run_key: str
    at: float


@dataclass(frozen=True)
class Rows:
    """New rows of the curves."""

    run_key: str
    columns: Columns


@dataclass(frozen=True)
class Picture:
    """A sample grid at a step, as PNG."""

    run_key: str
    step: int
    png: bytes


@dataclass(frozen=True)
class Ended:
    """The run is over. `found` holds fields of the record that the run itself filled in."""

    run_key: str
    outcome: Outcome
    at: float
    found: dict[str, Any] = field(default_factory=dict)


Event = Started | Rows | Picture | Ended
