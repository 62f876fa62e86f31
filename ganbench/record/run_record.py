"""What was found in one run: the lossless record."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ganbench.errors import ErrorKind
from ganbench.record.loading import Loaded
from ganbench.record.memory import LiveMemory
from ganbench.record.outcome import Outcome
from ganbench.spec.run import RunSpec
from ganbench.spec.strategy import Verdict

# 1: first version.
SCHEMA_VERSION = 1


class Timing(BaseModel):
    """Raw time stamps of the training rounds, in nanoseconds.

    `rounds` holds one list a round, in order, warm-ups included: its segments' times in the order of `segments`.
    `probed` names the rounds in which gradient norms were read (positions in `rounds`); they are not part of any
    figure, and neither are the first `warmup_rounds`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    segments: list[str] = Field(default_factory=list)
    rounds: list[list[int]] = Field(default_factory=list)
    probed: list[int] = Field(default_factory=list)
    warmup_rounds: int = 0

    def steady(self) -> list[list[int]]:
        """The rounds that figures are made of."""
        probed = set(self.probed)
        return [row for n, row in enumerate(self.rounds) if n >= self.warmup_rounds and n not in probed]


class Trust(BaseModel):
    """How far a run's times can be believed.

    `median_low` and `median_high`: distribution-free 95 % interval of the median steady round, in ms; None with fewer
    than six rounds. `rounds_needed`: further rounds, by estimate, until it is narrower than `share` of the median; 0
    when it is. `accounted`: the segments' sum over the wall time of their windows. `foreign_cores`: other work on the
    machine meanwhile. `jobs`: runs that were allowed side by side.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    share: float
    median_low: float | None = None
    median_high: float | None = None
    rounds_needed: int = 0
    accounted: float | None = None
    foreign_cores: float | None = None
    disturbed: bool = False
    jobs: int = 1

    def warnings(self) -> list[str]:
        """What a reader of this run's times must know."""
        found = []
        if self.rounds_needed:
            found.append(f"unstable: {self.rounds_needed} more rounds needed for an interval below {self.share:.0%}")
        if self.accounted is not None and abs(self.accounted - 1) > 0.02:
            found.append(f"parts add up to {self.accounted:.1%} of the wall time, not within 2 %")
        if self.disturbed:
            found.append(f"disturbed: {self.foreign_cores:.2f} cores of foreign load while it was timed")
        if self.jobs > 1:
            found.append(f"timed with up to {self.jobs} runs side by side")
        return found


class RunRecord(BaseModel):
    """One run's record; `record.json` is its JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = SCHEMA_VERSION
    version: str
    experiment: str
    sweep: str
    position: int
    run_key: str
    arm_key: str
    spec: RunSpec
    outcome: Outcome
    error_kind: ErrorKind | None = None
    error: str | None = None
    traceback: str | None = None
    # What the error means in this schedule, and what avoids it.
    happened: str | None = None
    remedy: str | None = None
    diverged_at_update: int | None = None
    schedule: str = ""
    counters: dict[str, float] = Field(default_factory=dict)
    overshoot: float = 0.0
    skipped_steps: dict[str, int] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)
    judged_by: dict[str, Any] = Field(default_factory=dict)
    floor: dict[str, float] = Field(default_factory=dict)
    finals: dict[str, float] = Field(default_factory=dict)
    checksums: dict[str, str] = Field(default_factory=dict)
    host: dict[str, str] = Field(default_factory=dict)
    timing: Timing = Timing()
    trust: Trust | None = None
    energy: dict[str, float] = Field(default_factory=dict)
    conditions: dict[str, dict[str, str]] = Field(default_factory=dict)
    warnings: list[str] = Field(default_factory=list)
    # How files of the user's own were loaded: what of them was run, printed, written and set.
    files: list[Loaded] = Field(default_factory=list)
    memory: LiveMemory | None = None
    output: str = ""
    started_at: float = 0.0
    ended_at: float = 0.0

    @property
    def came_out_as_declared(self) -> bool:
        """Whether this run alone agrees with the table of strategies: it raised what was expected, or ran to the end.

        Claims about trajectories need the reference's run beside it: see `ganbench.record.judgement`.
        """
        expected = self.spec.expected
        if expected.verdict is Verdict.RAISES:
            return self.outcome is Outcome.RAISED and self.error_kind is expected.error_kind
        return self.outcome is Outcome.OK
