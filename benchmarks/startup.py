"""One more isolated run, from submission to its first round, against a fresh interpreter.

`python -m benchmarks startup`: about 2 minutes on two cores. The fork server is warm, as it is from a sweep's second
run on. The run is one of `ring8`, judged on 50 points before its first round; the fresh interpreter ends as soon as
torch is imported, or goes on to the first round of a pair written by hand.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.first_round import until_first_round
from benchmarks.pairs import arguments, interleaved, report
from ganbench.execute.local import LocalExecutor
from ganbench.spec.run import RunSpec

RUN: dict[str, Any] = {"dataset": "ring8", "model": "mlp2d", "latent": {"dim": 16}, "device": "cpu"}
IMPORT = "import torch"
FIRST_ROUND = """
import torch
from torch import nn
from torch.nn import functional as F
torch.set_num_threads(1)
def net(a, b): return nn.Sequential(nn.Linear(a, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, b))
g, d = net(16, 2), net(2, 1)
opt_g, opt_d = torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())
"""


def isolated(executor: LocalExecutor, spec: RunSpec) -> float:
    found = executor.ask(until_first_round, spec, time.time())
    if found is None:
        raise SystemExit("the run's process died")
    return found


def fresh(program: str) -> Callable[[], float]:
    """Seconds until a fresh interpreter has run `program`, by its own clock at the end: its exit is not counted."""
    told = f"{program}\nimport time; print(time.time())"

    def work() -> float:
        started = time.time()
        done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
        return float(done.stdout) - started

    return work


def main() -> None:
    options = arguments(__doc__ or "")
    spec = RunSpec.model_validate({**RUN, "budget": "10 rounds", "evaluate": {"samples": 50}})
    executor = LocalExecutor()
    isolated(executor, spec)
    pairs = 3 if options.quick else 20
    rows = [
        interleaved(name, lambda: isolated(executor, spec), fresh(program), pairs, "≤ 0.05")
        for name, program in (("until torch is imported", IMPORT), ("until the first round", FIRST_ROUND))
    ]
    report("Starting one more run", "isolated run / fresh interpreter", rows, options)
