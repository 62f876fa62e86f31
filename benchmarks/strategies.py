"""Every correct strategy against `detach`, in wall time of training and by the device it runs on.

`python -m benchmarks strategies`: about 6 minutes on two cores. Each strategy trains sessions of its own in one
process, in blocks of rounds that alternate with those of `detach` in random order. `detach` against a second session of
itself shows what this machine's noise is. On CUDA where there is one, else on the CPU.
"""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.overhead import CASES
from benchmarks.pairs import Row, arguments, interleaved, report, wall
from ganbench.gan.data import load
from ganbench.gan.session import Session
from ganbench.spec.run import RunSpec
from ganbench.spec.strategy import CORRECT, REFERENCE


def session_for(case: dict[str, Any], ratio: str, strategy: str, device: torch.device) -> Session:
    spec = RunSpec.model_validate({**case, "ratio": ratio, "strategy": strategy, "device": device.type})
    return Session(spec, load(spec.dataset), device)


def block(session: Session, rounds: int) -> float:
    """Seconds for so many rounds, the device's work included."""

    def play() -> None:
        for _ in range(rounds):
            session.play_round()
            session.pair.notes.clear()
        if session.device.type == "cuda":
            torch.cuda.synchronize(session.device)

    return wall(play)


def compare(name: str, ratio: str, strategy: str, device: torch.device, rounds: int, pairs: int) -> Row:
    case = CASES[name]
    ours, reference = (session_for(case, ratio, kind, device) for kind in (strategy, REFERENCE))
    for session in (ours, reference):
        block(session, rounds)  # optimizers make their state, the allocator its blocks
    label = f"{strategy} (A/A)" if strategy == REFERENCE else strategy
    return interleaved(
        f"{device.type} {name} {ratio} {label}", lambda: block(ours, rounds), lambda: block(reference, rounds), pairs
    )


def main() -> None:
    options = arguments(__doc__ or "")
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rounds, pairs = (5, 3) if options.quick else (30, 20)
    rows = [
        compare(name, ratio, strategy, device, rounds, pairs)
        for name in ("mlp 784", "dcgan 28")
        for ratio in ("2:1", "1:5")
        for strategy in CORRECT
    ]
    report("What each strategy costs", "strategy / detach", rows, options)
