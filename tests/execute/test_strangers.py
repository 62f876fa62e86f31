"""Files as their authors wrote them, trained without an edit: looked over, forecast, run, judged and recorded."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from stores import carry_out

from ganbench.cli.prepare import sweep_of
from ganbench.errors import DatasetError, UserCodeError
from ganbench.execute.beforehand import look_over
from ganbench.execute.forecast import forecast
from ganbench.execute.judging import drawn
from ganbench.execute.local import LocalExecutor
from ganbench.execute.memory import memory_of
from ganbench.gan.certificate import certify
from ganbench.gan.data import load
from ganbench.gan.session import Session
from ganbench.record.outcome import Outcome
from ganbench.spec.experiment import shipped_folder
from ganbench.spec.run import RunSpec
from ganbench.spec.sweep import SweepSpec
from ganbench.sweep import settle
from ganbench.track.reader import Reader
from ganbench.track.store import Store

STRANGERS = shipped_folder() / "strangers"


def at(file: str, name: str) -> str:
    return f"{STRANGERS / file}:{name}"


DIGITS16 = {"name": "digits", "size": 16}
GANS: dict[str, dict[str, Any]] = {
    "dcgan": {
        "model": {
            "generator": at("dcgan.py", "Generator"),
            "discriminator": at("dcgan.py", "Discriminator"),
            "argv": ["--img_size", 16, "--channels", 1, "--ngf", 4, "--ndf", 4],
            "init": at("dcgan.py", "weights_init"),
        },
        "latent": {"shape": [100, 1, 1]},
        "dataset": DIGITS16,
        "loss": "bce_prob",
    },
    "cgan": {
        "model": {
            "generator": at("cgan.py", "Generator"),
            "discriminator": at("cgan.py", "Discriminator"),
            "argv": ["--img_size", 8, "--latent_dim", 12, "--hidden", 16],
            "conditional": True,
        },
        "latent": {"dim": 12},
        "loss": "lsgan",
    },
    "wgan": {
        "model": {"generator": at("wgan_sn.py", "Generator"), "discriminator": at("wgan_sn.py", "Critic")},
        "latent": {"dim": 16},
        "dataset": {"name": at("wgan_sn.py", "Spiral"), "args": {"n": 500}},
        "loss": {
            "generator": at("wgan_sn.py", "generator_loss"),
            "discriminator": at("wgan_sn.py", "critic_loss"),
        },
        "optimizer": {"name": at("wgan_sn.py", "make_optimizer"), "g_lr": 1e-3, "d_lr": 1e-3, "args": {"alpha": 0.9}},
    },
    "acgan": {
        "model": {
            "generator": at("acgan.py", "Generator"),
            "generator_args": {"width": 8},
            "discriminator": at("acgan.py", "Discriminator"),
            "discriminator_args": {"width": 8},
            "conditional": True,
            "output": {"discriminator": at("acgan.py", "validity")},
        },
        "latent": {"dim": 32},
        "loss": "bce_prob",
    },
}


def fields_of(gan: str, /, **more: Any) -> dict[str, Any]:
    small = {"ratio": "1:2", "device": "cpu", "budget": "12 updates", "batch_size": 16, "evaluate": {"samples": 100}}
    return small | GANS[gan] | more


def sweep_for(gan: str, **more: Any) -> SweepSpec:
    sweep, _ = sweep_of(fields_of(gan, name=gan, **more), "strangers.yaml", LocalExecutor())
    return sweep


@pytest.mark.parametrize("name", GANS)
def test_a_sweep_with_nothing_in_the_file_changed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in STRANGERS.iterdir() if path.is_file()}
    asked = sweep_for(name, strategy=["detach", "inputs"], seeds=1)
    sweep, lines = settle(asked, LocalExecutor(), False)
    assert any("items of shape" in line for line in lines)
    store = Store(f"sqlite:///{tmp_path}/mlflow.db")
    result, _ = carry_out(sweep, store, tmp_path / "log")
    assert result.exit_code == 0
    runs = list(result.runs.values())
    assert [run.outcome for run in runs] == [Outcome.OK] * 2
    assert len({run.tags["ganbench.weights"] for run in runs}) == 1, "inputs trains as detach does"
    assert str(STRANGERS) not in str([run.params for run in runs])
    files = Reader(store).record(runs[0].run_id).files
    assert [Path(file.file).parent for file in files] == [STRANGERS] * len(files)
    assert len(files) >= 1
    assert all(file.statements_run or file.whole for file in files)
    assert {path: path.read_bytes() for path in STRANGERS.iterdir() if path.is_file()} == before
    # Nothing of the script's own was started: no samples, no downloads.
    assert not {"samples", "data"} & set(os.listdir(tmp_path))


@pytest.mark.parametrize(
    ("name", "strategy"), [*((name, "retain_deferred") for name in GANS), ("cgan", "no_grad_fresh")]
)
def test_their_forecast_is_the_real_runs_memory(name: str, strategy: str) -> None:
    spec = RunSpec.model_validate(fields_of(name, ratio="2:3", strategy=strategy))
    found = forecast(spec)
    assert found.memory is not None, found.reason
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of their own ways with torch
        session = Session(spec, load(spec.dataset), torch.device("cpu"))
        for _ in range(2):
            session.play_round()
        assert found.memory == memory_of(session)


@pytest.mark.parametrize("name", GANS)
def test_they_are_certified_as_they_are(name: str) -> None:
    verdicts = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of their own ways with torch
        for strategy in ("detach", "inputs", "retain_deferred", "detach_as_published"):
            spec = RunSpec.model_validate(fields_of(name, ratio="2:3", strategy=strategy))
            found = certify(spec, load(spec.dataset), torch.device("cpu"), rounds=2)
            verdicts[strategy] = found.text
            assert found.as_expected, found.reason
    assert set(verdicts.values()) == {"same", "contaminated"}


def test_what_was_run_of_a_script_is_told() -> None:
    found = look_over(RunSpec.model_validate(fields_of("dcgan")), False)
    (summary,) = [line for line in found.lines if "statements run" in line]
    assert "dcgan.py: " in summary
    assert "stopped at line" in summary
    assert any("cudnn.benchmark" in line and "put back" in line for line in found.lines)


def test_the_items_of_a_users_dataset_are_part_of_the_run() -> None:
    spirals = [{**GANS["wgan"]["dataset"], "args": {"n": n}} for n in (300, 301)]
    few, more = (look_over(RunSpec.model_validate(fields_of("wgan", dataset=one)), False) for one in spirals)
    assert few.dataset.content != more.dataset.content  # type: ignore[union-attr]
    assert "300 items of shape (2,), no labels" in few.lines[0]


@pytest.mark.parametrize(
    ("name", "fields", "kind", "parts"),
    [
        ("dcgan", {"latent": {"dim": 100}}, UserCodeError, ["generator: Generator of", "latents of shape (16, 100)"]),
        ("dcgan", {"dataset": "digits"}, UserCodeError, ["makes (16, 1, 16, 16)", "items of shape (1, 8, 8)"]),
        ("acgan", {"output": None}, UserCodeError, ["discriminator: it gives a tuple of (Tensor (16, 1)", "output"]),
        ("acgan", {"output": {"discriminator": 2}}, UserCodeError, ["no tensor at 2 of a tuple"]),
        ("cgan", {"conditional": False}, UserCodeError, ["Generator of", "raised TypeError", "'labels'"]),
        ("cgan", {"argv": ["--img_size", 8, "--latnt", 3]}, UserCodeError, ["--latnt"]),
        ("wgan", {"conditional": True}, DatasetError, ["needs labels, dataset wgan_sn.py:Spiral has none"]),
        ("wgan", {"loss": at("wgan_sn.py", "generator_loss")}, UserCodeError, ["half a loss"]),
    ],
)
def test_what_cannot_run_is_told_before_any_run(
    name: str, fields: dict[str, Any], kind: type[Exception], parts: list[str]
) -> None:
    given = fields_of(name)
    for key, value in fields.items():
        if key in ("output", "conditional", "argv"):
            given["model"] = {**given["model"], key: value}
            if value is None:
                del given["model"][key]
        else:
            given[key] = value
    with pytest.raises(kind) as caught:
        look_over(RunSpec.model_validate(given), False)
    text = str(caught.value)
    assert [part for part in parts if part not in text] == []
    assert "\n" not in text


def test_every_kind_of_fakes_can_be_drawn() -> None:
    for dataset, shape in (("digits", (1, 8, 8)), ("ring8", (2,)), (at("wgan_sn.py", "Spiral"), (2,))):
        data = load(RunSpec.model_validate({"dataset": dataset, "model": GANS["wgan"]["model"]}).dataset)
        assert drawn(torch.zeros(100, *shape), data).startswith(b"\x89PNG")
