"""`ganbench show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ganbench.cli.options import tracking_uri

if TYPE_CHECKING:
    from rich.console import Console

    from ganbench.track.reader import Reader, StoredRun


@click.command("show")
@click.argument("name_or_id")
@tracking_uri
def command(name_or_id: str, tracking_uri: str) -> None:
    """Show a sweep (by experiment name or sweep id) or one run (by run_key or MLflow run id)."""
    from ganbench.cli.output import console_for, frame_of_sweeps, print_cost, print_summary
    from ganbench.errors import UsageError
    from ganbench.track.reader import Reader
    from ganbench.track.store import Store

    reader = Reader(Store(tracking_uri, make=False))
    console = console_for()
    try:
        sweeps = reader.find(name_or_id)
    except UsageError:
        run = _run(reader, name_or_id)
        if run is None:
            raise
        _print_run(console, reader, run)
        return
    keys = {spec.run_key for stored in sweeps for spec in stored.spec.runs()}
    runs = reader.runs(sweeps[0].experiment_id, keys)
    for stored in sweeps:
        console.print(f"{stored.experiment}, sweep {stored.spec.sweep_id}: {stored.spec.question}", markup=False)
    console.print(f"{len(runs)} of {len(keys)} runs are in the store")
    if runs:
        frame = frame_of_sweeps(sweeps, runs.values())
        print_summary(console, frame)
        print_cost(console, frame)


def _run(reader: Reader, key: str) -> StoredRun | None:
    for experiment_id in {stored.experiment_id for stored in reader.sweeps()}:
        for run in reader.runs(experiment_id).values():
            if key in (run.run_key, run.run_id):
                return run
    return None


def _print_run(console: Console, reader: Reader, run: StoredRun) -> None:
    from ganbench.cli.output import table

    title = f"{run.params.get('ratio')} {run.params.get('strategy')}, seed {run.seed}: {run.outcome or 'unfinished'}"
    console.print(title, markup=False)
    console.print(f"run_key {run.run_key}, MLflow run {run.run_id}; {run.reason}", markup=False)
    table(console, ["param", "value"], sorted(run.params.items()))
    console.print()
    table(console, ["figure", "value"], [(key, f"{value:.6g}") for key, value in sorted(run.metrics.items())])
    console.print()
    table(console, ["host", "value"], sorted((k, v) for k, v in run.tags.items() if k.startswith("host.")))
    record = reader.record(run.run_id)
    counters = ", ".join(f"{name} {value:.6g}" for name, value in record.counters.items())
    console.print(
        f"\na round: {record.schedule or '-'}; {counters or 'no rounds'}; overshoot: {record.overshoot:g}",
        markup=False,
    )
    console.print(f"rounds timed: {len(record.timing.steady())} of {len(record.timing.rounds)}, "
                  f"the first {record.timing.warmup_rounds} are warm-up", markup=False)  # fmt: skip
    for warning in record.warnings:
        console.print(f"warning: {warning}", markup=False)
    if record.error:
        console.print(f"{record.error_kind}: {record.error}", markup=False)
    for line in (record.happened, record.remedy):
        if line:
            console.print(line, markup=False)
    if record.traceback:
        console.print(record.traceback, markup=False)
