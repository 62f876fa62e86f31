"""Other people's files, looked over as they are: nothing of theirs is trained, downloaded or left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ganbench.execute.check import Checked, look_at
from ganbench.spec.experiment import shipped_folder
from ganbench.spec.run import RunSpec

STRANGERS = shipped_folder() / "strangers"
SCRIPTS = Path(__file__).parents[1] / "gan" / "foreign" / "scripts"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def looked(file: Path, generator: str = "Generator", discriminator: str = "Discriminator", **fields: Any) -> Checked:
    model = {"generator": f"{file}:{generator}", "discriminator": f"{file}:{discriminator}", **fields.pop("model", {})}
    spec = {"model": model, "device": "cpu", "batch_size": 16, **fields}
    checked = look_at(RunSpec.model_validate(spec), False)
    assert checked.looked.can_run
    assert not list(Path.cwd().iterdir())
    return checked


def codes(checked: Checked) -> list[str]:
    return [finding.code for finding in checked.looked.findings]


def test_a_dcgan_script() -> None:
    options = {
        "argv": ["--img_size", 32, "--channels", 1, "--ngf", 8, "--ndf", 8],
        "init": f"{STRANGERS}/dcgan.py:weights_init",
    }
    digits = {"name": "digits", "size": 32}
    latent = {"shape": [100, 1, 1]}
    fits = looked(STRANGERS / "dcgan.py", model=options, dataset=digits, latent=latent, loss="bce_prob")
    assert codes(fits) == ["global-switch"]
    assert fits.looked.findings[0].severity == "note"
    assert "cudnn.benchmark: False → True" in fits.looked.findings[0].evidence
    assert any("statements run" in line for line in fits.lines)
    logits = looked(STRANGERS / "dcgan.py", model=options, dataset=digits, latent=latent, loss="bce")
    assert codes(logits) == ["sigmoid-into-logits", "global-switch"]


def test_a_conditional_script() -> None:
    options = {"argv": ["--img_size", 8, "--latent_dim", 12, "--hidden", 16], "conditional": True}
    cgan = looked(STRANGERS / "cgan.py", model=options, latent={"dim": 12}, loss="lsgan")
    assert codes(cgan) == []


def test_an_auxiliary_classifier() -> None:
    file = STRANGERS / "acgan.py"
    options = {"conditional": True, "output": {"discriminator": 0}}
    acgan = looked(file, model=options, latent={"dim": 32}, loss="bce_prob")
    assert codes(acgan) == ["batch-norm-eps", "unused-parameters"]
    assert acgan.looked.findings[1].evidence == "discriminator.aux.weight, discriminator.aux.bias"


def test_a_wasserstein_gan_with_data_losses_and_optimizer_of_its_own() -> None:
    file = STRANGERS / "wgan_sn.py"
    parts = {
        "dataset": {"name": f"{file}:Spiral", "args": {"n": 500}},
        "loss": {"generator": f"{file}:generator_loss", "discriminator": f"{file}:critic_loss"},
        "optimizer": {"name": f"{file}:make_optimizer", "args": {"alpha": 0.9}},
    }
    assert codes(looked(file, discriminator="Critic", latent={"dim": 16}, **parts)) == []


def test_a_script_with_options_first() -> None:
    options = {"argv": ["--latent_dim", 10, "--img_size", 8]}
    checked = looked(SCRIPTS / "options_first.py", model=options, latent={"dim": 10}, loss="bce_prob")
    assert codes(checked) == ["batch-norm-eps"]
    assert "generator.model.3: BatchNorm1d(64, eps=0.8" in checked.looked.findings[0].evidence


def test_a_script_that_makes_its_data_first() -> None:
    options = {
        "argv": ["--dataset", "fake", "--nz", 16, "--ngf", 4, "--ndf", 4],
        "generator_args": {"ngpu": 1}, "discriminator_args": {"ngpu": 1},
    }  # fmt: skip
    colour = {"name": "digits", "size": 32, "channels": 3}
    checked = looked(
        SCRIPTS / "data_before_classes.py", model=options, dataset=colour, latent={"shape": [16, 1, 1]}, loss="bce_prob"
    )
    assert [code for code in codes(checked) if code != "global-switch"] == []


def test_switches_that_a_file_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "files").mkdir()
    file = tmp_path / "files" / "slow.py"
    file.write_text(
        "import torch\nfrom torch import nn\n\ntorch.autograd.set_detect_anomaly(True)\ntorch.manual_seed(1)\n\n\n"
        "def Generator():\n    return nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Unflatten(1, (1, 8, 8)))\n\n\n"
        "def Discriminator():\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, 1))\n"
    )
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    slow, seed = looked(file).looked.findings
    assert (slow.code, slow.severity, slow.evidence) == ("global-switch", "warning", "anomaly mode: False → True")
    assert (seed.code, seed.severity, seed.evidence) == ("global-switch", "note", "torch random state")
