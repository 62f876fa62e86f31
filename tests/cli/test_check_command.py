"""`ganbench check`: what it prints, writes, and exits with."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ganbench.cli import main
from ganbench.cli.check import combinations
from ganbench.spec.sweep import SweepSpec

BAD = """
import torch
from torch import nn


class G(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, width), nn.Tanh())

    def forward(self, z):
        return self.net(z).view(-1, 1, 8, 8)


class D(nn.Module):
    def __init__(self, wide=64):
        super().__init__()
        self.blocks = [nn.Linear(8, 8)]
        self.first, self.last = nn.Linear(wide, 8), nn.Linear(8, 1)

    def forward(self, x):
        h = self.first(x.flatten(1))
        for block in self.blocks:
            h = block(h)
        return torch.sigmoid(self.last(h))
"""

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """`call(*arguments)`: exit code, stdout and stderr of `ganbench check` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)

    def calling(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ganbench", "check", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return end.value.code, out, err

    return calling


def experiment(folder: Path, source: str, further: str = "") -> str:
    (folder / "mine.py").write_text(source)
    file = folder / "mine.yaml"
    file.write_text(f"model: {{generator: mine.py:G, discriminator: mine.py:D{further}}}\ndevice: cpu\n")
    return str(file)


def test_nothing_found_is_said(call: Call, tmp_path: Path) -> None:
    code, out, err = call()
    assert (code, err) == (0, "")
    assert "nothing found; 28 checks made" in out
    assert not list(tmp_path.iterdir())  # no store, no log: nothing was run


def test_findings_by_severity_with_evidence_and_advice(call: Call, tmp_path: Path) -> None:
    file = experiment(tmp_path, BAD)
    code, out, _ = call(file, "--set", "loss=[bce, bce_prob]", "--json", "found.json")
    assert code == 0  # it can run, whatever it learns
    lines = out.splitlines()
    hidden = next(n for n, line in enumerate(lines) if line.startswith("warning hidden-layers: "))
    assert lines[hidden + 1].startswith("  seen: discriminator.blocks[0]: Linear")
    assert lines[hidden + 2].startswith("  do: put them into an nn.ModuleList")
    assert not lines[hidden + 3].strip()  # it holds for both losses
    sigmoid = next(n for n, line in enumerate(lines) if line.startswith("warning sigmoid-into-logits: "))
    assert "0.313" in lines[sigmoid + 1]
    assert lines[sigmoid + 3].strip().startswith("in: G/D")
    assert ", bce, " in lines[sigmoid + 3]
    assert "2 warnings; 56 checks made" in out
    assert len([line for line in lines if "hidden-layers" in line]) == 1
    plain = json.loads((tmp_path / "found.json").read_text())
    assert plain["experiment"] == "mine"
    codes = [[finding["code"] for finding in one["findings"]] for one in plain["combinations"]]
    assert codes == [["hidden-layers", "sigmoid-into-logits"], ["hidden-layers"]]
    assert set(plain["combinations"][0]["findings"][0]) == {"code", "severity", "what", "evidence", "advice"}


def test_what_cannot_run_exits_with_1(call: Call, tmp_path: Path) -> None:
    code, out, err = call(experiment(tmp_path, BAD, ", discriminator_args: {wide: 65}"))
    assert (code, err) == (1, "")
    first, *_ = [line for line in out.splitlines() if line.startswith(("error", "warning"))]
    assert first.startswith("error discriminator-raises")
    assert "mine.py: RuntimeError at line 22" in out
    assert "checks were left out until the errors above are mended" in out


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("class G(:\n", ["mine.py", "SyntaxError at line 1"]),
        (BAD.replace("class D", "class Dee"), ["mine.py", "no 'D'"]),
        (BAD.replace("width=64", "width"), ["G()", "mine.py", "TypeError"]),
        (BAD.replace("super().__init__()", "raise ValueError('no width')", 1), ["G()", "line 8", "no width"]),
    ],
)
def test_what_cannot_be_loaded_exits_with_2(call: Call, tmp_path: Path, source: str, words: list[str]) -> None:
    code, out, err = call(experiment(tmp_path, source))
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert len(err.splitlines()) <= 2
    assert not [word for word in words if word not in err]


def test_a_place_that_cannot_be_written(call: Call) -> None:
    code, _, err = call("--json", "nowhere/found.json")
    assert code == 2
    assert "nowhere/found.json" in err


def test_each_combination_is_looked_at_once() -> None:
    fields = {
        "ratio": ["1:1", "5:1"], "strategy": ["detach", "inputs"], "loss": ["bce", "hinge"], "batch_size": [32, 64],
        "optimizer": {"g_lr": [1e-4, 2e-4]}, "device": "cpu",
    }  # fmt: skip
    labels = combinations(SweepSpec.from_fields(fields, "here").arms)
    assert len(labels) == 4
    assert sorted(label.partition(", bce")[2] for label in labels if ", bce" in label) == [", batch 32", ", batch 64"]
