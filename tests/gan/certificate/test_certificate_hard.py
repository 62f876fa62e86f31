"""Networks with ways of their own: a right verdict or a plain reason why there is none, never a wrong `same`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from ganbench.gan.certificate import certify
from ganbench.gan.certificate.trajectory import detour, difference
from ganbench.gan.data import Data
from ganbench.record.certificate import Certificate
from ganbench.spec.run import RunSpec
from ganbench.spec.strategy import Verdict

SpecOf = Callable[..., RunSpec]
Judge = Callable[..., Certificate]
NETWORKS = Path(__file__).with_name("hard_networks.py")


@pytest.fixture(name="labelled", scope="module")
def _labelled(data: Data) -> Data:
    return Data(data.name, data.items, data.value_range, labels=torch.arange(data.count) % 3, classes=3)


@pytest.fixture(name="judge")
def _judge(spec_of: SpecOf, labelled: Data) -> Judge:
    """`judge(strategy, G, D, further fields of the model, **fields)` at 2:3."""

    def judge(strategy: str, g: str = "G", d: str = "D", /, model: Any = None, **fields: Any) -> Certificate:
        places = {"generator": f"{NETWORKS}:{g}", "discriminator": f"{NETWORKS}:{d}"}
        if model and "factory" in model:
            places = {}
        spec = spec_of(**{"ratio": "2:3", "strategy": strategy, **fields, "model": {**places, **(model or {})}})
        return certify(spec, labelled, torch.device("cpu"), rounds=2)

    return judge


CLASSES = {"conditional": True, "output": {"discriminator": 0}}
BOUND = {**CLASSES, "generator_args": {"bound": 1.0}, "discriminator_args": {"bound": 1.0}}
SGD = {"name": "sgd", "g_lr": 1e-2, "d_lr": 1e-2}
KINDS: dict[str, tuple[str, str, dict[str, Any], dict[str, Any]]] = {
    "lazy layers": ("LazyG", "LazyD", {}, {}),
    "wrappers around them": ("wrapped_g", "wrapped_d", {}, {}),
    "layers that work in place": ("InPlaceG", "InPlaceD", {}, {}),
    "a generator that edits its latents": ("EditsLatents", "D", {}, {}),
    "labels, projection and a tuple": ("ConditionalG", "ConditionalD", CLASSES, {}),
    "embeddings that renormalise themselves": ("ConditionalG", "ConditionalD", BOUND, {}),
    "recurrent layers": ("RecurrentG", "RecurrentD", {}, {}),
    "twenty layers": ("deep_g", "deep_d", {}, {}),
    "twenty layers in bfloat16": ("deep_g", "deep_d", {}, {"precision": "bf16"}),
    "gradients that float16 does not hold unscaled": ("deep_g", "deep_d", {}, {"precision": "fp16"}),
    "float64 inside": ("DoubleG", "D", {}, {}),
    "float64 outside": ("G", "DoubleD", {}, {}),
    "one buffer in two layers": ("G", "one_buffer_for_two", {}, {}),
    "weights that shrink with every pass": ("ShrinkingG", "Shrinking", {}, {}),
    "weights that are clipped with every pass": ("G", "Clipped", {}, {}),
    "weights drawn by NumPy": ("G", "NumpyMade", {}, {}),
    "a projection drawn by Python": ("G", "RandomFeatures", {}, {}),
    "extra state": ("G", "ExtraState", {}, {}),
    "sparse gradients": ("G", "Sparse", {}, {"optimizer": SGD}),
    "a last layer of zeros": ("G", "Zeroed", {}, {"loss": "hinge"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_holds_for(judge: Judge, kind: str) -> None:
    g, d, model, fields = KINDS[kind]
    for strategy in ("detach", "retain_deferred", "no_grad_fresh", "detach_as_published"):
        found = judge(strategy, g, d, model, **fields)
        assert found.as_expected, f"{strategy}: {found.text}: {found.reason}"
        assert found.verdict is not Verdict.SAME or found.trajectory_difference == 0


@pytest.mark.parametrize(("g", "d"), [("G", "SingleD"), ("FaintNoise", "D")])
def test_what_float64_cannot_tell_is_told_by_the_networks_own_type(judge: Judge, g: str, d: str) -> None:
    """Float32 alone; and noise so faint that another draw of it looks the same but for the gradients."""
    found = judge("detach", g, d)
    assert found.verdict is Verdict.SAME, found.reason
    assert found.truth["d"].worst_share < 1e-5
    assert judge("detach_as_published", g, d).verdict is Verdict.CONTAMINATED


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_run_again_in_every_backward_pass(judge: Judge, reentrant: bool) -> None:
    """A retained graph makes G's BatchNorm see its batch once more for each D update: found, not explained away."""
    model = {f"{role}_args": {"reentrant": reentrant} for role in ("generator", "discriminator")}
    for strategy in ("detach", "toggle"):
        found = judge(strategy, "CheckpointedG", "CheckpointedD", model)
        assert found.verdict is Verdict.SAME, found.reason
    retained = judge("retain_deferred", "CheckpointedG", "CheckpointedD", model)
    assert retained.verdict is Verdict.OTHER_ESTIMATOR
    assert not retained.as_expected
    assert retained.trajectory_difference
    assert judge("detach_as_published", "CheckpointedG", "CheckpointedD", model).as_expected


