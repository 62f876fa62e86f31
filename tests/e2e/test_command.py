"""The command as a user runs it, in an empty folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

GANBENCH = [sys.executable, "-m", "ganbench.cli"]
SMALL = ["sweep", "quickstart", "--ratio", "2:1", "--budget", "60 updates", "--set", "evaluate.every=60 updates"]


def ganbench(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "MLFLOW_TRACKING_URI"}
    return subprocess.run(
        [*GANBENCH, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=280
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


def test_a_sweep_over_all_strategies_comes_out_as_expected(folder: Path) -> None:
    done = ganbench(*SMALL, "--seeds", "1", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 of 9 runs came out as expected; 9 made now, 0 taken from the store" in done.stdout
    assert "raised graph_freed 1/1" in done.stdout
    assert "raised modified_in_place 1/1" in done.stdout
    assert "yes: contaminated" in done.stdout
    assert "time per round / detach" in done.stdout
    assert "workflowType=machine_learning" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_again_it_says_that_all_is_done(folder: Path) -> None:
    done = ganbench(*SMALL, "--seeds", "1", folder=folder)
    assert done.returncode == 0
    assert "all 9 runs are done" in done.stdout


def test_list_show_and_report_tell_the_same_story(folder: Path) -> None:
    listed = ganbench("list", folder=folder)
    assert "9 of 9" in listed.stdout
    shown = ganbench("show", "quickstart", folder=folder)
    assert "9 of 9 runs are in the store" in shown.stdout
    written = ganbench("report", "quickstart", folder=folder)
    assert written.returncode == 0, written.stderr
    report = (folder / "reports" / "quickstart" / "report.md").read_text(encoding="utf-8")
    for heading in ("# quickstart", "## Arms", "## Cost", "## Memory", "## Runs"):
        assert f"\n{heading}\n" in f"\n{report}"
    assert report.count("weights bit-equal to detach") == 3
    arms = (folder / "reports" / "quickstart" / "arms.csv").read_text(encoding="utf-8").splitlines()
    assert len(arms) == 10


def test_a_device_that_is_not_there_is_a_skip_and_no_error(folder: Path) -> None:
    arguments = ["--strategy", "detach", "--seeds", "1", "--device", "cuda:7", "--set", "name=elsewhere"]
    done = ganbench(*SMALL, *arguments, folder=folder)
    assert done.returncode == 1
    assert "skipped" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_ctrl_c_keeps_what_is_finished_and_leaves_no_process(tmp_path: Path) -> None:
    long = ["sweep", "quickstart", "--ratio", "1:1", "--strategy", "detach", "--strategy", "reuse"]
    process = subprocess.Popen(
        [*GANBENCH, *long, "--budget", "300000 updates"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    family = psutil.Process(process.pid)
    logs = tmp_path / ".ganbench" / "log"
    for _ in range(600):  # until a long run's curves are in the log
        if any(path.stat().st_size > 20_000 for path in logs.glob("*.jsonl") if path.exists()):
            break
        time.sleep(0.1)
    children = family.children(recursive=True)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert "interrupted; the same command goes on with what is left" in output
    psutil.wait_procs(children, timeout=20)
    assert [child for child in children if child.is_running()] == []
    listed = ganbench("list", folder=tmp_path)
    assert " of 4" in listed.stdout
