"""Live memory of a session: what it is for, what is retained, what is thrown away. Figures are worked out by hand."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from ganbench.execute.forecast import forecast
from ganbench.execute.local import LocalExecutor
from ganbench.execute.memory import memory_of
from ganbench.gan.data import BatchStream, load
from ganbench.gan.pair import unmarked
from ganbench.gan.session import Session
from ganbench.gan.streams import stream
from ganbench.measure import LiveTensorTracker
from ganbench.record.events import Ended, Task
from ganbench.record.memory import MIB, LiveMemory, Split
from ganbench.spec.run import RunSpec

RUNNING = (
    "detach", "toggle", "inputs", "retain_deferred", "no_grad_replay", "no_grad_fresh", "detach_as_published"
)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def spec_of(**fields: Any) -> RunSpec:
    small = {"model": {"name": "mlp", "hidden": 24}, "latent": {"dim": 6}, "batch_size": 8, "device": "cpu"}
    return RunSpec.model_validate(small | fields)


def session_of(rounds: int = 1, **fields: Any) -> Session:
    spec = spec_of(**fields)
    session = Session(spec, load(spec.dataset), torch.device("cpu"))
    for _ in range(rounds):
        session.play_round()
    return session


def bytes_of(session: Session, player: str) -> int:
    return sum(parameter.nbytes for parameter in getattr(session.pair, player).trainable)


def from_the_first_batch(session: Session) -> Session:
    """As `memory_of` does it, so that rounds can be compared."""
    order = stream(session.spec.seed, "data order")
    session.batches = BatchStream(session.data, session.spec.batch_size, order, session.device)
    return session


@pytest.mark.parametrize("order", ["g_first", "d_first"])
@pytest.mark.parametrize("strategy", RUNNING)
def test_the_parts_add_up_to_the_peaks_of_a_tracker_that_knows_no_kinds(strategy: str, order: str) -> None:
    fields = {"strategy": strategy, "order": order, "ratio": "2:2", "loss": "wgan_gp"}
    plain = from_the_first_batch(session_of(**fields))
    tracker = LiveTensorTracker()
    plain.pair.notes.clear()
    tracker.register(plain.tensors())
    plain.pair.mark = tracker.mark
    with tracker:
        for _ in range(2):
            plain.play_round()
            plain.pair.notes.clear()
            tracker.mark("rest")
    memory = memory_of(session_of(**fields))
    assert {segment: split.total for segment, split in memory.segments.items()} == tracker.peaks
    assert memory.peak_bytes == tracker.peak
    assert memory.figures() == {
        "memory/live_peak_mib": tracker.peak / MIB,
        "memory/live_peak_mib_g_phase": max(tracker.peaks["g"], tracker.peaks["g_step"]) / MIB,
        "memory/live_peak_mib_d_phase": max(tracker.peaks["d"], tracker.peaks["d_step"]) / MIB,
    }


@pytest.mark.parametrize("fields", [{"loss": "wgan_gp", "precision": "bf16"}, {"strategy": "retain_deferred"}])
def test_watched_rounds_train_the_same_weights_and_leave_the_session_alone(fields: dict[str, Any]) -> None:
    watched = session_of(ratio="2:2", **fields)
    memory_of(watched, rounds=3)
    free = from_the_first_batch(session_of(ratio="2:2", **fields))
    for _ in range(3):
        free.play_round()
    assert watched.checksums() == free.checksums()
    assert watched.pair.mark is unmarked
    assert watched.pair.on_fakes is None
    for player in (watched.pair.g, watched.pair.d):
        assert player.before_step is None
        assert player.before_clear is None
        assert not any(parameter._post_accumulate_grad_hooks for parameter in player.trainable)
    assert gc.isenabled()


def test_the_same_bytes_twice_and_however_long_the_training_was() -> None:
    # 1797 digits in batches of 900: one batch a pass, and an order that is drawn again every round.
    for batch_size in (8, 900):
        first = memory_of(session_of(batch_size=batch_size))
        assert memory_of(session_of(batch_size=batch_size)) == first
        assert memory_of(session_of(rounds=4, batch_size=batch_size)) == first


def test_parameters_and_state_by_hand() -> None:
    session = session_of(model={"name": "mlp", "hidden": 128, "layers": 1}, latent={"dim": 4})
    memory = memory_of(session)
    # G: 4·128, 128, 128·64, 64; D: 64·128, 128, 128, 1. Floats of 4 bytes, each tensor rounded up to 512.
    parameters = 2048 + 512 + 32768 + 512 + 32768 + 512 + 512 + 512
    for split in memory.segments.values():
        assert split.parameters == parameters
        # Adam: two moments for each parameter, and a count of steps.
        assert split.optimizer_state == 2 * parameters + 8 * 512
    # The D step sees D's gradients and nothing that autograd saved.
    assert memory.segments["d_step"].gradients == 32768 + 3 * 512
    assert memory.segments["d_step"].saved_for_backward == 0
    assert memory.segments["data"].gradients == 0


class TestTheFactsPair:
    """64→512→512→784 and back, batches of 512, three G updates and two D updates a round."""

    FIELDS: dict[str, Any] = {  # noqa: RUF012 - read only
        "model": {"name": "mlp", "hidden": 512},
        "latent": {"dim": 64},
        "batch_size": 512,
        "ratio": "3:2",
        "dataset": {"name": "digits", "size": 28},
    }

    def memory(self, strategy: str) -> LiveMemory:
        # To the byte what a real run needs: see test_forecast.
        memory = forecast(spec_of(strategy=strategy, **self.FIELDS)).memory
        assert memory is not None
        return memory

    def test_a_retained_graph_is_told_apart_from_what_detach_holds_too(self) -> None:
        detach, retain = self.memory("detach"), self.memory("retain_deferred")
        layer = 512 * 512 * 4
        assert detach.retained_graph_bytes == 0
        # The results of G's two hidden layers; its latents and fakes are held by the round in either case.
        assert retain.retained_graph_bytes == 2 * layer
        ours, theirs = retain.phase("d"), detach.phase("d")
        # Input and result of each LeakyReLU, on real and on fake pictures.
        assert theirs.saved_for_backward == 8 * layer
        # And, retained to the end of the backward pass, scores and targets of both cross-entropies.
        assert ours.saved_for_backward == theirs.saved_for_backward + retain.retained_graph_bytes + 4 * 512 * 4
        assert theirs.gradients == 0
        # D's own, G's that wait for their step, and G's that nobody wants: at the peak all but D's.
        assert ours.gradients > theirs.gradients
        assert ours.total > theirs.total + retain.retained_graph_bytes

    def test_what_is_thrown_away(self) -> None:
        g = 4 * (64 * 512 + 512 + 512 * 512 + 512 + 512 * 784 + 784)
        d = 4 * (784 * 512 + 512 + 512 * 512 + 512 + 512 + 1)
        assert self.memory("detach").discarded_gradient_bytes == {"g": 3 * d, "d": 0}
        assert self.memory("retain_deferred").discarded_gradient_bytes == {"g": 3 * d, "d": 2 * g}


@pytest.mark.parametrize("order", ["g_first", "d_first"])
@pytest.mark.parametrize("strategy", [*RUNNING, "retain_as_published"])
def test_discarded_gradients_of_every_strategy(strategy: str, order: str) -> None:
    fields = {"strategy": strategy, "order": order, "ratio": "3:2", "optimizer": {"fused": True}}
    session = session_of(**fields)
    g, d = bytes_of(session, "g"), bytes_of(session, "d")
    expected = {
        "detach": (3 * d, 0),
        "toggle": (0, 0),
        "inputs": (0, 0),
        "retain_deferred": (3 * d, 2 * g),
        "no_grad_replay": (3 * d, 0),
        "no_grad_fresh": (3 * d, 0),
        # Nothing is discarded: D steps on the leftovers.
        "detach_as_published": (0, 0),
        # The next update of the other network clears what was left in it.
        "retain_as_published": (3 * d, 2 * g),
    }
    memory = memory_of(session)
    assert tuple(memory.discarded_gradient_bytes[phase] for phase in ("g", "d")) == expected[strategy]


@pytest.mark.parametrize("strategy", ["detach", "inputs", "retain_deferred"])
def test_with_d_first_every_strategy_holds_the_graph_of_the_fakes_made_first(strategy: str) -> None:
    # Results of two layers of 24 and 8 rows: 768 bytes each, rounded up to 1024.
    assert memory_of(session_of(strategy=strategy, order="d_first")).retained_graph_bytes == 2 * 1024


def test_it_survives_json_and_refuses_what_it_does_not_know() -> None:
    memory = memory_of(session_of())
    assert LiveMemory.model_validate_json(memory.model_dump_json()) == memory
    with pytest.raises(ValueError, match="extra"):
        Split.model_validate({"parameters": 1, "magic": 2})


def test_a_run_brings_its_memory_and_it_is_the_forecast() -> None:
    spec = spec_of(strategy="retain_deferred", ratio="2:1", budget="30 updates", evaluate={"samples": 100})
    end = [event for event in LocalExecutor().run([Task(spec, 0)]) if isinstance(event, Ended)][-1]
    memory = LiveMemory.model_validate(end.found["memory"])
    assert memory == forecast(spec).memory
    assert end.found["finals"].items() >= memory.figures().items()


def test_the_parent_loads_no_torch_for_it() -> None:
    code = "import sys, ganbench.execute.forecast, ganbench.execute.memory; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
