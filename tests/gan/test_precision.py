"""Reduced precision and compilation: what is counted, and what the table expects."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from ganbench.errors import ErrorKind, classify
from ganbench.gan.session import Session
from ganbench.gan.trainer import Progress, Trainer
from ganbench.measure import clock_for
from ganbench.record.curves import CurveTable

SessionOf = Callable[..., Session]
Own = Callable[..., dict[str, Any]]


def trained(session: Session) -> tuple[Progress, list[dict[str, float]]]:
    table = CurveTable()
    trainer = Trainer(session, clock_for(session.device), lambda _: {}, table.extend)
    trainer.train()
    return trainer.progress, [row for row in table.rows() if "loss/g" in row or "loss/d" in row]


def counting_steps(session: Session) -> Counter[str]:
    """The scaler calls an optimizer only where nothing overflowed."""
    steps: Counter[str] = Counter()
    for player in (session.pair.g, session.pair.d):
        player.optimizer.register_step_post_hook(lambda *_, name=player.name: steps.update([name]))
    return steps


@pytest.fixture
def overflowing(session_of: SessionOf, own: Own) -> Callable[..., Session]:
    """Gradients a thousand times as large as usual: the scaler's first scale is too much for half precision."""
    return lambda **fields: session_of(precision="fp16", model=own(d={"factor": 1000.0}), **fields)


@pytest.mark.parametrize("strategy", ["detach", "retain_deferred"])
def test_overflowed_steps_are_counted_apart(overflowing: Callable[..., Session], strategy: str) -> None:
    session = overflowing(ratio="2:3", budget="20 rounds", strategy=strategy)
    steps = counting_steps(session)
    state, rows = trained(session)
    assert state.skipped["g"] > 0
    assert state.skipped["d"] > 0
    assert state.counters["g_updates"] == steps["g"] == 40 - state.skipped["g"] > 0
    assert state.counters["d_updates"] == steps["d"] == 60 - state.skipped["d"] > 0
    assert state.counters["rounds"] == 20
    assert state.updates == rows[-1]["step"]
    # A skipped update leaves its row, at the step of the one before.
    assert len(rows) == 100
    assert len({row["step"] for row in rows if row["step"] > 0}) == state.updates
    assert state.diverged_at_update is None


def test_a_budget_of_updates_counts_those_that_happened(overflowing: Callable[..., Session]) -> None:
    session = overflowing(ratio="2:3", budget="50 updates")
    steps = counting_steps(session)
    state, _ = trained(session)
    assert sum(state.skipped.values()) > 0
    assert 50 <= state.updates == steps.total() < 55
    assert state.counters["rounds"] > 10


def test_players_have_scales_of_their_own(overflowing: Callable[..., Session]) -> None:
    session = overflowing(ratio="2:3")
    g, d = session.pair.g.scaler, session.pair.d.scaler
    assert g is not None
    assert d is not None
    before = d.get_scale()
    given = session.draw()
    session.strategy.generator_update(session.strategy.generate(given.latents[0]), feeds_discriminator=False)
    assert g.get_scale() < before
    assert d.get_scale() == before


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_reduced_precision_trains_float32_weights_near_the_full_one(session_of: SessionOf, precision: str) -> None:
    fields = {"ratio": "2:3", "budget": "2 rounds"}
    session = session_of(precision=precision, **fields)
    state, rows = trained(session)
    _, full = trained(session_of(**fields))
    assert state.skipped == {"g": 0, "d": 0}
    assert all(p.dtype == torch.float32 for player in (session.pair.g, session.pair.d) for p in player.trainable)
    losses, expected = ([row.get("loss/g", row.get("loss/d", math.nan)) for row in r] for r in (rows, full))
    assert losses == pytest.approx(expected, rel=0.05)
    assert losses != expected


@pytest.mark.parametrize("strategy", ["toggle", "inputs", "retain_deferred"])
@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_reduced_precision_does_not_part_strategies(session_of: SessionOf, precision: str, strategy: str) -> None:
    found = []
    for name in ("detach", strategy):
        session = session_of(strategy=name, ratio="2:3", precision=precision)
        for _ in range(3):
            session.play_round()
        found.append(session.checksums()["weights"])
    assert found[0] == found[1]


@pytest.fixture
def compiling(session_of: SessionOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Session]:
    """Sessions of a tiny compiled pair; what the compiler writes goes into the test's own folder."""
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        pytest.skip("torch.compile needs a C++ compiler on the CPU, none is here")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
    model = {"name": "mlp", "hidden": 4, "layers": 1}
    return lambda **fields: session_of(compile=True, model=model, **fields)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the compiler trips over its own warnings where they are errors
def test_compiled_networks_train_as_uncompiled_ones(compiling: Callable[..., Session], session_of: SessionOf) -> None:
    fields = {"ratio": "2:3", "budget": "4 rounds"}
    state, rows = trained(compiling(**fields))
    # Everything is compiled in the first round: it is a warm-up, the others are not.
    assert state.compiling_rounds == 1
    _, plain = trained(session_of(model={"name": "mlp", "hidden": 4, "layers": 1}, **fields))
    losses, expected = ([row.get("loss/g", row.get("loss/d", math.nan)) for row in r] for r in (rows, plain))
    assert len(losses) == 20
    assert losses == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the compiler trips over its own warnings where they are errors
@pytest.mark.parametrize("strategy", ["retain_deferred", "retain_as_published"])
@pytest.mark.parametrize("order", ["g_first", "d_first"])
def test_a_compiled_graph_cannot_be_retained(compiling: Callable[..., Session], strategy: str, order: str) -> None:
    session = compiling(strategy=strategy, ratio="2:3", order=order)
    assert session.spec.expected.error_kind is ErrorKind.DONATED_BUFFERS
    with pytest.raises(RuntimeError) as caught:
        session.play_round()
    assert classify(type(caught.value).__name__, str(caught.value)) is ErrorKind.DONATED_BUFFERS
