"""`ganbench list`."""

from __future__ import annotations

import time

import click

from ganbench.cli.options import tracking_uri


@click.command("list")
@tracking_uri
def command(tracking_uri: str) -> None:
    """List the sweeps in the store with how far they have come."""
    from ganbench.cli.output import console_for, table
    from ganbench.track.reader import Reader
    from ganbench.track.store import Store

    reader = Reader(Store(tracking_uri, make=False))
    rows = []
    for stored in reader.sweeps():
        keys = [spec.run_key for spec in stored.spec.runs()]
        runs = reader.runs(stored.experiment_id, keys)
        results = [run for run in runs.values() if run.outcome is not None and run.outcome.is_result]
        unexpected = sum(1 for run in runs.values() if run.outcome is not None and not run.as_expected)
        latest = max((run.started_at for run in runs.values()), default=0.0)
        rows.append(
            (
                stored.experiment,
                stored.spec.sweep_id,
                f"{len(results)} of {len(keys)}",
                str(unexpected),
                time.strftime("%Y-%m-%d %H:%M", time.localtime(latest)) if latest else "-",
                stored.spec.question,
            )
        )
    console = console_for()
    if not rows:
        console.print("no sweeps in this store yet; `ganbench sweep` makes one")
        return
    table(console, ["name", "sweep", "done", "unexpected", "last run", "question"], rows)
