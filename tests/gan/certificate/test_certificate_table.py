"""Every strategy, order and kind of network: the certificate says what the table expects, and never a wrong `same`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from ganbench.gan.certificate import certify
from ganbench.gan.data import Data
from ganbench.record.certificate import Certificate
from ganbench.spec.run import RunSpec
from ganbench.spec.strategy import STRATEGIES, Verdict

CPU = torch.device("cpu")
Own = Callable[..., dict[str, Any]]
SpecOf = Callable[..., RunSpec]
SAME_TRAJECTORY = ("toggle", "inputs", "retain_deferred")


@pytest.fixture(name="certificate")
def _certificate(spec_of: SpecOf, data: Data) -> Callable[..., Certificate]:
    return lambda **fields: certify(spec_of(**fields), data, CPU)


@pytest.mark.parametrize("ratio", ["1:1", "2:1", "1:3", "3:2"])
@pytest.mark.parametrize("order", ["g_first", "d_first"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_table_holds(certificate: Callable[..., Certificate], strategy: str, order: str, ratio: str) -> None:
    model = {"name": "mlp", "hidden": 8, "batch_norm": True}
    found = certificate(strategy=strategy, order=order, ratio=ratio, model=model)
    assert found.as_expected, f"{found.text}, expected {found.expected}: {found.reason}"
    if found.verdict is not Verdict.RAISES:
        g, d = (int(side) for side in ratio.split(":"))
        assert {name: truth.updates for name, truth in found.truth.items()} == {"g": 3 * g, "d": 3 * d}
        assert found.reference == "float64"
    if found.verdict is Verdict.SAME:
        assert found.trajectory_difference == 0
        assert max(truth.worst_share for truth in found.truth.values()) < 1e-5


KINDS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "batch norm": ("Generator", {"batch_norm": True}, "Discriminator", {}),
    "dropout": ("Generator", {"dropout": 0.3}, "Discriminator", {"dropout": 0.3}),
    "spectral norm, old": ("Generator", {}, "Discriminator", {"norm": "old"}),
    "spectral norm, new": ("Generator", {}, "Discriminator", {"norm": "new"}),
    "weight norm, old": ("Generator", {}, "WeightNormed", {"old": True}),
    "weight norm, new": ("Generator", {}, "WeightNormed", {"old": False}),
    "frozen layers": ("Generator", {"frozen": True}, "Discriminator", {"frozen": True}),
    "internal noise": ("Noisy", {}, "Noisier", {}),
    "buffers that follow the data": ("Generator", {}, "Averaging", {}),
}


@pytest.mark.filterwarnings("ignore:.*weight_norm. is deprecated")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["g_first", "d_first"])
def test_networks_of_every_kind(certificate: Callable[..., Certificate], own: Own, kind: str, order: str) -> None:
    generator, g, discriminator, d = KINDS[kind]
    fields = {"model": own(generator, discriminator, g=g, d=d), "order": order, "ratio": "2:3"}
    for strategy in ("detach", *SAME_TRAJECTORY):
        found = certificate(strategy=strategy, **fields)
        assert found.verdict is Verdict.SAME, f"{strategy}: {found.text}: {found.reason}"
        assert found.trajectory_difference == 0
    # With D first, a generator without noise or BatchNorm makes the same fakes again: nothing else is trained on.
    for strategy in ("no_grad_replay", "no_grad_fresh") if order == "g_first" else ("no_grad_fresh",):
        found = certificate(strategy=strategy, **fields)
        assert found.verdict is Verdict.OTHER_ESTIMATOR, f"{strategy}: {found.text}: {found.reason}"
    found = certificate(strategy="detach_as_published", **fields)
    assert found.verdict is Verdict.CONTAMINATED, f"{found.text}: {found.reason}"


@pytest.mark.parametrize("strategy", ["detach", "toggle"])
def test_layers_in_common(certificate: Callable[..., Certificate], own: Own, strategy: str) -> None:
    model = {"factory": own()["generator"].replace(":Generator", ":sharing")}
    found = certificate(model=model, strategy=strategy, ratio="2:3")
    assert found.verdict is Verdict.SAME, f"{found.text}: {found.reason}"


@pytest.mark.parametrize("loss", ["lsgan", "hinge", "wgan_gp", "bce_saturating"])
@pytest.mark.parametrize("strategy", ["detach", "retain_deferred", "no_grad_fresh", "detach_as_published"])
def test_every_loss(certificate: Callable[..., Certificate], loss: str, strategy: str) -> None:
    found = certificate(loss=loss, strategy=strategy, ratio="2:3", real_batches="per_d_update")
    assert found.as_expected, f"{found.text}: {found.reason}"


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("strategy", ["detach", "inputs", "retain_deferred", "detach_as_published"])
def test_reduced_precision(certificate: Callable[..., Certificate], precision: str, strategy: str) -> None:
    found = certificate(precision=precision, strategy=strategy, ratio="2:3")
    assert found.as_expected, f"{found.text}: {found.reason}"
    assert found.reference == "the networks' own type"


def test_fused_optimizers_let_the_published_retain_run_and_it_is_judged(
    certificate: Callable[..., Certificate],
) -> None:
    fused = {"g_lr": 1e-2, "d_lr": 1e-2, "fused": True}
    found = certificate(strategy="retain_as_published", optimizer=fused, ratio="2:3")
    assert found.verdict is Verdict.SAME
    assert found.as_expected
    assert "to be judged" in found.expected


@pytest.mark.parametrize("ratio", ["2:1", "1:5"])
def test_detach_as_published_tells_the_size_of_what_was_left_there(
    certificate: Callable[..., Certificate], ratio: str
) -> None:
    found = certificate(strategy="detach_as_published", ratio=ratio)
    truth = found.truth["d"]
    assert truth.untrue == 3  # the first D update of each round
    assert 0.1 < truth.median_share < 20
    assert f"{truth.worst_share:.3g} times as long" in found.reason
    assert found.truth["g"].untrue == 0


def test_generators_that_save_little_are_reported_as_they_are(
    certificate: Callable[..., Certificate], own: Own
) -> None:
    shift = {"model": own("Shift"), "latent": {"shape": [1, 4, 4]}}
    found = certificate(strategy="reuse", ratio="2:1", **shift)
    assert found.verdict is not Verdict.RAISES
    assert not found.as_expected
    assert found.expected == "raises graph_freed"
    one_layer = certificate(strategy="retain_as_published", ratio="2:1", model=own("OneLayer"))
    assert one_layer.verdict is not Verdict.RAISES
    assert not one_layer.as_expected
    assert one_layer.reason


def test_a_discriminator_that_edits_its_input_spoils_the_reference_itself(
    certificate: Callable[..., Certificate], own: Own
) -> None:
    found = certificate(strategy="detach", ratio="1:3", model=own("OneLayer", "EditsItsInput"))
    assert found.verdict is Verdict.CONTAMINATED
    assert "edited in place" in found.reason
    assert not found.as_expected


def test_what_cannot_be_repeated_is_not_certified(certificate: Callable[..., Certificate], own: Own) -> None:
    found = certificate(strategy="detach", ratio="2:1", model=own("Generator", "Capricious"))
    assert found.verdict is None
    assert found.reason.startswith("cannot be certified because the discriminator called again")
    assert not found.as_expected
    diverging = certificate(strategy="detach", model=own("Generator", "Failing", d={"call": 3, "raises": False}))
    assert diverging.verdict is None
    assert "not finite" in diverging.reason


def test_a_network_that_raises_is_told_by_its_kind(certificate: Callable[..., Certificate], own: Own) -> None:
    found = certificate(strategy="detach", model=own("Generator", "Failing", d={"call": 4, "raises": True}))
    assert found.verdict is Verdict.RAISES
    assert found.error == "RuntimeError: call 4"
    assert found.rounds == 1
    assert not found.as_expected


def test_a_certificate_is_lossless_as_json(certificate: Callable[..., Certificate]) -> None:
    found = certificate(strategy="detach_as_published", ratio="2:1")
    assert Certificate.model_validate_json(found.model_dump_json()) == found


def test_certifying_leaves_the_random_state_of_a_training_alone(spec_of: SpecOf, data: Data, own: Own) -> None:
    """The rounds under observation are those that a run plays: same weights afterwards."""
    from ganbench.gan.certificate.play import Begun, play
    from ganbench.gan.session import Session

    model = own("Noisy", "Discriminator", d={"dropout": 0.3})
    spec = spec_of(model=model, ratio="2:3")
    watched = play(spec, data, CPU, 3, "last", None, begun=Begun.now())
    plain = Session(spec, data, CPU)
    for _ in range(3):
        plain.play_round()
    for key, tensor in plain.pair.d.module.state_dict().items():
        assert torch.equal(tensor, watched.end[f"d.{key}"])
