"""`ganbench verify` and `sweep --verify`: tables, files, the store, and exit codes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mlflow.tracking import MlflowClient

from ganbench.cli import main
from ganbench.record.certificate import Certificate
from ganbench.spec.run import RunSpec
from ganbench.spec.sweep import SweepSpec
from ganbench.verify import certificate_key, to_certify

SMALL = """
model: {name: mlp, hidden: 8}
latent: {dim: 6}
ratio: 1:1
strategy: [detach, inputs, detach_as_published]
device: cpu
seeds: 3
budget: 12 updates
batch_size: 8
evaluate: {samples: 50}
"""

STRANGE = """
import os
import torch
from torch import nn


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, 8, 8))

    def forward(self, z):
        return z + self.bias


class Dying(Shift):
    def forward(self, z):
        if torch.is_grad_enabled() and self.training and z.shape[0] == 8:
            os._exit(3)
        return super().forward(z)


class D(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x):
        return self.net(x)
"""

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """`call(*arguments)`: exit code, stdout and stderr of `ganbench …` in a folder with `small.yaml`."""
    monkeypatch.chdir(tmp_path)
    # MLflow keeps one store for each URI in a process: a relative one would be that of the test before.
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    (tmp_path / "small.yaml").write_text(SMALL)
    (tmp_path / "strange.py").write_text(STRANGE)

    def calling(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ganbench", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return end.value.code, out, err

    return calling


def strange(folder: Path, generator: str, strategy: str) -> str:
    model = f"{{generator: strange.py:{generator}, discriminator: strange.py:D}}"
    text = SMALL.replace("{name: mlp, hidden: 8}", model).replace("{dim: 6}", "{shape: [1, 8, 8]}")
    (folder / "mine.yaml").write_text(text.replace("[detach, inputs, detach_as_published]", strategy))
    return "mine.yaml"


def stored(kind: str, name: str = "small") -> list[dict[str, str]]:
    client = MlflowClient(f"sqlite:///{Path('mlflow.db').resolve()}")
    found = client.get_experiment_by_name(name)
    assert found is not None
    return [run.data.tags for run in client.search_runs([found.experiment_id], f"tags.`ganbench.kind` = '{kind}'")]


def test_certificates_on_the_terminal_in_a_file_and_in_the_store(call: Call, tmp_path: Path) -> None:
    for again in (False, True):  # a second time the rows take the place of the first
        code, out, _ = call("verify", "small.yaml", "-o", "out")
        assert code == 0
        assert "6 of 6 verdicts are the expected ones" in out
        assert "ratio 2:3 is certified too" in out
        found = [Certificate.model_validate(one) for one in json.loads((tmp_path / "out" / "verify.json").read_text())]
        verdicts = {(one.ratio, one.strategy): one.text for one in found}
        assert verdicts == {
            (ratio, strategy): verdict
            for ratio in ("1:1", "2:3")
            for strategy, verdict in (("detach", "same"), ("inputs", "same"), ("detach_as_published", "contaminated"))
        }
        by_strategy = {one.strategy: one for one in found if one.ratio == "2:3"}
        assert by_strategy["inputs"].discarded_gradient_bytes == {"g": 0, "d": 0}
        assert by_strategy["detach"].discarded_gradient_bytes is not None
        assert by_strategy["detach"].discarded_gradient_bytes["g"] > 0
        rows = stored("verify")
        assert len(rows) == 6, again
        assert {tags["ganbench.verdict"] for tags in rows} == {"same", "contaminated"}
        assert {tags["ganbench.as_expected"] for tags in rows} == {"true"}


def test_a_verdict_that_was_not_expected_is_told_with_its_reason(call: Call, tmp_path: Path) -> None:
    code, out, _ = call("verify", strange(tmp_path, "Shift", "reuse"), "--ratio", "2:1")
    assert code == 1
    assert "not as expected: 2:1 reuse cpu: same, expected raises graph_freed: every step was made" in out


def test_a_network_that_ends_its_process_cannot_be_certified(call: Call, tmp_path: Path) -> None:
    code, out, _ = call("verify", strange(tmp_path, "Dying", "detach"), "--ratio", "1:2")
    assert code == 1
    assert "cannot be certified because its process died" in out
    assert [tags["ganbench.verdict"] for tags in stored("verify", "mine")] == ["cannot be certified"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("verify", "nothing.yaml"), "no experiment file 'nothing.yaml'"),
        (("verify", "small.yaml", "--strategy", "detatch"), "did you mean 'detach'?"),
        (("verify", "small.yaml", "--set", "model.hiden=3"), "did you mean 'hidden'?"),
        (("verify", "small.yaml", "-o", "small.yaml"), "Directory 'small.yaml' is a file"),
    ],
)
def test_mistakes_are_told_before_anything_is_made(call: Call, arguments: tuple[str, ...], text: str) -> None:
    code, out, err = call(*arguments)
    assert code == 2
    assert text in err
    assert "Traceback" not in out + err
    assert not Path("mlflow.db").exists()


def test_a_sweep_that_verifies_keeps_what_is_not_certified_out_of_the_cost_table(call: Call) -> None:
    code, out, _ = call("sweep", "small.yaml", "--verify", "--ratio", "2:3")
    assert code == 0
    cost = out.split("time per round / detach")[1]
    assert "2:3    inputs" in cost
    assert "2:3    detach_as_published" not in cost
    assert "3 runs are left out of the cost table: not certified: contaminated" in cost
    assert sorted(tags["ganbench.verdict"] for tags in stored("run")) == ["contaminated"] * 3 + ["same"] * 6
    code, out, _ = call("sweep", "small.yaml", "--verify", "--ratio", "2:3", "--include-uncertified")
    assert code == 0
    assert "2:3    detach_as_published" in out.split("time per round / detach")[1]
    for more, there in (((), False), (("--include-uncertified",), True)):
        call("report", "small", "--format", "md", "-o", "out", *more)
        report = Path("out/report.md").read_text()
        cost = report.split("### time per round")[1].split("###")[0]
        assert ("detach_as_published" in cost.replace("\\", "")) is there


def test_what_is_certified_of_a_sweep() -> None:
    fields = {
        "strategy": ["detach", "inputs"],
        "budget": ["60 updates", "90 updates"],
        "seeds": [7, 9],
        "device": "cpu",
    }
    arms, added = to_certify(SweepSpec.from_fields({**fields, "calibrate": True}, "here"))
    assert added
    assert [(str(arm.ratio), arm.strategy, arm.seed) for arm in arms] == [
        (ratio, strategy, 7) for ratio in ("1:1", "2:3") for strategy in ("detach", "inputs")
    ]
    _, added = to_certify(SweepSpec.from_fields({**fields, "ratio": ["1:1", "1:2"]}, "here"))
    assert not added
    one, other = RunSpec(), RunSpec(loss="hinge")
    assert certificate_key(one) == certificate_key(one.model_copy(update={"seed": 3, "calibration": True}))
    assert certificate_key(one) != certificate_key(other)
