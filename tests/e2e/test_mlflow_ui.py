"""MLflow's UI in a real browser on a real store: what a user sees without setting anything up."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from stores import carry_out, small_sweep

from ganbench.cli.output import ui_link
from ganbench.track.store import Store

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """The base address of `ganbench ui` on a small sweep, and the experiment's id."""
    folder = tmp_path_factory.mktemp("ui")
    store = Store(f"sqlite:///{folder}/mlflow.db")
    carry_out(small_sweep(), store, folder / "log")
    experiment = store.experiment("small")
    assert experiment is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    base = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "ganbench.cli", "ui", "--port", str(port), "--tracking-uri", store.uri],
        cwd=folder,
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{base}/health", timeout=2).close()
                break
            except (urllib.error.URLError, OSError):
                assert server.poll() is None, "the server ended"
                time.sleep(0.5)
        yield base, experiment.experiment_id
    finally:
        server.terminate()
        server.wait(timeout=30)


def test_arms_are_rows_and_charts_compare_them(served: tuple[str, str], tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    base, experiment = served
    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=quiet)
        try:
            page = browser.new_page(viewport={"width": 1600, "height": 1000})
            page.goto(ui_link(experiment, base=base))
            for label in ("1:2 detach cpu", "1:2 inputs cpu", "1:2 reuse cpu"):
                page.get_by_text(label, exact=True).first.wait_for(timeout=60_000)
            assert page.get_by_text("seed 0", exact=True).count() == 0  # seeds lie under their arms
            page.goto(ui_link(experiment, chart=True, base=base))
            page.get_by_text("loss/d_fake", exact=True).first.wait_for(timeout=60_000)
            page.locator(".js-plotly-plot").first.wait_for(timeout=60_000)
            page.screenshot(path=str(tmp_path / "charts.png"))
        finally:
            browser.close()
