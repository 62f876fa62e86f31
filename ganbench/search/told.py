"""What a trial came to: read from its seeds' runs, and told to Optuna as what it is.

A trial that ran to the end is COMPLETE with its values. One that diverged, raised, was out of memory … is FAIL: it has
no value, and none is made up, so no infinity can win. One that a forecast rules out is PRUNED before it began, with the
constraint that it would have violated, from which TPE learns. One that did not reach the target of `time_to_target`
is COMPLETE with the seconds it trained (a lower bound of the time to the target) and violates the constraint `target`
by how far it was off: it is never among the best, and samplers rank it by that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median, stdev
from typing import Any, Literal

from ganbench.spec.objective import Objective
from ganbench.spec.search import SearchSpec

TARGET = "target"


@dataclass(frozen=True)
class Told:
    """How a trial ended. `outcome` is that of its runs (`ok`, `diverged`, …), `pruned` or `infeasible`. `constraints`:
    name -> violation, 0 or less where kept. `notes`: plain values to be kept with the trial, such as each seed's."""

    state: Literal["complete", "failed", "pruned"]
    outcome: str
    reason: str = ""
    values: tuple[float, ...] = ()
    constraints: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def failed(cls, outcome: str, reason: str, notes: Mapping[str, Any] | None = None) -> Told:
        """It has no value. `outcome`: `diverged`, `raised`, `out_of_memory`, …"""
        return cls("failed", outcome, reason, notes=notes or {})

    @classmethod
    def pruned(cls, reason: str) -> Told:
        """It was ended early for what was reported on the way."""
        return cls("pruned", "pruned", reason)

    @classmethod
    def infeasible(cls, constraints: Mapping[str, float], reason: str) -> Told:
        """A forecast says that it would violate these constraints; nothing was run."""
        return cls("pruned", "infeasible", reason, constraints=constraints)


@dataclass(frozen=True)
class SeedRun:
    """One seed's run as plain values. `finals`: key -> figure. `rows`: the curves' rows, each with the counter
    `seconds`. `primary`: the key of the metric that stands for quality, such as `quality/fd_pixels`."""

    seed: int
    outcome: str
    finals: Mapping[str, float] = field(default_factory=dict)
    rows: Sequence[Mapping[str, float]] = ()
    primary: str | None = None
    reason: str = ""


class NoValue(Exception):
    """A run has no value for an objective or constraint."""


def told(spec: SearchSpec, runs: Sequence[SeedRun]) -> Told:
    """Judge a trial by its seeds' runs.

    A seed that did not end well makes the whole trial what that seed was: a mean over the seeds that survived would
    favour arms that often diverge. Where several failed, the first one's outcome counts.
    """
    failed = next((run for run in runs if run.outcome != "ok"), None)
    outcomes = {str(run.seed): run.outcome for run in runs}
    if failed is not None:
        return Told.failed(failed.outcome, f"seed {failed.seed}: {failed.reason or failed.outcome}",
                           {"seed_outcomes": outcomes})  # fmt: skip
    middle = fmean if spec.aggregate == "mean" else median
    values: list[float] = []
    notes: dict[str, Any] = {"seed_outcomes": outcomes, "seed_values": {}, "std": {}}
    violations: dict[str, float] = {}
    try:
        for objective in spec.objectives:
            each = {str(run.seed): value_of(objective, run) for run in runs}
            values.append(middle(each.values()))
            notes["seed_values"][objective.name] = each
            notes["std"][objective.name] = stdev(each.values()) if len(each) > 1 else None
            if objective.read == "time_to_target":
                violations[TARGET] = max(shortfall(objective, run) for run in runs)
        for constraint in spec.constraints:
            violations[constraint.name] = max(constraint.excess(_final(run, constraint.key)) for run in runs)
    except NoValue as error:
        return Told.failed("raised", str(error), notes)
    reason = ", ".join(f"{name} is not kept" for name, violation in violations.items() if violation > 0)
    return Told("complete", "infeasible" if reason else "ok", reason, tuple(values), violations, notes)


def value_of(objective: Objective, run: SeedRun) -> float:
    """One run's value of an objective. For `time_to_target`: training seconds at the first evaluation that reaches the
    target, or of the whole run where none does.

    Raises:
        NoValue: the run has none that is finite.
    """
    if objective.read == "time_to_target":
        points = _quality(objective, run)
        reached = next((seconds for seconds, value in points if _short(objective, value) <= 0), None)
        return reached if reached is not None else points[-1][0]
    key = _key(objective, run)
    if objective.read == "best":
        values = [value for row in run.rows if math.isfinite(value := row.get(key, math.nan))]
        values.append(_final(run, key))
        return min(values) if objective.direction == "minimize" else max(values)
    return _final(run, key)


def shortfall(objective: Objective, run: SeedRun) -> float:
    """How far a run's best quality stayed from the target, as a share of the target; 0 or less where it was reached."""
    return min(_short(objective, value) for _, value in _quality(objective, run))


def _short(objective: Objective, value: float) -> float:
    target = objective.target or 0.0
    gap = value - target if objective.target_direction == "minimize" else target - value
    return gap / (abs(target) or 1.0)


def _quality(objective: Objective, run: SeedRun) -> list[tuple[float, float]]:
    """(training seconds, quality) at every evaluation, in order."""
    key = _key(objective, run)
    points = [(row["seconds"], row[key]) for row in run.rows if key in row and "seconds" in row]
    points = sorted((seconds, value) for seconds, value in points if math.isfinite(value))
    if not points:
        raise NoValue(f"seed {run.seed}: no evaluation has {key}; is there one within the budget?")
    return points


def _key(objective: Objective, run: SeedRun) -> str:
    key = objective.key or run.primary
    if key is None:
        raise NoValue(f"seed {run.seed}: the run does not say which metric stands for its quality")
    return key


def _final(run: SeedRun, key: str) -> float:
    value = run.finals.get(key, math.nan)
    if not math.isfinite(value):
        raise NoValue(f"seed {run.seed}: the run has no value of {key}")
    return value
