"""`ganbench report`."""

from __future__ import annotations

from pathlib import Path

import click

from ganbench.cli.options import include_uncertified, tracking_uri

FORMATS = ("md", "csv")


@click.command("report")
@click.argument("name_or_id")
@click.option("--format", "formats", default="md,csv", show_default=True, help=f"Of {', '.join(FORMATS)}, by commas.")
@click.option("-o", "--output", type=click.Path(path_type=Path, file_okay=False), help="Folder; default reports/NAME.")
@include_uncertified
@tracking_uri
def command(name_or_id: str, formats: str, output: Path | None, include_uncertified: bool, tracking_uri: str) -> None:
    """Write the tables of a sweep (by experiment name or sweep id), made from the store alone."""
    from ganbench.cli.output import console_for, frame_of_sweeps, memory_rows
    from ganbench.errors import UsageError
    from ganbench.report.markdown import write_report
    from ganbench.report.memory import memory_table
    from ganbench.spec.value import unknown
    from ganbench.track.reader import Reader
    from ganbench.track.store import Store

    chosen = [part.strip() for part in formats.split(",") if part.strip()]
    for part in chosen:
        if part not in FORMATS:
            raise UsageError(f"--format: {unknown('format', part, FORMATS)}")
    reader = Reader(Store(tracking_uri, make=False))
    sweeps = reader.find(name_or_id)
    keys = {spec.run_key for stored in sweeps for spec in stored.spec.runs()}
    runs = reader.runs(sweeps[0].experiment_id, keys)
    if not runs:
        raise UsageError(f"'{name_or_id}' has no runs in this store yet; `ganbench sweep` makes them")
    folder = output or Path("reports") / sweeps[0].experiment
    frame = frame_of_sweeps(sweeps, runs.values(), include_uncertified)
    labels = {arm.arm_key: stored.spec.label(arm) for stored in sweeps for arm in stored.spec.arms}
    memory = memory_table(memory_rows(reader, runs.values(), labels))
    try:
        written = write_report(frame, memory, sweeps[0].experiment, sweeps[-1].spec.question, folder, chosen)
    except OSError as error:
        raise UsageError(f"cannot write to '{folder}': {error.strerror}; choose another folder with -o") from None
    console = console_for()
    for path in written:
        console.print(str(path), markup=False, soft_wrap=True)
    if len(runs) < len(keys):
        console.print(f"{len(keys) - len(runs)} of {len(keys)} runs are not in the store yet")
