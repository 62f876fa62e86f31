"""What happens inside a run's own process: data, networks, training, figures.

Everything heavy is imported inside the functions: this module is also imported by the parent, which never loads torch.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ganbench.errors import DatasetError, DeviceUnavailable, ErrorKind, UserCodeError, classify
from ganbench.execute.discarded import PHASES, discarded_time
from ganbench.execute.memory import final_memory
from ganbench.record.events import Ended, Event, Picture, Rows, Task
from ganbench.record.figures import cost_figures, timing_of, trust_of
from ganbench.record.outcome import Outcome
from ganbench.spec.dataset import PictureSpec, PointSpec
from ganbench.spec.run import RunSpec
from ganbench.spec.seeds import derive_seed

if TYPE_CHECKING:
    import torch

    from ganbench.gan.data import Data
    from ganbench.gan.session import Session
    from ganbench.gan.trainer import Progress, Trainer, WindowClock
    from ganbench.quality import Evaluator

GRID = 64
# Neighbourhoods of five need six points.
LEAST_SAMPLES = 6


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
        from ganbench.quality import NonFiniteSamples, picture_of

        # The peak belongs to training: evaluation's own is read off before and reset after.
        if progress.updates:
            self.rss_peak = max(self.rss_peak, peak_rss_bytes())
        fakes = session.samples(
            evaluator.samples,
            stream(self.spec.seed, "evaluation"),
            derive_seed(self.spec.seed, "evaluation noise"),
        )
        centers = session.data.mixture.centers if session.data.mixture is not None else None
        png = picture_of(fakes if centers is not None else fakes[:GRID], session.data.value_range, centers)
        self.tell(Picture(self.key, progress.updates, png))
        try:
            scores = evaluator.score(fakes)
        except NonFiniteSamples:
            return None
        finally:
            reset_peak_rss()
        return {f"quality/{name}": value for name, value in scores.items() if math.isfinite(value)}


def evaluator_for(spec: RunSpec, data: Data) -> Evaluator:
    """The judge of samples for this dataset; the same for every seed, so that floors and references agree.

    Raises:
        DatasetError: the dataset holds too few items for the samples asked for.
    """
    import torch

    from ganbench.quality import PictureEvaluator, PointEvaluator

    generator = torch.Generator().manual_seed(derive_seed("evaluation reference", spec.dataset.name))
    if data.mixture is not None:
        return PointEvaluator(data.mixture.centers, data.mixture.std, spec.evaluate_samples, generator)
    assert data.value_range is not None
    samples = min(spec.evaluate_samples, data.count // 2) if spec.evaluate.samples is None else spec.evaluate_samples
    if 2 * samples > data.count:
        raise DatasetError(
            f"evaluate.samples is at most half of the dataset, for a floor from disjoint halves: {data.name} has "
            f"{data.count} pictures, {samples} samples were asked for; choose at most {data.count // 2}"
        )
    if samples < LEAST_SAMPLES:
        raise DatasetError(
            f"{data.name} has {data.count} pictures; judging samples takes at least {2 * LEAST_SAMPLES}, "
            f"half of them for the floor"
        )
    # Only what is needed is turned into floats: a large dataset stays in bytes.
    rows = torch.randperm(data.count, generator=generator)[: 2 * samples]
    return PictureEvaluator(data.floats(rows), data.value_range, samples, generator)


@dataclass(frozen=True)
class Found:
    """What looking a spec over found: its device and dataset as settled on this machine, and lines worth saying."""

    device: str
    dataset: PictureSpec | PointSpec
    lines: list[str]


def look_over(spec: RunSpec, download: bool) -> Found:
    """Check before any run that data, networks and batch size fit; nothing is trained.

    A device that is not there is no error here: its runs are skipped with the reason.

    Raises:
        DatasetError, UserCodeError: what does not fit, and what to do.
    """
    import torch

    from ganbench.gan.data import folder_content, load
    from ganbench.gan.losses import LOSSES
    from ganbench.gan.models import build
    from ganbench.gan.session import device_for

    device, dataset, lines = spec.device, spec.dataset, []
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device_for(device)
    except DeviceUnavailable as error:
        lines.append(str(error))
    data = load(dataset, download=download)
    lines.append(f"{data.name}: {data.count} items of shape {tuple(data.shape)}")
    if isinstance(dataset, PictureSpec) and dataset.name == "folder":
        dataset = dataset.model_copy(update={"content": folder_content(dataset.root)})
    if spec.batch_size > data.count:
        raise DatasetError(
            f"batch_size is {spec.batch_size}, but {data.name} has {data.count} items; choose at most {data.count}"
        )
    evaluator_for(spec, data)
    generator, discriminator = build(spec, data.shape, on_probabilities=LOSSES[spec.loss].on_probabilities)
    for network, role in ((generator, "generator"), (discriminator, "discriminator")):
        if not any(parameter.requires_grad for parameter in network.parameters()):
            raise UserCodeError(f"{role}: it has no parameters that can be trained")
    return Found(device, dataset, lines)


def first_present(choices: list[PictureSpec | PointSpec]) -> int | None:
    """The position of the first dataset whose files are there."""
    from ganbench.gan.data import present

    return next((n for n, choice in enumerate(choices) if present(choice)), None)
