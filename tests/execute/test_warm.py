"""What the fork server loads, and what it must not do."""

from __future__ import annotations

import subprocess
import sys

LOOK = """
import random, sys, threading
before = random.getstate()
import numpy as np
numpy_before = np.random.get_state()[1].tolist()
import torch
torch_before = torch.random.get_rng_state().tolist()
import ganbench.execute.warm
assert random.getstate() == before, "drew from random"
assert np.random.get_state()[1].tolist() == numpy_before, "drew from numpy"
assert torch.random.get_rng_state().tolist() == torch_before, "drew from torch"
assert threading.active_count() == 1, threading.enumerate()
assert not torch.cuda.is_initialized(), "touched CUDA"
loaded = set(sys.modules)
import time
from ganbench.execute import work
from ganbench.record.events import Ended, Task
from ganbench.spec.run import RunSpec
spec = RunSpec.model_validate({"device": "cpu", "budget": "3 rounds", "evaluate": {"samples": 50}})
told = []
work.perform(Task(spec, 0), time.time(), told.append)
assert isinstance(told[-1], Ended) and told[-1].outcome == "ok", told[-1]
late = {name for name in set(sys.modules) - loaded if name.split(".")[0] not in ("ganbench", "encodings")}
assert not late, f"loaded in every run: {sorted(late)[:5]} and others, {len(late)}"
"""


def test_the_fork_server_loads_what_runs_need_and_leaves_random_state_threads_and_cuda_alone() -> None:
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
