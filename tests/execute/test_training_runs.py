"""Real training in isolated processes: sound runs, and every way a user's network can spoil its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from ganbench.errors import ErrorKind
from ganbench.execute.local import LocalExecutor
from ganbench.record.events import Ended, Picture, Rows, Task
from ganbench.record.outcome import Outcome
from ganbench.spec.run import RunSpec

TROUBLED = Path(__file__).parent.parent / "parts" / "troubled.py"


def spec(generator: str = "Generator", **fields: Any) -> RunSpec:
    trouble = {"trouble_at": 5} if generator not in ("Generator", "ConstructorExits") else {}
    return RunSpec.model_validate(
        {
            "model": {
                "generator": f"{TROUBLED}:{generator}",
                "generator_args": trouble,
                "discriminator": f"{TROUBLED}:Discriminator",
            },
            "latent": {"dim": 16},
            "device": "cpu",
            "budget": "60 updates",
            "evaluate": {"samples": 100, "every": "30 updates"},
            **fields,
        }
    )


def run(*specs: RunSpec, jobs: int = 2, timeout: float | None = None) -> dict[str, Ended]:
    asked = [Task(one, n, timeout) for n, one in enumerate(specs)]
    return {e.run_key: e for e in LocalExecutor(jobs).run(asked) if isinstance(e, Ended)}


@pytest.mark.parametrize(
    ("generator", "outcome", "kind", "text"),
    [
        ("Exits", Outcome.CRASHED, ErrorKind.OTHER, "exit code 3"),
        ("SystemExits", Outcome.CRASHED, ErrorKind.OTHER, "SystemExit: no licence"),
        ("Raises", Outcome.RAISED, ErrorKind.OTHER, "RuntimeError: the fifth round is unlucky"),
        ("MakesNan", Outcome.DIVERGED, ErrorKind.NON_FINITE, "not finite after update"),
        ("Segfaults", Outcome.CRASHED, ErrorKind.OTHER, "SIGSEGV"),
        ("EatsMemory", Outcome.OUT_OF_MEMORY, ErrorKind.OUT_OF_MEMORY, "allocate"),
        ("ConstructorExits", Outcome.CRASHED, ErrorKind.OTHER, "exit code 4"),
        ("Forks", Outcome.CRASHED, ErrorKind.OTHER, "exit code 5"),
    ],
)
def test_a_network_that_spoils_its_run_spoils_no_other(
    generator: str, outcome: Outcome, kind: ErrorKind, text: str
) -> None:
    bad, good = spec(generator), spec(seed=1)
    ends = run(bad, good)
    assert ends[good.run_key].outcome is Outcome.OK
    end = ends[bad.run_key]
    assert end.outcome is outcome
    assert end.found["error_kind"] == kind
    assert text in end.found["error"]
    if generator == "Raises":
        # Four whole rounds were made before the fifth one raised.
        assert end.found["counters"]["rounds"] == 4
        assert "unlucky" in end.found["traceback"]
    if generator == "SystemExits":
        assert "giving up" in end.found["output"]
    if generator == "Segfaults":
        assert "troubled.py" in end.found["traceback"]


def test_a_network_that_never_returns_is_ended_in_time() -> None:
    bad, good = spec("Hangs"), spec(seed=1)
    ends = run(bad, good, jobs=1, timeout=20)
    assert ends[bad.run_key].outcome is Outcome.TIMED_OUT
    assert ends[good.run_key].outcome is Outcome.OK


def test_cuda_that_is_not_there_is_skipped_with_the_reason() -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    asked = spec(device="cuda:3")
    end = run(asked)[asked.run_key]
    assert end.outcome is Outcome.SKIPPED
    assert "no CUDA device" in end.found["error"]
    assert "--device cpu" in end.found["error"]


@pytest.mark.parametrize("dataset", ["digits", "ring8"])
def test_a_sound_run_brings_curves_pictures_and_figures(dataset: str) -> None:
    model = {"model": "mlp" if dataset == "digits" else "mlp2d"}
    asked = spec(ratio="2:3", dataset=dataset, **model)
    events = list(LocalExecutor().run([Task(asked, 0)]))
    steps = [step for event in events if isinstance(event, Rows) for step in event.columns["step"]]
    losses = [loss for event in events if isinstance(event, Rows) for loss in event.columns.get("loss/g", [])]
    assert steps[0] == 0  # the untrained generator is judged too
    assert len([loss for loss in losses if loss is not None]) == 24
    pictures = [event for event in events if isinstance(event, Picture)]
    assert [picture.step for picture in pictures] == [0, 30, 60]
    assert all(picture.png.startswith(b"\x89PNG") for picture in pictures)
    end = events[-1]
    assert isinstance(end, Ended)
    found = end.found
    assert found["schedule"] == "G G D D D"
    assert found["counters"]["g_updates"] == 24
    assert found["counters"]["d_updates"] == 36
    assert found["counters"]["real_images"] == 12 * 64
    assert len(found["timing"]["rounds"]) == 12
    assert set(found["finals"]) == {
        "time/round_ms",
        "time/round_ms_p95",
        "time/g_phase_ms",
        "time/d_phase_ms",
        "time/discarded_g_share",
        "time/discarded_d_share",
        "throughput/updates_per_second",
        "throughput/images_per_second",
        "memory/live_peak_mib",
        "memory/live_peak_mib_g_phase",
        "memory/live_peak_mib_d_phase",
        "memory/rss_peak_mib",
        "time/train_s",
        "time/startup_s",
    }
    shares = {key: found["finals"].pop(key) for key in ("time/discarded_g_share", "time/discarded_d_share")}
    assert all(share < 1 for share in shares.values())
    assert all(value > 0 for value in found["finals"].values())
    assert found["finals"]["memory/live_peak_mib"] >= found["finals"]["memory/live_peak_mib_d_phase"]
    assert len(found["checksums"]["weights"]) == 64


def test_the_same_spec_gives_the_same_weights_and_live_bytes() -> None:
    first = run(spec("Generator", model="mlp"))
    again = run(spec("Generator", model="mlp"))
    (a,), (b,) = first.values(), again.values()
    assert a.found["checksums"] == b.found["checksums"]
    live = [key for key in a.found["finals"] if "live" in key]
    assert len(live) == 3
    assert {k: a.found["finals"][k] for k in live} == {k: b.found["finals"][k] for k in live}


def test_a_larger_batch_than_the_data_and_too_many_samples_are_told_beforehand() -> None:
    from ganbench.errors import DatasetError
    from ganbench.execute.beforehand import look_over

    executor = LocalExecutor()
    with pytest.raises(DatasetError, match="batch_size is 2000, but digits has 1797"):
        executor.ask(look_over, spec(model="mlp", batch_size=2000), False)
    with pytest.raises(DatasetError, match="choose at most 898"):
        executor.ask(look_over, spec(model="mlp", evaluate={"samples": 899}), False)
    found = executor.ask(look_over, spec(model="mlp", device="auto"), False)
    assert found is not None
    assert found.device == ("cuda" if torch.cuda.is_available() else "cpu")
