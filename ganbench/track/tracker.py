"""Takes a sweep's events: first into the log, then, in a thread of its own, into MLflow."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ganbench.errors import GanbenchError, StoreError
from ganbench.record.events import Ended, Event, Task
from ganbench.record.judgement import Judged, judge
from ganbench.record.outcome import Outcome
from ganbench.spec.run import RunSpec
from ganbench.spec.strategy import Verdict
from ganbench.spec.sweep import SweepSpec
from ganbench.track import spelling
from ganbench.track.arms import Arms
from ganbench.track.reader import Reader, StoredRun
from ganbench.track.run_log import Header, RunLog, new_attempt, read_log
from ganbench.track.shipper import RunShipper, replay
from ganbench.track.store import Store, translated

FOLDER = Path(".ganbench") / "log"


class Tracker:
    """Writes one sweep down.

    `append` returns as soon as the event is in the log. The store is written by one thread; when it fails, the log
    keeps the run, `missed` counts it, and the next sweep on this store ships it.
    """

    def __init__(self, store: Store, sweep: SweepSpec, folder: Path = FOLDER) -> None:
        self._store = store
        self._sweep = sweep
        self._folder = folder
        key, text = spelling.sweep_tag(sweep)
        tags = {key: text, "mlflow.note.content": experiment_note(sweep)}
        self.experiment_id = store.ensure_experiment(sweep.name, tags)
        self.reader = Reader(store)
        self._owner = spelling.owner_tags()
        self._arms = Arms(store, self.experiment_id, sweep.sweep_id, self._owner)
        self._labels = {arm.arm_key: sweep.label(arm) for arm in sweep.arms}
        self._logs: dict[str, tuple[RunLog, RunShipper]] = {}
        self._queue: queue.SimpleQueue[tuple[RunShipper, Path, Event] | None] = queue.SimpleQueue()
        self._failed: set[str] = set()
        self.missed: dict[str, str] = {}
        self._thread = threading.Thread(target=self._write, name="ganbench-mlflow", daemon=True)
        self._thread.start()

    def begin(self, task: Task) -> None:
        """Open the log of a run that is about to start."""
        header = Header(
            attempt=new_attempt(),
            experiment=self._sweep.name,
            sweep=self._sweep.sweep_id,
            position=task.position,
            tracking_uri=self._store.uri,
            label=self._labels[task.spec.arm_key],
            spec=task.spec,
        )
        shipper = self._shipper(header)
        self._logs[task.run_key] = (RunLog(self._folder, header), shipper)

    def append(self, event: Event) -> None:
        """Log an event and queue it for the store."""
        log, shipper = self._logs[event.run_key]
        log.append(event)
        self._queue.put((shipper, log.path, event))
        if isinstance(event, Ended):
            log.close()
            del self._logs[event.run_key]

    def drain(self) -> None:
        """Wait until the store has everything, or has failed to take it."""
        self._queue.put(None)
        self._thread.join()

    def _write(self) -> None:
        while (item := self._queue.get()) is not None:
            shipper, path, event = item
            if path.name in self._failed:
                continue
            try:
                shipper.ship(event)
                if isinstance(event, Ended):
                    path.unlink(missing_ok=True)
            except GanbenchError as error:
                self._failed.add(path.name)
                self.missed[event.run_key] = str(error)

    def _shipper(self, header: Header) -> RunShipper:
        return RunShipper(self._store, self.experiment_id, header, self._parent, self._owner)

    def _parent(self, header: Header) -> str:
        return self._arms.ensure(header.spec, header.label)

    def ship_leftovers(self) -> tuple[int, list[str]]:
        """Ship what earlier processes left in the log for this store; (runs shipped, what could not be read).

        A log without an end belongs to a process that died: its run is closed as interrupted.
        """
        shipped, problems = 0, []
        for path in sorted(self._folder.glob("*.jsonl")):
            try:
                header, events, damaged = read_log(path)
            except (StoreError, ValueError, TypeError, KeyError) as error:
                problems.append(f"{path}: {error}")
                continue
            if header.tracking_uri != self._store.uri or header.experiment != self._sweep.name:
                continue
            if damaged:
                problems.append(f"{path}: {damaged} damaged lines left out")
            if events and not isinstance(events[-1], Ended):
                found = {"error": "its process died before the run was over"}
                events.append(Ended(header.spec.run_key, Outcome.INTERRUPTED, _last_time(events), found))
            replay(self._shipper(header), events)
            path.unlink()
            shipped += 1
        return shipped, problems

    def conclude(self, specs: Sequence[RunSpec]) -> dict[str, StoredRun]:
        """Judge the sweep's runs, write each arm's aggregate, and return the runs by run_key."""
        runs = self._judged(specs)
        for arm in self._sweep.arms:
            seeds = [runs[key] for seed in self._sweep.seeds if (key := _run_key(arm, seed)) in runs]
            results = [seed for seed in seeds if seed.outcome is not None and seed.outcome is not Outcome.INTERRUPTED]
            if len(results) < len(self._sweep.seeds):
                continue
            curves = [self.reader.curves(s.run_id) for s in results if s.outcome is Outcome.OK]
            self._arms.close(arm, self._labels[arm.arm_key], results, curves)
        self._arms.interrupt()
        return runs

    def _judged(self, specs: Sequence[RunSpec]) -> dict[str, StoredRun]:
        by_key = {spec.run_key: spec for spec in specs}
        runs = self.reader.runs(self.experiment_id, by_key)
        judgements = judge(_judged_of(by_key[key], run) for key, run in runs.items())
        with translated("cannot write judgements"):
            for key, run in list(runs.items()):
                verdict = judgements[key]
                if run.reason == verdict.reason and run.as_expected == verdict.as_expected:
                    continue
                tags = {
                    spelling.AS_EXPECTED: str(verdict.as_expected).lower(),
                    spelling.REASON: verdict.reason,
                }
                self._store.client.log_batch(run.run_id, tags=_tags(tags))
                runs[key] = replace(run, as_expected=verdict.as_expected, reason=verdict.reason, tags=run.tags | tags)
        return runs

    def forget(self, run_ids: Sequence[str]) -> None:
        """Delete runs that others took the place of. MLflow keeps deleted runs until its own clean-up."""
        with translated("cannot delete replaced runs"):
            for run_id in run_ids:
                self._store.client.delete_run(run_id)


def _judged_of(spec: RunSpec, run: StoredRun) -> Judged:
    expected = spec.expected
    raised = str(expected.error_kind) if expected.error_kind else None
    declared = (
        run.outcome is Outcome.RAISED and run.tags.get(spelling.ERROR_KIND) == raised
        if raised
        else run.outcome is Outcome.OK
    )
    return Judged(
        run_key=spec.run_key,
        pairing_key=spec.pairing_key,
        strategy=spec.strategy,
        # An A/A copy of the reference claims to be the same training.
        verdict=Verdict.SAME if spec.calibration else expected.verdict,
        came_out_as_declared=declared,
        ended_ok=run.outcome is Outcome.OK,
        weights=run.tags.get(spelling.WEIGHTS),
        bit_exact=spec.device == "cpu",
        ended=f"{run.outcome}: {run.tags.get(spelling.ERROR, '')}".rstrip(": "),
        rounds=int(run.tags[spelling.ROUNDS]) if spelling.ROUNDS in run.tags else None,
        is_copy=spec.calibration,
    )


def _tags(tags: dict[str, str]) -> list[object]:
    from mlflow.entities import RunTag

    return [RunTag(key, value) for key, value in tags.items()]


def _run_key(arm: RunSpec, seed: int) -> str:
    return arm.model_copy(update={"seed": seed}).run_key


def _last_time(events: Sequence[Event]) -> float:
    return max((event.at for event in events if hasattr(event, "at")), default=0.0)


def experiment_note(sweep: SweepSpec) -> str:
    """What an experiment's page says: the question and how to read the runs."""
    question = sweep.question.replace("<", "&lt;") or "(no question was given)"
    return (
        f"**{question}**\n\nRows are arms; their mean curves and figures stand under the same keys as those of their "
        "seeds, which are nested below. The step of every curve is the number of optimizer updates done (g + d). "
        "`ganbench.expected` is what was expected of the arm, `ganbench.as_expected` whether it came out so; a control "
        "that fails as expected has status FAILED and `as_expected` true."
    )
