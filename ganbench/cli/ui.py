"""`ganbench ui`."""

from __future__ import annotations

import os
import socket
import sys

import click

from ganbench.cli.options import tracking_uri


@click.command("ui")
@click.option("--port", type=click.IntRange(1, 65535), default=5000, show_default=True)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@tracking_uri
def command(port: int, host: str, tracking_uri: str) -> None:
    """Open MLflow's UI on the same store, on this machine only unless --host says otherwise."""
    from ganbench.cli.output import console_for, ui_link
    from ganbench.errors import UsageError
    from ganbench.track.reader import Reader
    from ganbench.track.store import Store, sqlite_path

    console = console_for()
    if not tracking_uri.startswith("http") and not _free(host, port):
        raise UsageError(f"port {port} on {host} is taken or may not be opened; choose another with --port")
    base = f"http://{host}:{port}"
    if sqlite_path(tracking_uri) is None and tracking_uri.startswith("http"):
        base = tracking_uri.rstrip("/")
    sweeps = Reader(Store(tracking_uri, make=False)).sweeps()
    for experiment, identifier in {s.experiment: s.experiment_id for s in sweeps}.items():
        console.print(f"{experiment}: {ui_link(identifier, base=base)}", markup=False, soft_wrap=True)
        console.print(f"  charts: {ui_link(identifier, chart=True, base=base)}", markup=False, soft_wrap=True)
    if base == tracking_uri.rstrip("/"):
        return  # the server shows them by itself
    os.environ["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] = "false"  # saves a dozen processes
    arguments = [*f"ui --host {host} --port {port} --workers 1 --backend-store-uri".split(), tracking_uri]
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", "mlflow", *arguments])


def _free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port that was only just left is free
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
