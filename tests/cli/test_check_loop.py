"""`ganbench check --loop`: what it prints, writes, and exits with."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ganbench.cli import main

STEPS = Path(__file__).parent.parent / "gan" / "observe" / "steps.py"
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """`call(*arguments)`: exit code, stdout and stderr of `ganbench check` in a folder with `mine.yaml`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("model: {name: mlp, hidden: 8}\nlatent: {dim: 6}\nbatch_size: 8\ndevice: cpu\n")
    (tmp_path / "steps.py").write_text(STEPS.read_text())
    (tmp_path / "dies.py").write_text("import os\n\ndef step(G, D):\n    os._exit(3)\n")

    def calling(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["ganbench", "check", "mine.yaml", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        assert isinstance(end.value.code, int)
        return end.value.code, out, err

    return calling


def test_a_sound_step(call: Call) -> None:
    code, out, _ = call("--loop", "steps.py:sound", "--rounds", "3")
    assert code == 0
    assert "order of updates: G G D D D in each of 3 calls" in out
    assert "nothing found in 3 calls" in out


def test_a_step_that_raises_exits_with_1_and_is_written_down(call: Call) -> None:
    code, out, _ = call("--loop", "steps.py:one_fake_for_both", "--json", "found.json")
    assert code == 1
    assert "error second-backward" in out
    plain = json.loads(Path("found.json").read_text())
    assert plain["findings"][0]["code"] == "second-backward"
    assert plain["rounds"][0]["order"] == "G G"


def test_a_contaminated_step_runs_and_exits_with_0(call: Call) -> None:
    code, out, _ = call("--loop", "steps.py:own_gradients_cleared_only")
    assert code == 0
    assert "warning gradients-contaminated: the discriminator is stepped on the gradient of the generator's loss" in out


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("nothing.py:step", "--loop: no file 'nothing.py' here or beside the experiment"),
        ("steps.py:nothing", "nothing"),
        ("steps.py:wants_more", "wants 'schedulers'"),
        ("dies.py:step", "ended its process"),
    ],
)
def test_mistakes_are_one_line(call: Call, place: str, text: str) -> None:
    code, out, err = call("--loop", place)
    assert code == 2
    assert text in err
    assert "Traceback" not in out + err
