"""The shipped networks give no finding with any loss that they support; parts are those that runs have."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ganbench.gan.check import look, parts_of
from ganbench.gan.data import Data, load
from ganbench.gan.losses import LOSSES
from ganbench.gan.session import Session
from ganbench.spec.run import RunSpec

CPU = torch.device("cpu")
DIGITS = {"name": "digits", "size": 28}
SHIPPED: list[tuple[str, Any, Any]] = [
    ("mlp", "mlp", "digits"),
    ("mlp with BatchNorm", {"name": "mlp", "batch_norm": True}, "digits"),
    ("mlp in colour", "mlp", {"name": "digits", "channels": 3}),
    ("mlp2d on a ring", "mlp2d", "ring8"),
    ("mlp2d on a grid", "mlp2d", "grid25"),
    ("dcgan", {"name": "dcgan", "width": 4, "batch_norm": False}, DIGITS),
    ("dcgan of 64 px", {"name": "dcgan", "width": 4, "batch_norm": False}, {"name": "digits", "size": 64}),
    ("dcgan with BatchNorm", {"name": "dcgan", "width": 4}, DIGITS),
]
# BatchNorm in a critic with a penalty is what is looked for, in shipped networks too.
PAIRS = [
    (name, model, data, loss)
    for name, model, data in SHIPPED
    for loss in LOSSES
    if (name, loss) != ("dcgan with BatchNorm", "wgan_gp")
]


@pytest.fixture(scope="module")
def loaded() -> dict[str, Data]:
    return {}


@pytest.mark.parametrize(
    ("model", "dataset", "loss"), [pair[1:] for pair in PAIRS], ids=[f"{p[0]}-{p[3]}" for p in PAIRS]
)
def test_shipped_networks_are_clean(loaded: dict[str, Data], model: Any, dataset: Any, loss: str) -> None:
    spec = RunSpec.model_validate({"model": model, "dataset": dataset, "loss": loss, "batch_size": 16})
    data = loaded.setdefault(spec.dataset.model_dump_json(), load(spec.dataset))
    looked = look(lambda: parts_of(spec, data, CPU))
    assert not looked.findings
    assert looked.made > 25


def test_batch_norm_in_a_shipped_critic_is_told() -> None:
    spec = RunSpec.model_validate({"model": {"name": "dcgan", "width": 2}, "dataset": DIGITS, "loss": "wgan_gp"})
    data = load(spec.dataset)
    codes = [finding.code for finding in look(lambda: parts_of(spec, data, CPU)).findings]
    assert codes == ["batch-norm-under-penalty"]


def test_a_generator_whose_units_are_all_dead_is_told() -> None:
    # Two channels, no BatchNorm: with this seed no ReLU of its last hidden layer ever opens.
    model = {"name": "dcgan", "width": 2, "batch_norm": False}
    spec = RunSpec.model_validate({"model": model, "dataset": {"name": "digits", "size": 64}, "batch_size": 16})
    data = load(spec.dataset)
    (finding,) = look(lambda: parts_of(spec, data, CPU)).findings
    assert (finding.code, finding.severity) == ("input-ignored", "note")
    assert "dead from the start" in finding.advice


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_parts_are_those_of_a_run(precision: str) -> None:
    spec = RunSpec.model_validate({"batch_size": 4, "seed": 3, "device": "cpu", "precision": precision})
    data = load(spec.dataset)
    parts, session = parts_of(spec, data, CPU), Session(spec, data, CPU)
    own = {**parts.generator.state_dict(), **parts.discriminator.state_dict()}
    theirs = {**session.pair.g.module.state_dict(), **session.pair.d.module.state_dict()}
    assert all(torch.equal(value, theirs[name]) for name, value in own.items())
    assert parts.fakes().dtype == session.pair.generate(parts.latents(4)).dtype == torch.float32
    assert parts.fakes().shape == parts.real(4).shape == (4, *data.shape)
    assert not torch.equal(parts.real(4), parts.real(4))
    assert (parts.probe, parts.evaluation_batch, parts.order) == (4, 256, "g_first")
    assert not look(lambda: parts_of(spec, data, CPU)).findings
