"""A sweep from plan to table: what is left to do, doing it, writing it down, judging it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from ganbench.execute.beforehand import Found, look_over
from ganbench.execute.local import LocalExecutor
from ganbench.execute.stop import Stop
from ganbench.record.events import Ended, Event, Started, Task
from ganbench.record.outcome import Outcome
from ganbench.spec.run import RunSpec
from ganbench.spec.sweep import SweepSpec
from ganbench.spec.value import content_hash
from ganbench.track.reader import StoredRun
from ganbench.track.tracker import Tracker

Retry = Literal["none", "failed", "all", "fresh"]

_UNSEEN = "some networks or data could not be looked over beforehand (the process ended); their runs will tell why"
# What decides whether a run can be made at all.
_LOOKED_AT = ("model", "dataset", "latent", "loss", "batch_size", "evaluate", "device")
# What a user brought is also called once.
_CALLED_WITH = (*_LOOKED_AT, "optimizer", "precision")


class Watcher(Protocol):
    """Whoever shows how a sweep goes."""

    def planned(self, todo: int, done: int) -> None:
        """So many runs are left, so many are there already."""

    def started(self, spec: RunSpec, label: str) -> None:
        """A run begins."""

    def ended(self, spec: RunSpec, label: str, event: Ended) -> None:
        """A run is over."""


@dataclass
class Result:
    """How a sweep came out. `runs` by run_key, as the store has them."""

    sweep: SweepSpec
    runs: dict[str, StoredRun]
    made: int
    reused: int
    interrupted: bool
    missed: dict[str, str] = field(default_factory=dict)

    @property
    def unexpected(self) -> list[StoredRun]:
        """Runs that did not come out as expected; skipped and interrupted ones among them."""
        return [run for run in self.runs.values() if not run.as_expected]

    @property
    def exit_code(self) -> int:
        """0 everything came out as expected, 1 some run did not or is missing, 130 interrupted."""
        if self.interrupted:
            return 130
        return 1 if self.unexpected or self.missed or len(self.runs) < len(self.sweep.runs()) else 0


def settle(sweep: SweepSpec, executor: LocalExecutor, download: bool) -> tuple[SweepSpec, list[str]]:
    """Settle what depends on this machine before anything runs, and look over every different combination of data,
    networks and batch size once.

    Returns the settled sweep and what was found, line by line.

    Raises:
        UsageError: something does not fit; nothing was run.
    """
    found: dict[str, Found | None] = {}
    arms: list[RunSpec] = []
    for arm in sweep.arms:
        key = content_hash({name: arm.content()[name] for name in (_CALLED_WITH if arm.foreign() else _LOOKED_AT)})
        if key not in found:
            found[key] = executor.ask(look_over, arm, download)
        seen = found[key]
        if seen is None:
            arms.append(arm.model_copy(update={"device": "cpu" if arm.device == "auto" else arm.device}))
        else:
            arms.append(arm.model_copy(update={"device": seen.device, "dataset": seen.dataset}))
    lines: dict[str, None] = {}
    for seen in found.values():
        lines |= dict.fromkeys(seen.lines if seen else [_UNSEEN])
    return sweep.settled(arms), list(lines)


def to_do(specs: Sequence[RunSpec], known: dict[str, StoredRun], retry: Retry) -> list[Task]:
    """The runs that are left, in order; positions are those of the whole sweep."""
    tasks = []
    for position, spec in enumerate(specs):
        run = known.get(spec.run_key)
        if run is None or run.outcome is None or not run.outcome.is_result:
            again = True
        elif retry == "failed":
            again = not run.as_expected
        elif retry == "all":
            again = run.outcome is not Outcome.OK
        else:
            again = retry == "fresh"
        if again:
            tasks.append(Task(spec, position))
    return tasks


def run_sweep(
    sweep: SweepSpec,
    executor: LocalExecutor,
    tracker: Tracker,
    stop: Stop,
    watcher: Watcher,
    *,
    retry: Retry = "none",
    timeout: float | None = None,
) -> Result:
    """Make every run of a settled sweep that has no result yet, and conclude the arms.

    Raises:
        StoreError: the store cannot be read. Runs already made stay in the log.
    """
    specs = sweep.runs()
    known = tracker.reader.runs(tracker.experiment_id, [spec.run_key for spec in specs])
    tasks = [replace(task, timeout=timeout, jobs=executor.jobs) for task in to_do(specs, known, retry)]
    watcher.planned(len(tasks), len(specs) - len(tasks))
    by_key = {task.run_key: task for task in tasks}
    made = 0
    for event in executor.run(tasks):
        made += isinstance(event, Ended)
        _take(event, by_key[event.run_key], sweep, tracker, watcher)
    tracker.drain()
    replaced = [known[key].run_id for key, task in by_key.items() if key in known and key not in tracker.missed]
    runs = tracker.conclude(specs)
    tracker.forget([run_id for run_id in replaced if all(run.run_id != run_id for run in runs.values())])
    return Result(
        sweep=sweep,
        runs=runs,
        made=made,
        reused=len(specs) - len(tasks),
        interrupted=stop.requested,
        missed=tracker.missed,
    )


def _take(event: Event, task: Task, sweep: SweepSpec, tracker: Tracker, watcher: Watcher) -> None:
    label = f"{sweep.label(task.spec)}, seed {task.spec.seed}"
    if isinstance(event, Started):
        tracker.begin(task)
        watcher.started(task.spec, label)
    tracker.append(event)
    if isinstance(event, Ended):
        watcher.ended(task.spec, label, event)
