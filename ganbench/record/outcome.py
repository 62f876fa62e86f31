"""How a run ended."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """The values of the tag `ganbench.outcome`."""

    OK = "ok"
    DIVERGED = "diverged"
    RAISED = "raised"
    OUT_OF_MEMORY = "out_of_memory"
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"

    @property
    def is_result(self) -> bool:
        """True where the run need not be made again: it ended by itself, well or badly."""
        return self not in (Outcome.INTERRUPTED, Outcome.SKIPPED)

    @property
    def mlflow_status(self) -> str:
        """The status of the MLflow run: FINISHED, FAILED, or KILLED where it was ended from outside."""
        if self is Outcome.OK:
            return "FINISHED"
        return "KILLED" if self in (Outcome.INTERRUPTED, Outcome.SKIPPED, Outcome.TIMED_OUT) else "FAILED"
