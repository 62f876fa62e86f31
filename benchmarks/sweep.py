"""`ganbench sweep` against the script people write, started once for each run by a shell loop.

`python -m benchmarks sweep`: about 15 minutes on two cores. 2 ratios × 2 strategies × 3 seeds × 300 rounds, sqlite
stores, both as commands in an empty folder each; wall from the command's start to its end. The script logs six curves
after every round; ganbench logs the same and writes samples, quality, memory and records. Once with a small pair (8×8
pictures, 128 hidden units), once with that of `experiments/cost.yaml` (28×28, 256): the longer the training itself, the
less there is to save.

The second table holds ganbench alone against itself: its wall with `--jobs 1` and 60 runs over the training time that
the runs report.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.pairs import Row, arguments, interleaved, report, wall
from ganbench.report.statistics import Ratio

ROOT = Path(__file__).resolve().parent.parent
RATIOS, STRATEGIES = ("1:1", "2:1"), ("detach", "inputs")
PAIRS = {"8×8, 128 hidden": (8, 128), "28×28, 256 hidden": (28, 256)}
QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def ganbench(folder: Path, pair: tuple[int, int], seeds: int, rounds: int) -> None:
    """The sweep as one command, in an empty folder."""
    size, hidden = pair
    sizes = ["--set", f"dataset.size={size}", "--set", f"model.hidden={hidden}"]
    options = [
        *sizes,
        "--strategy",
        "detach",
        "--strategy",
        "inputs",
        "--set",
        "calibrate=false",
        "--seeds",
        str(seeds),
    ]
    options += [word for ratio in RATIOS for word in ("--ratio", ratio)]
    # The evaluation of a run is part of the wall: as the experiment has it, at the beginning and at the end.
    options += ["--budget", f"{rounds} rounds", "--set", f"evaluate.every={rounds} rounds"]
    call([sys.executable, "-m", "ganbench.cli", "sweep", str(ROOT / "experiments" / "cost.yaml"), *options], folder)


def shell_loop(folder: Path, pair: tuple[int, int], seeds: int, rounds: int) -> None:
    """The same runs one after the other, a process each."""
    size, hidden = pair
    more = f"--rounds {rounds} --size {size} --hidden {hidden}"
    script = f"""set -e
for ratio in {" ".join(RATIOS)}; do for strategy in {" ".join(STRATEGIES)}; do for seed in $(seq 0 {seeds - 1}); do
    "{sys.executable}" -m benchmarks.by_hand --ratio $ratio --strategy $strategy --seed $seed {more}
done; done; done"""
    call(["bash", "-c", script], folder)


def call(command: list[str], folder: Path) -> None:
    """Run a command that must succeed, its output kept off the screen."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")}
    done = subprocess.run(command, cwd=folder, env=environment | QUIET, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def timed(work: Callable[..., None], *arguments: object) -> float:
    with tempfile.TemporaryDirectory(prefix="ganbench-bench-") as folder:
        return wall(lambda: work(Path(folder), *arguments))


def compare(name: str, seeds: int, rounds: int, pairs: int) -> Row:
    pair = PAIRS[name]
    return interleaved(
        f"{name}: {4 * seeds} runs × {rounds} rounds",
        lambda: timed(shell_loop, pair, seeds, rounds),
        lambda: timed(ganbench, pair, seeds, rounds),
        pairs,
        "≥ 6",
    )


def own_wall(seeds: int, rounds: int) -> Row:
    """Wall of a sweep over the sum of its training times."""
    from ganbench.track.reader import Reader
    from ganbench.track.store import Store

    with tempfile.TemporaryDirectory(prefix="ganbench-bench-") as name:
        folder = Path(name)
        spent = wall(lambda: ganbench(folder, (28, 256), seeds, rounds))
        store = Store(f"sqlite:///{folder / 'mlflow.db'}")
        found = store.client.get_experiment_by_name("cost")
        runs = Reader(store).runs(found.experiment_id)
        training = float(np.sum([run.metrics["time/train_s"] for run in runs.values()]))
    ratio = Ratio(spent / training, None, None, 1, "one sweep")
    return Row(f"{len(runs)} runs, --jobs 1", ratio, "≤ 1.15", spent, training)


def main() -> None:
    options = arguments(__doc__ or "")
    seeds, rounds, pairs = (1, 20, 1) if options.quick else (3, 300, 3)
    rows = [compare(name, seeds, rounds, pairs) for name in PAIRS]
    report("A sweep against a shell loop", "shell loop / ganbench", rows, options)
    alone = [own_wall(1 if options.quick else 15, rounds)]
    report("ganbench's own wall", "wall / training", alone, options)
