"""What recording costs: `mlflow.log_metrics` after every round, Lightning's MLFlowLogger, and ganbench.

`python -m benchmarks tracking`: about 8 minutes on two cores; Lightning comes with `pip install 'ganbench[bench]'`. The
same pair, ratio, rounds and curves, a new sqlite store each, wall of one whole run in a process that has everything
imported: by hand from the run's creation to its end, ganbench from the executor's start of the run until the store
holds it. ganbench's side also judges samples twice, measures memory and writes artifacts. MLflow gets every point from
the first two, at most 200 of each curve from ganbench, which keeps all of them in `curves.parquet`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks import by_hand
from benchmarks.pairs import Row, arguments, interleaved, report, wall
from ganbench.execute.local import LocalExecutor
from ganbench.execute.stop import Stop
from ganbench.record.events import Ended
from ganbench.spec.experiment import find_experiment, read_fields
from ganbench.spec.run import RunSpec
from ganbench.spec.sweep import SweepSpec
from ganbench.sweep import run_sweep
from ganbench.track.store import Store
from ganbench.track.tracker import Tracker

RATIO = (2, 1)


class Silent:
    """Watches a sweep and says nothing."""

    def planned(self, todo: int, done: int) -> None:
        """Not shown."""

    def started(self, spec: RunSpec, label: str) -> None:
        """Not shown."""

    def ended(self, spec: RunSpec, label: str, event: Ended) -> None:
        """Not shown."""


def nothing_logged(folder: Path, rounds: int) -> float:  # noqa: ARG001 - called like the others
    return wall(lambda: by_hand.train(RATIO, "detach", 0, rounds, lambda _row, _n: None))


def log_metrics(folder: Path, rounds: int) -> float:
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    mlflow.set_experiment("by hand")  # makes the store, which is not counted on any side

    def run() -> None:
        with mlflow.start_run():
            mlflow.log_params({"ratio": "2:1", "seed": 0})
            by_hand.train(RATIO, "detach", 0, rounds, lambda row, n: mlflow.log_metrics(row, step=n))

    return wall(run)


def lightning_logger(folder: Path, rounds: int) -> float:
    from lightning.pytorch.loggers import MLFlowLogger

    logger = MLFlowLogger("lightning", tracking_uri=f"sqlite:///{folder / 'mlflow.db'}")
    logger.experiment  # noqa: B018 - makes the store and the run

    def run() -> None:
        logger.log_hyperparams({"ratio": "2:1", "seed": 0})
        by_hand.train(RATIO, "detach", 0, rounds, logger.log_metrics)
        logger.finalize("success")

    return wall(run)


def ganbench(folder: Path, rounds: int, executor: LocalExecutor) -> float:
    fields = read_fields(find_experiment("cost"))
    fields |= {"ratio": "2:1", "strategy": "detach", "seeds": 1, "calibrate": False, "budget": f"{rounds} rounds"}
    fields["evaluate"] = {"every": f"{rounds} rounds", "samples": 256}
    sweep = SweepSpec.from_fields(fields, "cost")
    tracker = Tracker(Store(f"sqlite:///{folder / 'mlflow.db'}"), sweep, folder / "log")
    return wall(lambda: run_sweep(sweep, executor, tracker, Stop(), Silent()))


def main() -> None:
    options = arguments(__doc__ or "")
    torch.set_num_threads(1)
    rounds, pairs = (20, 2) if options.quick else (300, 10)
    executor = LocalExecutor()
    with tempfile.TemporaryDirectory(prefix="ganbench-bench-") as folder:
        ganbench(Path(folder), 5, executor)  # the fork server is warm from a sweep's second run on

    def timed(side: Callable[..., float], *more: object) -> Callable[[], float]:
        def work() -> float:
            with tempfile.TemporaryDirectory(prefix="ganbench-bench-") as folder:
                return side(Path(folder), rounds, *more)

        return work

    ours = timed(ganbench, executor)
    rows: list[Row] = [
        interleaved(name, timed(side), ours, pairs)
        for name, side in (
            ("nothing logged", nothing_logged),
            ("mlflow.log_metrics", log_metrics),
            ("Lightning's MLFlowLogger", lightning_logger),
        )
    ]
    report(f"Recording {rounds} rounds of six curves", "by hand / ganbench", rows, options)