def test_reentrant_checkpoints_do_not_go_with_inputs(judge: Judge) -> None:
    """Some versions of torch raise, others leave the gradients out: no training, either way."""
    model = {f"{role}_args": {"reentrant": True} for role in ("generator", "discriminator")}
    found = judge("inputs", "CheckpointedG", "CheckpointedD", model)
    assert found.verdict in (Verdict.RAISES, Verdict.NOT_TRAINED)


@pytest.mark.parametrize("strategy", ["detach", "toggle", "inputs"])
@pytest.mark.parametrize(("ratio", "text"), [("1:1", "other fakes"), ("1:3", "edited in place")])
def test_an_edit_in_place_that_is_smaller_than_rounding(judge: Judge, strategy: str, ratio: str, text: str) -> None:
    """Slope 0.999: an edit as small as a wide tolerance."""
    found = judge(strategy, "InPlaceG", "EditsALittle", ratio=ratio)
    assert found.verdict in (Verdict.CONTAMINATED, Verdict.OTHER_ESTIMATOR)
    assert text in found.reason
    assert not found.as_expected


def test_a_strategy_that_leaves_flags_behind_when_it_raises(judge: Judge) -> None:
    found = judge("toggle", "G", "EditsALittle")
    assert found.text == "raises modified_in_place"


@pytest.mark.parametrize(
    ("d", "text"),
    [
        ("NoisyGradients", "computed again from the same weights, buffers, inputs and random numbers differs"),
        ("Unseeded", "other initial weights each time"),
    ],
)
def test_networks_that_do_not_repeat_are_blamed_themselves(judge: Judge, d: str, text: str) -> None:
    for strategy in ("detach", "inputs", "no_grad_fresh", "detach_as_published"):
        found = judge(strategy, "G", d)
        assert found.verdict is None, f"{found.text}: {found.reason}"
        assert found.reason.startswith("cannot be certified because")
        assert text in found.reason


def test_a_count_that_is_no_buffer(judge: Judge) -> None:
    """It is counted alike where networks are called in the order of the updates."""
    for strategy in ("detach", "inputs", "retain_deferred"):
        assert judge(strategy, "G", "Annealed").verdict is Verdict.SAME
    assert judge("detach_as_published", "G", "Annealed").verdict in (None, Verdict.CONTAMINATED)


