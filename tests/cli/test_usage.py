"""What is wrong with a command is told in one or two lines, without a traceback, with exit code 2."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from ganbench.cli import COMMANDS, cli, main
from ganbench.track.store import Store

HERE = {name: value for name, value in os.environ.items() if name != "MLFLOW_TRACKING_URI"}


def called(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """The real command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "ganbench.cli", *arguments], cwd=folder, env=HERE, capture_output=True, text=True
    )


def told(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Exit code and stderr of the same `main`, in this process."""
    monkeypatch.setattr(sys, "argv", ["ganbench", *arguments])
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(SystemExit) as end:
        main()
    assert isinstance(end.value.code, int)
    return end.value.code, capsys.readouterr().err


def assert_told(stderr: str, words: list[str]) -> None:
    assert [word for word in words if word not in stderr] == []
    assert 1 <= len(stderr.splitlines()) <= 2
    assert stderr.startswith("error: ")
    assert "Traceback" not in stderr


WRONG: list[tuple[list[str], list[str]]] = [
    (["sweep", "--ratio", "0:5"], ["ratio", "at least 1", "'0:5'", "5:1"]),
    (["sweep", "--ratio", "5"], ["ratio", "g:d", "'5'", "5:1"]),
    (["plan", "--ratio", "1:1:1"], ["ratio", "g:d", "'1:1:1'"]),
    (["sweep", "--ratio", "1:1", "--ratio", "x"], ["ratio", "'x'"]),
    (["sweep", "--strategy", "detahc"], ["strategy", "'detahc'", "did you mean 'detach'?"]),
    (["sweep", "--device", "gpu"], ["device", "cuda:N", "'gpu'"]),
    (["sweep", "--seeds", "x"], ["--seeds", "'x'", "0,3,7"]),
    (["sweep", "--seeds", "0"], ["seeds", "1 to 10000", "0"]),
    (["sweep", "--seeds", "1,1"], ["seeds", "different", "[1, 1]"]),
    (["sweep", "--seeds", "1,"], ["--seeds", "'1,'"]),
    (["sweep", "--budget", "5"], ["budget", "'5'", "2000 updates"]),
    (["sweep", "--budget", "5 epochs"], ["budget", "'epochs'"]),
    (["sweep", "--set", "modle=3"], ["--set modle", "did you mean 'model'?"]),
    (["sweep", "--set", "model.hiden=3"], ["model", "'hiden'", "did you mean 'hidden'?"]),
    (["sweep", "--set", "ratio"], ["key=value", "'ratio'"]),
    (["sweep", "--set", "model={"], ["--set model", "not YAML"]),
    (["sweep", "--set", "model={name: {a: 1}}"], ["unknown model"]),
    (["sweep", "--strategy", "\udcff"], ["Unicode"]),
    (["sweep", "--set", "strategy='\udcff'"], ["--set strategy", "not YAML"]),
    (["sweep", "nosuch"], ["no experiment file 'nosuch'", "quickstart"]),
    (["sweep", "quikstart"], ["'quikstart'", "did you mean 'quickstart'?"]),
    (["plan", "a" * 5000], ["cannot read", "too long"]),
    (["plan", "."], ["'.' is a folder"]),
    (["sweep", "--retry", "failed", "--fresh"], ["--retry", "--fresh", "give one"]),
    (["sweep", "--retry", "some"], ["--retry", "'some'", "'failed'", "'all'"]),
    (["sweep", "--jobs", "0"], ["--jobs", "0"]),
    (["sweep", "--jobs", "two"], ["--jobs", "'two'"]),
    (["sweep", "--timeout", "0"], ["--timeout", "0"]),
    (["sweep", "--executor", "slurm"], ["--executor", "'slurm'", "'local'"]),
    (["sweep", "--ratoi", "5:1"], ["--ratoi", "--ratio"]),
    (["sweep", "--ratio"], ["--ratio"]),
    (["sweep", "quickstart", "article"], ["unexpected extra argument", "article"]),
    (["sweeep"], ["no command 'sweeep'", "did you mean 'sweep'?", "report"]),
    (["zzz"], ["no command 'zzz'", "sweep", "report"]),
    (["show"], ["NAME_OR_ID"]),
    (["report", "x", "--format", "pdf"], ["--format", "'pdf'", "md"]),
    (["report", "x", "--format", "md,cvs"], ["--format", "'cvs'", "did you mean 'csv'?"]),
    (["ui"], ["no store 'mlflow.db'", "ganbench sweep"]),
    (["ui", "--port", "0"], ["--port", "0"]),
]


@pytest.mark.parametrize(("arguments", "words"), WRONG, ids=lambda value: ascii(value)[:60])
def test_what_is_wrong_is_told(
    arguments: list[str],
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, stderr = told(arguments, monkeypatch, capsys)
    assert code == 2
    assert_told(stderr, words)
    assert list(tmp_path.iterdir()) == [], "nothing is made by a command that is wrong"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ratio: [1:1", ["mine.yaml", "not YAML", "line"]),
        ("- 1:1", ["mine.yaml", "mapping"]),
        ("ratio: 1:1\nratoi: 2:1", ["mine.yaml", "'ratoi'", "did you mean 'ratio'?"]),
        ("ratio: 1:1\nratio: 2:1", ["mine.yaml", "duplicate key"]),
        ("ratio: []", ["mine.yaml", "ratio", "empty list"]),
        ("model: &a {again: *a}", ["mine.yaml", "alias that contains itself"]),
        ("dataset: {first_of: mnist}", ["first_of", "list of datasets", "'mnist'"]),
    ],
)
def test_a_wrong_file_is_told(
    text: str,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(text)
    code, stderr = told(["plan", "mine.yaml"], monkeypatch, capsys)
    assert code == 2
    assert_told(stderr, words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sweep", "--ratio", "0:5"], ["at least 1, got '0:5'"]),
        (["sweep", "--set", "modle=3"], ["did you mean 'model'?"]),
        (["sweep", "nosuch.yaml"], ["no experiment file 'nosuch.yaml'"]),
        (["sweep", "--retry", "all", "--fresh"], ["give one"]),
        (["swep"], ["did you mean 'sweep'?"]),
        (["ui"], ["no store"]),
    ],
    ids=str,
)
def test_the_real_command_says_so_too(arguments: list[str], words: list[str], tmp_path: Path) -> None:
    done = called(arguments, tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert_told(done.stderr, words)


def test_a_binary_file_is_told_by_the_real_command(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    done = called(["sweep", "mine.yaml"], tmp_path)
    assert done.returncode == 2
    assert_told(done.stderr, ["mine.yaml", "not UTF-8"])


def test_a_store_that_is_not_there_is_told_and_not_made(tmp_path: Path) -> None:
    for arguments in (["list"], ["report", "quickstart"], ["show", "quickstart"], ["ui"]):
        done = called(arguments, tmp_path)
        assert done.returncode == 2
        assert_told(done.stderr, ["no store 'mlflow.db' here yet", "ganbench sweep"])
    assert list(tmp_path.iterdir()) == []


def test_an_empty_store_is_told_by_every_command_that_reads(tmp_path: Path) -> None:
    Store(f"sqlite:///{tmp_path}/mlflow.db")
    listed = called(["list"], tmp_path)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.splitlines() == ["no sweeps in this store yet; `ganbench sweep` makes one"]
    for command in ("report", "show"):
        done = called([command, "quickstart"], tmp_path)
        assert done.returncode == 2
        assert done.stdout == ""
        assert_told(done.stderr, ["no sweep named 'quickstart'", "ganbench sweep"])
    assert not (tmp_path / "reports").exists()


@pytest.mark.parametrize("uri", ["sqlite:///notes.txt", "nonsense://x"])
def test_a_store_that_cannot_be_opened_is_told(uri: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database\n" * 100)
    done = called(["list", "--tracking-uri", uri], tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert_told(done.stderr, ["cannot open the tracking store", uri])
    assert (tmp_path / "notes.txt").read_text() == "no database\n" * 100


def test_a_plan_of_the_command_lines_own_ratios(tmp_path: Path) -> None:
    arguments = ["plan", "--ratio", "5:1", "--ratio", "2:2", "--strategy", "inputs", "--seeds", "0,7"]
    done = called([*arguments, "--budget", "60 updates", "--set", "model.hidden=16"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split() for line in done.stdout.splitlines()]
    two, five = (next(row for row in rows if row[:1] == [ratio]) for ratio in ("2:2", "5:1"))
    assert two[:11] == ["2:2", "inputs", "cpu", "G", "G", "D", "D", "15", "60", "updates", "same"]
    assert five[:13] == ["5:1", "inputs", "cpu", *"GGGGGD", "10", "60", "updates", "same"]
    # The forecast: peak, G phase, D phase; the peak is one of the phases'.
    for forecast in (two[11:], five[13:]):
        peak, g_phase, d_phase = map(float, forecast)
        assert peak == max(g_phase, d_phase) > 0
    assert "2 arms × 2 seeds (0, 7) = 4 runs" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_plan_says_what_fits_and_the_largest_batch(tmp_path: Path) -> None:
    arguments = ["plan", "--ratio", "2:1", "--strategy", "detach", "--set", "model.hidden=512"]
    small = called([*arguments, "--memory", "4MiB", "--max-batch"], tmp_path)
    assert small.returncode == 0
    assert "does not fit" in small.stdout
    large = called([*arguments, "--memory", "1.5GiB"], tmp_path)
    assert "fits 1.5 GiB" in large.stdout
    assert "does not fit" not in large.stdout
    wrong = called([*arguments, "--memory", "much"], tmp_path)
    assert wrong.returncode == 2
    assert_told(wrong.stderr, ["24GiB", "much"])


def test_help_names_every_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["ganbench", "--help"])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    shown = capsys.readouterr().out
    assert [name for name in COMMANDS if f"  {name} " not in shown] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.help
    options = [param for param in command.params if isinstance(param, click.Option)]
    # A choice or a range explains itself by its metavar.
    assert [o.name for o in options if not o.help and isinstance(o.type, click.types.StringParamType)] == []


def test_ctrl_c_ends_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)
    code, stderr = told([], monkeypatch, capsys)
    assert (code, stderr) == (130, "interrupted\n")
