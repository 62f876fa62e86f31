"""What happens inside a run's own process: data, networks, training, figures.

Everything heavy is imported inside the functions: this module is also imported by the parent, which never loads torch.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ganbench.errors import DeviceUnavailable, ErrorKind, classify
from ganbench.execute.beforehand import loadings
from ganbench.execute.discarded import PHASES, discarded_time
from ganbench.execute.judging import drawn, evaluator_for
from ganbench.execute.memory import final_memory
from ganbench.record.events import Ended, Event, Picture, Rows, Task
from ganbench.record.figures import cost_figures, timing_of, trust_of
from ganbench.record.outcome import Outcome
from ganbench.spec.seeds import derive_seed

if TYPE_CHECKING:
    import torch

    from ganbench.gan.session import Session
    from ganbench.gan.trainer import Progress, Trainer, WindowClock
    from ganbench.quality import Evaluator


def perform(task: Task, submitted: float, tell: Callable[[Event], None]) -> None:
    """Make one run and tell its events, `Ended` last. Errors of the training are outcomes, not exceptions."""
    run = _Run(task, submitted, tell)
    outcome = run.outcome()
    tell(Ended(task.run_key, outcome, time.time(), run.found))


class _Run:
    def __init__(self, task: Task, submitted: float, tell: Callable[[Event], None]) -> None:
        self.spec = task.spec
        self.jobs = task.jobs
        self.key = task.run_key
        self.tell = tell
        self.submitted = submitted
        self.found: dict[str, Any] = {}
        self.rss_peak = 0

    def outcome(self) -> Outcome:
        from ganbench.gan.session import device_for

        try:
            device = device_for(self.spec.device)
        except DeviceUnavailable as error:
            self.found["error"] = str(error)
            return Outcome.SKIPPED
        try:
            return self._train(device)
        except SystemExit as error:
            self._keep_error(error, ErrorKind.OTHER)
            return Outcome.CRASHED
        except Exception as error:  # noqa: BLE001 - whatever training raises is this run's result
            kind = classify(type(error).__name__, str(error))
            self._keep_error(error, kind)
            return Outcome.OUT_OF_MEMORY if kind is ErrorKind.OUT_OF_MEMORY else Outcome.RAISED

    def _keep_error(self, error: BaseException, kind: ErrorKind) -> None:
        # Text only: an exception object keeps its frames' tensors alive.
        first_line = (str(error).splitlines() or [""])[0]
        self.found |= {
            "error_kind": kind,
            "error": f"{type(error).__name__}: {first_line}",
            "traceback": "".join(traceback.format_exception(error)),
        }

    def _train(self, device: torch.device) -> Outcome:
        import torch

        from ganbench.gan.data import load
        from ganbench.gan.session import Session
        from ganbench.gan.trainer import Trainer
        from ganbench.measure import EnergyMeter, LoadWatch, clock_for, conditions, host_facts, reset_peak_rss

        torch.set_num_threads(self.spec.threads)
        self.found["host"] = host_facts(device.type)
        data = load(self.spec.dataset)
        evaluator = evaluator_for(self.spec, data)
        session = Session(self.spec, data, device)
        self.found |= {
            "schedule": str(session.schedule),
            "data": {"name": data.name, "count": data.count, "shape": list(data.shape)},
            "judged_by": {"primary": f"quality/{evaluator.primary}", **evaluator.describe},
            "floor": {f"quality/{name}": value for name, value in evaluator.floor.items()},
            "files": [loaded.model_dump() for loaded in loadings(self.spec)],
        }
        trainer = Trainer(
            session,
            clock_for(device),
            lambda progress: self._evaluate(session, evaluator, progress),
            lambda columns: self.tell(Rows(self.key, columns)),
        )
        reset_peak_rss()
        before = conditions(device)
        watch, energy = LoadWatch(), EnergyMeter(device)
        self.startup = time.time() - self.submitted
        try:
            trainer.train()
        finally:
            trainer.flush()
            self._keep_progress(session, trainer, watch.foreign_cores())
            self.found["energy"] = energy.joules()
            self.found["conditions"] = {"before": before, "after": conditions(device)}
        if trainer.progress.diverged_at_update is not None:
            self.found |= {
                "diverged_at_update": trainer.progress.diverged_at_update,
                "error_kind": ErrorKind.NON_FINITE,
                "error": f"not finite after update {trainer.progress.diverged_at_update}",
            }
            return Outcome.DIVERGED
        self.found["checksums"] = session.checksums()
        self._keep_memory(session, trainer.clock)
        return Outcome.OK

    def _keep_memory(self, session: Session, clock: WindowClock) -> None:
        """The memory rounds come after everything else was found: what they raise costs their figures alone."""
        try:
            memory, figures = final_memory(session, self.rss_peak)
            discarded = any(memory.discarded_gradient_bytes.values()) if memory else False
            if memory:
                # Nothing is timed where nothing is discarded: then the shares are 0, not this machine's noise.
                shares = discarded_time(session, clock) if discarded else dict.fromkeys(PHASES, 0.0)
                figures |= {f"time/discarded_{phase}_share": share for phase, share in shares.items()}
        except Exception as error:  # noqa: BLE001 - a network that a dispatch mode breaks has trained all the same
            self.found["warnings"] = [*self.found["warnings"], f"no memory figures: {type(error).__name__}: {error}"]
            return
        self.found["finals"] |= figures
        self.found["memory"] = memory and memory.model_dump()

    def _keep_progress(self, session: Session, trainer: Trainer, foreign_cores: float | None) -> None:
        from ganbench.measure import BOUND_CORES, warmup_rounds

        state = trainer.progress
        probed = set(state.probed)
        unprobed = [n for n in range(len(state.rounds)) if n not in probed]
        leading = warmup_rounds([sum(ns for _, ns in state.rounds[n]) for n in unprobed])
        warmup = unprobed[leading] if leading < len(unprobed) else len(state.rounds)
        # A compilation is one round far above the others: medians do not see it.
        warmup = max(warmup, state.compiling_rounds)
        timing = timing_of(state.rounds, state.probed, warmup)
        trust = trust_of(timing, state.segments_ns, state.wall_ns, foreign_cores, BOUND_CORES, self.jobs)
        images = session.schedule.batches * self.spec.batch_size
        spent = self.spec.budget.spent(state.counters)
        self.found |= {
            "counters": dict(state.counters),
            "overshoot": max(0.0, spent - self.spec.budget.amount),
            "skipped_steps": dict(state.skipped),
            "timing": timing.model_dump(),
            "trust": trust.model_dump(),
            "warnings": trust.warnings(),
            "finals": {
                **cost_figures(timing, session.schedule.updates, images),
                "time/train_s": state.counters["seconds"],
                "time/startup_s": self.startup,
            },
        }
        self.found["data"]["dropped"] = session.batches.dropped
        self.found["data"]["epochs"] = session.batches.epochs

    def _evaluate(self, session: Session, evaluator: Evaluator, progress: Progress) -> dict[str, float] | None:
        from ganbench.gan.streams import stream
        from ganbench.measure import peak_rss_bytes, reset_peak_rss
        from ganbench.quality import NonFiniteSamples

        # The peak belongs to training: evaluation's own is read off before and reset after.
        if progress.updates:
            self.rss_peak = max(self.rss_peak, peak_rss_bytes())
        fakes = session.samples(
            evaluator.samples,
            stream(self.spec.seed, "evaluation"),
            derive_seed(self.spec.seed, "evaluation noise"),
        )
        self.tell(Picture(self.key, progress.updates, drawn(fakes, session.data)))
        try:
            scores = evaluator.score(fakes)
        except NonFiniteSamples:
            return None
        finally:
            reset_peak_rss()
        return {f"quality/{name}": value for name, value in scores.items() if math.isfinite(value)}
