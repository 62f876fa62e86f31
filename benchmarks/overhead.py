"""ganbench's training loop with its default recording against a hand-written loop of the same operations.

`python -m benchmarks overhead`: about 6 minutes on two cores. Both loops run in one process, in blocks of rounds that
alternate in random order. ganbench's side is everything between two evaluations: clock, probe rounds, reading the
losses, rows. Evaluation itself is left out, the hand-written loop has none.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from benchmarks.pairs import Row, arguments, interleaved, report, wall
from ganbench.gan.data import load
from ganbench.gan.session import Session
from ganbench.gan.trainer import Trainer
from ganbench.measure import clock_for
from ganbench.spec.run import RunSpec

CPU = torch.device("cpu")
CASES: dict[str, dict[str, Any]] = {
    "mlp2d": {"dataset": "ring8", "model": "mlp2d", "latent": {"dim": 16}, "batch_size": 256},
    "mlp 784": {"dataset": {"name": "digits", "size": 28}, "model": {"name": "mlp", "hidden": 256}, "batch_size": 64},
    "dcgan 28": {"dataset": {"name": "digits", "size": 28}, "model": {"name": "dcgan", "width": 16}, "batch_size": 32},
}


def session_for(case: dict[str, Any], ratio: str, rounds: int) -> Session:
    """A session that trains `rounds` rounds a call, nothing evaluated in between."""
    more = {"ratio": ratio, "device": "cpu", "budget": f"{rounds} rounds", "evaluate": {"every": f"{rounds} rounds"}}
    spec = RunSpec.model_validate({**case, **more})
    return Session(spec, load(spec.dataset), CPU)


def by_hand(session: Session, rounds: int) -> None:
    """What one writes: the same networks, optimizers, latents and batches, `detach`, and nothing kept."""
    g, d = session.pair.g.module, session.pair.d.module
    opt_g, opt_d = session.pair.g.optimizer, session.pair.d.optimizer
    latents, batches, ratio = session._latents, session.batches, session.spec.ratio
    for _ in range(rounds):
        drawn = [latents.next(CPU) for _ in range(ratio.g)]
        real = batches.next()
        for z in drawn:
            opt_g.zero_grad()
            fake = g(z)
            score = d(fake)
            F.binary_cross_entropy_with_logits(score, torch.ones_like(score)).backward()
            opt_g.step()
        for _ in range(ratio.d):
            opt_d.zero_grad()  # the G phase's leftovers too
            on_real, on_fake = d(real), d(fake.detach())
            loss = F.binary_cross_entropy_with_logits(on_real, torch.ones_like(on_real))
            loss = loss + F.binary_cross_entropy_with_logits(on_fake, torch.zeros_like(on_fake))
            loss.backward()
            opt_d.step()


def by_ganbench(session: Session) -> None:
    """The same rounds through the training loop with default recording."""
    kept: list[object] = []
    Trainer(session, clock_for(CPU), lambda _: {}, kept.append).train()


def compare(name: str, ratio: str, rounds: int, pairs: int) -> Row:
    ours, theirs = session_for(CASES[name], ratio, rounds), session_for(CASES[name], ratio, rounds)
    by_ganbench(ours)
    by_hand(theirs, rounds)
    return interleaved(
        f"{name} {ratio}",
        lambda: wall(lambda: by_ganbench(ours)),
        lambda: wall(lambda: by_hand(theirs, rounds)),
        pairs,
        "≤ 1.02",
    )


def main() -> None:
    options = arguments(__doc__ or "")
    torch.set_num_threads(1)
    rounds, pairs = (20, 3) if options.quick else (100, 30)
    rows = [compare(name, ratio, rounds, pairs) for name in CASES for ratio in ("1:1", "2:1")]
    report("Overhead of the training loop", "ganbench / by hand", rows, options)