def test_networks_that_are_made_only_once(judge: Judge) -> None:
    found = judge("detach", model={"factory": f"{NETWORKS}:only_once"})
    assert found.verdict is None
    assert "handed out each time" in found.reason


def test_a_layer_frozen_by_its_first_call(judge: Judge) -> None:
    found = judge("detach", "G", "GoesToFreeze")
    assert found.verdict in (None, Verdict.SAME)
    assert judge("inputs", "G", "GoesToFreeze").verdict in (None, Verdict.RAISES)


def test_parameters_of_both_networks_and_of_two_layers(judge: Judge) -> None:
    """`no_grad_replay` shows the same fakes all round, though D's steps move layers of G meanwhile: as declared."""
    model = {"factory": f"{NETWORKS}:tied"}
    verdicts = {strategy: judge(strategy, model=model) for strategy in ("detach", "toggle", "no_grad_replay")}
    assert [found.text for found in verdicts.values()] == ["same", "same", "other estimator"]
    assert all(found.as_expected for found in verdicts.values())
    refused = judge("inputs", model=model)
    assert refused.verdict is None
    assert "the networks share 4 parameters" in refused.reason


def test_buffers_that_no_state_dict_holds_belong_to_the_trajectory(spec_of: SpecOf, data: Data) -> None:
    from ganbench.gan.pair import Pair
    from ganbench.gan.strategies import Strategy

    class OneMoreForward(Strategy):
        def before(self, player: Any) -> None:
            if player is self.pair.d:
                with torch.no_grad():
                    self.pair.score(torch.zeros(8, 1, 4, 4))

    model = {"generator": f"{NETWORKS}:G", "discriminator": f"{NETWORKS}:unsaved_buffer"}
    kind: Callable[[Pair], Strategy] = OneMoreForward
    found = certify(spec_of(model=model), data, torch.device("cpu"), strategy=kind)
    assert found.verdict is Verdict.OTHER_ESTIMATOR
    assert found.trajectory_difference == 3


def test_a_share_that_is_infinite_survives_json(judge: Judge) -> None:
    found = judge("detach_as_published")
    truth = found.truth["d"].model_copy(update={"worst_share": float("inf")})
    endless = found.model_copy(update={"truth": {"d": truth}, "trajectory_difference": float("inf")})
    assert Certificate.model_validate_json(endless.model_dump_json()) == endless


def test_a_detour_does_not_depend_on_the_length_of_the_steps() -> None:
    start = {"w": torch.zeros(4)}
    for length in (1.0, 1e-9):
        end, other = {"w": torch.full((4,), length)}, {"w": torch.tensor([-1.0, 1, 1, 1]) * length}
        assert detour(end, end, start) == 0
        assert detour(other, end, start) == pytest.approx(1.0)
        assert difference(other, end) == pytest.approx(2 * length)
    count, more = {"n": torch.tensor(3)}, {"n": torch.tensor(4)}
    assert detour(count, more, {"n": torch.tensor(0)}) == float("inf")
    assert difference({"w": torch.zeros(3)}, {"w": torch.zeros(4)}) == float("inf")
    assert difference({"w": torch.tensor([float("nan")])}, {"w": torch.zeros(1)}) == float("inf")


@pytest.fixture(name="compiler")
def _compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        pytest.skip("torch.compile needs a C++ compiler on the CPU, none is here")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
    yield
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
@pytest.mark.filterwarnings("ignore")  # the compiler trips over its own warnings where they are errors
def test_short_steps_do_not_make_other_fakes_the_same_where_nothing_repeats_to_the_bit(judge: Judge) -> None:
    fields = {"compile": True, "optimizer": {"g_lr": 1e-6, "d_lr": 1e-6}}
    for strategy, verdict in (("detach", Verdict.SAME), ("no_grad_fresh", Verdict.OTHER_ESTIMATOR)):
        found = judge(strategy, **fields)
        assert not found.exact
        assert found.verdict is verdict, found.reason
